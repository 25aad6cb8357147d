//! Careful Resume (RFC 9959) of flows that share saved congestion control parameters.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use anabranch_congestion::CarefulResume;
use anabranch_congestion::careful_resume::{Phase, ResumeParameters, SavedParameters, SavedPaths};
use anabranch_scenario::Flow;
use anabranch_transport::time::SECOND;
use anabranch_transport::{Nanos, Path, Probe, Sample};

use super::tally::SharedTally;

/// Paths that a store keeps at most: no world has as many.
const MAX_PATHS: usize = 1 << 20;
/// Lifetime of saved parameters where a flow says nothing.
const LIFETIME: Nanos = 3600 * SECOND;

/// A store of saved parameters, shared by the flows that name it.
pub type Store = Rc<RefCell<SavedPaths<Path>>>;

/// The stores of a world, by the name that flows give them.
#[derive(Debug, Default)]
pub struct Stores(BTreeMap<String, Store>);

impl Stores {
    /// The settings of a flow that resumes, with the store that it names.
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

/// What the two ends of a flow need to resume.
#[derive(Clone, Debug)]
pub struct Resume {
    store: Store,
    lifetime: Nanos,
    /// The settings of its controllers.
    pub parameters: ResumeParameters,
}

/// One end of a flow that resumes: it takes saved parameters when it begins, and saves what it observes.
#[derive(Debug)]
pub struct Resuming {
    resume: Resume,
    /// The host's first address, where a transport leaves the local address open.
    home: IpAddr,
    tally: SharedTally,
    paths: BTreeMap<Path, Use>,
}

/// What is known of the use of a path.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// The set in the store is this flow's.
    taken: bool,
    /// Changes of phase that the tally has.
    told: usize,
}

impl Resuming {
    /// An end of a flow.
    pub fn new(resume: Resume, home: IpAddr, tally: SharedTally) -> Self {
        Self {
            resume,
            home,
            tally,
            paths: BTreeMap::new(),
        }
    }

    /// The path as the store knows it.
    fn key(&self, path: Path) -> Path {
        match path.local.is_unspecified() {
            true => Path::new(self.home, path.remote),
            false => path,
        }
    }

    /// The parameters saved for a path that the flow begins to use, if it may use them; asked once a path.
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

    /// Saves what a path's controller has observed, and passes on how its phase has changed.
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

    /// The association is over: others can use what is saved.
    pub fn end(&mut self) {
        for (path, known) in &mut self.paths {
            if std::mem::take(&mut known.taken) {
                self.resume.store.borrow_mut().release(path, false);
            }
        }
    }
}
