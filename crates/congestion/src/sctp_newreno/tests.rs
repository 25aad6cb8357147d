//! Tests with traces computed by hand.

use super::*;

/// Parameters of the GEO paper (Alamgir et al. 2002): chunks of 1448 bytes, an initial window of
/// two chunks, an initial ssthresh of 64 KiB, and a minimum ssthresh of two chunks.
fn paper() -> SctpNewReno {
    SctpNewReno::new(SctpParameters {
        unit: 1448,
        initial_cwnd: 2 * 1448,
        initial_ssthresh: 65536,
        floor_units: 2,
        growth_needs_cumulative_advance: true,
        pba_when_underused: UnfilledCredit::Keep,
        ..SctpParameters::default()
    })
}

fn ack(bytes: u64, before: u64) -> AckSample {
    AckSample {
        now: 0,
        bytes_acked: bytes,
        segments_acked: (bytes / 1448) as u32,
        cumulative_advanced: true,
        marked: false,
        bytes_marked: 0,
        flightsize_before: before,
        flightsize_after: before - bytes,
        in_recovery: false,
        rtt: None,
        latest_rtt: None,
        srtt: None,
        delivery: None,
        rate: None,
    }
}

#[test]
fn slow_start_grows_by_the_bytes_acknowledged_up_to_one_unit() {
    let mut cc = paper();
    cc.on_ack(&ack(1448, 2896));
    assert_eq!(cc.cwnd(), 4344);
    cc.on_ack(&ack(2896, 4344)); // two segments at once add one unit
    assert_eq!(cc.cwnd(), 5792);
    cc.on_ack(&ack(100, 5792)); // a small chunk adds its size
    assert_eq!(cc.cwnd(), 5892);
}

/// RFC 9260 §7.2.1 with L = 2, and RFC 3465 §2.3: after a timeout the limit is one unit, until slow
/// start has ended.
#[test]
fn slow_start_grows_by_as_many_units_as_the_limit_but_one_after_a_timeout() {
    let mut cc = SctpNewReno::new(SctpParameters {
        unit: 1448,
        initial_cwnd: 2 * 1448,
        abc_limit: 2,
        ..SctpParameters::default()
    });
    cc.on_ack(&ack(2 * 1448, 2 * 1448));
    assert_eq!(cc.cwnd(), 4 * 1448);
    cc.on_ack(&ack(3 * 1448, 4 * 1448)); // three segments at once add two units
    assert_eq!(cc.cwnd(), 6 * 1448);
    cc.on_ack(&ack(100, 6 * 1448));
    assert_eq!(cc.cwnd(), 6 * 1448 + 100);

    cc.on_loss(0, LossCause::Timeout, 6 * 1448);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (1448, 4 * 1448));
    for units in 2..=5 {
        cc.on_ack(&ack(2 * 1448, 6 * 1448));
        assert_eq!(cc.cwnd(), units * 1448);
    }
    // Above ssthresh the sender is in congestion avoidance, so the slow start after the timeout has
    // ended. The next loss sets the window to ssthresh, which counts as slow start, now with the
    // limit of two units.
    cc.on_ack(&ack(1448, 5 * 1448));
    assert_eq!(cc.cwnd(), 5 * 1448);
    cc.on_loss(0, LossCause::FastRetransmit, 5 * 1448);
    assert_eq!(cc.cwnd(), 4 * 1448);
    cc.on_ack(&ack(2 * 1448, 4 * 1448));
    assert_eq!(cc.cwnd(), 6 * 1448);
}

/// The slow start after a timeout also ends if another algorithm sets the window above ssthresh.
/// The limit of one unit also applies after a timeout that changes neither the window nor ssthresh.
#[test]
fn the_limit_after_a_timeout_ends_with_its_slow_start() {
    let mut cc = SctpNewReno::new(SctpParameters {
        unit: 1448,
        initial_cwnd: 1448,
        abc_limit: 2,
        repeated_timeout_keeps_ssthresh: true,
        ..SctpParameters::default()
    });
    cc.on_loss(0, LossCause::Timeout, 1448);
    cc.on_ack(&ack(2 * 1448, 2 * 1448));
    assert_eq!(cc.cwnd(), 2 * 1448);
    cc.set_ssthresh(4.0 * 1448.0);
    cc.set_cwnd(4.0 * 1448.0);
    cc.on_ack(&ack(2 * 1448, 4 * 1448));
    assert_eq!(cc.cwnd(), 5 * 1448, "up to ssthresh it is slow start");
    cc.set_cwnd(6.0 * 1448.0);
    cc.set_ssthresh(20.0 * 1448.0); // as after an idle time
    cc.on_ack(&ack(2 * 1448, 6 * 1448));
    assert_eq!(cc.cwnd(), 8 * 1448);
}

#[test]
fn no_growth_when_the_window_was_not_full_or_the_point_stood_still_or_in_recovery() {
    let mut cc = paper();
    cc.on_ack(&ack(1448, 2895));
    assert_eq!(cc.cwnd(), 2896);
    cc.on_ack(&AckSample {
        cumulative_advanced: false,
        ..ack(1448, 2896)
    });
    assert_eq!(cc.cwnd(), 2896);
    cc.on_ack(&AckSample {
        in_recovery: true,
        ..ack(1448, 2896)
    });
    assert_eq!(cc.cwnd(), 2896);
    cc.on_ack(&ack(1448, 2896));
    assert_eq!(cc.cwnd(), 4344);
}

/// For growth, RFC 9260 §7.2.1 requires only that the window is full and that the sender is not in
/// fast recovery.
#[test]
fn the_cumulative_point_may_stand_still_while_the_window_grows() {
    let mut cc = SctpNewReno::new(SctpParameters::default());
    let beside = AckSample {
        cumulative_advanced: false,
        ..ack(1468, 4404)
    };
    cc.on_ack(&beside);
    assert_eq!(cc.cwnd(), 4404 + 1468);
}

/// 13032 -> fast retransmit -> 6516 -> slow start at cwnd == ssthresh -> 7964 -> six increases of
/// `partial_bytes_acked` by 1448 -> 9412.
#[test]
fn the_paper_s_windows_around_the_loss_of_segment_8() {
    let mut cc = paper();
    while cc.cwnd() < 13032 {
        let full = cc.cwnd();
        cc.on_ack(&ack(1448, full));
    }
    assert_eq!(cc.cwnd(), 13032);
    cc.on_loss(0, LossCause::FastRetransmit, 11584);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (6516, 6516));
    cc.on_ack(&ack(1448, 7240));
    assert_eq!(cc.cwnd(), 7964);
    for turn in 1..=5 {
        cc.on_ack(&ack(1448, 8688));
        assert_eq!((cc.cwnd(), cc.partial_bytes_acked()), (7964, turn * 1448));
    }
    cc.on_ack(&ack(1448, 8688));
    assert_eq!(
        (cc.cwnd(), cc.partial_bytes_acked()),
        (9412, 6 * 1448 - 7964)
    );
}

#[test]
fn timeout_falls_to_one_unit_and_the_floor_holds() {
    let mut cc = paper();
    cc.on_loss(0, LossCause::Timeout, 2896);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (1448, 2896));
    let mut four = SctpNewReno::new(SctpParameters::default());
    four.on_loss(0, LossCause::FastRetransmit, 4404);
    assert_eq!((four.cwnd(), four.ssthresh()), (4 * 1468, 4 * 1468));
}

#[test]
fn a_second_timeout_keeps_ssthresh_where_the_profile_says_so() {
    for (keeps, expected) in [(true, 32768), (false, 5872)] {
        let mut cc = SctpNewReno::new(SctpParameters {
            initial_cwnd: 65536,
            repeated_timeout_keeps_ssthresh: keeps,
            ..SctpParameters::default()
        });
        cc.on_loss(0, LossCause::Timeout, 65536);
        assert_eq!(cc.ssthresh(), 32768);
        cc.on_loss(0, LossCause::Timeout, 1468);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (1468, expected));
    }
}

#[test]
fn credit_earned_while_the_window_was_not_full() {
    for (rule, expected) in [
        (UnfilledCredit::Keep, 8000),
        (UnfilledCredit::Cap, 5000),
        (UnfilledCredit::Discard, 0),
    ] {
        let mut cc = SctpNewReno::new(SctpParameters {
            unit: 1000,
            initial_cwnd: 5000,
            initial_ssthresh: 4000,
            pba_when_underused: rule,
            ..SctpParameters::default()
        });
        for _ in 0..8 {
            cc.on_ack(&ack(1000, 4999));
        }
        assert_eq!(
            (cc.cwnd(), cc.partial_bytes_acked()),
            (5000, expected),
            "{rule:?}"
        );
        cc.on_ack(&AckSample {
            flightsize_after: 0,
            ..ack(1000, 4999)
        });
        assert_eq!(cc.partial_bytes_acked(), 0);
    }
}

#[test]
fn idle_time_halves_the_window_once_per_rto_down_to_the_floor() {
    let mut cc = SctpNewReno::new(SctpParameters {
        initial_cwnd: 40_000,
        ..SctpParameters::default()
    });
    cc.on_idle(0, 2_500, 1_000);
    assert_eq!(cc.cwnd(), 10_000);
    // RFC 9260 §7.2.1: ssthresh is the window before idle decay, to which slow start then returns.
    assert_eq!(cc.ssthresh(), 40_000);
    cc.on_idle(0, u64::MAX, 1);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (5872, 40_000));
    cc.on_sent(0, 1468, 1468);
    cc.cwnd = 20_000;
    cc.on_idle(0, 1_000, 1_000);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (10_000, 20_000));
    let small = SctpParameters {
        initial_cwnd: 3 * 1468,
        ..SctpParameters::default()
    };
    let mut never_lifted = SctpNewReno::new(small);
    never_lifted.on_idle(0, 1_000, 1_000);
    assert_eq!(never_lifted.cwnd(), 3 * 1468);
    let mut lifted = SctpNewReno::new(SctpParameters {
        idle_decay_above_units: Some(2),
        ..small
    });
    lifted.on_idle(0, 1_000, 1_000);
    assert_eq!(lifted.cwnd(), 4 * 1468);
}
