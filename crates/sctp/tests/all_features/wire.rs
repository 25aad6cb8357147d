//! Network between two hosts. The network loses, delays, duplicates and corrupts packets, its MTU
//! changes, and its NAT loses mappings. Routers and attackers send ICMP messages, and the hosts'
//! clocks may jump.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anabranch_sctp::{AssociationId, Endpoint, Event, Icmp, UdpTransmit, work_counter};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use anabranch_wire::checksum;
use anabranch_wire::chunk::kind;
use anabranch_wire::packet::{COMMON_HEADER, Chunks};
use bytes::{Bytes, BytesMut};

use super::Random;
use crate::common::{A, Z, moves, poll_one};

/// Lengths in bytes of the headers around a packet: IPv4, and UDP.
const IP: usize = 20;
const UDP: usize = 8;
/// UDP port of host Z, and first UDP port that the NAT assigns to host A.
pub const REGISTERED: u16 = 9_899;
const FIRST_PORT: u16 = 40_000;
/// Maximum number of steps per byte and per call, as in the fuzz cases of arbitrary bytes.
const STEPS_PER_BYTE: u64 = 4;
const STEPS_PER_CALL: u64 = 100;
/// Maximum number of packets that a call may cause.
const MAX_PACKETS: usize = 1_000;

/// Arrival at a host.
enum Load {
    Packet(Path, u16, Ecn, Bytes),
    /// ICMP type, code, MTU, and quoted bytes.
    Icmp(u8, u8, u32, Vec<u8>),
}

/// Current impairments of the network.
#[derive(Clone, Copy, Default)]
pub struct Weather {
    /// Percentages of packets that are lost, late, duplicated, corrupted, or marked.
    pub lost: u64,
    pub late: u64,
    pub repeated: u64,
    pub bent: u64,
    pub marked: u64,
    /// Percentage of SACKs with a reduced window.
    pub shrunk: u64,
    /// Number of packets per thousand for which a forged ICMP message is sent.
    pub lies: u64,
    /// Whether routers report packets that are too large.
    pub tells: bool,
}

pub struct Wire {
    /// Current time, and offset of each host's clock.
    pub now: Nanos,
    pub ahead: [Nanos; 2],
    pub endpoints: [Endpoint; 2],
    pub events: [Vec<(AssociationId, Event)>; 2],
    pub weather: Weather,
    /// MTU in bytes of packets from each host.
    pub mtu: [usize; 2],
    /// UDP port of host A as assigned by the NAT; `None` without UDP encapsulation.
    pub nat: Option<u16>,
    /// Whether packets without a checksum may be in flight.
    pub unsummed: bool,
    /// Maximum number of duplicated chunks.
    pub repeats: u64,
    random: Random,
    in_flight: BTreeMap<(Nanos, u64), (usize, Load)>,
    sequence: u64,
    out: BytesMut,
    allowed: u64,
    taken: u64,
}

impl Wire {
    pub fn new(endpoints: [Endpoint; 2], random: Random, nat: bool) -> Self {
        work_counter::take();
        Self {
            now: SECOND,
            ahead: [0; 2],
            endpoints,
            events: [Vec::new(), Vec::new()],
            weather: Weather::default(),
            mtu: [usize::MAX; 2],
            nat: nat.then_some(FIRST_PORT),
            unsummed: false,
            repeats: 0,
            random,
            in_flight: BTreeMap::new(),
            sequence: 0,
            out: BytesMut::new(),
            allowed: 10_000,
            taken: 0,
        }
    }

    /// Time on the clock of `host`.
    pub fn time(&self, host: usize) -> Nanos {
        self.now + self.ahead[host]
    }

    /// Sends all packets of `host`, and collects its events.
    pub fn drain(&mut self, host: usize) {
        let mut packets = 0;
        loop {
            let now = self.time(host);
            let outgoing = poll_one(&mut self.endpoints[host], now, &mut self.out);
            while let Some(event) = self.endpoints[host].poll_event() {
                self.events[host].push(event);
            }
            let Some(outgoing) = outgoing else { break };
            let bytes = self.out.split().freeze();
            self.allowed += STEPS_PER_BYTE * bytes.len() as u64;
            self.put(host, &outgoing, bytes);
            packets += 1;
            assert!(packets < MAX_PACKETS, "host {host} never falls silent");
        }
        self.taken += work_counter::take();
        let Self { taken, allowed, .. } = self;
        assert!(taken <= allowed, "{taken} steps of {allowed}");
    }

    fn put(&mut self, from: usize, outgoing: &UdpTransmit, bytes: Bytes) {
        let (transmit, weather) = (outgoing.transmit, self.weather);
        let headers = if self.nat.is_some() { IP + UDP } else { IP };
        self.lie(from, transmit.path, &bytes);
        if bytes.len() + headers > self.mtu[from] && !transmit.may_fragment {
            if weather.tells {
                let mtu = self.mtu[from] as u32;
                self.answer(from, (3, 4, mtu), self.quote(from, transmit.path, &bytes));
            }
            return;
        }
        // Host Z still sends to the UDP port whose mapping the NAT has lost.
        if from == Z && self.nat.is_some_and(|port| port != outgoing.udp_port) {
            return;
        }
        let mut bytes = bytes;
        if self.random.below(100) < weather.shrunk {
            bytes = shrunk(bytes, &mut self.random);
        }
        let roll = self.random.below(100);
        let bounds = [
            weather.lost,
            weather.late,
            weather.repeated,
            weather.bent,
            weather.marked,
        ];
        let fate = bounds.iter().scan(0, |sum, it| {
            *sum += it;
            Some(*sum)
        });
        let fate = fate.take_while(|&bound| bound <= roll).count();
        let ecn = if fate == 4 {
            transmit.ecn.marked()
        } else {
            transmit.ecn
        };
        let (mut late, mut times) = (0, 1);
        match fate {
            0 => times = 0,
            1 => late = (1 + self.random.below(400)) * MILLISECOND,
            2 => times = 2,
            3 => bytes = self.bent(bytes),
            _ => {}
        }
        if fate == 2 {
            self.repeats += chunks(&bytes).count() as u64;
        }
        let port = if from == A {
            self.nat.unwrap_or(0)
        } else {
            REGISTERED
        };
        let port = if self.nat.is_some() { port } else { 0 };
        for _ in 0..times {
            let load = Load::Packet(transmit.path.reversed(), port, ecn, bytes.clone());
            self.send_on(1 - from, 10 * MILLISECOND + late, load);
        }
    }

    fn send_on(&mut self, to: usize, after: Nanos, load: Load) {
        self.sequence += 1;
        self.in_flight
            .insert((self.now + after, self.sequence), (to, load));
    }

    /// Flips bits in one byte of a packet. If the packet has no checksum, its data stays intact,
    /// because the damage could not be detected; the packet gets a checksum, of which one bit may
    /// be flipped.
    fn bent(&mut self, bytes: Bytes) -> Bytes {
        let mut bent = bytes.to_vec();
        if self.unsummed && checksum::is_zero(&bytes) {
            checksum::fill(&mut bent);
            // A packet with a wrong checksum must be discarded, even if checksums may be omitted
            // (RFC 9653 §5.3).
            bent[8] ^= self.random.below(2) as u8;
        } else {
            let at = self.random.below(bent.len() as u64) as usize;
            bent[at] ^= 1 + self.random.below(255) as u8;
        }
        bent.into()
    }

    /// Packet of `host` as quoted in an ICMP message.
    fn quote(&self, host: usize, path: Path, bytes: &Bytes) -> Vec<u8> {
        let IpAddr::V4(remote) = path.remote else {
            panic!("{path:?}")
        };
        let mut quoted = vec![0; IP];
        quoted[0] = 0x45;
        quoted[9] = if self.nat.is_some() { 17 } else { 132 };
        quoted[16..20].copy_from_slice(&remote.octets());
        if let Some(port) = self.nat {
            let ports = [[REGISTERED, port], [port, REGISTERED]][1 - host];
            quoted.extend(ports.map(u16::to_be_bytes).concat());
            quoted.extend([0; 4]);
        }
        quoted.extend_from_slice(bytes);
        quoted.truncate(IP + UDP + 64);
        quoted
    }

    /// Sends a forged ICMP message: an off-path attacker reports that a packet did not arrive, or
    /// an on-path attacker reports a small MTU or a broken path.
    fn lie(&mut self, from: usize, path: Path, bytes: &Bytes) {
        if self.random.below(1_000) >= self.weather.lies {
            return;
        }
        let mut quoted = self.quote(from, path, bytes);
        let seen = self.random.once_in(3);
        if !seen {
            let tag = quoted.len().min(IP + 4) + usize::from(self.nat.is_some()) * UDP;
            quoted[tag] ^= 0x5A;
        }
        let what = match (seen, self.random.below(3)) {
            (true, 0) => (3, 4, [68, 300, 576, 1_280][self.random.below(4) as usize]),
            (true, _) => (3, [0, 1, 5][self.random.below(3) as usize], 0),
            (false, 0) => (3, 2, 0),
            (false, 1) => (3, 3, 0),
            (false, _) => (3, 4, 68),
        };
        self.answer(from, what, quoted);
    }

    fn answer(&mut self, to: usize, (kind, code, mtu): (u8, u8, u32), quoted: Vec<u8>) {
        let load = Load::Icmp(kind, code, mtu, quoted);
        self.send_on(to, 5 * MILLISECOND, load);
    }

    /// Runs the next arrival or timer, if its time is at most `until`.
    fn step(&mut self, until: Nanos) -> bool {
        let arrival = self.in_flight.keys().next().copied();
        let due = [A, Z].map(|host| {
            let due = self.endpoints[host].poll_timeout();
            due.map(|at| at.saturating_sub(self.ahead[host]))
        });
        let arrives = arrival.map(|(at, _)| at);
        let Some(next) = due.into_iter().flatten().chain(arrives).min() else {
            return false;
        };
        if next > until {
            return false;
        }
        self.now = self.now.max(next);
        if let Some(key) = arrival.filter(|(at, _)| *at <= next) {
            let (host, load) = self.in_flight.remove(&key).expect("just seen");
            self.arrive(host, load);
            self.drain(host);
            return true;
        }
        for host in [A, Z] {
            if due[host].is_some_and(|at| at <= self.now) {
                self.run_timers(host);
            }
        }
        true
    }

    fn arrive(&mut self, host: usize, load: Load) {
        let now = self.time(host);
        self.allowed += STEPS_PER_CALL;
        match load {
            Load::Packet(path, port, ecn, bytes) => {
                self.allowed += STEPS_PER_BYTE * bytes.len() as u64;
                self.endpoints[host].handle_udp_datagram(
                    now,
                    path,
                    port,
                    ecn,
                    (&bytes, 0..bytes.len()),
                );
            }
            Load::Icmp(kind, code, mtu, quoted) => {
                let icmp = Icmp {
                    v6: false,
                    kind,
                    code,
                    mtu,
                    quoted: &quoted,
                };
                self.endpoints[host].handle_icmp(now, &icmp);
            }
        }
    }

    /// Runs the timers of `host`, and checks that they are no longer due.
    fn run_timers(&mut self, host: usize) {
        let now = self.time(host);
        let mut before: Option<String> = None;
        for turn in 0.. {
            self.allowed += STEPS_PER_CALL;
            self.endpoints[host].handle_timeout(now);
            self.drain(host);
            let due = self.endpoints[host].poll_timeout();
            if due.is_none_or(|at| at > now) {
                break;
            }
            if let Some(before) = &before {
                moves::check(&self.endpoints[host], now, before);
            }
            before = moves::due_again(&self.endpoints[host], now);
            assert!(turn < 2, "host {host} is due at {due:?}, and it is {now}");
        }
    }

    pub fn run_for(&mut self, span: Nanos) {
        let until = self.now + span;
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    /// Moves the clock of `host` ahead.
    pub fn jump(&mut self, host: usize, span: Nanos) {
        self.ahead[host] += span;
    }

    /// Lets the NAT select another port for host A.
    pub fn rebind(&mut self) {
        self.nat = self.nat.map(|port| port + 1);
    }
}

/// Chunk types of a packet, and their offsets.
fn chunks(bytes: &Bytes) -> impl Iterator<Item = (u8, usize)> {
    let whole = bytes.slice(COMMON_HEADER.min(bytes.len())..);
    let mut at = COMMON_HEADER;
    let found: Vec<_> = Chunks::bare(&whole)
        .map_while(Result::ok)
        .map(|raw| {
            let place = (raw.kind, at);
            at += (4 + raw.value().len()).next_multiple_of(4);
            place
        })
        .collect();
    found.into_iter()
}

/// Reduces the windows in the SACKs of a packet. Packets with AUTH or without a checksum are
/// unchanged.
fn shrunk(bytes: Bytes, random: &mut Random) -> Bytes {
    let places: Vec<_> = chunks(&bytes).collect();
    let signed = places.iter().any(|(it, _)| *it == kind::AUTH);
    if signed || checksum::is_zero(&bytes) {
        return bytes;
    }
    let mut other = bytes.to_vec();
    for (_, at) in places.into_iter().filter(|(it, _)| *it == kind::SACK) {
        let window = &mut other[at + 8..at + 12];
        let said = u32::from_be_bytes(window.try_into().expect("four"));
        let less = said / (1 + random.below(40) as u32);
        window.copy_from_slice(&less.to_be_bytes());
    }
    checksum::fill(&mut other);
    other.into()
}
