//! Tests of undelivered messages: they should be returned to their user completely, before the end
//! of the association is reported (RFC 9260 §11.2 B; RFC 6458 §6.1.11).

use crate::common;

use anabranch_sctp::{
    AssociationId, CloseReason, Config, Endpoint, Event, SendOptions, UndeliveredCause,
    UndeliveredMessage,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use bytes::Bytes;
use common::*;

/// Messages that were reported to A as undelivered, and the events of a closed or restarted
/// association, which must follow them.
fn undelivered(world: &World) -> (Vec<UndeliveredMessage>, Vec<Event>) {
    let (mut all, mut behind) = (Vec::new(), Vec::new());
    for event in world.told(A) {
        match event {
            Event::MessageUndelivered(message) => {
                assert!(behind.is_empty(), "{behind:?} came before it");
                all.push(*message);
            }
            Event::Closed(_) | Event::Restarted { .. } => behind.push(event),
            _ => (),
        }
    }
    (all, behind)
}

fn send(world: &mut World, a: AssociationId, stream: u16, length: usize, context: u32) {
    let now = world.now;
    let options = SendOptions::new()
        .with_ppid(40 + context)
        .with_unordered(context % 2 == 1)
        .with_context(context);
    let association = world.endpoints[A].association_mut(a).expect("known");
    let payload = payload(length, context);
    let sent = association.send(now, payload, &options.with_stream(Some(stream)));
    sent.expect("room");
}

fn payload(length: usize, context: u32) -> Bytes {
    (0..length)
        .map(|at| (at * 7 + context as usize) as u8)
        .collect()
}

/// The peer receives only the first `heard` packets with much user data.
fn deaf_after(heard: usize) -> Box<dyn FnMut(&Shot) -> Fate> {
    let mut data = 0;
    Box::new(move |shot| {
        data += usize::from(shot.from == A && shot.bytes.len() > 80);
        match data > heard {
            true => Fate::Drop,
            false => Fate::Deliver,
        }
    })
}

fn abort(world: &mut World, host: usize, id: AssociationId) {
    let now = world.now;
    let association = world.endpoints[host].association_mut(id).expect("known");
    association.abort(now, Bytes::new()).expect("open");
    world.drain(host);
}

/// The messages have one or many chunks. When the association is aborted, some messages are
/// acknowledged in part, some are sent and not acknowledged, and some are not sent. All of them
/// should be returned complete, whichever end aborts the association.
#[test]
fn each_message_that_was_not_acknowledged_comes_back_whole() {
    for (interleaving, from) in [(false, A), (false, Z), (true, A), (true, Z)] {
        let config = Config::default().with(|it| {
            it.interleaving = interleaving;
            it.delayed_sack = false;
        });
        let mut world = World::new(config);
        let (a, z) = world.established();
        send(&mut world, a, 0, 100, 0);
        world.drain(A);
        world.run_for(SECOND);
        world.fate = deaf_after(2);
        let lengths = [40_000, 9, 7_000, 30_000, 12];
        for (context, length) in (1..).zip(lengths) {
            send(&mut world, a, context as u16 % 3, length, context);
        }
        world.drain(A);
        world.run_for(500 * MILLISECOND);
        world.fate = Box::new(|_| Fate::Deliver);
        abort(&mut world, from, [a, z][from]);
        world.run_for(SECOND);
        let (mut all, behind) = undelivered(&world);
        let reason = world.close_reason(A, a).expect("closed");
        assert_eq!(behind, [Event::Closed(reason.clone())]);
        let expected = if from == A {
            CloseReason::AbortedHere
        } else {
            CloseReason::AbortedByPeer { cause: Some(12) }
        };
        assert_eq!(reason, expected);
        let sent: Vec<_> = all.iter().map(|it| (it.context, it.sent)).collect();
        assert!(
            sent.iter().any(|it| it.1) && sent.iter().any(|it| !it.1),
            "{sent:?} {interleaving} {from}"
        );
        // The scheduler serves the streams in turn, so the order may differ.
        all.sort_by_key(|it| it.context);
        let told: Vec<_> = all
            .iter()
            .map(|it| (it.context, it.payload.clone()))
            .collect();
        let expected = (1..)
            .zip(lengths)
            .map(|(context, length)| (context, payload(length, context)));
        assert_eq!(told, expected.collect::<Vec<_>>());
        for it in &all {
            assert_eq!(it.stream, Some(it.context as u16 % 3));
            assert_eq!(
                (it.ppid, it.unordered),
                (40 + it.context, it.context % 2 == 1)
            );
            assert_eq!(it.cause, UndeliveredCause::Closed(reason.clone()));
        }
    }
}

/// One peer is silent until the association fails, and another association is never established. In
/// both cases the message should be returned complete.
#[test]
fn a_peer_that_is_not_there_gets_nothing() {
    let mut world = World::new(Config::default());
    let (a, _) = world.established();
    world.fate = Box::new(|_| Fate::Drop);
    send(&mut world, a, 1, 3_000, 5);
    world.drain(A);
    world.run_for(1_000 * SECOND);
    let (all, behind) = undelivered(&world);
    assert_eq!(behind, [Event::Closed(CloseReason::PeerUnreachable)]);
    assert_eq!(
        (all.len(), all[0].sent, all[0].payload.len()),
        (1, true, 3_000)
    );

    let mut world = World::new(Config::default());
    world.fate = Box::new(|_| Fate::Drop);
    let a = world.connect();
    send(&mut world, a, 1, 3_000, 6);
    world.run_for(1_000 * SECOND);
    let (all, behind) = undelivered(&world);
    assert_eq!(behind, [Event::Closed(CloseReason::NoAnswer)]);
    assert_eq!((all.len(), all[0].sent, all[0].context), (1, false, 6));
}

/// Acknowledged data was delivered, so a graceful shutdown should return no messages.
#[test]
fn a_graceful_end_leaves_nothing() {
    let mut world = World::new(Config::default());
    let (a, _) = world.established();
    for context in 0..5 {
        send(&mut world, a, 1, 4_000, context);
    }
    world.shutdown(A, a);
    world.run_for(20 * SECOND);
    let (all, behind) = undelivered(&world);
    assert_eq!(behind, [Event::Closed(CloseReason::Shutdown)]);
    assert!(all.is_empty(), "{all:?}");
}

/// A peer loses its state and restarts. Messages that were not acknowledged are lost and should be
/// returned.
#[test]
fn a_restart_gives_back_what_was_not_acknowledged() {
    let mut world = World::new(Config::default());
    let (a, _) = world.established();
    world.fate = deaf_after(0);
    send(&mut world, a, 1, 100, 8);
    let options = SendOptions::new().with_stream(None).with_ppid(3);
    let association = world.endpoints[A].association_mut(a).expect("known");
    let sent = association.send(world.now, payload(9_000, 0), &options);
    sent.expect("room");
    world.drain(A);
    world.fate = Box::new(|_| Fate::Deliver);
    let config = Config::default().with(|it| it.addresses = vec![address(Z, 0)]);
    let mut again = Endpoint::new(config, PORT_Z, [9; 32]).expect("settings");
    again
        .connect(world.now, &[address(A, 0)], PORT_A)
        .expect("free");
    world.endpoints[Z] = again;
    world.drain(Z);
    world.run_for(5 * SECOND);
    let (all, behind) = undelivered(&world);
    assert_eq!(behind, [Event::Restarted { data_lost: true }]);
    let told: Vec<_> = all
        .iter()
        .map(|it| (it.context, it.ppid, it.payload.len()))
        .collect();
    assert_eq!(told, [(8, 48, 100), (0, 3, 9_000)]);
    assert!(all.iter().all(|it| it.cause == UndeliveredCause::Restarted));
}
