//! Tests of two ends that are connected by a pipe: streams should arrive completely, two runs
//! should have equal bytes, and damaged packets should be detected.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use anabranch_quic::{Config, Congestion, Connection, Event};
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use bytes::{Bytes, BytesMut};

const MILLISECOND: Nanos = 1_000_000;
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// Treatment of a packet: it passes, is lost, or is damaged.
#[derive(Clone, Copy)]
enum Fate {
    Passes,
    Lost,
    Damaged,
}

struct Pipe {
    now: Nanos,
    ends: [Connection; 2],
    /// Packets in transit to each end, with their arrival times.
    ways: [VecDeque<(Nanos, Bytes)>; 2],
    fate: fn(u64) -> Fate,
    /// All packets as sent.
    sent: Vec<Bytes>,
    delivered: [u64; 8],
    events: Vec<Event>,
}

impl Pipe {
    fn new(config: &Config, seed: u8, fate: fn(u64) -> Fate) -> Self {
        let path = Path::new(CLIENT, SERVER);
        let client = Connection::connect(0, config, path, [1000, 443], [seed; 32]);
        let mut server = Connection::listen(config, false, 443, [seed + 1; 32]);
        server.set_peer_port(1000);
        Self {
            now: 0,
            ends: [client.expect("a client"), server],
            ways: [VecDeque::new(), VecDeque::new()],
            fate,
            sent: Vec::new(),
            delivered: [0; 8],
            events: Vec::new(),
        }
    }

    /// Sends all packets that may be sent now, and then advances to the next arrival or timer.
    /// Returns `false` if there is none before `end`.
    fn step(&mut self, end: Nanos) -> bool {
        let mut out = BytesMut::new();
        for (from, path) in [
            (0, Path::new(CLIENT, SERVER)),
            (1, Path::new(SERVER, CLIENT)),
        ] {
            while let Some(transmit) = self.ends[from].poll_transmit(self.now, &mut out) {
                assert_eq!((transmit.path, transmit.len), (path, out.len()));
                let packet = out.split().freeze();
                let number = self.sent.len() as u64;
                self.sent.push(packet.clone());
                let mut copy = packet.to_vec();
                match (self.fate)(number) {
                    Fate::Passes => {}
                    Fate::Lost => continue,
                    Fate::Damaged => {
                        let middle = copy.len() / 2;
                        copy[middle] ^= 1;
                    }
                }
                let arrival = self.now + 10 * MILLISECOND;
                self.ways[1 - from].push_back((arrival, copy.into()));
            }
        }
        let arrivals = self
            .ways
            .iter()
            .filter_map(|way| way.front())
            .map(|it| it.0);
        let timers = self.ends.iter().filter_map(Transport::poll_timeout);
        let Some(next) = arrivals.chain(timers).min().filter(|next| *next <= end) else {
            return false;
        };
        self.now = self.now.max(next);
        for (end, path) in [
            (0, Path::new(CLIENT, SERVER)),
            (1, Path::new(SERVER, CLIENT)),
        ] {
            while self.ways[end].front().is_some_and(|it| it.0 <= self.now) {
                let (_, packet) = self.ways[end].pop_front().expect("looked at");
                self.ends[end].handle_datagram(self.now, path, Ecn::Ect0, packet);
            }
            if self.ends[end]
                .poll_timeout()
                .is_some_and(|at| at <= self.now)
            {
                self.ends[end].handle_timeout(self.now);
            }
        }
        while let Some((stream, bytes)) = self.ends[1].read() {
            self.delivered[usize::from(stream)] += bytes;
        }
        for end in &mut self.ends {
            self.events.extend(std::iter::from_fn(|| end.poll_event()));
        }
        true
    }

    /// Transfers the given number of bytes on each stream, closes the connection, and waits for its
    /// end.
    fn carry(&mut self, streams: u16, bytes: u64) {
        while !self.ends[0].is_up() {
            assert!(self.step(20_000 * MILLISECOND), "no handshake");
        }
        let mut left = vec![bytes; usize::from(streams)];
        while left.iter().any(|left| *left > 0) {
            for (stream, left) in (0..).zip(&mut left) {
                *left -= self.ends[0].write_zeros(stream, *left);
            }
            assert!(self.step(600_000 * MILLISECOND), "nothing moves: {left:?}");
        }
        self.ends[0].finish();
        while self.ends[0].unfinished() > 0 {
            assert!(self.step(600_000 * MILLISECOND), "never acknowledged");
        }
        self.ends[0].close(self.now);
        while self.step(660_000 * MILLISECOND) {}
    }
}

/// Configuration with enough streams for every test.
fn several() -> Config {
    Config::default().with(|it| it.streams = 8)
}

fn every_twentieth(number: u64) -> Fate {
    match number % 20 {
        7 => Fate::Lost,
        13 => Fate::Damaged,
        _ => Fate::Passes,
    }
}

#[test]
fn every_stream_arrives_whole_in_spite_of_loss_and_damage() {
    for congestion in [Congestion::Cubic, Congestion::NewReno] {
        let config = several().with(|it| it.congestion = congestion);
        let mut pipe = Pipe::new(&config, 1, every_twentieth);
        pipe.carry(3, 200_000);
        assert_eq!(pipe.delivered[..4], [200_000, 200_000, 200_000, 0]);
        assert!(pipe.ends[0].stats().lost > 0);
        let failed = pipe.events.iter().find(|it| matches!(it, Event::Failed(_)));
        assert_eq!(failed, None);
        assert!(pipe.events.contains(&Event::Closed), "{:?}", pipe.events);
        let longest = pipe.sent.iter().map(Bytes::len).max();
        assert_eq!(longest, Some(1472));
    }
}

#[test]
fn the_same_seed_gives_the_same_packets_byte_by_byte() {
    let run = |seed| {
        let mut pipe = Pipe::new(&several(), seed, every_twentieth);
        pipe.carry(2, 100_000);
        (pipe.sent, pipe.now)
    };
    assert!(run(1) == run(1));
    assert!(run(1).0 != run(3).0, "another seed has other identifiers");
}

#[test]
fn a_handshake_takes_a_round_trip_and_about_the_bytes_of_tls() {
    let mut pipe = Pipe::new(&Config::default(), 1, |_| Fate::Passes);
    while !pipe.ends[0].is_up() {
        assert!(pipe.step(1_000 * MILLISECOND));
    }
    assert_eq!(pipe.now, 20 * MILLISECOND);
    // The first packet of the client should be padded to 1200 bytes (RFC 9000 §14.1). The server's
    // flight of 2.1 kB should use two packets.
    let sizes: Vec<usize> = pipe.sent.iter().map(Bytes::len).collect();
    assert_eq!(sizes[0], 1200);
    assert_eq!(sizes.len(), 3, "{sizes:?}");
    assert!((2_200..2_700).contains(&(sizes[1] + sizes[2])), "{sizes:?}");
}

#[test]
fn a_path_that_carries_nothing_ends_in_a_failure() {
    let mut pipe = Pipe::new(&Config::default(), 1, |number| match number {
        0..20 => Fate::Passes,
        _ => Fate::Lost,
    });
    while !pipe.ends[0].is_up() {
        assert!(pipe.step(1_000 * MILLISECOND));
    }
    pipe.ends[0].write_zeros(0, 100_000);
    while pipe.step(600_000 * MILLISECOND) {}
    assert!(
        matches!(pipe.events.last(), Some(Event::Failed(_))),
        "{:?}",
        pipe.events
    );
}

#[test]
fn nonsense_is_discarded() {
    let mut pipe = Pipe::new(&Config::default(), 1, |_| Fate::Passes);
    let path = Path::new(SERVER, CLIENT);
    for length in [0, 1, 7, 30, 1200, 1472] {
        for byte in [0, 0x40, 0xc0, 0xff] {
            let packet = Bytes::from(vec![byte; length]);
            pipe.ends[1].handle_datagram(0, path, Ecn::NotEct, packet);
        }
    }
    pipe.carry(1, 10_000);
    assert_eq!(pipe.delivered[0], 10_000);
}
