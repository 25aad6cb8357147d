//! Pacing: if enabled, data is spread over the round-trip time.

use crate::common;

use anabranch_tcp::Config;
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};
use common::World;

/// Send times of full segments in a transfer of 300,000 bytes over links with 50 ms delay each way.
fn departures(pacing: Option<f64>) -> Vec<Nanos> {
    let config = Config::default().with(|it| it.pacing = pacing);
    let mut world = World::new(config, Config::default());
    world.run_until(SECOND);
    let before = world.sent[0].len();
    world.ends[0].write_zeros(300_000).unwrap();
    world.drain(0);
    world.run_until(20 * SECOND);
    assert_eq!(world.ends[1].readable(), 65_535);
    let full = world.sent[0][before..]
        .iter()
        .filter(|(_, packet)| packet.len() > 1000);
    full.map(|(at, _)| *at).collect()
}

#[test]
fn a_window_is_spread_over_the_round_trip() {
    let same = |departures: &[Nanos]| {
        departures
            .windows(2)
            .filter(|pair| pair[0] == pair[1])
            .count()
    };
    let (together, paced) = (departures(None), departures(Some(1.25)));
    assert_eq!(together.len(), paced.len());
    assert!(same(&together) > 10, "{}", same(&together));
    assert_eq!(same(&paced), 0);
}

/// The handshake measures a round-trip time of 100 ms. After the first segment of an initial window
/// `w`, the gap is `1460 / (1.25 w)` of this time.
#[test]
fn the_first_gap_is_that_of_the_initial_window() {
    let at = departures(Some(1.25));
    let window = departures(None);
    let first = window.iter().take_while(|&&sent| sent == window[0]).count() as f64;
    let expected = 100.0 / (1.25 * first);
    let gap = (at[1] - at[0]) as f64 / MILLISECOND as f64;
    assert!(
        (gap - expected).abs() < 0.5,
        "{gap} ms, {expected} expected"
    );
}
