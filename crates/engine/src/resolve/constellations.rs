//! Notes about the constellations of a plan.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_scenario::constellation::Constellation;

use crate::network::constellation_checks::about;
use crate::point::{Order, PlannedPoint};

/// Notes about the constellations of points, keyed by their text, each with the first point.
#[derive(Clone, Debug, Default)]
pub struct Notes(BTreeMap<String, (Order, usize, Vec<String>)>);

impl Notes {
    /// Adds a point.
    pub fn add(&mut self, order: Order, point: &PlannedPoint) {
        for (number, constellation) in point.spec.constellations.iter().enumerate() {
            let Constellation {
                name,
                shells,
                start,
                ..
            } = constellation;
            let written = format!("{name} {shells:?} {start:?}");
            match self.0.get_mut(&written) {
                Some(known) => (known.0, known.1) = (known.0, known.1).min((order, number)),
                None => {
                    let about = about(constellation, &point.kinds);
                    self.0.insert(written, (order, number, about));
                }
            }
        }
    }

    /// Each note once.
    pub fn notes(&self) -> Vec<String> {
        let mut all: Vec<_> = self.0.values().collect();
        all.sort_by_key(|(order, number, _)| (*order, *number));
        let mut known = BTreeSet::new();
        let all = all.into_iter().flat_map(|(_, _, about)| about);
        all.filter(|note| known.insert(*note)).cloned().collect()
    }
}
