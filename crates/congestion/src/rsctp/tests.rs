use super::*;
use crate::sctp_newreno::{SctpNewReno, SctpParameters};
use anabranch_transport::time::{MILLISECOND, SECOND};

const UNIT: u64 = 1_000;
/// At 100 kB/s and 200 ms the path holds 20 segments.
const BANDWIDTH: f64 = 100_000.0;
const RTT: Nanos = 200 * MILLISECOND;

fn with(parameters: RsctpParameters, segments: u64) -> Rsctp<SctpNewReno> {
    let base = SctpNewReno::new(SctpParameters {
        unit: UNIT,
        initial_cwnd: segments * UNIT,
        ..SctpParameters::default()
    });
    Rsctp::new(base, parameters)
}

fn report(bandwidth: Option<f64>, carries_data: bool) -> Feedback {
    Feedback {
        available_bandwidth: bandwidth,
        loss_rate: None,
        srtt: Some(RTT),
        carries_data,
        peer_window: 1 << 20,
    }
}

fn measured(parameters: RsctpParameters, segments: u64) -> Rsctp<SctpNewReno> {
    let mut cc = with(parameters, segments);
    cc.on_feedback(SECOND, &report(Some(BANDWIDTH), true));
    cc
}

#[test]
fn the_rate_decides_and_the_bound_itself_is_wireless() {
    let of = |cwnd| LossAttribution::of(cwnd, Some(RTT), Some(BANDWIDTH));
    assert_eq!(
        of(20_000.0),
        Some(LossAttribution::Wireless),
        "Fig. 3-7 has <="
    );
    assert_eq!(of(20_001.0), Some(LossAttribution::Congestion));
    assert_eq!(LossAttribution::of(1.0, None, Some(BANDWIDTH)), None);
    assert_eq!(LossAttribution::of(1.0, Some(0), Some(BANDWIDTH)), None);
    assert_eq!(LossAttribution::of(1.0, Some(RTT), None), None);
}

#[test]
fn without_an_estimate_it_is_plain_sctp() {
    let mut cc = with(RsctpParameters::default(), 16);
    cc.on_feedback(SECOND, &report(None, true));
    cc.on_loss(SECOND, LossCause::FastRetransmit, 16_000);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (8_000, 8_000));
    cc.on_loss(SECOND, LossCause::Timeout, 8_000);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (1_000, 4_000));
}

#[test]
fn a_wireless_loss_takes_beta_roots_of_the_window_in_segments_or_bytes() {
    // In segments: 16 - 0.2 x 4 = 15.2.
    for cause in [LossCause::FastRetransmit, LossCause::Timeout] {
        let mut cc = measured(RsctpParameters::default(), 16);
        cc.on_loss(SECOND, cause, 16_000);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (15_200, 20_000), "{cause:?}");
    }
    // In bytes: 16,000 - 0.2 x 126.49 = 15,974.7.
    let mut cc = measured(
        RsctpParameters {
            unit: DecreaseUnit::Bytes,
            ..RsctpParameters::default()
        },
        16,
    );
    cc.on_loss(SECOND, LossCause::FastRetransmit, 16_000);
    assert_eq!(cc.cwnd(), 15_974);
    // A window of one segment is not reduced.
    let mut cc = measured(RsctpParameters::default(), 1);
    cc.on_loss(SECOND, LossCause::FastRetransmit, 1_000);
    assert_eq!(cc.cwnd(), 1_000);
}

#[test]
fn congestion_halves_down_to_the_floor_chosen() {
    for (floor, least) in [
        (CongestionFloor::Profile, 4_000),
        (CongestionFloor::Two, 2_000),
        (CongestionFloor::One, 1_500),
    ] {
        let parameters = RsctpParameters {
            floor,
            ..RsctpParameters::default()
        };
        let mut cc = with(parameters, 3);
        cc.on_feedback(SECOND, &report(Some(10_000.0), true)); // 2 segments per round trip
        cc.on_loss(SECOND, LossCause::FastRetransmit, 3_000);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (least, least), "{floor:?}");
        let mut cc = with(parameters, 30);
        cc.on_feedback(SECOND, &report(Some(BANDWIDTH), true));
        cc.on_loss(SECOND, LossCause::Timeout, 30_000);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (1_000, 15_000), "{floor:?}");
    }
}

#[test]
fn each_rule_sets_ssthresh_in_its_own_time() {
    let ack = |in_recovery| AckSample {
        now: SECOND,
        bytes_acked: UNIT,
        segments_acked: 1,
        cumulative_advanced: true,
        marked: false,
        bytes_marked: 0,
        flightsize_before: 0,
        flightsize_after: UNIT,
        in_recovery,
        rtt: None,
        latest_rtt: None,
        srtt: Some(RTT),
        delivery: None,
        rate: None,
    };
    let rule = |ssthresh| RsctpParameters {
        ssthresh,
        ..RsctpParameters::default()
    };
    let mut cc = measured(rule(SsthreshRule::EachReport), 30);
    assert_eq!(cc.ssthresh(), 20_000);
    cc.on_loss(SECOND, LossCause::FastRetransmit, 30_000);
    cc.on_ack(&ack(false));
    assert_eq!(cc.ssthresh(), 15_000, "an acknowledgement is no report");
    cc.on_feedback(SECOND, &report(Some(BANDWIDTH), true));
    assert_eq!(cc.ssthresh(), 15_000, "something was lost meanwhile");
    cc.on_feedback(SECOND, &report(Some(BANDWIDTH), true));
    assert_eq!(cc.ssthresh(), 20_000);
    cc.on_feedback(SECOND, &report(Some(1.0), true));
    assert_eq!(cc.ssthresh(), 4_000, "never below the floor");

    let mut cc = measured(rule(SsthreshRule::EachAck), 30);
    assert_eq!(cc.ssthresh(), 1 << 30);
    cc.on_ack(&ack(true));
    assert_eq!(cc.ssthresh(), 1 << 30, "in recovery");
    cc.on_ack(&ack(false));
    assert_eq!(cc.ssthresh(), 20_000);

    let mut cc = measured(rule(SsthreshRule::Never), 30);
    cc.on_ack(&ack(false));
    assert_eq!(cc.ssthresh(), 1 << 30);
}

#[test]
fn a_path_without_data_gets_the_window_it_could_fill() {
    let mut cc = with(RsctpParameters::default(), 3);
    cc.on_feedback(SECOND, &report(Some(BANDWIDTH), false));
    assert_eq!(cc.cwnd(), 20_000);
    assert_eq!(
        cc.ssthresh(),
        1 << 30,
        "a report on an idle path is none on loss"
    );
    cc.on_feedback(SECOND, &report(Some(10.0), false));
    assert_eq!(cc.cwnd(), 3_000, "not less than any new path may send");
    // An exaggerated report has no more effect than the receive window that the peer advertises.
    for boast in [1e12, f64::MAX, f64::INFINITY] {
        cc.on_feedback(SECOND, &report(Some(boast), false));
        assert_eq!(cc.cwnd(), 1 << 20);
    }
    let mut off = with(
        RsctpParameters {
            secondary_cwnd: false,
            ..RsctpParameters::default()
        },
        3,
    );
    off.on_feedback(SECOND, &report(Some(BANDWIDTH), false));
    assert_eq!(off.cwnd(), 3_000);
}

/// In the paper's figure 3-7, "or Heartbeat Ack loss" occurs only in the branch of wireless losses.
#[test]
fn a_lost_heartbeat_shrinks_the_window_only_below_the_estimate() {
    let mut cc = measured(RsctpParameters::default(), 16);
    cc.on_heartbeat_lost(SECOND);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (15_200, 20_000));
    let mut cc = measured(RsctpParameters::default(), 30);
    cc.on_heartbeat_lost(SECOND);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (30_000, 20_000));
    let mut cc = with(RsctpParameters::default(), 16);
    cc.on_heartbeat_lost(SECOND);
    assert_eq!(cc.cwnd(), 16_000, "nothing is known yet");
}
