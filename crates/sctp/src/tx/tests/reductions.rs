//! Reductions spread over a recovery (RFC 6937), and undone reductions (RFC 3708), computed by
//! hand.

use super::*;

fn rig(set: impl FnOnce(&mut Config)) -> Rig {
    let mut profile = Profile::rfc9260();
    profile.initial_window = crate::profile::InitialCwnd::Units(20);
    profile.growth_needs_cumulative_advance = true;
    profile.max_burst_applies = MaxBurst::Off;
    let mut config = config(profile);
    set(&mut config);
    Rig::new(&config, 1)
}

/// Segment 0 of 20 is lost. At the third report 19 segments are unacknowledged, and cwnd falls to
/// 10 segments. From then on `delivered x 10 / 19` segments are sent, the retransmission first.
#[test]
fn one_segment_goes_for_every_second_that_arrives() {
    let sent = |proportional: bool| -> Vec<usize> {
        let mut rig = rig(|it| it.proportional_rate_reduction = proportional);
        rig.offer(100, MESSAGE);
        rig.drain();
        (1..=14)
            .map(|highest| rig.sack_and_drain(0, &[(1, highest)]).len())
            .collect()
    };
    // The first two SACKs each release a new segment, and the third SACK detects the loss.
    assert_eq!(sent(true), [1, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(sent(false), [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
}

#[test]
fn the_window_is_the_bound_again_once_the_recovery_is_over() {
    let mut rig = rig(|it| it.proportional_rate_reduction = true);
    rig.offer(100, MESSAGE);
    rig.drain();
    (1..=10).for_each(|highest| {
        rig.sack_and_drain(0, &[(1, highest)]);
    });
    let highest = rig.sent.iter().map(|sent| sent.0).max().unwrap();
    rig.sack_and_drain(highest + 1, &[]);
    assert!(
        rig.flight() >= rig.cwnd(),
        "{} of {}",
        rig.flight(),
        rig.cwnd()
    );
    assert_eq!(rig.paths.get(PathId(0)).most_in_flight.get(), None);
}

/// Segment 0 is late but not lost; the receiver finally reports the duplicate.
#[test]
fn a_reduction_for_what_came_twice_is_undone() {
    let run = |undoes: bool, duplicate: u32| {
        let mut rig = rig(|it| it.undo_spurious_reductions = undoes);
        rig.offer(100, MESSAGE);
        rig.drain();
        (1..=2).for_each(|highest| {
            rig.sack_and_drain(0, &[(1, highest)]);
        });
        assert_eq!(rig.sack_and_drain(0, &[(1, 3)]).first(), Some(&0));
        assert_eq!(rig.cwnd(), 10 * SEGMENT);
        let sack = OutgoingSack {
            cumulative_tsn_ack: rig.start.add(5),
            a_rwnd: 65536,
            gap_blocks: std::iter::empty(),
            duplicates: &[rig.start.add(duplicate)],
        };
        rig.sender
            .handle_sack(rig.now, &sack.to_sack(), &mut rig.paths, &mut rig.trace);
        (
            rig.cwnd() / SEGMENT,
            rig.sender.statistics().reductions_undone,
        )
    };
    assert_eq!(run(true, 0), (20, 1));
    assert_eq!(run(false, 0), (10, 0));
    assert_eq!(run(true, 2), (10, 0), "another chunk came twice");
}
