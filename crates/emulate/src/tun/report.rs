//! Statistics of an emulator with TUN devices.

use anabranch_sim::DropCounts;

use super::TunHost;
use crate::report::DepartureLateness;

/// Statistics of one host.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HostReport {
    /// Name of the host.
    pub name: String,
    /// Number of packets that the host has sent into the world.
    pub entered: u64,
    /// Number of packets that were delivered to the host.
    pub left: u64,
    /// Number of packets that must not leave their first link (multicast, link-local), and are not
    /// emulated.
    pub rejected: u64,
}

/// Statistics since the start.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TunReport {
    /// Statistics of each host, in the order of the call that started the emulator.
    pub hosts: Vec<HostReport>,
    /// Packets that the network dropped by its rules, by reason.
    pub dropped: DropCounts,
    /// Number of packets that exceeded [`MAX_HELD`](super::MAX_HELD), or that the system did not
    /// accept. These losses are not part of the emulation, so results with such losses should not
    /// be used.
    pub overrun: u64,
    /// Number of packets that the system rejected because an impairment of a link had damaged their
    /// IP header.
    pub damaged: u64,
    /// Lateness of departures, compared with the times that the network computed.
    pub timing: DepartureLateness,
}

impl TunReport {
    pub(super) fn of(hosts: &[TunHost]) -> Self {
        let named = |host: &TunHost| HostReport {
            name: host.name.clone(),
            ..HostReport::default()
        };
        Self {
            hosts: hosts.iter().map(named).collect(),
            ..Self::default()
        }
    }
}
