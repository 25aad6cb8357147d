//! Test network: two ends and the links between them, in memory and with simulated time.
#![allow(dead_code)] // each test file uses only some items

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use anabranch_tcp::profile::WindowSize;
use anabranch_tcp::{Config, Connection, Event, Ports, Profile};
use anabranch_transport::{Ecn, Nanos, Path, Probe, ProbeSet, Sample, Trace, Transport};
use bytes::{Bytes, BytesMut};

pub const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
/// Length of an IPv4 header, bytes.
const IP: usize = 20;

/// Link with a rate in bit/s (0: no serialization delay) and a propagation delay in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub rate: u64,
    pub delay: Nanos,
    pub free_at: Nanos,
}

impl Line {
    pub fn new(rate: u64, delay: Nanos) -> Self {
        Self {
            rate,
            delay,
            free_at: 0,
        }
    }

    /// Returns the arrival time of a packet of `bytes` bytes that is sent at `now`.
    pub fn carry(&mut self, now: Nanos, bytes: usize) -> Nanos {
        let serialise = (bytes as u64 * 8 * 1_000_000_000)
            .checked_div(self.rate)
            .unwrap_or(0);
        self.free_at = now.max(self.free_at) + serialise;
        self.free_at + self.delay
    }
}

/// Treatment of a packet by the test network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Pass,
    Drop,
    /// The packet is delayed by this time, nanoseconds.
    Late(Nanos),
    /// The packet is delayed by this time, and marked if it is ECN-capable.
    LateMarked(Nanos),
    Twice,
    /// The packet is marked if it is ECN-capable.
    Mark,
    /// One bit of the byte at this index (modulo the length) is flipped.
    Flip(usize),
}

/// Function that decides the treatment of a packet, given the end that sends it, its number among
/// the packets of that end, and its bytes.
pub type Weather = Box<dyn FnMut(usize, u64, &[u8]) -> Fate>;

/// Two ends and the network between them. End 0 is the client, and end 1 the server.
pub struct World {
    pub now: Nanos,
    pub ends: [Connection; 2],
    pub samples: [Vec<Sample>; 2],
    pub events: [Vec<Event>; 2],
    /// For each end, the links on the path to the other end.
    pub lines: [Vec<Line>; 2],
    pub fate: Weather,
    /// For each end, the packets sent and their send times.
    pub sent: [Vec<(Nanos, Bytes)>; 2],
    /// For each end, the ECN field of each packet sent.
    pub fields: [Vec<Ecn>; 2],
    pub keep_sent: bool,
    counts: [u64; 2],
    flying: BTreeMap<(Nanos, u64), (usize, Ecn, Bytes)>,
    sequence: u64,
    out: BytesMut,
}

pub fn path_of(end: usize) -> Path {
    if end == 0 {
        Path::new(CLIENT, SERVER)
    } else {
        Path::new(SERVER, CLIENT)
    }
}

impl World {
    pub fn new(client: Config, server: Config) -> Self {
        Self::watched(client, server, ProbeSet::ALL)
    }

    /// Creates a world whose ends record these probes.
    pub fn watched(client: Config, server: Config, probes: ProbeSet) -> Self {
        let ports = Ports {
            local: 40_000,
            remote: 80,
        };
        let mut ends = [
            Connection::connect(client, path_of(0), ports, 0xFFFF_F000),
            Connection::listen(server, 80, 0x7FFF_FFF0),
        ];
        for end in &mut ends {
            *end.trace_mut() = Trace::new(probes);
        }
        Self {
            now: 0,
            ends,
            samples: [Vec::new(), Vec::new()],
            events: [Vec::new(), Vec::new()],
            lines: [
                vec![Line::new(0, 50_000_000)],
                vec![Line::new(0, 50_000_000)],
            ],
            fate: Box::new(|_, _, _| Fate::Pass),
            sent: [Vec::new(), Vec::new()],
            fields: [Vec::new(), Vec::new()],
            keep_sent: true,
            counts: [0; 2],
            flying: BTreeMap::new(),
            sequence: 0,
            out: BytesMut::new(),
        }
    }

    /// Polls an end until it has no more output, and puts the packets on the links. An end that
    /// reports that it is idle must have no output, and polling must not change its state.
    pub fn drain(&mut self, end: usize) {
        let mut polls = 0;
        loop {
            let it = &mut self.ends[end];
            let (at_rest, due) = (it.is_idle(), it.poll_timeout());
            let Some(transmit) = it.poll_transmit(self.now, &mut self.out) else {
                assert!(!at_rest || it.poll_timeout() == due, "a timer has moved");
                break;
            };
            assert!(!at_rest, "at rest, and a packet");
            let packet = self.out.split_to(transmit.len).freeze();
            assert_eq!(transmit.path, path_of(end));
            polls += 1;
            assert!(polls < 10_000, "an end talks without end");
            self.launch(end, transmit.ecn, packet);
        }
        self.samples[end].extend(self.ends[end].trace_mut().drain());
        while let Some(event) = self.ends[end].poll_event() {
            self.events[end].push(event);
        }
    }

    fn launch(&mut self, end: usize, ecn: Ecn, packet: Bytes) {
        if self.keep_sent {
            self.sent[end].push((self.now, packet.clone()));
            self.fields[end].push(ecn);
        }
        let number = self.counts[end];
        self.counts[end] += 1;
        let fate = (self.fate)(end, number, &packet);
        // The first link is the access link; packets are lost after it.
        let mut at = self.now;
        for (index, line) in self.lines[end].iter_mut().enumerate() {
            if index > 0 && fate == Fate::Drop {
                return;
            }
            at = line.carry(at, packet.len() + IP);
        }
        let packet = match fate {
            Fate::Drop => return,
            Fate::Pass | Fate::Mark => packet,
            Fate::Late(by) | Fate::LateMarked(by) => {
                at += by;
                packet
            }
            Fate::Twice => {
                self.fly(at + 1_000, end, ecn, packet.clone());
                packet
            }
            Fate::Flip(place) => {
                let mut bytes = BytesMut::from(&packet[..]);
                let place = place % bytes.len();
                bytes[place] ^= 1 << (place % 8);
                bytes.freeze()
            }
        };
        let ecn = if matches!(fate, Fate::Mark | Fate::LateMarked(_)) {
            ecn.marked()
        } else {
            ecn
        };
        self.fly(at, end, ecn, packet);
    }

    fn fly(&mut self, at: Nanos, end: usize, ecn: Ecn, packet: Bytes) {
        self.flying.insert((at, self.sequence), (end, ecn, packet));
        self.sequence += 1;
    }

    /// Processes the next event. Returns `false` if there is no further event.
    pub fn step(&mut self) -> bool {
        let arrival = self.flying.first_key_value().map(|(key, _)| key.0);
        let timers = [self.ends[0].poll_timeout(), self.ends[1].poll_timeout()];
        let timer = timers.into_iter().flatten().min();
        match (arrival, timer) {
            (None, None) => return false,
            (Some(at), timer) if timer.is_none_or(|timer| at <= timer) => {
                self.now = at;
                let (_, (from, ecn, packet)) = self.flying.pop_first().unwrap();
                let end = 1 - from;
                self.ends[end].handle_datagram(at, path_of(end), ecn, packet);
                self.drain(end);
            }
            (_, Some(at)) => {
                assert!(at >= self.now, "a timer in the past");
                self.now = at;
                for (end, timer) in timers.into_iter().enumerate() {
                    if timer.is_some_and(|timer| timer <= at) {
                        self.ends[end].handle_timeout(at);
                        self.drain(end);
                    }
                }
            }
            _ => unreachable!(),
        }
        true
    }

    /// Processes events up to the time `until`.
    pub fn run_until(&mut self, until: Nanos) {
        self.drain(0);
        self.drain(1);
        loop {
            let arrival = self.flying.first_key_value().map(|(key, _)| key.0);
            let next = [
                arrival,
                self.ends[0].poll_timeout(),
                self.ends[1].poll_timeout(),
            ]
            .into_iter()
            .flatten()
            .min();
            if next.is_none_or(|next| next > until) {
                self.now = until;
                return;
            }
            self.step();
        }
    }

    /// Samples of a probe at one end: time and value.
    pub fn probe(&self, end: usize, probe: Probe) -> Vec<(Nanos, f64)> {
        self.samples[end]
            .iter()
            .filter(|sample| sample.probe == probe)
            .map(|sample| (sample.at, sample.value))
            .collect()
    }
}

/// GEO satellite path of Alamgir, Atiquzzaman and Ivancic (2002) with one TCP source, as in ns-2.
pub fn geo(profile: Profile, clock_phase: Nanos) -> World {
    let config = Config::new(profile).with(|it| {
        it.mss = 1448;
        it.receive_buffer = WindowSize::Segments(45);
        it.clock_phase = clock_phase;
    });
    let mut world = World::new(config.clone(), config);
    let (access, satellite) = (
        Line::new(10_000_000, 2_000_000),
        Line::new(2_000_000, 250_000_000),
    );
    world.lines = [vec![access, satellite], vec![satellite, access]];
    world.ends[0].write_zeros(u64::MAX).unwrap();
    world.ends[1].set_discard(true);
    world
}
