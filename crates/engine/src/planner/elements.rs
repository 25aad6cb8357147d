//! Notes about satellite elements: their dates, their distance from the start of a run, and omitted
//! entries.

use anabranch_sim::propagation::catalogue;

use super::notes::PointNotes;
use crate::point::{PlannedPoint, PointIndex};

/// Adds the notes about the links of a point that use satellites from a file.
pub fn add(notes: &mut PointNotes, order: PointIndex, point: &PlannedPoint) {
    for (number, link) in point.spec.links.iter().enumerate() {
        for propagation in [true, false]
            .into_iter()
            .filter_map(|side| link.delay.side(side))
        {
            if !propagation.parameters.contains_key("elements") {
                continue;
            }
            let text = format!("{}: {:?}", link.name, propagation.parameters);
            notes.add((order, number), &text, || {
                let values = propagation.values(&point.kinds.propagations);
                let about = catalogue(&values).map(|catalogue| {
                    let place = format!("`link.{}.delay`", link.name);
                    let about = std::iter::once(catalogue.to_string()).chain(catalogue.notes);
                    about.map(|note| format!("{place}: {note}")).collect()
                });
                about.unwrap_or_default()
            });
        }
    }
}
