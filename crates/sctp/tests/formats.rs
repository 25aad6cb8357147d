//! Rules of RFC 9260 §3 and §4 that no other test covers: sent and accepted packets, chunks and
//! parameters, and the behavior of each state.

use crate::common;

use anabranch_sctp::{
    AssociationId, AssociationState, Config, ConnectError, DiscardReason, Event, SendError,
    SendOptions,
};
use anabranch_transport::Path;
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::{Chunk, CookieEcho, Heartbeat, Init, InitAck, kind};
use anabranch_wire::parameter::{self, Parameter, Parameters};
use anabranch_wire::serial::Tsn;
use anabranch_wire::tlv::U16List;
use bytes::Bytes;
use common::caller::*;
use common::*;

fn chunk(kind: u8, flags: u8, length: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, flags];
    bytes.extend_from_slice(&(length as u16).to_be_bytes());
    bytes.extend_from_slice(value);
    bytes
}

/// World in which A's association is in `state`, and verification tag of packets to A.
fn at(state: AssociationState) -> (World, AssociationId, u32) {
    let (mut world, tag) = in_state(state);
    world.narrate = true;
    world.forget();
    let id = world.only_association(A);
    (world, id, tag)
}

fn sent_by_a(world: &World) -> Vec<&Shot> {
    world.shots.iter().filter(|shot| shot.from == A).collect()
}

fn discarded(world: &World, host: usize, reason: DiscardReason) -> u64 {
    world.endpoints[host].discards().of(reason)
}

/// §3.1: port 0 cannot be a destination.
#[test]
fn port_0_cannot_be_connected_to() {
    let mut world = World::new(Config::default());
    let now = world.now;
    let refused = world.endpoints[A].connect(now, &[address(Z, 0)], 0);
    assert_eq!(refused, Err(ConnectError::Port));
}

/// §3.1, §8.5: every packet has the tag chosen by its receiver, except the INIT with tag 0.
#[test]
fn every_packet_is_under_the_tag_that_the_peer_chose() {
    let mut world = World::new(Config::default());
    let a = world.connect();
    world.run_for(SECOND);
    world.send(A, a, 0, vec![1; 5_000]);
    world.run_for(SECOND);
    world.shutdown(A, a);
    world.run_for(SECOND);
    let tag_of = |from, chunks| match chunks_of(&world.shot(from, chunks)).remove(0) {
        Chunk::Init(init) => init.initiate_tag,
        Chunk::InitAck(ack) => ack.initiate_tag,
        other => panic!("{other:?}"),
    };
    let chosen = [tag_of(A, "INIT"), tag_of(Z, "INIT ACK")];
    for shot in &world.shots {
        let tag = header_of(&shot.bytes).verification_tag;
        let expected = match shot.chunks.as_str() {
            "INIT" => 0,
            _ => chosen[1 - shot.from],
        };
        assert_eq!(tag, expected, "{}", shot.chunks);
    }
    assert!(world.shots.len() > 10);
}

/// §3.2, §3.2.1: reserved flags and padding are ignored, and sent as 0.
#[test]
fn reserved_flags_and_padding_mean_nothing() {
    let mut world = World::new(Config::default());
    let a = world.connect();
    world.run_for(SECOND);
    let z = world.only_association(Z);
    for shot in &world.shots {
        assert_eq!(shot.bytes[13], 0, "flags of {}", shot.chunks);
    }
    let (to_a, to_z) = (world.tag_sent_by(Z), world.tag_sent_by(A));
    world.forget();
    // HEARTBEAT with 5 bytes of information, followed by arbitrary padding.
    let value = [0, 1, 0, 9, 1, 2, 3, 4, 5, 0xAA, 0xBB, 0xCC];
    let heartbeat = chunk(kind::HEARTBEAT, 0xFF, 13, &value);
    world.inject(A, raw_packet(Z, to_a, &heartbeat));
    let ack = world.shot(A, "HEARTBEAT ACK");
    let expected = [5, 0, 0, 13, 0, 1, 0, 9, 1, 2, 3, 4, 5, 0, 0, 0];
    assert_eq!(ack[12..], expected);
    // DATA with all four reserved bits set, which must be ignored.
    world.send(A, a, 0, "x");
    let sent = world.shot(A, "DATA");
    let mut again = sent[12..].to_vec();
    again[1] |= 0xF0;
    again[17..].fill(0xEE);
    // DATA with the next TSN.
    let tsn = u32::from_be_bytes([again[4], again[5], again[6], again[7]]) + 1;
    again[4..8].copy_from_slice(&tsn.to_be_bytes());
    again[11] = 1;
    world.run_for(SECOND);
    world.inject(Z, raw_packet(A, to_z, &again));
    let texts: Vec<_> = world
        .receive_all(Z, z)
        .into_iter()
        .map(|it| it.payload.into_bytes())
        .collect();
    assert_eq!(texts.len(), 2);
    assert_eq!(texts[0], texts[1]);
    world.inject(
        Z,
        raw_packet(A, to_z, &chunk(kind::SHUTDOWN_ACK, 0xFE, 4, &[])),
    );
    assert_eq!(world.state(Z, z), AssociationState::Established);
}

/// §3.2: a chunk is accepted whether or not its length includes the padding of its last parameter.
#[test]
fn the_last_padding_may_be_counted_in_the_length() {
    for counted in [0, 3] {
        let mut world = World::new(Config::default());
        let Chunk::Init(init) = init_of(7, &[]) else {
            panic!()
        };
        let mut value = packet(A, 0, &[&Chunk::Init(init)])[16..].to_vec();
        value.extend_from_slice(&[0xC0, 0x77, 0, 5, 9, 0, 0, 0]);
        let init = chunk(kind::INIT, 0, 4 + value.len() - 3 + counted, &value);
        world.inject(Z, raw_packet(A, 0, &init));
        let Chunk::InitAck(ack) = chunks_of(&world.shot(Z, "INIT ACK")).remove(0) else {
            panic!()
        };
        let reported = ack.0.parameters.iter().flatten().find_map(|it| match it {
            Parameter::UnrecognizedParameter(whole) => Some(whole),
            _ => None,
        });
        let reported = reported.expect("its type asks for it");
        assert_eq!(reported[..], [0xC0, 0x77, 0, 5, 9], "{counted}");
    }
}

/// §3.3.2, §3.3.3: no window below 1,500 bytes is advertised, because the receive buffer cannot be
/// smaller.
#[test]
fn at_least_1500_bytes_are_offered() {
    let of = |receive_buffer| Config::default().with(|it| it.receive_buffer = receive_buffer);
    let refused = anabranch_sctp::Endpoint::new(of(1_499), PORT_A, [1; 32]);
    assert!(refused.is_err());
    let mut world = World::new(of(1_500));
    world.connect();
    world.run_for(SECOND);
    let offered = |from, chunks| match chunks_of(&world.shot(from, chunks)).remove(0) {
        Chunk::Init(init) => init.a_rwnd,
        Chunk::InitAck(ack) => ack.a_rwnd,
        other => panic!("{other:?}"),
    };
    assert_eq!([offered(A, "INIT"), offered(Z, "INIT ACK")], [1_500; 2]);
}

/// §3.3.2: an INIT with an invalid field changes no association. It is answered by an ABORT with
/// the Initiate Tag of the INIT. An INIT with Initiate Tag 0 is not answered.
#[test]
fn an_init_with_wrong_fields_changes_no_association() {
    for state in STATES {
        let (mut world, a, _) = at(state);
        let Chunk::Init(good) = init_of(0xAB, &[]) else {
            panic!()
        };
        let answers = |world: &mut World, bad: Init| {
            world.forget();
            world.inject(A, packet(Z, 0, &[&Chunk::Init(bad)]));
            let sent = sent_by_a(world).into_iter();
            sent.map(|shot| {
                let tag = header_of(&shot.bytes).verification_tag;
                (shot.chunks.clone(), tag)
            })
            .collect::<Vec<_>>()
        };
        let aborted = [("ABORT".to_owned(), 0xAB)];
        for spoil in [
            |init: &mut Init| init.outbound_streams = 0,
            |init: &mut Init| init.inbound_streams = 0,
            |init: &mut Init| init.a_rwnd = 1_499,
        ] {
            let mut bad = good.clone();
            spoil(&mut bad);
            assert_eq!(answers(&mut world, bad), aborted, "{state:?}");
        }
        let mut bad = good.clone();
        bad.initiate_tag = 0;
        assert_eq!(answers(&mut world, bad), [], "{state:?}");
        assert_eq!(world.state(A, a), state);
        assert_eq!(world.told(A), []);
    }
}

/// §3.3.2.1.5: in Supported Address Types, unknown types and the type for host names are ignored.
#[test]
fn supported_address_types_refuse_no_peer() {
    for types in [&[6][..], &[11], &[5, 11, 99], &[]] {
        let mut world = World::new(Config::default());
        let Chunk::Init(mut init) = init_of(7, &[]) else {
            panic!()
        };
        let types = Parameter::SupportedAddressTypes(U16List::of(types));
        init.parameters = Parameters::of(&[types]);
        world.inject(Z, packet(A, 0, &[&Chunk::Init(init)]));
        world.shot(Z, "INIT ACK");
    }
}

/// §3.3.3: an INIT ACK that is much longer than a packet is accepted. §3.3.11: its cookie is
/// returned unchanged, whatever its length.
#[test]
fn a_large_init_ack_is_taken_and_its_cookie_echoed_to_the_byte() {
    for (addresses, cookie) in [(1_000_u32, 100), (0, 1_460), (0, 9_000)] {
        let (mut world, a, to_a) = at(AssociationState::CookieWait);
        let cookie: Bytes = (0..cookie).map(|at| (at * 7) as u8).collect();
        let mut list: Vec<_> = (0..addresses)
            .map(|it| Parameter::Ipv4Address((0x0B00_0000 + it).into()))
            .collect();
        list.push(Parameter::StateCookie(cookie.clone()));
        let ack = Chunk::InitAck(InitAck(Init {
            initiate_tag: 0xAC4,
            a_rwnd: 1_500,
            outbound_streams: 1,
            inbound_streams: 1,
            initial_tsn: Tsn(1),
            parameters: Parameters::of(&list),
        }));
        world.inject(A, packet(Z, to_a, &[&ack]));
        assert_eq!(world.state(A, a), AssociationState::CookieEchoed);
        let echo = world.shot(A, "COOKIE ECHO");
        assert_eq!(
            chunks_of(&echo)[0],
            Chunk::CookieEcho(CookieEcho {
                cookie: cookie.clone()
            })
        );
        assert_eq!(echo.len(), 12 + 4 + cookie.len());
        let fragmented = sent_by_a(&world)[0].may_fragment;
        assert_eq!(fragmented, echo.len() > 1_480, "left to IP");
    }
}

/// §3.3.7, §8.4: chunks after an ABORT are ignored, and an ABORT is never answered.
#[test]
fn chunks_after_an_abort_are_ignored() {
    let (mut world, a, to_a) = at(AssociationState::Established);
    let heartbeat = [4, 0, 0, 8, 0, 1, 0, 4];
    let both = [&[6, 0, 0, 4][..], &heartbeat].concat();
    world.inject(A, raw_packet(Z, to_a, &both));
    assert_eq!(world.state(A, a), AssociationState::Closed);
    assert!(sent_by_a(&world).is_empty(), "{:#?}", world.story);
}

/// §3.3.8: a SHUTDOWN has no Gap Ack Blocks, but reneges on none: data reported as received is not
/// retransmitted.
#[test]
fn a_shutdown_withdraws_no_gap_block() {
    let (mut world, a, to_a) = at(AssociationState::Established);
    world.fate = Box::new(|_| Fate::Drop);
    for _ in 0..3 {
        world.send(A, a, 0, vec![1; 1_400]);
    }
    let first = sent_by_a(&world).iter().find_map(|shot| {
        chunks_of(&shot.bytes).into_iter().find_map(|it| match it {
            Chunk::Data(data) => Some(data.tsn),
            _ => None,
        })
    });
    let point = first.expect("DATA").prev();
    // The first message is missing, and the others have arrived.
    let mut sack = chunk(kind::SACK, 0, 20, &point.0.to_be_bytes());
    sack.extend_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3]);
    let shutdown = chunk(kind::SHUTDOWN, 0, 8, &point.0.to_be_bytes());
    world.inject(A, raw_packet(Z, to_a, &sack));
    world.inject(A, raw_packet(Z, to_a, &shutdown));
    world.forget();
    world.run_for(1_500 * MILLISECOND);
    let again: Vec<Tsn> = sent_by_a(&world)
        .iter()
        .flat_map(|shot| chunks_of(&shot.bytes))
        .filter_map(|it| match it {
            Chunk::Data(data) => Some(data.tsn),
            _ => None,
        })
        .collect();
    assert_eq!(again, [point.next()], "{:#?}", world.story);
}

/// §3.3.9, §6.10: DATA after a SHUTDOWN ACK is ignored, but the SHUTDOWN ACK is processed.
#[test]
fn data_with_a_shutdown_ack_is_not_taken() {
    let (mut world, a, to_a) = at(AssociationState::ShutdownSent);
    world.inject(
        A,
        packet(Z, to_a, &[&Chunk::ShutdownAck, &message_of(0, b"late")]),
    );
    assert_eq!(world.state(A, a), AssociationState::Closed);
    let sent: Vec<_> = sent_by_a(&world)
        .iter()
        .map(|shot| shot.chunks.clone())
        .collect();
    assert_eq!(sent, ["SHUTDOWN COMPLETE"]);
}

/// §3.3.12, §6.10: the COOKIE ACK may be bundled with DATA, which is acknowledged at once.
#[test]
fn data_with_a_cookie_ack_is_taken() {
    let mut world = World::new(Config::default());
    world.fate = lose("COOKIE ACK", 1);
    let a = world.connect();
    world.run_for(100 * MILLISECOND);
    let Chunk::InitAck(ack) = chunks_of(&world.shot(Z, "INIT ACK")).remove(0) else {
        panic!()
    };
    let to_a = world.tag_sent_by(Z);
    let Chunk::Data(mut data) = message_of(0, b"with it") else {
        panic!()
    };
    data.tsn = ack.initial_tsn;
    world.forget();
    world.inject(A, packet(Z, to_a, &[&Chunk::CookieAck, &Chunk::Data(data)]));
    assert_eq!(world.state(A, a), AssociationState::Established);
    assert_eq!(world.receive_all(A, a).len(), 1);
    assert_eq!(sent_by_a(&world)[0].chunks, "SACK");
}

/// §4: without an association, an invalid cookie is silently discarded, and an expired one is
/// answered by an ERROR. No association is created.
#[test]
fn a_wrong_or_expired_cookie_leaves_closed_as_it_is() {
    let mut world = World::new(Config::default());
    world.fate = Box::new(|_| Fate::Drop);
    let from = [10, 9, 0, 9].into();
    let answers = ask(&mut world, from, 7, &[]);
    let (tag, cookie) = cookie_of(&answers[0].bytes);
    let mut wrong = cookie.to_vec();
    wrong[10] ^= 1;
    let echo = |cookie| Chunk::CookieEcho(CookieEcho { cookie });
    let said = say_from(&mut world, from, tag, &[&echo(wrong.into())]);
    assert!(said.is_empty());
    world.now += 65 * SECOND;
    let said = say_from(&mut world, from, tag, &[&echo(cookie)]);
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].chunks, "ERROR");
    assert_eq!(header_of(&said[0].bytes).verification_tag, 7);
    assert_eq!(world.endpoints[Z].associations().count(), 0);
    assert_eq!(world.told(Z), []);
}

/// §4, §9.2: during a shutdown the user's new messages are rejected.
#[test]
fn closing_states_take_no_new_messages() {
    for state in STATES {
        let (mut world, a, _) = at(state);
        let taken = matches!(
            state,
            AssociationState::CookieWait
                | AssociationState::CookieEchoed
                | AssociationState::Established
        );
        let message = Bytes::from_static(b"more");
        let association = world.endpoints[A].association_mut(a).unwrap();
        let any = SendOptions::new().with_stream(None);
        let all = [
            association.send(world.now, message.clone(), &SendOptions::new()),
            association.send(world.now, message.clone(), &any),
            association.send(world.now, message, &any.with_immediate(true)),
        ];
        for result in all {
            match taken {
                true => assert_eq!(result, Ok(()), "{state:?}"),
                false => assert_eq!(result, Err(SendError::Closing), "{state:?}"),
            }
        }
    }
}

/// §8.3, §3.3.6: a HEARTBEAT is answered to its source with unchanged information, in all states
/// except COOKIE-WAIT. A HEARTBEAT without information is discarded.
#[test]
fn heartbeats_are_answered_from_cookie_echoed_on() {
    for state in STATES {
        let (mut world, a, to_a) = at(state);
        let info = Bytes::from_static(b"whatever it is\0");
        let heartbeat = Chunk::Heartbeat(Heartbeat { info: info.clone() });
        let before = discarded(&world, A, DiscardReason::ChunkFields);
        world.inject(A, raw_packet(Z, to_a, &[4, 0, 0, 4]));
        assert_eq!(discarded(&world, A, DiscardReason::ChunkFields), before + 1);
        assert!(sent_by_a(&world).is_empty());
        world.inject(A, packet(Z, to_a, &[&heartbeat]));
        let acks: Vec<_> = sent_by_a(&world)
            .iter()
            .flat_map(|shot| chunks_of(&shot.bytes))
            .filter_map(|it| match it {
                Chunk::HeartbeatAck(ack) => Some(ack.info),
                _ => None,
            })
            .collect();
        let expected = usize::from(state != AssociationState::CookieWait);
        assert_eq!(acks, vec![info; expected], "{state:?}");
        assert_eq!(world.state(A, a), state);
    }
}

/// §3.2.1: with an unknown parameter of any of the four classes, the INIT is answered by an INIT
/// ACK, and the INIT ACK by a COOKIE ECHO.
#[test]
fn unknown_parameters_stop_no_handshake() {
    for kind in [0x3FF0_u16, 0x7FF0, 0xBFF0, 0xFFF0] {
        let unknown = anabranch_wire::tlv::Tlv::new(kind, b"abc").unwrap();
        let unknown = Parameter::Unknown(unknown);
        let mut world = World::new(Config::default());
        let Chunk::Init(mut init) = init_of(7, &[]) else {
            panic!()
        };
        init.parameters = Parameters::of(std::slice::from_ref(&unknown));
        world.inject(Z, packet(A, 0, &[&Chunk::Init(init)]));
        world.shot(Z, "INIT ACK");
        // Unknown parameters of the first two classes end processing, but the cookie is found at
        // any position.
        let cookie = Parameter::StateCookie(Bytes::from_static(b"a cookie"));
        for parameters in [[&cookie, &unknown], [&unknown, &cookie]] {
            let (mut world, a, to_a) = at(AssociationState::CookieWait);
            let ack = Chunk::InitAck(InitAck(Init {
                initiate_tag: 0xAC4,
                a_rwnd: 1_500,
                outbound_streams: 1,
                inbound_streams: 1,
                initial_tsn: Tsn(1),
                parameters: Parameters::of(&parameters.map(Parameter::clone)),
            }));
            world.inject(A, packet(Z, to_a, &[&ack]));
            assert_eq!(
                world.state(A, a),
                AssociationState::CookieEchoed,
                "{kind:#x}"
            );
            let sent = &sent_by_a(&world)[0].chunks;
            let expected = if kind & 0x4000 != 0 {
                "COOKIE ECHO, ERROR"
            } else {
                "COOKIE ECHO"
            };
            assert_eq!(sent, expected, "{kind:#x}");
        }
    }
}

/// §3.3.2.1.3: a longer cookie lifespan can be requested, but the lifespan is at most doubled.
#[test]
fn a_cookies_life_is_doubled_at_most() {
    for (asked_ms, good_s) in [(0, 60), (30_000, 90), (60_000, 120), (u32::MAX, 120)] {
        for (late, up) in [(0, true), (SECOND, false)] {
            let mut world = World::new(Config::default());
            world.fate = Box::new(|_| Fate::Drop);
            let Chunk::Init(mut init) = init_of(7, &[]) else {
                panic!()
            };
            init.parameters = Parameters::of(&[Parameter::CookiePreservative(asked_ms)]);
            let from: std::net::IpAddr = [10, 9, 0, 9].into();
            let answers = say_from(&mut world, from, 0, &[&Chunk::Init(init)]);
            let (tag, cookie) = cookie_of(&answers[0].bytes);
            world.now += good_s * SECOND + late;
            say_from(
                &mut world,
                from,
                tag,
                &[&Chunk::CookieEcho(CookieEcho { cookie })],
            );
            let there = world.endpoints[Z].associations().count();
            assert_eq!(there == 1, up, "{asked_ms} ms more, after {good_s} s");
        }
    }
}

/// §3.3.10.11: the error for a refused restart lists only the new addresses.
#[test]
fn a_refused_restart_gets_the_new_addresses() {
    let mut world = World::new(Config::default());
    world.fate = Box::new(|_| Fate::Drop);
    let from = [10, 9, 0, 9].into();
    let new = [[10, 9, 1, 9].into(), [10, 9, 2, 9].into()];
    Caller::call(&mut world, from, 7, &[from]).expect("served");
    let answers = ask(&mut world, from, 8, &[from, new[0], new[1]]);
    let Chunk::Abort(abort) = chunks_of(&answers[0].bytes).remove(0) else {
        panic!()
    };
    let Some(Ok(anabranch_wire::Cause::RestartWithNewAddresses { addresses })) =
        abort.causes.iter().next()
    else {
        panic!("{abort:?}")
    };
    let told: Vec<_> = addresses.iter().flatten().collect();
    assert_eq!(told, new.map(Parameter::address));
    assert!(
        !world
            .told(Z)
            .iter()
            .any(|it| matches!(it, Event::Restarted { .. }))
    );
}

/// §3.3.3.1.1, §5.1.3: the first parameter of an INIT ACK is the cookie, and there is no second
/// one.
#[test]
fn an_init_ack_has_one_cookie_and_it_comes_first() {
    let mut world =
        World::new(Config::default().with(|it| it.addresses = vec![address(Z, 0), address(Z, 1)]));
    let path = Path::new(address(Z, 0), [10, 9, 0, 9].into());
    world.inject_from(Z, path, packet(A, 0, &[&init_of(7, &[])]));
    let Chunk::InitAck(ack) = chunks_of(&world.shot(Z, "INIT ACK")).remove(0) else {
        panic!()
    };
    let kinds: Vec<u16> = ack
        .0
        .parameters
        .iter()
        .flatten()
        .map(|it| it.kind())
        .collect();
    assert_eq!(kinds[0], parameter::kind::STATE_COOKIE);
    let cookies = kinds
        .iter()
        .filter(|&&it| it == parameter::kind::STATE_COOKIE);
    assert_eq!(cookies.count(), 1);
}
