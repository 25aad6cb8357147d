use super::*;
use crate::coupled_paths::CoupledPath;
use crate::sctp_newreno::{SctpNewReno, SctpParameters};

const CWND: f64 = 14_680.0;

/// Growth of a path of ten units in congestion avoidance, during forty of its round trips.
fn growth(coupled: Option<CoupledPaths>) -> u64 {
    let mut base = SctpNewReno::new(SctpParameters::default());
    base.set_cwnd(CWND);
    base.set_ssthresh(1_468.0);
    let mut lia = Lia::new(base);
    for _ in 0..40 {
        let before = lia.cwnd();
        if let Some(coupled) = &coupled {
            lia.on_coupled_paths(coupled);
        }
        lia.on_ack(&AckSample {
            bytes_acked: before,
            segments_acked: 10,
            cumulative_advanced: true,
            flightsize_before: before,
            flightsize_after: 1,
            ..AckSample::default()
        });
    }
    lia.cwnd() - CWND as u64
}

fn coupled(paths: &[(f64, f64)]) -> CoupledPaths {
    let member = |&(cwnd, rtt): &(f64, f64)| CoupledPath {
        cwnd,
        ssthresh: 1_468.0,
        rtt: Some(rtt),
        ..CoupledPath::default()
    };
    CoupledPaths::of(CoupledPath::default(), paths.iter().map(member))
}

#[test]
fn two_equal_paths_grow_a_quarter_as_fast_each() {
    let alone = growth(None);
    assert_eq!(alone, 40 * 1468);
    // By RFC 6356 §3 with alpha = 1/2, each path grows by alpha / 2 segments per round trip at its
    // current window.
    let mut window = CWND;
    for _ in 0..40 {
        window += 1468.0 * (window * (CWND / 0.01) / (4.0 * CWND * CWND / 0.01)).min(1.0);
    }
    let both = growth(Some(coupled(&[(CWND, 0.1), (CWND, 0.1)])));
    assert!(both.abs_diff((window - CWND) as u64) <= 40, "{both}");
    let first = coupled(&[(CWND, 0.1), (CWND, 0.1)]);
    let share = Lia::new(SctpNewReno::new(SctpParameters::default()));
    let share = Lia {
        coupled: Some(first),
        ..share
    };
    assert!((share.share(CWND) - 0.25).abs() < 1e-12);
}

#[test]
fn alone_it_grows_as_the_protocol_and_never_faster() {
    // The result is exact to one byte, because of rounding.
    let alone = growth(Some(coupled(&[(CWND, 0.1)])));
    assert!(growth(None) - alone <= 1, "{alone}");
    assert_eq!(
        growth(Some(coupled(&[]))),
        growth(None),
        "nothing was measured"
    );
}
