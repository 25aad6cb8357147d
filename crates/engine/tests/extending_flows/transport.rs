//! A user-defined transport, stop-and-wait: each segment is retransmitted after a timeout until it
//! is acknowledged.

use std::rc::Rc;
use std::sync::Arc;

use anabranch_engine::agent::flow_stats::SharedFlowStats;
use anabranch_engine::agent::inspect::PacketContent;
use anabranch_engine::agent::{Feed, earlier};
use anabranch_engine::kinds::Standard;
use anabranch_engine::transport::{FlowMember, Transport, TransportEntry};
use anabranch_scenario::transport::TransportKind;
use anabranch_settings::{Kind, settings};
use anabranch_sim::Agent;
use anabranch_transport::{Ecn, Nanos, Path, Probe, Sample, Transmit};
use bytes::{BufMut, Bytes, BytesMut};

settings! {
    /// Settings of specs.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Settings {
        /// Retransmission timeout.
        timeout: u64 = 1_000_000_000, Kind::duration(1_000_000, 60_000_000_000), "";
        /// Bytes of data in a segment.
        segment: u64 = 1000, Kind::bytes(1, 1400), "";
    }
    beside {}
}

/// The name in specs, the declarations for the grammar, and the constructor.
static STOP_AND_WAIT: TransportEntry = TransportEntry {
    kind: TransportKind {
        settings: &[Settings::SETTINGS],
        fallback: |_, name| Settings::default().show(name),
        // Acknowledgements pace a bulk workload.
        window: true,
        // The transport does not preserve message boundaries.
        messages: false,
        ..TransportKind::new("stop-and-wait", "One segment at a time.")
    },
    build: |given| {
        let mut settings = Settings::default();
        for (setting, value) in given.values() {
            // Each value has been parsed and range-checked.
            let _ = settings.put(setting.name, &value);
        }
        Ok(Arc::new(StopAndWait(settings)))
    },
};

/// The transport of a flow: built once, and shared by the flow's members and all runs.
#[derive(Debug)]
struct StopAndWait(Settings);

/// Length of the header: two ports and the segment number.
const HEADER: usize = 8;

impl Transport for StopAndWait {
    /// IP protocol 253 is reserved for experiments (RFC 3692).
    fn protocol(&self) -> u8 {
        253
    }

    fn packet(&self) -> usize {
        self.0.segment as usize
    }

    fn segment(&self) -> u64 {
        self.0.segment
    }

    fn ends(&self, member: FlowMember<'_>) -> [Box<dyn Agent>; 2] {
        let sink = Sink {
            path: reversed(member.path()),
            ports: member.ports,
            next: 0,
            answers: Vec::new(),
            flow_stats: Rc::clone(&member.flow_stats),
        };
        let source = Source {
            settings: self.0,
            path: member.path(),
            ports: member.ports,
            feed: Feed::new(member.workload),
            left: 0,
            number: 0,
            flying: None,
            flow_stats: member.flow_stats,
        };
        [Box::new(source), Box::new(sink)]
    }

    /// Content of a packet, for losses and measures that examine packets.
    fn inspect(&self, packet: &[u8]) -> PacketContent {
        match number(packet) {
            Some(number) if packet.len() > HEADER => PacketContent::Data(number),
            _ => PacketContent::NoData,
        }
    }
}

fn number(packet: &[u8]) -> Option<u32> {
    let bytes = packet.get(4..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*bytes))
}

fn reversed(path: Path) -> Path {
    Path::new(path.remote, path.local)
}

fn transmit(path: Path, out: &BytesMut) -> Transmit {
    Transmit {
        path,
        len: out.len(),
        ecn: Ecn::NotEct,
        may_fragment: false,
    }
}

fn write(out: &mut BytesMut, ports: [u16; 2], number: u32, data: usize) {
    ports.into_iter().for_each(|port| out.put_u16(port));
    out.put_u32(number);
    out.put_bytes(0, data);
}

/// An unacknowledged segment.
#[derive(Clone, Copy)]
struct Flying {
    bytes: usize,
    /// Time of the retransmission; `None` while the segment waits to be sent.
    until: Option<Nanos>,
}

struct Source {
    settings: Settings,
    path: Path,
    ports: [u16; 2],
    feed: Feed,
    /// Bytes of the current message that are in no segment yet.
    left: usize,
    number: u32,
    flying: Option<Flying>,
    flow_stats: SharedFlowStats,
}

impl Agent for Source {
    fn start(&mut self, _: Nanos) {
        self.feed.start();
    }

    fn stop(&mut self, _: Nanos) {
        self.feed.stop();
    }

    fn handle_datagram(&mut self, _: Nanos, _: Path, _: Ecn, datagram: Bytes) {
        if number(&datagram) == Some(self.number) && self.flying.take().is_some() {
            self.number += 1;
        }
    }

    fn handle_timeout(&mut self, now: Nanos) {
        if let Some(flying) = &mut self.flying
            && flying.until.is_some_and(|until| until <= now)
        {
            flying.until = None;
            // Metrics count these timeouts and retransmissions like those of any transport.
            for probe in [Probe::Timeout, Probe::Retransmitted] {
                self.flow_stats.borrow_mut().sample(Sample {
                    at: now,
                    probe,
                    index: 0,
                    value: 1.0,
                });
            }
        }
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        if self.flying.is_none() {
            if self.left == 0
                && let Some(message) = self.feed.peek(now)
            {
                self.left = message.size;
                self.feed.take();
            }
            let bytes = self.left.min(self.settings.segment as usize);
            self.left -= bytes;
            self.flying = (bytes > 0).then_some(Flying { bytes, until: None });
        }
        let flying = self.flying.as_mut().filter(|it| it.until.is_none())?;
        flying.until = Some(now.saturating_add(self.settings.timeout));
        write(out, self.ports, self.number, flying.bytes);
        Some(transmit(self.path, out))
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let until = self.flying.and_then(|flying| flying.until);
        earlier(until, self.feed.deadline())
    }
}

struct Sink {
    path: Path,
    ports: [u16; 2],
    /// Number of the expected segment.
    next: u32,
    answers: Vec<u32>,
    flow_stats: SharedFlowStats,
}

impl Agent for Sink {
    fn handle_datagram(&mut self, now: Nanos, _: Path, _: Ecn, datagram: Bytes) {
        let Some(number) = number(&datagram) else {
            return;
        };
        if number == self.next {
            self.next += 1;
            let bytes = (datagram.len() - HEADER) as u64;
            self.flow_stats.borrow_mut().deliver(now, bytes, 0);
        }
        // A duplicate was retransmitted because its acknowledgement was lost.
        self.answers.push(number);
    }

    fn handle_timeout(&mut self, _: Nanos) {}

    fn poll_transmit(&mut self, _: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        let [source, sink] = self.ports;
        write(out, [sink, source], self.answers.pop()?, 0);
        Some(transmit(self.path, out))
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        None
    }
}

const SPEC: &str = r#"
anabranch = 1
name = "stop-and-wait"
node = [{ name = "a" }, { name = "b" }]
measure = [{ metric = "goodput", flow = "f" }]

[world]
duration = "10 s"

[[link]]
name = "wire"
between = ["a", "b"]
rate = "1 Gbit/s"
delay = "50 ms"
loss = { forward = { model = "list", segments = [{ flow = "f", number = 3 }] } }

[[flow]]
name = "f"
from = "a"
to = "b"
workload = { kind = "bulk" }
transport = { protocol = "stop-and-wait", timeout = "500 ms" }
"#;

#[test]
fn a_spec_names_it() {
    let kinds = Standard::default().with_transport(&STOP_AND_WAIT);
    // Each round trip of slightly more than 100 ms carries 1000 B, and one segment is lost: 10 s
    // have room for 95 round trips and a timeout of 0.5 s.
    let bytes = super::value(&kinds, SPEC) * 10.0 / 8.0;
    assert_eq!(bytes, 95_000.0);
}
