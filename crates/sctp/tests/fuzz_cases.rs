//! Runs fuzz cases of random bytes, and cases that failed in the past. The fuzz target
//! `association` searches for more cases.

mod fuzz_case;
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

/// Lock for running one test at a time, because all tests measure the same heap.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn held() -> usize {
    HEAP.allocated()
}

#[test]
fn random_sequences_end_well() {
    let _turn = turn();
    seeds::each(150, |seed| fuzz_case::run(&script(seed), Some(held)));
}

/// Probes that the simulator counts for each flow; all of these events are rare.
const COUNTED: ProbeSet = ProbeSet::NONE
    .with(Probe::Retransmitted)
    .with(Probe::FastRetransmit)
    .with(Probe::EcnResponse)
    .with(Probe::Timeout)
    .with(Probe::DuplicateAck)
    .with(Probe::Duplicate);

/// Probes for which packets on the fast path would record samples.
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

/// DATA and SACKs use the fast paths only if no frequent probe is recorded. Fast and slow paths
/// must have the same effect, and record the same samples of rare probes. The fast path of SACKs
/// requires a single path between the hosts.
#[test]
fn runs_are_the_same_with_and_without_a_recorder() {
    let _turn = turn();
    seeds::each(60, |seed| {
        let script = match seed % 3 {
            0 => script(seed),
            _ => transfer(seed),
        };
        for homes in [1, 2] {
            let account =
                |probes, compared| fuzz_case::run_recorded(&script, homes, probes, compared);
            let none = ProbeSet::NONE;
            assert_eq!(account(none, none), account(ProbeSet::ALL, none), "{homes}");
            // In every second case one more probe is recorded, a different one each time.
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

/// Seeds of cases that failed in the past.
#[test]
fn earlier_failures_end_well() {
    let _turn = turn();
    // When a second copy of a request arrived, the responder reset all numbers. The response "In
    // progress" to the first copy reached the requester only later. Data sent after the reset was
    // therefore accepted as data from before it, and then accepted again.
    fuzz_case::run(&script(186_373), Some(held));
    // More messages were abandoned at once than events could be queued.
    fuzz_case::run(&script(330_119), Some(held));
    // The data of a tail loss probe was abandoned before the probe was sent. The probe stayed due,
    // so no HEARTBEAT was sent.
    fuzz_case::run(&script(311), Some(held));
}

/// Steps of structured cases: one list for each of three kinds of case. Of four successive seeds,
/// three use one list each, and one generates arbitrary bytes. An entry has the number of a step in
/// `Scenario::act`, its relative frequency, and the number of script bytes that follow it. Lists
/// are needed because arbitrary bytes close, release and restart associations too often to reach
/// deep states.
const KINDS: [&[(u8, usize, usize)]; 3] = [
    // Steps of a transfer with loss, reordering and duplication.
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
    // Steps with a malicious peer.
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
    // Steps of setup and close.
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

/// Case of a seed: arbitrary bytes, or steps of one kind with arbitrary parameters.
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

/// Case of a seed with many packets on the fast path: no extension, no recording, and mostly short
/// messages. In every second case more packets are lost and more data is queued, and in every
/// fourth the buffers are small.
fn transfer(seed: u64) -> Vec<u8> {
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
    let mut draw = |below: u32| (random.next_u32() % below) as u8;
    let (lossy, small) = (seed.is_multiple_of(2), seed % 4 == 1);
    // No attacker, no RSCTP, and no partial delivery point.
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

/// Generates a case in which users rarely read: receive windows close, are probed and open again,
/// under all congestion controls, with and without pacing. Sometimes there is no buffer space for
/// sent data. In every second case many packets are lost, so that some congestion controls send
/// packets seconds apart.
fn away(seed: u64) -> Vec<u8> {
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed ^ 0xA3A7);
    let mut draw = |below: u32| (random.next_u32() % below) as u8;
    // No attacker and no RSCTP; mostly a buffer of 3,000 bytes; no HEARTBEATs in every second case.
    let choice = (draw(0x100) & 0xE3) | 0x08 | if draw(4) > 0 { 0x10 } else { 0 };
    let extremes = if draw(2) == 0 { draw(0x100) & 0x7A } else { 0 };
    // In one case of four the buffers hold only one chunk.
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
    // Every second case uses `bbr`, the third congestion control.
    let how = match draw(2) {
        0 => draw(0x100),
        _ => draw(0x80) & 0xF0 | 2,
    };
    let whether = [3, 4, 3, 4, 3, 4, 5, 6][usize::from(draw(8))];
    bytes.extend([12, 0, 1, how, whether | 0x20]);
    bytes
}

#[test]
fn cases_with_rare_reads_end_well() {
    let _turn = turn();
    seeds::each(300, |seed| fuzz_case::run(&away(seed), Some(held)));
}

/// Runs the stored corpus of the fuzz target.
#[test]
fn cases_of_the_corpus_end_well() {
    let _turn = turn();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/association");
    let mut played = 0;
    for entry in std::fs::read_dir(corpus).expect("the corpus") {
        let path = entry.expect("readable").path();
        println!("{}", path.display());
        fuzz_case::run(&std::fs::read(path).expect("readable"), Some(held));
        played += 1;
    }
    assert!(played >= 10, "{played}");
}

fn endpoint(seed: u64) -> Endpoint {
    let mut endpoint =
        Endpoint::new(Config::default(), 7, fuzz_case::seed_of(seed)).expect("settings");
    endpoint.listen(true);
    endpoint
}

/// Returns the packet that the endpoint sends next.
fn packet_of(endpoint: &mut Endpoint) -> Bytes {
    let mut out = BytesMut::new();
    endpoint.poll_transmit(SECOND, &mut out).expect("a packet");
    out.freeze()
}

/// First TSN of a connecting endpoint with this seed, and of a listening endpoint that receives
/// `init`.
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

/// The seeds of the cases in which TSNs wrap around should cause first TSNs just below the
/// wrap-around. `WRAP=number` searches the seeds below this number for others.
#[test]
fn some_cases_begin_just_below_the_wrap() {
    let _turn = turn();
    let mut caller = endpoint(0);
    let to = [10, 0, 0, 1].into();
    caller.connect(SECOND, &[to], 7).expect("free");
    let init = packet_of(&mut caller);
    let near = |tsn: u32| tsn > u32::MAX - 300;
    let mut found = fuzz_case::WRAP_SEEDS;
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
