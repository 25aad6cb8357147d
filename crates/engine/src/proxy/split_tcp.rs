//! A proxy that splits TCP connections (RFC 3135 §3.1.1). It answers each SYN from the address of
//! the destination, opens a second connection to the destination from the address of the client,
//! and forwards the bytes between the two connections. Both hosts see each other's addresses, so
//! the split is transparent to them.
//!
//! Each of the two connections has separate settings, windows and loss recovery. The proxy
//! acknowledges data before the other host has received it. A connection that fails may therefore
//! lose acknowledged data, as RFC 3135 §4.1 warns.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use anabranch_scenario::addresses::IpVersion;
use anabranch_scenario::checker::Checker;
use anabranch_scenario::transport::Transport as Written;
use anabranch_scenario::world::Proxy as WrittenProxy;
use anabranch_sim::{Agent, Rng};
use anabranch_tcp::{Config, Connection, Event, Ports, State};
use anabranch_transport::{Ecn, Nanos, Path, Transmit, Transport as _};
use anabranch_wire::tcp::{Flags, HEADER};
use bytes::{Bytes, BytesMut};

use super::{BoxedProxy, Proxy, ProxyEntry};
use crate::transport::tcp;

/// Maximum number of concurrent split connections. A SYN beyond the limit is not answered.
const MAX_CONNECTIONS: usize = 65_536;

/// Registry entry of the proxy.
pub static ENTRY: ProxyEntry = ProxyEntry {
    name: "split-tcp",
    build,
};

fn build(c: &mut Checker<'_>, written: &WrittenProxy, path: &str) -> Option<BoxedProxy> {
    let buffer = written.buffer.0;
    let sides = [
        ("downstream", &written.downstream),
        ("upstream", &written.upstream),
    ];
    let configs = sides.map(|(key, transport)| side(c, transport, &format!("{path}.{key}")));
    let [Some(downstream), Some(upstream)] = configs else {
        return None;
    };
    let with_room = |config: Config| config.with(|it| it.send_buffer = it.send_buffer.max(buffer));
    Some(Box::new(SplitTcp {
        sides: [with_room(downstream), with_room(upstream)],
        buffer,
    }))
}

/// Builds the TCP configuration of one side.
fn side(c: &mut Checker<'_>, transport: &Written, path: &str) -> Option<Config> {
    if transport.protocol != tcp::ENTRY.kind.name {
        let message = format!(
            "found {:?}; a proxy that splits TCP speaks tcp",
            transport.protocol
        );
        c.problem(&format!("{path}.protocol"), message);
        return None;
    }
    let config = tcp::config(transport, IpVersion::Ipv4);
    match tcp::check(&config) {
        Ok(()) => Some(config),
        Err(error) => {
            let key = transport.key_of(error.setting());
            c.problem(&format!("{path}.{key}"), error.to_string());
            None
        }
    }
}

/// Proxy of a node, with its settings.
#[derive(Debug)]
struct SplitTcp {
    /// TCP configurations towards the client and towards the server.
    sides: [Config; 2],
    buffer: u64,
}

impl Proxy for SplitTcp {
    fn protocol(&self) -> u8 {
        tcp::PROTOCOL
    }

    fn agent(&self, rng: Rng, checksum: bool) -> Box<dyn Agent> {
        let side = |number: usize| {
            let config = self.sides[number].clone();
            config.with(|it| it.checksum = checksum)
        };
        Box::new(Splitter::new([side(0), side(1)], self.buffer, rng))
    }
}

/// Addresses and ports of the client and of the server.
type Pair = [(IpAddr, u16); 2];

/// Agent that runs the proxy of one node.
struct Splitter {
    sides: [Config; 2],
    buffer: u64,
    rng: Rng,
    relays: BTreeMap<Pair, Relay>,
    /// Split connections that may have something to send.
    ready: BTreeSet<Pair>,
    /// Times of the next timer of each split connection.
    alarms: BTreeSet<(Nanos, Pair)>,
}

impl Splitter {
    fn new(sides: [Config; 2], buffer: u64, rng: Rng) -> Self {
        Self {
            sides,
            buffer,
            rng,
            relays: BTreeMap::new(),
            ready: BTreeSet::new(),
            alarms: BTreeSet::new(),
        }
    }

    /// Finds the split connection of a datagram, and the side at which it arrived. A SYN that
    /// belongs to no split connection creates one.
    fn find(&mut self, path: Path, datagram: &[u8]) -> Option<(Pair, usize)> {
        let &[a, b, c, d, e, f, g, h, ..] = datagram.first_chunk::<HEADER>()?;
        let (from, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let asking = [(path.remote, from), (path.local, to)];
        if self.relays.contains_key(&asking) {
            return Some((asking, 0));
        }
        let [from, to] = asking;
        if self.relays.contains_key(&[to, from]) {
            return Some(([to, from], 1));
        }
        let flags = Flags(datagram[13].into());
        let opens = flags.contains(Flags::SYN) && !flags.contains(Flags::ACK);
        if !opens || self.relays.len() >= MAX_CONNECTIONS {
            return None;
        }
        // The second connection uses the client's initial sequence number, so that a capture shows
        // the same bytes with the same sequence numbers on both sides.
        let isn = u32::from_be_bytes([e, f, g, h]);
        let relay = Relay::new(
            &self.sides,
            self.buffer,
            asking,
            isn,
            self.rng.bits() as u32,
        );
        self.relays.insert(asking, relay);
        Some((asking, 0))
    }

    /// Schedules the next wake-up of a split connection; removes it if it is closed.
    fn settle(&mut self, pair: Pair) {
        let Some(relay) = self.relays.get_mut(&pair) else {
            return;
        };
        let deadline = relay.deadline();
        if deadline != relay.alarm {
            self.alarms.extend(deadline.map(|at| (at, pair)));
            if let Some(at) = relay.alarm {
                self.alarms.remove(&(at, pair));
            }
            relay.alarm = deadline;
        }
        if relay.is_over() {
            self.relays.remove(&pair);
        }
    }
}

impl Agent for Splitter {
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        let Some((pair, side)) = self.find(path, &datagram) else {
            return;
        };
        if let Some(relay) = self.relays.get_mut(&pair) {
            relay.ends[side].handle_datagram(now, path, ecn, datagram);
            relay.pass_on();
            self.ready.insert(pair);
        }
    }

    fn handle_timeout(&mut self, now: Nanos) {
        while let Some(&(at, pair)) = self.alarms.first().filter(|(at, _)| *at <= now) {
            self.alarms.remove(&(at, pair));
            if let Some(relay) = self.relays.get_mut(&pair) {
                relay.alarm = None;
                for end in &mut relay.ends {
                    end.handle_timeout(now);
                }
                relay.pass_on();
                self.ready.insert(pair);
            }
        }
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        while let Some(&pair) = self.ready.first() {
            if let Some(relay) = self.relays.get_mut(&pair) {
                for end in &mut relay.ends {
                    if let Some(transmit) = end.poll_transmit(now, out) {
                        return Some(transmit);
                    }
                }
            }
            self.ready.remove(&pair);
            self.settle(pair);
        }
        None
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.alarms.first().map(|(at, _)| *at)
    }
}

/// A split connection, which consists of two TCP connections.
struct Relay {
    /// TCP connections to the client and to the server.
    ends: [Connection; 2],
    /// Maximum number of buffered bytes per direction, which were read from one connection and are
    /// not acknowledged on the other.
    buffer: u64,
    /// Bytes read from the connection with this index that do not fit into the send buffer of the
    /// other.
    held: [Option<Bytes>; 2],
    /// Whether the peer of the connection with this index has closed it.
    closed: [bool; 2],
    /// Whether the connection with this index was closed because the peer of the other has closed.
    told: [bool; 2],
    alarm: Option<Nanos>,
}

impl Relay {
    fn new(sides: &[Config; 2], buffer: u64, pair: Pair, isn: u32, own: u32) -> Self {
        let [(asking, from), (asked, to)] = pair;
        let [near, far] = sides.clone();
        let ports = Ports {
            local: from,
            remote: to,
        };
        let ends = [
            Connection::listen(near, to, own),
            Connection::connect(far, Path::new(asking, asked), ports, isn),
        ];
        Self {
            ends,
            buffer,
            held: [None, None],
            closed: [false; 2],
            told: [false; 2],
            alarm: None,
        }
    }

    /// Forwards data, the end of data, and the failure of a connection.
    fn pass_on(&mut self) {
        for from in [0, 1] {
            let to = 1 - from;
            while let Some(event) = self.ends[from].poll_event() {
                match event {
                    Event::PeerClosed => self.closed[from] = true,
                    Event::Failed(_) => self.ends[to].abort(),
                    _ => {}
                }
            }
            self.move_bytes(from, to);
            let drained = self.held[from].is_none() && self.ends[from].readable() == 0;
            // A connection that is not established yet would discard its data on close.
            let up = !matches!(self.ends[to].state(), State::Listen | State::SynSent);
            if self.closed[from] && drained && up && !self.told[to] {
                self.told[to] = true;
                self.ends[to].close();
            }
        }
    }

    fn move_bytes(&mut self, from: usize, to: usize) {
        loop {
            let next = self.held[from].take();
            let Some(bytes) = next.or_else(|| self.ends[from].read()) else {
                return;
            };
            let full = self.ends[to].unacknowledged() + bytes.len() as u64 > self.buffer;
            if full && self.ends[to].unacknowledged() > 0 {
                self.held[from] = Some(bytes);
                return;
            }
            if self.ends[to].write(bytes).is_err() {
                // The other connection is closed, so the data can no longer be delivered.
                return;
            }
        }
    }

    fn deadline(&self) -> Option<Nanos> {
        let deadlines = self.ends.iter().filter_map(Connection::poll_timeout);
        deadlines.min()
    }

    fn is_over(&self) -> bool {
        let mut ends = self.ends.iter();
        ends.all(|end| end.state() == State::Closed)
    }
}

#[cfg(test)]
mod tests;
