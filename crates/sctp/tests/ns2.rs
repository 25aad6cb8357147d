//! The profile `ns2` compared with traces of ns-2.35's SCTP module on the same path with the same
//! packets dropped.
//!
//! `ns2/*.txt` contain the parameters of the module, the dropped DATA packets (counted from 0 in
//! sending order), the time of each TSN (0 is the first), and the changes of cwnd; times count from
//! the first DATA. The path is a link of 10 Mb/s and 2 ms, followed by one of the given rate and
//! 250 ms. Transmissions and changes of cwnd must be the same, in the same order and at the same
//! times.
//!
//! `two_streams` ends at 59.9 s. At that time DATA arrives exactly when the timer of a delayed SACK
//! expires, because a SACK delayed by 200 ms has triggered both. This stack processes the arrival
//! first. In ns-2.35 the order varies, because its clock is a floating-point number.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use anabranch_sctp::Config;
use anabranch_sctp::SendOptions;
use anabranch_sctp::path::{PathId, PathState, Paths};
use anabranch_sctp::profile::Profile;
use anabranch_sctp::rx::Receiver;
use anabranch_sctp::tx::Sender;
use anabranch_transport::time::{MILLISECOND, SECOND, from_seconds, seconds};
use anabranch_transport::{Nanos, Path, Probe, ProbeSet, Trace};
use anabranch_wire::chunk::Chunk;
use anabranch_wire::{Checksum, CommonHeader, Packet, PacketBuilder, Tsn};
use bytes::{Bytes, BytesMut};

/// Tolerance in seconds; the traces have a resolution of one or ten microseconds.
const TOLERANCE: f64 = 0.000_05;
const MESSAGE: usize = 1432;

struct Recorded {
    config: Config,
    rate: f64,
    rtt: Nanos,
    streams: u16,
    drops: Vec<usize>,
    sends: Vec<(f64, u64)>,
    windows: Vec<(f64, u64)>,
}

fn parse(text: &str) -> Recorded {
    let mut config = Config::new(Profile::ns2()).with(|it| {
        it.mtu = 1480;
        it.bundling = false;
    });
    let (mut rate, mut rtt, mut streams, mut drops) = (0.0, 0, 1, Vec::new());
    let (mut sends, mut windows) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["drop", numbers @ ..] => {
                drops = numbers.iter().map(|word| word.parse().unwrap()).collect();
            }
            ["megabit", word] => rate = word.parse::<f64>().unwrap() * 1e6,
            ["rtt", word] => rtt = from_seconds(word.parse().unwrap()),
            ["streams", word] => streams = word.parse().unwrap(),
            ["rwnd", word] => config.receive_buffer = word.parse().unwrap(),
            ["delayed_sack", word] => config.delayed_sack = word.parse().unwrap(),
            [at, "send", number] => sends.push((at.parse().unwrap(), number.parse().unwrap())),
            [at, "cwnd", value] => windows.push((at.parse().unwrap(), value.parse().unwrap())),
            [switch, value] => config.profile.set(switch, value).unwrap(),
            _ => panic!("{line}"),
        }
    }
    Recorded {
        config,
        rate,
        rtt,
        streams,
        drops,
        sends,
        windows,
    }
}

/// Link with transmission and propagation delay.
struct Link {
    rate: f64,
    delay: Nanos,
    free_at: Nanos,
}

impl Link {
    fn new(rate: f64, delay: Nanos) -> Self {
        Self {
            rate,
            delay,
            free_at: 0,
        }
    }

    /// Sends an SCTP packet of `packet` bytes, plus an IP header of 20 bytes, at `now`. Returns its
    /// arrival time at the other end.
    fn carry(&mut self, now: Nanos, packet: usize) -> Nanos {
        let transmission = from_seconds((packet + 20) as f64 * 8.0 / self.rate);
        self.free_at = now.max(self.free_at) + transmission;
        self.free_at + self.delay
    }
}

#[derive(Debug)]
enum Arrival {
    Router(Bytes, bool),
    Receiver(Bytes),
    Sender(Bytes),
}

struct World {
    now: Nanos,
    events: BTreeMap<(Nanos, u64), Arrival>,
    sequence: u64,
    access: [Link; 2],
    satellite: [Link; 2],
    sender: Sender,
    receiver: Receiver,
    paths: Paths,
    trace: Trace,
    data_packets: usize,
    drops: Vec<usize>,
    limit: usize,
    streams: u16,
    messages: u64,
}

impl World {
    fn new(recorded: &Recorded) -> Self {
        let config = &recorded.config;
        let address = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        let path = Path::new(address(1), address(2));
        let mut paths = Paths::new(config, path, PathState::Active);
        let mut trace = Trace::new(
            ProbeSet::NONE
                .with(Probe::Sent)
                .with(Probe::Retransmitted)
                .with(Probe::Cwnd),
        );
        // Accounts for the HEARTBEAT that confirmed the path.
        paths
            .get_mut(PathId(0))
            .measure_rtt(0, PathId(0), recorded.rtt, &mut trace);
        let mut sender = Sender::new(config, Tsn(1));
        sender.set_peer(config.receive_buffer, recorded.streams);
        let access = || Link::new(10e6, 2 * MILLISECOND);
        let satellite = || Link::new(recorded.rate, 250 * MILLISECOND);
        Self {
            now: 0,
            events: BTreeMap::new(),
            sequence: 0,
            access: [access(), access()],
            satellite: [satellite(), satellite()],
            sender,
            receiver: Receiver::new(config, Tsn(1), recorded.streams),
            limit: config.max_packet(address(2)),
            paths,
            trace,
            data_packets: 0,
            drops: recorded.drops.clone(),
            streams: recorded.streams,
            messages: 0,
        }
    }

    fn at(&mut self, when: Nanos, arrival: Arrival) {
        self.sequence += 1;
        self.events.insert((when, self.sequence), arrival);
    }

    /// Sends data from an endless source, and SACKs that are due.
    fn send_all(&mut self) {
        loop {
            while self.sender.unsent_bytes() < 2 * MESSAGE {
                let payload = Bytes::from_static(&[0; MESSAGE]);
                let message = payload;
                let stream = (self.messages % u64::from(self.streams)) as u16;
                self.sender
                    .send(self.now, message, &SendOptions::on(stream))
                    .expect("room");
                self.messages += 1;
            }
            let Some(id) = self.sender.wants_to_send(self.now, &self.paths) else {
                break;
            };
            let packet = self.write(|world, packet| {
                let (paths, trace) = (&mut world.paths, &mut world.trace);
                assert_eq!(
                    world.sender.fill(world.now, id, packet, paths, trace),
                    1,
                    "one chunk"
                );
            });
            let dropped = self.drops.contains(&self.data_packets);
            self.data_packets += 1;
            let when = self.access[0].carry(self.now, packet.len());
            self.at(when, Arrival::Router(packet, dropped));
        }
        if self.receiver.sack_due() {
            let packet = self.write(|world, packet| {
                world
                    .receiver
                    .push_sack(world.now, packet, &mut world.trace)
                    .expect("room");
            });
            let when = self.satellite[1].carry(self.now, packet.len());
            self.at(when, Arrival::Router(packet, false));
        }
    }

    fn write(&mut self, fill: impl FnOnce(&mut Self, &mut PacketBuilder<'_>)) -> Bytes {
        let header = CommonHeader {
            source_port: 1,
            destination_port: 2,
            verification_tag: 3,
        };
        let mut out = BytesMut::new();
        let mut packet = PacketBuilder::new(&mut out, header, self.limit);
        fill(self, &mut packet);
        packet.finish(true);
        out.freeze()
    }

    fn arrive(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Router(_, true) => {}
            Arrival::Router(packet, false) => match decode(&packet) {
                Chunk::Data(_) => {
                    let when = self.satellite[0].carry(self.now, packet.len());
                    self.at(when, Arrival::Receiver(packet));
                }
                _ => {
                    let when = self.access[1].carry(self.now, packet.len());
                    self.at(when, Arrival::Sender(packet));
                }
            },
            Arrival::Receiver(packet) => {
                let Chunk::Data(data) = decode(&packet) else {
                    panic!("not DATA")
                };
                self.receiver.handle_data(self.now, data, &mut self.trace);
                self.receiver.on_packet_end(self.now);
                while self.receiver.poll_part().is_some() {}
            }
            Arrival::Sender(packet) => {
                let Chunk::Sack(sack) = decode(&packet) else {
                    panic!("not a SACK")
                };
                self.sender
                    .handle_sack(self.now, &sack, &mut self.paths, &mut self.trace);
            }
        }
    }

    fn run_until(&mut self, end: Nanos) {
        self.send_all();
        loop {
            let timers = [
                self.sender.next_deadline(&self.paths),
                self.receiver.sack_deadline(),
                self.events.keys().next().map(|key| key.0),
            ];
            let Some(next) = timers.into_iter().flatten().min().filter(|at| *at <= end) else {
                return;
            };
            self.now = next;
            match self.events.first_entry() {
                Some(entry) if entry.key().0 == next => {
                    let arrival = entry.remove();
                    self.arrive(arrival);
                }
                _ => {
                    self.sender
                        .handle_t3(next, PathId(0), &mut self.paths, &mut self.trace);
                    self.receiver.handle_sack_timer(next);
                }
            }
            self.send_all();
        }
    }
}

fn decode(packet: &Bytes) -> Chunk {
    let packet = Packet::parse(packet, Checksum::Verify).expect("our own packet");
    let raw = packet
        .chunks()
        .next()
        .expect("a chunk")
        .expect("a whole one");
    Chunk::decode(raw).expect("our own chunk")
}

fn compare(name: &str, what: &str, ours: &[(f64, u64)], theirs: &[(f64, u64)]) {
    for (index, (our, their)) in ours.iter().zip(theirs).enumerate() {
        assert!(
            our.1 == their.1 && (our.0 - their.0).abs() < TOLERANCE,
            "{name}: {what} {index} is {our:?}, ns-2's {their:?}"
        );
    }
    let lengths = (ours.len(), theirs.len());
    assert!(
        lengths.0.abs_diff(lengths.1) <= 1,
        "{name}: {what}: {lengths:?} of them"
    );
}

fn check(name: &str, text: &str) {
    let recorded = parse(text);
    let mut world = World::new(&recorded);
    let end = recorded.sends.last().expect("sends").0;
    world.run_until(from_seconds(end) + SECOND / 100_000);
    let (mut sends, mut windows) = (Vec::new(), Vec::new());
    for sample in world.trace.drain() {
        let entry = (seconds(sample.at), sample.value as u64);
        match sample.probe {
            Probe::Cwnd => windows.push(entry),
            _ => sends.push(entry),
        }
    }
    compare(name, "send", &sends, &recorded.sends);
    compare(name, "cwnd", &windows, &recorded.windows);
    assert!(sends.len() > 300 && windows.len() > 30);
}

macro_rules! traces {
    ($($name:ident)+) => {
        $(#[test]
        fn $name() {
            check(stringify!($name), include_str!(concat!("ns2/", stringify!($name), ".txt")));
        })+
    };
}

traces! {
    delayed
    delayed_heavy
    fifteen_percent
    four_streams
    heavier
    heavy
    light
    light_trigger_3
    no_loss
    overflow
    small_window
    small_window_delayed
    small_window_delayed_heavy
    small_window_long
    two_streams
}
