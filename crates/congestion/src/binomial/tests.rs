//! Tests with windows computed by hand, in units of 1000 bytes.

use super::*;
use crate::sctp_newreno::{SctpNewReno, SctpParameters};
use crate::tcp_newreno::{Growth, HalvingBasis, TcpNewReno, TcpNewRenoConfig};

fn sctp(cwnd: u64, ssthresh: u64) -> SctpNewReno {
    SctpNewReno::new(SctpParameters {
        unit: 1000,
        initial_cwnd: cwnd,
        initial_ssthresh: ssthresh,
        floor_units: 2,
        growth_needs_full_cwnd: false,
        ..SctpParameters::default()
    })
}

fn ack(bytes: u64) -> AckSample {
    AckSample {
        now: 0,
        bytes_acked: bytes,
        segments_acked: 1,
        cumulative_advanced: true,
        marked: false,
        bytes_marked: 0,
        flightsize_before: 100_000,
        flightsize_after: 50_000,
        in_recovery: false,
        rtt: None,
        latest_rtt: None,
        srtt: None,
        delivery: None,
        rate: None,
    }
}

fn parameters(k: f64, l: f64) -> BinomialParameters {
    BinomialParameters::new(k, l, 1.0, 0.5).expect("allowed")
}

#[test]
fn powers_of_half_steps_are_exact() {
    let power = |value: f64, base: f64| Exponent::from_value(value).expect("allowed").power(base);
    assert_eq!(
        [
            power(2.5, 4.0),
            power(0.5, 9.0),
            power(0.0, 7.0),
            power(-0.5, 4.0),
            power(4.0, 3.0)
        ],
        [32.0, 3.0, 1.0, 0.5, 81.0]
    );
    for refused in [0.3, 4.5, -1.5, 100.0, f64::NAN, f64::INFINITY] {
        assert_eq!(Exponent::from_value(refused), None, "{refused}");
    }
    assert_eq!(Exponent::from_value(1.5).map(Exponent::value), Some(1.5));
}

#[test]
fn wrong_numbers_are_reported() {
    let told =
        |result: Result<BinomialParameters, BinomialError>| result.expect_err("wrong").to_string();
    assert_eq!(
        told(BinomialParameters::new(0.25, 0.5, 1.0, 0.5)),
        "k = 0.25 is not a multiple of 0.5 from -1 to 4"
    );
    assert_eq!(
        told(BinomialParameters::new(0.5, 0.5, 1.0, 1.5)),
        "beta = 1.5 is not above 0 and at most 1"
    );
    assert_eq!(parameters(0.5, 0.5), BinomialParameters::SQRT);
    assert_eq!(parameters(1.0, 0.0), BinomialParameters::IIAD);
    assert_eq!(parameters(0.0, 1.0), BinomialParameters::AIMD);
}

/// From 16 units the window is reduced to 16 - 0.5 x 4 = 14 (SQRT), 15.5 (IIAD) and 8 (AIMD), and
/// never below two units.
#[test]
fn the_fall_follows_l() {
    for (parameters, start, left) in [
        (BinomialParameters::SQRT, 16_000, 14_000),
        (BinomialParameters::IIAD, 16_000, 15_500),
        (BinomialParameters::AIMD, 16_000, 8000),
        (BinomialParameters::AIMD, 3000, 2000),
    ] {
        let mut binomial = Binomial::new(sctp(start, 1), parameters);
        binomial.on_loss(0, LossCause::FastRetransmit, start);
        assert_eq!(
            (binomial.cwnd(), binomial.ssthresh()),
            (left, left),
            "{parameters:?}"
        );
        let mut binomial = Binomial::new(sctp(start, 1), parameters);
        binomial.on_loss(0, LossCause::Timeout, start);
        assert_eq!(
            (binomial.cwnd(), binomial.ssthresh()),
            (1000, left),
            "{parameters:?}"
        );
    }
}

/// At 16 units, acknowledgements of one window add 1/4 unit (SQRT), 1/16 (IIAD), 1 (AIMD) and
/// 1/65536 (k = 4). In the last case 66 windows are needed for one byte, so fractions must not be
/// lost.
#[test]
fn the_rise_follows_k_and_keeps_fractions_of_a_byte() {
    for (k, windows, cwnd) in [
        (0.5, 1, 16_250),
        (1.0, 1, 16_062),
        (0.0, 1, 17_000),
        (4.0, 65, 16_000),
        (4.0, 66, 16_001),
    ] {
        let mut binomial = Binomial::new(sctp(16_000, 1), parameters(k, 0.5));
        for _ in 0..windows {
            binomial.on_ack(&ack(binomial.cwnd()));
        }
        assert_eq!(binomial.cwnd(), cwnd, "k = {k}, {windows} windows");
    }
}

#[test]
fn slow_start_is_the_base_s() {
    let mut binomial = Binomial::new(sctp(4000, 64_000), BinomialParameters::IIAD);
    binomial.on_ack(&ack(1000));
    assert_eq!(binomial.cwnd(), 5000);
}

/// AIMD with alpha 1 and beta 1/2 equals the base for every sequence of events.
#[test]
fn aimd_is_the_base() {
    for seed in 1..=20u64 {
        let mut state = seed;
        let mut base = sctp(10_000, 20_000);
        let mut binomial = Binomial::new(base.clone(), BinomialParameters::AIMD);
        for step in 0..500 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let cause = match state >> 60 {
                0 => Some(LossCause::FastRetransmit),
                1 if step % 3 == 0 => Some(LossCause::Timeout),
                _ => None,
            };
            for control in [&mut base as &mut dyn CongestionControl, &mut binomial] {
                match cause {
                    Some(cause) => control.on_loss(0, cause, 0),
                    None => control.on_ack(&ack(1000 + (state >> 40) % 1000)),
                }
            }
            assert_eq!(
                (base.cwnd(), base.ssthresh()),
                (binomial.cwnd(), binomial.ssthresh()),
                "seed {seed}, step {step}"
            );
        }
    }
}

/// TCP grows with each acknowledgement: with SQRT, sixteen acknowledgements add about 1/4 segment.
#[test]
fn tcp_rises_alike() {
    let base = TcpNewReno::new(TcpNewRenoConfig {
        segment: 1000,
        initial_window: 16.0,
        initial_ssthresh: 1.0,
        restart_window: None,
        growth: Growth::PerAck,
        halving_basis: HalvingBasis::Window,
        integer_halving: false,
        cwnd_floor: true,
        whole_segments: false,
    });
    let mut binomial = Binomial::new(base, BinomialParameters::SQRT);
    for _ in 0..16 {
        binomial.on_ack(&ack(1000));
    }
    assert!(
        (16_240..=16_250).contains(&binomial.cwnd()),
        "{}",
        binomial.cwnd()
    );
}
