//! What an emulator over TUN devices did.

use anabranch_sim::DropCounts;

use super::Host;
use crate::report::Timing;

/// What one host sent and was given.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HostReport {
    /// Its name.
    pub name: String,
    /// Packets that it sent into the world.
    pub entered: u64,
    /// Packets that came out of the world for it.
    pub left: u64,
    /// Packets that stay on the first link (multicast, link-local): no part of the emulation.
    pub strays: u64,
}

/// What an emulator did so far.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TunReport {
    /// Of each host, in the order in which they were given.
    pub hosts: Vec<HostReport>,
    /// Packets that the network dropped, by reason.
    pub dropped: DropCounts,
    /// Packets beyond [`MAX_HELD`](super::MAX_HELD), and packets that the system did not take. They are no part of the emulated path: a run
    /// with such packets is not to be trusted.
    pub overrun: u64,
    /// Packets whose IP header was damaged on the way (an impairment of a link), so that the system refused them.
    pub damaged: u64,
    /// By how much packets left later than the network said.
    pub timing: Timing,
}

impl TunReport {
    pub(super) fn of(hosts: &[Host]) -> Self {
        let named = |host: &Host| HostReport {
            name: host.name.clone(),
            ..HostReport::default()
        };
        Self {
            hosts: hosts.iter().map(named).collect(),
            ..Self::default()
        }
    }
}
