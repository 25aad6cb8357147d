//! Compares the profile `sack1` with traces of Sack1 in ns-2.35, on the same path with the same
//! losses.
//!
//! The files `ns2/*.txt` list the forward packets that were dropped (counted from the SYN, 0), the
//! send times of the packets in ns-2 (1 is the first data segment), and the values of its `cwnd_`.
//! The order of the packets must be the same, and their times almost equal.

use crate::common;

use anabranch_tcp::Profile;
use anabranch_transport::time::{SECOND, from_seconds, seconds};
use anabranch_transport::{Nanos, Probe};
use common::{Fate, geo};

/// Time of the first tick edge of ns-2 with its default seed (`boot_time_` of the first agent),
/// nanoseconds.
const CLOCK_PHASE: Nanos = 54_000_000;
/// Relative tolerance of times. Packets of ns-2 are some bytes shorter, because its SYN has no
/// options and its acknowledgements no padding.
const TOLERANCE: f64 = 0.002;

struct Trace {
    drops: Vec<u64>,
    seconds: u64,
    profile: Profile,
    sends: Vec<(f64, u64)>,
    windows: Vec<(f64, f64)>,
}

fn parse(text: &str) -> Trace {
    let mut trace = Trace {
        drops: Vec::new(),
        seconds: 0,
        profile: Profile::sack1(),
        sends: Vec::new(),
        windows: Vec::new(),
    };
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["drop", drops @ ..] => {
                trace.drops = drops.iter().map(|drop| drop.parse().unwrap()).collect()
            }
            ["seconds", seconds] => trace.seconds = seconds.parse().unwrap(),
            [at, "send", number] => trace
                .sends
                .push((at.parse().unwrap(), number.parse().unwrap())),
            [at, "cwnd", value] => trace
                .windows
                .push((at.parse().unwrap(), value.parse().unwrap())),
            [switch, value] => trace.profile.set(switch, value).unwrap(),
            _ => panic!("{line}"),
        }
    }
    trace
}

fn check(name: &str, text: &str) {
    let trace = parse(text);
    let mut world = geo(trace.profile, CLOCK_PHASE);
    world.keep_sent = false;
    let drops = trace.drops.clone();
    world.fate = Box::new(move |end, number, _| {
        if end == 0 && drops.contains(&number) {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    world.run_until(trace.seconds * SECOND);

    let ours: Vec<(f64, u64)> = world.samples[0]
        .iter()
        .filter(|sample| matches!(sample.probe, Probe::Sent | Probe::Retransmitted))
        .map(|sample| (seconds(sample.at), sample.value as u64 + 1))
        .collect();
    let theirs: Vec<(f64, u64)> = trace
        .sends
        .iter()
        .copied()
        .filter(|(_, number)| *number > 0)
        .collect();
    for (index, (our, their)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(
            our.1, their.1,
            "{name}: send {index}, ours at {}, ns-2's at {}",
            our.0, their.0
        );
        assert!(
            (our.0 - their.0).abs() < TOLERANCE * (1.0 + their.0 / 10.0),
            "{name}: send {index} of {}: {our:?} {their:?}",
            our.1
        );
    }
    assert!(
        ours.len().abs_diff(theirs.len()) <= 1,
        "{name}: {} sends, ns-2 {}",
        ours.len(),
        theirs.len()
    );

    let ours: Vec<f64> = world
        .probe(0, Probe::Cwnd)
        .iter()
        .map(|(_, value)| value / 1448.0)
        .collect();
    // If the window has several values at one time, the last one counts. The first value, from
    // before the handshake, is skipped.
    let moments = trace.windows.chunk_by(|a, b| a.0 == b.0).skip(1);
    let theirs: Vec<f64> = moments
        .filter_map(|moment| moment.last())
        .map(|(_, value)| *value)
        .collect();
    for (index, (our, their)) in ours.iter().zip(&theirs).enumerate() {
        assert!(
            (our - their).abs() < 0.0006,
            "{name}: cwnd {index}: {our}, ns-2 {their}"
        );
    }
    assert!(
        ours.len().abs_diff(theirs.len()) <= 1,
        "{name}: {} windows, ns-2 {}",
        ours.len(),
        theirs.len()
    );
    assert!(!theirs.is_empty() && from_seconds(trace.windows[0].0) == 0);
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
    burst
    delayed_ack
    double_adjacent
    double_apart
    first_data
    half_window
    in_recovery_again
    limited_precise
    limited_single
    limited_small_window
    many
    no_loss
    random_1
    random_2
    random_3
    random_limited
    retransmission_lost
    retransmission_lost_twice
    second_data
    single
    syn_lost
    syn_lost_twice_then_data
    tail_after_timeout
    timeout_then_holes
}
