use super::*;
use crate::coupled_paths::CoupledPath;
use crate::sctp_newreno::{SctpNewReno, SctpParameters};

/// A controller with units of 1468 bytes.
fn controller(cwnd: f64, ssthresh: f64) -> CmtRp<SctpNewReno> {
    let mut base = SctpNewReno::new(SctpParameters::default());
    base.set_cwnd(cwnd);
    base.set_ssthresh(ssthresh);
    CmtRp::new(base)
}

fn coupled(windows: &[(f64, f64)]) -> CoupledPaths {
    let member = |&(cwnd, ssthresh): &(f64, f64)| CoupledPath {
        cwnd,
        ssthresh,
        ..CoupledPath::default()
    };
    CoupledPaths::of(CoupledPath::default(), windows.iter().map(member))
}

fn ack(bytes: u64, flight: u64) -> AckSample {
    AckSample {
        bytes_acked: bytes,
        segments_acked: 1,
        cumulative_advanced: true,
        flightsize_before: flight,
        flightsize_after: flight - bytes,
        ..AckSample::default()
    }
}

/// The path has three quarters of the sum of ssthresh, so it grows by 1468 x 3/4 = 1101.
#[test]
fn it_grows_by_its_share_of_the_thresholds() {
    let mut slow_start = controller(15_000.0, 30_000.0);
    slow_start.on_coupled_paths(&coupled(&[(15_000.0, 30_000.0), (5_000.0, 10_000.0)]));
    slow_start.on_ack(&ack(1468, 15_000));
    assert_eq!(slow_start.cwnd(), 16_101);
    let mut avoidance = controller(14_680.0, 12_000.0);
    avoidance.on_coupled_paths(&coupled(&[(14_680.0, 12_000.0), (5_000.0, 4_000.0)]));
    for _ in 0..10 {
        avoidance.on_ack(&ack(1468, 14_680));
    }
    assert_eq!(avoidance.cwnd(), 14_680 + 1101);
}

#[test]
fn a_loss_takes_half_of_all_windows_from_the_path_that_lost() {
    let all = coupled(&[(20_000.0, 30_000.0), (4_000.0, 10_000.0)]);
    let mut large = controller(20_000.0, 30_000.0);
    large.on_coupled_paths(&all);
    large.on_loss(0, LossCause::FastRetransmit, 0);
    assert_eq!((large.cwnd(), large.ssthresh()), (8_000, 8_000));
    // The formula would give a negative window, so the minimum applies: the path's share of 1/4 of
    // four units, which is one unit.
    let mut small = controller(4_000.0, 10_000.0);
    small.on_coupled_paths(&all);
    small.on_loss(0, LossCause::FastRetransmit, 0);
    assert_eq!((small.cwnd(), small.ssthresh()), (1468, 1468));
    let mut timeout = controller(20_000.0, 30_000.0);
    timeout.on_coupled_paths(&all);
    timeout.on_loss(0, LossCause::Timeout, 0);
    assert_eq!((timeout.cwnd(), timeout.ssthresh()), (1468, 8_000));
}

#[test]
fn alone_it_is_the_protocols_own() {
    let mut alone = controller(20_000.0, 30_000.0);
    let mut base = controller(20_000.0, 30_000.0).base;
    for cc in [&mut alone as &mut dyn CongestionControl, &mut base] {
        cc.on_ack(&ack(1468, 20_000));
        cc.on_loss(0, LossCause::FastRetransmit, 0);
        cc.on_ack(&ack(1468, 20_000));
    }
    assert_eq!(
        (alone.cwnd(), alone.ssthresh()),
        (base.cwnd(), base.ssthresh())
    );
}
