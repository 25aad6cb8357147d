//! Concurrent multipath transfer over links with a rate, a queue and random loss: all messages
//! arrive once, and two equal paths together carry about twice the data of one.

use crate::common;

use std::collections::BTreeMap;

use anabranch_sctp::config::BufferSplit;
use anabranch_sctp::profile::RetransmissionPath;
use anabranch_sctp::{
    AssociationId, AssociationState, Config, PathId, PathState, Profile, SendOptions,
};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};
use bytes::{BufMut, Bytes, BytesMut};
use common::*;

/// Random number generator with a given seed and the same results on all machines.
#[derive(Clone)]
struct Draws(u64);

impl Draws {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }
}

/// Link with the same properties in both directions: bits per second, delay, queue limit in bytes,
/// lost packets per thousand.
#[derive(Clone, Copy, Debug)]
struct Link {
    rate: u64,
    delay: Nanos,
    queue: u64,
    lost: u64,
}

/// World of hosts with one network per link. The links affect packets from the first DATA on; the
/// handshake is not affected.
fn world(config: &Config, links: &[Link], seed: u64) -> (World, AssociationId, AssociationId) {
    let homes = |host: usize| {
        let addresses = (0..links.len() as u8).map(|it| address(host, it));
        config.clone().with(|it| it.addresses = addresses.collect())
    };
    let mut world = World::with_configs(homes(A), homes(Z));
    world.narrate = false;
    let (a, z) = world.established();
    world.run_for(5 * SECOND);
    let links = links.to_vec();
    let mut free = vec![[0; 2]; links.len()];
    let mut draws = Draws::new(seed);
    let base = world.delay;
    world.fate = Box::new(move |shot| {
        let network = match shot.path.remote {
            std::net::IpAddr::V4(address) => usize::from(address.octets()[2]),
            std::net::IpAddr::V6(_) => 0,
        };
        let link = links[network];
        let free = &mut free[network][shot.from];
        let begins = shot.at.max(*free);
        let waits = (begins - shot.at) as u128 * u128::from(link.rate) / 8 / u128::from(SECOND);
        if draws.below(1000) < link.lost || waits > u128::from(link.queue) {
            return Fate::Drop;
        }
        *free = begins + (shot.bytes.len() as u64 + 20) * 8 * SECOND / link.rate;
        Fate::Late((*free + link.delay - shot.at).saturating_sub(base))
    });
    (world, a, z)
}

fn message(number: u32, len: usize) -> Bytes {
    let mut payload = BytesMut::new();
    payload.put_u32(number);
    payload.resize(len.max(4), 1);
    payload.freeze()
}

/// Number of bytes of user data received within `time` from a sender that always has more data.
fn carried(config: &Config, links: &[Link], time: Nanos) -> u64 {
    let (mut world, a, z) = world(config, links, 1);
    let end = world.now + time;
    let mut number = 0;
    let mut arrived = 0;
    while world.now < end {
        let association = world.endpoints[A].association_mut(a).expect("known");
        let options = SendOptions::new().with_unordered(true);
        while association
            .send(world.now, message(number, 1_400), &options)
            .is_ok()
        {
            number += 1;
        }
        world.drain(A);
        world.run_for(2 * MILLISECOND);
        let got = world.receive_all(Z, z);
        arrived += got.iter().map(|it| it.payload.len() as u64).sum::<u64>();
    }
    arrived
}

fn bulk() -> Config {
    Config::default().with(|it| (it.receive_buffer, it.send_buffer) = (1 << 20, 1 << 18))
}

/// Link with 8 Mbit/s, a delay of 20 ms, and a queue of one bandwidth-delay product.
const EQUAL: Link = Link {
    rate: 8_000_000,
    delay: 20 * MILLISECOND,
    queue: 60_000,
    lost: 0,
};

#[test]
fn equal_paths_carry_about_the_sum_of_both() {
    let one = carried(&bulk(), &[EQUAL], 20 * SECOND);
    // Without CMT, the second path is a standby path and adds no throughput.
    let standing_by = carried(&bulk(), &[EQUAL; 2], 20 * SECOND);
    assert!(
        standing_by.abs_diff(one) <= one / 100,
        "{standing_by}, {one}"
    );
    for profile in [Profile::rfc9260(), Profile::rfc4960()] {
        let mut profile = profile;
        profile.retransmission_path = RetransmissionPath::LargestSsthresh;
        let config = bulk().with(|it| (it.cmt, it.profile) = (true, profile));
        for paths in [2, 3] {
            let all = carried(&config, &vec![EQUAL; paths], 20 * SECOND);
            let share = all as f64 / (paths as u64 * one) as f64;
            assert!(
                (0.93..1.01).contains(&share),
                "{}: {share} of {paths} paths of {one}",
                config.profile.name
            );
        }
    }
}

/// Runs one transfer over links, with random switches and messages.
fn scenario(seed: u64, paths: usize) {
    let mut draws = Draws::new(seed);
    let links: Vec<Link> = (0..paths)
        .map(|_| Link {
            rate: 500_000 << draws.below(5),
            delay: (5 + draws.below(150)) * MILLISECOND,
            queue: 5_000 + draws.below(60_000),
            lost: draws.below(80),
        })
        .collect();
    let mut profile =
        [Profile::rfc9260, Profile::rfc4960, Profile::rfc2960][draws.below(3) as usize]();
    use RetransmissionPath::{
        Alternate, AlternateOnTimeout, AnyWithRoom, LargestCwnd, LargestSsthresh, LeastLoss, Same,
    };
    profile.retransmission_path = [
        Same,
        Alternate,
        AlternateOnTimeout,
        AnyWithRoom,
        LargestCwnd,
        LargestSsthresh,
        LeastLoss,
    ][draws.below(7) as usize];
    profile.potentially_failed = draws.below(2) == 0;
    let mut flags = draws.clone();
    draws.below(9);
    let mut flag = || flags.below(3) > 0;
    let config = Config::new(profile).with(|it| {
        it.cmt = true;
        it.cmt_split_fast_retransmit = flag();
        it.cmt_cwnd_update = flag();
        it.cmt_delayed_ack = flag();
        it.interleaving = flag();
        it.association_max_retrans = 100;
        it.cmt_buffer_split = [
            BufferSplit::Off,
            BufferSplit::Sender,
            BufferSplit::Receiver,
            BufferSplit::Both,
        ][draws.below(4) as usize];
        it.receive_buffer = 1 << (13 + draws.below(5));
        it.send_buffer = 1 << (13 + draws.below(5));
        let congestion = ["sctp", "cmt_rp", "lia", "olia", "westwood"][draws.below(5) as usize];
        it.set("congestion", congestion).expect("registered");
    });
    let told = format!("seed {seed}, {paths} paths: {links:?}, {config:?}");
    if std::env::var_os("CONCURRENT_SEEDS").is_some() {
        eprintln!("{told}");
    }
    let (mut world, a, z) = world(&config, &links, seed);
    let count = 150;
    let mut sent: BTreeMap<u32, (u16, bool, usize)> = BTreeMap::new();
    let mut got: Vec<(u32, u16, bool, usize)> = Vec::new();
    let give_up = world.now + 3_600 * SECOND;
    while got.len() < count && world.now < give_up {
        while sent.len() < count {
            let number = sent.len() as u32;
            let mut its = Draws::new(seed ^ u64::from(number) << 32);
            let (stream, unordered) = (its.below(4) as u16, its.below(4) == 0);
            let len = 4 + its.below(4_000) as usize;
            let association = world.endpoints[A].association_mut(a).expect("known");
            let options = SendOptions::on(stream).with_unordered(unordered);
            if association
                .send(world.now, message(number, len), &options)
                .is_err()
            {
                break;
            }
            sent.insert(number, (stream, unordered, len));
        }
        world.drain(A);
        world.run_for(20 * MILLISECOND);
        for message in world.receive_all(Z, z) {
            let len = message.payload.len();
            let bytes = message.payload.into_bytes();
            let number = u32::from_be_bytes(bytes[..4].try_into().expect("four"));
            got.push((number, message.stream, message.unordered, len));
        }
    }
    let mut numbers: Vec<u32> = got.iter().map(|it| it.0).collect();
    numbers.sort_unstable();
    let all: Vec<u32> = (0..count as u32).collect();
    let ends = [world.close_reason(A, a), world.close_reason(Z, z)];
    assert_eq!(ends, [None, None], "{told}");
    assert_eq!(numbers, all, "each once; {told}");
    for stream in 0..4 {
        let ordered = got.iter().filter(|it| it.1 == stream && !it.2);
        let ordered: Vec<u32> = ordered.map(|it| it.0).collect();
        assert!(ordered.is_sorted(), "stream {stream}: {ordered:?}; {told}");
    }
    for (number, stream, unordered, len) in got {
        assert_eq!(sent[&number], (stream, unordered, len), "{told}");
    }
    world.run_for(120 * SECOND);
    let association = world.endpoints[A].association(a).expect("known");
    for (id, path) in association.paths().iter() {
        let held = (path.flightsize(), path.marked_bytes());
        assert_eq!(held, (0, 0), "{id:?} is empty in the end; {told}");
    }
    world.fate = Box::new(|_| Fate::Deliver);
    world.shutdown(A, a);
    world.run_for(120 * SECOND);
    assert_eq!(world.state(A, a), AssociationState::Closed, "{told}");
}

/// Range of seeds for a case. `CONCURRENT_SEEDS=1000` runs more seeds, and prints them.
fn seeds(from: u64) -> std::ops::Range<u64> {
    let count = std::env::var("CONCURRENT_SEEDS").ok();
    from..from + count.and_then(|it| it.parse().ok()).unwrap_or(40)
}

#[test]
fn everything_arrives_once_over_two_paths_that_lose() {
    seeds(0).for_each(|seed| scenario(seed, 2));
}

#[test]
fn everything_arrives_once_over_three_paths_that_lose() {
    seeds(1_000_000).for_each(|seed| scenario(seed, 3));
}

/// With RFC 7829, a path that fails gets no new data after its first timeout, and is used again
/// when it answers.
#[test]
fn a_path_that_dies_costs_one_timeout_and_comes_back() {
    let config = bulk().with(|it| {
        (it.cmt, it.heartbeat_interval) = (true, Some(SECOND));
        it.profile.potentially_failed = true;
    });
    let (mut world, a, z) = world(&config, &[EQUAL; 2], 1);
    let began = world.now;
    let mut inner = std::mem::replace(&mut world.fate, Box::new(|_| Fate::Deliver));
    let (dies, lives) = (began + 5 * SECOND, began + 25 * SECOND);
    world.fate = Box::new(move |shot| {
        let second = [address(A, 1), address(Z, 1)].contains(&shot.path.remote);
        if second && (dies..lives).contains(&shot.at) {
            return Fate::Drop;
        }
        inner(shot)
    });
    let mut number = 0;
    let mut second = |world: &mut World, time: Nanos| {
        let end = world.now + time;
        let mut arrived = 0;
        while world.now < end {
            let association = world.endpoints[A].association_mut(a).expect("known");
            let options = SendOptions::new().with_unordered(true);
            while association
                .send(world.now, message(number, 1_400), &options)
                .is_ok()
            {
                number += 1;
            }
            world.drain(A);
            world.run_for(5 * MILLISECOND);
            arrived += world.receive_all(Z, z).len() as u64 * 1_400;
        }
        arrived * 8 * SECOND / time
    };
    let state = |world: &World| {
        let association = world.endpoints[A].association(a).expect("known");
        association.paths().get(PathId(1)).state()
    };
    second(&mut world, 2 * SECOND);
    let both = second(&mut world, 3 * SECOND);
    second(&mut world, 2 * SECOND);
    assert_eq!(state(&world), PathState::PotentiallyFailed);
    second(&mut world, SECOND);
    let one = second(&mut world, 10 * SECOND);
    // The remaining path is fully used: 8 Mbit/s minus headers.
    assert!((7_000_000..8_000_000).contains(&one), "{one}");
    assert!(both > 14_000_000, "{both}");
    second(&mut world, 30 * SECOND);
    assert_eq!(state(&world), PathState::Active);
    let again = second(&mut world, 3 * SECOND);
    assert!(again > 14_000_000, "{again}");
}

/// If both ends have the setting `cmt_delayed_ack`, SACKs are delayed while data is missing, and
/// their flags report the number of packets that they acknowledge.
#[test]
fn sacks_are_delayed_while_data_is_missing_and_tell_how_many_packets_they_answer() {
    for (delayed, sacks, flags) in [(true, 2, vec![0x80, 0x80]), (false, 4, vec![0; 4])] {
        let config = Config::default().with(|it| {
            (it.cmt, it.cmt_delayed_ack) = (true, delayed);
            it.profile.max_burst = 8;
        });
        let mut world = World::new(config);
        let (a, _) = world.established();
        world.send(A, a, 0, "the first is answered at once");
        world.run_for(SECOND);
        world.forget();
        let mut first = true;
        world.fate = Box::new(move |shot| {
            if shot.from == A && std::mem::take(&mut first) {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        });
        let association = world.endpoints[A].association_mut(a).expect("known");
        for number in 0..5 {
            let sent = association.send(world.now, message(number, 800), &SendOptions::new());
            sent.expect("room");
        }
        world.drain(A);
        // Run until the SACKs of the four packets that arrived are sent, but not until they arrive.
        world.run_for(world.delay + MILLISECOND);
        let told: Vec<u8> = world
            .shots
            .iter()
            .filter(|it| it.from == Z && it.chunks == "SACK")
            .map(|it| it.bytes[13])
            .collect();
        assert_eq!((told.len(), told), (sacks, flags), "{:#?}", world.story);
    }
}

/// An abandoned chunk whose TSN is not the lowest is dropped when its path sends next. Otherwise it
/// would block other data on that path, and path probes would be due repeatedly.
#[test]
fn abandoned_chunks_block_no_path() {
    for seed in 0..300 {
        let mut draws = Draws::new(seed);
        let config = Config::default().with(|it| {
            it.cmt = true;
            it.partial_reliability = true;
            it.path_mtu_discovery = true;
            it.association_max_retrans = 60;
        });
        let homes = |host: usize| {
            let addresses = (0..3).map(|it| address(host, it));
            config.clone().with(|it| it.addresses = addresses.collect())
        };
        let mut world = World::with_configs(homes(A), homes(Z));
        world.narrate = false;
        let (a, z) = world.established();
        world.run_for(5 * SECOND);
        let mut fates = draws.clone();
        world.fate = Box::new(move |_| match fates.below(4) {
            0 => Fate::Drop,
            1 => Fate::Late((1 + fates.below(400)) * MILLISECOND),
            _ => Fate::Deliver,
        });
        for _ in 0..60 {
            let most = (draws.below(2) == 0).then(|| draws.below(2) as u32);
            let options = SendOptions::new().with_max_retransmits(most);
            let length = [10, 500, 3_000, 9_000][draws.below(4) as usize];
            let now = world.now;
            let association = world.endpoints[A].association_mut(a).expect("known");
            let _ = association.send(now, vec![0; length].into(), &options);
            world.drain(A);
            let until = world.now + draws.below(300) * MILLISECOND;
            let steps = std::iter::from_fn(|| world.step(until).then_some(()));
            assert!(steps.take(20_000).count() < 20_000, "seed {seed}");
            world.run_until(until);
            world.receive_all(Z, z);
        }
    }
}
