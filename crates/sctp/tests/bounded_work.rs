//! The cost of a packet must not depend on the amount of buffered data. The tests count the steps
//! (`work`) of packets that a peer may send repeatedly.

use crate::common;

use anabranch_sctp::{Config, DiscardReason, work_counter};
use anabranch_wire::extension::{ForwardTsn, IData, ReConfig, ReConfigParameter, SkippedStream};
use anabranch_wire::tlv::{TlvList, U16List};
use anabranch_wire::{Encode, Ssn};
use bytes::BytesMut;
use common::rig::Rig;
use common::*;

/// Maximum number of steps per byte of a packet, and per packet.
const STEPS_PER_BYTE: u64 = 4;
const STEPS_PER_PACKET: u64 = 200;

fn rig() -> Rig {
    Rig::of(Config::default().with(|it| {
        it.interleaving = true;
        it.partial_reliability = true;
        it.reconfiguration = true;
        it.inbound_streams = 65_535;
        it.outbound_streams = 65_535;
        it.receive_buffer = 2 << 20;
    }))
}

fn encoded(chunks: &[impl Encode]) -> BytesMut {
    let mut bytes = BytesMut::new();
    chunks.iter().for_each(|chunk| chunk.encode(&mut bytes));
    bytes
}

fn asking(parameter: ReConfigParameter) -> ReConfig {
    ReConfig {
        parameters: TlvList::of(&[parameter]),
    }
}

fn incoming_reset(rig: &Rig, number: u32, streams: &[u16]) -> ReConfig {
    asking(ReConfigParameter::IncomingSsnReset {
        request: rig.first.0.wrapping_add(number),
        streams: U16List::of(streams),
    })
}

fn piece(rig: &Rig, offset: u32, name: (u16, u32, u32), flags: &str) -> IData {
    rig.i_data(offset, name, flags, "x")
}

fn say_all(rig: &mut Rig, chunks: &[impl Encode]) {
    for chunks in chunks.chunks(50) {
        rig.raw(&encoded(chunks));
    }
}

/// Maximum number of requests processed per packet; further requests are neither answered nor
/// performed.
const REQUESTS: u32 = 16;

fn ask_all(rig: &mut Rig, requests: &[ReConfig]) {
    for requests in requests.chunks(REQUESTS as usize) {
        rig.raw(&encoded(requests));
    }
}

/// Checks the cost of a packet against the limit for its bytes.
fn check(rig: &mut Rig, chunks: &BytesMut, what: &str) {
    check_by(rig, chunks, STEPS_PER_BYTE, what);
}

fn check_by(rig: &mut Rig, chunks: &BytesMut, steps_per_byte: u64, what: &str) {
    work_counter::take();
    rig.raw(chunks);
    let steps = work_counter::take();
    let most = STEPS_PER_PACKET + steps_per_byte * chunks.len() as u64;
    assert!(
        steps <= most,
        "{what}: {steps} steps for {} bytes",
        chunks.len()
    );
    assert!(rig.is_up(), "{what}");
}

/// RFC 6525 §5.2.3: thousands of resets wait for a reset that is never answered, or for data that
/// is never acknowledged. Meanwhile requests for all streams, for some streams, and for more
/// streams arrive.
#[test]
fn a_request_costs_the_same_however_many_resets_wait() {
    for unacknowledged in [false, true] {
        let mut rig = rig();
        if unacknowledged {
            let z = rig.z;
            rig.world.send(Z, z, 9, "never acknowledged");
        }
        let waiting = 2_040;
        let resets: Vec<_> = (0..waiting)
            .map(|at| incoming_reset(&rig, at, &[100 + at as u16]))
            .collect();
        ask_all(&mut rig, &resets);
        let for_all: Vec<_> = (0..REQUESTS)
            .map(|at| incoming_reset(&rig, waiting + at, &[]))
            .collect();
        check(&mut rig, &encoded(&for_all), "all streams");
        let known: Vec<_> = (0..REQUESTS)
            .map(|at| incoming_reset(&rig, waiting + REQUESTS + at, &[100, 1_000, 2_000, 2_100]))
            .collect();
        check(&mut rig, &encoded(&known), "those that wait");
        let more: Vec<_> = (0..REQUESTS)
            .map(|at| {
                let request = rig.first.0.wrapping_add(waiting + 2 * REQUESTS + at);
                asking(ReConfigParameter::AddIncomingStreams { request, count: 0 })
            })
            .collect();
        check(&mut rig, &encoded(&more), "more streams");
        let discards = rig.world.endpoints[Z].discards();
        let refused =
            [DiscardReason::BadReConfig, DiscardReason::RateLimited].map(|it| discards.of(it));
        assert_eq!(refused, [0, 0], "all were heard");
    }
}

/// Whether there was a part to read.
fn read_part(rig: &mut Rig) -> bool {
    let association = rig.world.endpoints[Z].association_mut(rig.z);
    association.expect("up").poll_part().is_some()
}

/// RFC 8260 §2.3.1: complete messages wait for a message in partial delivery, while other messages
/// are abandoned.
#[test]
fn giving_up_walks_no_message_that_stays() {
    let mut rig = rig();
    let mut at = 0;
    rig.raw(&encoded(&[piece(&rig, 0, (0, 0, 0), "")]));
    // Fragments on stream 1 fill the window until partial delivery of the message on stream 0
    // starts. Later, the messages on stream 1 are abandoned, which makes space again.
    let mut mid = 0;
    while !read_part(&mut rig) {
        let some: Vec<_> = (0..50)
            .map(|it| piece(&rig, at + 1 + it, (1, mid + it, 1), "U"))
            .collect();
        (at, mid) = (at + 50, mid + 50);
        say_all(&mut rig, &some);
        assert!(mid < 60_000, "nothing is delivered");
    }
    at += 50;
    rig.raw(&encoded(&[rig.giving_up(at, &[(1, true, mid)])]));
    let waiting: Vec<_> = (0..8_000)
        .map(|it| piece(&rig, at + 1 + it, (0, it, 0), "UE"))
        .collect();
    say_all(&mut rig, &waiting);
    at += 8_000;
    for round in 1..4 {
        let skipped = [(0, true, 0x7000_0000); 180];
        let chunk = rig.giving_up(at + round, &skipped);
        check(&mut rig, &encoded(&[chunk]), "I-FORWARD-TSN");
    }
}

/// RFC 6525 §5.2.2: thousands of messages, complete or not, are buffered on the streams that are
/// reset and on others.
#[test]
fn a_reset_walks_no_message_that_stays() {
    let mut rig = rig();
    let mut pieces: Vec<_> = (0..3_000)
        .map(|it| piece(&rig, it, (9, 1 + it, 0), "E"))
        .collect();
    pieces.extend((0..3_000).map(|it| piece(&rig, 3_000 + it, (8, it, 1), "U")));
    pieces.extend((0..1_000).map(|it| piece(&rig, 6_000 + it, (10 + it as u16, 0, 1), "")));
    say_all(&mut rig, &pieces);
    let mut number = 0;
    let mut resets = |streams: &[u16]| {
        let some = (0..REQUESTS).map(|_| {
            number += 1;
            asking(ReConfigParameter::OutgoingSsnReset {
                request: rig.first.0.wrapping_add(number - 1),
                response: 0,
                last_tsn: rig.first.prev(),
                streams: U16List::of(streams),
            })
        });
        encoded(&some.collect::<Vec<_>>())
    };
    let [one, other, all] = [resets(&[1]), resets(&[8]), resets(&[])];
    // The set of streams with buffered chunks is built once, by this packet.
    rig.raw(&one);
    check(&mut rig, &other, "a stream of many");
    rig.raw(&all);
    let more = asking(ReConfigParameter::OutgoingSsnReset {
        request: rig.first.0.wrapping_add(3 * REQUESTS),
        response: 0,
        last_tsn: rig.first.prev(),
        streams: U16List::of(&[]),
    });
    check(&mut rig, &encoded(&[more]), "all streams");
}

/// The window is closed by messages of which no part can be delivered, and 63 others wait for the
/// end of a message of their stream that is in partial delivery. Some are abandoned and others
/// arrive, repeatedly.
#[test]
fn a_closed_window_is_not_searched_for_each_chunk() {
    // A chunk of 25 bytes costs up to 110 steps: a few lookups among the fragments that fill the
    // window.
    const STEPS_PER_BYTE: u64 = 5;
    let mut rig = rig();
    let begun = |rig: &Rig, mid: u32| {
        let name = |stream| (stream, mid, 0);
        let at = |stream| 1 + 2 * (u32::from(stream) + 63 * mid);
        let all = (0..63).map(|stream| piece(rig, at(stream), name(3_000 + stream), "U"));
        encoded(&all.collect::<Vec<_>>())
    };
    let before = 4 * 63;
    let full = (2 << 20) / 193 * 13 / 8 - 3;
    let pieces: Vec<_> = (0..full)
        .map(|it| {
            let name = (it as u16 % 2_000, it / 2_000, 1);
            piece(&rig, before + 1 + 2 * it, name, "U")
        })
        .collect();
    let first = begun(&rig, 0);
    rig.raw(&first);
    say_all(&mut rig, &pieces);
    let parts = (0..100).take_while(|_| read_part(&mut rig)).count();
    assert_eq!(parts, 63, "delivery has begun on each of the streams");
    let next = begun(&rig, 1);
    rig.raw(&next);
    let mut hole = 2_000;
    let beyond = (0..60).map(|it| piece(&rig, 60_000 + it, (5_001, it, 1), "U"));
    let beyond = encoded(&beyond.collect::<Vec<_>>());
    for round in 0..10 {
        // The peer abandons all messages on seven streams, which makes space in the window.
        let streams: Vec<_> = (0..7).map(|it| (round * 7 + it, true, 100)).collect();
        let mut packet = encoded(&[rig.giving_up(2 * u32::from(round), &streams)]);
        let more = (0..60).map(|it| piece(&rig, hole + 2 * it, (5_000, hole + it, 1), "U"));
        packet.extend(encoded(&more.collect::<Vec<_>>()));
        hole += 120;
        if round == 0 {
            rig.raw(&packet);
        } else {
            check_by(&mut rig, &packet, STEPS_PER_BYTE, "I-DATA that fills holes");
            check_by(&mut rig, &beyond, STEPS_PER_BYTE, "I-DATA that is dropped");
        }
    }
    let association = rig.world.endpoints[Z].association(rig.z).expect("up");
    assert!(association.stats().receiver.dropped_full > 400);
}

/// RFC 3758 §3.6: thousands of messages are unread, and the peer starts and abandons one message
/// after another.
#[test]
fn giving_up_moves_nothing_that_is_unread() {
    let mut rig = Rig::of(Config::default().with(|it| {
        it.partial_reliability = true;
        it.partial_delivery_point = Some(1);
        it.receive_buffer = 2 << 20;
    }));
    let unread = 6_000;
    for at in 0..unread {
        rig.data(at, 0, at as u16, "BE");
    }
    for round in 0..200_u16 {
        let tsn = unread + 2 * u32::from(round);
        rig.data(tsn, 1, round, "B");
        let skipped = SkippedStream {
            stream_id: 1,
            ssn: Ssn(round),
        };
        let to = rig.first.add(tsn + 1);
        let chunk = ForwardTsn::new(to, &[skipped]);
        // Empty slots are compacted occasionally, at a small cost per packet.
        work_counter::take();
        rig.chunk(&chunk);
        let steps = work_counter::take();
        assert!(steps < 200, "{round}: {steps} steps");
    }
    assert_eq!(rig.read().len(), unread as usize);
}

/// An unanswered request is not performed, so the peer may repeat it.
#[test]
fn requests_beyond_what_is_answered_are_left_alone() {
    let mut rig = rig();
    let resets: Vec<_> = (0..40)
        .map(|at| incoming_reset(&rig, at, &[at as u16]))
        .collect();
    rig.raw(&encoded(&resets));
    let overload = |rig: &Rig| {
        rig.world.endpoints[Z]
            .discards()
            .of(DiscardReason::RateLimited)
    };
    let left = overload(&rig);
    assert_eq!(left, 24);
    ask_all(&mut rig, &resets[16..]);
    assert_eq!(overload(&rig), left);
    let bad = rig.world.endpoints[Z]
        .discards()
        .of(DiscardReason::BadReConfig);
    assert_eq!(bad, 0, "their numbers were next");
}
