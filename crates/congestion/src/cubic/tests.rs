//! Tests with windows computed by hand from RFC 9438, in segments of 1000 bytes.

use super::*;
use crate::sctp_newreno::{SctpNewReno, SctpParameters};
use anabranch_transport::time::{MILLISECOND as MS, SECOND};

type Control = Cubic<SctpNewReno>;

fn control(cwnd: u64, ssthresh: u64) -> Control {
    let base = SctpNewReno::new(SctpParameters {
        unit: 1000,
        initial_cwnd: cwnd,
        initial_ssthresh: ssthresh,
        floor_units: 2,
        ..SctpParameters::default()
    });
    let mut control = Cubic::new(base, CubicParameters::default());
    control.on_sent(0, cwnd, cwnd);
    control
}

fn ack(now: Nanos, bytes: u64, cwnd: u64) -> AckSample {
    AckSample {
        now,
        bytes_acked: bytes,
        segments_acked: (bytes / 1000) as u32,
        cumulative_advanced: true,
        flightsize_before: cwnd,
        flightsize_after: cwnd.saturating_sub(bytes),
        srtt: Some(100 * MS),
        ..AckSample::default()
    }
}

/// Runs `rounds` rounds, in which each segment is acknowledged separately. Returns the window in
/// segments.
fn run(control: &mut Control, rounds: u64, rtt: Nanos) -> f64 {
    for round in 1..=rounds {
        let window = control.cwnd();
        let now = round * rtt;
        for _ in 0..window / 1000 {
            let cwnd = control.cwnd();
            control.on_ack(&AckSample {
                srtt: Some(rtt),
                ..ack(now, 1000, cwnd)
            });
        }
    }
    control.cwnd_exact() / 1000.0
}

#[test]
fn cube_roots_are_exact_to_the_last_digits() {
    for (of, root) in [
        (27.0, 3.0),
        (1e6, 100.0),
        (0.001, 0.1),
        (75.0, 4.217_163_326_508_746),
    ] {
        let found = cube_root(of);
        assert!((found - root).abs() <= 1e-14 * root, "{of}: {found}");
    }
    assert_eq!((cube_root(0.0), cube_root(-8.0)), (0.0, 0.0));
}

#[test]
fn a_loss_leaves_seven_tenths() {
    let mut it = control(100_000, 50_000);
    it.on_loss(0, LossCause::FastRetransmit, 100_000);
    assert_eq!((it.cwnd(), it.ssthresh()), (70_000, 70_000));
    // If a loss occurs before the window is back at 100, the plateau is 70 x 0.85 (fast
    // convergence).
    it.on_loss(0, LossCause::FastRetransmit, 70_000);
    assert_eq!((it.cwnd(), it.plateau), (49_000, Some(59.5)));
    it.on_loss(0, LossCause::Timeout, 49_000);
    assert_eq!((it.cwnd(), it.ssthresh(), it.plateau), (1000, 34_300, None));
}

#[test]
fn a_loss_reduces_the_flight_but_leaves_two_segments() {
    let mut it = control(100_000, 50_000);
    it.on_loss(0, LossCause::FastRetransmit, 40_000);
    assert_eq!(it.cwnd(), 28_000);
    it.on_loss(0, LossCause::FastRetransmit, 2000);
    assert_eq!(it.cwnd(), 2000);
}

/// From 700 segments with a plateau of 1000, K = cbrt(300 / 0.4) = 9.0856 s. In 13 s Reno's window
/// would grow by 70 segments. The target is W(t + RTT), which the window follows with a delay of
/// less than two round trips.
#[test]
fn the_window_follows_the_cubic_function() {
    let mut it = control(1_000_000, 1);
    it.base.set_cwnd(1_000_000.0);
    it.on_loss(0, LossCause::FastRetransmit, 1_000_000);
    for seconds in [5, 9, 14] {
        let found = run(&mut it.clone(), seconds * 10, 100 * MS);
        let function = |t: f64| 0.4 * (t - 9.0856) * (t - 9.0856) * (t - 9.0856) + 1000.0;
        let (t, slack) = (seconds as f64, 0.01);
        let range = function(t - 0.1) - slack..function(t + 0.1) + slack;
        assert!(range.contains(&found), "{seconds} s: {found}");
    }
}

/// With 20 segments at 10 ms Reno grows faster: by 0.53 segments per round trip up to the old
/// window, and then by 1.
#[test]
fn a_small_window_grows_as_renos() {
    let mut it = control(20_000, 1);
    it.on_loss(0, LossCause::FastRetransmit, 20_000);
    let after_five = run(&mut it.clone(), 5, 10 * MS);
    assert!(
        (after_five - (14.0 + 5.0 * ALPHA)).abs() < 0.3,
        "{after_five}"
    );
    let (before, after) = (run(&mut it.clone(), 20, 10 * MS), run(&mut it, 25, 10 * MS));
    assert!((after - before - 5.0).abs() < 0.3, "{before} {after}");
}

/// While the window is not fully used, it does not grow, and the time of the cubic function does
/// not advance.
#[test]
fn time_without_use_does_not_count() {
    let mut it = control(100_000, 1);
    it.on_loss(0, LossCause::FastRetransmit, 100_000);
    run(&mut it, 10, 100 * MS);
    let before = it.clone();
    for step in 0..100 {
        it.on_ack(&ack(SECOND + step * 100 * MS, 1000, 10_000));
    }
    assert_eq!(it.cwnd(), before.cwnd());
    assert_eq!(
        it.epoch.map(|epoch| epoch.elapsed),
        before.epoch.map(|epoch| epoch.elapsed)
    );
    it.on_sent(60 * SECOND, 1000, 1000);
    it.on_ack(&ack(60 * SECOND + 100 * MS, 1000, it.cwnd()));
    let aged = it.epoch.expect("begun").elapsed - before.epoch.expect("begun").elapsed;
    assert_eq!(aged, 100 * MS, "a minute of silence is left out");
}

/// After a timeout the plateau is the window at the end of slow start, so the window begins to grow
/// immediately (§4.8).
#[test]
fn a_timeout_begins_a_stage_without_a_plateau_above() {
    let mut it = control(100_000, 1);
    it.on_loss(0, LossCause::Timeout, 100_000);
    let mut now = 0;
    while it.in_slow_start() {
        now += 100 * MS;
        let cwnd = it.cwnd();
        it.on_ack(&ack(now, 1000, cwnd));
    }
    let cwnd = it.cwnd();
    it.on_ack(&ack(now + MS, 1000, cwnd));
    let epoch = it.epoch.expect("begun");
    assert_eq!((epoch.k, epoch.plateau), (0.0, 70.0));
}

/// The average window with one loss in `1 / p` segments and rounds of 100 ms should be that of RFC
/// 9438 Table 1 (C = 0.4).
#[test]
fn the_average_window_is_that_of_the_table() {
    for (lost_in, printed) in [
        (100, 12.0),
        (1000, 38.0),
        (10_000, 187.0),
        (100_000, 1054.0),
    ] {
        let mut it = control(10_000, 1);
        it.hystart.end();
        let (mut until_loss, mut losses, mut now) = (lost_in, 0, 0);
        let (mut sum, mut rounds) = (0.0, 0);
        while losses < 60 {
            now += 100 * MS;
            let window = it.cwnd() / 1000;
            if losses >= 20 {
                (sum, rounds) = (sum + it.cwnd_exact() / 1000.0, rounds + 1);
            }
            let mut lost = false;
            for _ in 0..window {
                let cwnd = it.cwnd();
                it.on_ack(&ack(now, 1000, cwnd));
                until_loss -= 1;
                if until_loss == 0 {
                    (until_loss, lost) = (lost_in, true);
                }
            }
            if lost {
                losses += 1;
                it.on_loss(now, LossCause::FastRetransmit, it.cwnd());
            }
        }
        let average = sum / f64::from(rounds);
        assert!(
            (average / printed - 1.0_f64).abs() < 0.06,
            "{lost_in}: {average} for {printed}"
        );
    }
}
