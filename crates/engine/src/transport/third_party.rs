//! SCTP by third-party stacks: their settings in specs, a source that connects and sends messages,
//! and a sink that receives them.

use std::rc::Rc;
use std::sync::Arc;

use anabranch_scenario::transport::{TransportKind, not_compiled};
use anabranch_sim::Agent;
use anabranch_sim::workload::Facts as SimFacts;
use anabranch_third_party_sctp::{Config, Connection, Event, Outside, Stack, StackState};
use anabranch_transport::{Ecn, Nanos, Path, Probe, Sample, Transmit, Transport as _};
use bytes::{Bytes, BytesMut};

use super::sctp::{DATA_HEADER, PROTOCOL, inspect, secret};
use super::{
    FlowMember, InvalidSetting, PacketLimit, SharedTransport, Transport, TransportEntry,
    TransportInput, ip_header,
};
use crate::agent::Feed;
use crate::agent::client::{Client, ClientTransport};
use crate::agent::flow_stats::SharedFlowStats;
use crate::agent::inspect::PacketContent;
use crate::agent::message_header::{MessageHeader, payload};
use crate::agent::transfers::Key;

/// Registry entry of dcsctp.
pub static DCSCTP: TransportEntry = entry(&anabranch_third_party_sctp::DCSCTP);
/// Registry entry of rtc-sctp.
pub static RTC_SCTP: TransportEntry = entry(&anabranch_third_party_sctp::RTC_SCTP);
/// Registry entry of sctp-proto.
pub static SCTP_PROTO: TransportEntry = entry(&anabranch_third_party_sctp::SCTP_PROTO);

const fn entry(stack: &'static Stack) -> TransportEntry {
    TransportEntry {
        kind: TransportKind {
            stack_of: Some("sctp"),
            settings: &[Config::SETTINGS],
            fallback: |_, name| Config::default().show(name),
            window: true,
            probes: Some(stack.probes),
            ..TransportKind::new(stack.name, stack.about)
        },
        build,
    }
}

fn build(given: &TransportInput<'_>) -> Result<SharedTransport, Vec<InvalidSetting>> {
    let named = |stack: &&&Stack| stack.name == given.kind.name;
    let stack = anabranch_third_party_sctp::STACKS.iter().find(named);
    let Some(stack) = stack.filter(|stack| stack.is_here()) else {
        let name = given.kind.name;
        return Err(vec![InvalidSetting::new("stack", not_compiled(name, name))]);
    };
    let mut config = Config::default();
    for (setting, datum) in given.values() {
        // The result is ignored, because all values of a checked transport are valid.
        let _ = config.put(setting.name, &datum);
    }
    let ip = ip_header(given.ip) as u16;
    Ok(Arc::new(ThirdParty { stack, config, ip }))
}

/// Transport of a flow over a third-party stack.
#[derive(Debug)]
struct ThirdParty {
    stack: &'static Stack,
    config: Config,
    /// Size of the IP header, bytes.
    ip: u16,
}

impl Transport for ThirdParty {
    fn protocol(&self) -> u8 {
        PROTOCOL
    }

    fn packet(&self) -> usize {
        self.config.fragment(self.ip)
    }

    fn segment(&self) -> u64 {
        self.config.fragment(self.ip) as u64 + DATA_HEADER
    }

    fn receive_buffer(&self) -> u64 {
        self.config.receive_buffer.into()
    }

    fn largest_packet(&self, _: &SimFacts) -> Option<PacketLimit> {
        let ip = u64::from(self.ip);
        Some(PacketLimit {
            // The size is a multiple of 4, because chunks are padded to 4 bytes.
            bytes: ((u64::from(self.config.mtu) - ip) & !3) + ip,
            setting: "mtu",
            beside: 0,
            instead: "",
        })
    }

    fn ends(&self, member: FlowMember<'_>) -> [Box<dyn Agent>; 2] {
        let mut rng = member.rng(self.stack.name);
        let mut outside = |ports| Outside {
            ports,
            ip: self.ip,
            checksum: member.checksum,
            seed: secret(&mut rng),
        };
        let [near, far] = member.ports;
        let (near, far) = (outside([near, far]), outside([far, near]));
        let facts = member.workload.facts();
        let (once, transfers) = {
            let flow_stats = member.flow_stats.borrow();
            (flow_stats.once.is_some(), flow_stats.transfers.is_some())
        };
        // A message without a specified stream is identified by its number.
        let numbered = once || transfers && facts.piece.is_none();
        let stamped = member.delays || numbered;
        let sink = Sink {
            connection: Connection::listen(self.stack, &self.config, &far),
            stamped,
            fragment: self.config.fragment(self.ip) as u64,
            flow_stats: Rc::clone(&member.flow_stats),
        };
        let source = Source {
            stack: self.stack,
            config: self.config.clone(),
            outside: near,
            path: member.path(),
            stamped,
            numbered,
            accepted: 0,
            transfers: 0,
            given: 0,
            zeros: Bytes::new(),
            facts: StackState::default(),
            flow_stats: member.flow_stats,
        };
        let feed = Feed::new(member.workload);
        [Box::new(Client::new(source, feed)), Box::new(sink)]
    }

    fn inspect(&self, packet: &[u8]) -> PacketContent {
        inspect(packet)
    }
}

/// Client that sends the workload of a flow.
struct Source {
    stack: &'static Stack,
    config: Config,
    outside: Outside,
    path: Path,
    /// Whether each message starts with its offer time.
    stamped: bool,
    /// Whether the stamp of each message also has its number.
    numbered: bool,
    /// Number of messages, and pieces of transfers, that were passed to the stack.
    accepted: u64,
    /// Number of transfers that were passed to the stack.
    transfers: u64,
    /// Bytes of the current transfer that were passed to the stack.
    given: usize,
    zeros: Bytes,
    /// State of the stack at the last poll.
    facts: StackState,
    flow_stats: SharedFlowStats,
}

impl ClientTransport for Source {
    type Connection = Connection;

    fn connect(&mut self, now: Nanos) -> Option<Connection> {
        let made = Connection::connect(now, self.stack, &self.config, self.path, &self.outside);
        made.map_err(|error| self.flow_stats.borrow_mut().failed = Some(error))
            .ok()
    }

    fn top_up(&mut self, now: Nanos, connection: &mut Connection, feed: &mut Feed) {
        // Some stacks count unacknowledged data as buffered, so the limit must not be below the
        // peer's window.
        let ahead = 2 * self.config.receive_buffer as usize;
        let mut room = ahead.saturating_sub(connection.buffered());
        while let Some(message) = feed.peek(now) {
            if room == 0 {
                break;
            }
            let left = message.size - self.given;
            let size = message.piece.map_or(left, |piece| piece.min(left));
            let stream = message.stream.or_else(|| {
                // All pieces of a transfer use the same stream.
                let number = self.transfers % u64::from(self.config.streams);
                message.piece.map(|_| number as u16)
            });
            let number = self.accepted;
            let key = stream.map_or(Key::Number(number), Key::Stream);
            let stream = stream.unwrap_or((number % u64::from(self.config.streams)) as u16);
            let stamp = self.stamped.then_some(MessageHeader {
                time: now,
                number: self.numbered.then_some(number),
            });
            connection.send(
                stream % self.config.streams,
                payload(&mut self.zeros, size, stamp),
            );
            room = room.saturating_sub(size);
            let mut flow_stats = self.flow_stats.borrow_mut();
            if let Some(once) = &mut flow_stats.once {
                once.accept();
            }
            if self.given == 0 {
                flow_stats.begin(now, key, &message);
            }
            self.accepted += 1;
            self.given += size;
            if self.given == message.size {
                self.given = 0;
                self.transfers += 1;
                feed.take();
            }
        }
        if feed.is_over() {
            connection.close();
        }
    }

    fn observe(&mut self, now: Nanos, connection: &mut Connection, _: &mut Feed) {
        let mut flow_stats = self.flow_stats.borrow_mut();
        let mut sample = |probe, value| {
            flow_stats.sample(Sample {
                at: now,
                probe,
                index: 0,
                value,
            });
        };
        let mut failed = None;
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Sent(number) => sample(Probe::Sent, number as f64),
                Event::Repeated(number) => sample(Probe::Retransmitted, number as f64),
                Event::Failed(reason) => failed = Some(reason),
                _ => {}
            }
        }
        let before = std::mem::replace(&mut self.facts, connection.facts());
        let after = self.facts;
        for number in before.timeouts..after.timeouts {
            sample(Probe::Timeout, number as f64);
        }
        for number in before.fast_retransmits..after.fast_retransmits {
            sample(Probe::FastRetransmit, number as f64);
        }
        if let Some(cwnd) = after.cwnd.filter(|_| before.cwnd != after.cwnd) {
            sample(Probe::Cwnd, cwnd as f64);
        }
        if let Some(rtt) = after.rtt.filter(|_| before.rtt != after.rtt) {
            sample(Probe::Srtt, rtt as f64 / 1e9);
        }
        if failed.is_some() {
            flow_stats.failed = failed;
        }
    }
}

/// Server that accepts one association and receives its messages.
struct Sink {
    connection: Result<Connection, String>,
    stamped: bool,
    /// Maximum user data of a chunk, bytes; longer messages arrive in several chunks.
    fragment: u64,
    flow_stats: SharedFlowStats,
}

impl Sink {
    fn take(&mut self, now: Nanos) {
        let Ok(connection) = &mut self.connection else {
            return;
        };
        let mut flow_stats = self.flow_stats.borrow_mut();
        while let Some(event) = connection.poll_event() {
            let (probe, number) = match event {
                Event::Received(number) => (Probe::Received, number),
                Event::Duplicate(number) => (Probe::Duplicate, number),
                // Ignored, because the source reports the end of the association.
                _ => continue,
            };
            flow_stats.sample(Sample {
                at: now,
                probe,
                index: 0,
                value: number as f64,
            });
        }
        while let Some((stream, message)) = connection.receive() {
            let size = message.len() as u64;
            flow_stats.deliver(now, size, DATA_HEADER * size.div_ceil(self.fragment));
            flow_stats.arrive(now, Key::Stream(stream), size);
            let stamp = MessageHeader::read(&message).filter(|_| self.stamped);
            flow_stats.message(now, stamp.map(|stamp| now.saturating_sub(stamp.time)));
            let Some(number) = stamp.and_then(|stamp| stamp.number) else {
                continue;
            };
            flow_stats.arrive(now, Key::Number(number), u64::MAX);
            if let Some(once) = &mut flow_stats.once {
                once.deliver(number);
            }
        }
    }
}

impl Agent for Sink {
    fn start(&mut self, _: Nanos) {
        if let Err(error) = &self.connection {
            self.flow_stats.borrow_mut().failed = Some(error.clone());
        }
    }

    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        if let Ok(connection) = &mut self.connection {
            connection.handle_datagram(now, path, ecn, datagram);
        }
        self.take(now);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        if let Ok(connection) = &mut self.connection {
            connection.handle_timeout(now);
        }
        self.take(now);
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        self.connection.as_mut().ok()?.poll_transmit(now, out)
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.connection.as_ref().ok()?.poll_timeout()
    }
}
