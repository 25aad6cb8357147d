//! Statistics of an emulator with TUN devices.

use anabranch_sim::DropCounts;

use super::Host;
use crate::report::Timing;

/// Statistics of one host.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HostReport {
    /// Name of the host.
    pub name: String,
    /// Number of packets that it sent into the world.
    pub entered: u64,
    /// Number of packets delivered to it.
    pub left: u64,
    /// Number of packets that must not leave the first link (multicast, link-local) and are not
    /// emulated.
    pub strays: u64,
}

/// Statistics so far.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TunReport {
    /// Statistics of each host, in the order in which they were given.
    pub hosts: Vec<HostReport>,
    /// Packets that the network dropped, by reason.
    pub dropped: DropCounts,
    /// Number of packets beyond [`MAX_HELD`](super::MAX_HELD), and of packets that the system did
    /// not accept. These losses are not part of the emulation, so the results of such a run should
    /// not be used.
    pub overrun: u64,
    /// Number of packets that the system rejected because an impairment of a link had damaged their
    /// IP header.
    pub damaged: u64,
    /// Lateness of departures compared with the times computed by the network.
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
