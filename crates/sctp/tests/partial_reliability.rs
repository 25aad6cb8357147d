//! Tests of abandoned messages with hand-made traces: FORWARD TSN (RFC 3758) and the policies (RFC
//! 7496).

use crate::common;

use anabranch_sctp::{
    AbandonPolicy, AbandonedCount, AbandonedMessage, AssociationId, AssociationState, CloseReason,
    Config, Event, SendError, SendOptions,
};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::Chunk;
use anabranch_wire::extension::Extension;
use bytes::Bytes;
use common::*;

const NEVER_AGAIN: SendOptions = SendOptions::new().with_max_retransmits(Some(0));

fn partial() -> Config {
    Config::default().with(|it| it.partial_reliability = true)
}

fn lives(lifetime: Nanos) -> SendOptions {
    SendOptions::default().with_lifetime(Some(lifetime))
}

fn offer(
    world: &mut World,
    a: AssociationId,
    stream: u16,
    (payload, unordered): (impl Into<Bytes>, bool),
    options: &SendOptions,
) -> Result<(), SendError> {
    let now = world.now;
    let association = world.endpoints[A].association_mut(a).expect("known");
    let options = options
        .with_stream(Some(stream))
        .with_ppid(7)
        .with_unordered(unordered);
    association.send(now, payload.into(), &options)
}

fn send(world: &mut World, a: AssociationId, stream: u16, text: &str, options: &SendOptions) {
    let message = (text.to_owned(), false);
    offer(world, a, stream, message, options).expect("room");
    world.drain(A);
}

fn texts(world: &mut World, host: usize, id: AssociationId) -> Vec<String> {
    let messages = world.receive_all(host, id).into_iter();
    let text = |payload: Bytes| String::from_utf8_lossy(&payload).into_owned();
    messages.map(|it| text(it.payload.into_bytes())).collect()
}

fn given_up(world: &World, host: usize) -> Vec<AbandonedMessage> {
    let told = world.told(host).into_iter();
    told.filter_map(|event| match event {
        Event::MessageAbandoned(message) => Some(*message),
        _ => None,
    })
    .collect()
}

/// FORWARD TSNs that A has sent so far. Their cumulative TSNs are relative to the first DATA in the
/// log.
fn forwards(world: &World) -> Vec<(u32, Vec<(u16, u16)>)> {
    let first = world.shots.iter().find_map(|shot| {
        let mut chunks = chunks_of(&shot.bytes).into_iter();
        chunks.find_map(|chunk| match chunk {
            Chunk::Data(data) if shot.from == A => Some(data.tsn),
            _ => None,
        })
    });
    let shots = world.shots.iter().filter(|shot| shot.from == A);
    let chunks = shots.flat_map(|shot| chunks_of(&shot.bytes));
    let forwards = chunks.filter_map(|chunk| match chunk {
        Chunk::Unknown(raw) => match Extension::decode(raw) {
            Ok(Extension::ForwardTsn(forward)) => Some(forward),
            _ => None,
        },
        _ => None,
    });
    forwards
        .map(|it| {
            let skipped = it.skipped().map(|it| (it.stream_id, it.ssn.0)).collect();
            let first = first.expect("DATA before it");
            (it.new_cumulative_tsn.distance_from(first), skipped)
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
        if lost(data - 1) {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    })
}

/// RFC 3758 §3.1, §3.3: partial reliability requires support by both ends. Without negotiation
/// FORWARD TSN should be treated as an unknown chunk.
#[test]
fn partial_reliability_takes_two() {
    for (ours, theirs) in [(false, false), (true, false), (false, true), (true, true)] {
        let config = |on| Config::default().with(|it| it.partial_reliability = on);
        let mut world = World::with_configs(config(ours), config(theirs));
        let a = world.connect();
        world.run_for(SECOND);
        let z = world.only_association(Z);
        for (host, id) in [(A, a), (Z, z)] {
            let association = world.endpoints[host].association(id).expect("known");
            assert_eq!(association.negotiated().partial_reliability, ours && theirs);
        }
        let parameter = [0xC0, 0x00, 0x00, 0x04, 0x80, 0x08, 0x00, 0x05, 0xC0];
        let offered = |bytes: &Bytes| bytes.windows(9).any(|it| it == parameter);
        assert_eq!(offered(&world.shot(A, "INIT")), ours);
        assert_eq!(offered(&world.shot(Z, "INIT ACK")), ours && theirs);
        // Without negotiation the policies should have no effect.
        world.forget();
        world.fate = lose_data(|number| number == 0);
        send(&mut world, a, 0, "once", &NEVER_AGAIN);
        world.run_for(10 * SECOND);
        let arrived = texts(&mut world, Z, z).len() == 1;
        assert_eq!(arrived, !(ours && theirs));
        assert_eq!(given_up(&world, A).len(), usize::from(!arrived));
    }
}

/// RFC 3758 §3.5 A2 to C5, RFC 7496 §3.1: the first of five messages is lost. The SACKs that report
/// it as missing would cause a fast retransmission, which the policy of the message forbids. It
/// should therefore be abandoned.
#[test]
fn a_message_out_of_retransmissions_is_skipped() {
    let mut world = World::new(partial().with(|it| it.delayed_sack = false));
    let (a, z) = world.established();
    world.fate = lose_data(|number| number == 0);
    for text in ["a", "b", "c", "d", "e"] {
        send(&mut world, a, 3, text, &NEVER_AGAIN);
        world.run_for(MILLISECOND);
    }
    let start = world.now;
    world.run_for(200 * MILLISECOND);
    assert_eq!(forwards(&world), [(0, vec![(3, 0)])], "{:#?}", world.story);
    assert!(world.now - start < SECOND, "by missing reports, not by T3");
    assert_eq!(texts(&mut world, Z, z), ["b", "c", "d", "e"]);
    let gone = given_up(&world, A);
    assert_eq!(gone.len(), 1);
    assert_eq!(gone[0].payload, "a");
    assert_eq!((gone[0].stream, gone[0].sent), (Some(3), true));
    assert_eq!(gone[0].policy, AbandonPolicy::Retransmissions);
    let association = world.endpoints[A].association(a).expect("known");
    let one = AbandonedCount { unsent: 0, sent: 1 };
    let policy = AbandonPolicy::Retransmissions;
    assert_eq!(association.abandoned(None, policy), one);
    assert_eq!(association.abandoned(Some(3), policy), one);
    let none = AbandonedCount::default();
    assert_eq!(association.abandoned(Some(0), policy), none);
    assert_eq!(association.abandoned(None, AbandonPolicy::Lifetime), none);
    assert_eq!(association.status().outstanding_chunks, 0);
    world.shutdown(A, a);
    world.run_for(SECOND);
    assert_eq!(world.close_reason(A, a), Some(CloseReason::Shutdown));
}

/// RFC 7496 §3.1: for example, a limit of two should permit exactly two retransmissions.
#[test]
fn retransmissions_are_counted() {
    for most in 0..3 {
        let mut world = World::new(partial());
        let (a, _) = world.established();
        world.fate = lose_data(|_| true);
        let options = SendOptions::default().with_max_retransmits(Some(most));
        send(&mut world, a, 0, "m", &options);
        world.run_for(60 * SECOND);
        let sent = world.story.iter().filter(|it| it.contains("DATA")).count();
        assert_eq!(sent as u32, most + 1, "{:#?}", world.story);
        assert_eq!(given_up(&world, A).len(), 1);
    }
}

/// RFC 3758 §3.5 C5, A5: a lost FORWARD TSN should be repeated when T3-rtx expires. If it is never
/// answered, the path should fail.
#[test]
fn a_lost_forward_tsn_is_repeated_by_t3() {
    let mut world = World::new(partial());
    let (a, z) = world.established();
    let mut forwards_lost = 0;
    world.fate = Box::new(move |shot| {
        let forward = shot.chunks.contains("FORWARD TSN");
        forwards_lost += u32::from(forward);
        let lost =
            shot.from == A && (shot.chunks.contains("DATA") || (forward && forwards_lost < 3));
        if lost { Fate::Drop } else { Fate::Deliver }
    });
    send(&mut world, a, 0, "m", &NEVER_AGAIN);
    world.run_for(30 * SECOND);
    assert_eq!(forwards(&world).len(), 3, "{:#?}", world.story);
    let times: Vec<_> = world
        .shots
        .iter()
        .filter(|it| it.chunks == "FORWARD TSN")
        .map(|it| it.at)
        .collect();
    let gaps: Vec<_> = times.windows(2).map(|it| it[1] - it[0]).collect();
    assert!(
        gaps[1] >= 2 * gaps[0] - MILLISECOND,
        "the timeout doubles: {gaps:?}"
    );
    let association = world.endpoints[A].association(a).expect("known");
    assert_eq!(association.status().outstanding_chunks, 0);
    let path = association.paths().get(anabranch_sctp::PathId(0));
    assert_eq!(path.error_count(), 0, "the answer counts as a sign of life");
    // If nothing is answered, the association should fail.
    world.fate = Box::new(|_| Fate::Drop);
    send(&mut world, a, 0, "n", &NEVER_AGAIN);
    world.run_for(1_000 * SECOND);
    assert_eq!(world.close_reason(A, a), Some(CloseReason::PeerUnreachable));
    let _ = z;
}

/// RFC 3758 §4.1: a message that expires before its transmission should not be sent and should use
/// no sequence number.
#[test]
fn a_message_too_old_before_its_turn_is_never_sent() {
    let mut world = World::new(partial());
    let (a, z) = world.established();
    // The first packet is lost. Four packets fill the window, so that nothing else is sent before
    // T3-rtx expires.
    world.fate = lose_data(|number| number < 4);
    let full = vec![0; 1_400];
    for _ in 0..4 {
        offer(
            &mut world,
            a,
            0,
            (full.clone(), false),
            &SendOptions::default(),
        )
        .expect("room");
    }
    world.drain(A);
    send(&mut world, a, 0, "old", &lives(500 * MILLISECOND));
    send(&mut world, a, 0, "young", &lives(60 * SECOND));
    world.run_for(20 * SECOND);
    let texts = texts(&mut world, Z, z);
    assert_eq!(texts.len(), 5);
    assert_eq!(texts[4], "young");
    let gone = given_up(&world, A);
    assert_eq!(gone.len(), 1);
    assert_eq!((&gone[0].payload[..], gone[0].sent), (&b"old"[..], false));
    assert_eq!(gone[0].policy, AbandonPolicy::Lifetime);
    assert_eq!(forwards(&world), [], "nothing to skip");
}

/// RFC 3758 §3.5 A3: if one chunk is abandoned, the complete message should be abandoned, including
/// its unsent part. The receiver should not mistake later data for a part of it.
#[test]
fn a_long_message_is_abandoned_whole() {
    for unordered in [false, true] {
        let mut world = World::new(partial());
        let (a, z) = world.established();
        // The second chunk of the message is always lost. A large part of the message is still in
        // the send queue.
        world.fate = lose_data(|number| number == 1);
        let long = (vec![1; 60_000], unordered);
        offer(&mut world, a, 1, long, &NEVER_AGAIN).expect("room");
        offer(&mut world, a, 1, ("next", false), &SendOptions::default()).expect("room");
        world.drain(A);
        world.run_for(20 * SECOND);
        assert_eq!(texts(&mut world, Z, z), ["next"], "{:#?}", world.story);
        let gone = given_up(&world, A);
        assert_eq!(gone.len(), 1);
        assert_eq!((gone[0].payload.len(), gone[0].sent), (60_000, true));
        let told = forwards(&world);
        let skipped = if unordered { vec![] } else { vec![(1, 0)] };
        assert_eq!(told.last().expect("told").1, skipped);
        let association = world.endpoints[A].association(a).expect("known");
        assert_eq!(
            (
                association.status().outstanding_chunks,
                association.send_buffer().unsent()
            ),
            (0, 0)
        );
        let entry = association.paths().get(anabranch_sctp::PathId(0));
        assert_eq!((entry.flightsize(), entry.marked_bytes()), (0, 0));
        assert_eq!(world.state(Z, z), AssociationState::Established);
    }
}

/// RFC 7496 §3.2: if the buffer is full, a message of high priority should replace messages of the
/// lowest priority, the oldest first. It should never replace one of the same or of a higher
/// priority.
#[test]
fn a_full_buffer_gives_up_what_has_the_lowest_priority() {
    for scheduler in [
        anabranch_sctp::config::SchedulerKind::RoundRobin,
        anabranch_sctp::config::SchedulerKind::Fcfs,
    ] {
        let config = partial().with(|it| {
            it.send_buffer = 4_000;
            it.scheduler = scheduler;
        });
        let mut world = World::new(config);
        let (a, z) = world.established();
        // Only one packet should be in flight.
        world.fate = lose_data(|_| false);
        let of = |priority| SendOptions::default().with_priority(Some(priority));
        for number in 0..4_u8 {
            offer(
                &mut world,
                a,
                0,
                (vec![number; 1_000], false),
                &of([5, 9, 9, 1][usize::from(number)]),
            )
            .expect("room");
        }
        let full = offer(&mut world, a, 0, (vec![9; 1_000], false), &of(9));
        assert_eq!(full, Err(SendError::BufferFull));
        offer(&mut world, a, 2, (vec![4; 1_500], false), &of(2)).expect("two give way");
        let full = offer(&mut world, a, 0, (vec![9; 3_000], false), &of(2));
        assert_eq!(
            full,
            Err(SendError::BufferFull),
            "5 gives way to 2, and that is too little"
        );
        world.drain(A);
        world.run_for(5 * SECOND);
        let mut got: Vec<u8> = world
            .receive_all(Z, z)
            .into_iter()
            .map(|it| it.payload.into_bytes()[0])
            .collect();
        got.sort_unstable();
        assert_eq!(got, [3, 4]);
        let gone: Vec<_> = given_up(&world, A)
            .into_iter()
            .map(|it| (it.payload[0], it.sent, it.policy))
            .collect();
        let policy = AbandonPolicy::Priority;
        assert_eq!(
            gone,
            [(1, false, policy), (2, false, policy), (0, false, policy)]
        );
    }
}

/// The default policy of messages should be the one in the configuration.
#[test]
fn the_settings_have_defaults_of_the_policies() {
    let config = partial().with(|it| {
        it.lifetime = Some(SECOND);
        it.max_retransmits = Some(3);
        it.priority = Some(4);
    });
    let options = SendOptions::of(&config);
    assert_eq!(options.lifetime(), Some(SECOND));
    assert_eq!(
        (options.max_retransmits(), options.priority()),
        (Some(3), Some(4))
    );
    assert_eq!(SendOptions::of(&Config::default()), SendOptions::default());
}

/// A shutdown should continue as soon as the peer knows of the abandoned messages.
#[test]
fn a_shutdown_goes_on_when_the_last_message_is_abandoned() {
    let mut world = World::new(partial());
    let (a, z) = world.established();
    world.fate = lose_data(|_| true);
    send(&mut world, a, 0, "lost", &NEVER_AGAIN);
    send(&mut world, a, 0, "lost, too", &lives(10 * MILLISECOND));
    world.shutdown(A, a);
    world.run_for(20 * SECOND);
    assert_eq!(
        world.close_reason(A, a),
        Some(CloseReason::Shutdown),
        "{:#?}",
        world.story
    );
    assert_eq!(world.close_reason(Z, z), Some(CloseReason::Shutdown));
    assert_eq!(given_up(&world, A).len(), 2);
    let closed = world
        .told(A)
        .iter()
        .position(|it| matches!(it, Event::Closed(_)));
    assert_eq!(closed, Some(world.told(A).len() - 1), "the last event");
}

/// RFC 3758 §3.5 C4: if the streams do not fit into one packet, the FORWARD TSN should have a lower
/// TSN, and further FORWARD TSNs should report the rest.
#[test]
fn more_streams_than_fit_a_packet_are_reported_in_several() {
    let mut config = partial().with(|it| {
        it.mtu = 200;
        it.outbound_streams = 300;
        it.delayed_sack = false;
    });
    config.profile.max_burst = 100;
    let mut world = World::new(config);
    let (a, z) = world.established();
    // DATA is dropped unless it shares a packet with a FORWARD TSN.
    world.fate = Box::new(|shot| {
        if shot.chunks.starts_with("DATA") {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    for stream in 0..120 {
        let message = ("m", false);
        offer(&mut world, a, stream, message, &NEVER_AGAIN).expect("room");
    }
    world.drain(A);
    world.run_for(300 * SECOND);
    let told = forwards(&world);
    assert!(told.len() >= 3, "{told:?}");
    let most = (200 - 20 - 12 - 8) / 4;
    assert!(
        told.iter().any(|(_, skipped)| skipped.len() == most),
        "{told:?}"
    );
    assert!(told.iter().all(|(_, skipped)| skipped.len() <= most));
    let arrived = texts(&mut world, Z, z).len();
    assert_eq!(given_up(&world, A).len() + arrived, 120);
    world.fate = Box::new(|_| Fate::Deliver);
    for stream in 0..120 {
        send(&mut world, a, stream, "n", &SendOptions::default());
    }
    world.run_for(SECOND);
    assert_eq!(texts(&mut world, Z, z).len(), 120, "every stream goes on");
}
