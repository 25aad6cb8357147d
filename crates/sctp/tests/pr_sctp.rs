//! Tests of partial delivery (RFC 9260 §6.9): messages larger than the receive buffer or than the
//! partial delivery point are delivered in parts. The first tests use hand-made chunks of 1000
//! bytes, the next ones complete endpoints, and the last ones peers that begin messages and never
//! end them.

use crate::common;

use anabranch_sctp::config::Config;
use anabranch_sctp::rx::{DataOutcome, Receiver, TooLong};
use anabranch_sctp::{AssociationState, CloseReason, Endpoint, Event, ReceivedPart, SendOptions};
use anabranch_transport::time::SECOND;
use anabranch_transport::{Probe, ProbeSet, Trace};
use anabranch_wire::chunk::Data;
use anabranch_wire::{CommonHeader, PacketBuilder, Ssn, Tsn};
use bytes::{Bytes, BytesMut};
use common::{A, PORT_A, World, Z, address};

struct Rig {
    receiver: Receiver,
    trace: Trace,
}

/// Fragment of a message. `flags` contains `B` for the first fragment and `E` for the last one.
fn fragment(tsn: u32, flags: &str, stream_id: u16, ssn: u16) -> Data {
    Data {
        tsn: Tsn(tsn),
        stream_id,
        ssn: Ssn(ssn),
        ppid: 9,
        unordered: false,
        beginning: flags.contains('B'),
        ending: flags.contains('E'),
        immediate: false,
        user_data: Bytes::from(vec![tsn as u8; 1000]),
    }
}

fn unordered(data: Data) -> Data {
    Data {
        unordered: true,
        ..data
    }
}

/// Stream, stream sequence number, flags and length of a part: `(0, 0, "B..", 9000)`.
type Seen = (u16, u16, &'static str, usize);

fn seen(part: &ReceivedPart) -> Seen {
    let flags = match (part.begins, part.ends) {
        (true, true) => "B.E",
        (true, false) => "B..",
        (false, true) => "..E",
        (false, false) => "...",
    };
    assert_eq!(part.ppid, 9);
    (part.stream, part.ssn.0, flags, part.payload.len())
}

impl Rig {
    fn new(receive_buffer: u32, partial_delivery_point: Option<usize>) -> Self {
        let config = Config::default().with(|it| {
            it.receive_buffer = receive_buffer;
            it.partial_delivery_point = partial_delivery_point;
            it.max_message = 20_000;
        });
        Self {
            receiver: Receiver::new(&config, Tsn(1), 10_000),
            trace: Trace::new(ProbeSet::ALL),
        }
    }

    fn take(&mut self, data: Data) -> DataOutcome {
        let outcome = self.receiver.handle_data(0, data, &mut self.trace);
        self.receiver.on_packet_end(0);
        outcome
    }

    fn new_data(&mut self, data: Data) {
        assert_eq!(self.take(data), DataOutcome::NewData);
    }

    fn parts(&mut self) -> Vec<Seen> {
        std::iter::from_fn(|| self.receiver.poll_part())
            .map(|part| seen(&part))
            .collect()
    }

    fn push_sack(&mut self) {
        let header = CommonHeader {
            source_port: 1,
            destination_port: 2,
            verification_tag: 3,
        };
        let mut out = BytesMut::new();
        let mut packet = PacketBuilder::new(&mut out, header, 1480);
        self.receiver
            .push_sack(0, &mut packet, &mut self.trace)
            .expect("room for a SACK");
    }
}

/// The window closes at 9,000 of 10,000 bytes, because the rest is less than a packet. The message
/// should be delivered in parts from then on: the first 9,000 bytes at once, later data as it
/// arrives. The window should open as the user reads the parts.
#[test]
fn a_message_that_fills_the_buffer_is_delivered_as_it_comes() {
    let mut rig = Rig::new(10_000, None);
    rig.new_data(fragment(1, "B", 3, 0));
    (2..=8).for_each(|tsn| rig.new_data(fragment(tsn, "", 3, 0)));
    assert!(!rig.receiver.has_message(), "2,000 bytes are left");
    assert_eq!(rig.receiver.a_rwnd(), 2_000);
    rig.new_data(fragment(9, "", 3, 0));
    assert_eq!(rig.receiver.a_rwnd(), 0);
    rig.new_data(fragment(10, "", 3, 0));
    rig.push_sack();
    assert_eq!(rig.take(fragment(11, "", 3, 0)), DataOutcome::DroppedFull);
    rig.push_sack();
    assert_eq!(rig.parts(), [(3, 0, "B..", 10_000)]);
    assert!(rig.receiver.sack_due(), "the window is open again");
    assert_eq!(rig.receiver.a_rwnd(), 10_000);
    rig.new_data(fragment(11, "", 3, 0));
    assert_eq!(rig.receiver.a_rwnd(), 9_000);
    assert_eq!(rig.parts(), [(3, 0, "...", 1_000)]);
    rig.new_data(fragment(13, "E", 3, 0));
    assert_eq!(rig.parts(), [], "12 is missing");
    rig.new_data(fragment(12, "", 3, 0));
    assert_eq!(rig.parts(), [(3, 0, "..E", 2_000)]);
    rig.new_data(fragment(14, "BE", 3, 1));
    assert_eq!(rig.parts(), [(3, 1, "B.E", 1_000)]);
    assert!(rig.receiver.is_empty());
    let statistics = rig.receiver.statistics();
    assert_eq!((statistics.messages, statistics.partial_messages), (2, 1));
}

/// The window closes while another message is unread. After the user has read that message, the
/// received part of the next one should be readable.
#[test]
fn a_reader_that_has_read_all_else_is_given_the_beginning_of_what_fills_the_buffer() {
    let mut rig = Rig::new(10_000, None);
    rig.new_data(fragment(1, "BE", 0, 0));
    rig.new_data(fragment(2, "B", 0, 1));
    (3..=10).for_each(|tsn| rig.new_data(fragment(tsn, "", 0, 1)));
    rig.push_sack();
    assert_eq!(rig.receiver.a_rwnd(), 0);
    assert_eq!(rig.parts(), [(0, 0, "B.E", 1_000), (0, 1, "B..", 9_000)]);
    assert!(rig.receiver.sack_due(), "the window is open again");
    rig.push_sack();
    let delivered = rig.trace.drain().filter(|it| it.probe == Probe::Delivered);
    let delivered: Vec<f64> = delivered.map(|it| it.value).collect();
    assert_eq!(delivered, [1_000.0, 9_000.0]);
}

/// Partial delivery should begin at 2,000 bytes. Until the message has ended, no other message of
/// its stream should be delivered, neither ordered nor unordered. Other streams should continue.
#[test]
fn the_partial_delivery_point_begins_it_and_the_stream_waits_for_the_end() {
    let mut rig = Rig::new(65_536, Some(2_000));
    rig.new_data(fragment(1, "B", 0, 0));
    assert_eq!(rig.parts(), []);
    rig.new_data(fragment(2, "", 0, 0));
    assert_eq!(rig.parts(), [(0, 0, "B..", 2_000)]);
    rig.new_data(fragment(5, "BE", 1, 0));
    rig.new_data(fragment(6, "BE", 0, 1));
    rig.new_data(unordered(fragment(7, "BE", 0, 0)));
    assert_eq!(rig.parts(), [(1, 0, "B.E", 1_000)]);
    rig.new_data(fragment(3, "", 0, 0));
    assert_eq!(rig.parts(), [(0, 0, "...", 1_000)]);
    rig.new_data(fragment(4, "E", 0, 0));
    let rest = [
        (0, 0, "..E", 1_000),
        (0, 0, "B.E", 1_000),
        (0, 1, "B.E", 1_000),
    ];
    assert_eq!(rig.parts(), rest);
    assert!(rig.receiver.is_empty());
}

#[test]
fn a_long_message_waits_for_the_ones_before_it() {
    let mut rig = Rig::new(65_536, Some(2_000));
    // Two long messages arrive before message 0 of stream 0: message 1 of this stream, and an
    // unordered one.
    rig.new_data(fragment(2, "B", 0, 1));
    rig.new_data(fragment(3, "", 0, 1));
    assert_eq!(rig.parts(), []);
    rig.new_data(fragment(1, "BE", 0, 0));
    assert_eq!(rig.parts(), [(0, 0, "B.E", 1_000), (0, 1, "B..", 2_000)]);
    rig.new_data(unordered(fragment(5, "B", 0, 0)));
    rig.new_data(unordered(fragment(6, "", 0, 0)));
    assert_eq!(rig.parts(), [], "1 has not ended");
    rig.new_data(fragment(4, "E", 0, 1));
    assert_eq!(rig.parts(), [(0, 1, "..E", 1_000), (0, 0, "B..", 2_000)]);
    rig.new_data(fragment(8, "BE", 0, 2));
    assert_eq!(
        rig.parts(),
        [],
        "an ordered one waits for an unordered one, too"
    );
    rig.new_data(unordered(fragment(7, "E", 0, 0)));
    assert_eq!(rig.parts(), [(0, 0, "..E", 1_000), (0, 2, "B.E", 1_000)]);
    assert!(rig.receiver.is_empty());
}

/// An ordered message is in partial delivery. An unordered message of 10,000 bytes is complete
/// behind it and leaves no space for another packet. Further fragments of the ordered message must
/// be accepted nevertheless, because otherwise both messages would wait forever.
#[test]
fn fragments_of_a_message_in_partial_delivery_pass_a_full_buffer() {
    let mut rig = Rig::new(11_000, Some(2_000));
    (2..=9).for_each(|tsn| rig.new_data(unordered(fragment(tsn, "", 0, 0))));
    rig.new_data(unordered(fragment(10, "E", 0, 0)));
    rig.new_data(fragment(11, "B", 0, 0));
    rig.new_data(fragment(12, "", 0, 0));
    assert_eq!(rig.parts(), [(0, 0, "B..", 2_000)]);
    rig.new_data(unordered(fragment(1, "B", 0, 0)));
    assert_eq!(rig.parts(), [], "it waits for the end of the other");
    let large = Data {
        user_data: Bytes::from(vec![0; 1400]),
        ..fragment(13, "", 0, 0)
    };
    rig.new_data(large.clone());
    let next = Data {
        tsn: Tsn(14),
        ..large
    };
    assert_eq!(rig.take(next.clone()), DataOutcome::DroppedFull, "unread");
    assert_eq!(rig.parts(), [(0, 0, "...", 1_400)]);
    rig.new_data(Data {
        ending: true,
        ..next
    });
    let rest = [(0, 0, "..E", 1_400), (0, 0, "B.E", 10_000)];
    assert_eq!(rig.parts(), rest);
    assert!(rig.receiver.is_empty());
}

#[test]
fn whole_messages_are_put_together_up_to_a_bound() {
    let mut rig = Rig::new(4_000, None);
    let feed = |rig: &mut Rig, first: u32, count: u32, ssn: u16| {
        let mut messages = Vec::new();
        for index in 0..count {
            let begin = if index == 0 { "B" } else { "" };
            let end = if index + 1 == count { "E" } else { "" };
            rig.new_data(fragment(first + index, &format!("{begin}{end}"), 0, ssn));
            while let Some(message) = rig.receiver.poll_message()? {
                messages.push((message.ssn.0, message.payload.into_bytes()));
            }
        }
        Ok(messages)
    };
    let expected: Vec<u8> = (1..=20u8).flat_map(|tsn| [tsn; 1000]).collect();
    assert_eq!(feed(&mut rig, 1, 20, 0), Ok(vec![(0, expected.into())]));
    assert_eq!(feed(&mut rig, 21, 21, 1), Err(TooLong));
}

/// A reader may alternate between parts and complete messages. It should read nothing twice, and
/// should not mistake a part for a complete message.
#[test]
fn parts_and_messages_may_be_read_by_turns() {
    let mut rig = Rig::new(65_536, Some(1_000));
    rig.new_data(fragment(1, "B", 0, 0));
    assert_eq!(rig.receiver.poll_message(), Ok(None));
    assert_eq!(rig.parts(), [(0, 0, "B..", 1_000)], "gathered so far");
    rig.new_data(fragment(2, "", 0, 0));
    assert_eq!(rig.parts(), [(0, 0, "...", 1_000)]);
    rig.new_data(fragment(3, "E", 0, 0));
    assert_eq!(rig.receiver.poll_message(), Ok(None), "only the end of it");
    rig.new_data(fragment(4, "BE", 0, 1));
    let message = rig.receiver.poll_message().expect("short");
    assert_eq!(message.map(|it| it.ssn), Some(Ssn(1)));
}

/// Fragments of a message have consecutive TSNs. A peer that begins a message and continues with a
/// fragment of another one violates this rule. The receiver should detect it in either order of
/// arrival.
#[test]
fn messages_begun_and_never_ended_are_a_violation_once_no_tsn_is_missing() {
    for [first, second] in [[1, 2], [2, 1]] {
        let mut rig = Rig::new(65_536, None);
        let chunk = |tsn| match tsn {
            1 => fragment(1, "B", 0, 0),
            _ => fragment(2, "BE", 1, 0),
        };
        rig.new_data(chunk(first));
        assert_eq!(rig.take(chunk(second)), DataOutcome::ProtocolViolation);
    }
    let mut rig = Rig::new(65_536, None);
    let middle = rig.take(fragment(1, "", 0, 0));
    assert_eq!(middle, DataOutcome::ProtocolViolation, "no beginning");
    let mut rig = Rig::new(65_536, None);
    rig.new_data(fragment(3, "E", 0, 0));
    rig.new_data(fragment(1, "BE", 0, 0));
    let whole = rig.take(fragment(2, "BE", 1, 0));
    assert_eq!(whole, DataOutcome::ProtocolViolation, "an end of nothing");
}

/// While TSNs are missing, a peer may begin any number of messages. Together they should use at
/// most the receive buffer, but they may use it permanently.
#[test]
fn messages_begun_behind_holes_hold_one_buffer_at_most() {
    let mut rig = Rig::new(20_000, None);
    let outcomes = (1..1000).map(|n| {
        let outcome = rig.take(fragment(2 * n, "B", n as u16, 0));
        assert!(rig.receiver.poll_part().is_none());
        outcome
    });
    let taken = outcomes.filter(|it| *it == DataOutcome::NewData).count();
    assert_eq!((taken, rig.receiver.a_rwnd()), (20, 0));
    // The association is still established: after the gaps are filled, the available data is
    // delivered.
    rig.new_data(fragment(1, "BE", 5000, 0));
    assert_eq!(rig.parts(), [(5000, 0, "B.E", 1_000)]);
}

/// The partial delivery point is 1 byte, but the user reads complete messages. The receiver should
/// limit the memory of the data that it collects for such messages, as well as the number of
/// messages in partial delivery.
#[test]
fn messages_begun_behind_holes_and_gathered_are_bounded() {
    let mut rig = Rig::new(10_000, Some(1));
    let mut gathered = 0;
    let end = (1..10_000).find_map(|n| {
        // Each fourth TSN begins a message on a separate stream, and the TSN after it continues
        // that message.
        rig.take(fragment(4 * n, "B", n as u16, 0));
        rig.take(fragment(4 * n + 1, "", n as u16, 0));
        let before = rig.receiver.statistics().partial_messages;
        gathered = gathered.max(before);
        rig.receiver.poll_message().err()
    });
    assert_eq!(
        end,
        Some(TooLong),
        "20,000 of a message and one buffer more"
    );
    assert_eq!(gathered, 16);
    let mut rig = Rig::new(300_000, Some(1));
    (1..=200).for_each(|n| rig.new_data(fragment(2 * n, "B", n as u16, 0)));
    assert_eq!(rig.receiver.statistics().partial_messages, 64);
    assert_eq!(rig.parts().len(), 64);
}

/// The message with stream sequence number 0 never arrives, so that no later message can be
/// delivered.
#[test]
fn a_buffer_full_of_what_cannot_be_delivered_is_exhausted() {
    let mut rig = Rig::new(10_000, None);
    (1..=10).for_each(|tsn| rig.new_data(fragment(tsn, "BE", 0, tsn as u16)));
    assert_eq!(rig.take(fragment(11, "BE", 0, 11)), DataOutcome::Exhausted);
    let mut rig = Rig::new(10_000, None);
    rig.new_data(fragment(1, "B", 0, 7));
    (2..=10).for_each(|tsn| rig.new_data(fragment(tsn, "", 0, 7)));
    assert_eq!(rig.take(fragment(11, "", 0, 7)), DataOutcome::Exhausted);
}

fn long(length: usize) -> Bytes {
    (0..length).map(|at| (at ^ (at >> 8)) as u8).collect()
}

/// A sends a message of three times the size of the buffer, and Z has read the first part of it.
fn under_way(config: Config) -> (World, [anabranch_sctp::AssociationId; 2]) {
    let mut world = World::new(config);
    world.narrate = false;
    let (a, z) = world.established();
    world.send(A, a, 2, long(200_000));
    world.run_for(SECOND);
    let part = world.endpoints[Z].association_mut(z).unwrap().poll_part();
    let part = part.expect("the buffer is full");
    assert!(part.begins && !part.ends);
    (world, [a, z])
}

#[test]
fn any_message_gets_through_any_buffer() {
    let mtu = 1_500;
    for (receive_buffer, length) in [(2 * mtu, 100_000), (65_536, 8 << 20)] {
        for in_parts in [false, true] {
            let mut world =
                World::new(Config::default().with(|it| it.receive_buffer = receive_buffer));
            world.narrate = false;
            let (a, z) = world.established();
            world.send(A, a, 0, long(length));
            let mut came = BytesMut::new();
            let mut ended = false;
            while !ended {
                world.run_for(SECOND / 100);
                assert_eq!(world.state(A, a), AssociationState::Established);
                let association = world.endpoints[Z].association_mut(z).unwrap();
                if in_parts {
                    while let Some(part) = association.poll_part() {
                        assert!(part.payload.len() <= receive_buffer as usize);
                        part.payload
                            .parts()
                            .iter()
                            .for_each(|it| came.extend_from_slice(it));
                        ended = part.ends;
                    }
                } else if let Some(message) = association.poll_message() {
                    came.extend_from_slice(&message.payload.into_bytes());
                    ended = true;
                }
                world.drain(Z);
            }
            assert!(came == long(length), "{receive_buffer} {length}");
        }
    }
}

#[test]
fn a_message_longer_than_is_put_together_ends_the_association() {
    let mut world = World::new(Config::default().with(|it| it.max_message = 100_000));
    world.narrate = false;
    let (a, z) = world.established();
    world.send(A, a, 0, long(200_000));
    for _ in 0..50 {
        world.run_for(SECOND / 10);
        assert_eq!(world.receive_all(Z, z), []);
    }
    let reason = CloseReason::MessageTooLong { most: 100_000 };
    assert_eq!(world.close_reason(Z, z), Some(reason));
    let cause = Some(anabranch_wire::cause::code::OUT_OF_RESOURCE);
    let reason = CloseReason::AbortedByPeer { cause };
    assert_eq!(world.close_reason(A, a), Some(reason));
}

/// Whether the event reports the end of partial delivery of the message of [`under_way`].
fn is_of_it(event: &Event) -> bool {
    matches!(
        event,
        Event::PartialDeliveryAborted {
            stream: 2,
            unordered: false,
            ssn: Ssn(0),
            ppid: 0,
            ..
        }
    )
}

#[test]
fn the_end_of_the_association_amid_a_message_is_reported() {
    let (mut world, [a, z]) = under_way(Config::default());
    world.run_for(SECOND);
    world.forget();
    let now = world.now;
    let association = world.endpoints[A].association_mut(a).unwrap();
    association.abort(now, Bytes::new()).expect("open");
    world.drain(A);
    world.run_for(SECOND);
    let closed = Event::Closed(CloseReason::AbortedByPeer { cause: Some(12) });
    let told = world.told(Z);
    assert!(is_of_it(&told[0]) && told[1..] == [closed], "{told:?}");
    let association = world.endpoints[Z].association_mut(z).unwrap();
    let part = association.poll_part().expect("it came before the end");
    assert!(!part.begins && !part.ends);
}

#[test]
fn a_restart_amid_a_message_is_reported_and_the_rest_is_not_mistaken() {
    for in_parts in [true, false] {
        let (mut world, [_, z]) = under_way(Config::default());
        world.run_for(SECOND);
        world.forget();
        let config = Config::default().with(|it| it.addresses = vec![address(A, 0)]);
        world.endpoints[A] = Endpoint::new(config, PORT_A, [9; 32]).expect("settings");
        let a = world.connect();
        world.run_for(SECOND);
        let restarted = Event::Restarted { data_lost: false };
        let told = world.told(Z);
        assert!(is_of_it(&told[0]) && told[1] == restarted, "{told:?}");
        world.send(A, a, 2, "new");
        world.run_for(SECOND);
        let association = world.endpoints[Z].association_mut(z).unwrap();
        let payload = if in_parts {
            let part = association.poll_part().expect("the new message");
            assert!(part.begins && part.ends);
            part.payload
        } else {
            association.poll_message().expect("the new message").payload
        };
        assert_eq!(payload.into_bytes(), "new");
        assert_eq!(association.poll_part(), None);
    }
}

/// A reader of complete messages has collected part of a message that will not end. The collected
/// data should be dropped.
#[test]
fn a_restart_forgets_what_was_gathered() {
    let mut world = World::new(Config::default());
    world.narrate = false;
    let (a, z) = world.established();
    let unordered = long(150_000);
    let association = world.endpoints[A].association_mut(a).unwrap();
    association
        .send(
            world.now,
            unordered,
            &SendOptions::on(2).with_unordered(true),
        )
        .expect("room");
    world.drain(A);
    world.run_for(SECOND);
    assert_eq!(world.receive_all(Z, z), [], "gathers the first part");
    world.fate = Box::new(|shot| match shot.from {
        A => common::Fate::Drop,
        _ => common::Fate::Deliver,
    });
    world.run_for(SECOND / 10);
    let config = Config::default().with(|it| it.addresses = vec![address(A, 0)]);
    world.endpoints[A] = Endpoint::new(config, PORT_A, [9; 32]).expect("settings");
    world.fate = Box::new(|_| common::Fate::Deliver);
    world.connect();
    world.run_for(SECOND);
    let association = world.endpoints[Z].association_mut(z).unwrap();
    assert_eq!(association.poll_part(), None);
}
