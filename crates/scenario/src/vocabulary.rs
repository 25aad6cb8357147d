//! Vocabulary: the names that a spec may use in addition to the keywords of the grammar, such as
//! kinds, profiles, switches and algorithms of transports, and parameters of radio media. The crate
//! that runs specs implements the vocabulary, and the grammar queries it.

use anabranch_settings::Kinds;

use crate::checker::Checker;
use crate::measure::Metric;
use crate::transport::{Transport, TransportKind};
use crate::wifi::Wifi;

/// Name and unit of a measure's value in the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureName {
    /// Subject of the measure.
    pub series: String,
    /// Name of the metric.
    pub metric: String,
    /// Unit of the value.
    pub unit: String,
}

/// The names and kinds that a program supports. Combinations of valid parts are checked later, when
/// the spec is resolved.
pub trait Vocabulary: Sync {
    /// Kinds of the family with this [`KindFamily::NAME`](crate::kind_choice::KindFamily::NAME).
    fn kinds(&self, family: &str) -> &dyn Kinds;

    /// Names of the probes that can be recorded of a flow.
    fn probes(&self) -> Vec<&'static str>;

    /// All transports, with their settings.
    fn transports(&self) -> Vec<&'static TransportKind>;

    /// Kind of a flow's transport; `None` if it is unknown.
    fn transport(&self, transport: &Transport) -> Option<&'static TransportKind> {
        let mut kinds = self.transports().into_iter();
        kinds.find(|kind| kind.is_of(transport))
    }

    /// Names of the kinds of proxies.
    fn proxies(&self) -> Vec<&'static str>;

    /// Names and units of a measure's values in the results. The list is empty if the measure
    /// cannot be computed.
    fn measure_names(&self, metric: &Metric) -> Vec<MeasureName>;

    /// Checks that the parameters of a cell's medium are consistent: those given in the spec, and
    /// those of the cell's parameter set.
    fn check_medium(&self, c: &mut Checker<'_>, cell: &Wifi, path: &str);
}

/// Names of the transports with a property, for messages: `TCP or SCTP`.
pub fn names_of(vocabulary: &dyn Vocabulary, holds: fn(&TransportKind) -> bool) -> String {
    let kinds = vocabulary.transports().into_iter();
    let names = kinds.filter(|kind| holds(kind)).map(|kind| kind.title());
    names.collect::<Vec<_>>().join(" or ")
}
