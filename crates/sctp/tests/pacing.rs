//! Tests of pacing, which spreads DATA over the round-trip time.

use crate::common;

use anabranch_sctp::{Config, Profile};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};
use common::*;

/// Times at which A sends DATA when it transfers 40 messages of 1400 bytes over a pipe with a delay
/// of 50 ms.
fn departures(pacing: Option<f64>) -> Vec<Nanos> {
    let mut world = World::new(Config::new(Profile::default()).with(|it| it.pacing = pacing));
    world.delay = 50 * MILLISECOND;
    let (a, z) = world.established();
    for _ in 0..40 {
        world.send(A, a, 0, vec![0; 1400]);
    }
    world.run_for(10 * SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 40);
    let data = world
        .shots
        .iter()
        .filter(|shot| shot.from == A && shot.chunks.contains("DATA"));
    data.map(|shot| shot.at).collect()
}

fn gaps(departures: &[Nanos]) -> Vec<Nanos> {
    departures
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .collect()
}

#[test]
fn a_window_is_spread_over_the_round_trip() {
    let together = gaps(&departures(None));
    assert!(together.iter().filter(|&&gap| gap == 0).count() > 20);
    let paced = departures(Some(1.25));
    // The first window is sent without pacing, because no round-trip time was measured yet.
    let began = paced[0];
    let spread: Vec<Nanos> = paced.into_iter().filter(|&at| at > began).collect();
    assert!(spread.len() > 30, "{}", spread.len());
    let mut spread = gaps(&spread);
    spread.sort_unstable();
    // The interval between two packets is the time for 1400 bytes at a rate of 1.25 windows per
    // round trip of 100 ms. It is between 25.4 ms at the initial cwnd of 4404 bytes and 1.8 ms at
    // 60,000 bytes, the maximum in this transfer. Longer intervals occur while the sender waits for
    // an acknowledgment.
    assert!(spread[0] > 1_800_000, "{}", spread[0]);
    assert!(spread[spread.len() / 2] < 26 * MILLISECOND, "{spread:?}");
}

/// A packet closes the window, and pacing allows the next packet only after the retransmission
/// timeout. The window probe should wait for the time that pacing allows. Otherwise the timer would
/// stay due forever, which the world checks.
#[test]
fn a_closed_window_is_probed_at_the_pace() {
    let config = Config::default().with(|it| {
        it.pacing = Some(0.002);
        it.receive_buffer = 1_500;
    });
    let mut world = World::new(config);
    let (a, z) = world.established();
    for _ in 0..10 {
        world.send(A, a, 0, vec![7; 1_400]);
    }
    world.run_for(SECOND);
    let mut read = world.receive_all(Z, z).len();
    // The second packet is sent at once. Each later packet follows the previous one after 3.2 s,
    // because 1,412 bytes take 160 round trips at 0.002 windows of 4,404 bytes per round trip.
    while read < 10 {
        world.forget();
        world.run_for(2 * SECOND);
        let data = world
            .shots
            .iter()
            .filter(|it| it.from == A && it.chunks.contains("DATA"));
        assert!(data.count() <= 1, "{:#?}", world.story);
        read += world.receive_all(Z, z).len();
        assert!(world.now < 100 * SECOND, "{read}");
    }
}
