//! Two hosts with two addresses each, with random faults: networks lose and delay packets and fail
//! for some time, windows close, and routers send ICMP errors. After the faults every message must
//! have arrived once and in order, and both ends must close gracefully.

use crate::common;

use anabranch_sctp::profile::DormantPath;
use anabranch_sctp::{AssociationId, CloseReason, Config, Icmp, Profile, SendOptions};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};
use bytes::{BufMut, Bytes, BytesMut};
use common::*;
use rand_core::{RngCore, SeedableRng};
use std::net::IpAddr;

type Random = rand_pcg::Pcg64Mcg;

const MESSAGES: u32 = 120;
/// Time from which on every network is reliable.
const PEACE: Nanos = 90 * SECOND;

fn network(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(address) => address.octets()[2].into(),
        IpAddr::V6(_) => 1,
    }
}

fn below(random: &mut Random, most: u32) -> u32 {
    random.next_u32() % most
}

fn config(random: &mut Random) -> Config {
    let name = Profile::NAMES[below(random, 4) as usize];
    let mut profile = Profile::by_name(name).expect("its own name");
    profile.potentially_failed = below(random, 2) == 0;
    profile.answer_after_timeout_clears_errors = below(random, 2) == 0;
    let policies = ["same_path", "alternate_path", "alternate_after_timeout"];
    let policy = policies[below(random, 3) as usize];
    profile
        .set("retransmission_path", policy)
        .expect("a policy");
    if below(random, 2) == 0 {
        profile.dormant_path = DormantPath::FewestErrors;
    }
    let path_max_retrans = below(random, 4);
    Config::new(profile).with(|it| {
        it.path_max_retrans = path_max_retrans;
        it.association_max_retrans = 1_000;
        it.max_init_retransmits = 100;
        it.primary_switchover_max_retrans =
            (below(random, 3) == 0).then(|| path_max_retrans + below(random, 6));
        it.receive_buffer = [65_536, 8_000, 3_000][below(random, 3) as usize];
        it.heartbeat_interval = (below(random, 4) > 0).then_some(2 * SECOND);
        it.rto_max = 5 * SECOND;
        it.delayed_sack = below(random, 4) > 0;
    })
}

fn homes(host: usize, config: &Config) -> Config {
    config
        .clone()
        .with(|it| it.addresses = vec![address(host, 0), address(host, 1)])
}

/// Random outages of each network, and loss and reordering during the faults.
fn trouble(seed: u64, begun: Nanos) -> Box<dyn FnMut(&Shot) -> Fate> {
    let mut random = Random::seed_from_u64(seed);
    let mut outages = Vec::new();
    for _ in 0..below(&mut random, 8) {
        let from = begun + u64::from(below(&mut random, 60)) * SECOND;
        let until = from + u64::from(below(&mut random, 20_000)) * MILLISECOND;
        outages.push((below(&mut random, 2) as usize, from, until));
    }
    let losses = [below(&mut random, 30), below(&mut random, 30)];
    let late = below(&mut random, 20);
    Box::new(move |shot| {
        if shot.at >= begun + PEACE {
            return Fate::Deliver;
        }
        let on = network(shot.path.remote);
        let down = |&(which, from, until): &(usize, Nanos, Nanos)| {
            which == on && (from..until).contains(&shot.at)
        };
        if outages.iter().any(down) || below(&mut random, 100) < losses[on] {
            Fate::Drop
        } else if below(&mut random, 100) < late {
            Fate::Late(u64::from(below(&mut random, 300)) * MILLISECOND)
        } else if below(&mut random, 100) == 0 {
            Fate::Duplicate
        } else {
            Fate::Deliver
        }
    })
}

/// Message that starts with its number.
fn numbered(number: u32, len: usize) -> Bytes {
    let mut payload = BytesMut::new();
    payload.put_u32(number);
    payload.resize(4 + len, 7);
    payload.freeze()
}

/// Sends a host an ICMP error about one of its recent packets, as a router does.
fn complain(world: &mut World, random: &mut Random) {
    let Some(shot) = world.shots.last().cloned() else {
        return;
    };
    let IpAddr::V4(remote) = shot.path.remote else {
        return;
    };
    let mut quoted = vec![0; 20];
    quoted[0] = 0x45;
    quoted[9] = 132;
    quoted[16..20].copy_from_slice(&remote.octets());
    quoted.extend_from_slice(&shot.bytes);
    let (code, mtu) = [(1, 0), (4, 1_200)][below(random, 2) as usize];
    let icmp = Icmp {
        v6: false,
        kind: 3,
        code,
        mtu,
        quoted: &quoted,
    };
    let now = world.now;
    world.endpoints[shot.from].handle_icmp(now, &icmp);
    world.drain(shot.from);
}

fn case(seed: u64) {
    let mut random = Random::seed_from_u64(seed);
    let config = config(&mut random);
    let mut world = World::with_configs(homes(A, &config), homes(Z, &config));
    let begun = world.now;
    world.fate = trouble(seed ^ 0x5EED, begun);
    let remote = [address(Z, 0), address(Z, 1)];
    let known = 1 + below(&mut random, 2) as usize;
    let a = world.endpoints[A]
        .connect(begun, &remote[..known], PORT_Z)
        .expect("free");
    world.drain(A);
    let (mut sent, mut got) = (0, Vec::new());
    let peer = |world: &World| world.endpoints[Z].associations().next();
    while world.now < begun + PEACE + 300 * SECOND && got.len() < MESSAGES as usize {
        let burst = below(&mut random, 6);
        for _ in 0..burst.min(MESSAGES - sent) {
            // A buffer of 3,000 bytes accepts messages of this length under any profile.
            let len = below(&mut random, 700) as usize;
            let association = world.endpoints[A].association_mut(a).expect("known");
            let message = numbered(sent, len);
            let immediate = below(&mut random, 8) == 0;
            let options = SendOptions::new().with_immediate(immediate);
            let taken = association.send(world.now, message, &options);
            if taken.is_err() {
                break;
            }
            sent += 1;
        }
        world.drain(A);
        if below(&mut random, 10) == 0 {
            complain(&mut world, &mut random);
        }
        if below(&mut random, 20) == 0 {
            let (now, wished) = (world.now, remote[below(&mut random, 2) as usize]);
            let association = world.endpoints[A].association_mut(a).expect("known");
            association.set_primary(now, wished);
        }
        world.run_for(u64::from(below(&mut random, 1_500)) * MILLISECOND);
        world.shots.clear();
        world.story.clear();
        if let Some(z) = peer(&world).filter(|_| below(&mut random, 4) > 0) {
            take(&mut world, z, &mut got);
        }
    }
    let expected: Vec<u32> = (0..MESSAGES).collect();
    assert_eq!(got, expected, "each once, in order");
    // Wait until the network is reliable, because a late packet causes an ABORT if the SHUTDOWN
    // COMPLETE is lost (RFC 9260 §8.4).
    world.run_until(begun + PEACE + 10 * SECOND);
    world.story.clear();
    let z = peer(&world).expect("it was connected");
    world.shutdown(A, a);
    world.run_for(60 * SECOND);
    for (host, id) in [(A, a), (Z, z)] {
        let reason = world.close_reason(host, id);
        let end = Some(CloseReason::Shutdown);
        assert_eq!(reason, end, "{} {:#?}", name(host), world.story);
    }
}

fn take(world: &mut World, z: AssociationId, got: &mut Vec<u32>) {
    for message in world.receive_all(Z, z) {
        let bytes = message.payload.into_bytes();
        got.push(u32::from_be_bytes(bytes[..4].try_into().expect("numbered")));
    }
}

#[test]
fn everything_arrives_once_the_faults_are_over() {
    seeds::each(60, case);
}
