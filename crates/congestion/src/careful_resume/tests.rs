//! Tests of the examples of RFC 9959 (Examples of the Careful Resume Phases), packet by packet, and
//! of properties.

use super::*;
use crate::tcp_newreno::{Growth, HalvingBasis, TcpNewReno, TcpNewRenoConfig};
use anabranch_transport::time::{MILLISECOND as MS, SECOND};

const SEGMENT: u64 = 1000;
const RTT: Nanos = 600 * MS;

fn reno() -> Box<dyn CongestionControl> {
    Box::new(TcpNewReno::new(TcpNewRenoConfig {
        segment: SEGMENT,
        initial_window: 10.0,
        initial_ssthresh: f64::INFINITY,
        restart_window: None,
        growth: Growth::PerAck,
        halving_basis: HalvingBasis::FlightSize,
        integer_halving: false,
        cwnd_floor: true,
        whole_segments: true,
    }))
}

fn saved(packets: u64) -> SavedParameters {
    SavedParameters {
        cwnd: packets * SEGMENT,
        rtt: RTT,
        expires: 3600 * SECOND,
    }
}

/// A sender whose packets are acknowledged one by one.
struct Flow {
    control: CarefulResume,
    now: Nanos,
    flight: u64,
    rtt: Nanos,
}

impl Flow {
    fn new(saved: SavedParameters) -> Self {
        let parameters = ResumeParameters::default();
        let mut control = CarefulResume::new(reno(), SEGMENT, parameters);
        assert!(control.resume(saved));
        Self {
            control,
            now: 0,
            flight: 0,
            rtt: RTT,
        }
    }

    /// Sends as many packets as the window permits, at most `most`. Returns the number of packets
    /// sent.
    fn send(&mut self, most: u64) -> u64 {
        let mut sent = 0;
        while sent < most && self.flight + SEGMENT <= self.control.cwnd() {
            self.flight += SEGMENT;
            self.control.on_sent(self.now, SEGMENT, self.flight);
            sent += 1;
        }
        sent
    }

    fn ack_with(&mut self, in_recovery: bool) {
        let before = self.flight;
        self.flight -= SEGMENT;
        self.control.on_ack(&AckSample {
            now: self.now,
            bytes_acked: SEGMENT,
            segments_acked: 1,
            cumulative_advanced: !in_recovery,
            flightsize_before: before,
            flightsize_after: self.flight,
            in_recovery,
            latest_rtt: Some(self.rtt),
            ..AckSample::default()
        });
    }

    fn ack(&mut self) {
        self.ack_with(false);
    }

    /// Sends the initial window, which is acknowledged a round trip later. For each acknowledgement
    /// two new packets are sent, as in slow start. The last acknowledgement confirms the path.
    fn reconnoitre(&mut self) {
        assert_eq!(self.send(u64::MAX), 10);
        self.now += self.rtt;
        for _ in 0..9 {
            self.ack();
            assert_eq!(self.control.phase(), Phase::Reconnaissance);
            assert_eq!(self.send(u64::MAX), 2);
        }
        self.ack();
    }

    fn trigger(&self) -> Trigger {
        self.control.transitions().last().expect("a change").trigger
    }

    fn packets(&self) -> (u64, u64) {
        let of = |bytes: u64| bytes / SEGMENT;
        (of(self.control.cwnd()), of(self.control.pipe_size()))
    }
}

/// "Example with No Loss": the saved window is 300 packets, so the window jumps to 150. The
/// acknowledgement of the last unvalidated packet validates the jump.
#[test]
fn a_jump_is_validated() {
    let mut flow = Flow::new(saved(300));
    flow.reconnoitre();
    assert_eq!(flow.control.phase(), Phase::Unvalidated);
    assert_eq!(flow.trigger(), Trigger::CongestionWindowLimited);
    assert_eq!(flow.packets(), (150, 18));
    // 132 packets are sent, of which the last one fills the window.
    assert_eq!(flow.send(131), 131);
    assert_eq!(flow.control.phase(), Phase::Unvalidated);
    assert_eq!(flow.send(u64::MAX), 1);
    assert_eq!(flow.control.phase(), Phase::Validating);
    assert_eq!(flow.trigger(), Trigger::LastUnvalidatedPacketSent);
    assert_eq!(flow.packets(), (150, 18));
    flow.now += flow.rtt;
    // While the 150 packets are acknowledged, the window grows by slow start.
    for acked in 1..150 {
        flow.ack();
        assert_eq!(flow.control.phase(), Phase::Validating);
        assert_eq!(flow.packets(), (150 + acked, 18 + acked));
    }
    flow.ack();
    assert_eq!(flow.control.phase(), Phase::Normal);
    assert_eq!(flow.trigger(), Trigger::LastUnvalidatedPacketAcknowledged);
    assert_eq!(flow.packets().0, 300);
    assert!(!flow.control.is_refuted());
}

/// "Example with No Loss, Rate-Limited": 50 unvalidated packets are sent, and the window is set to
/// the bytes in flight.
#[test]
fn a_rate_limited_sender_keeps_what_it_used() {
    let mut flow = Flow::new(saved(300));
    flow.reconnoitre();
    assert_eq!(flow.send(50), 50);
    flow.now += flow.rtt;
    for acked in 1..=18 {
        flow.ack();
        assert_eq!(flow.control.phase(), Phase::Unvalidated, "packet {acked}");
        assert_eq!(
            flow.packets(),
            (150, 18 + acked),
            "no growth before validation"
        );
    }
    flow.ack(); // of the first unvalidated packet: 49 in flight, PipeSize 37
    assert_eq!(flow.trigger(), Trigger::FirstUnvalidatedPacketAcknowledged);
    assert_eq!(flow.control.phase(), Phase::Validating);
    assert_eq!(flow.packets(), (49, 37));
    for _ in 0..49 {
        assert_eq!(flow.control.phase(), Phase::Validating);
        flow.ack();
    }
    assert_eq!(flow.control.phase(), Phase::Normal);
}

/// If a sender has no data after the jump, the window returns to PipeSize, and does not keep the
/// value of the jump.
#[test]
fn an_unused_jump_is_taken_back() {
    let mut flow = Flow::new(saved(300));
    flow.reconnoitre();
    flow.send(1);
    flow.now += flow.rtt + 1;
    flow.ack();
    assert_eq!(flow.trigger(), Trigger::RateLimited);
    assert_eq!(flow.control.phase(), Phase::Normal);
    assert_eq!(flow.packets().0, 19);
}

/// "Example with Loss detected in the Reconnaissance Phase": congestion control continues as usual,
/// and there is no jump later.
#[test]
fn a_loss_before_the_jump_ends_the_use() {
    for cause in [LossCause::FastRetransmit, LossCause::Timeout] {
        let mut flow = Flow::new(saved(300));
        flow.send(u64::MAX);
        flow.now += flow.rtt;
        flow.ack();
        let mut plain = reno();
        plain.on_loss(flow.now, cause, flow.flight);
        flow.control.on_loss(flow.now, cause, flow.flight);
        assert_eq!(flow.control.phase(), Phase::Normal);
        assert_eq!(flow.control.cwnd(), plain.cwnd());
        for _ in 0..9 {
            flow.ack();
        }
        assert_eq!(flow.control.phase(), Phase::Normal);
    }
}

/// "Example with Loss detected in the Validating Phase": the window is PipeSize / 2 and does not
/// grow until the last unvalidated packet is acknowledged; then ssthresh is PipeSize * Beta.
#[test]
fn a_loss_after_the_jump_leads_to_a_safe_retreat() {
    let mut flow = Flow::new(saved(300));
    flow.reconnoitre();
    flow.send(u64::MAX);
    flow.now += flow.rtt;
    for _ in 0..52 {
        flow.ack(); // 18 of the packets before the jump, 34 unvalidated ones
    }
    assert_eq!(flow.packets().1, 70);
    flow.control
        .on_loss(flow.now, LossCause::FastRetransmit, flow.flight);
    assert_eq!(flow.trigger(), Trigger::PacketLoss);
    assert_eq!(flow.control.phase(), Phase::SafeRetreat);
    assert_eq!(flow.packets(), (35, 70));
    assert!(flow.control.is_refuted());
    // An undo must not restore a larger window either.
    flow.control.on_undo(200_000.0, 200_000);
    assert_eq!(flow.packets().0, 35);
    for acked in 1..98 {
        flow.ack_with(true);
        assert_eq!(flow.control.phase(), Phase::SafeRetreat);
        assert_eq!(flow.packets(), (35, 70 + acked));
    }
    flow.ack(); // of the retransmission
    assert_eq!(flow.control.phase(), Phase::Normal);
    assert_eq!(flow.trigger(), Trigger::ExitRecovery);
    assert_eq!(flow.control.ssthresh(), 168 * SEGMENT / 2);
}

#[test]
fn marks_and_changed_paths_lead_to_a_retreat_too() {
    let mut flow = Flow::new(saved(300));
    flow.reconnoitre();
    flow.send(u64::MAX);
    flow.control.on_ecn(flow.now, flow.flight);
    assert_eq!(flow.trigger(), Trigger::EcnCe);
    assert_eq!(flow.packets().0, 9);

    let mut flow = Flow::new(saved(300));
    flow.reconnoitre();
    flow.send(20);
    flow.rtt = RTT / 2;
    flow.now += flow.rtt;
    flow.ack();
    assert_eq!(flow.trigger(), Trigger::PathChanged);
    assert_eq!(flow.control.phase(), Phase::SafeRetreat);
}

/// A timeout ends the use of the saved parameters, and they are deleted.
#[test]
fn a_timeout_after_the_jump_ends_the_use() {
    let mut flow = Flow::new(saved(300));
    flow.reconnoitre();
    flow.send(u64::MAX);
    flow.control
        .on_loss(flow.now, LossCause::Timeout, flow.flight);
    assert_eq!(flow.control.phase(), Phase::Normal);
    assert_eq!(flow.packets().0, 1);
    assert!(flow.control.is_refuted());
}

/// The lower bound of the RTT is exclusive, and an RTT of ten times the saved RTT is still
/// accepted.
#[test]
fn the_round_trip_confirms_the_path() {
    for (rtt, jumps) in [
        (RTT / 2, false),
        (RTT / 2 + 1, true),
        (10 * RTT, true),
        (10 * RTT + 1, false),
    ] {
        let mut flow = Flow::new(saved(300));
        flow.rtt = rtt;
        flow.reconnoitre();
        let unvalidated = flow.control.phase() == Phase::Unvalidated;
        assert_eq!(unvalidated, jumps, "{rtt}");
        if !jumps {
            assert_eq!(flow.trigger(), Trigger::RttNotValidated);
            assert_eq!(flow.packets().0, 20, "the window of slow start");
        }
    }
}

#[test]
fn expired_sets_and_small_jumps_are_not_used() {
    let mut set = saved(300);
    set.expires = RTT;
    let mut flow = Flow::new(set);
    flow.reconnoitre();
    assert_eq!(flow.trigger(), Trigger::Expired);
    let mut flow = Flow::new(saved(40));
    flow.reconnoitre();
    assert_eq!(flow.trigger(), Trigger::NoLargerWindow);
    let mut flow = Flow::new(saved(300));
    flow.control.parameters.max_jump = 30 * SEGMENT;
    flow.reconnoitre();
    assert_eq!(flow.packets().0, 30);
}

/// Until all unvalidated packets are sent, packets are paced over the current RTT; afterwards the
/// inner controller decides.
#[test]
fn the_jump_is_paced() {
    let mut flow = Flow::new(saved(300));
    assert_eq!(flow.control.pacing_rate(), None);
    flow.reconnoitre();
    let rate = flow.control.pacing_rate().expect("paced");
    assert_eq!(rate, 150_000.0 / 0.6);
    flow.send(u64::MAX);
    assert_eq!(flow.control.pacing_rate(), None);
}

/// Observation: the bytes delivered in the minimum RTT. A rate-limited round can only raise the
/// value, and a value of less than four initial windows is not saved.
#[test]
fn the_capacity_is_observed() {
    let mut control = CarefulResume::new(reno(), SEGMENT, ResumeParameters::default());
    let mut round = |rate: f64, app_limited: bool, flight: u64| {
        let delivery = crate::Delivery {
            rate,
            span: RTT,
            app_limited,
        };
        control.on_ack(&AckSample {
            latest_rtt: Some(RTT),
            delivery: Some(delivery),
            flightsize_before: flight,
            ..AckSample::default()
        });
        control.observation(SECOND).map(|it| (it.cwnd, it.rtt))
    };
    assert_eq!(round(39_999.0 / 0.6, false, 10_000), None);
    assert_eq!(round(100_000.0, false, 10_000), Some((60_000, RTT)));
    assert_eq!(round(80_000.0, true, 10_000), Some((60_000, RTT)));
    assert_eq!(round(80_000.0, false, 8000), Some((60_000, RTT)), "the end");
    assert_eq!(round(120_000.0, true, 10_000), Some((72_000, RTT)));
    assert_eq!(round(80_000.0, false, 10_000), Some((48_000, RTT)));
}

#[test]
fn a_set_has_one_user_at_a_time() {
    let mut store = SavedPaths::new(2);
    assert_eq!(store.take(0, &1), None);
    store.save(1, saved(300));
    assert_eq!(store.take(0, &1), Some(saved(300)));
    assert_eq!(store.take(0, &1), None, "another flow uses it");
    // The flow saves its observations while it runs. The saved parameters then remain reserved for
    // this flow.
    store.save(1, saved(200));
    assert_eq!(store.take(0, &1), None);
    store.release(&1, false);
    assert_eq!(store.take(0, &1), Some(saved(200)));
    store.release(&1, true);
    assert_eq!(store.take(0, &1), None, "it was wrong");
    store.save(1, saved(300));
    let expires = saved(300).expires;
    assert_eq!(store.take(expires, &1), None);
    assert_eq!(store.iter().count(), 0, "an expired set is deleted");
    for (key, expires) in [(1, 30), (2, 10), (3, 20)] {
        store.save(
            key,
            SavedParameters {
                expires,
                ..saved(1)
            },
        );
    }
    let keys: Vec<_> = store.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, [1, 3], "the first to expire makes way");
}

/// SplitMix64 generator, of which only the upper half is used.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 32) as u32
    }
}

/// Under random losses, marks, round-trip times and pauses, the window never jumps above half of
/// the saved window, unvalidated packets are always paced, and a retreat never increases the
/// window.
#[test]
fn invariants_hold_under_random_events() {
    for seed in 0..2000 {
        let mut random = Random(seed);
        let mut flow = Flow::new(saved(40 + u64::from(random.next() % 400)));
        let half = flow.control.saved.expect("a set").cwnd / 2;
        let mut retreat = u64::MAX;
        for _ in 0..400 {
            match random.next() % 64 {
                0 => flow
                    .control
                    .on_loss(flow.now, LossCause::FastRetransmit, flow.flight),
                1 => flow.control.on_ecn(flow.now, flow.flight),
                2 => flow.now += RTT * u64::from(random.next() % 3),
                3 => flow.rtt = RTT / 3 + u64::from(random.next()) % RTT,
                4..30 => {
                    flow.send(u64::from(random.next() % 8));
                }
                _ if flow.flight > 0 => flow.ack(),
                _ => {
                    flow.send(1);
                }
            }
            flow.now += MS;
            match flow.control.phase() {
                Phase::Unvalidated => {
                    assert!(flow.control.cwnd() <= half, "seed {seed}");
                    assert!(flow.control.pacing_rate().is_some(), "seed {seed}");
                }
                Phase::SafeRetreat => {
                    assert!(flow.control.cwnd() <= retreat, "seed {seed}");
                    retreat = flow.control.cwnd();
                }
                _ => {}
            }
        }
    }
}
