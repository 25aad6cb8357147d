//! Partially reliable channels over a lossy link.

use crate::world;

use anabranch_datachannel::channels::ChannelEvent;
use anabranch_datachannel::{ChannelOptions, Config, Event, Reliability};
use world::{MS, SECOND, World, pattern};

/// Without retransmissions, messages that the link loses are abandoned; a reliable channel loses
/// none.
#[test]
fn a_channel_that_gives_up() {
    let mut world = World::new(3, 0).connect();
    let mut options = ChannelOptions::new("partial");
    options.reliability = Reliability::MaxRetransmits(0);
    let partial = world.ends[0].open(world.now, options).unwrap();
    let reliable = world.ends[0]
        .open(world.now, ChannelOptions::new("reliable"))
        .unwrap();
    world.run(SECOND);
    world.flaws = 10;
    let count = 500;
    for number in 0..count {
        let now = world.now;
        for id in [partial, reliable] {
            world.ends[0].send(now, id, pattern(number, 100)).unwrap();
        }
        world.run(20 * MS);
    }
    world.run(60 * SECOND);
    assert_eq!(world.messages(1, reliable).len(), count);
    let arrived = world.messages(1, partial).len();
    let counted = world.ends[0].statistics().expect("connected").sender;
    let given_up = (counted.abandoned_sent + counted.abandoned_unsent) as usize;
    assert!((count / 2..count).contains(&arrived), "{arrived}");
    assert!(counted.forward_tsns > 0 && arrived + given_up >= count);
    let told = [partial, reliable].map(|id| world.ends[0].channels().abandoned(id));
    assert_eq!(told, [given_up as u64, 0]);
}

/// The round trip takes 20 ms, so lost data can be retransmitted within a lifetime of 50 ms, but
/// not within 15 ms. Messages that do not arrive should be reported in either case.
#[test]
fn channels_whose_messages_live_long_and_short() {
    let mut world = World::new(5, 0).connect();
    let of = |lifetime| {
        let options = ChannelOptions::new("lifetime");
        options.with_reliability(Reliability::MaxLifetime(lifetime))
    };
    let ids = [50, 15].map(|it| world.ends[0].open(world.now, of(it)).unwrap());
    world.run(SECOND);
    world.flaws = 5;
    let count = 500;
    for number in 0..count {
        for id in ids {
            let payload = pattern(number, 100);
            world.ends[0].send(world.now, id, payload).unwrap();
        }
        world.run(5 * MS);
    }
    world.run(60 * SECOND);
    let arrived = ids.map(|id| world.messages(1, id).len());
    let told = ids.map(|id| {
        let told = |it: &&Event| **it == Event::Channel(ChannelEvent::Abandoned(id));
        world.events[0].iter().filter(told).count()
    });
    for at in 0..2 {
        let id = ids[at];
        assert_eq!(
            world.ends[0].channels().abandoned(id),
            told[at] as u64,
            "an event each"
        );
        assert!(arrived[at] < count && arrived[at] + told[at] >= count);
    }
    assert!(told[1] > 10 && told[0] * 2 < told[1], "{told:?}");
}

/// A message that is abandoned in SCTP's queue should no longer count as buffered, even if it was
/// sent in part.
#[test]
fn abandoned_messages_are_not_buffered() {
    for (seed, interleaving) in [(1, false), (2, true), (3, true)] {
        let config = Config::default().with(|it| it.interleaving = interleaving);
        let mut world = World::of(seed, 0, &config, |offer| offer).connect();
        let of = |reliability| ChannelOptions::new("").with_reliability(reliability);
        let kinds = [
            of(Reliability::MaxLifetime(30)),
            of(Reliability::MaxRetransmits(0)),
            of(Reliability::Reliable),
        ];
        let ids = kinds.map(|it| world.ends[0].open(world.now, it).unwrap());
        world.run(SECOND);
        world.flaws = 10;
        for number in 0..300 {
            for id in ids {
                let payload = pattern(number, 50 + number * 97 % 20_000);
                world.ends[0].send(world.now, id, payload).unwrap();
            }
            world.run(2 * MS);
        }
        world.run(300 * SECOND);
        for (id, some) in ids.into_iter().zip([true, true, false]) {
            assert_eq!(world.ends[0].channels().buffered_amount(id), 0);
            assert_eq!(world.ends[0].channels().abandoned(id) > 0, some);
        }
    }
}
