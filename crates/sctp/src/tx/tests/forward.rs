//! F-RTO computed by hand (RFC 5682 §3): ten segments are sent at time 0, and T3-rtx expires after
//! one second.

use super::*;

fn rig(set: impl FnOnce(&mut Config)) -> Rig {
    let mut profile = Profile::rfc9260();
    profile.initial_window = crate::profile::InitialCwnd::Units(10);
    profile.max_burst_applies = MaxBurst::Off;
    let mut config = config(profile);
    config.frto = true;
    set(&mut config);
    Rig::new(&config, u32::MAX - 3)
}

impl Rig {
    fn time_out(&mut self) -> Vec<u32> {
        self.now = self.paths.get(PathId(0)).t3_deadline.expect("it runs");
        let (paths, trace) = (&mut self.paths, &mut self.trace);
        self.sender.handle_t3(self.now, PathId(0), paths, trace);
        self.drain()
    }

    /// Numbers of timeouts, spurious timeouts, and retransmitted chunks.
    fn counted(&self) -> (u64, u64, u64) {
        let counted = self.sender.statistics();
        let again = counted.chunks_retransmitted;
        (counted.timeouts, counted.spurious_timeouts, again)
    }
}

/// RFC 5682 §3, Appendix A.1: a delay without a loss. The second SACK acknowledges TSN 1, which was
/// not retransmitted.
#[test]
fn late_data_is_not_sent_again_and_the_window_is_restored() {
    let mut rig = rig(|_| ());
    let ssthresh = rig.paths.get(PathId(0)).cc.ssthresh();
    rig.offer(100, MESSAGE);
    assert_eq!(rig.drain().len(), 10);
    assert_eq!(rig.time_out(), [0]);
    assert_eq!((rig.cwnd(), rig.flight()), (SEGMENT, SEGMENT));
    rig.now += 50 * MILLISECOND;
    assert_eq!(rig.sack_and_drain(1, &[]), [10, 11], "two new ones");
    // Segments 2 to 9 are late, and 10 and 11 are in flight: together ten segments, which is the
    // restored cwnd.
    assert!(rig.sack_and_drain(2, &[]).is_empty());
    assert_eq!((rig.cwnd(), rig.flight()), (10 * SEGMENT, 10 * SEGMENT));
    assert_eq!(rig.paths.get(PathId(0)).cc.ssthresh(), ssthresh);
    assert_eq!(rig.counted(), (1, 1, 1));
    // Slow start continues: two segments for each acknowledged segment.
    assert_eq!(rig.sack_and_drain(3, &[]), [12, 13]);
    assert_eq!(rig.sender.statistics().reductions_undone, 1);
}

/// The next timeout is examined as well, although some data outstanding at the first timeout is
/// unacknowledged.
#[test]
fn a_second_spurious_timeout_is_found_in_the_flight_of_the_first() {
    let mut rig = rig(|_| ());
    rig.offer(100, MESSAGE);
    rig.drain();
    rig.time_out();
    rig.now += 50 * MILLISECOND;
    rig.sack_and_drain(1, &[]);
    rig.sack_and_drain(2, &[]);
    assert_eq!(rig.counted(), (1, 1, 1));
    assert_eq!(rig.time_out(), [2]);
    rig.now += 50 * MILLISECOND;
    assert_eq!(rig.sack_and_drain(3, &[]), [12, 13], "two new ones");
    rig.sack_and_drain(4, &[]);
    assert_eq!(rig.counted(), (2, 2, 2));
}

/// Without the switch, all chunks marked by the timeout are retransmitted although they have
/// arrived.
#[test]
fn without_it_the_whole_window_goes_again() {
    let mut rig = rig(|it| it.frto = false);
    rig.offer(100, MESSAGE);
    rig.drain();
    assert_eq!(rig.time_out(), [0]);
    assert_eq!(rig.sack_and_drain(1, &[]), [1, 2]);
    assert_eq!(rig.sack_and_drain(2, &[]), [3, 4]);
    assert_eq!(rig.counted(), (1, 0, 5));
}

/// All ten chunks are lost. TSN 10, which was sent after the timeout, arrives, so the remaining
/// chunks are retransmitted.
#[test]
fn lost_data_is_retransmitted_after_new_data_is_acknowledged() {
    let mut rig = rig(|_| ());
    rig.offer(100, MESSAGE);
    rig.drain();
    assert_eq!(rig.time_out(), [0]);
    assert_eq!(rig.sack_and_drain(1, &[]), [10, 11]);
    let cwnd = rig.cwnd();
    assert_eq!(rig.sack_and_drain(1, &[(10, 10)])[0], 1);
    assert!(rig.cwnd() <= cwnd + SEGMENT, "{}", rig.cwnd());
    assert_eq!(rig.counted().1, 0);
}

/// The SACK of the first packet acknowledges all data: no chunk is left to examine.
#[test]
fn an_acknowledgement_of_all_ends_it() {
    let mut rig = rig(|_| ());
    rig.offer(100, MESSAGE);
    rig.drain();
    assert_eq!(rig.time_out(), [0]);
    let sent = rig.sack_and_drain(10, &[]);
    assert_eq!(sent[..2], [10, 11]);
    rig.sack_and_drain(12, &[]);
    assert_eq!(rig.counted(), (1, 0, 1));
}

/// There is no new data, or the peer's window has no space for it in addition to data that may be
/// in flight. The remaining data is then retransmitted immediately.
#[test]
fn without_new_data_it_is_a_timeout_as_any() {
    let mut idle = rig(|_| ());
    idle.offer(10, MESSAGE);
    idle.drain();
    assert_eq!(idle.time_out(), [0]);
    assert_eq!(idle.sack_and_drain(1, &[]), [1, 2]);
    let mut rig = rig(|_| ());
    rig.offer(100, MESSAGE);
    rig.drain();
    assert_eq!(rig.time_out(), [0]);
    rig.sack(1, &[], 9 * MESSAGE as u32);
    assert_eq!(rig.drain(), [1, 2]);
    assert_eq!(rig.counted().1, 0);
}

/// While the first packet is in flight, SACKs that do not acknowledge its chunk do not permit
/// further packets.
#[test]
fn nothing_goes_before_the_first_chunk_is_acknowledged() {
    let mut rig = rig(|_| ());
    rig.offer(100, MESSAGE);
    rig.drain();
    assert_eq!(rig.time_out(), [0]);
    assert!(rig.sack_and_drain(0, &[(4, 4)]).is_empty());
    assert!(rig.sack_and_drain(0, &[(4, 5)]).is_empty());
    assert_eq!(rig.sack_and_drain(1, &[(4, 5)]), [10, 11]);
    // The SACK contains no new information, so F-RTO continues to wait.
    assert!(rig.sack_and_drain(1, &[(4, 5)]).is_empty());
    rig.sack_and_drain(2, &[(4, 5)]);
    assert_eq!(rig.counted(), (1, 1, 1));
}

/// The first packet is retransmitted, lost again, and retransmitted a second time. F-RTO does not
/// check whether the second timeout of the same data is spurious (step 1).
#[test]
fn a_second_timeout_is_not_looked_into() {
    let mut rig = rig(|_| ());
    rig.offer(100, MESSAGE);
    rig.drain();
    assert_eq!(rig.time_out(), [0]);
    assert_eq!(rig.time_out(), [0]);
    assert_eq!(rig.sack_and_drain(1, &[]), [1, 2]);
    // After all this data is acknowledged, the next timeout is examined.
    rig.sack_and_drain(10, &[]);
    let sent = *rig.sent.last().expect("new data");
    let first = rig.time_out();
    assert_eq!(first.len(), 1);
    let new = rig.sack_and_drain(first[0] + 1, &[]);
    assert!(new.iter().all(|tsn| *tsn > sent.0), "{new:?}");
    rig.sack_and_drain(first[0] + 2, &[]);
    assert_eq!(rig.counted().1, 1);
}

/// With RACK only one chunk is marked, and the other chunks stay in flight; all other results are
/// the same.
#[test]
fn with_rack_late_data_is_reported_as_well() {
    let mut rig = rig(|it| it.rack = true);
    rig.offer(100, MESSAGE);
    rig.drain();
    let first = rig.time_out();
    assert_eq!(first, [0]);
    rig.now += 50 * MILLISECOND;
    assert_eq!(rig.sack_and_drain(1, &[]), [10, 11]);
    rig.sack_and_drain(2, &[]);
    assert_eq!(rig.cwnd(), 10 * SEGMENT);
    assert_eq!(rig.counted(), (1, 1, 1));
}

/// The retransmitted packet contains several chunks: their acknowledgments do not show whether the
/// timeout was spurious (RFC 4138).
#[test]
fn chunks_that_went_again_with_the_first_show_nothing() {
    let mut rig = rig(|_| ());
    rig.offer(200, 400);
    let sent = rig.drain().len() as u32;
    assert_eq!(rig.time_out(), [0, 1, 2]);
    let new = rig.sack_and_drain(1, &[]);
    assert!(new.iter().all(|tsn| *tsn >= sent), "{new:?}");
    assert!(rig.sack_and_drain(3, &[]).is_empty());
    assert_eq!(rig.counted().1, 0);
    rig.sack_and_drain(4, &[]);
    assert_eq!(rig.counted().1, 1);
}

/// RFC 4138: the acknowledgment of a retransmission to another address does not show whether the
/// original has arrived.
#[test]
fn to_another_address_a_timeout_is_not_looked_into() {
    for policy in [RetransmissionPath::Same, RetransmissionPath::Alternate] {
        let mut profile = Profile::rfc9260();
        profile.retransmission_path = policy;
        profile.initial_window = crate::profile::InitialCwnd::Units(10);
        let config = config(profile).with(|it| it.frto = true);
        let mut rig = Rig::new(&config, 1);
        rig.paths
            .add(&config, path(2), PathState::Active)
            .expect("a second path");
        rig.offer(100, MESSAGE);
        rig.drain();
        rig.time_out();
        rig.sack_and_drain(1, &[]);
        rig.sack_and_drain(2, &[]);
        let stays = policy == RetransmissionPath::Same;
        assert_eq!(rig.counted().1, u64::from(stays), "{policy:?}");
    }
}
