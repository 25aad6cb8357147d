//! Message interleaving (RFC 8260 §2): negotiation, benefit, and robustness of the receiver.

use crate::common;

use anabranch_sctp::config::{Config, SchedulerKind};
use anabranch_sctp::{
    CloseReason, DiscardReason, Event, Profile, ReconfigOutcome, SendOptions, Violation,
};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::{Chunk, Data};
use anabranch_wire::extension::{
    Extension, ForwardTsn, FragmentPosition, IData, ReConfig, ReConfigParameter,
};
use anabranch_wire::parameter::Parameter;
use anabranch_wire::serial::{Fsn, Mid};
use anabranch_wire::tlv::{TlvList, U16List};
use anabranch_wire::{Ssn, Tsn};
use bytes::Bytes;
use common::rig::Rig;
use common::*;

fn on() -> Config {
    Config::default().with(|it| it.interleaving = true)
}

fn message(length: usize) -> Bytes {
    vec![length as u8; length].into()
}

fn on_stream(stream: u16) -> SendOptions {
    SendOptions::on(stream).with_ppid(5)
}

/// I-DATA chunks in the packets that `from` has sent.
fn pieces(world: &World, from: usize) -> Vec<IData> {
    let shots = world.shots.iter().filter(|it| it.from == from);
    let chunks = shots.flat_map(|it| chunks_of(&it.bytes));
    let extensions = chunks.filter_map(|it| match it {
        Chunk::Unknown(raw) => Extension::decode(raw).ok(),
        _ => None,
    });
    let data = extensions.filter_map(|it| match it {
        Extension::IData(data) => Some(data),
        _ => None,
    });
    data.collect()
}

fn listed(bytes: &Bytes) -> Vec<u8> {
    let parameters = match chunks_of(bytes).remove(0) {
        Chunk::Init(init) => init.parameters,
        Chunk::InitAck(ack) => ack.0.parameters,
        other => panic!("{other:?}"),
    };
    let all = parameters.into_iter().filter_map(|it| match it {
        Ok(Parameter::SupportedExtensions(list)) => Some(list.to_vec()),
        _ => None,
    });
    all.flatten().collect()
}

/// §2.2.1: if interleaving is negotiated by Supported Extensions, all user data is sent as I-DATA,
/// otherwise none.
#[test]
fn interleaving_takes_two() {
    for (a, z) in [(true, true), (true, false), (false, true), (false, false)] {
        let config = |on: bool| Config::default().with(|it| it.interleaving = on);
        let mut world = World::with_configs(config(a), config(z));
        let id = world.connect();
        world.run_for(SECOND);
        let chunks = listed(&world.shot(A, "INIT"));
        assert_eq!(chunks, if a { vec![64] } else { vec![] });
        let both = a && z;
        let chunks = listed(&world.shot(Z, "INIT ACK"));
        assert_eq!(chunks, if both { vec![64] } else { vec![] });
        let other = world.only_association(Z);
        world.send(A, id, 3, vec![1; 4_000]);
        world.send(A, id, 3, "short");
        world.run_for(SECOND);
        let read = world.receive_all(Z, other);
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].payload.len(), 4_000);
        assert_eq!(!pieces(&world, A).is_empty(), both);
        let data = world.shots.iter().any(|it| it.chunks.contains("DATA"));
        assert!(both || data);
        for (host, id) in [(A, id), (Z, other)] {
            let association = world.endpoints[host].association(id).expect("known");
            assert_eq!(association.negotiated().interleaving, both);
        }
    }
}

/// §2.1: MIDs count ordered and unordered messages separately, and FSNs count the fragments of each
/// message. Only the first fragment contains the PPID.
#[test]
fn messages_and_pieces_are_numbered() {
    let mut world = World::new(on());
    let (a, z) = world.established();
    let association = world.endpoints[A].association_mut(a).expect("known");
    for (unordered, length) in [(false, 3_000), (true, 10), (false, 20), (true, 1_500)] {
        let options = on_stream(4).with_unordered(unordered);
        let sent = association.send(world.now, message(length), &options);
        sent.expect("room");
    }
    world.drain(A);
    world.run_for(SECOND);
    let seen: Vec<_> = pieces(&world, A)
        .iter()
        .map(|it| {
            let position = match it.position {
                FragmentPosition::First { ppid } => (0, ppid),
                FragmentPosition::Later { fsn } => (fsn.0, 0),
            };
            (it.unordered, it.mid.0, position, it.ending)
        })
        .collect();
    let expected = [
        (false, 0, (0, 5), false),
        (false, 0, (1, 0), false),
        (false, 0, (2, 0), true),
        (true, 0, (0, 5), true),
        (false, 1, (0, 5), true),
        (true, 1, (0, 5), false),
        (true, 1, (1, 0), true),
    ];
    assert_eq!(seen, expected);
    assert_eq!(world.receive_all(Z, z).len(), 4);
}

/// Arrival time, in milliseconds, of a message of ten bytes queued after a long one.
fn delay_of_the_short(interleaving: bool, scheduler: SchedulerKind) -> Nanos {
    let config = Config::default().with(|it| {
        it.interleaving = interleaving;
        it.scheduler = scheduler;
        it.send_buffer = 2 << 20;
        it.receive_buffer = 1 << 20;
    });
    let mut world = World::new(config);
    let (a, z) = world.established();
    let association = world.endpoints[A].association_mut(a).expect("known");
    let sent = association.send(world.now, message(300_000), &on_stream(0));
    sent.expect("room");
    world.drain(A);
    world.run_for(MILLISECOND);
    world.send(A, a, 1, vec![9; 10]);
    let begin = world.now;
    while world.now < begin + 60 * SECOND {
        world.run_for(MILLISECOND);
        if world.receive_all(Z, z).iter().any(|it| it.stream == 1) {
            return (world.now - begin) / MILLISECOND;
        }
    }
    panic!("it never came");
}

/// §1, §3: a long message delays short messages of other streams only if messages are not
/// interleaved, or if the scheduler does not alternate between streams.
#[test]
fn a_long_message_blocks_no_other() {
    use SchedulerKind::*;
    for scheduler in [
        RoundRobin,
        RoundRobinPerPacket,
        Priority,
        FairCapacity,
        WeightedFair,
    ] {
        let with = delay_of_the_short(true, scheduler);
        let without = delay_of_the_short(false, scheduler);
        assert!(
            with <= 31 && without > 80,
            "{scheduler:?}: {with}, {without}"
        );
    }
    assert_eq!(
        delay_of_the_short(true, Fcfs),
        delay_of_the_short(false, Fcfs)
    );
}

/// §2.2.2: at most one message per stream is in transmission at a time, including messages queued
/// without a stream.
#[test]
fn one_message_of_a_stream_at_a_time() {
    for &scheduler in SchedulerKind::ALL {
        let mut config = on();
        config.scheduler = scheduler;
        config.outbound_streams = 3;
        let mut world = World::new(config);
        let (a, z) = world.established();
        let association = world.endpoints[A].association_mut(a).expect("known");
        for round in 0..12_usize {
            let length = 500 + round * 700;
            let stream = Some(round as u16 % 3).filter(|it| *it > 0);
            let options = on_stream(0).with_stream(stream);
            let sent = association.send(world.now, message(length), &options);
            sent.expect("room");
        }
        world.drain(A);
        world.run_for(20 * SECOND);
        let mut under_way = [None; 3];
        for position in pieces(&world, A) {
            let place = &mut under_way[usize::from(position.stream_id)];
            let name = (position.unordered, position.mid);
            match position.position {
                FragmentPosition::First { .. } => {
                    assert!(place.replace(name).is_none(), "{scheduler:?}")
                }
                FragmentPosition::Later { .. } => assert_eq!(*place, Some(name), "{scheduler:?}"),
            }
            if position.ending {
                *place = None;
            }
        }
        assert_eq!(world.receive_all(Z, z).len(), 12, "{scheduler:?}");
    }
}

impl Rig {
    fn with_interleaving(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = on().with(|it| it.partial_reliability = true);
        change(&mut config);
        Self::of(config)
    }

    /// Delivers a fragment whose user data is its TSN offset as text.
    fn position(&mut self, offset: u32, name: (u16, u32, u32), flags: &str) {
        let position = self.i_data(offset, name, flags, format!("{offset};"));
        self.chunk(&position);
    }

    fn i_forward_tsn(&mut self, to: u32, skipped: &[(u16, bool, u32)]) {
        let chunk = self.giving_up(to, skipped);
        self.chunk(&chunk);
    }
}

/// §2.2.3: fragments are assigned by stream, ordering, message number and fragment number,
/// independent of their TSNs.
#[test]
fn pieces_find_their_messages_in_any_order() {
    let mut rig = Rig::with_interleaving(|_| {});
    rig.position(0, (1, 0, 2), "E");
    rig.position(1, (2, 0, 0), "U");
    rig.position(2, (1, 1, 0), "E");
    rig.position(3, (1, 0, 0), "");
    rig.position(4, (1, 0, 0), "UE");
    rig.position(5, (2, 0, 1), "UE");
    assert_eq!(rig.read(), ["4;", "1;5;"]);
    rig.position(6, (1, 0, 1), "");
    assert_eq!(
        rig.read(),
        ["3;6;0;", "2;"],
        "and the one that waited for it"
    );
    assert!(rig.is_up());
}

/// Chunk: TSN offset, stream, message and fragment number, flags.
type Sent = (u32, (u16, u32, u32), &'static str);

/// Contradictory fragments end the association.
#[test]
fn contradictions_are_refused() {
    let cases: [&[Sent]; 6] = [
        // A duplicate fragment number; a fragment after the last; two last fragments; a last
        // fragment before received ones; a used message number; a delivered fragment.
        &[(0, (1, 0, 1), ""), (1, (1, 0, 1), "")],
        &[(0, (1, 0, 1), "E"), (1, (1, 0, 2), "")],
        &[(0, (1, 0, 1), "E"), (1, (1, 0, 0), "E")],
        &[(0, (1, 0, 4), ""), (1, (1, 0, 2), "E")],
        &[(0, (1, 0, 0), "E"), (1, (1, 0, 0), "E")],
        &[(0, (1, 0, 0), ""), (1, (1, 0, 0), "")],
    ];
    for case in cases {
        let mut rig = Rig::with_interleaving(|config| config.partial_reliability = false);
        for (offset, at, flags) in case {
            assert!(rig.is_up(), "{case:?}");
            rig.position(*offset, *at, flags);
        }
        let reason = rig.world.close_reason(Z, rig.z);
        let violation = matches!(
            reason,
            Some(CloseReason::PeerViolation(Violation::Protocol(_)))
        );
        assert!(violation, "{case:?}: {reason:?}");
    }
}

/// §2.2.1, §2.3.1: DATA and FORWARD TSN are illegal with I-DATA.
#[test]
fn data_with_i_data_ends_the_association() {
    let data = |first: Tsn| Data {
        tsn: first,
        stream_id: 0,
        ssn: Ssn(0),
        ppid: 0,
        unordered: false,
        beginning: true,
        ending: true,
        immediate: false,
        user_data: Bytes::from_static(b"x"),
    };
    for with_data in [true, false] {
        let mut rig = Rig::with_interleaving(|_| {});
        if with_data {
            rig.chunk(&data(rig.first));
        } else {
            rig.chunk(&ForwardTsn::new(rig.first, &[]));
        }
        assert!(!rig.is_up());
        assert!(rig.read().is_empty());
    }
}

/// Without negotiation, I-DATA should be handled as an unknown chunk.
#[test]
fn i_data_that_was_not_agreed_on_is_unknown() {
    let mut rig = Rig::with_interleaving(|config| config.interleaving = false);
    rig.position(0, (0, 0, 0), "E");
    rig.i_forward_tsn(3, &[]);
    let discards = rig.world.endpoints[Z].discards();
    assert_eq!(discards.of(DiscardReason::UnknownChunk), 2);
    assert!(rig.is_up() && rig.read().is_empty());
}

/// §2.3.1: abandoned messages are dropped, and messages that waited for them are delivered. Tested
/// for ordered and unordered messages, across the wrap-around.
#[test]
fn abandoned_messages_are_skipped() {
    let mut rig = Rig::with_interleaving(|_| {});
    rig.position(1, (0, 0, 1), "");
    rig.position(2, (0, 1, 0), "E");
    rig.position(3, (0, 2, 1), "E");
    rig.position(4, (0, 3, 0), "E");
    rig.position(5, (0, 0, 0), "U");
    rig.position(6, (0, 7, 0), "U");
    assert!(rig.read().is_empty());
    rig.i_forward_tsn(7, &[(0, false, 2), (0, true, 0), (9_999, false, 0)]);
    assert_eq!(rig.read(), ["2;", "4;"]);
    assert_eq!(
        rig.refused(),
        1,
        "a stream that does not exist (CVE-2009-0065)"
    );
    rig.position(8, (0, 7, 1), "UE");
    assert_eq!(rig.read(), ["6;8;"], "the later one was not given up");
    // Late fragments of abandoned messages are ignored, and are no violation.
    rig.position(9, (0, 2, 0), "");
    assert!(rig.is_up() && rig.read().is_empty());
    rig.i_forward_tsn(8, &[(0, false, 900)]);
    assert_eq!(rig.refused(), 2, "behind");
    rig.i_forward_tsn(10, &[(0, false, 1)]);
    assert_eq!(rig.refused(), 3, "a number behind");
    rig.i_forward_tsn(11, &[(0, false, u32::MAX / 2), (1, false, u32::MAX / 2)]);
    rig.i_forward_tsn(12, &[(0, false, u32::MAX - 1)]);
    rig.position(13, (0, 0, 0), "E");
    rig.position(14, (0, u32::MAX, 0), "E");
    assert_eq!(rig.read(), ["14;", "13;"], "numbers wrap");
}

/// Window that the last SACK of Z has advertised.
fn advertised(rig: &mut Rig) -> u32 {
    rig.world.run_for(SECOND);
    let chunks = rig.world.shots.iter().rev();
    let mut chunks = chunks.flat_map(|it| chunks_of(&it.bytes));
    let window = chunks.find_map(|it| match it {
        Chunk::Sack(sack) => Some(sack.a_rwnd),
        _ => None,
    });
    window.expect("a SACK")
}

/// An I-FORWARD-TSN overtakes a fragment of the unordered message that it abandons. The late
/// fragment must not start a message: it must not use space, delay other messages, or prevent a
/// reset of its stream. After a reset the numbers have a new meaning.
#[test]
fn pieces_of_unordered_messages_that_come_late_are_of_nothing() {
    for partial_delivery_point in [None, Some(1)] {
        let mut rig = Rig::with_interleaving(|config| {
            config.reconfiguration = true;
            config.partial_delivery_point = partial_delivery_point;
        });
        rig.position(1, (0, 7, 2), "U");
        rig.i_forward_tsn(0, &[(0, true, 7)]);
        rig.position(2, (0, 7, 0), "U");
        rig.position(3, (0, 7, 3), "UE");
        rig.position(4, (0, 6, 0), "U");
        assert!(rig.is_up() && rig.read().is_empty());
        assert_eq!(advertised(&mut rig), 65_536);
        rig.position(5, (0, 8, 0), "UE");
        rig.position(6, (0, 0, 0), "E");
        assert_eq!(rig.read(), ["5;", "6;"]);
        let reset = ReConfigParameter::OutgoingSsnReset {
            request: rig.first.0,
            response: 0,
            last_tsn: rig.first.add(6),
            streams: U16List::of(&[0]),
        };
        let parameters = TlvList::of(&[reset]);
        rig.chunk(&ReConfig { parameters });
        let outcome = ReconfigOutcome::Performed;
        let performed = |it: &Event| matches!(it, Event::StreamsReset { outcome: told, .. } if *told == outcome);
        assert!(rig.world.told(Z).iter().any(performed));
        rig.position(7, (0, 0, 0), "UE");
        assert_eq!(rig.read(), ["7;"]);
    }
}

/// A partially delivered message is aborted, its user is notified, and later messages of the stream
/// are delivered.
#[test]
fn a_message_abandoned_in_delivery_is_reported() {
    let mut rig = Rig::with_interleaving(|config| config.partial_delivery_point = Some(1));
    rig.position(0, (3, 0, 0), "");
    rig.position(1, (3, 1, 0), "E");
    rig.i_forward_tsn(2, &[(3, false, 0)]);
    let told = rig.world.told(Z);
    let aborted = |it: &Event| {
        matches!(
            it,
            Event::PartialDeliveryAborted {
                stream: 3,
                ssn: Ssn(0),
                ..
            }
        )
    };
    assert!(told.iter().any(aborted), "{told:?}");
    assert_eq!(rig.read(), ["1;"]);
}

/// If the buffer is full of messages that cannot all be completed, they are delivered in parts, on
/// every stream (§2.2.3).
#[test]
fn long_messages_on_many_streams_pass_a_small_buffer() {
    let mut config = on();
    config.receive_buffer = 20_000;
    config.send_buffer = 1 << 20;
    let mut world = World::new(config);
    let (a, z) = world.established();
    let association = world.endpoints[A].association_mut(a).expect("known");
    for stream in 0..8 {
        let sent = association.send(world.now, message(60_000), &on_stream(stream));
        sent.expect("room");
    }
    world.drain(A);
    let mut lengths = Vec::new();
    for _ in 0..2_000 {
        world.run_for(20 * MILLISECOND);
        let read = world.receive_all(Z, z).into_iter();
        lengths.extend(read.map(|it| it.payload.len()));
    }
    assert_eq!(lengths, [60_000; 8], "{:?}", world.close_reason(Z, z));
}

/// Messages of maximum length on all streams at the same time.
#[test]
fn the_longest_messages_of_all_streams_are_put_together() {
    let mut world = World::new(on().with(|it| {
        it.send_buffer = 1 << 20;
        it.receive_buffer = 20_000;
        it.max_message = 100_000;
    }));
    world.narrate = false;
    let (a, z) = world.established();
    let association = world.endpoints[A].association_mut(a).expect("up");
    for stream in 0..10 {
        let sent = association.send(world.now, message(100_000), &on_stream(stream));
        sent.expect("room");
    }
    world.drain(A);
    let mut came = 0;
    for _ in 0..4_000 {
        world.run_for(10 * MILLISECOND);
        came += world.receive_all(Z, z).len();
    }
    assert_eq!(came, 10);
}

/// Extensions that the INIT does not offer are not negotiated, even if the INIT ACK lists them.
#[test]
fn a_bare_init_agrees_on_nothing() {
    let mut world = World::with_configs(on().with(|it| it.minimal_init = true), on());
    let (a, z) = world.established();
    for (host, id) in [(A, a), (Z, z)] {
        let association = world.endpoints[host].association(id).expect("up");
        assert!(!association.negotiated().interleaving, "{host}");
    }
}

/// A peer that starts messages on every stream and completes none uses at most the buffer, and is
/// detected.
#[test]
fn messages_without_beginning_exhaust_no_memory() {
    let mut rig = Rig::with_interleaving(|config| {
        config.receive_buffer = 4_000;
        config.outbound_streams = 2_000;
    });
    for offset in 0..20_000 {
        if !rig.is_up() {
            break;
        }
        rig.position(offset, ((offset % 2_000) as u16, offset / 2_000, 1), "");
    }
    let reason = rig.world.close_reason(Z, rig.z);
    assert_eq!(reason, Some(CloseReason::ReceiveBufferExhausted));
}

/// §2.3.1: a message is abandoned as a whole, by its message identifier, and later messages of the
/// stream are delivered.
#[test]
fn a_message_abandoned_is_reported_by_its_identifier() {
    let mut config = on();
    config.partial_reliability = true;
    let mut world = World::new(config);
    let (a, z) = world.established();
    world.fate = Box::new(|shot| match shot.from {
        A if shot.at < 3 * SECOND => Fate::Drop,
        _ => Fate::Deliver,
    });
    let now = world.now;
    let association = world.endpoints[A].association_mut(a).expect("known");
    let short = SendOptions::default().with_lifetime(Some(500 * MILLISECOND));
    for unordered in [false, true] {
        let payload = message(5_000);
        let options = short.with_ppid(5).with_unordered(unordered);
        let sent = association.send(now, payload, &options.with_stream(Some(6)));
        sent.expect("room");
    }
    let sent = association.send(now, message(30), &on_stream(6));
    sent.expect("room");
    world.drain(A);
    world.run_for(30 * SECOND);
    let read = world.receive_all(Z, z);
    assert_eq!(
        read.iter().map(|it| it.payload.len()).collect::<Vec<_>>(),
        [30]
    );
    let told = world.told(A).into_iter();
    let given_up = told.filter(|it| matches!(it, Event::MessageAbandoned(_)));
    assert_eq!(given_up.count(), 2);
}

/// Acknowledged fragments are never dropped, so a chunk that fills a gap may exceed the buffer,
/// even if the profile drops DATA.
#[test]
fn a_hole_in_a_full_buffer_is_filled() {
    for name in Profile::NAMES {
        let mut rig = Rig::with_interleaving(|config| {
            config.profile = Profile::by_name(name).expect("its own name");
            config.receive_buffer = 3_000;
        });
        let position = |rig: &mut Rig, number: u32, ending| {
            let position = match number {
                0 => FragmentPosition::First { ppid: 1 },
                fsn => FragmentPosition::Later { fsn: Fsn(fsn) },
            };
            rig.chunk(&IData {
                tsn: rig.first.add(number),
                stream_id: 2,
                mid: Mid(0),
                position,
                unordered: false,
                ending,
                immediate: false,
                user_data: Bytes::from_static(&[7; 500]),
            });
        };
        (1..20).for_each(|number| position(&mut rig, number, false));
        position(&mut rig, 0, false);
        assert!(
            rig.is_up(),
            "{name}: {:?}",
            rig.world.close_reason(Z, rig.z)
        );
        assert_eq!(rig.read(), [""; 0], "{name}: gathered until its end");
        let mut read = Vec::new();
        for number in 1..20 {
            position(&mut rig, number, number == 19);
            read.extend(rig.read());
        }
        let lengths: Vec<_> = read.iter().map(String::len).collect();
        assert_eq!(lengths, [10_000], "{name}");
    }
}
