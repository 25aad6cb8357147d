//! Transfers between a sender and a receiver through an in-memory pipe that loses, duplicates and
//! reorders packets, under every profile. Every message should arrive once and in the order of its
//! stream, and in the end no data should be outstanding or buffered. A failure prints its seed.
//! `TRANSFER_SEED=n cargo test -p anabranch-sctp --test transfer` runs only that seed.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use anabranch_sctp::SendOptions;
use anabranch_sctp::config::{Config, SchedulerKind};
use anabranch_sctp::path::{PathId, PathState, Paths};
use anabranch_sctp::profile::Profile;
use anabranch_sctp::rx::{DataOutcome, ReceivedPart, Receiver};
use anabranch_sctp::tx::Sender;
use anabranch_transport::time::MILLISECOND;
use anabranch_transport::{Nanos, Path, Trace};
use anabranch_wire::chunk::Chunk;
use anabranch_wire::{Checksum, CommonHeader, Packet, PacketBuilder, Tsn};
use bytes::{BufMut, Bytes, BytesMut};

/// A small random number generator with the multiplier and increment of PCG.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A pipe that loses, duplicates and delays packets with these probabilities.
struct Pipe {
    random: Random,
    loss: u64,
    duplication: u64,
    reordering: u64,
    delay: Nanos,
}

impl Pipe {
    /// Arrival times of all copies of a packet that is sent now. The list is empty if the packet is
    /// lost.
    fn carry(&mut self, now: Nanos) -> Vec<Nanos> {
        if self.random.chance(self.loss) {
            return Vec::new();
        }
        let copies = 1 + usize::from(self.random.chance(self.duplication));
        (0..copies)
            .map(|_| {
                let jitter = if self.random.chance(self.reordering) {
                    self.random.below(50) * MILLISECOND
                } else {
                    0
                };
                now + self.delay + jitter
            })
            .collect()
    }
}

struct World {
    now: Nanos,
    events: BTreeMap<(Nanos, u64), (bool, Bytes)>,
    sequence: u64,
    pipe: Pipe,
    sender: Sender,
    paths: Paths,
    receiver: Receiver,
    trace: Trace,
    limit: usize,
    packets: u64,
    /// Whether the application reads rarely, so that the window closes.
    slow_reader: bool,
}

const HEADER: CommonHeader = CommonHeader {
    source_port: 1,
    destination_port: 2,
    verification_tag: 3,
};

impl World {
    fn new(config: &Config, seed: u64, initial_tsn: u32) -> Self {
        let address = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        let mut random = Random(seed);
        let pipe = Pipe {
            loss: random.below(25),
            duplication: random.below(10),
            reordering: random.below(30),
            delay: 20 * MILLISECOND,
            random,
        };
        let mut sender = Sender::new(config, Tsn(initial_tsn));
        sender.set_peer(config.receive_buffer, 8);
        Self {
            now: 0,
            events: BTreeMap::new(),
            sequence: 0,
            pipe,
            sender,
            paths: Paths::new(config, Path::new(address(1), address(2)), PathState::Active),
            receiver: Receiver::new(config, Tsn(initial_tsn), 8),
            trace: Trace::default(),
            limit: config.max_packet(address(2)),
            packets: 0,
            slow_reader: seed.is_multiple_of(3),
        }
    }

    fn post(&mut self, to_receiver: bool, packet: Bytes) {
        self.packets += 1;
        for at in self.pipe.carry(self.now) {
            self.sequence += 1;
            self.events
                .insert((at, self.sequence), (to_receiver, packet.clone()));
        }
    }

    fn send_all(&mut self) {
        while let Some(id) = self.sender.wants_to_send(self.now, &self.paths) {
            let mut out = BytesMut::new();
            let mut packet = PacketBuilder::new(&mut out, HEADER, self.limit);
            let added =
                self.sender
                    .fill(self.now, id, &mut packet, &mut self.paths, &mut self.trace);
            assert!(added > 0, "it wanted to send");
            packet.finish(true);
            self.post(true, out.freeze());
        }
        if self.receiver.sack_due() {
            let mut out = BytesMut::new();
            let mut packet = PacketBuilder::new(&mut out, HEADER, self.limit);
            self.receiver
                .push_sack(self.now, &mut packet, &mut self.trace)
                .expect("an empty packet has room");
            packet.finish(true);
            self.post(false, out.freeze());
        }
    }

    fn deliver(&mut self, to_receiver: bool, bytes: Bytes) {
        let packet = Packet::parse(&bytes, Checksum::Verify).expect("our own packet");
        for raw in packet.chunks() {
            match Chunk::decode(raw.expect("a whole chunk")).expect("our own chunk") {
                Chunk::Data(data) if to_receiver => {
                    let outcome = self.receiver.handle_data(self.now, data, &mut self.trace);
                    assert!(
                        matches!(
                            outcome,
                            DataOutcome::NewData
                                | DataOutcome::Duplicate
                                | DataOutcome::DroppedFull
                        ),
                        "{outcome:?}"
                    );
                }
                Chunk::Sack(sack) if !to_receiver => {
                    let outcome =
                        self.sender
                            .handle_sack(self.now, &sack, &mut self.paths, &mut self.trace);
                    assert!(!outcome.protocol_violation);
                }
                other => panic!("unexpected {other:?}"),
            }
        }
        if to_receiver {
            self.receiver.on_packet_end(self.now);
        }
    }

    /// Advances the time to the next event or timer and handles it. Returns `false` if there is
    /// none.
    fn step(&mut self) -> bool {
        let arrival = self.events.keys().next().map(|key| key.0);
        let timers = [
            self.sender.next_deadline(&self.paths),
            self.receiver.sack_deadline(),
            arrival,
        ];
        let Some(next) = timers.into_iter().flatten().min() else {
            return false;
        };
        self.now = next.max(self.now);
        while let Some(entry) = self
            .events
            .first_entry()
            .filter(|entry| entry.key().0 <= self.now)
        {
            let (to_receiver, bytes) = entry.remove();
            self.deliver(to_receiver, bytes);
        }
        self.sender
            .handle_t3(self.now, PathId(0), &mut self.paths, &mut self.trace);
        self.receiver.handle_sack_timer(self.now);
        true
    }
}

/// Payload of message `number` of `stream`. It contains both numbers, so that no two messages are
/// equal.
fn payload(stream: u16, number: u32, length: usize) -> Bytes {
    let mut bytes = BytesMut::with_capacity(length + 6);
    bytes.put_u16(stream);
    bytes.put_u32(number);
    bytes.extend((0..length).map(|index| (index as u32 + number) as u8));
    bytes.freeze()
}

/// How the application reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// As complete messages, all of which fit into the buffer.
    Messages,
    /// As complete messages, some of which are many times larger than the buffer.
    Assembled,
    /// In parts, with messages of the same sizes as for `Assembled`.
    Parts,
}

/// Received messages: ordered ones by stream, and unordered ones.
#[derive(Default)]
struct Seen {
    ordered: BTreeMap<u16, Vec<Bytes>>,
    unordered: Vec<Bytes>,
    /// Received beginning of the message that is being delivered in parts, by stream.
    begun: BTreeMap<u16, BytesMut>,
}

impl Seen {
    fn message(&mut self, stream: u16, unordered: bool, bytes: Bytes) {
        if unordered {
            self.unordered.push(bytes);
        } else {
            self.ordered.entry(stream).or_default().push(bytes);
        }
    }

    /// Adds a part to the message that has begun on its stream, or begins a new message.
    fn part(&mut self, part: ReceivedPart) {
        let begun = self.begun.remove(&part.stream);
        assert_eq!(part.begins, begun.is_none(), "one message at a time");
        let mut bytes = begun.unwrap_or_default();
        let parts = part.payload.parts().iter();
        parts.for_each(|it| bytes.extend_from_slice(it));
        if part.ends {
            self.message(part.stream, part.unordered, bytes.freeze());
        } else {
            self.begun.insert(part.stream, bytes);
        }
    }

    fn read(&mut self, receiver: &mut Receiver, reading: Reading) {
        if reading == Reading::Parts {
            while let Some(part) = receiver.poll_part() {
                self.part(part);
            }
            return;
        }
        while let Some(message) = receiver.poll_message().expect("short") {
            let (stream, unordered) = (message.stream, message.unordered);
            self.message(stream, unordered, message.payload.into_bytes());
        }
    }
}

fn run(profile: Profile, seed: u64, reading: Reading) {
    let mut random = Random(seed ^ 0xABCD);
    let config = Config::new(profile).with(|it| {
        it.receive_buffer = [8_000, 20_000, 65_536][random.below(3) as usize];
        it.delayed_sack = random.chance(50);
        it.bundling = random.chance(80);
        it.pack_messages = random.chance(50);
        it.scheduler = SchedulerKind::ALL[random.below(SchedulerKind::ALL.len() as u64) as usize];
        it.send_buffer = 1 << 30;
        it.partial_delivery_point = match reading {
            Reading::Messages => None,
            _ => [None, Some(1), Some(6_000)][random.below(3) as usize],
        };
    });
    let initial_tsn = u32::MAX - random.below(300) as u32;
    let mut world = World::new(&config, seed, initial_tsn);
    // ns-2.35 does not fragment messages, and its receiver never accepts more data than its buffer
    // holds.
    let longest = match reading {
        _ if config.profile.name == "ns2" => 1_400,
        Reading::Messages => 5_000,
        _ => 60_000,
    };
    let messages = if reading == Reading::Messages {
        400
    } else {
        60
    };
    let mut expected: BTreeMap<u16, Vec<Bytes>> = BTreeMap::new();
    let mut unordered = Vec::new();
    for number in 0..messages {
        let stream = random.below(8) as u16;
        let message = payload(stream, number, 1 + random.below(longest) as usize);
        let out_of_order = random.chance(10);
        if out_of_order {
            unordered.push(message.clone());
        } else {
            expected.entry(stream).or_default().push(message.clone());
        }
        let options = SendOptions::on(stream)
            .with_ppid(number)
            .with_unordered(out_of_order);
        let sent = world.sender.send(world.now, message, &options);
        sent.expect("room");
    }
    let mut seen = Seen::default();
    let mut steps = 0;
    loop {
        if !world.slow_reader || steps % 7 == 0 || world.events.is_empty() {
            seen.read(&mut world.receiver, reading);
        }
        world.send_all();
        steps += 1;
        assert!(steps < 1_000_000, "it never ends");
        if world.sender.is_drained() && world.events.is_empty() {
            break;
        }
        assert!(world.step(), "everything waits and nothing will happen");
    }
    seen.read(&mut world.receiver, reading);
    assert_eq!(
        seen.ordered, expected,
        "each stream in its order, each message once"
    );
    unordered.sort();
    seen.unordered.sort();
    assert_eq!(seen.unordered, unordered, "each unordered message once");
    let path = world.paths.get(PathId(0));
    assert_eq!(
        (
            path.flightsize(),
            path.marked_bytes(),
            world.paths.next_t3()
        ),
        (0, 0, None)
    );
    assert!(world.receiver.is_empty());
    assert!(world.packets > messages as u64 / 15);
}

/// Prints the seed if the program panics while this value exists.
struct Seed(&'static str, u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "profile {}: replay with TRANSFER_SEED={} cargo test -p anabranch-sctp --test transfer",
                self.0, self.1
            );
        }
    }
}

fn under(name: &'static str, reading: Reading) {
    let chosen = std::env::var("TRANSFER_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let most = if reading == Reading::Messages { 40 } else { 15 };
    let seeds = chosen.map_or(1..=most, |seed: u64| seed..=seed);
    for seed in seeds {
        let guard = Seed(name, seed);
        run(Profile::by_name(name).expect("a profile"), seed, reading);
        drop(guard);
    }
}

#[test]
fn everything_arrives_once_and_in_order_under_rfc9260() {
    under("rfc9260", Reading::Messages);
}

#[test]
fn everything_arrives_once_and_in_order_under_rfc4960() {
    under("rfc4960", Reading::Messages);
}

#[test]
fn everything_arrives_once_and_in_order_under_rfc2960() {
    under("rfc2960", Reading::Messages);
}

#[test]
fn everything_arrives_once_and_in_order_under_ns2() {
    under("ns2", Reading::Messages);
}

#[test]
fn messages_larger_than_the_buffer_arrive_whole() {
    under("rfc9260", Reading::Assembled);
    under("rfc2960", Reading::Assembled);
}

#[test]
fn messages_larger_than_the_buffer_arrive_in_parts() {
    under("rfc9260", Reading::Parts);
    under("rfc4960", Reading::Parts);
}
