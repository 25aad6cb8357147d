//! Two endpoints, A and Z, connected by a pipe with delay; every packet is logged as `A -> INIT ->
//! Z`.
#![allow(dead_code)]

pub mod caller;
pub mod moves;
pub mod pair;
pub mod random;
pub mod rig;
pub mod seeds;
pub mod signed;
pub mod wrong;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::ControlFlow;

use anabranch_sctp::{
    AssociationId, AssociationState, CloseReason, Config, Endpoint, Event, ReceivedMessage,
    SendOptions, TransmitOptions, UdpTransmit,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Nanos, Path, Transmit, Transport};
use anabranch_wire::chunk::{Chunk, kind};
use anabranch_wire::packet::{Checksum, CommonHeader, Packet, PacketBuilder};
use anabranch_wire::{Encode, checksum};
use bytes::{Bytes, BytesMut};

pub const A: usize = 0;
pub const Z: usize = 1;
pub const PORT_A: u16 = 5_000;
pub const PORT_Z: u16 = 7;

pub fn address(host: usize, network: u8) -> IpAddr {
    [10, 0, network, 1 + host as u8].into()
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Deliver,
    Drop,
    Duplicate,
    /// A router marks the packet if it is ECN-capable.
    Mark,
    /// The packet is delayed by this time in addition.
    Late(Nanos),
    /// One byte of the packet is changed.
    Corrupt,
}

/// Packet in flight.
#[derive(Clone, Debug)]
pub struct Shot {
    pub at: Nanos,
    pub from: usize,
    pub path: Path,
    pub bytes: Bytes,
    /// Whether IP may fragment the packet.
    pub may_fragment: bool,
    pub ecn: Ecn,
    /// Names of the chunks: `INIT`, `SACK, DATA`, ...
    pub chunks: String,
}

pub struct World {
    pub now: Nanos,
    pub endpoints: [Endpoint; 2],
    pub delay: Nanos,
    pub events: [Vec<(AssociationId, Event)>; 2],
    /// Hosts whose events stay queued in their associations.
    pub leaves_events: [bool; 2],
    pub story: Vec<String>,
    pub shots: Vec<Shot>,
    /// Whether `story` and `shots` are recorded.
    pub narrate: bool,
    /// Number of packets whose checksum an endpoint has deferred, so that [`World::drain`] computed
    /// it. All packets are then delivered as parts of larger buffers. `None`: checksums are not
    /// deferred.
    pub unsummed: Option<u32>,
    pub fate: Box<dyn FnMut(&Shot) -> Fate>,
    in_flight: BTreeMap<(Nanos, u64), (usize, Path, Ecn, Bytes)>,
    sequence: u64,
    out: BytesMut,
}

impl World {
    /// World of two hosts with `config`, one address each, 10 ms apart. Z listens.
    pub fn new(config: Config) -> Self {
        Self::with_configs(config.clone(), config)
    }

    pub fn with_configs(mut a: Config, mut z: Config) -> Self {
        if a.addresses.is_empty() {
            a.addresses = vec![address(A, 0)];
        }
        if z.addresses.is_empty() {
            z.addresses = vec![address(Z, 0)];
        }
        let mut world = Self {
            now: SECOND,
            endpoints: [
                Endpoint::new(a, PORT_A, [1; 32]).expect("settings"),
                Endpoint::new(z, PORT_Z, [2; 32]).expect("settings"),
            ],
            delay: 10 * MILLISECOND,
            events: [Vec::new(), Vec::new()],
            leaves_events: [false; 2],
            story: Vec::new(),
            shots: Vec::new(),
            narrate: true,
            unsummed: None,
            fate: Box::new(|_| Fate::Deliver),
            in_flight: BTreeMap::new(),
            sequence: 0,
            out: BytesMut::new(),
        };
        world.endpoints[Z].listen(true);
        world
    }

    /// Starts an association from A to Z.
    pub fn connect(&mut self) -> AssociationId {
        let id = self.endpoints[A]
            .connect(self.now, &[address(Z, 0)], PORT_Z)
            .expect("no association yet");
        self.drain(A);
        id
    }

    /// Establishes an association from A to Z; returns both ends.
    pub fn established(&mut self) -> (AssociationId, AssociationId) {
        let a = self.connect();
        self.run_for(SECOND);
        let z = self.only_association(Z);
        assert_eq!(
            self.state(A, a),
            AssociationState::Established,
            "{:#?}",
            self.story
        );
        assert_eq!(
            self.state(Z, z),
            AssociationState::Established,
            "{:#?}",
            self.story
        );
        self.forget();
        (a, z)
    }

    /// Clears the log.
    pub fn forget(&mut self) {
        self.story.clear();
        self.shots.clear();
        self.events = [Vec::new(), Vec::new()];
    }

    pub fn only_association(&self, host: usize) -> AssociationId {
        let all: Vec<_> = self.endpoints[host].associations().collect();
        assert_eq!(all.len(), 1, "associations of {}: {all:?}", name(host));
        all[0]
    }

    pub fn state(&self, host: usize, id: AssociationId) -> AssociationState {
        self.endpoints[host].association(id).expect("known").state()
    }

    pub fn close_reason(&self, host: usize, id: AssociationId) -> Option<CloseReason> {
        self.endpoints[host]
            .association(id)
            .expect("known")
            .close_reason()
            .cloned()
    }

    pub fn send(&mut self, host: usize, id: AssociationId, stream: u16, payload: impl Into<Bytes>) {
        let message = payload.into();
        let association = self.endpoints[host].association_mut(id).expect("known");
        association
            .send(self.now, message, &SendOptions::on(stream))
            .expect("accepted");
        self.drain(host);
    }

    pub fn shutdown(&mut self, host: usize, id: AssociationId) {
        let now = self.now;
        self.endpoints[host]
            .association_mut(id)
            .expect("known")
            .shutdown(now, None)
            .expect("open");
        self.drain(host);
    }

    pub fn receive_all(&mut self, host: usize, id: AssociationId) -> Vec<ReceivedMessage> {
        let association = self.endpoints[host].association_mut(id).expect("known");
        let messages = std::iter::from_fn(|| association.poll_message()).collect();
        self.drain(host);
        messages
    }

    /// Sends the packets of `host`, and collects its events. Events are polled after each call,
    /// because only a limited number is queued.
    pub fn drain(&mut self, host: usize) {
        if let Some(unsummed) = &mut self.unsummed {
            let mut packets = Vec::new();
            let deferred = TransmitOptions::default().with_deferred_checksums(true);
            let take = |outgoing: UdpTransmit, out: &mut BytesMut| {
                assert_eq!(out.len(), outgoing.transmit.len);
                if outgoing.unsummed {
                    assert!(checksum::is_zero(out));
                    checksum::fill(out);
                    *unsummed += 1;
                }
                packets.push((out.split().freeze(), outgoing.transmit));
                ControlFlow::Continue(())
            };
            self.endpoints[host].poll_transmit_batch(self.now, deferred, &mut self.out, take);
            for (bytes, transmit) in packets {
                self.put_as(host, bytes, transmit);
            }
            return self.hear(host);
        }
        while let Some(transmit) = self.endpoints[host].poll_transmit(self.now, &mut self.out) {
            let bytes = self.out.split().freeze();
            assert_eq!(bytes.len(), transmit.len);
            self.put_as(host, bytes, transmit);
            self.hear(host);
        }
        self.hear(host);
    }

    /// Collects the events of `host`.
    pub fn hear(&mut self, host: usize) {
        while !self.leaves_events[host]
            && let Some(event) = self.endpoints[host].poll_event()
        {
            self.events[host].push(event);
        }
    }

    /// Sends a packet with `from` as its sender.
    pub fn put(&mut self, from: usize, path: Path, bytes: Bytes) {
        let transmit = Transmit {
            path,
            len: bytes.len(),
            ecn: Ecn::NotEct,
            may_fragment: false,
        };
        self.put_as(from, bytes, transmit);
    }

    fn put_as(&mut self, from: usize, bytes: Bytes, transmit: Transmit) {
        let chunks = if self.narrate {
            describe(&bytes)
        } else {
            String::new()
        };
        let shot = Shot {
            at: self.now,
            from,
            path: transmit.path,
            bytes,
            may_fragment: transmit.may_fragment,
            ecn: transmit.ecn,
            chunks,
        };
        let fate = (self.fate)(&shot);
        if self.narrate {
            let lost = if fate == Fate::Drop { " (lost)" } else { "" };
            self.story.push(format!(
                "{} -> {} -> {}{lost}",
                name(from),
                shot.chunks,
                name(1 - from)
            ));
            self.shots.push(shot.clone());
        }
        let ecn = if fate == Fate::Mark {
            shot.ecn.marked()
        } else {
            shot.ecn
        };
        let back = shot.path.reversed();
        let arrive = |world: &mut Self, extra: Nanos, bytes: Bytes| {
            world.sequence += 1;
            let at = world.now + world.delay + extra;
            world
                .in_flight
                .insert((at, world.sequence), (1 - from, back, ecn, bytes));
        };
        match fate {
            Fate::Drop => {}
            Fate::Deliver | Fate::Mark => arrive(self, 0, shot.bytes),
            Fate::Late(extra) => arrive(self, extra, shot.bytes),
            Fate::Duplicate => {
                arrive(self, 0, shot.bytes.clone());
                arrive(self, 0, shot.bytes);
            }
            Fate::Corrupt => {
                let mut bytes = shot.bytes.to_vec();
                let index = self.sequence as usize % bytes.len();
                bytes[index] ^= 0x10;
                arrive(self, 0, bytes.into());
            }
        }
    }

    /// Number of packets that were sent and not lost so far.
    pub fn packets(&self) -> u64 {
        self.sequence
    }

    /// Delivers `bytes` to `host` immediately, over the path between the first addresses.
    pub fn inject(&mut self, host: usize, bytes: Bytes) {
        let path = Path::new(address(host, 0), address(1 - host, 0));
        self.inject_from(host, path, bytes);
    }

    pub fn inject_from(&mut self, host: usize, path: Path, bytes: Bytes) {
        if self.narrate {
            self.story
                .push(format!("? -> {} -> {}", describe(&bytes), name(host)));
        }
        self.endpoints[host].handle_datagram(self.now, path, Ecn::NotEct, bytes);
        self.drain(host);
    }

    /// Runs the next arrival or timer, if its time is at most `until`.
    pub fn step(&mut self, until: Nanos) -> bool {
        let arrival = self.in_flight.keys().next().copied();
        let timeouts = [A, Z].map(|host| self.endpoints[host].poll_timeout());
        let timeout = timeouts.into_iter().flatten().min();
        let next = match (arrival, timeout) {
            (Some((arrival, _)), Some(timeout)) => arrival.min(timeout),
            (Some((arrival, _)), None) => arrival,
            (None, Some(timeout)) => timeout,
            (None, None) => return false,
        };
        if next > until {
            return false;
        }
        self.now = self.now.max(next);
        if let Some((at, sequence)) = arrival
            && at <= next
        {
            let (host, path, ecn, bytes) =
                self.in_flight.remove(&(at, sequence)).expect("just seen");
            self.arrive(host, path, ecn, bytes);
            self.drain(host);
            return true;
        }
        for host in [A, Z] {
            if timeouts[host].is_some_and(|at| at <= next) {
                self.endpoints[host].handle_timeout(self.now);
                self.drain(host);
                self.check_moves(host);
            }
        }
        true
    }

    fn check_moves(&mut self, host: usize) {
        if let Some(before) = moves::due_again(&self.endpoints[host], self.now) {
            self.endpoints[host].handle_timeout(self.now);
            self.drain(host);
            moves::check(&self.endpoints[host], self.now, &before);
        }
    }

    fn arrive(&mut self, host: usize, path: Path, ecn: Ecn, bytes: Bytes) {
        let endpoint = &mut self.endpoints[host];
        if self.unsummed.is_none() {
            return endpoint.handle_datagram(self.now, path, ecn, bytes);
        }
        let (before, behind) = ([0xa5; 37], [0x5a; 11]);
        let block = Bytes::from([&before, &bytes[..], &behind].concat());
        let range = before.len()..before.len() + bytes.len();
        endpoint.handle_udp_datagram(self.now, path, 0, ecn, (&block, range));
    }

    pub fn run_until(&mut self, until: Nanos) {
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    pub fn run_for(&mut self, span: Nanos) {
        self.run_until(self.now + span);
    }

    /// Events of `host`, without their associations.
    pub fn told(&self, host: usize) -> Vec<Event> {
        self.events[host]
            .iter()
            .map(|(_, event)| event.clone())
            .collect()
    }

    /// Returns and clears the log of packets.
    pub fn take_story(&mut self) -> Vec<String> {
        std::mem::take(&mut self.story)
    }

    /// First packet of `from` whose chunks are `chunks`.
    pub fn shot(&self, from: usize, chunks: &str) -> Bytes {
        let found = self
            .shots
            .iter()
            .find(|shot| shot.from == from && shot.chunks == chunks);
        found
            .unwrap_or_else(|| panic!("no {chunks} from {} in {:#?}", name(from), self.story))
            .bytes
            .clone()
    }

    /// Tag in the last packet that `from` sent to its peer.
    pub fn tag_sent_by(&self, from: usize) -> u32 {
        let shot = self
            .shots
            .iter()
            .rev()
            .find(|shot| shot.from == from)
            .expect("sent something");
        header_of(&shot.bytes).verification_tag
    }
}

/// Next packet of the endpoint, with its UDP port.
pub fn poll_one(endpoint: &mut Endpoint, now: Nanos, out: &mut BytesMut) -> Option<UdpTransmit> {
    let mut first = None;
    endpoint.poll_transmit_batch(now, TransmitOptions::default(), out, |outgoing, _| {
        first = Some(outgoing);
        ControlFlow::Break(())
    });
    first
}

pub fn name(host: usize) -> &'static str {
    ["A", "Z"][host]
}

pub fn header_of(bytes: &Bytes) -> CommonHeader {
    Packet::parse(bytes, Checksum::Ignore)
        .expect("a packet")
        .header
}

pub fn chunks_of(bytes: &Bytes) -> Vec<Chunk> {
    let packet = Packet::parse(bytes, Checksum::Ignore).expect("a packet");
    packet
        .chunks()
        .map(|raw| Chunk::decode(raw.expect("framed")).expect("sound"))
        .collect()
}

/// Packet from `host` to the other host with these chunks.
pub fn packet(host: usize, verification_tag: u32, chunks: &[&Chunk]) -> Bytes {
    let ports = [PORT_A, PORT_Z];
    let header = CommonHeader {
        source_port: ports[host],
        destination_port: ports[1 - host],
        verification_tag,
    };
    let mut out = BytesMut::new();
    let mut builder = PacketBuilder::new(&mut out, header, 65_000);
    for chunk in chunks {
        builder.push(*chunk).expect("room");
    }
    builder.finish(true);
    out.freeze()
}

/// Packet of raw chunk bytes with a correct checksum.
pub fn raw_packet(host: usize, verification_tag: u32, chunks: &[u8]) -> Bytes {
    let ports = [PORT_A, PORT_Z];
    let mut out = BytesMut::new();
    out.extend_from_slice(&ports[host].to_be_bytes());
    out.extend_from_slice(&ports[1 - host].to_be_bytes());
    out.extend_from_slice(&verification_tag.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(chunks);
    anabranch_wire::checksum::fill(&mut out);
    out.freeze()
}

/// Copy of a packet with another verification tag.
pub fn retag(bytes: &Bytes, verification_tag: u32) -> Bytes {
    let mut out = bytes.to_vec();
    out[4..8].copy_from_slice(&verification_tag.to_be_bytes());
    anabranch_wire::checksum::fill(&mut out);
    out.into()
}

pub fn encoded_len(chunk: &Chunk) -> usize {
    chunk.encoded_len()
}

pub fn describe(bytes: &Bytes) -> String {
    let Ok(packet) = Packet::parse(bytes, Checksum::Ignore) else {
        return "garbage".into();
    };
    let names: Vec<_> = packet
        .chunks()
        .map(|raw| raw.map_or("broken".into(), |raw| kind_name(raw.kind)))
        .collect();
    names.join(", ")
}

fn kind_name(of: u8) -> String {
    let name = match of {
        kind::DATA => "DATA",
        kind::INIT => "INIT",
        kind::INIT_ACK => "INIT ACK",
        kind::SACK => "SACK",
        kind::HEARTBEAT => "HEARTBEAT",
        kind::HEARTBEAT_ACK => "HEARTBEAT ACK",
        kind::ABORT => "ABORT",
        kind::SHUTDOWN => "SHUTDOWN",
        kind::SHUTDOWN_ACK => "SHUTDOWN ACK",
        kind::ERROR => "ERROR",
        kind::COOKIE_ECHO => "COOKIE ECHO",
        kind::COOKIE_ACK => "COOKIE ACK",
        kind::ECNE => "ECNE",
        kind::CWR => "CWR",
        kind::SHUTDOWN_COMPLETE => "SHUTDOWN COMPLETE",
        kind::PAD => "PAD",
        kind::FORWARD_TSN => "FORWARD TSN",
        kind::RE_CONFIG => "RE-CONFIG",
        kind::AUTH => "AUTH",
        other => return format!("type {other}"),
    };
    name.into()
}

/// Drops the first `count` packets whose list of chunks starts with `chunks`.
pub fn lose(chunks: &'static str, count: usize) -> Box<dyn FnMut(&Shot) -> Fate> {
    let mut left = count;
    Box::new(move |shot| {
        if left > 0 && shot.chunks.split(", ").next() == Some(chunks) {
            left -= 1;
            return Fate::Drop;
        }
        Fate::Deliver
    })
}

/// World in which A is in `state`, and the tag of packets to A.
pub fn in_state(state: AssociationState) -> (World, u32) {
    let mut world = World::new(Config::default());
    match state {
        AssociationState::CookieWait => world.fate = lose("INIT", 99),
        AssociationState::CookieEchoed => world.fate = lose("COOKIE ECHO", 99),
        _ => {}
    }
    let a = world.connect();
    world.run_for(100 * MILLISECOND);
    let tag = match chunks_of(&world.shot(A, "INIT")).remove(0) {
        Chunk::Init(init) => init.initiate_tag,
        other => panic!("{other:?}"),
    };
    match state {
        AssociationState::ShutdownPending => {
            world.fate = Box::new(|_| Fate::Drop);
            world.send(A, a, 0, "unanswered");
            world.shutdown(A, a);
        }
        AssociationState::ShutdownSent => {
            world.fate = Box::new(|_| Fate::Drop);
            world.shutdown(A, a);
        }
        AssociationState::ShutdownReceived | AssociationState::ShutdownAckSent => {
            let z = world.only_association(Z);
            if state == AssociationState::ShutdownReceived {
                world.fate = lose("DATA", 99);
                world.send(A, a, 0, "unanswered");
            } else {
                world.fate = lose("SHUTDOWN ACK", 99);
            }
            world.shutdown(Z, z);
            world.run_for(100 * MILLISECOND);
        }
        _ => {}
    }
    assert_eq!(world.state(A, a), state);
    world.narrate = false;
    (world, tag)
}

/// All states in which the association has a TCB.
pub const STATES: [AssociationState; 7] = [
    AssociationState::CookieWait,
    AssociationState::CookieEchoed,
    AssociationState::Established,
    AssociationState::ShutdownPending,
    AssociationState::ShutdownSent,
    AssociationState::ShutdownReceived,
    AssociationState::ShutdownAckSent,
];
