//! Tests of receipts. The user requests a receipt for a message, and is then notified when the peer
//! has acknowledged this message.

use crate::common;

use anabranch_sctp::{
    AbandonPolicy, AssociationId, CloseReason, Config, DeliveryStatus, Event, SendError,
    SendOptions,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use common::*;

const PLAIN: SendOptions = SendOptions::new();

fn ask(
    world: &mut World,
    a: AssociationId,
    (stream, payload): (Option<u16>, Vec<u8>),
    options: &SendOptions,
    number: u64,
) -> Result<(), SendError> {
    let now = world.now;
    let association = world.endpoints[A].association_mut(a).expect("known");
    let options = options.with_stream(stream).with_receipt(Some(number));
    association.send(now, payload.into(), &options)
}

fn receipts(world: &World) -> Vec<(u64, DeliveryStatus)> {
    let told = world.told(A).into_iter();
    told.filter_map(|event| match event {
        Event::Receipt { number, delivery } => Some((number, delivery)),
        _ => None,
    })
    .collect()
}

/// Drops each packet of A with DATA for whose number `lost` returns true. These packets are
/// numbered from 0.
fn lose_data(lost: impl Fn(usize) -> bool + 'static) -> Box<dyn FnMut(&Shot) -> Fate> {
    let mut data = 0;
    Box::new(move |shot| {
        if shot.from != A || !shot.chunks.contains("DATA") {
            return Fate::Deliver;
        }
        data += 1;
        match lost(data - 1) {
            true => Fate::Drop,
            false => Fate::Deliver,
        }
    })
}

/// A Gap Ack Block is not a final acknowledgment (RFC 9260 §6.2). The second message should
/// therefore be reported only together with the first one, which was lost.
#[test]
fn a_gap_ack_block_is_no_receipt() {
    let mut world = World::new(Config::default().with(|it| it.delayed_sack = false));
    let (a, z) = world.established();
    world.fate = lose_data(|number| number == 0);
    for number in [7, 8] {
        ask(&mut world, a, (Some(1), vec![1; 100]), &PLAIN, number).expect("room");
        world.drain(A);
        world.run_for(MILLISECOND);
    }
    world.run_for(200 * MILLISECOND);
    let association = world.endpoints[A].association(a).expect("known");
    assert_eq!(
        association.status().outstanding_chunks,
        2,
        "one is reported by a gap"
    );
    assert_eq!(receipts(&world), []);
    world.run_for(10 * SECOND);
    let both = [7, 8].map(|number| (number, DeliveryStatus::Acknowledged));
    assert_eq!(receipts(&world), both);
    assert_eq!(world.receive_all(Z, z).len(), 2);
}

/// A message of many chunks should have one receipt, when its last chunk is acknowledged. This
/// should hold on a given and on an allocated stream, with and without interleaving. Messages
/// without a request should have no receipt.
#[test]
fn all_of_a_message_has_one_receipt() {
    for interleaving in [false, true] {
        let config = Config::default().with(|it| it.interleaving = interleaving);
        let mut world = World::new(config);
        let (a, z) = world.established();
        ask(&mut world, a, (Some(0), vec![1; 9_000]), &PLAIN, 1).expect("room");
        world.send(A, a, 1, vec![2; 5_000]);
        ask(&mut world, a, (None, vec![3; 3_000]), &PLAIN, 2).expect("room");
        ask(&mut world, a, (Some(2), vec![4; 9]), &PLAIN, 3).expect("room");
        world.send(A, a, 1, vec![2; 9]);
        world.drain(A);
        world.run_for(10 * SECOND);
        let mut told = receipts(&world);
        // The order of the receipts depends on the scheduler, which serves the streams in turn.
        told.sort_by_key(|it| it.0);
        let all = [1, 2, 3].map(|number| (number, DeliveryStatus::Acknowledged));
        assert_eq!(told, all, "interleaving: {interleaving}");
        assert_eq!(world.receive_all(Z, z).len(), 5);
    }
}

/// RFC 3758: a FORWARD TSN advances the cumulative TSN past abandoned data. This should not count
/// as an acknowledgment of that data.
#[test]
fn abandoned_messages_are_not_acknowledged() {
    let config = Config::default().with(|it| {
        it.partial_reliability = true;
        it.delayed_sack = false;
    });
    let mut world = World::new(config);
    let (a, z) = world.established();
    world.fate = lose_data(|number| number == 0);
    let once = PLAIN.with_max_retransmits(Some(0));
    for number in 0..5 {
        ask(&mut world, a, (Some(3), vec![1; 9]), &once, number).expect("room");
        world.drain(A);
        world.run_for(MILLISECOND);
    }
    world.run_for(10 * SECOND);
    let mut told = receipts(&world);
    told.sort_by_key(|it| it.0);
    let lost = DeliveryStatus::Abandoned(AbandonPolicy::Retransmissions);
    let rest = (1..5).map(|number| (number, DeliveryStatus::Acknowledged));
    let expected: Vec<_> = std::iter::once((0, lost)).chain(rest).collect();
    assert_eq!(told, expected);
    assert_eq!(world.receive_all(Z, z).len(), 4);
}

/// The lifetime of one message ends during its transmission, when a part of it was sent already.
/// The lifetime of another ends in the queue.
#[test]
fn a_lifetime_ends_a_message_under_way_and_one_in_the_queue() {
    let config = Config::default().with(|it| it.partial_reliability = true);
    let mut world = World::new(config);
    let (a, _) = world.established();
    world.fate = lose_data(|_| true);
    let short = PLAIN.with_lifetime(Some(50 * MILLISECOND));
    ask(&mut world, a, (Some(0), vec![1; 50_000]), &short, 1).expect("room");
    ask(&mut world, a, (Some(0), vec![1; 9]), &short, 2).expect("room");
    world.drain(A);
    world.run_for(20 * SECOND);
    let over = DeliveryStatus::Abandoned(AbandonPolicy::Lifetime);
    assert_eq!(receipts(&world), [(1, over), (2, over)]);
}

/// Messages should be reported that are cancelled, or whose stream the peer does not grant when the
/// association is established.
#[test]
fn unsent_messages_are_reported() {
    let streams = |count| Config::default().with(|it| it.outbound_streams = count);
    let granted = Config::default().with(|it| it.inbound_streams = 4);
    let mut world = World::with_configs(streams(8), granted);
    let now = world.now;
    let a = world.endpoints[A]
        .connect(now, &[address(Z, 0)], PORT_Z)
        .expect("an attempt");
    for (number, stream) in [(1, 7), (2, 3), (3, 4)] {
        ask(&mut world, a, (Some(stream), vec![1; 9]), &PLAIN, number).expect("room");
    }
    world.drain(A);
    world.run_for(5 * SECOND);
    let mut told = receipts(&world);
    told.sort_by_key(|it| it.0);
    let expected = [
        (1, DeliveryStatus::NoSuchStream),
        (2, DeliveryStatus::Acknowledged),
        (3, DeliveryStatus::NoSuchStream),
    ];
    assert_eq!(told, expected);
    // No DATA arrives, so the first message fills the window. The messages behind it stay in the
    // queue and are cancelled.
    world.forget();
    world.fate = lose_data(|_| true);
    ask(&mut world, a, (Some(0), vec![1; 60_000]), &PLAIN, 4).expect("room");
    world.drain(A);
    ask(&mut world, a, (Some(0), vec![1; 9]), &PLAIN, 5).expect("an own place");
    ask(&mut world, a, (None, vec![1; 9]), &PLAIN, 6).expect("an own place");
    let association = world.endpoints[A].association_mut(a).expect("known");
    assert_eq!(association.cancel_unsent(), 2);
    world.drain(A);
    let back = [5, 6].map(|number| (number, DeliveryStatus::Withdrawn));
    assert_eq!(receipts(&world), back);
}

/// When an association ends, messages that are not acknowledged should have no receipt. A message
/// that was refused should have none either.
#[test]
fn the_end_is_the_answer_to_the_rest() {
    let mut world = World::new(Config::default());
    let (a, _) = world.established();
    world.fate = lose_data(|_| true);
    ask(&mut world, a, (Some(0), vec![1; 9]), &PLAIN, 1).expect("room");
    let refused = ask(&mut world, a, (Some(0), Vec::new()), &PLAIN, 2);
    assert_eq!(refused, Err(SendError::Empty));
    world.drain(A);
    let now = world.now;
    let association = world.endpoints[A].association_mut(a).expect("known");
    association.abort(now, Default::default()).expect("open");
    world.drain(A);
    assert_eq!(world.close_reason(A, a), Some(CloseReason::AbortedHere));
    assert_eq!(receipts(&world), []);
    let closed = ask(&mut world, a, (Some(0), vec![1; 9]), &PLAIN, 3);
    assert_eq!(closed, Err(SendError::Closing));
}

/// The number of queued events is limited, but that of receipts is not. Five hundred messages that
/// are acknowledged by few SACKs should all be reported.
#[test]
fn no_receipt_is_missed() {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    for number in 0..500 {
        ask(&mut world, a, (Some(0), vec![1; 1]), &PLAIN, number).expect("room");
    }
    world.drain(A);
    world.run_for(10 * SECOND);
    let all: Vec<_> = (0..500)
        .map(|number| (number, DeliveryStatus::Acknowledged))
        .collect();
    assert!(receipts(&world) == all, "each once, in their order");
    assert_eq!(world.receive_all(Z, z).len(), 500);
}
