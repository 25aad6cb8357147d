//! Tests of chunks that arrive in an association, but that a conforming peer would not send. They
//! should be answered according to the RFC, or not at all, and have no other effects.

use crate::common;

use anabranch_sctp::{AssociationState, CloseReason, Config, DiscardReason, Event, Violation};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::cause::code;
use anabranch_wire::chunk::{Chunk, Data, Ecne, Heartbeat, HeartbeatAck};
use anabranch_wire::serial::Tsn;
use anabranch_wire::{Cause, Causes};
use bytes::Bytes;
use common::wrong::*;
use common::*;

#[test]
fn zero_length_and_overlong_chunks_end_the_packet() {
    let (mut world, a, _, to_a, _) = pair();
    for chunk in [
        &[0x7F, 0, 0, 0][..],
        &[0, 3, 0, 0],
        &[3, 0, 0, 3],
        &[1, 0, 255, 255],
        &[6, 0, 0, 5],
        &[0xFF, 0],
    ] {
        world.inject(A, raw_packet(Z, to_a, chunk));
        world.inject(Z, raw_packet(A, 0x1234, chunk));
    }
    world.inject(A, raw_packet(Z, to_a, &[]));
    assert_eq!(discarded(&world, A, DiscardReason::ChunkLength), 6);
    assert_eq!(discarded(&world, A, DiscardReason::Malformed), 1);
    assert_eq!(world.state(A, a), AssociationState::Established);
    assert!(!world.story.iter().any(|line| line.starts_with("A -> ")));
}

#[test]
fn chunks_before_a_broken_one_count() {
    let (mut world, a, _, to_a, _) = pair();
    let mut bytes = encoded(&Chunk::Heartbeat(Heartbeat {
        info: Bytes::from_static(b"1234"),
    }))
    .to_vec();
    bytes.extend_from_slice(&[3, 0, 0, 200]);
    world.inject(A, raw_packet(Z, to_a, &bytes));
    assert!(
        world
            .story
            .iter()
            .any(|line| line == "A -> HEARTBEAT ACK -> Z")
    );
    assert_eq!(discarded(&world, A, DiscardReason::ChunkLength), 1);
    assert_eq!(world.state(A, a), AssociationState::Established);
}

#[test]
fn sack_that_counts_more_than_it_holds() {
    let (mut world, a, _, to_a, _) = pair();
    let mut sack = vec![3, 0, 0, 16, 0, 0, 0, 1, 0, 0, 255, 255, 255, 255, 255, 255];
    world.inject(A, raw_packet(Z, to_a, &sack));
    sack[12..16].copy_from_slice(&[0, 1, 0, 0]);
    world.inject(A, raw_packet(Z, to_a, &sack));
    assert_eq!(discarded(&world, A, DiscardReason::ChunkFields), 2);
    assert_eq!(world.state(A, a), AssociationState::Established);
}

#[test]
fn sack_for_data_never_sent_is_a_protocol_violation() {
    let (mut world, a, _, to_a, _) = pair();
    world.send(A, a, 0, "x");
    let Some(Chunk::Data(sent)) = chunks_of(&world.shot(A, "DATA")).pop() else {
        panic!()
    };
    let beyond = sent.tsn.add(5).0.to_be_bytes();
    let mut sack = vec![3, 0, 0, 16];
    sack.extend_from_slice(&beyond);
    sack.extend_from_slice(&[0, 0, 255, 255, 0, 0, 0, 0]);
    world.inject(A, raw_packet(Z, to_a, &sack));
    assert_eq!(
        world.close_reason(A, a),
        Some(CloseReason::PeerViolation(Violation::Protocol(
            "acknowledgement of data never sent"
        )))
    );
    let Chunk::Abort(abort) = chunks_of(&world.shot(A, "ABORT")).remove(0) else {
        panic!()
    };
    assert_eq!(
        abort.causes.iter().next().unwrap().unwrap().code(),
        code::PROTOCOL_VIOLATION
    );
}

#[test]
fn data_without_user_data_ends_the_association() {
    let (mut world, a, _, to_a, _) = pair();
    world.inject(A, packet(Z, to_a, &[&data(42, b"")]));
    let reason = CloseReason::PeerViolation(Violation::NoUserData(Tsn(42)));
    assert_eq!(world.close_reason(A, a), Some(reason));
    let Chunk::Abort(abort) = chunks_of(&world.shot(A, "ABORT")).remove(0) else {
        panic!()
    };
    assert_eq!(
        abort.causes.iter().next(),
        Some(Ok(Cause::NoUserData { tsn: Tsn(42) }))
    );
}

#[test]
fn data_on_a_stream_that_does_not_exist_is_reported() {
    let mut world = World::with_configs(
        Config::default().with(|it| it.inbound_streams = 2),
        Config::default().with(|it| it.outbound_streams = 10),
    );
    let a = world.connect();
    world.run_for(SECOND);
    let Chunk::InitAck(ack) = chunks_of(&world.shot(Z, "INIT ACK")).remove(0) else {
        panic!()
    };
    let to_a = world.tag_sent_by(Z);
    let Chunk::Data(odd) = data(ack.initial_tsn.0, b"x") else {
        panic!()
    };
    world.inject(
        A,
        packet(
            Z,
            to_a,
            &[&Chunk::Data(Data {
                stream_id: 2,
                ..odd
            })],
        ),
    );
    let answers = world
        .shots
        .iter()
        .rev()
        .find(|shot| shot.from == A)
        .unwrap();
    let Chunk::Error(error) = chunks_of(&answers.bytes).remove(0) else {
        panic!("{}", answers.chunks)
    };
    assert_eq!(
        error.causes.iter().next(),
        Some(Ok(Cause::InvalidStreamIdentifier { stream_id: 2 }))
    );
    assert_eq!(world.state(A, a), AssociationState::Established);
}

#[test]
fn data_before_the_cookie() {
    let mut world = World::new(Config::default());
    world.inject(Z, packet(A, 5, &[&data(1, b"x")]));
    assert_eq!(world.story, ["? -> DATA -> Z", "Z -> ABORT -> A"]);
    world.fate = lose("COOKIE ACK", 1);
    let a = world.connect();
    world.run_for(45 * MILLISECOND);
    // The COOKIE ACK was lost. DATA that arrives in COOKIE-ECHOED is ignored (RFC 9260 §6).
    assert_eq!(world.state(A, a), AssociationState::CookieEchoed);
    let z = world.only_association(Z);
    world.send(Z, z, 0, "early");
    world.run_for(30 * MILLISECOND);
    assert_eq!(discarded(&world, A, DiscardReason::WrongState), 1);
    world.run_for(10 * SECOND);
    assert_eq!(world.receive_all(A, a).len(), 1, "it comes again");
}

#[test]
fn unknown_chunks_follow_their_two_high_bits() {
    for (kind, reported, goes_on) in [
        (0x3F, false, false),
        (0x7F, true, false),
        (0xBF, false, true),
        (0xFF, true, true),
    ] {
        let (mut world, _, _, to_a, _) = pair();
        let mut bytes = vec![kind, 0, 0, 8, 1, 2, 3, 4];
        bytes.extend_from_slice(&encoded(&Chunk::Heartbeat(Heartbeat {
            info: Bytes::from_static(b"1234"),
        })));
        world.inject(A, raw_packet(Z, to_a, &bytes));
        let answer = world
            .shots
            .iter()
            .find(|shot| shot.from == A)
            .map_or("", |shot| &shot.chunks);
        assert_eq!(answer.contains("ERROR"), reported, "{kind:#x}: {answer}");
        assert_eq!(
            answer.contains("HEARTBEAT ACK"),
            goes_on,
            "{kind:#x}: {answer}"
        );
        if reported {
            let bytes = &world
                .shots
                .iter()
                .find(|shot| shot.from == A)
                .unwrap()
                .bytes;
            let Chunk::Error(error) = chunks_of(bytes).remove(0) else {
                panic!()
            };
            let chunk = Bytes::from(vec![kind, 0, 0, 8, 1, 2, 3, 4]);
            assert_eq!(
                error.causes.iter().next(),
                Some(Ok(Cause::UnrecognizedChunkType { chunk }))
            );
        }
    }
}

#[test]
fn a_packet_full_of_unknown_chunks_draws_few_answers() {
    let (mut world, a, _, to_a, _) = pair();
    let bytes = [0xFF, 0, 0, 4].repeat(300);
    world.inject(A, raw_packet(Z, to_a, &bytes));
    let sent: usize = world
        .shots
        .iter()
        .filter(|shot| shot.from == A)
        .map(|shot| shot.bytes.len())
        .sum();
    assert!(sent <= bytes.len(), "no amplification: {sent} bytes");
    // Only 16 chunks of the packet were processed.
    assert_eq!(discarded(&world, A, DiscardReason::UnknownChunk), 16);
    assert_eq!(discarded(&world, A, DiscardReason::RateLimited), 284);
    assert_eq!(world.state(A, a), AssociationState::Established);
}

#[test]
fn heartbeat_acks_that_answer_nothing() {
    let (mut world, a, _, to_a, _) = pair();
    for info in [&b""[..], b"short", &[0; 17], &[0xFF; 17], &[7; 400]] {
        let ack = Chunk::HeartbeatAck(HeartbeatAck {
            info: Bytes::copy_from_slice(info),
        });
        world.inject(A, packet(Z, to_a, &[&ack]));
    }
    assert_eq!(discarded(&world, A, DiscardReason::HeartbeatNonce), 5);
    assert_eq!(world.state(A, a), AssociationState::Established);
}

#[test]
fn a_heartbeat_ack_counts_once() {
    let config = Config::default().with(|it| it.heartbeat_interval = Some(SECOND));
    let mut world = World::new(config);
    world.established();
    world.run_for(4 * SECOND);
    let ack = world.shot(Z, "HEARTBEAT ACK");
    let before = discarded(&world, A, DiscardReason::HeartbeatNonce);
    world.inject(A, ack);
    assert_eq!(
        discarded(&world, A, DiscardReason::HeartbeatNonce),
        before + 1
    );
}

#[test]
fn ecn_chunks_are_taken_and_mean_nothing() {
    let (mut world, a, _, to_a, _) = pair();
    world.inject(
        A,
        packet(Z, to_a, &[&Chunk::Ecne(Ecne { lowest_tsn: Tsn(1) })]),
    );
    assert_eq!(world.state(A, a), AssociationState::Established);
    assert_eq!(world.story.len(), 1);
}

#[test]
fn peer_errors_do_not_pile_up_unread() {
    let (mut world, _, _, to_a, _) = pair();
    let causes = Causes::of(&vec![Cause::OutOfResource; 300]);
    world.inject(
        A,
        packet(
            Z,
            to_a,
            &[&Chunk::Error(anabranch_wire::chunk::ErrorChunk { causes })],
        ),
    );
    let told = world.told(A);
    assert!(!told.is_empty() && told.len() <= 16, "{}", told.len());
    assert!(told.iter().all(|event| matches!(
        event,
        Event::PeerError {
            cause: code::OUT_OF_RESOURCE
        }
    )));
}

#[test]
fn random_bytes_after_a_good_header_do_no_harm() {
    use rand_core::{RngCore, SeedableRng};
    for seed in 0..300 {
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
        let (mut world, _, _, to_a, _) = pair();
        world.narrate = false;
        for _ in 0..20 {
            let mut bytes = vec![0; (random.next_u32() % 200) as usize];
            random.fill_bytes(&mut bytes);
            if bytes.len() >= 4 {
                // A valid chunk type and a matching length make deeper checks more likely.
                bytes[0] %= 16;
                let len = bytes.len() as u16;
                bytes[2..4].copy_from_slice(&len.to_be_bytes());
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            let tag = if random.next_u32() % 4 == 0 { 0 } else { to_a };
            world.inject(A, raw_packet(Z, tag, &bytes));
        }
        assert!(
            world.endpoints[A].associations().count() <= 1,
            "seed {seed}"
        );
    }
}
