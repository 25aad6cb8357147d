//! Elements of satellites: their dates, how far these are from the start of a run, and the entries
//! left out.

use std::collections::BTreeSet;

use anabranch_sim::propagation::catalogue;

use crate::kinds::Standard;
use crate::plan::PlannedExperiment;

/// Notes about the links of a plan whose satellites are those of a file, each once.
pub fn notes(experiments: &[PlannedExperiment], kinds: &Standard) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut known = BTreeSet::new();
    let mut notes = Vec::new();
    let points = experiments.iter().flat_map(|it| &it.points);
    for link in points.flat_map(|point| &point.spec.links) {
        for propagation in [true, false]
            .into_iter()
            .filter_map(|side| link.delay.side(side))
        {
            if !propagation.parameters.contains_key("elements") {
                continue;
            }
            // Reading a catalogue takes longer than comparing its text.
            let written = format!("{}: {:?}", link.name, propagation.parameters);
            if !seen.insert(written) {
                continue;
            }
            let Some(catalogue) = catalogue(&propagation.values(&kinds.propagations)) else {
                continue;
            };
            let place = format!("`link.{}.delay`", link.name);
            let about = std::iter::once(catalogue.to_string()).chain(catalogue.notes);
            let about = about.map(|note| format!("{place}: {note}"));
            notes.extend(about.filter(|note| known.insert(note.clone())));
        }
    }
    notes
}
