//! Tests of the attacks in RFC 5062, except address camping (see `address_camping.rs`) and those in
//! `cves.rs`.

use crate::common;

use std::net::IpAddr;

use anabranch_sctp::{AssociationState, Config, DiscardReason};
use anabranch_transport::time::SECOND;
use anabranch_wire::Causes;
use anabranch_wire::chunk::{Abort, Chunk, CookieEcho, Heartbeat};
use bytes::Bytes;
use common::caller::*;
use common::*;

const ATTACKER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 66, 6, 6));
const VICTIM: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 77));

/// Creates a world in which the packets of Z are recorded but not delivered.
fn alone() -> World {
    let mut world = World::new(Config::default());
    world.fate = Box::new(|_| Fate::Drop);
    world
}

fn sent_to(world: &World, to: IpAddr) -> Vec<&Shot> {
    let all = world.shots.iter();
    all.filter(|shot| shot.from == Z && shot.path.remote == to)
        .collect()
}

/// §6: an attacker sends a stored cookie repeatedly after the ABORT of the victim has ended the
/// association. This should cause no more HEARTBEATs to the victim.
#[test]
fn a_stored_cookie_sets_off_one_round_of_heartbeats() {
    let mut world = alone();
    let answers = ask(&mut world, ATTACKER, 7, &[ATTACKER, VICTIM]);
    let (tag, cookie) = cookie_of(&answers[0].bytes);
    let echo = Chunk::CookieEcho(CookieEcho { cookie });
    let abort = Chunk::Abort(Abort {
        tag_reflected: true,
        causes: Causes::empty(),
    });
    for _ in 0..20 {
        say_from(&mut world, ATTACKER, tag, &[&echo]);
        say_from(&mut world, VICTIM, 7, &[&abort]);
        let all: Vec<_> = world.endpoints[Z].associations().collect();
        for id in all {
            assert_eq!(world.state(Z, id), AssociationState::Closed);
            assert!(world.endpoints[Z].release(id));
        }
        world.run_for(SECOND);
    }
    assert_eq!(sent_to(&world, VICTIM).len(), 1, "{:#?}", world.story);
    assert_eq!(
        world.endpoints[Z].discards().of(DiscardReason::LateCookie),
        19
    );
}

/// §7: a cookie should be valid only between the two ports of its INIT, and only in packets with
/// the tag that it contains.
#[test]
fn a_cookie_is_good_between_its_own_ports_only() {
    let mut world = alone();
    world.endpoints[Z].answer_unknown_ports(true);
    let answers = ask(&mut world, ATTACKER, 7, &[]);
    let (tag, cookie) = cookie_of(&answers[0].bytes);
    let echo = packet(A, tag, &[&Chunk::CookieEcho(CookieEcho { cookie })]);
    let path = anabranch_transport::Path::new(address(Z, 0), ATTACKER);
    // Offsets of the low bytes of the source port, the destination port and the tag.
    for at in [1, 3, 7] {
        let mut other = echo.to_vec();
        other[at] ^= 1;
        anabranch_wire::checksum::fill(&mut other);
        world.forget();
        world.inject_from(Z, path, other.into());
        assert!(sent_to(&world, ATTACKER).is_empty(), "byte {at}");
        assert_eq!(world.endpoints[Z].associations().count(), 0);
    }
    world.inject_from(Z, path, echo);
    assert_eq!(world.endpoints[Z].associations().count(), 1);
}

/// §8, §10: a packet should cause at most one packet, no matter how many of its chunks request an
/// answer.
#[test]
fn one_packet_draws_one_packet() {
    let unknown = |length: usize| {
        let mut bytes = vec![0xEF, 0, (length >> 8) as u8, length as u8];
        bytes.resize(length.next_multiple_of(4), 1);
        bytes
    };
    let heartbeat = |length: usize| {
        let info = Bytes::from(vec![3; length]);
        packet(A, 0, &[&Chunk::Heartbeat(Heartbeat { info })])[12..].to_vec()
    };
    for one in [
        unknown(1_400),
        unknown(4),
        unknown(700),
        heartbeat(1_300),
        heartbeat(0),
    ] {
        let mut world = alone();
        let caller = Caller::call(&mut world, ATTACKER, 7, &[]).expect("served");
        world.forget();
        let many = one.repeat(60_000 / one.len());
        let bytes = raw_packet(A, caller.to_z, &many);
        let path = anabranch_transport::Path::new(address(Z, 0), ATTACKER);
        world.inject_from(Z, path, bytes);
        assert_eq!(sent_to(&world, ATTACKER).len(), 1, "{:#?}", world.story);
        let id = world.only_association(Z);
        assert_eq!(world.state(Z, id), AssociationState::Established);
        assert!(world.endpoints[Z].discards().of(DiscardReason::RateLimited) > 0);
    }
    // An out of the blue packet should also cause at most one packet.
    let mut world = alone();
    let path = anabranch_transport::Path::new(address(Z, 0), ATTACKER);
    world.inject_from(Z, path, raw_packet(A, 9, &heartbeat(4).repeat(1_000)));
    assert_eq!(sent_to(&world, ATTACKER).len(), 1);
}
