use super::*;
use crate::coupled_paths::CoupledPath;
use crate::sctp_newreno::{SctpNewReno, SctpParameters};

const UNIT: f64 = 1_468.0;
const CWND: f64 = 14_680.0;

/// A path with the given window, round-trip time, and number of bytes between losses.
fn member(cwnd: f64, rtt: f64, between_losses: u64) -> CoupledPath {
    CoupledPath {
        cwnd,
        ssthresh: UNIT,
        rtt: Some(rtt),
        between_losses,
    }
}

/// State of several paths, of which the first is the path of the controller.
fn coupled(members: &[CoupledPath]) -> CoupledPaths {
    CoupledPaths::of(members[0], members.iter().copied())
}

/// A controller in congestion avoidance.
fn olia(cwnd: f64) -> Olia<SctpNewReno> {
    let mut base = SctpNewReno::new(SctpParameters::default());
    base.set_cwnd(cwnd);
    base.set_ssthresh(UNIT / 2.0);
    Olia::new(base)
}

/// Growth of a path in congestion avoidance during forty of its round trips, while the state of the
/// paths stays constant.
fn growth(coupled: Option<CoupledPaths>) -> i64 {
    growth_in(40, coupled)
}

fn growth_in(rounds: u32, coupled: Option<CoupledPaths>) -> i64 {
    let mut olia = olia(CWND);
    for _ in 0..rounds {
        let before = olia.cwnd();
        if let Some(coupled) = &coupled {
            olia.on_coupled_paths(coupled);
        }
        olia.on_ack(&AckSample {
            bytes_acked: before,
            segments_acked: 10,
            cumulative_advanced: true,
            flightsize_before: before,
            flightsize_after: 1,
            ..AckSample::default()
        });
    }
    olia.cwnd() as i64 - CWND as i64
}

#[test]
fn equal_paths_grow_a_quarter_as_fast_each() {
    let alone = growth(None);
    assert_eq!(alone, 40 * 1468);
    assert_eq!(growth(Some(coupled(&[member(CWND, 0.1, 0)]))), alone);
    let both = growth(Some(coupled(&[member(CWND, 0.1, 7), member(CWND, 0.1, 7)])));
    assert!((both - alone / 4).abs() <= 1, "{both}");
    // The fraction is proportional to the rate: if w / rtt of the paths are 1 and 4, the fraction
    // of the first is one fifth.
    let slow = growth(Some(coupled(&[member(CWND, 0.4, 7), member(CWND, 0.1, 7)])));
    assert!((slow - alone / 25).abs() <= 1, "{slow}");
}

/// Two paths have equal round-trip times; the better one has a window of 2 units, and the worse one
/// has 6. The fractions are 1/16 and 9/16, and alpha is 1/2.
#[test]
fn the_best_path_gets_what_the_largest_window_gives() {
    let better = member(2.0 * UNIT, 0.1, 200_000);
    let worse = member(6.0 * UNIT, 0.1, 100_000);
    let [up, down] = [[better, worse], [worse, better]].map(|it| {
        let mut one = olia(CWND);
        one.on_coupled_paths(&coupled(&it));
        one.factor()
    });
    assert!((up - (1.0 / 16.0 + 0.5)).abs() < 1e-12, "{up}");
    assert!((down - (9.0 / 16.0 - 0.5)).abs() < 1e-12, "{down}");
    // If the best path already has the largest window, no window is moved.
    let best = member(6.0 * UNIT, 0.1, 200_000);
    let other = member(2.0 * UNIT, 0.1, 100_000);
    assert_eq!(coupled(&[best, other]).collected, 0);
    // The number of bytes between losses is divided by the square of the round-trip time: a path
    // with twice the time needs four times as many bytes.
    let far = member(2.0 * UNIT, 0.2, 300_000);
    assert_eq!(coupled(&[far, worse]).collected, 0);
    assert_eq!(
        coupled(&[member(2.0 * UNIT, 0.2, 500_000), worse]).collected,
        1
    );
}

/// The growth is a fraction of 1/4 minus 1/2: the window shrinks by a quarter of a unit per round
/// trip, but not below one unit.
#[test]
fn the_largest_window_shrinks_to_no_less_than_a_unit() {
    let own = member(CWND, 0.1, 1_000);
    let best = member(CWND - 1.0, 0.1, 500_000);
    let coupled = coupled(&[own, best]);
    // The result is rounded down to whole bytes in each step.
    let shrunk = growth_in(10, Some(coupled));
    assert!((-3_690..=-3_670).contains(&shrunk), "{shrunk}");
    let mut least = olia(UNIT + 100.0);
    least.on_coupled_paths(&coupled);
    for _ in 0..4 {
        let flight = least.cwnd();
        least.on_ack(&AckSample {
            bytes_acked: flight,
            segments_acked: 1,
            cumulative_advanced: true,
            flightsize_before: flight,
            flightsize_after: 1,
            ..AckSample::default()
        });
    }
    assert_eq!(least.cwnd(), 1468);
}

#[test]
fn a_loss_halves_the_window_and_ends_a_span() {
    let mut one = olia(4.0 * UNIT);
    one.on_coupled_paths(&coupled(&[member(CWND, 0.1, 0), member(CWND, 0.1, 0)]));
    let ack = AckSample {
        bytes_acked: 5_000,
        ..AckSample::default()
    };
    one.on_ack(&ack);
    assert_eq!(one.between_losses(), 5_000);
    one.on_loss(0, LossCause::FastRetransmit, 0);
    assert_eq!(
        (one.cwnd(), one.ssthresh()),
        (2936, 2936),
        "below four units"
    );
    one.on_ack(&ack);
    one.on_loss(0, LossCause::Timeout, 0);
    assert_eq!((one.cwnd(), one.ssthresh()), (1468, 1468));
    one.on_loss(0, LossCause::Timeout, 0);
    assert_eq!(one.between_losses(), 0, "two spans back is forgotten");
}
