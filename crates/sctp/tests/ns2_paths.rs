//! The profile `ns2` over two paths, compared with traces of ns-2.35's SCTP module with the same
//! packets dropped.
//!
//! `ns2/two_paths_*.txt` contain the parameters of the module, the DATA packets dropped on each
//! path, and the time and path of each TSN; `ns2/paths.tcl` and `ns2/paths.awk` generate them. This
//! stack must transmit the same TSNs in the same order, on the same paths and at the same times.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use anabranch_sctp::Config;
use anabranch_sctp::SendOptions;
use anabranch_sctp::path::{PathId, PathState, Paths};
use anabranch_sctp::profile::Profile;
use anabranch_sctp::rx::Receiver;
use anabranch_sctp::tx::{Sender, T3Outcome};
use anabranch_transport::time::{MICROSECOND, MILLISECOND, SECOND, from_seconds, seconds};
use anabranch_transport::{Nanos, Path, Probe, ProbeSet, Trace};
use anabranch_wire::chunk::Chunk;
use anabranch_wire::{Checksum, CommonHeader, Packet, PacketBuilder, Tsn};
use bytes::{Bytes, BytesMut};

/// Tolerance of the times in seconds, because the traces have a resolution of one or ten
/// microseconds.
const TOLERANCE: f64 = 0.000_05;
const MESSAGE: usize = 1_432;
/// Bit rate in bits per second and propagation delay of each path.
const LINKS: [(f64, Nanos); 2] = [(2e6, 50 * MILLISECOND), (1e6, 80 * MILLISECOND)];
/// Round-trip time of each path, which ns-2 measures before it sends data: by a HEARTBEAT of 56
/// bytes (with IP header) and its answer.
const RTT: [Nanos; 2] = [100_448 * MICROSECOND, 160_896 * MICROSECOND];

/// Time, path and TSN of a transmission.
type Sending = (f64, u8, u64);

struct Recorded {
    config: Config,
    /// Dropped packets: the path, and the number of the packet on it.
    drops: BTreeSet<(u8, usize)>,
    sends: Vec<Sending>,
}

fn parse(text: &str) -> Recorded {
    let mut config = Config::new(Profile::ns2()).with(|it| {
        it.mtu = 1_480;
        it.bundling = false;
    });
    let (mut drops, mut sends) = (BTreeSet::new(), Vec::new());
    for line in text.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["drop", path, number] => {
                drops.insert((path.parse().expect(line), number.parse().expect(line)));
            }
            [at, "send", path, tsn] => sends.push((
                at.parse().expect(line),
                path.parse().expect(line),
                tsn.parse().expect(line),
            )),
            ["path_max_retrans", most] => config.path_max_retrans = most.parse().expect(line),
            ["delayed_sack", on] => config.delayed_sack = on.parse().expect(line),
            [switch, value] => config.profile.set(switch, value).expect(line),
            _ => panic!("{line}"),
        }
    }
    Recorded {
        config,
        drops,
        sends,
    }
}

/// One direction of a path.
struct Link {
    rate: f64,
    delay: Nanos,
    free_at: Nanos,
}

impl Link {
    /// Sends an SCTP packet of `packet` bytes, plus an IP header of 20 bytes, at `now`. Returns its
    /// arrival time at the other end.
    fn carry(&mut self, now: Nanos, packet: usize) -> Nanos {
        let transmission = from_seconds((packet + 20) as f64 * 8.0 / self.rate);
        self.free_at = now.max(self.free_at) + transmission;
        self.free_at + self.delay
    }
}

struct World {
    now: Nanos,
    /// Packets in transit by arrival time: whether the packet carries DATA to the receiver
    /// (otherwise a SACK to the sender), its path and its bytes.
    events: BTreeMap<(Nanos, u64), (bool, PathId, Bytes)>,
    sequence: u64,
    links: [[Link; 2]; 2],
    config: Config,
    sender: Sender,
    receiver: Receiver,
    sack_path: PathId,
    paths: Paths,
    trace: Trace,
    sent: [usize; 2],
    drops: BTreeSet<(u8, usize)>,
}

impl World {
    fn new(recorded: &Recorded) -> Self {
        let config = recorded.config.clone();
        let path = |on: u8| {
            let address = |host: u8| IpAddr::from([10, 0, on, host]);
            Path::new(address(1), address(2))
        };
        let mut trace = Trace::new(ProbeSet::NONE.with(Probe::Sent).with(Probe::Retransmitted));
        let mut paths = Paths::new(&config, path(0), PathState::Active);
        paths.add(&config, path(1), PathState::Active);
        for (id, entry) in paths.iter_mut() {
            entry.measure_rtt(0, id, RTT[usize::from(id.0)], &mut trace);
        }
        let mut sender = Sender::new(&config, Tsn(1));
        sender.set_peer(config.receive_buffer, 1);
        let direction = || {
            LINKS.map(|(rate, delay)| Link {
                rate,
                delay,
                free_at: 0,
            })
        };
        Self {
            now: 0,
            events: BTreeMap::new(),
            sequence: 0,
            links: [direction(), direction()],
            receiver: Receiver::new(&config, Tsn(1), 1),
            sack_path: PathId(0),
            config,
            sender,
            paths,
            trace,
            sent: [0; 2],
            drops: recorded.drops.clone(),
        }
    }

    fn put(&mut self, is_data: bool, id: PathId, packet: Bytes) {
        let link = &mut self.links[usize::from(is_data)][usize::from(id.0)];
        let at = link.carry(self.now, packet.len());
        self.sequence += 1;
        self.events
            .insert((at, self.sequence), (is_data, id, packet));
    }

    /// Sends all data of an endless source that may be sent now, and any SACK that is due.
    fn send_all(&mut self) {
        loop {
            while self.sender.unsent_bytes() < 2 * MESSAGE {
                let message = Bytes::from_static(&[0; MESSAGE]);
                self.sender
                    .send(self.now, message, &SendOptions::new())
                    .expect("room");
            }
            let Some(id) = self.sender.wants_to_send(self.now, &self.paths) else {
                break;
            };
            let packet = self.write(|world, packet| {
                let (paths, trace) = (&mut world.paths, &mut world.trace);
                let filled = world.sender.fill(world.now, id, packet, paths, trace);
                assert_eq!(filled, 1, "one chunk");
            });
            let number = &mut self.sent[usize::from(id.0)];
            let lost = self.drops.contains(&(id.0, *number));
            *number += 1;
            // The error model of ns-2 is located before the queue. A dropped packet therefore uses
            // no transmission time.
            if !lost {
                self.put(true, id, packet);
            }
        }
        if self.receiver.sack_due() {
            let packet = self.write(|world, packet| {
                let pushed = world
                    .receiver
                    .push_sack(world.now, packet, &mut world.trace);
                pushed.expect("room");
            });
            self.put(false, self.sack_path, packet);
        }
    }

    fn write(&mut self, fill: impl FnOnce(&mut Self, &mut PacketBuilder<'_>)) -> Bytes {
        let header = CommonHeader {
            source_port: 1,
            destination_port: 2,
            verification_tag: 3,
        };
        let mut out = BytesMut::new();
        let mut packet = PacketBuilder::new(&mut out, header, 1_460);
        fill(self, &mut packet);
        packet.finish(true);
        out.freeze()
    }

    fn arrive(&mut self, id: PathId, packet: &Bytes) {
        match decode(packet) {
            Chunk::Data(data) => {
                self.receiver.handle_data(self.now, data, &mut self.trace);
                self.receiver.on_packet_end(self.now);
                self.sack_path = id;
                while self.receiver.poll_part().is_some() {}
            }
            Chunk::Sack(sack) => {
                self.sender
                    .handle_sack(self.now, &sack, &mut self.paths, &mut self.trace);
            }
            other => panic!("{other:?}"),
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
                    let (_, id, packet) = entry.remove();
                    self.arrive(id, &packet);
                }
                _ => self.time_out(),
            }
            self.send_all();
        }
    }

    fn time_out(&mut self) {
        let now = self.now;
        for id in [PathId(0), PathId(1)] {
            let outcome = self
                .sender
                .handle_t3(now, id, &mut self.paths, &mut self.trace);
            if outcome == (T3Outcome::Marked { count_error: true }) {
                self.paths
                    .record_error(now, id, &self.config, &mut self.trace);
            }
        }
        self.receiver.handle_sack_timer(now);
    }
}

fn decode(packet: &Bytes) -> Chunk {
    let packet = Packet::parse(packet, Checksum::Verify).expect("our own packet");
    let raw = packet.chunks().next().expect("a chunk").expect("whole");
    Chunk::decode(raw).expect("our own chunk")
}

fn check(name: &str, text: &str) {
    let recorded = parse(text);
    let mut world = World::new(&recorded);
    let end = recorded.sends.last().expect("sends").0;
    world.run_until(from_seconds(end) + SECOND / 100_000);
    let ours: Vec<Sending> = world
        .trace
        .drain()
        .map(|sample| (seconds(sample.at), sample.index as u8, sample.value as u64))
        .collect();
    for (index, (our, their)) in ours.iter().zip(&recorded.sends).enumerate() {
        assert!(
            (our.1, our.2) == (their.1, their.2) && (our.0 - their.0).abs() < TOLERANCE,
            "{name}: send {index} is {our:?}, ns-2's {their:?}"
        );
    }
    assert!(ours.len().abs_diff(recorded.sends.len()) <= 1, "{name}");
    let on_second = ours.iter().filter(|sending| sending.1 == 1).count();
    let expected = recorded.sends.iter().any(|sending| sending.1 == 1);
    assert!(
        ours.len() > 300 && (on_second > 0) == expected,
        "{name}: {on_second} on the second path"
    );
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
    two_paths_alternate
    two_paths_failover
    two_paths_failover_same
    two_paths_alternate_heavy
    two_paths_after_timeout_heavy_delayed
    two_paths_both_lossy_delayed
    two_paths_after_timeout
    two_paths_same
}
