//! Tests of data that moves between paths.

use super::*;

#[test]
fn a_timeout_moves_retransmissions_to_another_path_and_its_timer_with_them() {
    for policy in [
        RetransmissionPath::Same,
        RetransmissionPath::Alternate,
        RetransmissionPath::AlternateOnTimeout,
    ] {
        let mut profile = Profile::rfc2960();
        profile.retransmission_path = policy;
        let config = config(profile);
        let mut rig = Rig::new(&config, 1);
        let other = rig
            .paths
            .add(&config, path(2), PathState::Active)
            .expect("a second path");
        rig.offer(2, MESSAGE);
        rig.drain();
        rig.now = 3 * SECOND;
        rig.sender
            .handle_t3(rig.now, PathId(0), &mut rig.paths, &mut rig.trace);
        rig.drain();
        let moved = policy != RetransmissionPath::Same;
        assert_eq!(
            rig.sent.last(),
            Some(&(if moved { 1 } else { 0 }, u8::from(moved))),
            "{policy:?}"
        );
        let (first, second) = (rig.paths.get(PathId(0)), rig.paths.get(other));
        assert_eq!(
            (first.flightsize > 0, second.flightsize > 0),
            (!moved, moved)
        );
        assert_eq!(
            (first.t3_deadline.is_some(), second.t3_deadline.is_some()),
            (!moved, moved),
            "{policy:?}"
        );
        rig.sack(2, &[], 65536);
        rig.drain();
        assert_eq!(rig.sender.next_deadline(&rig.paths), None);
    }
}

/// The primary path has failed. Data on the alternate path times out, and is retransmitted on the
/// primary. The SACK that arrives just afterwards does not show that the primary is alive.
#[test]
fn an_answer_that_may_be_to_either_path_proves_neither_alive() {
    for (profile, errors) in [(Profile::rfc9260(), 1), (Profile::ns2(), 0)] {
        let config = config(profile);
        let mut rig = Rig::new(&config, 1);
        let alternate = rig
            .paths
            .add(&config, path(2), PathState::Active)
            .expect("a second path");
        rig.paths.get_mut(PathId(0)).state = PathState::Active;
        rig.offer(1, MESSAGE);
        rig.drain();
        for (id, seconds) in [(PathId(0), 3), (alternate, 6)] {
            rig.now = seconds * SECOND;
            rig.sender
                .handle_t3(rig.now, id, &mut rig.paths, &mut rig.trace);
            rig.paths.record_error(rig.now, id, &config, &mut rig.trace);
            rig.drain();
        }
        assert_eq!(rig.sent, [(0, 0), (0, 1), (0, 0)]);
        rig.sack(1, &[], 65536);
        assert_eq!(rig.paths.get(PathId(0)).error_count, errors);
        // The acknowledgment of a chunk that was sent only on the primary path shows that this path
        // is alive.
        rig.offer(1, MESSAGE);
        rig.drain();
        rig.sack(2, &[], 65536);
        assert_eq!(rig.paths.get(PathId(0)).error_count, 0);
    }
}

#[test]
fn no_data_flows_on_unconfirmed_paths() {
    for (profile, allowed) in [(Profile::rfc9260(), true), (Profile::ns2(), false)] {
        let config = config(profile);
        let mut rig = Rig::new(&config, 1);
        let other = rig
            .paths
            .add(&config, path(2), PathState::Unconfirmed)
            .expect("a second path");
        rig.offer(1, MESSAGE);
        assert_eq!(!rig.drain().is_empty(), allowed);
        rig.paths.get_mut(other).state = PathState::Active;
        rig.paths.get_mut(PathId(0)).state = PathState::Active;
        rig.drain();
        assert_eq!(rig.sent.len(), 1);
    }
}

/// The timer of a path follows its earliest chunk (RFC 9260 §7.2.4 (4), §6.3.2), so a lower TSN
/// that moves to the path restarts it.
#[test]
fn an_earlier_chunk_that_moves_to_a_path_starts_its_timer_again() {
    let mut profile = Profile::rfc9260();
    profile.retransmission_path = RetransmissionPath::Alternate;
    let config = config(profile);
    let mut rig = Rig::new(&config, 1);
    let other = rig.paths.add(&config, path(2), PathState::Active);
    let other = other.expect("a second path");
    rig.offer(1, MESSAGE);
    rig.drain();
    rig.now = 500 * MILLISECOND;
    rig.paths.set_primary(other);
    rig.offer(1, MESSAGE);
    rig.drain();
    assert_eq!(rig.sent, [(0, 0), (1, 1)]);
    let timer = |rig: &Rig| rig.paths.get(other).t3_deadline;
    assert_eq!(timer(&rig), Some(1500 * MILLISECOND));
    rig.now = SECOND;
    rig.sender
        .handle_t3(rig.now, PathId(0), &mut rig.paths, &mut rig.trace);
    assert_eq!(rig.drain(), [0]);
    assert_eq!(rig.sent.last(), Some(&(0, 1)));
    assert_eq!(timer(&rig), Some(2 * SECOND));
}
