//! Concurrent multipath transfer, computed by hand: two paths with alternating data, so that even
//! TSNs use path 0 and odd ones path 1.

use super::*;
use crate::config::BufferSplit;
use crate::profile::{InitialCwnd, MaxBurst};

/// Concurrent multipath transfer under RFC 4960, in which cwnd grows only if the cumulative TSN
/// advances. The initial cwnd of 4380 bytes is four segments on each path.
fn concurrent(change: impl FnOnce(&mut Config)) -> Config {
    let mut profile = Profile::rfc4960();
    profile.max_burst_applies = MaxBurst::Off;
    profile.growth_needs_full_cwnd = false;
    let mut config = Config {
        cmt: true,
        ..config(profile)
    };
    change(&mut config);
    config
}

fn two_paths(config: &Config) -> Rig {
    let mut rig = Rig::new(config, 7);
    let added = rig.paths.add(config, path(2), PathState::Active);
    added.expect("a second path");
    rig.offer(100, MESSAGE);
    rig
}

fn windows(rig: &Rig) -> [u64; 2] {
    [0, 1].map(|id| rig.paths.get(PathId(id)).cc.cwnd())
}

#[test]
fn new_data_goes_over_all_paths_in_turn_as_far_as_each_window_goes() {
    let mut rig = two_paths(&concurrent(|_| {}));
    rig.drain();
    let expected: Vec<(u32, u8)> = (0..8).map(|it| (it, it as u8 % 2)).collect();
    assert_eq!(rig.sent, expected);
    // Only path 1 has space in its cwnd, because the data first sent there is acknowledged.
    rig.sack(0, &[(1, 1), (3, 3)], 65536);
    rig.drain();
    assert!(rig.sent[8..].iter().all(|it| it.1 == 1), "{:?}", rig.sent);
    // A path that is not active carries no data.
    let mut rig = two_paths(&concurrent(|_| {}));
    rig.paths.get_mut(PathId(0)).state = PathState::PotentiallyFailed;
    rig.drain();
    assert_eq!(rig.sent, [(0, 1), (1, 1), (2, 1), (3, 1)]);
}

/// All data on path 1 arrives before any data on path 0.
#[test]
fn data_that_overtakes_on_another_path_is_no_missing_report() {
    for (split, lost) in [(true, [0, 0, 0, 0]), (false, [0, 0, 1, 1])] {
        let mut rig = two_paths(&concurrent(|it| it.cmt_split_fast_retransmit = split));
        rig.drain();
        let found = [1, 2, 3, 4].map(|count| {
            let odd: Vec<_> = (0..count).map(|it| (2 * it + 1, 2 * it + 1)).collect();
            rig.sack(0, &odd, 65536).fast_retransmitted
        });
        // Without SFR-CMT, TSN 0 is reported missing by 1, 3 and 5, and TSN 2 by 3, 5 and 7.
        assert_eq!(found, lost, "split: {split}");
    }
}

/// TSN 0 is lost, and 2, 4 and 6 on its path are acknowledged one by one. The cwnd of both paths is
/// 8 units of 1480 bytes.
#[test]
fn three_reports_of_its_own_path_find_a_loss_and_cut_that_path_alone() {
    let mut rig = two_paths(&concurrent(|it| {
        it.profile.initial_window = InitialCwnd::Units(20);
        it.cmt_delayed_ack = false;
    }));
    rig.drain();
    let last = rig.sent.len() as u32 - 1;
    assert_eq!(windows(&rig), [29_600, 29_600]);
    assert_eq!(rig.sack(0, &[(2, 2)], 65536).fast_retransmitted, 0);
    assert_eq!(rig.sack(0, &[(2, 2), (4, 4)], 65536).fast_retransmitted, 0);
    let third = rig.sack(0, &[(2, 2), (4, 4), (6, 6)], 65536);
    assert_eq!(third.fast_retransmitted, 1);
    assert_eq!(windows(&rig), [14_800, 29_600]);
    // In recovery, cwnd of path 0 does not grow, and is not reduced again for another gap in the
    // same window. cwnd of path 1 grows.
    let blocks = [(1, 2), (4, 4), (6, 6), (10, 10), (12, 12), (14, 14)];
    let more = [&blocks[..4], &blocks[..5], &blocks[..6]].map(|blocks| {
        let found = rig.sack(0, blocks, 65536).fast_retransmitted;
        (found, windows(&rig))
    });
    let grown = 29_600 + SEGMENT;
    let expected = [
        (0, [14_800, grown]),
        (0, [14_800, grown]),
        (1, [14_800, grown]), // TSN 8, by 10, 12 and 14
    ];
    assert_eq!(more, expected);
    // Path 0 has recovered when all data sent on it so far is acknowledged, regardless of path 1.
    let at = |id: u8| rig.sent.iter().filter(move |it| it.1 == id);
    let even: Vec<u32> = at(0).map(|it| it.0).filter(|it| *it <= last).collect();
    let retransmitted = rig.drain();
    assert_eq!(retransmitted[0], 0, "the first goes at once");
    let mut all: Vec<(u32, u32)> = even.iter().skip(1).map(|it| (*it, *it)).collect();
    all[0].0 = 1;
    let before = windows(&rig)[0];
    rig.sack(1, &all[..1], 65536); // TSN 0 alone: 8 is missing
    assert_eq!(windows(&rig)[0], before);
}

#[test]
fn a_window_grows_by_what_is_in_order_on_its_own_path() {
    for (update, expected) in [
        (
            true,
            [[4380, 5828], [4380, 5828], [4380, 7276], [5828, 7276]],
        ),
        (
            false,
            [[4380, 4380], [4380, 4380], [4380, 4380], [5828, 4380]],
        ),
    ] {
        let mut rig = two_paths(&concurrent(|it| it.cmt_cwnd_update = update));
        rig.drain();
        // TSN 1 is the lowest unacknowledged TSN of path 1. TSN 5 is not the lowest, because TSN 3
        // is missing. Then TSN 3 is the lowest, and finally TSN 0 of path 0.
        let found = [
            (0, vec![(1, 1)]),
            (0, vec![(1, 1), (5, 5)]),
            (0, vec![(1, 1), (3, 3), (5, 5)]),
            (2, vec![(3, 3), (5, 5)]),
        ]
        .map(|(next, blocks)| {
            rig.sack(next, &blocks, 65536);
            windows(&rig)
        });
        assert_eq!(found, expected, "update: {update}");
    }
}

/// TSN 0 is lost on path 0 and retransmitted on path 1, which also carries 1, 3, 5 and 7. The
/// retransmission must not hide these TSNs from CUC.
#[test]
fn a_loss_on_one_path_hides_no_order_on_another() {
    let mut rig = two_paths(&concurrent(|it| {
        it.profile.retransmission_path = RetransmissionPath::Alternate;
        it.cmt_delayed_ack = false;
    }));
    rig.drain();
    for blocks in [&[(2, 2)][..], &[(2, 2), (4, 4)], &[(2, 2), (4, 4), (6, 6)]] {
        rig.sack(0, blocks, 65536);
    }
    assert_eq!(rig.drain()[0], 0);
    assert!(
        rig.sent.contains(&(0, 1)),
        "again on path 1: {:?}",
        rig.sent
    );
    let before = windows(&rig)[1];
    rig.sack(0, &[(1, 2), (4, 4), (6, 6)], 65536);
    assert_eq!(windows(&rig)[1], before + SEGMENT);
}

#[test]
fn a_sack_reports_as_often_as_it_answers_packets_of_one_path() {
    // TSN 0 is lost. Each entry: the SACK, the number of packets that it acknowledges, and the
    // losses that it detects.
    type Sacks<'a> = &'a [(&'a [(u32, u32)], u32, u32)];
    let cases: [(&str, Sacks<'_>); 4] = [
        // Two packets of path 0 after TSN 0, then one packet.
        (
            "two at once",
            &[(&[(2, 2), (4, 4)], 2, 0), (&[(2, 2), (4, 4), (6, 6)], 1, 1)],
        ),
        // One chunk of each path counts as one report.
        (
            "mixed",
            &[
                (&[(1, 2)], 2, 0),
                (&[(1, 2), (4, 4)], 1, 0),
                (&[(1, 2), (4, 4), (6, 6)], 1, 1),
            ],
        ),
        // Without a number in the flags, the SACK counts as one report.
        (
            "silent",
            &[(&[(2, 2), (4, 4)], 0, 0), (&[(2, 2), (4, 4), (6, 6)], 0, 0)],
        ),
        // The SACK acknowledges three packets, so TSN 0 is considered lost immediately. TSN 4 lies
        // between acknowledged TSNs, and is reported once.
        ("between", &[(&[(2, 2), (6, 6)], 3, 1)]),
    ];
    for (name, sacks) in cases {
        let mut rig = two_paths(&concurrent(|_| {}));
        rig.drain();
        for (index, &(blocks, packets, lost)) in sacks.iter().enumerate() {
            rig.sender.note_sack_flags(sack_flags(packets));
            let found = rig.sack(0, blocks, 65536).fast_retransmitted;
            rig.sender.note_sack_flags(0);
            assert_eq!(found, lost, "{name}, SACK {index}");
        }
    }
    // Without the switch, two packets count as one report.
    let mut rig = two_paths(&concurrent(|it| it.cmt_delayed_ack = false));
    rig.drain();
    rig.sender.note_sack_flags(sack_flags(3));
    assert_eq!(rig.sack(0, &[(2, 2), (4, 4)], 65536).fast_retransmitted, 0);
    assert_eq!(
        rig.sack(0, &[(2, 2), (4, 4), (6, 6)], 65536)
            .fast_retransmitted,
        0
    );
}

#[test]
fn flags_tell_three_packets_at_most() {
    assert_eq!(
        [0, 1, 2, 3, 4, 99].map(sack_flags),
        [0, 0x40, 0x80, 0xc0, 0xc0, 0xc0]
    );
}

/// Each cwnd is 40 units, and each share of the buffer is about four segments.
#[test]
fn no_path_takes_more_than_its_share_of_a_buffer() {
    let rig = |split| {
        let mut rig = two_paths(&concurrent(|it| {
            it.profile.initial_window = InitialCwnd::Units(40);
            it.cmt_buffer_split = split;
        }));
        rig.sender.cmt.as_mut().expect("on").send_buffer = 8 * SEGMENT;
        rig.sender.set_peer(20_000, 10);
        rig
    };
    let on = |rig: &Rig, id: u8| rig.sent.iter().filter(|it| it.1 == id).count();
    // Off: 13 segments of 1432 bytes of user data fit into the peer's window.
    let mut off = rig(BufferSplit::Off);
    off.drain();
    assert_eq!((on(&off, 0), on(&off, 1)), (7, 6));
    let mut sender = rig(BufferSplit::Sender);
    sender.drain();
    assert_eq!((on(&sender, 0), on(&sender, 1)), (4, 4));
    // Data on path 1 arrives, and is kept until the cumulative TSN passes it. TSN 1 is passed
    // together with TSN 0, which permits one more chunk.
    sender.sack(0, &[(1, 1), (3, 3), (5, 5), (7, 7)], 20_000);
    sender.drain();
    assert_eq!((on(&sender, 0), on(&sender, 1)), (4, 4));
    sender.sack(2, &[(3, 3), (5, 5), (7, 7)], 20_000);
    sender.drain();
    assert_eq!((on(&sender, 0), on(&sender, 1)), (5, 5));
    // Share of the peer's buffer: each path may have half of 20,000 bytes in flight, within the
    // peer's window.
    let mut receiver = rig(BufferSplit::Receiver);
    receiver.drain();
    assert_eq!((on(&receiver, 0), on(&receiver, 1)), (7, 6));
    receiver.sack(0, &[(1, 1), (3, 3), (5, 5)], 20_000 - 3 * 1432);
    // 14,272 + 10 x 1432 bytes are free or in flight: path 0 has seven chunks in flight, and path 1
    // has three.
    receiver.drain();
    assert_eq!(on(&receiver, 0), 7, "it has its share");
}

#[test]
fn the_policy_selects_the_path_of_a_retransmission() {
    use RetransmissionPath::{AnyWithRoom, LargestCwnd, LargestSsthresh, LeastLoss};
    let chosen = |policy, change: fn(&mut Paths)| {
        let config = concurrent(|it| it.profile.retransmission_path = policy);
        let mut rig = two_paths(&config);
        let added = rig.paths.add(&config, path(3), PathState::Active);
        added.expect("a third path");
        change(&mut rig.paths);
        [0, 1].map(|last| rig.paths.choose_for_retransmission(PathId(last), true).0)
    };
    let all = [AnyWithRoom, LargestCwnd, LargestSsthresh, LeastLoss];
    for policy in all {
        assert_eq!(chosen(policy, |_| {}), [0, 1], "{policy:?}: equals");
        let failed = chosen(policy, |it| {
            it.get_mut(PathId(0)).state = PathState::Inactive
        });
        assert_eq!(failed, [1, 1], "{policy:?}: 0 has failed");
    }
    fn cut(paths: &mut Paths) {
        for id in [0, 2] {
            let cc = &mut paths.get_mut(PathId(id)).cc;
            cc.on_loss(0, anabranch_congestion::LossCause::Timeout, 0);
        }
    }
    assert_eq!(chosen(LargestCwnd, cut), [1, 1]);
    assert_eq!(chosen(LargestSsthresh, cut), [1, 1]);
    assert_eq!(
        chosen(AnyWithRoom, |it| it.get_mut(PathId(1)).flightsize = 4380),
        [0, 2]
    );
    fn lossy(paths: &mut Paths) {
        for (id, lost) in [(0, 3), (1, 2), (2, 1)] {
            let entry = paths.get_mut(PathId(id));
            (0..100).for_each(|_| entry.carried.count(1432));
            (0..lost).for_each(|_| entry.losses.count(100));
        }
    }
    assert_eq!(chosen(LeastLoss, lossy), [2, 2]);
}

/// A retransmission that waits for cwnd of its path must not block other paths.
#[test]
fn a_full_path_holds_up_no_other() {
    let mut rig = two_paths(&concurrent(|it| {
        it.profile.retransmission_path = RetransmissionPath::Same;
        it.cmt_delayed_ack = false;
    }));
    rig.drain();
    // T3-rtx of path 0 expires: the four chunks sent on this path are marked, and one of them may
    // be sent.
    rig.now = 5 * SECOND;
    rig.sender
        .handle_t3(rig.now, PathId(0), &mut rig.paths, &mut rig.trace);
    assert_eq!(rig.drain(), [0]);
    rig.sack(0, &[(1, 1), (3, 3)], 65536);
    let went = rig.drain();
    assert!(!went.is_empty(), "path 1 has room");
    let on_1 = |it: &u32| rig.sent.contains(&(*it, 1));
    assert!(went.iter().all(on_1), "{went:?} of {:?}", rig.sent);
}
