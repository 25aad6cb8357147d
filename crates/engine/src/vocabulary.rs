//! What this engine can run, as the grammar asks for it.

use anabranch_scenario::checker::Checker;
use anabranch_scenario::transport::{Transport, TransportKind};
use anabranch_scenario::vocabulary::Vocabulary;
use anabranch_scenario::wifi::Wifi;
use anabranch_scenario::{Flow, Spec};
use anabranch_sim::DropReason;

use crate::world::homes;
use crate::{medium, settings};

/// The transports of this project in its simulator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standard;

impl Vocabulary for Standard {
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
        if let Some((path, error)) = homes::check(spec) {
            c.problem(&path, error.to_string());
        }
    }
}
