//! Concurrent messages of several channels, whose fragments should be interleaved if both ends
//! support I-DATA (RFC 8260).

use crate::world;

use anabranch_datachannel::channels::ChannelEvent;
use anabranch_datachannel::{ChannelId, ChannelOptions, Config, Payload};
use world::{MS, SECOND, World, pattern};

impl World {
    /// Arrival times and channels of the next `count` messages at the second end.
    fn times(&mut self, ids: &[ChannelId], count: usize) -> Vec<(usize, u64)> {
        let mut times = Vec::new();
        let mut known = vec![0; ids.len()];
        self.run_until(|world| {
            for (at, &id) in ids.iter().enumerate() {
                let came = world.messages(1, id).len();
                times.extend((known[at]..came).map(|_| (at, world.now)));
                known[at] = came;
            }
            times.len() >= count
        });
        times
    }
}

#[test]
fn both_ends_speak_it() {
    let world = World::new(1, 0).connect();
    assert!(world.ends.iter().all(|it| it.is_interleaving()));
}

/// If only one end offers I-DATA, a large message is sent before messages that are queued after it.
#[test]
fn one_end_does_not_speak_it() {
    let config = Config::default().with(|it| it.interleaving = false);
    let mut world = World::of(1, 2, &config, |offer| offer).connect();
    assert!(!world.ends.iter().any(|it| it.is_interleaving()));
    let ids = [(); 3].map(|()| {
        let now = world.now;
        world.ends[1].open(now, ChannelOptions::new("")).unwrap()
    });
    world.run(SECOND);
    for (number, &id) in ids.iter().enumerate() {
        for end in 0..2 {
            let payload = pattern(number, 100_000);
            world.ends[end].send(world.now, id, payload).unwrap();
        }
    }
    world.run_until(|world| {
        let came = |end: usize| ids.iter().all(|&id| !world.messages(end, id).is_empty());
        came(0) && came(1)
    });
    for (number, &id) in ids.iter().enumerate() {
        assert_eq!(world.messages(0, id), [&pattern(number, 100_000)]);
    }
}

/// A small message that is sent while large ones are in transmission should arrive within a few
/// round trips, long before their end.
#[test]
fn a_large_message_holds_up_no_other() {
    let mut world = World::new(1, 0).connect();
    let ids = ["large", "small"].map(|label| {
        let now = world.now;
        world.ends[0].open(now, ChannelOptions::new(label)).unwrap()
    });
    world.run(SECOND);
    for number in 0..4 {
        let large = pattern(number, 262_144);
        world.ends[0].send(world.now, ids[0], large).unwrap();
    }
    world.run(30 * MS);
    let given = world.now;
    let small = Payload::from("small");
    world.ends[0].send(given, ids[1], small).unwrap();
    let times = world.times(&ids, 5);
    assert_eq!(times[0].0, 1, "{times:?}");
    let (small, all) = (times[0].1 - given, times[4].1 - given);
    assert!(small <= 40 * MS && all > 100 * MS, "{small} {all}");
}

/// Channels that always have data should get bandwidth in proportion to their priorities (RFC 8831
/// §6.4), regardless of the lengths of their messages.
#[test]
fn priorities_are_shares_of_bytes() {
    let mut world = World::new(1, 0).connect();
    let priorities = [128, 256, 512, 1_024];
    let ids = priorities.map(|priority| {
        let options = ChannelOptions::new("").with_priority(priority);
        world.ends[0].open(world.now, options).unwrap()
    });
    world.run(SECOND);
    let lengths = [20_000, 10_000, 5_000, 2_500];
    for (&id, &length) in ids.iter().zip(&lengths) {
        for number in 0..2_000_000 / length {
            let payload = pattern(number, length);
            world.ends[0].send(world.now, id, payload).unwrap();
        }
    }
    let bytes = |world: &World, at: usize| world.messages(1, ids[at]).len() * lengths[at];
    world.run_until(|world| bytes(world, 3) >= 1_500_000);
    let shares = [0, 1, 2].map(|at| bytes(&world, at) as f64 / bytes(&world, 3) as f64);
    for (share, expected) in shares.into_iter().zip([0.125, 0.25, 0.5]) {
        assert!((share - expected).abs() < 0.02, "{shares:?}");
    }
    world.run_until(|world| (0..4).all(|at| bytes(world, at) == 2_000_000));
}

/// More large messages are sent at once than a receiver can buffer, in both directions and over a
/// lossy link. All should arrive once and complete.
#[test]
fn many_large_messages_at_once() {
    for (seed, flaws) in [(1, 0), (2, 3)] {
        let mut world = World::new(seed, flaws).connect();
        let ids = world.open(120);
        for (number, &id) in ids.iter().enumerate() {
            for end in 0..2 {
                let payload = pattern(number + end, 200_000);
                world.ends[end].send(world.now, id, payload).unwrap();
            }
        }
        world.run_until(|world| {
            let came = |end: usize| ids.iter().all(|&id| !world.messages(end, id).is_empty());
            came(0) && came(1)
        });
        for (number, &id) in ids.iter().enumerate() {
            for end in 0..2 {
                let sent = pattern(number + 1 - end, 200_000);
                assert_eq!(world.messages(end, id), [&sent]);
            }
        }
    }
}

/// A channel should close after its own messages are sent, even while messages of other channels
/// are in transmission.
#[test]
fn a_channel_that_closes_between_pieces_of_others() {
    let mut world = World::new(1, 2).connect();
    let ids = [(); 3].map(|()| {
        let now = world.now;
        world.ends[0].open(now, ChannelOptions::new("")).unwrap()
    });
    world.run(SECOND);
    for (number, &id) in ids.iter().enumerate() {
        let payload = pattern(number, 250_000);
        world.ends[0].send(world.now, id, payload).unwrap();
    }
    world.ends[0].close_channel(world.now, ids[1]);
    world.run_until(|world| world.has(1, ChannelEvent::Closed(ids[1])));
    world.run_until(|world| ids.iter().all(|&id| !world.messages(1, id).is_empty()));
    for (number, &id) in ids.iter().enumerate() {
        assert_eq!(world.messages(1, id), [&pattern(number, 250_000)]);
    }
    world.run_until(|world| world.has(0, ChannelEvent::Closed(ids[1])));
}
