//! RACK-TLP computed by hand (RFC 8985), with a round-trip time of 100 ms.

use super::*;

const MS: u64 = MILLISECOND;

/// Sender with RACK whose cwnd is `units` segments, at time 0.
fn rig(units: u32) -> Rig {
    Rig::new(&with_rack(units), u32::MAX - 3)
}

fn with_rack(units: u32) -> Config {
    let mut profile = Profile::rfc9260();
    profile.initial_window = crate::profile::InitialCwnd::Units(units.into());
    profile.growth_needs_cumulative_advance = true;
    profile.max_burst_applies = MaxBurst::Off;
    Config {
        rack: true,
        ..config(profile)
    }
}

impl Rig {
    fn at(&mut self, milliseconds: u64) -> &mut Self {
        self.now = milliseconds * MS;
        self
    }

    fn due(&self) -> Option<u64> {
        self.sender.next_deadline(&self.paths).map(|at| at / MS)
    }

    /// Runs the reordering and probe timers.
    fn expire(&mut self) -> Vec<u32> {
        self.sender
            .handle_timed(self.now, &mut self.paths, &mut self.trace);
        self.drain()
    }

    fn duplicate(&mut self, next: u32, tsn: u32) {
        let sack = OutgoingSack {
            cumulative_tsn_ack: self.start.add(next).prev(),
            a_rwnd: 65536,
            gap_blocks: std::iter::empty(),
            duplicates: &[self.start.add(tsn)],
        };
        self.sender
            .handle_sack(self.now, &sack.to_sack(), &mut self.paths, &mut self.trace);
    }
}

#[test]
fn a_hole_is_lost_a_quarter_of_a_round_trip_after_what_came_later() {
    let mut rig = rig(20);
    rig.offer(100, MESSAGE);
    assert_eq!(rig.drain().len(), 20);
    rig.at(100).sack_and_drain(0, &[(1, 1)]);
    assert_eq!(rig.due(), Some(125));
    assert!(rig.at(124).expire().is_empty());
    assert_eq!(rig.at(125).expire(), [0]);
    assert_eq!(rig.cwnd(), 10 * SEGMENT);
}

#[test]
fn a_hole_is_lost_at_once_when_three_packets_came_later() {
    let mut rig = rig(20);
    rig.offer(100, MESSAGE);
    rig.drain();
    rig.at(100).sack_and_drain(0, &[(1, 2)]);
    assert_eq!(rig.sent.len(), 22);
    assert_eq!(rig.sack_and_drain(0, &[(1, 3)])[0], 0);
}

/// Segment 0 is lost, and its retransmission is lost, too. Data sent after the retransmission
/// arrives and shows the second loss.
#[test]
fn a_lost_retransmission_is_found_without_a_timeout_and_cuts_again() {
    let mut rig = rig(20);
    rig.offer(100, MESSAGE);
    rig.drain();
    assert_eq!(rig.at(101).sack_and_drain(0, &[(1, 3)]), [0]);
    assert_eq!(rig.cwnd(), 10 * SEGMENT);
    // The flight is 17 segments, and falls below cwnd with the eighth acknowledged segment.
    assert!(rig.at(105).sack_and_drain(0, &[(1, 10)]).is_empty());
    assert_eq!(rig.at(110).sack_and_drain(0, &[(1, 12)]), [20, 21]);
    assert_eq!(rig.at(120).sack_and_drain(0, &[(1, 19)]).len(), 7);
    // The SACK acknowledges segment 20 and not the retransmission sent at 101 ms. The
    // retransmission is therefore lost, because it was sent before segment 20, and recovery has no
    // reordering wait.
    let again = rig.at(210).sack_and_drain(0, &[(1, 20)]);
    assert_eq!(again[0], 0);
    assert_eq!(rig.cwnd(), 5 * SEGMENT, "lowered twice (RFC 5681 §4.3)");
    assert_eq!(rig.at(310).sack_and_drain(28, &[]).len(), 5);
    assert_eq!(rig.sender.statistics().timeouts, 0);
}

/// The last two of three segments are lost.
#[test]
fn a_lost_tail_is_probed_two_round_trips_after_the_last_acknowledgement() {
    let mut rig = rig(20);
    rig.offer(3, MESSAGE);
    assert_eq!(rig.drain(), [0, 1, 2]);
    // Without a measurement the probe timeout is one second, which is also the RTO.
    assert_eq!(rig.due(), Some(1000));
    rig.at(100).sack_and_drain(1, &[]);
    assert_eq!(rig.due(), Some(300));
    assert_eq!(rig.at(300).expire(), [2]);
    assert_eq!(rig.due(), Some(1300), "T3-rtx begins anew");
    // The probe has arrived. Segment 1 was sent before it, and is overdue.
    assert_eq!(rig.at(400).sack_and_drain(1, &[(2, 2)]), [1]);
    assert_eq!(rig.cwnd(), 10 * SEGMENT);
    rig.at(500).sack_and_drain(3, &[]);
    assert_eq!((rig.due(), rig.flight()), (None, 0));
    let statistics = rig.sender.statistics();
    assert_eq!((statistics.tail_probes, statistics.timeouts), (1, 0));
}

/// The last of two segments is lost. The probe repairs the loss, and cwnd is reduced once later
/// data shows that there was a loss.
#[test]
fn a_loss_that_the_probe_repairs_cuts_the_window() {
    let mut rig = rig(20);
    rig.offer(2, MESSAGE);
    rig.drain();
    rig.at(100).sack_and_drain(1, &[]);
    // One segment is in flight, whose SACK the peer may delay by 200 ms.
    assert_eq!(rig.due(), Some(500));
    assert_eq!(rig.at(500).expire(), [1]);
    rig.at(600).sack_and_drain(2, &[]);
    assert_eq!(rig.cwnd(), 20 * SEGMENT);
    rig.offer(2, MESSAGE);
    rig.drain();
    rig.at(700).sack_and_drain(4, &[]);
    assert_eq!(rig.cwnd(), 10 * SEGMENT);
}

#[test]
fn a_probe_that_came_twice_cuts_nothing() {
    let mut rig = rig(20);
    rig.offer(2, MESSAGE);
    rig.drain();
    rig.at(100).sack_and_drain(1, &[]);
    assert_eq!(rig.at(500).expire(), [1]);
    rig.at(510).sack_and_drain(2, &[]); // of the first transmission, late
    rig.at(600).duplicate(2, 1);
    rig.offer(2, MESSAGE);
    rig.drain();
    rig.at(700).sack_and_drain(4, &[]);
    assert_eq!(rig.cwnd(), 20 * SEGMENT);
}

#[test]
fn the_probe_is_new_data_where_there_is_some_and_whatever_the_window_is() {
    let mut rig = rig(4);
    rig.offer(9, MESSAGE);
    assert_eq!(rig.drain(), [0, 1, 2, 3]);
    rig.at(100).sack_and_drain(1, &[]);
    let (sent, window) = (rig.sent.len() as u32, rig.cwnd());
    assert!(rig.flight() >= window);
    assert_eq!(rig.at(300).expire(), [sent]);
    assert!(rig.flight() > window);
    assert!(rig.expire().is_empty(), "one");
    // The probe arrives, so the other chunks were lost.
    let again = rig.at(400).sack_and_drain(1, &[(sent, sent)]);
    assert_eq!(again[0], 1);
}

/// A timeout marks the lowest chunk as lost, and chunks that should have been acknowledged by then.
#[test]
fn a_timeout_marks_what_is_overdue() {
    let mut rig = rig(20);
    rig.offer(1, MESSAGE);
    rig.drain();
    rig.at(100).sack_and_drain(1, &[]);
    rig.offer(2, MESSAGE);
    rig.drain();
    // Segments 1 and 2 are lost, and so is the probe at 300 ms, which repeats segment 2. Segment 3
    // is sent just before T3-rtx expires.
    assert_eq!(rig.due(), Some(300));
    assert_eq!(rig.at(300).expire(), [2]);
    assert_eq!(rig.due(), Some(1300));
    rig.at(1250);
    rig.offer(1, MESSAGE);
    assert_eq!(rig.drain(), [3]);
    rig.at(1300);
    let outcome = rig
        .sender
        .handle_t3(rig.now, PathId(0), &mut rig.paths, &mut rig.trace);
    assert_eq!(outcome, T3Outcome::Marked { count_error: true });
    assert_eq!(rig.flight(), SEGMENT, "3 may be on its way");
    assert_eq!(rig.drain(), [1]);
    assert_eq!(rig.cwnd(), SEGMENT);
    // cwnd is reduced once for all data sent before the timeout.
    rig.at(1400).sack_and_drain(2, &[(3, 3)]);
    assert!(rig.cwnd() > SEGMENT);
    assert_eq!(rig.sent.last(), Some(&(2, 0)));
    rig.at(1500).sack_and_drain(4, &[]);
    assert_eq!((rig.due(), rig.flight()), (None, 0));
}

#[test]
fn reordered_data_is_waited_for_once_that_was_seen() {
    let mut rig = rig(20);
    rig.offer(100, MESSAGE);
    rig.drain();
    rig.at(100).sack_and_drain(0, &[(1, 2)]);
    rig.at(110).sack_and_drain(3, &[]); // 0 was late
    let before = rig.sent.len();
    // Even after five later segments have arrived, the sender now waits for a quarter of the
    // shortest round-trip time of 100 ms: until 112 ms + 25 ms.
    rig.at(112).sack_and_drain(3, &[(4, 8)]);
    assert!(rig.sent[before..].iter().all(|sent| sent.0 >= 20));
    assert_eq!(rig.due(), Some(137));
    rig.at(120).sack_and_drain(9, &[]);
    assert_eq!(rig.sender.statistics().fast_retransmits, 0);
}

/// The probe timers of two paths expire at the same time (RFC 8985 §7.2), for example after a host
/// was suspended: new data is sent on one path, and the last chunk is retransmitted on the other.
/// When all data has arrived, new data is sent again.
#[test]
fn two_tails_that_are_probed_at_once_leave_nothing_behind() {
    let config = with_rack(1);
    let mut rig = Rig::new(&config, u32::MAX - 3);
    let other = rig
        .paths
        .add(&config, path(2), PathState::Active)
        .expect("a second path");
    rig.offer(3, MESSAGE);
    assert_eq!(rig.drain(), [0]);
    rig.paths.get_mut(PathId(0)).state = PathState::Inactive;
    assert_eq!(rig.drain(), [1]);
    rig.paths.get_mut(PathId(0)).state = PathState::Active;
    assert_eq!(rig.sent, [(0, 0), (1, other.0)]);
    assert_eq!(rig.at(1000).expire(), [1]);
    assert_eq!(rig.at(1100).sack_and_drain(2, &[]), [2]);
}
