//! Notes about the constellations of a plan.

use anabranch_scenario::constellation::Constellation;

use super::notes::PointNotes;
use crate::network::constellation_checks::about;
use crate::point::{PlannedPoint, PointIndex};

/// Adds the notes about the constellations of a point.
pub fn add(notes: &mut PointNotes, order: PointIndex, point: &PlannedPoint) {
    for (number, constellation) in point.spec.constellations.iter().enumerate() {
        let Constellation {
            name,
            shells,
            start,
            ..
        } = constellation;
        let text = format!("{name} {shells:?} {start:?}");
        notes.add((order, number), &text, || {
            about(constellation, &point.kinds)
        });
    }
}
