//! Address camping (RFC 5062 §2): an attacker lists an address that it does not own. The listing
//! must neither lock out the owner nor capture its packets before the address is verified (RFC 9260
//! §5.4).

use crate::common;

use std::net::IpAddr;

use anabranch_sctp::{
    AssociationId, AssociationState, CloseReason, Config, DiscardReason, Event, PathState,
};
use anabranch_transport::time::SECOND;
use anabranch_wire::Causes;
use anabranch_wire::chunk::{Abort, Chunk, CookieEcho, HeartbeatAck};
use common::caller::*;
use common::*;

/// Address of the attacker, and addresses of its victim.
const CAMPER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 66, 6, 6));
const VICTIM: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 77));
const VICTIMS_OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 77));

const CAMPERS_TAG: u32 = 0xBAD;
const VICTIMS_TAG: u32 = 0xB0B;

/// World with only Z, whose packets are recorded but not delivered.
fn alone() -> World {
    let mut world = World::new(Config::default());
    world.fate = Box::new(|_| Fate::Drop);
    world
}

/// World in which an attacker with an association to Z also lists [`VICTIM`].
fn camped() -> (World, Caller, AssociationId) {
    let mut world = alone();
    let camper = Caller::call(&mut world, CAMPER, CAMPERS_TAG, &[CAMPER, VICTIM]);
    let id = world.only_association(Z);
    (world, camper.expect("nobody is there yet"), id)
}

fn addresses(world: &World, id: AssociationId) -> Vec<IpAddr> {
    let association = world.endpoints[Z].association(id).expect("known");
    association.paths().addresses().collect()
}

/// Association of Z other than `other`.
fn beside(world: &World, other: AssociationId) -> AssociationId {
    let mut all = world.endpoints[Z].associations();
    let found = all.find(|&id| id != other);
    found.expect("two associations")
}

fn texts(world: &mut World, id: AssociationId) -> Vec<Vec<u8>> {
    let messages = world.receive_all(Z, id).into_iter();
    messages
        .map(|message| message.payload.into_bytes().to_vec())
        .collect()
}

/// HEARTBEAT ACK for the last HEARTBEAT sent to `to` with `tag`.
fn heartbeat_answer(world: &World, to: IpAddr, tag: u32) -> Chunk {
    let asked = world.shots.iter().rev().find(|shot| {
        shot.from == Z
            && shot.path.remote == to
            && shot.chunks.contains("HEARTBEAT")
            && header_of(&shot.bytes).verification_tag == tag
    });
    let asked = asked.unwrap_or_else(|| panic!("no HEARTBEAT to {to}: {:#?}", world.story));
    let info = chunks_of(&asked.bytes).into_iter().find_map(|it| match it {
        Chunk::Heartbeat(heartbeat) => Some(heartbeat.info),
        _ => None,
    });
    Chunk::HeartbeatAck(HeartbeatAck {
        info: info.expect("a HEARTBEAT"),
    })
}

/// Number of HEARTBEATs sent to `to` with `tag`.
fn probes(world: &World, to: IpAddr, tag: u32) -> usize {
    let probe = |shot: &&Shot| {
        shot.from == Z
            && shot.path.remote == to
            && shot.chunks.contains("HEARTBEAT")
            && header_of(&shot.bytes).verification_tag == tag
    };
    world.shots.iter().filter(probe).count()
}

#[test]
fn the_owner_of_a_listed_address_is_served_and_the_address_is_its_own() {
    let (mut world, camper, camped) = camped();
    let victim = Caller::call(&mut world, VICTIM, VICTIMS_TAG, &[]).expect("served");
    let served = beside(&world, camped);
    assert_eq!(addresses(&world, served), [VICTIM]);
    assert_eq!(addresses(&world, camped), [CAMPER], "not the camper's");
    let told = world.told(Z);
    assert!(!told.iter().any(|it| matches!(it, Event::Restarted { .. })));
    // Both associations continue; the attacker's association loses only the address of the victim.
    victim.say(&mut world, &[&message_of(0, b"mine")]);
    camper.say(&mut world, &[&message_of(0, b"whose")]);
    assert_eq!(texts(&mut world, served), [b"mine"]);
    assert_eq!(texts(&mut world, camped), [b"whose"]);
    assert_eq!(world.state(Z, camped), AssociationState::Established);
}

#[test]
fn data_of_a_camping_attacker_is_not_delivered_to_its_victims_association() {
    let (mut world, camper, camped) = camped();
    camper.say(&mut world, &[&message_of(0, b"delete everything")]);
    Caller::call(&mut world, VICTIM, VICTIMS_TAG, &[]).expect("served");
    let served = beside(&world, camped);
    assert_eq!(texts(&mut world, served), [b""; 0]);
    // Data of the attacker belongs to the association that has only the attacker's address.
    assert_eq!(addresses(&world, camped), [CAMPER]);
    assert_eq!(texts(&mut world, camped), [b"delete everything"]);
}

/// Case of RFC 5062 §2.1: the victim has another address in addition to the one that the attacker
/// lists.
#[test]
fn a_victim_with_two_addresses_is_served_and_takes_the_second_back() {
    let (mut world, camper, camped) = camped();
    let both = [VICTIMS_OTHER, VICTIM];
    let victim = Caller::call(&mut world, VICTIMS_OTHER, VICTIMS_TAG, &both).expect("served");
    let served = beside(&world, camped);
    assert_eq!(addresses(&world, served), both);
    assert_eq!(
        addresses(&world, camped),
        [CAMPER, VICTIM],
        "not decided yet"
    );
    // The HEARTBEAT ACK from that address shows that it belongs to the victim.
    let answer = heartbeat_answer(&world, VICTIM, VICTIMS_TAG);
    victim.moved(VICTIM).say(&mut world, &[&answer]);
    let association = world.endpoints[Z].association(served).expect("known");
    let states: Vec<_> = association
        .paths()
        .iter()
        .map(|(_, path)| path.state())
        .collect();
    assert_eq!(states, [PathState::Active; 2]);
    assert_eq!(addresses(&world, camped), [CAMPER]);
    // The address is no longer probed for the attacker, even on request.
    world.forget();
    let now = world.now;
    for path in 0..2 {
        let association = world.endpoints[Z].association_mut(camped).expect("known");
        association.request_heartbeat(anabranch_sctp::PathId(path));
        assert!(!association.set_primary(now, VICTIM));
    }
    world.drain(Z);
    world.run_for(200 * SECOND);
    assert_eq!(probes(&world, VICTIM, CAMPERS_TAG), 0, "{:#?}", world.story);
    assert!(probes(&world, CAMPER, CAMPERS_TAG) > 0);
    assert!(probes(&world, VICTIM, VICTIMS_TAG) > 0);
    // A packet from this address with the attacker's tag is treated as a forgery.
    let before = world.endpoints[Z]
        .discards()
        .of(DiscardReason::VerificationTag);
    camper
        .moved(VICTIM)
        .say(&mut world, &[&message_of(0, b"forged")]);
    let after = world.endpoints[Z]
        .discards()
        .of(DiscardReason::VerificationTag);
    assert_eq!(after, before + 1);
    assert_eq!(texts(&mut world, camped), [b""; 0]);
}

/// While the address is unverified, packets from it are distinguished by their tags.
#[test]
fn of_two_associations_that_list_one_address_each_receives_its_own_packets() {
    let (mut world, camper, camped) = camped();
    let both = [VICTIMS_OTHER, VICTIM];
    let victim = Caller::call(&mut world, VICTIMS_OTHER, VICTIMS_TAG, &both).expect("served");
    let served = beside(&world, camped);
    victim
        .moved(VICTIM)
        .say(&mut world, &[&message_of(0, b"mine")]);
    camper
        .moved(VICTIM)
        .say(&mut world, &[&message_of(0, b"whose")]);
    assert_eq!(texts(&mut world, served), [b"mine"]);
    assert_eq!(texts(&mut world, camped), [b"whose"]);
    // Tags also distinguish packets from this address if three associations list it, and after one
    // of these has closed.
    let third: IpAddr = [10, 66, 6, 7].into();
    let more = Caller::call(&mut world, third, 0xBAD2, &[third, VICTIM]).expect("served");
    let abort = Chunk::Abort(Abort {
        tag_reflected: false,
        causes: Causes::empty(),
    });
    camper.moved(VICTIM).say(&mut world, &[&abort]);
    assert_eq!(world.state(Z, camped), AssociationState::Closed);
    victim
        .moved(VICTIM)
        .say(&mut world, &[&message_of(1, b"still mine")]);
    assert_eq!(texts(&mut world, served), [b"still mine"]);
    more.moved(VICTIM).say(&mut world, &[&message_of(0, b"-")]);
    assert!(world.endpoints[Z].release(camped));
    world.run_for(SECOND);
}

/// The owner has no association with Z, so its packets are out of the blue and are answered
/// accordingly (RFC 9260 §8.4).
#[test]
fn packets_of_the_owner_out_of_the_blue_are_answered() {
    let (mut world, _, camped) = camped();
    let answers = say_from(&mut world, VICTIM, 0x5717, &[&message_of(0, b"lost")]);
    assert_eq!(answers.len(), 1, "{:#?}", world.story);
    assert_eq!(answers[0].chunks, "ABORT");
    assert_eq!(header_of(&answers[0].bytes).verification_tag, 0x5717);
    assert_eq!(world.state(Z, camped), AssociationState::Established);
}

/// The owner's stack answers the HEARTBEAT of an unknown association by ABORT, which ends the
/// attacker's association (RFC 5062 §2.2, 2).
#[test]
fn the_owners_abort_ends_the_association_of_the_camping_attacker() {
    let (mut world, _, camped) = camped();
    let abort = Chunk::Abort(Abort {
        tag_reflected: true,
        causes: Causes::empty(),
    });
    say_from(&mut world, VICTIM, 0x5717, &[&abort]);
    assert_eq!(world.state(Z, camped), AssociationState::Established);
    say_from(&mut world, VICTIM, CAMPERS_TAG, &[&abort]);
    assert_eq!(
        world.close_reason(Z, camped),
        Some(CloseReason::AbortedByPeer { cause: None })
    );
}

/// A verified address belongs to its association, even if others list it (RFC 9260 §5.1.2).
#[test]
fn a_verified_address_cannot_be_camped_on() {
    let mut world = alone();
    // One INIT arrives before the owner connects, and one after.
    let early = ask(&mut world, CAMPER, CAMPERS_TAG, &[CAMPER, VICTIM]);
    Caller::call(&mut world, VICTIM, VICTIMS_TAG, &[]).expect("served");
    let served = world.only_association(Z);
    let (tag, cookie) = cookie_of(&early[0].bytes);
    let echo = Chunk::CookieEcho(CookieEcho { cookie });
    assert!(say_from(&mut world, CAMPER, tag, &[&echo]).is_empty());
    let late = ask(&mut world, CAMPER, CAMPERS_TAG, &[CAMPER, VICTIM]);
    assert_eq!(late[0].chunks, "ABORT");
    assert_eq!(world.only_association(Z), served);
    assert_eq!(addresses(&world, served), [VICTIM]);
    let discards = world.endpoints[Z].discards();
    assert_eq!(discards.of(DiscardReason::LateCookie), 1);
    assert_eq!(discards.of(DiscardReason::RestartNewAddress), 1);
}

/// The attacker received the INIT ACK, so a COOKIE ECHO with the listed address as its source does
/// not verify that address (RFC 9260 §5.4, rule 2).
#[test]
fn a_cookie_echo_from_a_listed_address_verifies_nothing() {
    let mut world = alone();
    let answers = ask(&mut world, CAMPER, CAMPERS_TAG, &[CAMPER, VICTIM]);
    let (tag, cookie) = cookie_of(&answers[0].bytes);
    let echo = Chunk::CookieEcho(CookieEcho { cookie });
    let acks = say_from(&mut world, VICTIM, tag, &[&echo]);
    assert_eq!(acks[0].chunks, "COOKIE ACK, HEARTBEAT");
    let camped = world.only_association(Z);
    Caller::call(&mut world, VICTIM, VICTIMS_TAG, &[]).expect("served");
    assert_eq!(addresses(&world, beside(&world, camped)), [VICTIM]);
    assert_eq!(addresses(&world, camped), [CAMPER]);
}

/// Addresses passed to connect count as verified by the user (RFC 9260 §5.4, rule 1).
#[test]
fn an_address_with_a_camping_attacker_can_be_connected_to() {
    let (mut world, _, camped) = camped();
    let now = world.now;
    let called = world.endpoints[Z].connect(now, &[VICTIM], PORT_A);
    let called = called.expect("nobody has shown that it is there");
    world.drain(Z);
    assert_eq!(addresses(&world, called), [VICTIM]);
    assert_eq!(addresses(&world, camped), [CAMPER]);
    let again = world.endpoints[Z].connect(now, &[VICTIM], PORT_A);
    assert_eq!(again, Err(anabranch_sctp::ConnectError::Exists(called)));
}

/// A server lists the address of another host in its INIT ACK.
#[test]
fn a_server_that_lists_a_clients_address_does_not_get_it() {
    let mut world = alone();
    let victim = Caller::call(&mut world, VICTIM, VICTIMS_TAG, &[]).expect("served");
    let served = world.only_association(Z);
    let now = world.now;
    let called = world.endpoints[Z].connect(now, &[CAMPER], PORT_A).unwrap();
    world.drain(Z);
    let init = world.shot(Z, "INIT");
    let Chunk::Init(init) = chunks_of(&init).remove(0) else {
        panic!()
    };
    let Chunk::Init(mut ack) = init_of(CAMPERS_TAG, &[CAMPER, VICTIM]) else {
        panic!()
    };
    let mut listed: Vec<_> = ack.parameters.iter().flatten().collect();
    listed.push(anabranch_wire::parameter::Parameter::StateCookie(
        bytes::Bytes::from_static(b"a cookie"),
    ));
    ack.parameters = anabranch_wire::parameter::Parameters::of(&listed);
    let ack = Chunk::InitAck(anabranch_wire::chunk::InitAck(ack));
    say_from(&mut world, CAMPER, init.initiate_tag, &[&ack]);
    say_from(&mut world, CAMPER, init.initiate_tag, &[&Chunk::CookieAck]);
    assert_eq!(world.state(Z, called), AssociationState::Established);
    assert_eq!(addresses(&world, called), [CAMPER]);
    world.forget();
    world.run_for(100 * SECOND);
    assert_eq!(probes(&world, VICTIM, CAMPERS_TAG), 0);
    victim.say(&mut world, &[&message_of(0, b"mine")]);
    assert_eq!(texts(&mut world, served), [b"mine"]);
}

/// The user has selected an unverified address as the primary path, but another peer verifies it.
#[test]
fn a_primary_address_of_another_host_is_abandoned() {
    let (mut world, _, camped) = camped();
    let now = world.now;
    let association = world.endpoints[Z].association_mut(camped).expect("known");
    assert!(association.set_primary(now, VICTIM));
    world.drain(Z);
    world.forget();
    Caller::call(&mut world, VICTIM, VICTIMS_TAG, &[]).expect("served");
    world.run_for(SECOND);
    let association = world.endpoints[Z].association(camped).expect("known");
    let primary = association.paths().primary();
    assert_eq!(association.paths().get(primary).path().remote, CAMPER);
    let told: Vec<_> = world.events[Z]
        .iter()
        .filter(|(id, _)| *id == camped)
        .map(|(_, event)| event.clone())
        .collect();
    assert!(
        told.iter().any(|it| matches!(it,
            Event::PathChanged { address, state: PathState::Inactive, .. } if *address == VICTIM)),
        "{told:?}"
    );
    assert!(
        told.iter()
            .any(|it| matches!(it, Event::PrimaryChanged { address, .. } if *address == CAMPER)),
        "{told:?}"
    );
}

/// A peer restarts from an address that was not verified before. The address is verified by the
/// restart, but data received before the restart may come from another host.
#[test]
fn a_restart_from_an_unverified_address_inherits_nothing_unread() {
    for (verified, kept) in [(false, 0), (true, 1)] {
        let mut world = alone();
        let both = [CAMPER, VICTIM];
        let first = Caller::call(&mut world, CAMPER, CAMPERS_TAG, &both).expect("free");
        let id = world.only_association(Z);
        first.say(&mut world, &[&message_of(0, b"unread")]);
        if verified {
            let answer = heartbeat_answer(&world, VICTIM, CAMPERS_TAG);
            first.moved(VICTIM).say(&mut world, &[&answer]);
        }
        Caller::call(&mut world, VICTIM, 0x11FE, &both).expect("a restart");
        assert_eq!(world.only_association(Z), id);
        let told = world.told(Z);
        assert!(told.contains(&Event::Restarted { data_lost: false }));
        assert_eq!(texts(&mut world, id).len(), kept, "verified: {verified}");
    }
}

/// A peer that restarts with fewer addresses releases the others, even verified ones, for other
/// peers.
#[test]
fn an_address_that_a_restart_does_not_list_is_free() {
    let mut world = alone();
    let both = [CAMPER, VICTIM];
    let first = Caller::call(&mut world, CAMPER, CAMPERS_TAG, &both).expect("free");
    let id = world.only_association(Z);
    let answer = heartbeat_answer(&world, VICTIM, CAMPERS_TAG);
    first.moved(VICTIM).say(&mut world, &[&answer]);
    Caller::call(&mut world, CAMPER, 0x11FE, &[CAMPER]).expect("a restart");
    assert_eq!(addresses(&world, id), [CAMPER]);
    Caller::call(&mut world, VICTIM, VICTIMS_TAG, &[VICTIM]).expect("it is free");
    assert_eq!(addresses(&world, beside(&world, id)), [VICTIM]);
}
