//! Tests of T3-rtx, window probes and idle time: counters, and times at their limits.

use super::*;
use crate::profile::{IdleDecay, InitialCwnd};

fn t3(rig: &mut Rig) {
    rig.now = rig.paths.next_t3().expect("T3-rtx runs");
    let outcome = (rig.sender).handle_t3(rig.now, PathId(0), &mut rig.paths, &mut rig.trace);
    assert_eq!(outcome, T3Outcome::Marked { count_error: true });
}

/// A timeout ends fast recovery: the acknowledgment of a retransmission starts slow start, although
/// the exit point is far ahead.
#[test]
fn a_timeout_ends_fast_recovery() {
    let mut profile = Profile::rfc9260();
    profile.initial_window = InitialCwnd::Units(20);
    profile.max_burst_applies = MaxBurst::Off;
    profile.growth_needs_cumulative_advance = true;
    let mut rig = Rig::new(&config(profile), 1);
    rig.offer(100, MESSAGE);
    rig.drain();
    for highest in 1..=3 {
        rig.sack_and_drain(0, &[(1, highest)]);
    }
    assert!(rig.sender.recovery_until.is_some());
    t3(&mut rig);
    assert_eq!((rig.cwnd(), rig.sender.recovery_until), (SEGMENT, None));
    assert_eq!(rig.drain(), [0]);
    rig.sack(4, &[], 65536);
    assert_eq!(rig.cwnd(), 2 * SEGMENT);
}

/// Karn's rule (RFC 9260 §6.3.1 C5), if each chunk may be measured and the SACK takes the slow
/// path.
#[test]
fn a_retransmitted_chunk_above_a_gap_gives_no_rtt() {
    let mut profile = Profile::rfc9260();
    profile.rtt_once_per_round_trip = false;
    let mut rig = Rig::new(&config(profile), 1);
    rig.offer(3, MESSAGE);
    rig.drain();
    t3(&mut rig);
    assert_eq!(rig.drain(), [0]);
    rig.now += 100 * MILLISECOND;
    rig.sack(1, &[(2, 2)], 65536);
    assert_eq!(rig.paths.get(PathId(0)).rto.srtt(), None);
}

/// RFC 9260 §6.1 A: a window probe that the peer has dropped is retransmitted as soon as it fits
/// into the window, but not before one round trip, because it may still be answered.
#[test]
fn a_probe_goes_again_once_it_is_a_round_trip_old_and_fits() {
    let mut rig = Rig::new(&config(Profile::rfc9260()), 1);
    rig.offer(10, MESSAGE);
    rig.drain();
    let sent = rig.sent.len() as u32;
    rig.now = 100 * MILLISECOND;
    rig.sack(sent, &[], 0);
    rig.now += rig.paths.get(PathId(0)).rto.rto();
    assert_eq!(rig.drain(), [sent], "one probe");
    let room = MESSAGE as u32;
    for (after, a_rwnd, goes) in [(99, room, false), (1, room - 1, false), (0, room, true)] {
        rig.now += after * MILLISECOND;
        rig.sack(sent, &[], a_rwnd);
        assert_eq!(
            rig.drain() == [sent],
            goes,
            "after {after} ms more, {a_rwnd} bytes"
        );
    }
}

/// RFC 9260 §7.2.1: cwnd is halved once per RTO, starting one RTO after the last transmission, down
/// to the floor.
#[test]
fn each_idle_rto_halves_the_window_once() {
    let mut profile = Profile::rfc9260();
    profile.initial_window = InitialCwnd::Units(64);
    let mut rig = Rig::new(&config(profile), 1);
    rig.offer(1, MESSAGE);
    rig.drain();
    rig.now = 100 * MILLISECOND;
    rig.sack(1, &[], 65536);
    let entry = rig.paths.get_mut(PathId(0));
    assert_eq!(entry.rto.rto(), SECOND);
    let mut units = Vec::new();
    for at in [
        SECOND - 1,
        SECOND,
        SECOND,
        2 * SECOND - 1,
        2 * SECOND,
        5 * SECOND,
    ] {
        entry.decay(at, IdleDecay::Drained);
        units.push(entry.cc.cwnd() / SEGMENT);
    }
    assert_eq!(units, [64, 32, 32, 32, 16, 4]);
}

/// A Gap Ack Block for a reneged chunk is no new information, so it does not reset errors (RFC 9260
/// §8.1).
#[test]
fn a_repeated_gap_report_resets_no_errors() {
    let mut rig = Rig::new(&config(Profile::rfc9260()), 1);
    rig.offer(3, MESSAGE);
    rig.drain();
    assert!(rig.sack(0, &[(1, 2)], 65536).alive);
    assert!(!rig.sack(0, &[(1, 1)], 65536).alive);
    t3(&mut rig);
    rig.drain();
    let again = rig.sack(0, &[(1, 2)], 65536);
    assert_eq!((again.newly_acked_chunks, again.alive), (1, false));
    assert!(
        rig.sack(1, &[(2, 2)], 65536).alive,
        "the point has advanced"
    );
}

#[test]
fn the_least_round_trip_is_kept() {
    let mut rig = Rig::new(&config(Profile::rfc9260()), 1);
    for (round_trip, least) in [(200, 200), (100, 100), (300, 100)] {
        rig.offer(1, MESSAGE);
        let next = rig.drain()[0] + 1;
        rig.now += round_trip * MILLISECOND;
        rig.sack(next, &[], 65536);
        let kept = rig.paths.get(PathId(0)).rtt_min.get();
        assert_eq!(kept, Some(least * MILLISECOND));
    }
}

/// The state of a path changes when it has more errors than PFMR, and again when it has more than
/// Path.Max.Retrans (RFC 9260 §8.2, RFC 7829 §3). An inactive path continues to count errors if
/// inactive paths are ranked by them, or if the primary path may still be switched.
#[test]
fn errors_lead_from_state_to_state() {
    let mut profile = Profile::rfc9260();
    profile.potentially_failed = true;
    for (switch, most) in [(None, 30), (Some(7), 30), (Some(40), 41)] {
        let config = config(profile.clone()).with(|it| {
            (it.path_max_retrans, it.pf_max_retrans) = (2, 1);
            it.primary_switchover_max_retrans = switch;
        });
        let mut rig = Rig::new(&config, 1);
        let mut changes = Vec::new();
        for errors in 1..=50 {
            if (rig.paths).record_error(0, PathId(0), &config, &mut rig.trace) {
                changes.push((errors, rig.paths.get(PathId(0)).state));
            }
        }
        let expected = [(2, PathState::PotentiallyFailed), (3, PathState::Inactive)];
        assert_eq!(changes, expected);
        assert_eq!(rig.paths.get(PathId(0)).error_count, most, "{switch:?}");
    }
    let plain = config(Profile::rfc2960()).with(|it| it.path_max_retrans = 2);
    let mut rig = Rig::new(&plain, 1);
    for _ in 0..9 {
        rig.paths.record_error(0, PathId(0), &plain, &mut rig.trace);
    }
    assert_eq!(rig.paths.get(PathId(0)).error_count, 3);
}

/// RFC 9260 §7.2.3: only one packet is sent until data is acknowledged. In ns-2's module any SACK
/// allows the sender to fill cwnd (`RtxMarkedChunks`, `RTX_LIMIT_CWND`). Here cwnd is one segment:
/// chunks are sent while 616 and 1232 bytes are in flight, so the second of them exceeds cwnd.
#[test]
fn a_sack_that_acknowledges_nothing_fills_cwnd_after_a_timeout_under_ns2_alone() {
    let rules = [(ns2_era(), vec![1, 2]), (Profile::rfc2960(), vec![])];
    for (profile, then) in rules {
        let name = profile.name;
        let mut config = config(profile);
        config.bundling = false;
        let mut rig = Rig::new(&config, 1);
        rig.offer(4, 600);
        assert_eq!(rig.drain(), [0, 1, 2, 3], "{name}");
        t3(&mut rig);
        assert_eq!(rig.drain(), [0], "{name}");
        assert_eq!(rig.sack_and_drain(0, &[]), then, "{name}");
    }
}
