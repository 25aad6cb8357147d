//! Tests of BBR version 3 over a simulated bottleneck.

use super::*;
use crate::bottleneck::{Line, SEGMENT};
use crate::sctp_newreno::{SctpNewReno, SctpParameters};
use time::{MILLISECOND as MS, SECOND};

fn bbr() -> Bbr<SctpNewReno> {
    with(BbrParameters::default())
}

fn with(parameters: BbrParameters) -> Bbr<SctpNewReno> {
    let base = SctpNewReno::new(SctpParameters {
        unit: SEGMENT,
        initial_cwnd: 10 * SEGMENT,
        ..SctpParameters::default()
    });
    Bbr::new(base, parameters)
}

fn bottleneck(flows: usize, room: usize) -> Line<Bbr<SctpNewReno>, State> {
    Line::new(flows, room, bbr, |control| control.state)
}

/// Test cases of the draft: Startup ends when the bandwidth stops growing, Drain ends when few
/// enough bytes are in flight, and DOWN precedes CRUISE.
#[test]
fn the_path_is_filled_drained_and_probed() {
    let mut line = bottleneck(1, 1000);
    line.run_until(SECOND);
    let control = &line.flows[0].control;
    assert!(control.full_bw.reached);
    let bandwidth = control.max_bw.get();
    assert!((bandwidth / 1_250_000.0 - 1.0).abs() < 0.02, "{bandwidth}");
    let least = control.min_rtt.get().unwrap();
    assert!((40 * MS..=42 * MS).contains(&least), "{least}");
    let states = &line.flows[0].states;
    assert_eq!(states[..2], [State::Startup, State::Drain]);
    // DOWN may last only for one acknowledgement, because Drain has emptied the queue.
    let cruise = states.iter().position(|&state| state == State::ProbeCruise);
    assert!(matches!(cruise, Some(2 | 3)), "{states:?}");
    // The time between two probes is 2 to 3 s, or as many rounds as Reno would need.
    line.run_until(6 * SECOND);
    let states = &line.flows[0].states;
    let refill = states
        .iter()
        .position(|&state| state == State::ProbeRefill)
        .unwrap();
    assert_eq!(states[refill + 1], State::ProbeUp);
    assert_eq!(states[refill + 2], State::ProbeDown);
    // The link is fully used, and the queue is nearly empty on average.
    let delivered = line.delivered_in(4 * SECOND)[0];
    assert!(delivered > 4800, "{delivered} of 5000");
    let control = &line.flows[0].control;
    assert!(control.cwnd < 3.0 * 51_000.0, "{}", control.cwnd);
}

/// Five seconds after the last measurement of the minimum round-trip time, the flow halves its
/// window for 200 ms.
#[test]
fn the_least_round_trip_is_probed_for_every_five_seconds() {
    let mut line = bottleneck(1, 1000);
    // There is only one flow, because the queue of another flow would hide the minimum. The flow's
    // own queue is full only at the start.
    line.run_until(4 * SECOND);
    let count = |line: &Line<Bbr<SctpNewReno>, State>| {
        let states = &line.flows[0].states;
        states
            .iter()
            .filter(|&&state| state == State::ProbeRtt)
            .count()
    };
    let before = count(&line);
    line.delay = 60 * MS; // from now on the minimum round-trip time is longer
    line.run_until(16 * SECOND);
    let probes = count(&line) - before;
    assert!((1..=3).contains(&probes), "{probes}");
    let least = line.flows[0].control.min_rtt.get().unwrap();
    assert!(
        least >= 60 * MS,
        "{least}: a longer path is believed after 10 s"
    );
}

#[test]
fn a_random_loss_of_one_percent_costs_little() {
    let mut line = bottleneck(1, 100);
    line.loss = 100;
    line.run_until(5 * SECOND);
    let delivered = line.delivered_in(20 * SECOND)[0];
    // With these losses a Reno flow has 12 of 50 segments in flight (formula of Mathis). After a
    // round trip with a loss, BBR limits the bytes in flight to the bytes delivered in it, until
    // the next probe.
    assert!(delivered > 21_000, "{delivered} of 25000");
}

#[test]
fn two_flows_share_a_line() {
    for room in [50, 200] {
        let mut line = bottleneck(2, room);
        line.flows[1].paused = true;
        line.run_until(5 * SECOND);
        line.flows[1].paused = false;
        line.run_until(60 * SECOND);
        let got = line.delivered_in(60 * SECOND);
        let (a, b) = (got[0] as f64, got[1] as f64);
        let jain = (a + b) * (a + b) / (2.0 * (a * a + b * b));
        assert!(jain > 0.9, "{room}: {got:?}");
        assert!(a + b > 71_000.0, "{room}: {got:?} of 75000");
    }
}

/// Test case of the draft: a flow that was idle needs no ProbeRTT, because the queue has drained.
#[test]
fn a_pause_is_as_good_as_a_probe_for_the_round_trip() {
    let mut line = bottleneck(1, 1000);
    line.run_until(3 * SECOND);
    line.flows[0].paused = true;
    line.run_until(4 * SECOND);
    let flow = &mut line.flows[0];
    assert!(flow.flying.is_empty());
    flow.control.on_app_limited(line.now);
    flow.sampler.on_app_limited(0);
    line.run_until(12 * SECOND);
    let states = line.flows[0].states.len();
    line.flows[0].paused = false;
    line.run_until(12 * SECOND + 60 * MS);
    assert!(!line.flows[0].states[states..].contains(&State::ProbeRtt));
}

#[test]
fn too_many_losses_bound_what_is_in_flight() {
    // 3 of 100 segments in flight are lost, and 2 % are tolerated, so the bound is at the first
    // loss above the threshold.
    let mut control = bbr();
    control.long.probe_sample = true;
    control.full_bw.reached = true;
    control.state = State::ProbeUp;
    for lost in 1..=3 {
        control.on_packet_lost(&LostPacket {
            size: 1000,
            tx_in_flight: 100_000,
            lost: lost * 1000,
            total_delivered: 500_000,
            app_limited: false,
            adjacent: false,
        });
    }
    // 99,000 bytes were in flight before the packet, of which 2000 were lost: (0.02 x
    // 99,000 - 2000) / 0.98 = -20.4.
    assert!(
        (control.long.inflight - 98_979.6).abs() < 0.1,
        "{}",
        control.long.inflight
    );
    assert!(control.cycle.go_down && control.long.prev_probe_too_high);
}

#[test]
fn a_timeout_leaves_one_segment_and_a_spurious_one_gives_all_back() {
    let mut control = bbr();
    let before = control.cwnd();
    control.on_loss(0, LossCause::Timeout, before);
    assert_eq!(control.cwnd(), SEGMENT);
    control.on_undo(0.0, 0);
    assert_eq!(control.cwnd(), before);
}

/// Losses bound the bytes in flight only if they exceed the threshold: 2 % of the bytes in flight,
/// as in the draft, or 5 %.
#[test]
fn the_threshold_decides_which_losses_end_a_probe() {
    let lost = |control: &mut Bbr<SctpNewReno>, size: u64| {
        control.long.probe_sample = true;
        control.on_packet_lost(&LostPacket {
            size,
            lost: size,
            tx_in_flight: 100_000,
            total_delivered: 0,
            app_limited: false,
            adjacent: false,
        });
        control.long.inflight
    };
    for (threshold, size, bounded) in [
        (0.02, 2_000, false),
        (0.02, 2_001, true),
        (0.05, 5_000, false),
        (0.05, 5_001, true),
    ] {
        let mut control = with(BbrParameters {
            loss_threshold: threshold,
            ..BbrParameters::default()
        });
        let inflight = lost(&mut control, size);
        assert_eq!(inflight < f64::INFINITY, bounded, "{threshold} {size}");
        if bounded {
            // The bound consists of the bytes before the packet, and of those at which the loss
            // rate reaches the threshold (draft, InflightAtLoss).
            let before = (100_000 - size) as f64;
            let expected = before + threshold * before / (1.0 - threshold);
            assert!((inflight - expected).abs() < 1.0, "{inflight} {expected}");
        }
    }
}

/// The gains can be set by parameters; all other factors are constant.
#[test]
fn gains_are_parameters() {
    let parameters = BbrParameters {
        startup_gain: 3.0,
        cwnd_gain: 2.5,
        probe_gain: 1.5,
        loss_threshold: 0.02,
    };
    for (state, pacing, cwnd) in [
        (State::Startup, 3.0, 2.5),
        (State::Drain, 0.5, 2.5),
        (State::ProbeDown, 0.9, 2.5),
        (State::ProbeCruise, 1.0, 2.5),
        (State::ProbeRefill, 1.0, 2.5),
        (State::ProbeUp, 1.5, 2.25),
        (State::ProbeRtt, 1.0, 0.5),
    ] {
        let gains = (state.pacing_gain(&parameters), state.cwnd_gain(&parameters));
        assert_eq!(gains, (pacing, cwnd), "{state:?}");
    }
    // The initial pacing rate is the gain times the initial window per nominal round trip of 1 ms.
    let rate = with(parameters).pacing_rate().expect("a rate");
    assert_eq!(rate, 3.0 * (10 * SEGMENT) as f64 / 0.001);
}
