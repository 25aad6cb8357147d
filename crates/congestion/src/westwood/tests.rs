//! Tests with windows computed by hand, in units of 1000 bytes, with round trips of 100 ms.

use anabranch_transport::time::MILLISECOND;

use super::*;
use crate::sctp_newreno::{SctpNewReno, SctpParameters};
use crate::tcp_newreno::{Growth, HalvingBasis, TcpNewReno, TcpNewRenoConfig};

fn sctp(cwnd: u64) -> SctpNewReno {
    SctpNewReno::new(SctpParameters {
        unit: 1000,
        initial_cwnd: cwnd,
        floor_units: 2,
        ..SctpParameters::default()
    })
}

fn tcp(segments: f64) -> TcpNewReno {
    TcpNewReno::new(TcpNewRenoConfig {
        segment: 1000,
        initial_window: segments,
        initial_ssthresh: 1.0,
        restart_window: None,
        growth: Growth::PerByte,
        halving_basis: HalvingBasis::FlightSize,
        integer_halving: false,
        cwnd_floor: true,
        whole_segments: false,
    })
}

/// An acknowledgement that does not increase the window, because a recovery is in progress.
fn ack(at_ms: u64, bytes: u64) -> AckSample {
    AckSample {
        now: at_ms * MILLISECOND,
        bytes_acked: bytes,
        segments_acked: 1,
        cumulative_advanced: true,
        marked: false,
        bytes_marked: 0,
        flightsize_before: 0,
        flightsize_after: 1,
        in_recovery: true,
        rtt: Some(100 * MILLISECOND),
        latest_rtt: None,
        srtt: Some(100 * MILLISECOND),
        delivery: None,
        rate: None,
    }
}

/// A controller for which 8000 bytes were acknowledged in a round trip: 80,000 bytes/s x 100 ms.
fn seen_8000<Base: WindowControl>(base: Base) -> Westwood<Base> {
    let mut westwood = Westwood::new(base, RateParameters::WESTWOOD_PLUS);
    westwood.on_ack(&ack(0, 1000));
    westwood.on_ack(&ack(50, 4000));
    westwood.on_ack(&ack(100, 4000));
    westwood
}

#[test]
fn a_loss_sets_the_window_to_what_the_path_carried() {
    let mut large = seen_8000(sctp(20_000));
    large.on_loss(0, LossCause::FastRetransmit, 20_000);
    assert_eq!((large.cwnd(), large.ssthresh()), (8000, 8000));
    let mut small = seen_8000(sctp(5000));
    small.on_loss(0, LossCause::FastRetransmit, 5000);
    assert_eq!(
        (small.cwnd(), small.ssthresh()),
        (5000, 8000),
        "a loss never opens a window"
    );
    let mut timeout = seen_8000(sctp(20_000));
    timeout.on_loss(0, LossCause::Timeout, 20_000);
    assert_eq!((timeout.cwnd(), timeout.ssthresh()), (1000, 8000));
}

#[test]
fn tcp_is_set_alike() {
    let mut large = seen_8000(tcp(20.0));
    large.on_loss(0, LossCause::FastRetransmit, 20_000);
    assert_eq!((large.cwnd(), large.ssthresh()), (8000, 8000));
    let mut timeout = seen_8000(tcp(20.0));
    timeout.on_loss(0, LossCause::Timeout, 20_000);
    assert_eq!((timeout.cwnd(), timeout.ssthresh()), (1000, 8000));
}

#[test]
fn without_an_estimate_the_base_answers_and_the_floor_holds() {
    let mut unknown = Westwood::new(sctp(20_000), RateParameters::WESTWOOD_PLUS);
    unknown.on_loss(0, LossCause::FastRetransmit, 20_000);
    assert_eq!((unknown.cwnd(), unknown.ssthresh()), (10_000, 10_000));
    let mut slow = Westwood::new(sctp(20_000), RateParameters::WESTWOOD_PLUS);
    for at in 0..10 {
        slow.on_ack(&ack(100 * at, 10));
    }
    slow.on_loss(0, LossCause::FastRetransmit, 20_000);
    assert_eq!((slow.cwnd(), slow.ssthresh()), (2000, 2000));
}
