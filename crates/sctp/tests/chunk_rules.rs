//! Rules of RFC 9260 §3, §6.10, §8.5 and §9.2 for chunks with a single error. The tests check the
//! answer, and whether the association ends or is unchanged.

use crate::common;

use anabranch_sctp::{AssociationState, CloseReason, DiscardReason, Violation};
use anabranch_transport::Path;
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::{
    Abort, Chunk, Heartbeat, Init, InitAck, Pad, Shutdown, ShutdownComplete, kind,
};
use anabranch_wire::parameter::{Parameter, Parameters};
use anabranch_wire::serial::Tsn;
use anabranch_wire::tlv::TlvList;
use anabranch_wire::{Cause, Encode};
use bytes::{Bytes, BytesMut};
use common::*;

fn encoded(chunk: &Chunk) -> Vec<u8> {
    let mut out = BytesMut::new();
    chunk.encode(&mut out);
    out.to_vec()
}

/// Padded chunk with a length field of `length`.
fn raw(kind: u8, flags: u8, length: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, flags];
    bytes.extend_from_slice(&(length as u16).to_be_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn discarded(world: &World, host: usize, reason: DiscardReason) -> u64 {
    world.endpoints[host].discards().of(reason)
}

/// Packets that A has sent.
fn sent_by_a(world: &World) -> Vec<&Shot> {
    world.shots.iter().filter(|shot| shot.from == A).collect()
}

/// World in which A is in `state`, with its association and the tag of packets to A; sent packets
/// are recorded.
fn at(state: AssociationState) -> (World, anabranch_sctp::AssociationId, u32) {
    let (mut world, tag) = in_state(state);
    world.narrate = true;
    world.forget();
    let id = world.only_association(A);
    (world, id, tag)
}

fn heartbeat() -> Chunk {
    Chunk::Heartbeat(Heartbeat {
        info: Bytes::from_static(b"1234"),
    })
}

fn cookie() -> Parameter {
    Parameter::StateCookie(Bytes::from_static(b"a cookie"))
}

fn init_ack() -> Init {
    Init {
        initiate_tag: 0xAC4,
        a_rwnd: 1_500,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(1),
        parameters: Parameters::of(&[cookie()]),
    }
}

/// RFC 9260 §3.3.7: an ABORT with a format error is discarded.
#[test]
fn an_abort_whose_causes_cannot_be_read_is_discarded() {
    let broken: [&[u8]; 6] = [
        // Shorter than a cause header; a length below the header; a length beyond the chunk; a
        // fixed-size cause that is too short.
        &[0, 12],
        &[0, 12, 0, 3],
        &[0, 12, 0, 9, 1, 2, 3, 4],
        &[0, 3, 0, 6, 0, 0, 0, 0],
        // Invalid cause after a valid one.
        &[0, 4, 0, 4, 0, 12, 0, 0],
        &[0, 4, 0, 4, 0, 13, 1, 0],
    ];
    for causes in broken {
        let (mut world, a, to_a) = at(AssociationState::Established);
        let abort = raw(kind::ABORT, 0, 4 + causes.len(), causes);
        // Chunks after the ABORT are still processed.
        let both = [abort, encoded(&heartbeat())].concat();
        world.inject(A, raw_packet(Z, to_a, &both));
        assert_eq!(
            world.state(A, a),
            AssociationState::Established,
            "{causes:?}"
        );
        assert_eq!(
            discarded(&world, A, DiscardReason::ChunkFields),
            1,
            "{causes:?}"
        );
        assert_eq!(sent_by_a(&world)[0].chunks, "HEARTBEAT ACK");
    }
    // Valid ABORTs end the association, whether or not the length includes the padding of the last
    // cause.
    for causes in [
        &[][..],
        &[0, 12, 0, 5, b'x'],
        &[0, 12, 0, 5, b'x', 0, 0, 0],
        &[0x7F, 0xFF, 0, 4],
    ] {
        let (mut world, a, to_a) = at(AssociationState::Established);
        let abort = raw(kind::ABORT, 0, 4 + causes.len(), causes);
        world.inject(A, raw_packet(Z, to_a, &abort));
        assert_eq!(world.state(A, a), AssociationState::Closed, "{causes:?}");
        assert!(sent_by_a(&world).is_empty(), "never answered");
    }
}

/// RFC 9260 §3.3.3: an INIT ACK with a window below 1,500 bytes has no effect; it is discarded and
/// answered by an ABORT.
#[test]
fn an_init_ack_with_a_small_window_changes_nothing() {
    let (mut world, a, to_a) = at(AssociationState::CookieWait);
    for a_rwnd in [0, 1, 1_499] {
        world.forget();
        let ack = Chunk::InitAck(InitAck(Init {
            a_rwnd,
            ..init_ack()
        }));
        world.inject(A, packet(Z, to_a, &[&ack]));
        assert_eq!(world.state(A, a), AssociationState::CookieWait, "{a_rwnd}");
        assert_eq!(world.told(A), []);
        let answer = world.shot(A, "ABORT");
        assert_eq!(header_of(&answer).verification_tag, 0xAC4);
        let Chunk::Abort(abort) = chunks_of(&answer).remove(0) else {
            panic!()
        };
        assert!(!abort.tag_reflected);
        assert_eq!(
            abort.causes.iter().next(),
            Some(Ok(Cause::InvalidMandatoryParameter))
        );
    }
    assert_eq!(discarded(&world, A, DiscardReason::BadInit), 3);
    // The attempt continues with the same tag.
    world.forget();
    let ack = Chunk::InitAck(InitAck(init_ack()));
    world.inject(A, packet(Z, to_a, &[&ack]));
    assert_eq!(world.state(A, a), AssociationState::CookieEchoed);
}

/// RFC 9260 §3.3.3: tag 0 ends the attempt, and is answered by an ABORT with the T bit, because no
/// other tag is available.
#[test]
fn an_init_ack_with_tag_0_draws_an_abort_with_the_t_bit() {
    let (mut world, a, to_a) = at(AssociationState::CookieWait);
    let ack = Chunk::InitAck(InitAck(Init {
        initiate_tag: 0,
        ..init_ack()
    }));
    world.inject(A, packet(Z, to_a, &[&ack]));
    assert_eq!(
        world.close_reason(A, a),
        Some(CloseReason::PeerViolation(Violation::BadInitAck))
    );
    let answer = world.shot(A, "ABORT");
    assert_eq!(header_of(&answer).verification_tag, to_a, "reflected");
    let Chunk::Abort(abort) = chunks_of(&answer).remove(0) else {
        panic!()
    };
    assert!(abort.tag_reflected);
    assert_eq!(
        abort.causes.iter().next(),
        Some(Ok(Cause::InvalidMandatoryParameter))
    );
    assert_eq!(sent_by_a(&world).len(), 1);
    // An unexpected INIT ACK is silently discarded.
    for state in STATES {
        if state == AssociationState::CookieWait {
            continue;
        }
        let (mut world, a, to_a) = at(state);
        for tag in [0, 0xAC4] {
            let ack = Chunk::InitAck(InitAck(Init {
                initiate_tag: tag,
                a_rwnd: 0,
                ..init_ack()
            }));
            world.inject(A, packet(Z, to_a, &[&ack]));
        }
        assert_eq!(world.state(A, a), state);
        assert!(sent_by_a(&world).is_empty(), "{state:?}");
    }
}

/// RFC 9260 §6.10: an INIT ACK must be alone in its packet, and is ignored after another chunk.
#[test]
fn an_init_ack_behind_another_chunk_is_not_believed() {
    let ack = Chunk::InitAck(InitAck(init_ack()));
    let pad = Chunk::Pad(Pad { length: 8 });
    for chunks in [[&pad, &ack], [&ack, &pad]] {
        let (mut world, a, to_a) = at(AssociationState::CookieWait);
        world.inject(A, packet(Z, to_a, &chunks));
        assert_eq!(world.state(A, a), AssociationState::CookieWait);
        assert_eq!(discarded(&world, A, DiscardReason::ForbiddenBundle), 1);
        assert!(sent_by_a(&world).is_empty());
    }
}

/// RFC 9260 §6.10, §8.5.1 C: a SHUTDOWN COMPLETE after another chunk is ignored, too. With the T
/// bit, the tag of the packet does not match.
#[test]
fn a_shutdown_complete_behind_another_chunk_is_not_believed() {
    let complete = |tag_reflected| Chunk::ShutdownComplete(ShutdownComplete { tag_reflected });
    for (before, tag_reflected) in [
        (heartbeat(), false),
        (heartbeat(), true),
        (Chunk::Pad(Pad { length: 4 }), true),
    ] {
        let (mut world, a, to_a) = at(AssociationState::ShutdownAckSent);
        world.inject(A, packet(Z, to_a, &[&before, &complete(tag_reflected)]));
        assert_eq!(
            world.state(A, a),
            AssociationState::ShutdownAckSent,
            "{before:?}"
        );
        assert_eq!(discarded(&world, A, DiscardReason::ForbiddenBundle), 1);
    }
    let (mut world, a, to_a) = at(AssociationState::ShutdownAckSent);
    world.inject(A, packet(Z, to_a, &[&complete(true)]));
    assert_eq!(world.state(A, a), AssociationState::ShutdownAckSent);
    assert_eq!(discarded(&world, A, DiscardReason::BadTagAbort), 1);
    world.inject(A, packet(Z, to_a, &[&complete(false)]));
    assert_eq!(world.close_reason(A, a), Some(CloseReason::Shutdown));
}

/// Chunks that must be alone are ignored after a COOKIE ECHO, which is the first chunk of its
/// packet.
#[test]
fn chunks_that_must_be_alone_are_ignored_after_a_cookie_echo() {
    let mut world = World::new(anabranch_sctp::Config::default());
    world.fate = lose("COOKIE ECHO", 1);
    world.connect();
    world.run_for(100 * MILLISECOND);
    let echo = world.shot(A, "COOKIE ECHO");
    let tag = header_of(&echo).verification_tag;
    // The T bit of the ABORT claims that the packet has the sender's tag, but it has the
    // receiver's.
    for behind in [
        raw(kind::ABORT, 1, 4, &[]),
        raw(kind::SHUTDOWN_COMPLETE, 0, 4, &[]),
        encoded(&Chunk::InitAck(InitAck(init_ack()))),
    ] {
        let chunks = [&echo[12..], &behind].concat();
        world.inject(Z, raw_packet(A, tag, &chunks));
        let z = world.only_association(Z);
        assert_eq!(world.state(Z, z), AssociationState::Established);
    }
    assert_eq!(discarded(&world, Z, DiscardReason::BadTagAbort), 1);
    assert_eq!(discarded(&world, Z, DiscardReason::ForbiddenBundle), 2);
}

/// RFC 9260 §3.2, §3.2.2, §3.3.10.8: the lengths of cause and chunk exclude the padding of the last
/// parameter.
#[test]
fn the_padding_of_the_last_parameter_reported_is_not_counted() {
    let (mut world, _, to_a) = at(AssociationState::CookieWait);
    let mut list = vec![0xC0, 0x0C, 0, 6, 1, 2, 0, 0];
    list.extend_from_slice(&[0xC0, 0x0D, 0, 5, 3, 0, 0, 0]);
    list.extend_from_slice(&[0, 7, 0, 8, b'c', b'o', b'o', b'k']);
    let ack = Chunk::InitAck(InitAck(Init {
        parameters: Parameters::from_bytes(list.into()),
        ..init_ack()
    }));
    world.inject(A, packet(Z, to_a, &[&ack]));
    let echo = world.shot(A, "COOKIE ECHO, ERROR");
    let expected = [
        9, 0, 0, 21, 0, 8, 0, 17, 0xC0, 0x0C, 0, 6, 1, 2, 0, 0, 0xC0, 0x0D, 0, 5, 3, 0, 0, 0,
    ];
    assert_eq!(echo[20..], expected);
}

/// RFC 9260 §3.3.10.6: the cause contains the chunk as received, including its padding.
#[test]
fn the_padding_of_an_unknown_chunk_reported_is_counted() {
    for kind in [0xEF, 0x6F] {
        let (mut world, _, to_a) = at(AssociationState::Established);
        world.inject(A, raw_packet(Z, to_a, &[kind, 0, 0, 5, 1, 0, 0, 0]));
        let error = world.shot(A, "ERROR");
        let expected = [9, 0, 0, 16, 0, 6, 0, 12, kind, 0, 0, 5, 1, 0, 0, 0];
        assert_eq!(error[12..], expected);
    }
}

/// A large chunk is truncated to the space in a packet, and the length of the truncated chunk is
/// adjusted.
#[test]
fn an_unknown_chunk_is_reported_with_the_length_that_is_sent() {
    for (length, reported) in [(257, 260), (1_400, 1_400), (1_460, 1_460), (9_000, 1_460)] {
        let (mut world, _, to_a) = at(AssociationState::Established);
        let value: Vec<u8> = (4..length).map(|at| at as u8).collect();
        world.inject(A, raw_packet(Z, to_a, &raw(0xEF, 3, length, &value)));
        let error = world.shot(A, "ERROR");
        assert!(error.len() <= 1_480);
        let inner = &error[12 + 4 + 4..];
        assert_eq!(inner.len(), reported, "{length}");
        let field = usize::from(u16::from_be_bytes([inner[2], inner[3]]));
        assert_eq!(field, length.min(reported), "{length}");
        assert_eq!(inner[..2], [0xEF, 3]);
        assert_eq!(inner[4..field], value[..field - 4]);
        let cause = usize::from(u16::from_be_bytes([error[18], error[19]]));
        assert_eq!(cause, 4 + reported);
    }
}

/// RFC 9260 §3.3.10.3: the measure of staleness is in microseconds, rounded up.
#[test]
fn the_measure_of_staleness_is_rounded_up() {
    for (late, told) in [(1, 1), (1_000, 1), (1_001, 2), (2 * SECOND, 2_000_000)] {
        let mut world = World::new(anabranch_sctp::Config::default());
        world.fate = lose("COOKIE ECHO", 99);
        world.connect();
        world.run_for(100 * MILLISECOND);
        let echo = world.shot(A, "COOKIE ECHO");
        // The cookie was created when the INIT arrived, after 10 ms.
        world.now = SECOND + 10 * MILLISECOND + 60 * SECOND + late;
        world.inject(Z, echo);
        let Chunk::Error(error) = chunks_of(&world.shot(Z, "ERROR")).remove(0) else {
            panic!()
        };
        let Some(Ok(Cause::StaleCookie {
            measure_of_staleness,
        })) = error.causes.iter().next()
        else {
            panic!("{error:?}")
        };
        assert_eq!(measure_of_staleness, told, "{late} ns");
    }
}

/// Last TSN sent by A.
fn last_tsn_of_a(world: &World) -> Tsn {
    let chunks = sent_by_a(world)
        .into_iter()
        .flat_map(|shot| chunks_of(&shot.bytes));
    let sent = chunks.filter_map(|it| match it {
        Chunk::Data(data) => Some(data.tsn),
        _ => None,
    });
    sent.last().expect("DATA")
}

/// A SHUTDOWN that acknowledges unsent data is still processed: the association closes gracefully,
/// but no data counts as acknowledged.
#[test]
fn a_shutdown_with_a_wrong_cumulative_tsn_still_shuts_down() {
    for outstanding in [false, true] {
        let (mut world, a, to_a) = at(AssociationState::Established);
        if outstanding {
            world.fate = lose("DATA", 1);
        }
        world.send(A, a, 0, "to be acknowledged");
        let z = world.only_association(Z);
        if !outstanding {
            world.run_for(SECOND);
        }
        let wrong = Chunk::Shutdown(Shutdown {
            cumulative_tsn_ack: last_tsn_of_a(&world).add(5),
        });
        world.inject(A, packet(Z, to_a, &[&wrong]));
        let expected = if outstanding {
            AssociationState::ShutdownReceived
        } else {
            AssociationState::ShutdownAckSent
        };
        assert_eq!(world.state(A, a), expected);
        assert_eq!(discarded(&world, A, DiscardReason::BadSack), 1);
        // Z has not requested a shutdown, so the SHUTDOWN ACK has no meaning for it.
        world.run_for(5 * SECOND);
        assert_eq!(world.receive_all(Z, z).len(), 1, "what was lost goes again");
        assert_eq!(world.state(A, a), AssociationState::ShutdownAckSent);
    }
}

/// The close reason describes the violation by the peer.
#[test]
fn a_close_for_a_broken_rule_says_which() {
    let (mut world, a, to_a) = at(AssociationState::Established);
    world.send(A, a, 0, "x");
    let beyond = last_tsn_of_a(&world).add(5).0.to_be_bytes();
    let sack = [&[3, 0, 0, 16][..], &beyond, &[0, 0, 255, 255, 0, 0, 0, 0]].concat();
    world.inject(A, raw_packet(Z, to_a, &sack));
    let what = "acknowledgement of data never sent";
    let reason = CloseReason::PeerViolation(Violation::Protocol(what));
    assert_eq!(world.close_reason(A, a), Some(reason));
    let Chunk::Abort(abort) = chunks_of(&world.shot(A, "ABORT")).remove(0) else {
        panic!()
    };
    let information = Bytes::from_static(what.as_bytes());
    assert_eq!(
        abort.causes.iter().next(),
        Some(Ok(Cause::ProtocolViolation { information }))
    );
}

/// RFC 9260 §3.3.2.1.4, §3.2.1: the host name is reported as received, excluding its padding.
#[test]
fn a_host_name_that_needs_padding_is_reported_without_it() {
    let mut world = World::new(anabranch_sctp::Config::default());
    let mut value = encoded(&Chunk::Init(init_ack()))[4..20].to_vec();
    value.extend_from_slice(&[0, 11, 0, 9, b'a', b'.', b'b', b'c', 0, 0, 0, 0]);
    let init = raw(kind::INIT, 0, 4 + value.len() - 3, &value);
    world.inject(Z, raw_packet(A, 0, &init));
    let abort = world.shot(Z, "ABORT");
    let expected = [
        6, 0, 0, 17, 0, 5, 0, 13, 0, 11, 0, 9, b'a', b'.', b'b', b'c', 0, 0, 0, 0,
    ];
    assert_eq!(abort[12..], expected);
}

/// RFC 9260 §3.2: a chunk is accepted whether or not its length includes the padding of its last
/// parameter. Cookies have a multiple of four bytes and need no padding.
#[test]
fn a_cookie_is_a_multiple_of_four_bytes() {
    for listed in [0, 1, 2, 3] {
        let mut world = World::new(anabranch_sctp::Config::default());
        let listed: Vec<std::net::IpAddr> = (0..listed).map(|it| [10, 3, 0, it].into()).collect();
        let init = common::caller::init_of(7, &listed);
        world.inject_from(
            Z,
            Path::new(address(Z, 0), [10, 9, 0, 9].into()),
            packet(A, 0, &[&init]),
        );
        let (_, cookie) = common::caller::cookie_of(&world.shot(Z, "INIT ACK"));
        assert_eq!(cookie.len() % 4, 0);
    }
}

/// RFC 9260 §3.3.2.1.2: IPv4-mapped IPv6 addresses are never sent; a received one is treated as the
/// IPv4 address.
#[test]
fn an_ipv4_mapped_address_is_an_ipv4_address() {
    let mapped: std::net::IpAddr = "::ffff:10.3.0.1".parse().unwrap();
    let mut world = World::new(
        anabranch_sctp::Config::default()
            .with(|it| it.addresses = vec![address(Z, 0), "::ffff:10.0.9.9".parse().unwrap()]),
    );
    let from: std::net::IpAddr = [10, 9, 0, 9].into();
    common::caller::Caller::call(&mut world, from, 7, &[mapped]).expect("served");
    let z = world.only_association(Z);
    let association = world.endpoints[Z].association(z).unwrap();
    let remote: Vec<_> = association.paths().addresses().collect();
    assert_eq!(remote, [from, [10, 3, 0, 1].into()]);
    let Chunk::InitAck(ack) = chunks_of(&world.shot(Z, "INIT ACK")).remove(0) else {
        panic!()
    };
    let listed: Vec<_> = ack.0.parameters.iter().flatten().collect();
    assert!(listed.contains(&Parameter::Ipv4Address([10, 0, 9, 9].into())));
    assert!(
        listed
            .iter()
            .all(|it| !matches!(it, Parameter::Ipv6Address(_)))
    );
}

/// RFC 9260 §5.1.2 A, C: the INIT ACK lists the peer's addresses. Other addresses that the user
/// passed to connect are dropped.
#[test]
fn addresses_that_the_init_ack_does_not_name_are_abandoned() {
    let called: [std::net::IpAddr; 3] = [
        [10, 9, 0, 1].into(),
        [10, 9, 0, 2].into(),
        [10, 9, 0, 3].into(),
    ];
    for (listed, from, kept) in [
        // Without address parameters, the source address of the INIT ACK is the only address.
        (&[][..], 0, &called[..1]),
        (&[], 1, &called[1..2]),
        // With address parameters, the listed addresses and the source.
        (&called[2..], 1, &called[1..]),
        (&called[..], 0, &called[..]),
    ] {
        let mut world = World::new(anabranch_sctp::Config::default());
        world.fate = Box::new(|_| Fate::Drop);
        let now = world.now;
        let z = world.endpoints[Z].connect(now, &called, PORT_A).unwrap();
        world.drain(Z);
        let Chunk::Init(init) = chunks_of(&world.shot(Z, "INIT")).remove(0) else {
            panic!()
        };
        let mut parameters: Vec<_> = listed.iter().copied().map(Parameter::address).collect();
        parameters.push(cookie());
        let ack = Chunk::InitAck(InitAck(Init {
            parameters: Parameters::of(&parameters),
            ..init_ack()
        }));
        let path = Path::new(address(Z, 0), called[from]);
        world.inject_from(Z, path, packet(A, init.initiate_tag, &[&ack]));
        let echo = world.shots.last().expect("answered");
        assert_eq!(echo.chunks, "COOKIE ECHO");
        assert_eq!(echo.path.remote, called[from]);
        world.inject_from(Z, path, packet(A, init.initiate_tag, &[&Chunk::CookieAck]));
        assert_eq!(world.state(Z, z), AssociationState::Established);
        let association = world.endpoints[Z].association(z).unwrap();
        let remote: Vec<_> = association.paths().addresses().collect();
        assert_eq!(remote, kept, "{listed:?} from {from}");
        world.forget();
        world.run_for(100 * SECOND);
        assert!(
            world
                .shots
                .iter()
                .all(|shot| kept.contains(&shot.path.remote))
        );
        // Other peers may use the dropped addresses.
        for other in called {
            let now = world.now;
            let free = world.endpoints[Z].connect(now, &[other], PORT_A).is_ok();
            assert_eq!(free, !kept.contains(&other), "{other}");
        }
    }
}

/// RFC 9260 §9.1: the reason given by the peer's user is readable.
#[test]
fn the_reason_of_an_abort_can_be_read() {
    let (mut world, a, _) = at(AssociationState::Established);
    let z = world.only_association(Z);
    let now = world.now;
    let association = world.endpoints[Z].association_mut(z).unwrap();
    association
        .abort(now, Bytes::from_static(b"enough"))
        .unwrap();
    world.drain(Z);
    world.run_for(SECOND);
    let association = world.endpoints[A].association(a).unwrap();
    assert_eq!(
        association.status().abort_reason.as_deref(),
        Some(&b"enough"[..])
    );
    let association = world.endpoints[Z].association(z).unwrap();
    assert_eq!(association.status().abort_reason, None);
}

/// RFC 9260 §3.3.10.13: the violation that the peer's stack found is readable, too.
#[test]
fn the_violation_in_an_abort_can_be_read() {
    let (mut world, a, tag) = at(AssociationState::Established);
    let information = Bytes::from_static(b"acknowledgement of data never sent");
    let abort = Abort {
        tag_reflected: false,
        causes: TlvList::of(&[Cause::ProtocolViolation { information }]),
    };
    world.inject(A, packet(Z, tag, &[&Chunk::Abort(abort)]));
    let association = world.endpoints[A].association(a).unwrap();
    assert_eq!(
        association.status().abort_reason.as_deref(),
        Some(&b"acknowledgement of data never sent"[..])
    );
}
