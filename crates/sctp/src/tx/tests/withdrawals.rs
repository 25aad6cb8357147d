//! Tests of reneging receivers (RFC 9260 §6.2.1 D iii), and of the cost of a SACK.

use super::*;
use crate::work_counter;

/// Maximum number of outstanding chunks.
const MANY: u32 = MAX_OUTSTANDING as u32;
/// Number of steps of a search through all words of the bit sets, and of a SACK without blocks.
const SEARCH: u64 = MANY as u64 / 64 + 40;

/// Number of steps of `act`.
fn steps<T>(act: impl FnOnce() -> T) -> u64 {
    work_counter::take();
    act();
    work_counter::take()
}

/// Sender whose window never closes, with `chunks` chunks of one byte in flight.
fn flying(profile: Profile, chunks: u32) -> Rig {
    let profile = Profile {
        initial_window: crate::profile::InitialCwnd::Units(1000),
        max_burst_applies: MaxBurst::Off,
        ..profile
    };
    let mut rig = Rig::new(&config(profile), u32::MAX - 1000);
    rig.sender.set_peer(u32::MAX, 10);
    rig.offer(chunks as usize, 1);
    rig.drain();
    assert_eq!(rig.sender.outstanding_chunks() as u32, chunks);
    rig
}

fn t3(rig: &mut Rig) -> T3Outcome {
    rig.now = rig.paths.next_t3().expect("T3-rtx runs");
    rig.sender
        .handle_t3(rig.now, PathId(0), &mut rig.paths, &mut rig.trace)
}

#[test]
fn reneged_data_is_retransmitted_when_t3_expires() {
    let mut rig = Rig::new(&config(Profile::rfc9260()), 1);
    rig.offer(3, MESSAGE);
    rig.drain();
    rig.sack(0, &[(1, 2)], 65536);
    assert_eq!(rig.flight(), SEGMENT);
    // The receiver reneges on the last chunk. No data is in flight, but T3-rtx must still run.
    rig.now += MILLISECOND;
    rig.sack(2, &[], 65536);
    assert_eq!(rig.flight(), 0, "noted, and no more");
    assert_eq!(t3(&mut rig), T3Outcome::Marked { count_error: true });
    assert_eq!(rig.drain(), [2]);
    assert_eq!(rig.flight(), SEGMENT);
    assert!(rig.sack(3, &[], 65536).newly_acked_chunks > 0);
    assert!(rig.sender.is_drained() && rig.flight() == 0);
    assert_eq!(rig.paths.next_t3(), None);
}

/// The chunk directly after the cumulative TSN of a SHUTDOWN was reported by a Gap Ack Block
/// before. The SHUTDOWN does not report it, and therefore reneges on it.
#[test]
fn a_point_right_below_a_gap_block_takes_it_back() {
    let mut rig = Rig::new(&config(Profile::rfc9260()), 1);
    rig.offer(4, MESSAGE);
    rig.drain();
    rig.sack(0, &[(2, 3)], 65536);
    rig.sender
        .handle_shutdown_ack_point(rig.now, Tsn(2), &mut rig.paths, &mut rig.trace);
    assert_eq!(rig.flight(), 0);
    assert_eq!(t3(&mut rig), T3Outcome::Marked { count_error: true });
    assert_eq!(rig.drain(), [2], "3 is still reported");
    rig.sack(4, &[], 65536);
    assert!(rig.sender.is_drained());
}

/// Missing reports of a reneged TSN count like those of any other TSN (RFC 9260 §6.2.1 D iii).
#[test]
fn reneged_data_is_found_lost_by_missing_reports() {
    let mut rig = Rig::new(&config(Profile::rfc9260()), 1);
    rig.paths.get_mut(PathId(0)).cc.on_mtu(1448);
    rig.offer(8, 100);
    rig.drain();
    rig.sack(1, &[(2, 3)], 65536);
    assert_eq!(rig.sack_and_drain(1, &[(3, 4)]), [] as [u32; 0]);
    let third = rig.sack_and_drain(1, &[(3, 5)]);
    assert_eq!(third, [1], "which was missing from the first SACK on");
    assert_eq!(rig.sack_and_drain(1, &[(3, 6)]), [2]);
    rig.sack(8, &[], 65536);
    assert!(rig.sender.is_drained() && rig.flight() == 0);
    let entry = rig.paths.get(PathId(0));
    assert_eq!((entry.marked_bytes, rig.sender.rwnd_in_flight), (0, 0));
}

/// By alternate SACKs, the peer acknowledges all data in flight and reneges on this data.
#[test]
fn giving_and_taking_back_costs_no_more_than_the_sack() {
    let mut rig = flying(Profile::rfc9260(), MANY);
    let first = steps(|| rig.sack(0, &[(1, MANY - 1)], 65536));
    assert!(
        first >= u64::from(MANY),
        "each is acknowledged once: {first}"
    );
    for round in 0..200 {
        let blocks: &[(u32, u32)] = match round % 4 {
            0 | 2 => &[],
            1 => &[(1, MANY - 1)],
            _ => &[(1, 1), (MANY / 2, MANY - 1)],
        };
        let cost = steps(|| rig.sack(0, blocks, 65536));
        assert!(cost < SEARCH, "SACK {round} costs {cost} steps");
    }
    // T3-rtx marks all reneged chunks at once.
    rig.sack(0, &[], 65536);
    t3(&mut rig);
    rig.sack(MANY, &[], 65536);
    assert!(rig.sender.is_drained() && rig.flight() == 0);
}

/// Every second TSN is acknowledged, reneged, and acknowledged again. The cost of a SACK must be
/// proportional to its number of blocks.
#[test]
fn many_blocks_cost_their_number() {
    let mut rig = flying(Profile::rfc9260(), 20_000);
    let blocks: Vec<(u32, u32)> = (0..9_000).map(|n| (2 * n + 1, 2 * n + 1)).collect();
    rig.sack(0, &blocks, 65536);
    for round in 0..20 {
        let blocks = if round % 2 == 0 {
            &blocks[..0]
        } else {
            &blocks
        };
        let cost = steps(|| rig.sack(0, blocks, 65536));
        let allowed = SEARCH + 8 * blocks.len() as u64;
        assert!(cost < allowed, "SACK {round} costs {cost} steps");
    }
}

/// Each SACK acknowledges one more chunk at the end of the flight, far above a gap.
#[test]
fn a_wide_hole_is_counted_through_three_times_and_no_more() {
    for (profile, lost) in [
        (Profile::rfc9260(), false),
        (Profile::rfc9260(), true),
        (Profile::rfc2960(), false),
        (ns2_era(), true),
        (
            Profile {
                fast_retransmit_once: false,
                ..Profile::rfc9260()
            },
            true,
        ),
    ] {
        let (name, reports) = (profile.name, u64::from(profile.missing_reports));
        let mut rig = flying(profile, MANY);
        if lost {
            t3(&mut rig);
        }
        // Each search starts at the start of the gap, because one chunk there is acknowledged and
        // thus never retransmitted.
        rig.sack(0, &[(1, 1)], 65536);
        let sacks = 400;
        let cost = steps(|| {
            for count in 1..=sacks {
                rig.sack(0, &[(1, 1), (MANY - count, MANY - 1)], 65536);
            }
        });
        // Each report needs a few steps to examine its chunk, and the last report also to mark the
        // chunk.
        let allowed = 6 * (reports + 1) * u64::from(MANY) + u64::from(sacks) * 4 * SEARCH;
        assert!(
            cost < allowed,
            "{name}: {cost} steps for {sacks} SACKs, {allowed} allowed"
        );
        let after = steps(|| rig.sack(0, &[(1, 1), (MANY - sacks - 1, MANY - 1)], 65536));
        assert!(after < 4 * SEARCH, "{name}: then {after} steps a SACK");
    }
}

/// All chunks have timed out and are retransmitted on another path, one packet at a time. The
/// chunks that remain on the first path must not be searched at every SACK.
#[test]
fn chunks_that_change_their_path_are_not_searched_for() {
    let profile = Profile {
        initial_window: crate::profile::InitialCwnd::Units(1000),
        max_burst_applies: MaxBurst::Off,
        ..Profile::rfc9260()
    };
    let mut rig = Rig::new(&config(profile), 1);
    rig.paths
        .add(&config(Profile::rfc9260()), path(2), PathState::Active)
        .expect("a second path");
    rig.offer(MANY as usize, 1);
    rig.drain();
    t3(&mut rig);
    let mut acked = 0;
    while acked < 20_000 {
        let cost = steps(|| rig.drain());
        assert!(cost < 100 * 2 * SEARCH, "{cost} steps to send");
        let before = acked;
        acked = rig.sent.last().expect("it was sent").0 + 1;
        let cost = steps(|| rig.sack(acked, &[], 65536));
        let allowed = 4 * SEARCH + 8 * u64::from(acked - before);
        assert!(cost < allowed, "{cost} steps for {} chunks", acked - before);
        if acked == before {
            break;
        }
    }
}

/// With two paths, a SACK from before a loss may arrive after SACKs that report it. ns-2's module
/// examines chunks only if there are blocks (`ProcessSackChunk`: `usNumGapAckBlocks != 0`).
#[test]
fn under_ns2_a_sack_without_blocks_takes_nothing_back() {
    let mut rig = Rig::new(&config(ns2_era()), 1);
    rig.paths.get_mut(PathId(0)).cc.on_mtu(1448);
    rig.offer(4, 300);
    rig.drain();
    rig.sack(0, &[(1, 3)], 65536);
    let missing = rig.flight();
    rig.sack(0, &[], 65536);
    assert_eq!(rig.flight(), missing, "the older one");
    rig.sack(0, &[(1, 2)], 65536);
    assert_eq!(rig.flight(), 2 * missing, "the last is taken back");
}
