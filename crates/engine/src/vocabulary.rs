//! What this engine can run, as the grammar asks for it.

use std::sync::LazyLock;

use anabranch_scenario::checker::Checker;
use anabranch_scenario::chosen::Family;
use anabranch_scenario::families::{LossModel, PropagationModel, QueueDiscipline as QueueFamily};
use anabranch_scenario::transport::{Transport, TransportKind};
use anabranch_scenario::vocabulary::Vocabulary;
use anabranch_scenario::wifi::Wifi;
use anabranch_scenario::{Flow, Spec};
use anabranch_settings::{Kinds, Registry};
use anabranch_sim::DropReason;

use crate::kinds::Standard;
use crate::world::{homes, routes};
use crate::{medium, settings};

/// A family that has no kinds.
static NONE: LazyLock<Registry<()>> = LazyLock::new(|| Registry::new(&[]));

impl Vocabulary for Standard {
    fn kinds(&self, family: &str) -> &dyn Kinds {
        match family {
            LossModel::NAME => &self.losses,
            QueueFamily::NAME => &self.queues,
            PropagationModel::NAME => &self.propagations,
            _ => &*NONE,
        }
    }

    fn drop_reasons(&self) -> Vec<&'static str> {
        DropReason::ALL.iter().map(|reason| reason.name()).collect()
    }

    fn transports(&self) -> &[TransportKind] {
        &*settings::TRANSPORTS
    }

    fn check_transport(&self, c: &mut Checker<'_>, transport: &Transport, path: &str) {
        settings::check(c, transport, path);
    }

    fn receive_buffer(&self, flow: &Flow) -> u64 {
        settings::sctp(&flow.transport).receive_buffer.into()
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
