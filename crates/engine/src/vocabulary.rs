//! Vocabulary of specs as defined by this engine: the names of kinds, settings and probes.

use std::sync::LazyLock;

use anabranch_scenario::Metric;
use anabranch_scenario::checker::Checker;
use anabranch_scenario::constellation::{RoutingModel, ShellModel};
use anabranch_scenario::kind_choice::KindFamily;
use anabranch_scenario::kind_families::{
    LossModel, PropagationModel, QueueDiscipline as QueueFamily, Workloads,
};
use anabranch_scenario::measure::Metrics;
use anabranch_scenario::transport::TransportKind;
use anabranch_scenario::vocabulary::{MeasureName, Vocabulary};
use anabranch_scenario::wifi::Wifi;
use anabranch_settings::{Kinds, Registry};
use anabranch_transport::Probe;

use crate::kinds::Standard;
use crate::{medium, metric, proxy};

/// Registry of a family without kinds.
static NONE: LazyLock<Registry<()>> = LazyLock::new(|| Registry::new(&[]));

impl Vocabulary for Standard {
    fn kinds(&self, family: &str) -> &dyn Kinds {
        match family {
            LossModel::NAME => &self.losses,
            QueueFamily::NAME => &self.queues,
            PropagationModel::NAME => &self.propagations,
            Workloads::NAME => &self.workloads,
            ShellModel::NAME => &self.shells,
            RoutingModel::NAME => &self.routings,
            Metrics::NAME => &self.metrics,
            _ => &*NONE,
        }
    }

    fn probes(&self) -> Vec<&'static str> {
        let of_transports = Probe::ALL.iter().map(|probe| probe.name());
        let own = self.probes.iter().map(|entry| entry.name);
        of_transports.chain(own).collect()
    }

    fn transports(&self) -> Vec<&'static TransportKind> {
        self.transports.kinds()
    }

    fn proxies(&self) -> Vec<&'static str> {
        proxy::names()
    }

    fn measure_names(&self, metric: &Metric) -> Vec<MeasureName> {
        let made = metric::make(&self.metrics, metric);
        let names = made.map_or(Vec::new(), |made| made.names());
        let names = names.into_iter();
        let name = |it: metric::ResultName| MeasureName {
            series: it.series,
            metric: it.metric,
            unit: it.unit.to_owned(),
        };
        names.map(name).collect()
    }

    fn check_medium(&self, c: &mut Checker<'_>, cell: &Wifi, path: &str) {
        medium::check(c, cell, path);
    }
}
