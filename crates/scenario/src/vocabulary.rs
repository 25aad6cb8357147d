//! What a spec may name beside the grammar's own words: kinds of things, profiles, switches and algorithms of
//! transports, numbers of radio media. Whoever runs specs knows them; the grammar only asks.

use anabranch_settings::Kinds;

use crate::checker::Checker;
use crate::measure::Metric;
use crate::transport::{Transport, TransportKind};
use crate::wifi::Wifi;

/// Under which name the values of a measure stand in the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureName {
    /// What it is of.
    pub series: String,
    /// What it is.
    pub metric: String,
    /// The unit of its values.
    pub unit: String,
}

/// The kinds that a program can run. Whether things that are right for themselves go together, it finds when it resolves the spec.
pub trait Vocabulary: Sync {
    /// The kinds of a family, by its [`Family::NAME`](crate::chosen::Family::NAME).
    fn kinds(&self, family: &str) -> &dyn Kinds;

    /// The probes that can be recorded of a flow, by their names.
    fn probes(&self) -> Vec<&'static str>;

    /// The transports, with their settings.
    fn transports(&self) -> Vec<&'static TransportKind>;

    /// What a flow's transport is, if it is known.
    fn transport(&self, transport: &Transport) -> Option<&'static TransportKind> {
        let mut kinds = self.transports().into_iter();
        kinds.find(|kind| kind.is_of(transport))
    }

    /// The kinds of proxies, by their names.
    fn proxies(&self) -> Vec<&'static str>;

    /// The names under which a measure's values stand in the results. None where it cannot be made.
    fn measure_names(&self, metric: &Metric) -> Vec<MeasureName>;

    /// Checks the numbers of a cell's medium against each other and those of its set.
    fn check_medium(&self, c: &mut Checker<'_>, cell: &Wifi, path: &str);
}

/// The names of the transports of which something holds, as messages write them: `TCP or SCTP`.
pub fn names_of(vocabulary: &dyn Vocabulary, holds: fn(&TransportKind) -> bool) -> String {
    let kinds = vocabulary.transports().into_iter();
    let names = kinds.filter(|kind| holds(kind)).map(|kind| kind.title());
    names.collect::<Vec<_>>().join(" or ")
}
