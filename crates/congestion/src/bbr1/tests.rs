//! Tests of BBR version 1 over a simulated bottleneck, with values computed by hand.

use super::*;
use crate::bottleneck::{Line, SEGMENT};
use crate::sctp_newreno::{SctpNewReno, SctpParameters};
use time::{MILLISECOND as MS, SECOND};

fn bbr1() -> Bbr1<SctpNewReno> {
    let base = SctpNewReno::new(SctpParameters {
        unit: SEGMENT,
        initial_cwnd: 10 * SEGMENT,
        ..SctpParameters::default()
    });
    Bbr1::new(base, Bbr1Parameters::default())
}

type Bottleneck = Line<Bbr1<SctpNewReno>, State>;

fn bottleneck(flows: usize, room: usize) -> Bottleneck {
    Line::new(flows, room, bbr1, |control| control.state)
}

#[test]
fn the_pipe_is_filled_and_drained() {
    let mut line = bottleneck(1, 1000);
    line.run_until(SECOND);
    let control = &line.flows[0].control;
    assert!(control.filled_pipe);
    let bandwidth = control.btl_bw.get();
    assert!((bandwidth / 1_250_000.0 - 1.0).abs() < 0.02, "{bandwidth}");
    let states = [State::Startup, State::Drain, State::ProbeBw];
    assert_eq!(line.flows[0].states, states);
    line.run_until(3 * SECOND);
    let delivered = line.delivered_in(4 * SECOND)[0];
    assert!(delivered > 4900, "{delivered} of 5000");
    // The window is cwnd_gain = 2 times 50 segments, plus three quanta of two segments.
    let cwnd = line.flows[0].control.cwnd;
    assert!((cwnd / 107_000.0 - 1.0).abs() < 0.05, "{cwnd}");
}

/// The gain is above 1 in one phase, below 1 in one phase, and 1 in six phases. Each phase takes at
/// least a round trip.
#[test]
fn the_gain_cycle_has_eight_phases() {
    let mut control = bbr1();
    control.rt_prop = Some((40 * MS, 0));
    control.enter_probe_bw(0);
    assert_ne!(
        control.pacing_gain, 0.75,
        "the cycle does not begin by draining"
    );
    while control.cycle_index != 0 {
        control.advance_cycle(0);
    }
    let mut gains = vec![];
    for _ in 0..8 {
        gains.push(control.pacing_gain);
        control.advance_cycle(0);
    }
    assert_eq!(gains, [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
}

/// Ten seconds after the last measurement of the minimum round-trip time, the window is four
/// segments for 200 ms.
#[test]
fn the_least_round_trip_is_probed_for_every_ten_seconds() {
    let mut line = bottleneck(1, 1000);
    line.run_until(9 * SECOND);
    assert!(!line.flows[0].states.contains(&State::ProbeRtt));
    line.delay = 60 * MS;
    let mut least = u64::MAX;
    while line.now < 32 * SECOND {
        line.run_until(line.now + 10 * MS);
        least = least.min(line.flows[0].control.cwnd());
    }
    let probes = line.flows[0].states.iter();
    let probes = probes.filter(|&&state| state == State::ProbeRtt).count();
    assert!((2..=3).contains(&probes), "{probes}");
    assert_eq!(least, 4 * SEGMENT);
}

/// A loss does not bound the model, unlike in version 3: the window equals the bytes in flight for
/// one round trip, and then grows back to its target.
#[test]
fn a_loss_costs_one_round_of_packet_conservation() {
    let mut line = bottleneck(1, 1000);
    line.run_until(3 * SECOND);
    let control = &mut line.flows[0].control;
    let (bandwidth, pace) = (control.btl_bw.get(), control.pacing_rate);
    let target = control.inflight(control.cwnd_gain);
    control.on_packet_lost(&LostPacket {
        size: 10_000,
        tx_in_flight: 50_000,
        lost: 10_000,
        total_delivered: control.delivered,
        app_limited: false,
        adjacent: false,
    });
    control.sent = control.delivered + control.lost + 50_000;
    control.on_loss(line.now, LossCause::FastRetransmit, 0);
    assert_eq!(control.cwnd(), 50_000);
    let ack = |control: &mut Bbr1<SctpNewReno>, number: u64, flight: u64| {
        let total = control.delivered + SEGMENT;
        control.sent = total + control.lost + flight;
        control.on_ack(&AckSample {
            now: 3 * SECOND + number * MS,
            bytes_acked: SEGMENT,
            flightsize_before: flight + SEGMENT,
            flightsize_after: flight,
            in_recovery: true,
            rate: Some(RateSample {
                rate: bandwidth / 2.0,
                newly_acked: SEGMENT,
                total_delivered: total,
                prior_delivered: total.saturating_sub(40_000),
                app_limited: false,
                ..RateSample::default()
            }),
            ..AckSample::default()
        });
        control.cwnd()
    };
    assert_eq!(ack(control, 1, 39_000), 40_000, "less what was lost");
    assert_eq!(ack(control, 2, 39_000), 40_000, "as many go as arrive");
    let mut last = 0;
    for number in 3..200 {
        last = ack(control, number, 39_000);
    }
    assert!(
        (last as f64 / target - 1.0).abs() < 0.01,
        "{last} of {target}"
    );
    assert!((control.btl_bw.get() / bandwidth - 1.0).abs() < 0.01);
    assert!(control.pacing_rate >= 0.75 * pace);
}

#[test]
fn the_bandwidth_is_the_largest_of_ten_round_trips() {
    let mut filter = MaxFilter::default();
    filter.update(1, 100.0);
    filter.update(2, 80.0);
    filter.update(5, 90.0);
    assert_eq!(filter.get(), 100.0);
    filter.update(10, 50.0);
    assert_eq!(filter.get(), 100.0);
    filter.update(11, 50.0);
    assert_eq!(filter.get(), 90.0);
    filter.update(15, 10.0);
    assert_eq!(filter.get(), 50.0);
}

#[test]
fn a_timeout_leaves_one_segment_and_the_window_is_restored_after_it() {
    let mut control = bbr1();
    let before = control.cwnd();
    control.on_loss(0, LossCause::Timeout, before);
    assert_eq!(control.cwnd(), SEGMENT);
    control.leave_recovery(true);
    assert_eq!(control.cwnd(), SEGMENT);
    control.leave_recovery(false);
    assert_eq!(control.cwnd(), before);
}
