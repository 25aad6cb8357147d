//! Careful Resume (RFC 9959) for flows that share saved congestion control parameters.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use anabranch_congestion::CarefulResume;
use anabranch_congestion::careful_resume::{Phase, ResumeParameters, SavedParameters, SavedPaths};
use anabranch_scenario::Flow;
use anabranch_transport::time::SECOND;
use anabranch_transport::{Nanos, Path, Probe, Sample};

use super::flow_stats::SharedFlowStats;

/// Maximum number of paths in a store, which is more than any world has.
const MAX_PATHS: usize = 1 << 20;
/// Default lifetime of saved parameters, nanoseconds.
const LIFETIME: Nanos = 3600 * SECOND;

/// Store of saved congestion control parameters, shared by the flows that name it.
pub type ResumeStore = Rc<RefCell<SavedPaths<Path>>>;

/// All stores of a world, by the names that flows use.
#[derive(Debug, Default)]
pub struct Stores(BTreeMap<String, ResumeStore>);

impl Stores {
    /// Careful Resume of a flow, with its store and parameters; `None` if the flow does not use it.
    pub fn of(&mut self, flow: &Flow) -> Option<Resume> {
        let name = flow.resume.as_ref()?;
        let store = self.0.entry(name.clone());
        let store = store.or_insert_with(|| Rc::new(RefCell::new(SavedPaths::new(MAX_PATHS))));
        Some(Resume {
            store: Rc::clone(store),
            lifetime: flow.resume_lifetime.map_or(LIFETIME, |it| it.0),
            parameters: ResumeParameters {
                max_jump: flow.resume_max_jump.map_or(u64::MAX, |it| it.0),
                ..ResumeParameters::default()
            },
        })
    }
}

/// Data that both ends of a flow need for Careful Resume.
#[derive(Clone, Debug)]
pub struct Resume {
    store: ResumeStore,
    lifetime: Nanos,
    /// Parameters of the flow's congestion controllers.
    pub parameters: ResumeParameters,
}

/// Careful Resume at one end of a flow: takes saved parameters when a path is first used, and saves
/// its own observations.
#[derive(Debug)]
pub struct Resuming {
    resume: Resume,
    /// First address of the host, for transports that leave the local address unspecified.
    home: IpAddr,
    flow_stats: SharedFlowStats,
    paths: BTreeMap<Path, Use>,
}

/// State of a path that the flow uses.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// Whether the flow has taken the saved parameters of the path, so that no other flow may use
    /// them.
    taken: bool,
    /// Number of phase changes already recorded in the statistics.
    told: usize,
}

impl Resuming {
    /// Creates the state for one end of a flow.
    pub fn new(resume: Resume, home: IpAddr, flow_stats: SharedFlowStats) -> Self {
        Self {
            resume,
            home,
            flow_stats,
            paths: BTreeMap::new(),
        }
    }

    /// Key of a path in the store, with the host's address if the local address is unspecified.
    fn key(&self, path: Path) -> Path {
        match path.local.is_unspecified() {
            true => Path::new(self.home, path.remote),
            false => path,
        }
    }

    /// Saved parameters for a path that the flow starts to use; `None` if there are none or the
    /// flow may not use them. Must be called once per path.
    pub fn take(&mut self, now: Nanos, index: u16, path: Path) -> Option<SavedParameters> {
        let path = self.key(path);
        if self.paths.contains_key(&path) {
            return None;
        }
        let saved = self.resume.store.borrow_mut().take(now, &path);
        let (taken, told) = (saved.is_some(), 0);
        self.paths.insert(path, Use { taken, told });
        if taken {
            self.sample(now, index, Phase::Reconnaissance);
        }
        saved
    }

    /// Saves the observations of a path's controller, and records changes of its phase.
    pub fn observe(&mut self, now: Nanos, index: u16, path: Path, state: &CarefulResume) {
        let path = self.key(path);
        let known = self.paths.entry(path).or_default();
        let new = state.transitions().get(known.told..).unwrap_or_default();
        known.told += new.len();
        let mut store = self.resume.store.borrow_mut();
        if state.is_refuted() && known.taken {
            known.taken = false;
            store.release(&path, true);
        }
        let expires = now.saturating_add(self.resume.lifetime);
        if let (Phase::Normal, Some(saved)) = (state.phase(), state.observation(expires)) {
            store.save(path, saved);
        }
        drop(store);
        for change in new {
            self.sample(change.at, index, change.to);
        }
    }

    fn sample(&self, at: Nanos, index: u16, phase: Phase) {
        self.flow_stats.borrow_mut().sample(Sample {
            at,
            probe: Probe::ResumePhase,
            index,
            value: phase.code().into(),
        });
    }

    /// Releases the saved parameters for other flows, because the association has ended.
    pub fn end(&mut self) {
        for (path, known) in &mut self.paths {
            if std::mem::take(&mut known.taken) {
                self.resume.store.borrow_mut().release(path, false);
            }
        }
    }
}
