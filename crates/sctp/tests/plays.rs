//! Plays of random bytes, and those that once ended badly. The fuzz target `association` searches for more.

mod play;
#[path = "common/seeds.rs"]
mod seeds;

use std::sync::{Mutex, MutexGuard, PoisonError};

use anabranch_sctp::{Config, Endpoint};
use anabranch_transport::time::SECOND;
use anabranch_transport::{Ecn, Path, Probe, ProbeSet, Transport};
use anabranch_wire::chunk::Chunk;
use anabranch_wire::packet::{Checksum, Packet};
use bytes::{Bytes, BytesMut};
use cap::Cap;
use rand_core::{RngCore, SeedableRng};

#[global_allocator]
static HEAP: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

/// The plays measure one heap, so the tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn held() -> usize {
    HEAP.allocated()
}

#[test]
fn random_plays_end_well() {
    let _turn = turn();
    seeds::each(150, |seed| play::play(&script(seed), Some(held)));
}

/// What the simulator counts of each flow: all are rare.
const COUNTED: ProbeSet = ProbeSet::NONE
    .with(Probe::Retransmitted)
    .with(Probe::FastRetransmit)
    .with(Probe::MarkAnswered)
    .with(Probe::Timeout)
    .with(Probe::DuplicateAck)
    .with(Probe::Duplicate);

/// Of what common packets leave samples.
const COMMON: [Probe; 10] = [
    Probe::Cwnd,
    Probe::FlightSize,
    Probe::PeerRwnd,
    Probe::AdvertisedRwnd,
    Probe::Rto,
    Probe::Srtt,
    Probe::Sent,
    Probe::CumulativeAck,
    Probe::Received,
    Probe::Delivered,
];

/// Common DATA and SACKs are taken and written by short ways while nobody records what is common, and by the long ones else. Both must do the
/// same, and leave the same samples of what is rare. The short way of a SACK is that of hosts with one path between them.
#[test]
fn plays_are_the_same_whether_or_not_anybody_records() {
    let _turn = turn();
    seeds::each(60, |seed| {
        let script = match seed % 3 {
            0 => script(seed),
            _ => transfer(seed),
        };
        for homes in [1, 2] {
            let account = |probes, compared| play::play_recorded(&script, homes, probes, compared);
            let none = ProbeSet::NONE;
            assert_eq!(account(none, none), account(ProbeSet::ALL, none), "{homes}");
            // In every other play one more is recorded, each in its turn.
            let one = COMMON[(seed / 2) as usize % COMMON.len()];
            let wanted = match seed % 2 {
                0 => COUNTED,
                _ => COUNTED.with(one),
            };
            let short = account(wanted, wanted);
            assert_eq!(short, account(ProbeSet::ALL, wanted), "{homes}, {wanted:?}");
        }
    });
}

/// Seeds that once ended badly.
#[test]
fn plays_that_once_ended_badly_end_well() {
    let _turn = turn();
    // All numbers began anew at the second copy of a request. The answer to the first, "In progress", came behind the second copy, so that
    // data behind the reset was taken for data before it, and then once more.
    play::play(&script(186_373), Some(held));
    // More messages were given up at once than events were kept.
    play::play(&script(330_119), Some(held));
    // What a tail loss probe was to repeat was given up before it went. The probe stayed due, and no HEARTBEAT went.
    play::play(&script(311), Some(held));
}

/// What the plays of the second, third and fourth seed in four are made of, by the numbers of `Play::act`: how often an
/// act comes, and how many bytes it takes. Bytes that know nothing of acts close, release and begin again too often to get
/// far.
const KINDS: [&[(u8, usize, usize)]; 3] = [
    // A transfer through loss, reordering and doubling.
    &[
        (0, 24, 0),
        (6, 4, 1),
        (7, 3, 0),
        (8, 2, 0),
        (10, 1, 1),
        (11, 4, 0),
        (12, 1, 2),
        (13, 10, 3),
        (16, 6, 0),
        (17, 1, 1),
        (24, 1, 2),
        (25, 1, 2),
        (30, 2, 2),
    ],
    // A peer that means harm.
    &[
        (0, 20, 0),
        (7, 1, 0),
        (10, 1, 1),
        (11, 3, 0),
        (12, 1, 2),
        (13, 10, 3),
        (16, 3, 0),
        (24, 1, 2),
        (25, 1, 2),
        (26, 6, 2),
        (27, 6, 7),
        (28, 2, 2),
        (29, 2, 12),
        (30, 1, 2),
        (31, 8, 40),
    ],
    // Beginnings and ends.
    &[
        (0, 24, 0),
        (6, 4, 1),
        (7, 3, 0),
        (8, 2, 0),
        (10, 3, 1),
        (11, 3, 0),
        (12, 3, 2),
        (13, 4, 3),
        (16, 2, 0),
        (17, 3, 1),
        (18, 4, 0),
        (19, 2, 0),
        (20, 3, 0),
        (21, 1, 40),
        (22, 2, 1),
        (23, 1, 4),
        (25, 2, 2),
        (28, 1, 2),
        (30, 2, 2),
    ],
];

/// The play of a seed: any bytes, or acts of one kind with any bytes for the rest.
fn script(seed: u64) -> Vec<u8> {
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
    let len = 200 + (seed as usize * 37) % 3_000;
    let mut bytes = vec![0; len];
    let Some(kind) = (seed as usize % 4).checked_sub(1) else {
        random.fill_bytes(&mut bytes);
        return bytes;
    };
    let acts: Vec<_> = KINDS[kind]
        .iter()
        .flat_map(|&(act, weight, takes)| std::iter::repeat_n((act, takes), weight))
        .collect();
    bytes.truncate(2);
    random.fill_bytes(&mut bytes);
    while bytes.len() < len {
        let (act, takes) = acts[random.next_u32() as usize % acts.len()];
        bytes.push(act | (random.next_u32() as u8 & 0x80));
        let begin = bytes.len();
        bytes.resize(begin + takes, 0);
        random.fill_bytes(&mut bytes[begin..]);
    }
    bytes
}

/// The play of a seed in which many packets are common: no extension, nothing watched, and most messages short. In every other one more is
/// lost and more waits, and in every fourth there is little room.
fn transfer(seed: u64) -> Vec<u8> {
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
    let mut draw = |below: u32| (random.next_u32() % below) as u8;
    let (lossy, small) = (seed.is_multiple_of(2), seed % 4 == 1);
    // Honest and without RSCTP; no partial delivery point.
    let choice = (draw(0x100) & 0xE3) | if small { 0x18 } else { 0x08 };
    let mut bytes = vec![choice, draw(0x100) & 0x06];
    for _ in 0..400 {
        let host = if draw(4) == 0 { 0x80 } else { 0 };
        let act = draw(40);
        let sends = match act {
            0..=10 => 1,
            11 if lossy => 12,
            _ => 0,
        };
        for _ in 0..sends {
            let most = [2, 3, 9, 34][usize::from(draw(4))];
            let stream = draw(4) + 0x80 * (draw(16) / 15);
            bytes.extend([13 | host, stream, draw(most), draw(0x100)]);
        }
        match act {
            0..=11 => {}
            12..=17 => bytes.push(16 | (host ^ 0x80)),
            18 => bytes.extend([6, draw(3)]),
            19 => bytes.push(7 + draw(2)),
            20 => bytes.extend([12, draw(2), draw(0x100)]),
            21 => bytes.push(11),
            22..=23 if lossy => bytes.push(7),
            24 if lossy => bytes.extend([12, draw(12), draw(0x100)]),
            _ => bytes.push(0),
        }
    }
    bytes.extend([0, 0]);
    bytes
}

/// The play of a seed in which users read seldom: windows close, are probed and open again, under all congestion controls, with pacing
/// and without. What is sent finds no room now and then. In every other play much is lost, which slows some controls down until a
/// packet is seconds away from the next one.
fn away(seed: u64) -> Vec<u8> {
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed ^ 0xA3A7);
    let mut draw = |below: u32| (random.next_u32() % below) as u8;
    // Honest and without RSCTP; mostly a buffer of 3,000 bytes; no HEARTBEATs in every other one.
    let choice = (draw(0x100) & 0xE3) | 0x08 | if draw(4) > 0 { 0x10 } else { 0 };
    let extremes = if draw(2) == 0 { draw(0x100) & 0x7A } else { 0 };
    // In one play of four the buffers hold one chunk.
    let mut bytes = vec![choice, extremes | u8::from(draw(4) == 0)];
    let often = 1 + draw(8);
    let lossy = seed.is_multiple_of(2);
    for _ in 0..120 {
        for _ in 0..draw(3) {
            let most = [1, 6, 6, 32][usize::from(draw(4))];
            bytes.extend([13, draw(4), draw(most), draw(0x100)]);
        }
        for _ in 0..draw(8) {
            bytes.push(if lossy && draw(3) == 0 { 7 } else { 0 });
        }
        match draw(12) {
            0 => bytes.push(7),
            1..=5 => bytes.extend([12, draw(4 * u32::from(often)), draw(0x100)]),
            6..=7 => bytes.extend([12, draw(40), draw(0x100)]),
            8..=9 => bytes.push(0x80 | 16),
            10 => bytes.extend([0x80 | 13, draw(4), draw(3), draw(0x100)]),
            _ => bytes.push(16),
        }
    }
    // Every other one with `bbr`, the third of the controls.
    let how = match draw(2) {
        0 => draw(0x100),
        _ => draw(0x80) & 0xF0 | 2,
    };
    let whether = [3, 4, 3, 4, 3, 4, 5, 6][usize::from(draw(8))];
    bytes.extend([12, 0, 1, how, whether | 0x20]);
    bytes
}

#[test]
fn plays_of_users_who_read_seldom_end_well() {
    let _turn = turn();
    seeds::each(300, |seed| play::play(&away(seed), Some(held)));
}

/// The seeds of the fuzz target.
#[test]
fn plays_of_the_corpus_end_well() {
    let _turn = turn();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/association");
    let mut played = 0;
    for entry in std::fs::read_dir(corpus).expect("the corpus") {
        let path = entry.expect("readable").path();
        println!("{}", path.display());
        play::play(&std::fs::read(path).expect("readable"), Some(held));
        played += 1;
    }
    assert!(played >= 10, "{played}");
}

fn endpoint(seed: u64) -> Endpoint {
    let mut endpoint = Endpoint::new(Config::default(), 7, play::seed_of(seed)).expect("settings");
    endpoint.listen(true);
    endpoint
}

/// The first packet of the endpoint.
fn packet_of(endpoint: &mut Endpoint) -> Bytes {
    let mut out = BytesMut::new();
    endpoint.poll_transmit(SECOND, &mut out).expect("a packet");
    out.freeze()
}

/// The first TSN of an endpoint with that seed that calls, and of one that is called with `init`.
fn first_tsns(seed: u64, init: &Bytes) -> [u32; 2] {
    let path = Path::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let mut caller = endpoint(seed);
    caller.connect(SECOND, &[path.remote], 7).expect("free");
    let mut called = endpoint(seed);
    called.handle_datagram(SECOND, path, Ecn::NotEct, init.clone());
    [caller, called].map(|mut endpoint| {
        let bytes = packet_of(&mut endpoint);
        let packet = Packet::parse(&bytes, Checksum::Ignore).expect("a packet");
        let first = packet.chunks().next().expect("one").expect("framed");
        match Chunk::decode(first).expect("sound") {
            Chunk::Init(init) => init.initial_tsn.0,
            Chunk::InitAck(ack) => ack.initial_tsn.0,
            other => panic!("{other:?}"),
        }
    })
}

/// Plays that ask for it have the wrap of the TSNs within reach. `WRAP=number` looks for other seeds, so many at most.
#[test]
fn some_plays_begin_just_below_the_wrap() {
    let _turn = turn();
    let mut caller = endpoint(0);
    let to = [10, 0, 0, 1].into();
    caller.connect(SECOND, &[to], 7).expect("free");
    let init = packet_of(&mut caller);
    let near = |tsn: u32| tsn > u32::MAX - 300;
    let mut found = play::WRAP_SEEDS;
    for seed in 0..seeds::number("WRAP").unwrap_or(0) {
        for (host, tsn) in first_tsns(seed, &init).into_iter().enumerate() {
            if near(tsn) {
                println!("host {host}: {seed}");
                found[host] = seed;
            }
        }
    }
    for host in [0, 1] {
        let tsn = first_tsns(found[host], &init)[host];
        assert!(near(tsn), "host {host}: {tsn}; WRAP=40000000 looks anew");
    }
}
