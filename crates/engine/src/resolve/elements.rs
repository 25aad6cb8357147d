//! Notes about elements of satellites: their dates, their distance from the start of a run, and the
//! omitted entries.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_sim::propagation::catalogue;

use crate::point::{Order, PlannedPoint};

/// Notes about links of points with satellites from a file, keyed by their text, each with the
/// first link.
#[derive(Clone, Debug, Default)]
pub struct Notes(BTreeMap<String, (Order, usize, Vec<String>)>);

impl Notes {
    /// Adds a point.
    pub fn add(&mut self, order: Order, point: &PlannedPoint) {
        for (number, link) in point.spec.links.iter().enumerate() {
            for propagation in [true, false]
                .into_iter()
                .filter_map(|side| link.delay.side(side))
            {
                if !propagation.parameters.contains_key("elements") {
                    continue;
                }
                // The text is compared first because reading a catalogue takes longer.
                let written = format!("{}: {:?}", link.name, propagation.parameters);
                if let Some(known) = self.0.get_mut(&written) {
                    (known.0, known.1) = (known.0, known.1).min((order, number));
                    continue;
                }
                let values = propagation.values(&point.kinds.propagations);
                let about = catalogue(&values).map(|catalogue| {
                    let place = format!("`link.{}.delay`", link.name);
                    let about = std::iter::once(catalogue.to_string()).chain(catalogue.notes);
                    about.map(|note| format!("{place}: {note}")).collect()
                });
                let about = about.unwrap_or_default();
                self.0.insert(written, (order, number, about));
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
