//! What this engine can run, as the grammar asks for it.

use std::sync::LazyLock;

use anabranch_scenario::checker::Checker;
use anabranch_scenario::chosen::Family;
use anabranch_scenario::families::{
    LossModel, PropagationModel, QueueDiscipline as QueueFamily, Workloads,
};
use anabranch_scenario::measure::Metrics;
use anabranch_scenario::names;
use anabranch_scenario::transport::{Transport, TransportKind};
use anabranch_scenario::vocabulary::Vocabulary;
use anabranch_scenario::wifi::Wifi;
use anabranch_scenario::{Flow, Metric, Spec};
use anabranch_settings::{Kinds, Registry};

use crate::kinds::Standard;
use crate::metric::{self, FlowFacts};
use crate::world::{homes, routes};
use crate::{medium, settings, workload};

/// A family that has no kinds.
static NONE: LazyLock<Registry<()>> = LazyLock::new(|| Registry::new(&[]));

impl Vocabulary for Standard {
    fn kinds(&self, family: &str) -> &dyn Kinds {
        match family {
            LossModel::NAME => &self.losses,
            QueueFamily::NAME => &self.queues,
            PropagationModel::NAME => &self.propagations,
            Workloads::NAME => &self.workloads,
            Metrics::NAME => &self.metrics,
            _ => &*NONE,
        }
    }

    fn transports(&self) -> &[TransportKind] {
        &*settings::TRANSPORTS
    }

    fn check_transport(&self, c: &mut Checker<'_>, transport: &Transport, path: &str) {
        settings::check(c, transport, path);
    }

    fn check_workload(&self, c: &mut Checker<'_>, spec: &Spec, flow: &Flow, path: &str) {
        workload::check(c, self, spec, flow, path);
    }

    fn check_measure(&self, c: &mut Checker<'_>, spec: &Spec, chosen: &Metric, path: &str) {
        let Ok(made) = metric::make(&self.metrics, chosen) else {
            return;
        };
        let watched = made.flow().map(|name| names::Name::parse(name).group);
        let Some(flow) = spec.flows.iter().find(|flow| watched == Some(&*flow.name)) else {
            return;
        };
        let (Some(facts), Some(kind)) =
            (workload::facts(self, flow), self.transport(&flow.transport))
        else {
            return;
        };
        let facts = FlowFacts {
            flow,
            workload: facts,
            messages: kind.messages,
            window: kind.window,
        };
        if let Err(message) = made.check(&facts) {
            c.problem(&format!("{path}.flow"), message);
        }
    }

    fn measure_names(&self, metric: &Metric) -> Vec<(String, String)> {
        let made = metric::make(&self.metrics, metric);
        let names = made.map_or(Vec::new(), |made| made.names());
        let names = names.into_iter();
        names.map(|name| (name.series, name.metric)).collect()
    }

    fn check_medium(&self, c: &mut Checker<'_>, cell: &Wifi, path: &str) {
        medium::check(c, cell, path);
    }

    fn check_world(&self, c: &mut Checker<'_>, spec: &Spec) {
        if let Some((path, error)) = routes::check(spec, self) {
            c.problem(&path, error);
        }
        if let Some((path, error)) = homes::check(spec, self) {
            c.problem(&path, error.to_string());
        }
    }
}
