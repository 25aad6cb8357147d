//! Tests of the I bit, which requests an immediate SACK (RFC 9260 §6.1, RFC 7053).

use crate::common;

use anabranch_sctp::{CloseReason, Config, SendOptions};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::{Chunk, kind};
use bytes::Bytes;
use common::*;

/// For each packet of A with DATA: whether its DATA chunks have the I bit.
fn immediate_bits(world: &World) -> Vec<Vec<bool>> {
    let bits = |shot: &Shot| -> Vec<bool> {
        let of = |chunk| match chunk {
            Chunk::Data(data) => Some(data.immediate),
            _ => None,
        };
        chunks_of(&shot.bytes).into_iter().filter_map(of).collect()
    };
    let of_a = world.shots.iter().filter(|shot| shot.from == A);
    of_a.map(bits).filter(|bits| !bits.is_empty()).collect()
}

const HURRY: SendOptions = SendOptions::new().with_immediate(true);
const NO_HURRY: SendOptions = SendOptions::new();

/// RFC 9260 §6.1, §6.2: the last DATA before a shutdown should request an immediate SACK. The
/// shutdown should therefore take two round trips, without the 200 ms of a delayed SACK.
#[test]
fn the_last_data_before_a_shutdown_is_answered_at_once() {
    let closed_after = |config: Config| {
        let mut world = World::new(config);
        let (a, _) = world.established();
        world.send(A, a, 0, "the first is answered at once anyway");
        world.run_for(SECOND);
        world.forget();
        let begun = world.now;
        let association = world.endpoints[A].association_mut(a).unwrap();
        association.send(begun, "one".into(), &NO_HURRY).unwrap();
        association.send(begun, "two".into(), &NO_HURRY).unwrap();
        association.shutdown(begun, None).unwrap();
        world.drain(A);
        world.run_for(10 * SECOND);
        assert_eq!(world.close_reason(A, a), Some(CloseReason::Shutdown));
        let complete = world
            .shots
            .iter()
            .find(|shot| shot.chunks == "SHUTDOWN COMPLETE");
        (complete.expect("closed").at - begun, immediate_bits(&world))
    };
    let (took, bits) = closed_after(Config::default());
    assert_eq!(bits, [[false, true]]);
    assert_eq!(took, 40 * MILLISECOND);
    for name in ["ns2", "rfc2960", "rfc4960"] {
        let profile = anabranch_sctp::Profile::by_name(name).unwrap();
        let (took, bits) = closed_after(Config::new(profile));
        assert_eq!(bits, [[false, false]], "{name}");
        assert_eq!(took, 240 * MILLISECOND, "{name}");
    }
}

/// RFC 9260 §6.1: if the user requests an immediate SACK, the last chunk of the message should have
/// the I bit.
#[test]
fn the_user_asks_for_a_sack_at_once() {
    let mut world = World::new(Config::default());
    let (a, _) = world.established();
    world.send(A, a, 0, "the first is answered at once anyway");
    world.run_for(SECOND);
    world.forget();
    let association = world.endpoints[A].association_mut(a).unwrap();
    let messages: [(Bytes, SendOptions); 4] = [
        ("no hurry".into(), NO_HURRY),
        (vec![7; 2_000].into(), HURRY),
        ("and this".into(), HURRY.with_stream(None)),
        ("no hurry".into(), NO_HURRY),
    ];
    for (message, options) in messages {
        association.send(world.now, message, &options).unwrap();
    }
    world.drain(A);
    let bits: Vec<bool> = immediate_bits(&world).concat();
    // The message without a given stream is sent after the first message.
    assert_eq!(bits, [false, true, false, true, false]);
}

/// RFC 9260 §6.1: after a timeout the window has space for only one packet. This packet should
/// request an immediate SACK, so that the rest is sent after one round trip.
#[test]
fn data_that_fills_the_window_alone_is_answered_at_once() {
    let mut world = World::new(Config::default());
    let (a, _) = world.established();
    let from = world.now;
    world.fate = Box::new(move |shot| {
        if shot.at < from + 500 * MILLISECOND {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    for _ in 0..6 {
        world.send(A, a, 0, vec![7; 1_400]);
    }
    world.run_for(900 * MILLISECOND);
    world.forget();
    world.run_for(130 * MILLISECOND);
    assert_eq!(
        immediate_bits(&world)[0],
        [true],
        "the packet of the timeout"
    );
    let is_sack = |shot: &&Shot| shot.from == Z && shot.chunks == "SACK";
    let sacks = world.shots.iter().filter(is_sack).count();
    assert!(sacks >= 1, "{:#?}", world.story);
    assert!(immediate_bits(&world).len() >= 2, "{:#?}", world.story);
}

/// RFC 8260 §2.1: I-DATA has the same bit. It should be set on the last fragment of a message and
/// should have the same effect.
#[test]
fn the_i_bit_of_a_piece_draws_its_sack() {
    let answered = |immediate: bool| {
        let mut world = World::new(Config::default().with(|it| it.interleaving = true));
        let (a, _) = world.established();
        world.send(A, a, 0, "the first is answered at once anyway");
        world.run_for(SECOND);
        world.forget();
        let from = world.now;
        let association = world.endpoints[A].association_mut(a).unwrap();
        // The message is one packet. Without the bit it would be acknowledged after a delay.
        let options = SendOptions::new().with_immediate(immediate);
        association.send(from, "short".into(), &options).unwrap();
        world.drain(A);
        world.run_for(SECOND);
        let sent: Vec<_> = world.shots.iter().filter(|it| it.from == A).collect();
        assert!(sent[0].chunks.contains("I-DATA") || sent[0].bytes[12] == kind::I_DATA);
        assert_eq!(sent[0].bytes[13] & 0x08 != 0, immediate, "the I bit");
        let sack = world.shots.iter().find(|it| it.from == Z).expect("a SACK");
        sack.at - from
    };
    assert!(answered(true) < 50 * MILLISECOND);
    assert!(answered(false) >= 200 * MILLISECOND);
}
