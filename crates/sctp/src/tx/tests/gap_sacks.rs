//! SACKs with gaps on the fast and the slow path, from a conforming and from a lying receiver.

use std::collections::{BTreeSet, VecDeque};

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;

fn below(draw: &mut Pcg64Mcg, bound: u64) -> u64 {
    draw.next_u64() % bound
}

/// Receiver and the TSNs that it has received, as offsets.
#[derive(Default)]
struct Peer {
    next: u32,
    held: BTreeSet<u32>,
}

impl Peer {
    fn take(&mut self, offset: u32) {
        if offset >= self.next {
            self.held.insert(offset);
        }
        while self.held.remove(&self.next) {
            self.next += 1;
        }
    }

    /// Gap Ack Blocks of a SACK, relative to the cumulative TSN.
    fn blocks(&self) -> Vec<GapAckBlock> {
        let mut blocks: Vec<GapAckBlock> = Vec::new();
        for offset in &self.held {
            let place = (offset + 1 - self.next) as u16;
            match blocks.last_mut() {
                Some(last) if last.end + 1 == place => last.end = place,
                _ => blocks.push(GapAckBlock {
                    start: place,
                    end: place,
                }),
            }
        }
        blocks
    }
}

/// Corrupts the blocks of a SACK: reneges on a block, shrinks, overlaps or reverses it, or exceeds
/// the sent data.
fn spoil(draw: &mut Pcg64Mcg, blocks: &mut Vec<GapAckBlock>) {
    let Some(place) = below(draw, blocks.len() as u64 + 1).checked_sub(1) else {
        return;
    };
    let block = &mut blocks[place as usize];
    match below(draw, 6) {
        0 => drop(blocks.remove(place as usize)),
        1 => block.end = block.end.saturating_sub(1),
        2 => block.start = block.start.saturating_sub(below(draw, 4) as u16),
        3 => std::mem::swap(&mut block.start, &mut block.end),
        4 => block.end += below(draw, 60) as u16,
        _ => {
            let copy = *block;
            blocks.push(copy);
        }
    }
}

/// Processes a SACK, using the fast paths if `short`. Returns the outcome, and whether the gap fast
/// path was used.
fn take(rig: &mut Rig, short: bool, peer: &Peer, blocks: &[GapAckBlock]) -> (String, bool) {
    let sack = OutgoingSack {
        cumulative_tsn_ack: rig.start.add(peer.next).prev(),
        a_rwnd: 65_536,
        gap_blocks: blocks.iter().copied(),
        duplicates: &[],
    };
    let sack = sack.to_sack();
    let (now, sender, paths, trace) = (rig.now, &mut rig.sender, &mut rig.paths, &mut rig.trace);
    let by_gaps = if short {
        sender.handle_fast_path_gap_sack(now, &sack, paths, trace)
    } else {
        None
    };
    let goes = by_gaps.is_some();
    let outcome = by_gaps.unwrap_or_else(|| sender.handle_sack(now, &sack, paths, trace));
    (format!("{outcome:?}"), goes)
}

/// State of the sender and its path as text, without scratch data.
fn stand(rig: &mut Rig) -> String {
    rig.sender.blocks.clear();
    rig.sender.acks.clear();
    format!("{:?} {:?}", rig.sender, rig.paths)
}

/// Compares two states; reports only the first difference, because the state is long.
fn assert_alike(rigs: &mut [Rig; 2], at: &str) {
    let stand = rigs.each_mut().map(stand);
    let mut both = stand[0].split(", ").zip(stand[1].split(", "));
    assert_eq!(both.find(|(short, long)| short != long), None, "{at}");
    assert_eq!(stand[0].len(), stand[1].len(), "{at}");
}

#[test]
fn the_short_way_of_gaps_leaves_what_the_long_one_leaves() {
    let mut fast_paths = 0;
    for seed in 1..=300_u64 {
        let draw = &mut Pcg64Mcg::seed_from_u64(seed);
        let name = Profile::NAMES[below(draw, Profile::NAMES.len() as u64) as usize];
        let config = Config {
            mtu: 100,
            ..config(Profile::by_name(name).expect("it is named"))
        };
        // The first TSN is close to the wrap-around of TSNs.
        let start = u32::MAX - below(draw, 200) as u32;
        let mut rigs = [0; 2].map(|_| Rig::new(&config, start));
        let (lost, lies) = (below(draw, 20), below(draw, 10));
        let mut peer = Peer::default();
        let mut on_the_way = VecDeque::new();
        for turn in 0..150 {
            rigs.iter_mut().for_each(|rig| rig.offer(3, 50));
            let sent = rigs.each_mut().map(Rig::drain);
            assert_eq!(sent[0], sent[1], "seed {seed}, turn {turn}, {name}");
            let arrive = sent[0].iter().filter(|_| below(draw, 100) >= lost);
            on_the_way.extend(arrive);
            let Some(offset) = on_the_way.pop_front() else {
                break;
            };
            peer.take(offset);
            let mut blocks = peer.blocks();
            if below(draw, 100) < lies {
                spoil(draw, &mut blocks);
            }
            for rig in &mut rigs {
                rig.now += 5 * MILLISECOND;
            }
            let [short, long] = [0, 1].map(|at| take(&mut rigs[at], at == 0, &peer, &blocks));
            fast_paths += u32::from(short.1);
            assert_eq!(short.0, long.0, "seed {seed}, turn {turn}, {name}");
            if turn % 8 == 0 {
                assert_alike(&mut rigs, &format!("seed {seed}, turn {turn}, {name}"));
            }
        }
    }
    assert!(fast_paths > 2_000, "{fast_paths}");
}
