//! Observers of link directions, which receive link samples during a run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anabranch_sim::{LinkDirection, LinkId, LinkSample};
use anabranch_transport::Nanos;

use crate::agent::observer::Observing;

/// The observers of each direction that is watched.
pub type Watched = BTreeMap<(LinkId, LinkDirection), Vec<Observing>>;

/// Observers of links, shared with the recorder of the world.
#[derive(Clone, Default)]
pub struct LinkObservers(Rc<RefCell<Watched>>);

impl LinkObservers {
    /// Adds observers to a direction.
    pub fn watch(&self, link: LinkId, direction: LinkDirection, observers: Vec<Observing>) {
        self.0.borrow_mut().insert((link, direction), observers);
    }

    /// Whether no direction is observed.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Passes a sample to the observers of its link and direction.
    pub fn tell(&self, sample: &LinkSample) {
        let mut lanes = self.0.borrow_mut();
        for observing in lanes
            .get_mut(&(sample.link, sample.direction))
            .into_iter()
            .flatten()
        {
            observing.observer.link(sample);
        }
    }

    /// Takes all observers.
    pub fn take(&self) -> Watched {
        self.0.take()
    }
}

/// The observers of the members of a link, whose run ended at `end`.
pub fn of_members(lanes: &mut Watched, members: &[LinkId], end: Nanos) -> Vec<Vec<Observing>> {
    let members = members.iter().map(|&link| {
        let both = LinkDirection::BOTH
            .iter()
            .filter_map(|&direction| lanes.remove(&(link, direction)));
        let mut observers: Vec<Observing> = both.flatten().collect();
        for observing in &mut observers {
            observing.observer.close(end);
        }
        observers
    });
    members.collect()
}
