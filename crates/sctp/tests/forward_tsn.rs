//! FORWARD TSNs of an arbitrary peer: correct processing and robustness of the receiver (RFC 3758
//! §3.6).

use crate::common;

use anabranch_sctp::{AssociationState, Config, DiscardReason, Event, SendOptions};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::Ssn;
use anabranch_wire::chunk::Chunk;
use anabranch_wire::extension::{ForwardTsn, SkippedStream};
use bytes::Bytes;
use common::rig::Rig;
use common::*;

impl Rig {
    fn with_forward_tsn(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default().with(|it| it.partial_reliability = true);
        change(&mut config);
        Self::of(config)
    }

    /// Delivers a FORWARD TSN that abandons all TSNs up to `to`.
    fn forward_tsn(&mut self, to: u32, skipped: &[(u16, u16)]) {
        let skipped: Vec<_> = skipped
            .iter()
            .map(|&(stream_id, ssn)| SkippedStream {
                stream_id,
                ssn: Ssn(ssn),
            })
            .collect();
        let chunk = ForwardTsn::new(self.first.add(to), &skipped);
        self.chunk(&chunk);
    }

    /// Cumulative TSN and Gap Ack Blocks of the last SACK.
    fn sack(&mut self) -> (u32, Vec<(u16, u16)>) {
        self.world.run_for(SECOND);
        let mut chunks = self
            .world
            .shots
            .iter()
            .rev()
            .flat_map(|it| chunks_of(&it.bytes));
        let sack = chunks.find_map(|chunk| match chunk {
            Chunk::Sack(sack) => Some(sack),
            _ => None,
        });
        let sack = sack.expect("a SACK");
        let blocks = sack.gap_blocks().map(|it| (it.start, it.end)).collect();
        (sack.cumulative_tsn_ack.distance_from(self.first), blocks)
    }

    fn sacks(&self) -> usize {
        let is_sack = |shot: &&Shot| shot.chunks.contains("SACK");
        self.world.shots.iter().filter(is_sack).count()
    }
}

/// Example of RFC 3758 §3.6: the cumulative TSN advances to the given TSN, and further over data
/// that has arrived.
#[test]
fn the_point_goes_on_over_what_has_arrived() {
    let mut rig = Rig::with_forward_tsn(|_| {});
    for (number, offset) in [0, 2, 3, 5].into_iter().enumerate() {
        rig.data(offset, number as u16, 0, "BE");
    }
    assert_eq!(rig.sack(), (0, vec![(2, 3), (5, 5)]));
    rig.forward_tsn(1, &[]);
    assert_eq!(rig.sack(), (3, vec![(2, 2)]), "no more report of 1");
    rig.forward_tsn(6, &[]);
    assert_eq!(rig.sack(), (6, vec![]));
    rig.data(7, 0, 1, "BE");
    assert_eq!(rig.sack(), (7, vec![]));
    assert_eq!(rig.read(), ["0;", "2;", "3;", "5;", "7;"]);
    assert!(rig.is_up());
}

/// RFC 3758 §3.6: messages that waited for abandoned numbers are delivered immediately and in
/// order. Messages of other streams still wait.
#[test]
fn stranded_messages_are_delivered() {
    let mut rig = Rig::with_forward_tsn(|_| {});
    rig.data(1, 4, 1, "BE");
    rig.data(2, 4, 2, "BE");
    rig.data(4, 4, 4, "BE");
    rig.data(6, 9, 1, "BE");
    assert_eq!(rig.read(), [""; 0]);
    rig.forward_tsn(0, &[(4, 0)]);
    assert_eq!(
        rig.read(),
        ["1;", "2;"],
        "and no further than the next hole"
    );
    rig.forward_tsn(3, &[(4, 3)]);
    assert_eq!(rig.read(), ["4;"]);
    rig.forward_tsn(5, &[(9, 0)]);
    assert_eq!(rig.read(), ["6;"]);
    rig.data(7, 4, 5, "BE");
    rig.data(8, 9, 2, "BE");
    assert_eq!(rig.read(), ["7;", "8;"]);
}

/// The skipped stream sequence numbers include the wrap-around. Buffered messages are delivered in
/// order, whether their numbers are before or after the wrap-around.
#[test]
fn numbers_are_skipped_across_their_wrap() {
    let mut rig = Rig::with_forward_tsn(|_| {});
    rig.forward_tsn(0, &[(0, 32_766)]);
    rig.forward_tsn(1, &[(0, 65_532)]);
    rig.data(3, 0, 65_534, "BE");
    rig.data(4, 0, 65_535, "BE");
    rig.data(5, 0, 1, "BE");
    rig.data(6, 0, 2, "BE");
    assert_eq!(rig.read(), [""; 0]);
    rig.forward_tsn(2, &[(0, 1)]);
    assert_eq!(rig.read(), ["3;", "4;", "5;", "6;"]);
}

/// RFC 3758 §3.6: a message that lacks TSNs up to the new cumulative TSN is dropped with all its
/// fragments; a complete message is kept.
#[test]
fn incomplete_messages_are_dropped() {
    let mut rig = Rig::with_forward_tsn(|_| {});
    rig.data(0, 0, 0, "B");
    rig.data(2, 0, 0, "");
    rig.data(3, 0, 0, "E");
    rig.data(5, 1, 0, "E");
    rig.data(6, 2, 0, "B");
    rig.forward_tsn(4, &[(0, 0)]);
    assert_eq!(rig.sack().0, 6);
    rig.data(7, 2, 0, "E");
    rig.data(8, 0, 1, "BE");
    assert_eq!(rig.read(), ["6;7;", "8;"]);
    let association = rig.world.endpoints[Z].association(rig.z).expect("known");
    assert_eq!(association.state(), AssociationState::Established);
    // The last fragment (5), whose message was abandoned, is dropped with the next FORWARD TSN.
    rig.data(10, 0, 2, "BE");
    rig.forward_tsn(9, &[]);
    assert_eq!(rig.read(), ["10;"]);
    assert_eq!(rig.sack(), (10, vec![]));
}

/// A peer may abandon a message without sending its last fragment, and start another message before
/// it sends the FORWARD TSN.
#[test]
fn a_message_may_begin_where_another_was_to_end() {
    let mut rig = Rig::with_forward_tsn(|_| {});
    rig.data(0, 0, 0, "B");
    rig.data(1, 0, 0, "");
    rig.data(2, 0, 1, "BE");
    assert_eq!(rig.read(), ["2;"]);
    rig.forward_tsn(1, &[(0, 0)]);
    assert_eq!(rig.refused(), 1, "the point is behind: it was all received");
    rig.data(4, 0, 2, "BE");
    rig.forward_tsn(3, &[]);
    assert_eq!(rig.read(), ["4;"]);
    assert!(rig.is_up());
}

/// A message is known to have no last fragment once the next TSN belongs to another message. Then
/// all messages that waited for it are delivered.
#[test]
fn a_message_without_an_end_is_passed_over() {
    let mut rig = Rig::with_forward_tsn(|_| {});
    rig.data(0, 0, 0, "B");
    rig.data(1, 0, 0, "");
    rig.data(3, 0, 1, "BE");
    rig.data(5, 0, 3, "BE");
    rig.data(6, 1, 0, "U");
    assert_eq!(rig.read(), [""; 0], "its end may be on its way");
    rig.data(2, 0, 0, "E");
    assert_eq!(rig.read(), ["0;1;2;", "3;"]);
    rig.data(4, 0, 2, "B");
    assert_eq!(rig.read(), ["5;"], "what is behind it begins");
    rig.data(7, 1, 0, "BE");
    assert_eq!(rig.read(), ["7;"], "6 has no beginning");
    // Three messages of one stream have no end, and one of them is unordered. Then a complete
    // message of this stream arrives.
    rig.data(8, 2, 0, "B");
    rig.data(9, 2, 0, "UB");
    rig.data(10, 2, 1, "B");
    rig.data(11, 2, 2, "BE");
    assert_eq!(rig.read(), ["11;"]);
    assert!(rig.is_up());
}

/// A message is also known to have no last fragment if a FORWARD TSN advances the cumulative TSN
/// and the next TSN belongs to another message.
#[test]
fn a_forward_tsn_shows_that_messages_have_no_end() {
    let mut rig = Rig::with_forward_tsn(|_| {});
    rig.data(1, 5, 0, "B");
    rig.data(2, 5, 1, "BE");
    rig.data(3, 5, 2, "B");
    assert_eq!(rig.read(), [""; 0]);
    rig.forward_tsn(0, &[(4, 0)]);
    assert_eq!(rig.read(), ["2;"]);
    rig.data(4, 5, 2, "E");
    assert_eq!(rig.read(), ["3;4;"], "the end of the last may come");
}

/// Messages without a last fragment do not use buffer space: after a thousand of them, the next
/// message can still be read.
#[test]
fn messages_without_an_end_fill_no_buffer() {
    let mut rig = Rig::with_forward_tsn(|config| config.receive_buffer = 1_500);
    for number in 0..1_000 {
        let (stream, ssn) = (number % 3, number / 3);
        rig.data(number, stream as u16, ssn as u16, "B");
    }
    rig.data(1_000, 0, 334, "BE");
    assert_eq!(rig.read(), ["1000;"]);
    assert!(rig.is_up());
}

/// RFC 3758 §3.6: the user is notified of a partially delivered message that will not be completed.
#[test]
fn a_message_that_is_being_delivered_is_aborted() {
    let mut rig = Rig::with_forward_tsn(|config| config.partial_delivery_point = Some(1));
    rig.data(0, 3, 0, "B");
    rig.data(1, 3, 0, "");
    rig.data(3, 3, 1, "BE");
    rig.forward_tsn(2, &[(3, 0)]);
    let aborted = rig.world.told(Z).into_iter().any(|it| {
        matches!(
            it,
            Event::PartialDeliveryAborted {
                stream: 3,
                ssn: Ssn(0),
                ..
            }
        )
    });
    assert!(aborted, "{:?}", rig.world.told(Z));
    assert_eq!(rig.read(), ["3;"]);
    rig.data(4, 3, 2, "BE");
    assert_eq!(rig.read(), ["4;"]);
}

/// The user is also notified if a partially delivered message has no last fragment, although no
/// FORWARD TSN abandons it.
#[test]
fn a_message_that_is_being_delivered_and_has_no_end_is_aborted() {
    let mut rig = Rig::with_forward_tsn(|config| config.partial_delivery_point = Some(1));
    rig.data(0, 3, 0, "B");
    rig.data(1, 3, 1, "B");
    rig.data(2, 3, 2, "BE");
    let told = rig.world.told(Z);
    let number = |it: &Event| match it {
        Event::PartialDeliveryAborted { ssn, .. } => Some(ssn.0),
        _ => None,
    };
    let aborted: Vec<_> = told.iter().filter_map(number).collect();
    assert_eq!(aborted, [0, 1], "{told:?}");
    assert_eq!(rig.read(), ["2;"]);
}

/// Aborting a message does not affect an earlier message of its stream of which a part was read.
#[test]
fn an_aborted_message_leaves_the_one_before_it_whole() {
    let mut rig = Rig::with_forward_tsn(|config| config.partial_delivery_point = Some(1));
    rig.data(0, 3, 0, "UB");
    assert_eq!(rig.read(), [""; 0], "gathered until its end");
    rig.data(1, 3, 0, "UE");
    rig.data(2, 3, 0, "B");
    rig.forward_tsn(3, &[(3, 0)]);
    assert_eq!(rig.read(), ["0;1;"]);
    rig.data(4, 3, 1, "B");
    rig.data(5, 3, 1, "E");
    assert_eq!(rig.read(), ["4;5;"]);
}

/// Partial delivery does not start for a message that the same FORWARD TSN abandons.
#[test]
fn messages_abandoned_in_one_sack_are_not_started() {
    let mut rig = Rig::with_forward_tsn(|config| config.partial_delivery_point = Some(1));
    rig.data(0, 3, 0, "B");
    rig.data(2, 3, 1, "B");
    rig.forward_tsn(3, &[(3, 1)]);
    let told = rig.world.told(Z).into_iter();
    let aborted = told.filter(|it| matches!(it, Event::PartialDeliveryAborted { .. }));
    assert_eq!(aborted.count(), 1);
    assert_eq!(rig.read(), [""; 0]);
    let association = rig.world.endpoints[Z].association(rig.z).expect("known");
    assert_eq!(association.stats().receiver.partial_messages, 1);
}

/// RFC 3758 §3.6: an outdated FORWARD TSN is answered by a SACK, because the last SACK may have
/// been lost. It has no other effect.
#[test]
fn one_that_is_out_of_date_is_answered_by_a_sack() {
    let mut rig = Rig::with_forward_tsn(|_| {});
    rig.data(0, 0, 0, "BE");
    rig.data(1, 0, 1, "BE");
    rig.world.run_for(SECOND);
    let before = rig.sacks();
    let behind = rig.first.0.wrapping_sub(1);
    rig.forward_tsn(1, &[(0, 500)]);
    assert_eq!((rig.sacks(), rig.refused()), (before + 1, 1));
    rig.forward_tsn(0, &[(0, 500)]);
    rig.forward_tsn(behind.wrapping_sub(rig.first.0), &[]);
    assert_eq!((rig.sacks(), rig.refused()), (before + 3, 3));
    assert_eq!(rig.sack(), (1, vec![]));
    rig.data(2, 0, 2, "BE");
    assert_eq!(rig.read(), ["0;", "1;", "2;"], "nor are numbers skipped");
}

/// RFC 3758 §3.6: a FORWARD TSN counts as DATA for SACK timing: every second packet, or after the
/// delay.
#[test]
fn it_is_acknowledged_as_data_is() {
    let mut rig = Rig::with_forward_tsn(|_| {});
    rig.data(0, 0, 0, "BE");
    rig.world.run_for(SECOND);
    let before = rig.sacks();
    rig.forward_tsn(1, &[]);
    assert_eq!(rig.sacks(), before, "delayed");
    rig.world.run_for(150 * MILLISECOND);
    assert_eq!(rig.sacks(), before);
    rig.world.run_for(60 * MILLISECOND);
    assert_eq!(rig.sacks(), before + 1);
    rig.forward_tsn(2, &[]);
    rig.forward_tsn(3, &[]);
    assert_eq!(rig.sacks(), before + 2, "two packets");
}

/// A skipped TSN that arrives later is a duplicate (RFC 3758 §3.6).
#[test]
fn a_skipped_tsn_that_arrives_later_is_a_duplicate() {
    let mut rig = Rig::with_forward_tsn(|_| {});
    rig.forward_tsn(2, &[(0, 2)]);
    for number in 0..3 {
        rig.data(number, 0, number as u16, "BE");
    }
    assert_eq!(rig.read(), [""; 0]);
    assert_eq!(rig.world.endpoints[Z].discards().of(DiscardReason::Data), 3);
    assert_eq!(rig.sack(), (2, vec![]));
}

/// CVE-2009-0065: a FORWARD TSN with hundreds of nonexistent streams, and one valid stream among
/// them.
#[test]
fn cve_2009_0065_streams_beyond_those_agreed_on() {
    let mut rig = Rig::with_forward_tsn(|_| {});
    rig.data(1, 0, 1, "BE");
    let mut streams: Vec<(u16, u16)> = (10..310).map(|it| (it, 0)).collect();
    streams.extend([(u16::MAX, u16::MAX), (0, 0), (0x8000, 7)]);
    rig.forward_tsn(0, &streams);
    assert_eq!(rig.read(), ["1;"]);
    assert_eq!(rig.refused(), 302);
    assert!(rig.is_up());
}

/// CVE-2021-3655: a FORWARD TSN that is too short for its TSN, or ends within an entry. A chunk
/// length of 0 ends the processing of the packet.
#[test]
fn cve_2021_3655_lengths_that_do_not_fit() {
    let mut rig = Rig::with_forward_tsn(|_| {});
    let tsn = rig.first.add(5).0.to_be_bytes();
    let of = |length: u8, value: &[u8]| [&[0xC0, 0, 0, length], value].concat();
    rig.raw(&of(4, &[]));
    rig.raw(&of(7, &[tsn[0], tsn[1], tsn[2], 0]));
    rig.raw(&of(10, &[&tsn[..], &[0, 0, 0, 0]].concat()));
    assert_eq!(
        rig.world.endpoints[Z]
            .discards()
            .of(DiscardReason::ChunkFields),
        3
    );
    rig.raw(&of(0, &tsn));
    rig.raw(&of(200, &tsn));
    assert_eq!(
        rig.world.endpoints[Z]
            .discards()
            .of(DiscardReason::ChunkLength)
            + rig.world.endpoints[Z]
                .discards()
                .of(DiscardReason::Malformed),
        2
    );
    rig.data(0, 0, 0, "BE");
    assert_eq!(rig.sack(), (0, vec![]), "none of them moved the point");
    assert!(rig.is_up());
}

/// A TSN that no SACK could report is refused, as are outdated stream sequence numbers.
#[test]
fn points_and_numbers_out_of_reach_are_refused() {
    let mut rig = Rig::with_forward_tsn(|_| {});
    rig.data(0, 0, 0, "BE");
    for far in [65_536, 1 << 20, 1 << 31, (1 << 31) + 5] {
        rig.forward_tsn(far, &[(0, 9)]);
    }
    assert_eq!(rig.refused(), 4);
    assert_eq!(rig.sack(), (0, vec![]));
    rig.forward_tsn(65_535, &[(0, 40_000)]);
    assert_eq!(rig.refused(), 5, "a number behind the next");
    assert_eq!(rig.sack(), (65_535, vec![]));
    rig.data(65_536, 0, 1, "BE");
    assert_eq!(rig.read(), ["0;", "65536;"]);
}

/// A FORWARD TSN that lists the stream of a partially delivered message, but does not reach the
/// TSNs of the message, does not skip the message. No other data of its stream is delivered between
/// its parts.
#[test]
fn numbers_do_not_skip_what_is_being_delivered() {
    let mut rig = Rig::with_forward_tsn(|config| config.partial_delivery_point = Some(1));
    rig.data(0, 0, 0, "B");
    rig.data(2, 0, 1, "BE");
    // An unordered message on another stream, for which ordered messages wait.
    rig.data(4, 1, 0, "BU");
    rig.data(6, 1, 2, "BE");
    rig.forward_tsn(3, &[(1, 1), (0, 0)]);
    rig.data(5, 1, 0, "EU");
    rig.data(7, 1, 3, "BE");
    assert_eq!(rig.read(), ["2;", "4;5;", "6;", "7;"]);
    assert!(rig.is_up());
}

/// In states that accept no DATA a FORWARD TSN has no effect. Before the handshake it is not
/// negotiated.
#[test]
fn states_that_take_no_data_take_none() {
    let mut rig = Rig::with_forward_tsn(|_| {});
    rig.world.shutdown(Z, rig.z);
    assert_eq!(rig.world.state(Z, rig.z), AssociationState::ShutdownSent);
    rig.forward_tsn(3, &[]);
    let told = rig.world.shots.iter().flat_map(|it| chunks_of(&it.bytes));
    let told = told.filter_map(|chunk| match chunk {
        Chunk::Shutdown(shutdown) => Some(shutdown.cumulative_tsn_ack),
        _ => None,
    });
    assert_eq!(told.last(), Some(rig.first.add(3)), "as DATA would move it");
    let mut rig = Rig::with_forward_tsn(|_| {});
    let shutdown = [7, 0, 0, 8, 0, 0, 0, 0];
    let message = Bytes::from_static(b"unanswered");
    let association = rig.world.endpoints[Z]
        .association_mut(rig.z)
        .expect("known");
    association
        .send(rig.world.now, message, &SendOptions::new())
        .expect("room");
    rig.world.drain(Z);
    rig.raw(&shutdown);
    assert_eq!(
        rig.world.state(Z, rig.z),
        AssociationState::ShutdownReceived
    );
    let before = rig.world.endpoints[Z]
        .discards()
        .of(DiscardReason::WrongState);
    rig.forward_tsn(3, &[]);
    assert_eq!(
        rig.world.endpoints[Z]
            .discards()
            .of(DiscardReason::WrongState),
        before + 1
    );
}
