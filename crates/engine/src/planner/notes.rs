//! Notes about parts of a spec that are equal at many points.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use crate::point::PointIndex;

/// Notes about each distinct part, with the first point that contains the part and the index of the
/// part in this point. The keys are hashes of the parts, because satellite elements may be long.
#[derive(Clone, Debug, Default)]
pub struct PointNotes(BTreeMap<[u8; 32], (PointIndex, usize, Vec<String>)>);

impl PointNotes {
    /// Adds the part with the index `number` of a point; `text` describes the part. If no equal
    /// part is known, `about` computes the notes about it.
    pub fn add(
        &mut self,
        (order, number): (PointIndex, usize),
        text: &str,
        about: impl FnOnce() -> Vec<String>,
    ) {
        let known = self.0.entry(Sha256::digest(text).into());
        let known = known.or_insert_with(|| (order, number, about()));
        (known.0, known.1) = (known.0, known.1).min((order, number));
    }

    /// All notes, each once, in the order of the points.
    pub fn notes(&self) -> Vec<String> {
        let mut all: Vec<_> = self.0.values().collect();
        all.sort_by_key(|(order, number, _)| (*order, *number));
        let mut known = BTreeSet::new();
        let all = all.into_iter().flat_map(|(_, _, about)| about);
        all.filter(|note| known.insert(*note)).cloned().collect()
    }
}
