//! The fast paths must give the same results as the general code. A scenario runs with all probes
//! enabled, which requires the general code, and without probes, which allows the fast paths. Both
//! runs must be identical to the last byte.

use crate::common::{Fate, World};
use anabranch_tcp::profile::WindowSize;
use anabranch_tcp::{Config, Profile};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Nanos, Probe, ProbeSet};
use bytes::Bytes;

/// A small random generator (SplitMix64), so that a seed gives the same case on every platform.
#[derive(Clone)]
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Draws a configuration, which usually allows the fast paths.
fn config(draw: &mut Draw) -> Config {
    let name = match draw.below(3) {
        0 => Profile::NAMES[draw.below(Profile::NAMES.len() as u64) as usize],
        _ => "sack1",
    };
    let mut profile = Profile::by_name(name).expect("it is named");
    profile.limited_transmit = draw.chance(50);
    profile.timestamps = draw.chance(40);
    profile.delayed_ack = draw.chance(50);
    profile.nagle = draw.chance(50);
    profile.ecn = draw.chance(20);
    profile.accurate_ecn = profile.ecn && draw.chance(50);
    profile.frto = draw.chance(30);
    profile.growth_needs_full_cwnd = draw.chance(30);
    Config::new(profile).with(|it| {
        it.mss = [100, 536, 1448][draw.below(3) as usize];
        it.receive_buffer = WindowSize::Bytes([4_000, 65_535, 300_000][draw.below(3) as usize]);
        it.checksum = draw.chance(50);
        it.pacing = draw.chance(20).then_some(1.25);
    })
}

/// Result of a scenario: packets sent, counters, and the state of both ends after each step.
type Outcome = (Vec<Vec<(Nanos, Bytes)>>, Vec<String>);

fn scenario(seed: u64, probes: ProbeSet) -> Outcome {
    let mut draw = Draw(seed);
    let mut world = World::watched(config(&mut draw), config(&mut draw), probes);
    let weather = [0; 4].map(|_| if draw.chance(50) { draw.below(8) } else { 0 });
    let mut sky = draw.clone();
    world.fate = Box::new(move |_, _, packet| match () {
        () if sky.chance(weather[0]) => Fate::Drop,
        () if sky.chance(weather[1]) => Fate::Late(sky.below(SECOND / 8)),
        () if sky.chance(weather[2]) => Fate::Twice,
        () if sky.chance(weather[3] / 2) => Fate::Flip(sky.below(packet.len() as u64) as usize),
        () if sky.chance(weather[3]) => Fate::Mark,
        () => Fate::Pass,
    });
    // Usually the server is a sink that never sends; otherwise both ends send data.
    let talks = draw.chance(20);
    world.ends[1].set_discard(!talks);
    let endless = draw.chance(50);
    if endless {
        world.ends[0].write_zeros(u64::MAX).expect("it is open");
    }
    world.drain(0);
    let mut stands = Vec::new();
    for turn in 0..600 {
        if !endless && draw.chance(30) {
            let text = vec![turn as u8; 1 + draw.below(4_000) as usize];
            // A write may fail because the buffer is full.
            let _ = world.ends[0].write(text.into());
        }
        if talks && draw.chance(5) {
            let _ = world.ends[1].write_zeros(draw.below(2_000));
        }
        if talks && draw.chance(50) {
            while world.ends[1].read().is_some() {}
        }
        if turn == 550 && draw.chance(50) {
            world.ends[0].close_discarding_unsent();
        }
        [0, 1].into_iter().for_each(|end| world.drain(end));
        if !world.step() {
            break;
        }
        for end in &world.ends {
            let windows = (end.cwnd(), end.ssthresh(), end.flightsize(), end.rto());
            stands.push(format!(
                "{turn}: {:?} {windows:?} {:?} {:?}",
                end.state(),
                end.srtt(),
                end.stats()
            ));
        }
        let due = world
            .ends
            .each_ref()
            .map(anabranch_transport::Transport::poll_timeout);
        stands.push(format!("{} ms: {due:?}", world.now / MILLISECOND));
    }
    (world.sent.to_vec(), stands)
}

#[test]
fn runs_are_the_same_with_and_without_a_recorder() {
    // Recording the pipe disables the fast path of acknowledgements, and recording deliveries
    // disables that of data.
    let some = ProbeSet::NONE.with(Probe::Delivered).with(Probe::Cwnd);
    for seed in 0..120 {
        let (packets, stands) = scenario(seed, ProbeSet::ALL);
        for probes in [ProbeSet::NONE, some] {
            let (short, stood) = scenario(seed, probes);
            for (long, short) in stands.iter().zip(&stood) {
                assert_eq!(long, short, "seed {seed}");
            }
            assert_eq!(stands.len(), stood.len(), "seed {seed}");
            assert!(packets == short, "seed {seed}: other packets");
        }
    }
}
