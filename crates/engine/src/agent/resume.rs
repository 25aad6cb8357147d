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

/// Maximum number of paths of a store, which is more than any world has.
const MAX_PATHS: usize = 1 << 20;
/// Default lifetime of saved parameters.
const LIFETIME: Nanos = 3600 * SECOND;

/// A store of saved parameters, shared by the flows that name it.
pub type Store = Rc<RefCell<SavedPaths<Path>>>;

/// The stores of a world, by their names in flows.
#[derive(Debug, Default)]
pub struct Stores(BTreeMap<String, Store>);

impl Stores {
    /// The settings of a flow with Careful Resume, including its store.
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

/// The data that both ends of a flow need to resume.
#[derive(Clone, Debug)]
pub struct Resume {
    store: Store,
    lifetime: Nanos,
    /// The settings of its controllers.
    pub parameters: ResumeParameters,
}

/// One end of a flow with Careful Resume: it takes saved parameters at its start, and saves its
/// observations.
#[derive(Debug)]
pub struct Resuming {
    resume: Resume,
    /// The host's first address, for transports that leave the local address unspecified.
    home: IpAddr,
    tally: SharedFlowStats,
    paths: BTreeMap<Path, Use>,
}

/// State of a path in use.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// Whether the parameters in the store are in use by this flow.
    taken: bool,
    /// Number of phase changes already reported to the tally.
    told: usize,
}

impl Resuming {
    /// An end of a flow.
    pub fn new(resume: Resume, home: IpAddr, tally: SharedFlowStats) -> Self {
        Self {
            resume,
            home,
            tally,
            paths: BTreeMap::new(),
        }
    }

    /// The path as the key of the store.
    fn key(&self, path: Path) -> Path {
        match path.local.is_unspecified() {
            true => Path::new(self.home, path.remote),
            false => path,
        }
    }

    /// The saved parameters for a path that the flow starts to use, if it may use them. Called once
    /// per path.
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

    /// Saves the observations of a path's controller, and reports changes of its phase.
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
        self.tally.borrow_mut().sample(Sample {
            at,
            probe: Probe::ResumePhase,
            index,
            value: phase.code().into(),
        });
    }

    /// Releases the saved parameters for use by others, because the association ended.
    pub fn end(&mut self) {
        for (path, known) in &mut self.paths {
            if std::mem::take(&mut known.taken) {
                self.resume.store.borrow_mut().release(path, false);
            }
        }
    }
}
