//! Tests of the order in which messages and events are returned, for every kind of reader and every
//! time of reading.

use crate::common;

use anabranch_sctp::{
    AssociationId, Config, Endpoint, Event, Interest, Output, Reconfiguration, SendError,
    SendOptions, StreamDirection,
};
use anabranch_transport::Transport;
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::Ssn;
use anabranch_wire::encode::Encode;
use anabranch_wire::extension::{ForwardTsn, SkippedStream};
use bytes::{Bytes, BytesMut};
use common::rig::Rig;
use common::*;

const MESSAGES: Interest = Interest::MESSAGES.and(Interest::EVENTS);
const PARTS: Interest = Interest::PARTS.and(Interest::EVENTS);

/// Short text for an output: the text of a message, the text of a part and whether the message ends
/// with it, or the name of an event.
fn word(output: Output) -> String {
    let text = |bytes: Bytes| String::from_utf8_lossy(&bytes).into_owned();
    match output {
        Output::Message(it) => text(it.payload.into_bytes()),
        Output::MessagePart(it) => {
            let end = if it.ends { "E" } else { "" };
            format!("part {}{end}", text(it.payload.into_bytes()))
        }
        Output::Event(Event::StreamsReset {
            direction: StreamDirection::Incoming,
            streams,
            ..
        }) => format!("reset {streams:?}"),
        Output::Event(Event::Restarted { .. }) => "restarted".into(),
        Output::Event(Event::PeerShutdown) => "shutdown".into(),
        Output::Event(Event::Closed(_)) => "closed".into(),
        Output::Event(Event::PartialDeliveryAborted { stream, .. }) => format!("aborted {stream}"),
        Output::Event(Event::AssociationReset { .. }) => "all reset".into(),
        Output::Event(Event::PeerError { cause }) => format!("error {cause}"),
        Output::Event(Event::Receipt { number, .. }) => format!("receipt {number}"),
        other => format!("{other:?}"),
    }
}

/// Reads all output of Z for a reader with this `interest`.
fn read(world: &mut World, id: AssociationId, interest: Interest) -> Vec<String> {
    let association = world.endpoints[Z].association_mut(id).expect("known");
    let all = std::iter::from_fn(|| association.poll_output(interest))
        .map(word)
        .collect();
    world.drain(Z);
    all
}

/// Establishes an association and reads the initial events of both ends. Later events of Z stay
/// queued.
fn up(config: Config) -> (World, [AssociationId; 2]) {
    let mut world = World::new(config);
    let (a, z) = world.established();
    world.leaves_events[Z] = true;
    (world, [a, z])
}

fn resettable() -> Config {
    Config::default().with(|it| it.reconfiguration = true)
}

/// A sends a message, resets the stream, and sends a second message.
fn with_a_reset() -> (World, AssociationId) {
    with_a_reset_under(resettable())
}

fn with_a_reset_under(config: Config) -> (World, AssociationId) {
    let (mut world, [a, z]) = up(config);
    world.send(A, a, 1, "one");
    world.run_for(SECOND);
    let association = world.endpoints[A].association_mut(a).expect("up");
    association
        .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
        .expect("nothing under way");
    world.drain(A);
    world.run_for(SECOND);
    world.send(A, a, 1, "two");
    world.run_for(SECOND);
    (world, z)
}

#[test]
fn a_reset_is_between_the_messages_before_it_and_those_behind() {
    for interleaving in [false, true] {
        for interest in [MESSAGES, PARTS] {
            let config = resettable().with(|it| it.interleaving = interleaving);
            let (mut world, z) = with_a_reset_under(config);
            assert_eq!(read(&mut world, z, interest), ["one", "reset [1]", "two"]);
        }
    }
}

/// Messages of other streams and unordered messages should keep their place relative to the event
/// as well.
#[test]
fn an_event_is_between_messages_of_any_stream() {
    let (mut world, [a, z]) = up(resettable());
    let send = |world: &mut World, text: &'static str, options: &SendOptions| {
        let association = world.endpoints[A].association_mut(a).expect("up");
        association.send(0, text.into(), options).expect("room");
        world.drain(A);
        world.run_for(SECOND);
    };
    let unordered = |stream| SendOptions::on(stream).with_unordered(true);
    send(&mut world, "one", &SendOptions::on(2));
    send(&mut world, "two", &unordered(3));
    for change in [
        Reconfiguration::reset_outgoing([1]),
        Reconfiguration::ResetAssociation,
    ] {
        let now = world.now;
        let association = world.endpoints[A].association_mut(a).expect("up");
        association.reconfigure(now, &change).expect("negotiated");
        world.drain(A);
        world.run_for(SECOND);
        send(&mut world, "three", &unordered(2));
        send(&mut world, "four", &SendOptions::on(3));
    }
    let expected = [
        "one",
        "two",
        "reset [1]",
        "three",
        "four",
        "all reset",
        "three",
        "four",
    ];
    assert_eq!(read(&mut world, z, MESSAGES), expected);
}

/// One packet contains a SACK and the peer's answer to the acknowledged message. The receipt should
/// be returned before the answer.
#[test]
fn a_receipt_is_before_the_message_behind_its_sack() {
    let (mut world, [a, z]) = up(Config::default());
    // The receiver acknowledges the first DATA without delay.
    world.send(A, a, 1, "before");
    world.run_for(SECOND);
    let association = world.endpoints[A].association_mut(a).expect("up");
    let options = SendOptions::on(1).with_receipt(Some(5));
    association
        .send(0, "question".into(), &options)
        .expect("room");
    world.leaves_events[A] = true;
    world.drain(A);
    world.run_for(15 * MILLISECOND);
    world.send(Z, z, 1, "answer");
    world.run_for(15 * MILLISECOND);
    assert!(world.story.iter().any(|it| it == "Z -> SACK, DATA -> A"));
    let association = world.endpoints[A].association_mut(a).expect("up");
    let all = std::iter::from_fn(|| association.poll_output(MESSAGES)).map(word);
    assert_eq!(all.collect::<Vec<_>>(), ["receipt 5", "answer"]);
}

/// A message, a stream reset and a second message arrive in one packet. They should be returned in
/// this order.
#[test]
fn a_reset_is_between_what_shares_its_packet() {
    let (mut world, [a, z]) = up(resettable());
    let association = world.endpoints[A].association_mut(a).expect("up");
    let options = SendOptions::on(1);
    association.send(0, "one".into(), &options).expect("room");
    association
        .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
        .expect("nothing under way");
    association.send(0, "two".into(), &options).expect("room");
    world.drain(A);
    world.run_for(SECOND);
    assert_eq!(read(&mut world, z, MESSAGES), ["one", "reset [1]", "two"]);
}

#[test]
fn each_reader_takes_what_it_wants_and_leaves_the_rest() {
    let (mut world, z) = with_a_reset();
    assert_eq!(read(&mut world, z, Interest::EVENTS), ["reset [1]"]);
    assert_eq!(read(&mut world, z, Interest::PARTS), ["one", "two"]);
    let (mut world, z) = with_a_reset();
    assert_eq!(read(&mut world, z, Interest::MESSAGES), ["one", "two"]);
    assert_eq!(read(&mut world, z, MESSAGES), ["reset [1]"]);
}

#[test]
fn a_restart_is_behind_what_came_before_it() {
    let (mut world, [a, z]) = up(Config::default());
    world.send(A, a, 0, "old");
    world.run_for(SECOND);
    let config = Config::default().with(|it| it.addresses = vec![address(A, 0)]);
    world.endpoints[A] = Endpoint::new(config, PORT_A, [9; 32]).expect("settings");
    let a = world.connect();
    world.run_for(SECOND);
    world.send(A, a, 0, "new");
    world.run_for(SECOND);
    let all = read(&mut world, z, MESSAGES);
    assert_eq!(all, ["old", "restarted", "new"]);
}

#[test]
fn the_end_is_behind_all() {
    let (mut world, [a, z]) = up(Config::default());
    world.send(A, a, 0, "last");
    world.shutdown(A, a);
    world.run_for(SECOND);
    assert_eq!(read(&mut world, z, PARTS), ["last", "shutdown", "closed"]);
}

fn forward_tsn(rig: &mut Rig, to: u32, skipped: (u16, u16)) {
    let (stream_id, ssn) = skipped;
    let ssn = Ssn(ssn);
    let chunk = ForwardTsn::new(rig.first.add(to), &[SkippedStream { stream_id, ssn }]);
    let mut bytes = BytesMut::new();
    chunk.encode(&mut bytes);
    rig.raw(&bytes);
}

fn rig() -> Rig {
    let mut rig = Rig::of(Config::default().with(|it| {
        it.partial_reliability = true;
        it.partial_delivery_point = Some(1);
    }));
    rig.world.leaves_events[Z] = true;
    rig
}

/// A partially delivered message is abandoned after some of its parts were read. The reader should
/// then get the event, followed by the messages that had to wait for the end of that message. The
/// unread parts are dropped.
#[test]
fn an_abandoned_message_is_between_its_parts_and_what_waited_for_its_end() {
    let mut rig = rig();
    rig.data(0, 3, 0, "B");
    assert_eq!(read(&mut rig.world, rig.z, PARTS), ["part 0;"]);
    rig.data(1, 3, 0, "");
    rig.data(3, 3, 1, "BE");
    forward_tsn(&mut rig, 2, (3, 0));
    rig.data(4, 3, 2, "BE");
    let all = read(&mut rig.world, rig.z, PARTS);
    assert_eq!(
        all,
        ["aborted 3", "3;", "4;"],
        "what was not read of it goes"
    );
}

/// The end of a message should not be returned before an event that preceded it, even if the
/// beginning of the message has not been read yet.
#[test]
fn an_event_is_between_the_parts_of_a_message() {
    for (interest, expected) in [
        (PARTS, &["part 0;", "error 4", "part 1;E"][..]),
        (MESSAGES, &["error 4", "0;1;"]),
    ] {
        let mut rig = rig();
        rig.data(0, 3, 0, "B");
        // ERROR: Out of Resource.
        rig.raw(&[9, 0, 0, 8, 0, 4, 0, 4]);
        rig.data(1, 3, 0, "E");
        assert_eq!(read(&mut rig.world, rig.z, interest), expected);
    }
}

/// A message that never ends should be reported before the messages that had to wait for its end,
/// also if no FORWARD TSN arrives.
#[test]
fn a_message_without_an_end_is_before_what_waited_for_it() {
    let mut rig = rig();
    rig.data(0, 3, 0, "B");
    rig.data(2, 3, 2, "BE");
    rig.data(1, 3, 1, "B");
    let all = read(&mut rig.world, rig.z, PARTS);
    assert_eq!(all, ["aborted 3", "2;"], "the other was not begun");
}

/// A message that is too long ends the association. Data that arrived after it should be readable
/// nevertheless.
#[test]
fn data_after_an_oversized_message_is_read() {
    let mut rig = Rig::of(Config::default().with(|it| {
        it.partial_delivery_point = Some(1);
        it.max_message = 3;
    }));
    rig.world.leaves_events[Z] = true;
    rig.data(0, 3, 0, "B");
    assert_eq!(read(&mut rig.world, rig.z, MESSAGES), [""; 0]);
    rig.data(1, 3, 0, "");
    rig.data(2, 3, 0, "E");
    rig.data(3, 3, 1, "BE");
    rig.data(4, 3, 2, "BE");
    assert_eq!(
        read(&mut rig.world, rig.z, MESSAGES),
        ["3;", "4;", "closed"]
    );
    let aborts = |rig: &Rig| {
        let shots = rig.world.shots.iter();
        shots.filter(|it| it.chunks == "ABORT").count()
    };
    assert_eq!(aborts(&rig), 1);
}

/// A message that is too long should not cause an ABORT if the association was closed before the
/// message is read.
#[test]
fn a_message_too_long_of_a_closed_association_is_skipped() {
    let mut rig = Rig::of(Config::default().with(|it| {
        it.partial_delivery_point = Some(1);
        it.max_message = 3;
    }));
    rig.world.leaves_events[Z] = true;
    rig.data(0, 3, 0, "B");
    assert_eq!(read(&mut rig.world, rig.z, MESSAGES), [""; 0]);
    rig.data(1, 3, 0, "E");
    rig.data(2, 3, 1, "BE");
    rig.raw(&[6, 0, 0, 4]);
    assert_eq!(read(&mut rig.world, rig.z, MESSAGES), ["2;", "closed"]);
    let shots = rig.world.shots.iter();
    assert_eq!(shots.filter(|it| it.chunks == "ABORT").count(), 0);
}

/// A reader of one stream should not wait for other streams, and should be notified when a message
/// of its stream was abandoned.
#[test]
fn a_reader_of_one_stream_leaves_the_others() {
    let mut rig = rig();
    rig.data(0, 5, 0, "BE");
    rig.data(1, 3, 0, "B");
    rig.data(3, 4, 0, "BE");
    assert_eq!(read(&mut rig.world, rig.z, PARTS.on(3)), ["part 1;"]);
    forward_tsn(&mut rig, 2, (3, 0));
    rig.data(4, 3, 1, "BE");
    assert_eq!(
        read(&mut rig.world, rig.z, PARTS.on(3)),
        ["aborted 3", "4;"]
    );
    assert_eq!(read(&mut rig.world, rig.z, PARTS), ["0;", "3;"]);
}

/// A reader of complete messages of one stream should get no parts.
#[test]
fn a_message_of_one_stream_is_put_together() {
    let mut rig = rig();
    rig.data(0, 5, 0, "BE");
    rig.data(1, 3, 0, "B");
    assert_eq!(read(&mut rig.world, rig.z, MESSAGES.on(3)), [""; 0]);
    rig.data(2, 3, 0, "E");
    rig.data(3, 3, 1, "BE");
    let all = read(&mut rig.world, rig.z, MESSAGES.on(3));
    assert_eq!(all, ["1;2;", "3;"]);
    assert_eq!(read(&mut rig.world, rig.z, MESSAGES), ["0;"]);
}

/// An event that follows messages of another stream should be returned only after those messages
/// were read.
#[test]
fn a_reader_of_one_stream_is_not_notified_early() {
    let (mut world, z) = with_a_reset();
    assert_eq!(read(&mut world, z, PARTS.on(7)), [""; 0]);
    assert_eq!(read(&mut world, z, Interest::PARTS), ["one", "two"]);
    assert_eq!(read(&mut world, z, PARTS.on(7)), ["reset [1]"]);
}

#[test]
fn a_waiting_sender_is_notified_once() {
    let config = Config::default().with(|it| it.send_buffer = 10_000);
    let (mut world, [a, _]) = up(config);
    let message = Bytes::from(vec![1; 1_000]);
    let options = SendOptions::new();
    let outputs = Interest::WRITABLE.and(MESSAGES);
    let association = world.endpoints[A].association_mut(a).expect("up");
    while association.send(0, message.clone(), &options) != Err(SendError::BufferFull) {}
    association.wait_writable(1_000);
    assert_eq!(association.poll_output(outputs), None);
    world.drain(A);
    world.run_for(10 * SECOND);
    let association = world.endpoints[A].association_mut(a).expect("up");
    assert_eq!(association.poll_output(Interest::EVENTS), None);
    assert_eq!(association.poll_output(outputs), Some(Output::Writable));
    assert_eq!(association.poll_output(outputs), None);
}

#[test]
fn the_streams_of_what_was_sent_are_reported() {
    let (mut world, [a, _]) = up(Config::default());
    let sent = |world: &mut World| -> Vec<Output> {
        let association = world.endpoints[A].association_mut(a).expect("up");
        std::iter::from_fn(|| association.poll_output(Interest::SENT)).collect()
    };
    world.send(A, a, 1, "before");
    assert_eq!(sent(&mut world), []);
    let association = world.endpoints[A].association_mut(a).expect("up");
    association.report_sent();
    world.send(A, a, 4, "one");
    world.send(A, a, 2, "two");
    let streams = [2, 4].map(|stream| Output::Sent { stream });
    assert_eq!(sent(&mut world), streams);
    assert_eq!(sent(&mut world), []);
    assert!(world.endpoints[A].poll_ready().is_none(), "it was told");
}

/// The driver should be notified once of each association that has new output.
#[test]
fn the_driver_is_notified_of_associations_with_output() {
    let (mut world, [a, z]) = up(Config::default());
    let ready = |world: &mut World| world.endpoints[Z].poll_ready().map(|it| it.0);
    assert_eq!(ready(&mut world), None);
    world.send(A, a, 0, "one");
    world.run_for(SECOND);
    assert_eq!(ready(&mut world), Some(z));
    assert_eq!(ready(&mut world), None);
    world.send(A, a, 0, "two");
    world.run_for(SECOND);
    assert_eq!(ready(&mut world), None, "what it had was not read");
    assert_eq!(read(&mut world, z, MESSAGES), ["one", "two"]);
    world.send(A, a, 0, "three");
    world.run_for(SECOND);
    assert_eq!(ready(&mut world), Some(z));
    world.shutdown(A, a);
    world.run_for(SECOND);
    assert_eq!(ready(&mut world), Some(z));
    let association = world.endpoints[Z].association_mut(z).expect("known");
    let unseen = association.unseen_events().count();
    assert_eq!(unseen, 2, "shutdown and end, which stay");
    assert_eq!(association.unseen_events().count(), 0);
    let all = read(&mut world, z, MESSAGES);
    assert_eq!(all, ["three", "shutdown", "closed"]);
}

/// Reading messages opens the receive window, which a SACK should advertise. After the driver has
/// read the messages of an association from `poll_ready`, the endpoint should therefore poll this
/// association again.
#[test]
fn the_window_that_a_ready_association_opens_is_advertised() {
    let (mut world, [a, _]) = up(Config::default().with(|it| it.receive_buffer = 4_000));
    while world.endpoints[Z].poll_ready().is_some() {}
    for _ in 0..10 {
        world.send(A, a, 0, vec![1; 1_000]);
    }
    world.run_for(SECOND);
    let mut out = BytesMut::new();
    let now = world.now;
    assert!(world.endpoints[Z].poll_transmit(now, &mut out).is_none());
    let (_, association) = world.endpoints[Z].poll_ready().expect("it has messages");
    assert!(std::iter::from_fn(|| association.poll_output(MESSAGES)).count() >= 3);
    let sent = world.endpoints[Z].poll_transmit(now, &mut out);
    assert!(sent.is_some(), "a SACK with the new window");
}
