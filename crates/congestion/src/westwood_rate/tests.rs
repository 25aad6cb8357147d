//! Tests with estimates computed by hand.

use anabranch_transport::time::MILLISECOND;

use super::*;

fn ack(at_ms: u64, bytes: u64, srtt_ms: u64) -> AckSample {
    AckSample {
        now: at_ms * MILLISECOND,
        bytes_acked: bytes,
        segments_acked: 1,
        cumulative_advanced: true,
        marked: false,
        bytes_marked: 0,
        flightsize_before: 10_000,
        flightsize_after: 0,
        in_recovery: false,
        rtt: Some(100 * MILLISECOND),
        latest_rtt: None,
        srtt: Some(srtt_ms * MILLISECOND),
        delivery: None,
        rate: None,
    }
}

fn estimator(sampling: Sampling, filter: Filter) -> WestwoodRate {
    WestwoodRate::new(RateParameters {
        name: "test",
        sampling,
        filter,
    })
}

fn near(found: Option<f64>, expected: f64) {
    let found = found.expect("a sample");
    assert!(
        (found - expected).abs() < 1e-6 * expected.max(1.0),
        "{found} is not {expected}"
    );
}

/// Acknowledgements are half a second apart, and T = 1 s: the interval contains the
/// acknowledgements after t - T.
#[test]
fn rate_counts_what_was_acknowledged_in_the_last_interval() {
    let interval = SamplingInterval::Fixed(1000 * MILLISECOND);
    let mut rate = estimator(Sampling::Rate { interval }, Filter::None);
    assert_eq!(rate.rate(), None);
    for (at, bytes, expected) in [
        (500, 1000, 1000.0),
        (1000, 1000, 2000.0),
        (1500, 1000, 2000.0),
        (2000, 3000, 4000.0),
        (2000, 500, 4500.0),
        (5000, 700, 700.0),
    ] {
        rate.on_ack(&ack(at, bytes, 100));
        near(rate.rate(), expected);
    }
}

#[test]
fn rate_over_round_trips_needs_a_round_trip_and_ignores_empty_acknowledgements() {
    let sampling = Sampling::Rate {
        interval: SamplingInterval::RoundTrips(2.0),
    };
    let mut rate = estimator(sampling, Filter::None);
    rate.on_ack(&AckSample {
        srtt: None,
        ..ack(100, 1000, 100)
    });
    assert_eq!(rate.rate(), None);
    rate.on_ack(&ack(200, 1000, 100));
    near(rate.rate(), 10_000.0); // 2000 bytes in 2 x 100 ms
    rate.on_ack(&ack(900, 0, 100));
    near(rate.rate(), 10_000.0);
}

/// VE = 10000 bytes / 100 ms = 100,000 bytes/s. At first T = srtt = 200 ms, so the rate is 10,000 /
/// 0.2 = 50,000. Then T = 200 ms x (100,000 - 50,000) / 100,000 = 100 ms, which excludes the first
/// acknowledgement, because it is 150 ms old.
#[test]
fn the_adaptive_interval_shrinks_as_the_rate_nears_the_expected() {
    let sampling = Sampling::Rate {
        interval: SamplingInterval::Adaptive {
            least: 50 * MILLISECOND,
        },
    };
    let mut rate = estimator(sampling, Filter::None);
    rate.on_ack(&ack(1000, 10_000, 200));
    near(rate.rate(), 50_000.0);
    rate.on_ack(&ack(1150, 20_000, 200));
    near(rate.rate(), 200_000.0);
    // The rate is now above VE, so the minimum interval of 50 ms applies.
    rate.on_ack(&ack(1160, 1_000, 200));
    near(rate.rate(), 21_000.0 / 0.05);
}

/// BE of Mobicom 2001, with tau = 500 ms and a virtual sample after each 250 ms without an
/// acknowledgement: (3 x 1000 + 2000 + 1000) / 5 = 1200. In the idle time: (3 x 1200 + 0 + 2000) /
/// 5 = 1120 and (3 x 1120) / 5 = 672. Then 300 bytes in 750 ms: (3 x 672 + 400) / 5 = 483.2.
#[test]
fn bandwidth_passes_the_low_pass_filter_and_silence_pulls_it_down() {
    let mut rate = estimator(Sampling::Bandwidth, Filter::MOBICOM_2001);
    rate.on_ack(&ack(0, 500, 100));
    assert_eq!(
        rate.rate(),
        None,
        "the first acknowledgement only starts the clock"
    );
    rate.on_ack(&ack(250, 250, 100));
    near(rate.rate(), 1000.0);
    rate.on_ack(&ack(500, 500, 100));
    near(rate.rate(), 1200.0);
    rate.advance(1250 * MILLISECOND);
    near(rate.rate(), 672.0);
    rate.advance(1250 * MILLISECOND);
    near(rate.rate(), 672.0);
    rate.on_ack(&ack(1250, 300, 100));
    near(rate.rate(), 483.2);
}

#[test]
fn bytes_acknowledged_at_the_same_instant_count_in_the_next_sample() {
    let mut rate = estimator(Sampling::Bandwidth, Filter::None);
    for (at, bytes) in [(0, 9), (100, 50), (100, 60), (200, 40)] {
        rate.on_ack(&ack(at, bytes, 100));
    }
    near(rate.rate(), 1000.0);
}

#[test]
fn a_long_silence_costs_little_and_leaves_nothing() {
    let interval = SamplingInterval::RoundTrips(1.0);
    let mut rate = estimator(Sampling::Rate { interval }, Filter::MOBICOM_2001);
    rate.on_ack(&ack(0, 1_000_000, 100));
    near(rate.rate(), 1e7);
    rate.advance(Nanos::MAX);
    assert!(rate.rate().expect("a sample") < 1e-6);
    rate.advance(Nanos::MAX);
}

/// 200 bytes in 500 ms are 400 bytes/s; with 600 bytes in the next 500 ms the estimate is 7/8 x
/// 400 + 1/8 x 1200 = 500.
#[test]
fn westwood_plus_takes_a_sample_each_round_trip() {
    let mut rate = WestwoodRate::new(RateParameters::WESTWOOD_PLUS);
    for (at, bytes, expected) in [
        (0, 77, None),
        (250, 100, None),
        (500, 100, Some(400.0)),
        (700, 300, Some(400.0)),
        (1000, 300, Some(500.0)),
    ] {
        rate.on_ack(&ack(at, bytes, 500));
        assert_eq!(rate.rate(), expected, "at {at} ms");
    }
}

/// The RTT is 100 ms. The samples are 1000, 3000 and 3000, every 100 ms. At first U = 800, which is
/// the maximum, so tau = RTT, a = 1/3, and the estimate is 2333.3. Then U = 480, so tau = 0.1 + 10
/// x 0.1 x 0.4 = 0.5 s, a = 0.9/1.1, and the estimate is 2454.5.
#[test]
fn the_adaptive_filter_follows_jumps_and_smooths_calm() {
    let interval = SamplingInterval::Fixed(100 * MILLISECOND);
    let mut rate = estimator(Sampling::Rate { interval }, Filter::ABSE);
    for (at, bytes, expected) in [
        (1000, 100, 1000.0),
        (1100, 300, 7000.0 / 3.0),
        (1200, 300, 7000.0 / 3.0 * 9.0 / 11.0 + 3000.0 * 2.0 / 11.0),
    ] {
        rate.on_ack(&ack(at, bytes, 100));
        near(rate.rate(), expected);
    }
}

/// For a constant flow of 50,000 bytes/s, the estimate of every preset should be correct within 2 %
/// after ten seconds.
#[test]
fn every_preset_finds_a_steady_rate() {
    for (parameters, about) in PRESETS {
        assert_eq!(RateParameters::by_name(parameters.name), Some(*parameters));
        assert!(!about.is_empty());
        let mut rate = WestwoodRate::new(*parameters);
        assert_eq!(rate.name(), parameters.name);
        for turn in 1..=500 {
            rate.on_ack(&AckSample {
                marked: false,
                bytes_marked: 0,
                flightsize_before: 10_000,
                ..ack(20 * turn, 1000, 200)
            });
        }
        let found = rate.rate().expect("a sample");
        assert!(
            (found / 50_000.0 - 1.0).abs() < 0.02,
            "{}: {found}",
            parameters.name
        );
    }
    assert_eq!(RateParameters::by_name("no such"), None);
}
