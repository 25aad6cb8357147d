//! Tests of the peer's receiver window and Max.Burst.

use super::*;

#[test]
fn the_peer_s_window_closes_is_probed_and_opens() {
    let mut rig = Rig::new(&config(Profile::rfc9260()), 1);
    rig.offer(10, MESSAGE);
    rig.drain();
    let sent = rig.sent.len() as u32;
    rig.sack(sent, &[], 0);
    assert_eq!(rig.drain(), [] as [u32; 0], "not before one RTO is over");
    let rto = rig.paths.get(PathId(0)).rto.rto();
    assert_eq!(rig.sender.next_deadline(&rig.paths), Some(rig.now + rto));
    rig.now += rto;
    assert_eq!(rig.drain(), [sent], "one probe");
    let cwnd = rig.cwnd();
    rig.now = rig
        .sender
        .next_deadline(&rig.paths)
        .expect("T3 guards the probe");
    rig.sack(sent, &[], 0);
    assert_eq!(rig.drain(), [] as [u32; 0]);
    let outcome = rig
        .sender
        .handle_t3(rig.now, PathId(0), &mut rig.paths, &mut rig.trace);
    assert_eq!(
        outcome,
        T3Outcome::Marked { count_error: false },
        "RFC 9260 §6.1 A"
    );
    assert_eq!(rig.cwnd(), cwnd, "a closed window is no loss");
    assert_eq!(rig.drain(), [sent]);
    // The window opens after the peer has dropped the probe, which is then retransmitted
    // immediately, together with new data.
    rig.now += SECOND;
    rig.sack(sent, &[], 2 * MESSAGE as u32);
    assert_eq!(rig.drain(), [sent, sent + 1]);
    rig.sack(sent + 2, &[], 2 * MESSAGE as u32);
    assert_eq!(rig.drain(), [sent + 2, sent + 3]);
}

/// In RFC 2960 one chunk is sent immediately, regardless of the window, and its timeout counts as a
/// loss.
#[test]
fn a_closed_window_is_probed_at_once_in_rfc_2960() {
    let mut rig = Rig::new(&config(Profile::rfc2960()), 1);
    rig.offer(10, MESSAGE);
    rig.drain();
    let sent = rig.sent.len() as u32;
    rig.sack(sent, &[], 0);
    assert_eq!(rig.drain(), [sent], "one probe");
    rig.now = rig.sender.next_deadline(&rig.paths).expect("T3");
    rig.sack(sent, &[], 0);
    rig.sender
        .handle_t3(rig.now, PathId(0), &mut rig.paths, &mut rig.trace);
    assert_eq!(rig.cwnd(), SEGMENT);
}

#[test]
fn max_burst_holds_the_fifth_packet_until_the_next_occasion() {
    let mut profile = Profile::rfc9260();
    profile.initial_window = crate::profile::InitialCwnd::Units(20);
    let mut rig = Rig::new(&config(profile.clone()), 1);
    rig.offer(100, MESSAGE);
    assert_eq!(rig.drain(), [0, 1, 2, 3]);
    rig.now = MILLISECOND;
    assert_eq!(
        rig.drain(),
        [4, 5, 6, 7],
        "messages were given: an occasion"
    );
    rig.now = 2 * MILLISECOND;
    assert_eq!(rig.drain(), [] as [u32; 0]);
    assert_eq!(rig.sack_and_drain(1, &[]), [8, 9, 10, 11]);
    profile.max_burst_applies = MaxBurst::Off;
    let mut free = Rig::new(&config(profile), 1);
    free.offer(100, MESSAGE);
    assert_eq!(free.drain().len(), 20);
}

/// One SACK for many packets must permit the same number of packets as several SACKs for two
/// packets each. Packets reported by Gap Ack Blocks do not count again.
#[test]
fn max_burst_is_for_every_two_packets_acknowledged() {
    let mut profile = Profile::rfc9260();
    profile.initial_window = crate::profile::InitialCwnd::Units(200);
    let mut rig = Rig::new(&config(profile), 1);
    rig.sender.set_peer(1 << 30, 10);
    rig.offer(500, MESSAGE);
    let begin = |rig: &mut Rig| {
        rig.drain();
        rig.sender.taken_out();
        rig.now += MILLISECOND;
    };
    begin(&mut rig);
    begin(&mut rig); // messages were queued: an opportunity
    for (acked, sent) in [(1, 4), (2, 4), (3, 4), (4, 8), (5, 8), (10, 20)] {
        let next = rig.sender.cumulative_tsn_ack_point().next();
        let before = next.distance_from(rig.start);
        rig.sack(before + acked, &[], 1 << 30);
        assert_eq!(rig.drain().len(), sent, "{acked} acknowledged");
        begin(&mut rig);
    }
    // If several SACKs are processed together, the packets that each of them permits are added.
    let before = rig.sender.cumulative_tsn_ack_point().next();
    for acked in 1..=3 {
        rig.sack(before.distance_from(rig.start) + 2 * acked, &[], 1 << 30);
    }
    assert_eq!(rig.drain().len(), 3 * 4);
    begin(&mut rig);
    // A gap of one packet is filled, after the twelve packets after it were acknowledged one by
    // one.
    let next = rig.sender.next_tsn().distance_from(rig.start);
    let first = rig
        .sender
        .cumulative_tsn_ack_point()
        .next()
        .distance_from(rig.start);
    for highest in first + 1..next {
        rig.sack(first, &[(first + 1, highest)], 1 << 30);
        rig.sender.taken_out();
    }
    rig.now += MILLISECOND;
    rig.sack(next, &[], 1 << 30);
    assert_eq!(rig.drain().len(), 4);
}

/// ns-2.35 limits the burst only when a fast retransmitted chunk is acknowledged.
#[test]
fn ns2_limits_the_burst_after_a_fast_retransmit() {
    let mut profile = ns2_era();
    profile.initial_window = crate::profile::InitialCwnd::Units(20);
    let mut rig = Rig::new(&config(profile), 1);
    rig.offer(100, MESSAGE);
    assert_eq!(rig.drain().len(), 20);
    for highest in 1..=4 {
        rig.sack_and_drain(0, &[(1, highest)]);
    }
    assert_eq!(rig.cwnd(), 10 * SEGMENT);
    // All SACKs but the last one are lost. The last SACK releases ten segments, of which four are
    // sent.
    let next = rig.sender.next_tsn().distance_from(rig.start);
    assert_eq!(rig.sack_and_drain(next, &[]).len(), 4);
    assert_eq!(
        rig.sack_and_drain(next + 1, &[]).len(),
        (rig.cwnd() / SEGMENT) as usize - 3,
        "once only"
    );
}

/// In ns-2.35 retransmissions because of a SACK count towards the burst of the next SACK if some
/// marked chunks were not sent.
#[test]
fn ns2_counts_a_retransmission_before_which_more_was_marked() {
    let mut profile = ns2_era();
    profile.initial_window = crate::profile::InitialCwnd::Units(20);
    let mut rig = Rig::new(&config(profile), 1);
    rig.offer(100, MESSAGE);
    assert_eq!(rig.drain().len(), 20);
    for highest in 1..=4 {
        rig.sack_and_drain(0, &[(1, highest)]);
    }
    assert!(rig.sack_and_drain(5, &[]).is_empty(), "the window is full");
    for highest in 7..=9 {
        assert!(rig.sack_and_drain(5, &[(7, highest)]).is_empty());
    }
    assert_eq!(rig.sack_and_drain(5, &[(7, 10)]), [5], "6 waits");
    // TSN 6 was only late, so no chunk is marked any more. New data is sent: three packets with
    // Max.Burst 4.
    assert_eq!(rig.sack_and_drain(5, &[(6, 19)]), [23, 24, 25]);
}
