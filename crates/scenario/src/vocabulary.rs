//! The names that a spec may use in addition to the grammar's keywords: kinds, profiles, switches
//! and algorithms of transports, parameters of radio media. The crate that runs specs implements
//! the vocabulary; the grammar only queries it.

use anabranch_settings::Kinds;

use crate::checker::Checker;
use crate::measure::Metric;
use crate::transport::{Transport, TransportKind};
use crate::wifi::Wifi;

/// The name of a measure's values in the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureName {
    /// The subject of the measure.
    pub series: String,
    /// The metric.
    pub metric: String,
    /// The unit of its values.
    pub unit: String,
}

/// The kinds that a program can run. Whether a combination of valid parts is valid is checked when
/// the spec is resolved.
pub trait Vocabulary: Sync {
    /// The kinds of a family, by its [`KindFamily::NAME`](crate::kind_choice::KindFamily::NAME).
    fn kinds(&self, family: &str) -> &dyn Kinds;

    /// The probes that can be recorded of a flow, by their names.
    fn probes(&self) -> Vec<&'static str>;

    /// The transports, with their settings.
    fn transports(&self) -> Vec<&'static TransportKind>;

    /// The transport of a flow, if it is known.
    fn transport(&self, transport: &Transport) -> Option<&'static TransportKind> {
        let mut kinds = self.transports().into_iter();
        kinds.find(|kind| kind.is_of(transport))
    }

    /// The kinds of proxies, by their names.
    fn proxies(&self) -> Vec<&'static str>;

    /// The names of a measure's values in the results. Empty if the measure cannot be computed.
    fn measure_names(&self, metric: &Metric) -> Vec<MeasureName>;

    /// Checks the parameters of a cell's medium against one another and against those of its set.
    fn check_medium(&self, c: &mut Checker<'_>, cell: &Wifi, path: &str);
}

/// The names of the transports with a property, as in messages: `TCP or SCTP`.
pub fn names_of(vocabulary: &dyn Vocabulary, holds: fn(&TransportKind) -> bool) -> String {
    let kinds = vocabulary.transports().into_iter();
    let names = kinds.filter(|kind| holds(kind)).map(|kind| kind.title());
    names.collect::<Vec<_>>().join(" or ")
}
