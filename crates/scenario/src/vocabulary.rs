//! What a spec may name beside the grammar's own words: kinds of things, profiles, switches and algorithms of
//! transports, numbers of radio media. Whoever runs specs knows them; the grammar only asks.

use anabranch_settings::Kinds;

use crate::checker::Checker;
use crate::flow::Flow;
use crate::measure::Metric;
use crate::spec::Spec;
use crate::transport::{Transport, TransportKind};
use crate::wifi::Wifi;

/// The kinds that a program can run. Each check notes what is wrong at a path of keys below which the value stands.
pub trait Vocabulary: Sync {
    /// The kinds of a family, by its [`Family::NAME`](crate::chosen::Family::NAME).
    fn kinds(&self, family: &str) -> &dyn Kinds;

    /// The transports, with their settings.
    fn transports(&self) -> &[TransportKind];

    /// What a flow's transport is, if it is known.
    fn transport(&self, transport: &Transport) -> Option<&TransportKind> {
        let mut kinds = self.transports().iter();
        kinds.find(|kind| kind.name == transport.protocol)
    }

    /// Checks that settings of a transport go together; each is in its range.
    fn check_transport(&self, c: &mut Checker<'_>, transport: &Transport, path: &str);

    /// Checks that a flow's transport can carry its workload. Each of the two is right for itself.
    fn check_workload(&self, c: &mut Checker<'_>, spec: &Spec, flow: &Flow, path: &str);

    /// Checks that a measure can be taken of what it names. It is right for itself.
    fn check_measure(&self, c: &mut Checker<'_>, spec: &Spec, metric: &Metric, path: &str);

    /// The names under which a measure's values stand in the results: series and metric. None where it cannot be made.
    fn measure_names(&self, metric: &Metric) -> Vec<(String, String)>;

    /// Checks the numbers of a cell's medium against each other and those of its set.
    fn check_medium(&self, c: &mut Checker<'_>, cell: &Wifi, path: &str);

    /// Checks what only a world that is built shows. It is asked last, of a spec in which nothing else is wrong.
    fn check_world(&self, c: &mut Checker<'_>, spec: &Spec);
}
