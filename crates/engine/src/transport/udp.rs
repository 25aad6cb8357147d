//! UDP for cross traffic: source and sink of the simulator, with statistics.

use std::rc::Rc;
use std::sync::Arc;

use anabranch_scenario::transport::TransportKind;
use anabranch_settings::{Kind, settings};
use anabranch_sim::Agent;
use anabranch_sim::udp::{UdpSink, UdpSource, UdpSourceConfig};
use anabranch_sim::workload::{BoxedWorkload as MadeWorkload, Facts, NextMessage, Workload};
use anabranch_transport::{Ecn, Nanos, Path, Transmit};
use bytes::{Bytes, BytesMut};

use super::{
    FlowMember, InvalidSetting, PacketLimit, SharedTransport, Transport, TransportEntry,
    TransportInput, ip_header,
};
use crate::agent::flow_stats::SharedFlowStats;
use crate::agent::inspect::PacketContent;

/// IP protocol number of UDP.
const PROTOCOL: u8 = 17;
/// Size of the UDP header, bytes.
const HEADER: usize = 8;
/// Default size of a message, bytes.
const DATAGRAM: usize = 1000;
/// Maximum payload of a datagram over IPv4 in bytes: 65535 minus both headers.
const MAX_PAYLOAD: u64 = 65_535 - 20 - HEADER as u64;

settings! {
    /// Settings of the datagrams that a UDP source sends.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Datagrams {
        /// Send datagrams as ECN-capable, so that a queue may mark them and need not drop them. The
        /// source does not slow down in response to marks.
        ecn: bool = false, Kind::Flag, "RFC 3168 §5";
    }
    beside {}
}

/// Registry entry of UDP.
pub static ENTRY: TransportEntry = TransportEntry {
    kind: TransportKind {
        settings: &[Datagrams::SETTINGS],
        fallback: |_, name| Datagrams::default().show(name),
        largest_message: Some(MAX_PAYLOAD),
        ..TransportKind::new("udp", "UDP, for cross traffic.")
    },
    build,
};

fn build(given: &TransportInput<'_>) -> Result<SharedTransport, Vec<InvalidSetting>> {
    let mut datagrams = Datagrams::default();
    for (setting, datum) in given.values() {
        // The result is ignored, because all values of a checked transport are valid.
        let _ = datagrams.put(setting.name, &datum);
    }
    Ok(Arc::new(Udp {
        datagrams,
        ip: ip_header(given.ip),
    }))
}

/// UDP transport of a flow.
#[derive(Debug)]
struct Udp {
    datagrams: Datagrams,
    /// Size of the IP header, bytes.
    ip: u64,
}

impl Transport for Udp {
    fn protocol(&self) -> u8 {
        PROTOCOL
    }

    fn packet(&self) -> usize {
        DATAGRAM
    }

    /// Each message is one packet, so the smallest message determines the size. If even this packet
    /// is too large for a link, no packet passes.
    fn largest_packet(&self, workload: &Facts) -> Option<PacketLimit> {
        let beside = HEADER as u64 + self.ip;
        Some(PacketLimit {
            bytes: workload.sizes[0] + beside,
            setting: "",
            beside,
            instead: "",
        })
    }

    fn ends(&self, member: FlowMember<'_>) -> [Box<dyn Agent>; 2] {
        let [source_port, destination_port] = member.ports;
        let config = UdpSourceConfig {
            path: member.path(),
            source_port,
            destination_port,
        };
        let counted = Counted {
            workload: member.workload,
            flow_stats: Rc::clone(&member.flow_stats),
        };
        let ecn = if self.datagrams.ecn {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        };
        let source = UdpSource::new(config, counted).with_ecn(ecn);
        [Box::new(source), Box::new(Sink::new(member.flow_stats))]
    }

    fn has_separate_ends(&self) -> bool {
        true
    }

    fn inspect(&self, packet: &[u8]) -> PacketContent {
        match packet.len() > HEADER {
            true => PacketContent::Datagram,
            false => PacketContent::NoData,
        }
    }
}

/// A workload whose messages are recorded as transfers of one datagram each.
struct Counted {
    /// The workload itself.
    workload: MadeWorkload,
    /// Statistics in which transfers are recorded.
    flow_stats: SharedFlowStats,
}

impl Workload for Counted {
    fn next(&mut self, now: Nanos) -> NextMessage {
        let offer = self.workload.next(now);
        if let (NextMessage::Now(_), Some(transfers)) =
            (offer, &mut self.flow_stats.borrow_mut().transfers)
        {
            transfers.count_offered();
        }
        offer
    }

    fn facts(&self) -> Facts {
        self.workload.facts()
    }
}

/// Sink that records datagrams in the statistics of the member.
struct Sink {
    inner: UdpSink,
    flow_stats: SharedFlowStats,
}

impl Sink {
    /// Creates a sink that has received no datagram.
    fn new(flow_stats: SharedFlowStats) -> Self {
        Self {
            inner: UdpSink::new(),
            flow_stats,
        }
    }
}

impl Agent for Sink {
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        let before = *self.inner.stats();
        self.inner.handle_datagram(now, path, ecn, datagram);
        let after = self.inner.stats();
        if after.received > before.received {
            let mut flow_stats = self.flow_stats.borrow_mut();
            let bytes = after.bytes - before.bytes;
            flow_stats.deliver(now, bytes, 0);
            let stamped = after.stamped > before.stamped;
            let delay = stamped.then(|| (after.delay_sum - before.delay_sum) as Nanos);
            flow_stats.message(now, delay);
            if let Some(delay) = delay {
                flow_stats.datagram(now, delay, bytes);
            }
        }
    }

    fn handle_timeout(&mut self, _: Nanos) {}

    fn poll_transmit(&mut self, _: Nanos, _: &mut BytesMut) -> Option<Transmit> {
        None
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        None
    }
}
