//! Tests of packets for an unused port at an endpoint that owns its UDP port. It must answer for
//! all SCTP ports (RFC 9260 §8.4).

use crate::common;

use anabranch_sctp::{Config, DiscardReason};
use anabranch_wire::cause::Causes;
use anabranch_wire::chunk::{Abort, Chunk, CookieEcho, Init};
use anabranch_wire::packet::CommonHeader;
use anabranch_wire::parameter::Parameters;
use anabranch_wire::serial::Tsn;
use bytes::Bytes;
use common::*;

const NOBODYS: u16 = 9;
const TAG: u32 = 0x1234_5678;

fn world() -> World {
    let mut world = World::new(Config::default());
    world.endpoints[Z].answer_unknown_ports(true);
    world
}

/// Builds a packet of A to a port that Z does not use.
fn astray(verification_tag: u32, chunks: &[&Chunk]) -> Bytes {
    let mut bytes = packet(A, verification_tag, chunks).to_vec();
    bytes[2..4].copy_from_slice(&NOBODYS.to_be_bytes());
    anabranch_wire::checksum::fill(&mut bytes);
    bytes.into()
}

fn init() -> Chunk {
    Chunk::Init(Init {
        initiate_tag: TAG,
        a_rwnd: 65_536,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(1),
        parameters: Parameters::empty(),
    })
}

/// Header and chunks of the only packet that Z has sent.
fn answer(world: &World) -> (CommonHeader, String) {
    let answers: Vec<_> = world.shots.iter().filter(|shot| shot.from == Z).collect();
    let [answer] = answers[..] else {
        panic!("{:?}", world.story);
    };
    let packet = anabranch_wire::packet::Packet::parse(
        &answer.bytes,
        anabranch_wire::packet::Checksum::Verify,
    );
    (packet.expect("a packet").header, answer.chunks.clone())
}

#[test]
fn an_init_is_refused_with_the_tag_it_asks_for_from_the_port_it_was_sent_to() {
    let mut world = world();
    world.inject(Z, astray(0, &[&init()]));
    let (header, chunks) = answer(&world);
    assert_eq!(chunks, "ABORT");
    assert_eq!(
        (header.source_port, header.destination_port),
        (NOBODYS, PORT_A)
    );
    assert_eq!(header.verification_tag, TAG);
    assert_eq!(world.endpoints[Z].associations().count(), 0);
}

#[test]
fn others_are_answered_as_belonging_to_no_association() {
    for (chunk, expected) in [
        (Chunk::CookieAck, None),
        (
            Chunk::Abort(Abort {
                tag_reflected: false,
                causes: Causes::empty(),
            }),
            None,
        ),
        (
            Chunk::CookieEcho(CookieEcho {
                cookie: Bytes::from_static(b"of nobody's"),
            }),
            None,
        ),
        (Chunk::ShutdownAck, Some("SHUTDOWN COMPLETE")),
    ] {
        let mut world = world();
        world.inject(Z, astray(TAG, &[&chunk]));
        match expected {
            None => assert_eq!(world.story.len(), 1, "{:?}", world.story),
            Some(expected) => {
                let (header, chunks) = answer(&world);
                assert_eq!(chunks, expected);
                assert_eq!(header.source_port, NOBODYS);
                assert_eq!(header.verification_tag, TAG, "reflected");
            }
        }
    }
}

#[test]
fn an_init_that_breaks_a_rule_draws_no_init_ack() {
    let mut world = world();
    world.inject(Z, astray(0, &[&init(), &Chunk::CookieAck]));
    assert_eq!(world.story.len(), 1, "{:?}", world.story);
    assert_eq!(world.endpoints[Z].discards().of(DiscardReason::Port), 1);
    // Rule 3 applies to INITs with tag 0, and rule 8 to INITs with another tag.
    world.inject(Z, astray(TAG, &[&init()]));
    let (header, chunks) = answer(&world);
    assert_eq!((chunks.as_str(), header.verification_tag), ("ABORT", TAG));
}
