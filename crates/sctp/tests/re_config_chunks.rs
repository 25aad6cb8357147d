//! Tests of RE-CONFIGs from a peer that sends arbitrary chunks: responses and robustness (RFC 6525
//! §5.2).

use crate::common;

use anabranch_sctp::{
    Config, DiscardReason, Event, ReconfigOutcome, Reconfiguration, StreamDirection,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::{Chunk, kind};
use anabranch_wire::extension::{Extension, ReConfig, ReConfigParameter, ReConfigResult};
use anabranch_wire::packet::{Checksum, Packet};
use anabranch_wire::tlv::{TlvList, U16List};
use anabranch_wire::{Encode, Tsn};
use bytes::{Bytes, BytesMut};
use common::rig::Rig;
use common::*;

use ReConfigResult::{
    AlreadyInProgress, BadSequenceNumber, Denied, InProgress, NothingToDo, Performed, WrongSsn,
};

impl Rig {
    fn with_defaults() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default().with(|it| it.reconfiguration = true);
        change(&mut config);
        Self::of(config)
    }

    /// Request number with this offset from the first request number, which is the initial TSN.
    fn number(&self, offset: u32) -> u32 {
        self.first.0.wrapping_add(offset)
    }

    fn outgoing(&self, offset: u32, last: u32, streams: &[u16]) -> ReConfigParameter {
        ReConfigParameter::OutgoingSsnReset {
            request: self.number(offset),
            response: 0,
            last_tsn: self.first.add(last).prev(),
            streams: U16List::of(streams),
        }
    }

    fn incoming(&self, offset: u32, streams: &[u16]) -> ReConfigParameter {
        ReConfigParameter::IncomingSsnReset {
            request: self.number(offset),
            streams: U16List::of(streams),
        }
    }

    fn all(&self, offset: u32) -> ReConfigParameter {
        let request = self.number(offset);
        ReConfigParameter::SsnTsnReset { request }
    }

    fn add(&self, offset: u32, count: u16) -> ReConfigParameter {
        let request = self.number(offset);
        ReConfigParameter::AddOutgoingStreams { request, count }
    }

    fn add_incoming(&self, offset: u32, count: u16) -> ReConfigParameter {
        let request = self.number(offset);
        ReConfigParameter::AddIncomingStreams { request, count }
    }

    fn re_config(parameters: &[ReConfigParameter]) -> Bytes {
        let mut bytes = BytesMut::new();
        let parameters = TlvList::of(parameters);
        ReConfig { parameters }.encode(&mut bytes);
        bytes.freeze()
    }

    /// Parameters of all RE-CONFIGs that Z has sent since the last call.
    fn said(&mut self) -> Vec<ReConfigParameter> {
        let mut said = Vec::new();
        for shot in &self.world.shots[self.looked_at..] {
            let packet = Packet::parse(&shot.bytes, Checksum::Ignore).expect("a packet");
            for raw in packet.chunks().map(|raw| raw.expect("framed")) {
                if let Ok(Extension::ReConfig(chunk)) = Extension::decode(raw) {
                    said.extend(chunk.parameters.iter().map(|it| it.expect("sound")));
                }
            }
        }
        self.looked_at = self.world.shots.len();
        said
    }

    /// Sends a RE-CONFIG and returns the results in the response.
    fn ask(&mut self, parameters: &[ReConfigParameter]) -> Vec<ReConfigResult> {
        self.raw(&Self::re_config(parameters));
        let said = self.said().into_iter();
        let result = |it| match it {
            ReConfigParameter::Response { result, .. } => Some(result),
            _ => None,
        };
        said.filter_map(result).collect()
    }

    /// Acknowledges all data that Z has sent.
    fn acknowledge(&mut self) {
        let shots = self.world.shots.iter().rev();
        let tsn = shots
            .flat_map(|it| chunks_of(&it.bytes))
            .find_map(|it| match it {
                Chunk::Data(data) => Some(data.tsn.0),
                _ => None,
            });
        let mut sack = vec![kind::SACK, 0, 0, 16];
        sack.extend_from_slice(&tsn.expect("DATA").to_be_bytes());
        sack.extend_from_slice(&100_000_u32.to_be_bytes());
        sack.extend_from_slice(&[0; 4]);
        self.raw(&sack);
    }

    fn text(&mut self) -> String {
        self.read().concat()
    }

    fn resets(&self) -> Vec<Vec<u16>> {
        let told = self.world.told(Z).into_iter();
        let incoming = |it| match it {
            Event::StreamsReset {
                direction: StreamDirection::Incoming,
                streams,
                outcome: ReconfigOutcome::Performed,
            } => Some(streams),
            _ => None,
        };
        told.filter_map(incoming).collect()
    }

    fn bad(&self) -> u64 {
        let discards = self.world.endpoints[Z].discards();
        discards.of(DiscardReason::BadReConfig)
    }
}

#[test]
fn a_repeated_request_has_the_same_answer_and_is_done_once() {
    let mut rig = Rig::with_defaults();
    rig.data(0, 1, 0, "BE");
    let request = rig.outgoing(0, 1, &[1]);
    for _ in 0..5 {
        assert_eq!(rig.ask(std::slice::from_ref(&request)), [Performed]);
    }
    assert_eq!(rig.resets(), [[1]]);
    rig.data(1, 1, 0, "BE");
    assert_eq!(rig.ask(&[request]), [Performed]);
    rig.data(2, 1, 1, "BE");
    assert_eq!(rig.text(), "0;1;2;");
}

#[test]
fn numbers_that_are_not_next_are_refused() {
    let mut rig = Rig::with_defaults();
    for offset in [1, 2, u32::MAX, 1 << 31] {
        let request = rig.outgoing(offset, 0, &[1]);
        assert_eq!(rig.ask(&[request]), [BadSequenceNumber], "{offset}");
    }
    assert_eq!(rig.bad(), 4);
    for offset in 0..4 {
        let request = rig.outgoing(offset, 0, &[1]);
        assert_eq!(rig.ask(&[request]), [Performed]);
    }
    // Z caches the results of two requests.
    let [old, kept] = [1, 2].map(|offset| rig.outgoing(offset, 0, &[1]));
    assert_eq!(rig.ask(&[old]), [BadSequenceNumber]);
    assert_eq!(rig.ask(&[kept]), [Performed]);
    assert_eq!(rig.resets().len(), 4);
}

/// CVE-2009-0065 was caused by a nonexistent stream number in a FORWARD TSN.
#[test]
fn streams_that_do_not_exist_are_an_error_and_nothing_is_reset() {
    let mut rig = Rig::with_defaults();
    rig.data(0, 1, 0, "BE");
    let [outgoing, incoming] = [rig.outgoing(0, 1, &[1, 10]), rig.incoming(1, &[65_535, 1])];
    assert_eq!(rig.ask(&[outgoing]), [WrongSsn]);
    assert_eq!(rig.ask(&[incoming]), [WrongSsn]);
    assert_eq!(rig.resets(), [[0; 0]; 0]);
    rig.data(1, 1, 1, "BE");
    assert_eq!(rig.text(), "0;1;");
}

#[test]
fn huge_lists_with_duplicates_are_survived() {
    let mut rig = Rig::with_defaults();
    let most = vec![7; 32_000];
    let request = rig.outgoing(0, 0, &most);
    assert_eq!(rig.ask(&[request]), [Performed]);
    assert_eq!(rig.resets(), [[7]]);
    let every: Vec<u16> = (0..30_000).collect();
    let request = rig.outgoing(1, 0, &every);
    assert_eq!(rig.ask(&[request]), [WrongSsn]);
    let request = rig.incoming(2, &every);
    assert_eq!(
        rig.ask(&[request]),
        [Denied],
        "no packet here holds the answer"
    );
    let request = rig.incoming(3, &most);
    assert_eq!(rig.ask(&[request]), []);
    assert!(rig.is_up());
}

#[test]
fn a_reset_waits_for_all_that_was_sent_before_it() {
    let mut rig = Rig::with_defaults();
    rig.data(0, 1, 0, "BE");
    rig.data(2, 2, 0, "BE");
    let request = rig.outgoing(0, 3, &[1]);
    assert_eq!(rig.ask(std::slice::from_ref(&request)), [InProgress]);
    assert_eq!(rig.ask(std::slice::from_ref(&request)), [InProgress]);
    assert_eq!(rig.resets(), [[0; 0]; 0]);
    // Data of the stream that follows the reset should wait. Other streams should continue.
    rig.data(3, 1, 0, "BE");
    rig.data(4, 2, 1, "BE");
    assert_eq!(rig.text(), "0;2;4;");
    rig.data(1, 1, 1, "BE");
    // The peer performs the reset without a request of Z. Z should report it.
    let performed = ReConfigParameter::Response {
        response: rig.number(0),
        result: Performed,
        next_tsns: None,
    };
    assert_eq!(rig.said(), [performed]);
    assert_eq!(rig.resets(), [[1]]);
    assert_eq!(rig.text(), "1;3;");
    assert_eq!(rig.ask(&[request]), [Performed]);
    assert_eq!(rig.resets(), [[1]]);
}

#[test]
fn a_reset_that_waits_for_ever_holds_no_more_than_its_share() {
    let mut rig = Rig::with_defaults();
    let request = rig.outgoing(0, 1, &[1]);
    assert_eq!(rig.ask(&[request]), [InProgress]);
    for offset in 1..2_000 {
        rig.data(offset, 1, offset as u16, "BE");
    }
    let another = rig.outgoing(1, 1, &[2]);
    assert_eq!(rig.ask(&[another]), [AlreadyInProgress]);
    // The same request with a new number should replace the deferred request.
    let again = rig.outgoing(2, 1, &[1]);
    assert_eq!(rig.ask(&[again]), [InProgress]);
    rig.data(0, 3, 0, "BE");
    assert_eq!(rig.resets(), [[1]]);
    assert!(rig.is_up());
    assert_eq!(rig.text(), "0;");
}

/// A request of twelve bytes resets all 65,535 streams, one of which is already being reset. Z
/// should not store a list of all other streams for it. The total length of the lists in a series
/// of requests should be limited as well.
#[test]
fn the_memory_of_requested_resets_is_bounded() {
    let many = |it: &mut Config| (it.outbound_streams, it.inbound_streams) = (65_535, 65_535);
    let mut rig = Rig::with(many);
    assert_eq!(rig.ask(&[rig.incoming(0, &[7])]), []);
    assert_eq!(rig.ask(&[rig.incoming(1, &[])]), [AlreadyInProgress]);
    let lists = (0..40).map(|at| (1_000 + 300 * at..1_300 + 300 * at).collect::<Vec<u16>>());
    let results: Vec<_> = (2..)
        .zip(lists)
        .map(|(offset, list)| rig.ask(&[rig.incoming(offset, &list)])[0])
        .collect();
    let taken = results.iter().take_while(|it| **it == Performed).count();
    assert!((3..10).contains(&taken), "{taken} lists of 300 streams");
    assert!(results[taken..].iter().all(|it| *it == AlreadyInProgress));
    assert!(rig.is_up());
}

#[test]
fn a_message_that_goes_on_behind_its_reset_is_refused() {
    let mut rig = Rig::with_defaults();
    rig.data(0, 1, 0, "B");
    for (offset, streams) in [(0, &[1][..]), (1, &[])] {
        let request = rig.outgoing(offset, 1, streams);
        assert_eq!(rig.ask(&[request]), [Denied]);
    }
    let request = rig.outgoing(2, 1, &[2]);
    assert_eq!(rig.ask(&[request]), [Performed]);
    rig.data(1, 1, 0, "E");
    assert_eq!(rig.text(), "0;1;");
}

/// After a reset, the missing messages never arrive. Messages that had to wait for them should be
/// delivered.
#[test]
fn a_reset_delivers_messages_that_waited_for_missing_ones() {
    let mut rig = Rig::with_defaults();
    rig.data(0, 1, 2, "BE");
    rig.data(1, 1, 1, "BE");
    rig.data(2, 2, 9, "BE");
    assert_eq!(rig.text(), "");
    let request = rig.outgoing(0, 3, &[1]);
    assert_eq!(rig.ask(&[request]), [Performed]);
    assert_eq!(rig.text(), "1;0;");
    let request = rig.outgoing(1, 3, &[]);
    assert_eq!(rig.ask(&[request]), [Performed]);
    assert_eq!(rig.text(), "2;");
    rig.data(3, 2, 0, "BE");
    rig.data(4, 1, 0, "BE");
    assert_eq!(rig.text(), "3;4;");
}

#[test]
fn two_requests_in_one_chunk_have_two_answers() {
    let mut rig = Rig::with(|config| config.inbound_streams = 15);
    let two = [rig.add(0, 2), rig.add_incoming(1, 3)];
    assert_eq!(rig.ask(&two), [Performed, Performed]);
    assert_eq!(rig.ask(&two), [Performed, Performed]);
    let two = [rig.outgoing(2, 0, &[11]), rig.incoming(3, &[1])];
    assert_eq!(
        rig.ask(&two),
        [Performed, Performed],
        "it asks for streams itself"
    );
    let too_many = rig.add(4, 4);
    assert_eq!(rig.ask(&[too_many]), [Denied]);
    let none = rig.add(5, 0);
    assert_eq!(rig.ask(&[none]), [NothingToDo]);
    let beyond = rig.add_incoming(6, u16::MAX);
    assert_eq!(rig.ask(&[beyond]), [Denied]);
    let association = rig.world.endpoints[Z].association(rig.z).expect("known");
    assert_eq!(association.status().inbound_streams, 12);
    assert_eq!(association.status().outbound_streams, 10, "not granted yet");
}

#[test]
fn inconsistent_or_malformed_re_configs_are_counted() {
    let mut rig = Rig::with_defaults();
    let (outgoing, incoming, all) = (rig.outgoing(0, 0, &[1]), rig.incoming(1, &[1]), rig.all(1));
    assert_eq!(rig.ask(&[]), []);
    assert_eq!(rig.ask(&[outgoing.clone(), all]), []);
    assert_eq!(rig.ask(&[outgoing.clone(), incoming, outgoing.clone()]), []);
    // CVE-2021-3655: truncated chunks and parameters.
    let whole = Rig::re_config(&[outgoing]);
    for cut in 4..whole.len() {
        let mut short = whole[..cut].to_vec();
        short[2..4].copy_from_slice(&(cut as u16).to_be_bytes());
        short.resize(cut.next_multiple_of(4), 0);
        rig.raw(&short);
        if cut >= 8 {
            // The length of the parameter is reduced together with that of the chunk.
            short[6..8].copy_from_slice(&(cut as u16 - 4).to_be_bytes());
            rig.raw(&short);
        }
    }
    // A parameter of unknown type.
    rig.raw(&[kind::RE_CONFIG, 0, 0, 12, 0, 99, 0, 8, 1, 2, 3, 4]);
    assert_eq!(
        rig.resets(),
        [[0; 0]],
        "one of them is sound, of all streams"
    );
    assert!(rig.bad() > 20 && rig.is_up(), "{}", rig.bad());
}

/// CVE-2014-3688: many requests in one packet should cause no more responses than fit into one
/// packet.
#[test]
fn many_requests_in_one_packet_draw_one_packet_of_answers() {
    let mut rig = Rig::with_defaults();
    let mut chunks = BytesMut::new();
    for offset in 0..100 {
        chunks.extend_from_slice(&Rig::re_config(&[rig.add(offset, 0)]));
    }
    for _ in 0..10 {
        let before = rig.world.shots.len();
        rig.raw(&chunks);
        let shots = &rig.world.shots[before..];
        let bytes: usize = shots.iter().map(|it| it.bytes.len()).sum();
        assert!(bytes <= 1_480, "{bytes}");
    }
    assert!(rig.is_up());
}

#[test]
fn answers_to_nothing_that_was_asked_change_nothing() {
    let mut rig = Rig::with_defaults();
    let own = rig.world.endpoints[Z]
        .association_mut(rig.z)
        .expect("known");
    own.reconfigure(0, &Reconfiguration::reset_outgoing([1]))
        .expect("negotiated");
    rig.world.drain(Z);
    let said = rig.said();
    let [ReConfigParameter::OutgoingSsnReset { request, .. }] = said[..] else {
        panic!("{said:?}")
    };
    let answer = |offset: u32, next_tsns| ReConfigParameter::Response {
        response: request.wrapping_add(offset),
        result: Performed,
        next_tsns,
    };
    rig.world.forget();
    rig.looked_at = 0;
    for offset in [1, u32::MAX, 1 << 31] {
        assert_eq!(rig.ask(&[answer(offset, None)]), []);
    }
    assert_eq!(rig.bad(), 3);
    assert!(rig.world.told(Z).is_empty());
    // The fields with the next TSNs should be ignored if a response has them although it must not.
    assert_eq!(rig.ask(&[answer(0, Some((Tsn(1), Tsn(2))))]), []);
    assert_eq!(rig.world.told(Z).len(), 1);
    assert_eq!(rig.ask(&[answer(0, None)]), [], "answered before");
    assert_eq!(rig.bad(), 4);
    assert!(rig.is_up());
}

#[test]
fn a_reset_of_all_numbers_is_answered_with_both_next_tsns() {
    let mut rig = Rig::with_defaults();
    rig.data(0, 1, 0, "BE");
    rig.data(1, 2, 3, "BE");
    let request = rig.all(0);
    rig.raw(&Rig::re_config(std::slice::from_ref(&request)));
    let said = rig.said();
    let [
        ReConfigParameter::Response {
            result: Performed,
            next_tsns: Some((_, next)),
            ..
        },
    ] = said[..]
    else {
        panic!("{said:?}")
    };
    assert_eq!(next, rig.first.add(2).add(1 << 31), "RFC 6525 §5.2.4 G1");
    rig.raw(&Rig::re_config(&[request]));
    assert_eq!(rig.said(), said, "the same again");
    // Data with TSNs from before the reset should not be mistaken for new data.
    rig.data(0, 1, 0, "BE");
    rig.data(2, 1, 1, "BE");
    rig.first = next;
    rig.data(0, 2, 0, "BE");
    assert_eq!(rig.text(), "0;1;0;");
    assert!(rig.is_up());
}

/// Number of packets with DATA that Z has sent so far.
fn data_packets(rig: &Rig) -> usize {
    let shots = rig.world.shots.iter();
    shots.filter(|it| it.chunks.contains("DATA")).count()
}

/// A reset of all numbers should not lose data that is in flight from this side. The reset should
/// wait for this data, and no new data should be sent. The response to a request number is final,
/// so that a late copy of the request should have no effect (RFC 6525 §5.2.4).
#[test]
fn a_reset_of_all_numbers_waits_for_what_is_in_flight() {
    let mut rig = Rig::with_defaults();
    let z = rig.z;
    rig.world.send(Z, z, 1, "in flight");
    let request = rig.all(0);
    assert_eq!(rig.ask(std::slice::from_ref(&request)), [AlreadyInProgress]);
    rig.world.send(Z, z, 1, "held");
    assert_eq!(data_packets(&rig), 1);
    rig.world.run_for(500 * MILLISECOND);
    assert_eq!(rig.ask(std::slice::from_ref(&request)), [AlreadyInProgress]);
    // The peer sends another request instead of repeating this one, and thereby cancels it. The
    // held data should be sent.
    let other = rig.add(1, 0);
    assert_eq!(rig.ask(&[other]), [NothingToDo]);
    assert_eq!(data_packets(&rig), 2);
    assert_eq!(rig.ask(&[request]), [AlreadyInProgress]);
    assert!(rig.is_up());
}

/// The peer does not repeat its request. Z should send the held data after a limited time.
#[test]
fn data_deferred_for_a_reset_is_sent_if_the_peer_does_not_repeat_it() {
    let mut rig = Rig::with_defaults();
    let z = rig.z;
    rig.world.send(Z, z, 1, "in flight");
    let request = rig.all(0);
    assert_eq!(rig.ask(std::slice::from_ref(&request)), [AlreadyInProgress]);
    rig.world.send(Z, z, 1, "held");
    let before = data_packets(&rig);
    rig.acknowledge();
    rig.world.run_for(500 * MILLISECOND);
    assert_eq!(data_packets(&rig), before);
    rig.world.run_for(5 * SECOND);
    assert!(data_packets(&rig) > before);
    assert!(rig.is_up());
}

/// All data is acknowledged after the request was refused. A copy of the refused request should
/// change nothing. A request with the next number should be accepted.
#[test]
fn a_refused_reset_of_all_numbers_is_performed_under_the_next_number_only() {
    let mut rig = Rig::with_defaults();
    let z = rig.z;
    rig.world.send(Z, z, 1, "in flight");
    let refused = rig.all(0);
    assert_eq!(rig.ask(std::slice::from_ref(&refused)), [AlreadyInProgress]);
    rig.acknowledge();
    assert_eq!(rig.ask(std::slice::from_ref(&refused)), [AlreadyInProgress]);
    let next = rig.all(1);
    assert_eq!(rig.ask(&[next]), [Performed]);
    assert_eq!(rig.ask(&[refused]), [AlreadyInProgress]);
    assert!(rig.is_up());
}

/// A RE-CONFIG should cause no harm in any state, including those in which no streams exist.
#[test]
fn it_is_survived_in_every_state() {
    for state in STATES {
        let (mut world, tag) = in_state(state);
        for parameter in [
            ReConfigParameter::SsnTsnReset { request: 1 },
            ReConfigParameter::IncomingSsnReset {
                request: 1,
                streams: U16List::of(&[1]),
            },
            ReConfigParameter::Response {
                response: 1,
                result: Performed,
                next_tsns: None,
            },
        ] {
            let packet = raw_packet(Z, tag, &Rig::re_config(&[parameter]));
            world.inject(A, packet);
        }
        let a = world.only_association(A);
        assert_eq!(world.state(A, a), state);
    }
}
