//! QUIC by `quinn-proto` inside UDP: its settings in specs, a source that connects and writes to
//! streams, and a sink that reads them.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use anabranch_quic::{Config, Connection, Event, Stats};
use anabranch_scenario::transport::TransportKind;
use anabranch_sim::udp::tunnel::{self, TUNNEL_HEADER};
use anabranch_sim::workload::Facts;
use anabranch_sim::{Agent, Rng};
use anabranch_transport::{Ecn, Nanos, Path, Probe, Sample, Transmit, Transport as _};
use bytes::{Bytes, BytesMut};

use super::{
    FlowMember, InvalidSetting, PacketLimit, SharedTransport, Transport, TransportEntry,
    TransportInput, ip_header,
};
use crate::agent::Feed;
use crate::agent::client::{Client, ClientTransport};
use crate::agent::flow_stats::SharedFlowStats;
use crate::agent::inspect::PacketContent;
use crate::agent::transfers::Key;

/// The IP protocol number of UDP.
const PROTOCOL: u8 = 17;
/// Overhead of a full packet with data of one stream: short header, STREAM frame header, and AEAD
/// tag.
const OVERHEAD: u64 = 1 + 8 + 4 + 12 + 16;

/// Registry entry of QUIC.
pub static ENTRY: TransportEntry = TransportEntry {
    kind: TransportKind {
        settings: &[Config::SETTINGS],
        fallback: |_, name| Config::default().show(name),
        messages: false,
        window: true,
        shows_data: false,
        // These are the counters of `quinn-proto`, which does not expose its timers and its bytes
        // in flight.
        probes: Some(&[
            Probe::Cwnd,
            Probe::Srtt,
            Probe::Retransmitted,
            Probe::FastRetransmit,
        ]),
        ..TransportKind::new(
            "quic",
            "QUIC (RFC 9000) by quinn-proto, unmodified. The handshake has the messages of TLS 1.3 with approximately their lengths, but nothing is encrypted.",
        )
    },
    build,
};

fn build(given: &TransportInput<'_>) -> Result<SharedTransport, Vec<InvalidSetting>> {
    let mut config = Config::default();
    for (setting, datum) in given.values() {
        // The result is ignored, because all values of a checked transport are valid.
        let _ = config.put(setting.name, &datum);
    }
    let payload = u64::from(config.mtu) - ip_header(given.ip) - TUNNEL_HEADER as u64;
    Ok(Arc::new(Quic { config, payload }))
}

/// QUIC transport of a flow.
#[derive(Debug)]
struct Quic {
    config: Config,
    /// Maximum UDP payload in bytes, which is also the segment size of the congestion window.
    payload: u64,
}

impl Transport for Quic {
    fn protocol(&self) -> u8 {
        PROTOCOL
    }

    fn packet(&self) -> usize {
        (self.payload - OVERHEAD) as usize
    }

    fn segment(&self) -> u64 {
        self.payload
    }

    fn receive_buffer(&self) -> u64 {
        self.config.receive_window
    }

    fn largest_packet(&self, _: &Facts) -> Option<PacketLimit> {
        Some(PacketLimit {
            bytes: self.config.mtu.into(),
            setting: "mtu",
            beside: 0,
            instead: "",
        })
    }

    fn ends(&self, member: FlowMember<'_>) -> [Box<dyn Agent>; 2] {
        let mut rng = member.rng(ENTRY.kind.name);
        let facts = member.workload.facts();
        let path = member.path();
        let [_, remote] = member.ports;
        let sink = Sink {
            connection: Connection::listen(
                &self.config,
                path.remote.is_ipv6(),
                remote,
                seed(&mut rng),
            ),
            tunnel: Tunnel {
                checksum: member.checksum,
            },
            flow_stats: Rc::clone(&member.flow_stats),
        };
        let source = Source {
            config: self.config.clone(),
            path,
            ports: member.ports,
            seed: seed(&mut rng),
            ahead: match facts.paced {
                true => self.config.send_window,
                false => 2 * self.payload,
            },
            unwritten: BTreeMap::new(),
            transfers: 0,
            ended: false,
            stats: Stats::default(),
            tunnel: Tunnel {
                checksum: member.checksum,
            },
            flow_stats: member.flow_stats,
        };
        let feed = Feed::new(member.workload);
        [Box::new(Client::new(source, feed)), Box::new(sink)]
    }

    fn has_separate_ends(&self) -> bool {
        true
    }

    fn inspect(&self, _: &[u8]) -> PacketContent {
        // The packets are encrypted, so it is unknown whether they carry data.
        PacketContent::NoData
    }
}

fn seed(rng: &mut Rng) -> [u8; 32] {
    let mut seed = [0; 32];
    for word in seed.chunks_exact_mut(8) {
        word.copy_from_slice(&rng.bits().to_be_bytes());
    }
    seed
}

/// UDP encapsulation of the connection's packets.
struct Tunnel {
    /// Whether checksums are computed and verified.
    checksum: bool,
}

impl Tunnel {
    fn take(&self, connection: &mut Connection, now: Nanos, path: Path, ecn: Ecn, packet: Bytes) {
        if let Some(([from, _], payload)) = tunnel::unwrap(path, packet, self.checksum) {
            connection.set_peer_port(from);
            connection.handle_datagram(now, path, ecn, payload);
        }
    }

    fn give(
        &self,
        connection: &mut Connection,
        now: Nanos,
        out: &mut BytesMut,
    ) -> Option<Transmit> {
        let begin = out.len();
        tunnel::open(out, connection.ports());
        let Some(mut transmit) = connection.poll_transmit(now, out) else {
            out.truncate(begin);
            return None;
        };
        transmit.len += TUNNEL_HEADER;
        let datagram = &mut out[begin..];
        tunnel::set_length(datagram);
        if self.checksum {
            tunnel::seal(transmit.path, datagram);
        }
        Some(transmit)
    }
}

/// Client that writes the workload of a flow to streams.
struct Source {
    config: Config,
    path: Path,
    ports: [u16; 2],
    seed: [u8; 32],
    /// Bytes that are taken from the workload beyond the buffer space of the connection.
    ahead: u64,
    /// Bytes that were taken from the workload but not written yet, by stream.
    unwritten: BTreeMap<u16, u64>,
    transfers: u64,
    /// Whether the streams have been finished.
    ended: bool,
    /// Statistics of the connection at the last poll.
    stats: Stats,
    tunnel: Tunnel,
    flow_stats: SharedFlowStats,
}

impl ClientTransport for Source {
    type Connection = Connection;

    fn connect(&mut self, now: Nanos) -> Option<Connection> {
        match Connection::connect(now, &self.config, self.path, self.ports, self.seed) {
            Ok(connection) => {
                self.stats = connection.stats();
                self.flow_stats
                    .borrow_mut()
                    .first_window(now, self.stats.cwnd as f64);
                Some(connection)
            }
            Err(error) => {
                self.flow_stats.borrow_mut().failed = Some(error);
                None
            }
        }
    }

    fn top_up(&mut self, now: Nanos, connection: &mut Connection, feed: &mut Feed) {
        loop {
            self.unwritten.retain(|stream, left| {
                if connection.is_up() && connection.is_writable(*stream) {
                    *left -= connection.write_zeros(*stream, *left);
                }
                *left > 0
            });
            let Some(message) = feed.peek(now) else {
                break;
            };
            if self.unwritten.values().sum::<u64>() >= self.ahead {
                break;
            }
            feed.take();
            let stream = message.stream.unwrap_or_else(|| {
                let number = self.transfers % u64::from(self.config.streams);
                number as u16
            });
            self.transfers += 1;
            let stream = stream % self.config.streams;
            let mut flow_stats = self.flow_stats.borrow_mut();
            flow_stats.begin(now, Key::Stream(stream), &message);
            *self.unwritten.entry(stream).or_default() += message.size as u64;
        }
        if !feed.is_over() || !connection.is_up() || !self.unwritten.is_empty() {
            return;
        }
        if !self.ended {
            self.ended = true;
            connection.finish();
        }
        if connection.unfinished() == 0 {
            connection.close(now);
        }
    }

    fn observe(&mut self, now: Nanos, connection: &mut Connection, _: &mut Feed) {
        let mut flow_stats = self.flow_stats.borrow_mut();
        while let Some(event) = connection.poll_event() {
            if let Event::Failed(reason) = event {
                flow_stats.failed = Some(reason);
            }
        }
        let before = std::mem::replace(&mut self.stats, connection.stats());
        let after = self.stats;
        let mut sample = |probe, value| {
            flow_stats.sample(Sample {
                at: now,
                probe,
                index: 0,
                value,
            });
        };
        for number in before.lost..after.lost {
            sample(Probe::Retransmitted, number as f64);
        }
        for number in before.congestion_events..after.congestion_events {
            sample(Probe::FastRetransmit, number as f64);
        }
        if before.cwnd != after.cwnd {
            sample(Probe::Cwnd, after.cwnd as f64);
        }
        if before.rtt != after.rtt {
            sample(Probe::Srtt, after.rtt as f64 / 1e9);
        }
    }

    fn take(
        &mut self,
        connection: &mut Connection,
        now: Nanos,
        path: Path,
        ecn: Ecn,
        datagram: Bytes,
    ) {
        self.tunnel.take(connection, now, path, ecn, datagram);
    }

    fn give(
        &mut self,
        connection: &mut Connection,
        now: Nanos,
        out: &mut BytesMut,
    ) -> Option<Transmit> {
        self.tunnel.give(connection, now, out)
    }
}

/// Server that accepts one connection and receives its data.
struct Sink {
    connection: Connection,
    tunnel: Tunnel,
    flow_stats: SharedFlowStats,
}

impl Sink {
    fn take(&mut self, now: Nanos) {
        let mut flow_stats = self.flow_stats.borrow_mut();
        while let Some((stream, bytes)) = self.connection.read() {
            flow_stats.deliver(now, bytes, 0);
            flow_stats.arrive(now, Key::Stream(stream), bytes);
        }
        // Events are discarded, because the source reports the end of the connection.
        while self.connection.poll_event().is_some() {}
    }
}

impl Agent for Sink {
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        self.tunnel
            .take(&mut self.connection, now, path, ecn, datagram);
        self.take(now);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.connection.handle_timeout(now);
        self.take(now);
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        self.tunnel.give(&mut self.connection, now, out)
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.connection.poll_timeout()
    }
}
