//! Scripts for association setup (RFC 9260 §5): the test purposes AS, and related ones of IMH and
//! E.

use super::*;
use anabranch_wire::tlv::Tlv;

fn unknown(kind: u16, value: &[u8]) -> Parameter {
    Parameter::Unknown(Tlv::new(kind, value).expect("short"))
}

fn reported(parameters: &Parameters) -> Vec<Bytes> {
    let whole = |it| match it {
        Parameter::UnrecognizedParameter(whole) => Some(whole),
        _ => None,
    };
    parameters.iter().flatten().filter_map(whole).collect()
}

fn first_cause(chunks: &[Chunk]) -> (bool, Option<Cause>) {
    match &chunks[0] {
        Chunk::Abort(abort) => (abort.tag_reflected, abort.causes.iter().flatten().next()),
        Chunk::Error(error) => (false, error.causes.iter().flatten().next()),
        other => panic!("{other:?}"),
    }
}

/// AS-V-1-1-1, AS-V-1-10-2: the endpoint connects, is established, and closes.
#[test]
fn an_active_setup_and_its_end() {
    let mut script = Script::called(quick());
    script.close();
    let Chunk::Shutdown(shutdown) = script.expect("SHUTDOWN").remove(0) else {
        panic!()
    };
    assert_eq!(shutdown.cumulative_tsn_ack, Tsn(TESTERS_TSN).prev());
    script.say(&[&Chunk::ShutdownAck]);
    script.expect("SHUTDOWN COMPLETE");
    assert_eq!(script.state(), AssociationState::Closed);
}

/// AS-V-1-1-2, AS-V-1-10-1: the peer connects and closes.
#[test]
fn a_passive_setup_and_its_end() {
    let mut script = Script::accepted(quick());
    assert_eq!(script.state(), AssociationState::Established);
    script.tear_down(0);
}

/// AS-I-1-2-1, AS-I-1-2-2, RT-I-11: INIT and COOKIE ECHO are retransmitted unchanged.
#[test]
fn init_and_cookie_echo_are_sent_again() {
    let mut script = Script::calling(quick());
    let first = script.world.shots[0].bytes.clone();
    script.expect_after(100 * MILLISECOND, "INIT");
    assert_eq!(script.world.shots[1].bytes, first);
    script.wait(100 * MILLISECOND);
    script.say(&[&init_ack_with(&[cookie()])]);
    let echo = script.expect("COOKIE ECHO");
    let again = script.expect_within(SECOND, "COOKIE ECHO");
    assert_eq!(again, echo);
    script.say(&[&Chunk::CookieAck]);
    assert_eq!(script.state(), AssociationState::Established);
}

/// AS-I-1-3-1, AS-I-1-3-2: INIT and COOKIE ECHO are retransmitted Max.Init.Retransmits times, with
/// a timeout that doubles up to RTO.Max. Then the attempt fails.
#[test]
fn init_and_cookie_echo_are_sent_again_eight_times() {
    for echoes in [false, true] {
        let mut script = Script::calling(quick());
        if echoes {
            script.say(&[&init_ack_with(&[cookie()])]);
            script.expect("COOKIE ECHO");
        }
        let what = if echoes { "COOKIE ECHO" } else { "INIT" };
        for span in [100, 200, 400, 800, 800, 800, 800, 800] {
            script.expect_after(span * MILLISECOND, what);
        }
        script.wait(SECOND);
        assert_eq!(script.state(), AssociationState::Closed);
        // The endpoint should notify the peer by an ABORT if it knows the tag of the peer.
        if echoes {
            script.expect("ABORT");
        }
        script.expect_nothing();
    }
}

/// AS-I-1-4: INITs should leave no state at the endpoint.
#[test]
fn an_init_costs_nothing() {
    let mut script = Script::listening(quick());
    for tag in 1..1_000 {
        script.say_under(
            0,
            &[&Chunk::Init(Init {
                initiate_tag: tag,
                ..init()
            })],
        );
        script.expect_one("INIT ACK");
    }
    assert_eq!(script.associations(), 0);
    assert_eq!(
        anabranch_transport::Transport::poll_timeout(&script.world.endpoints[Z]),
        None
    );
}

/// AS-V-1-5-1, AS-V-1-5-2: tags should be random.
#[test]
fn tags_differ() {
    let mut script = Script::listening(quick());
    let mut tags: Vec<_> = (0..20).map(|_| script.ask(init()).initiate_tag).collect();
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), 20);
    assert!(!tags.contains(&0));
}

/// AS-V-1-6-1, AS-V-1-6-2, AS-V-1-13-1, AS-I-1-13-2: known parameters should be accepted, whatever
/// address types they list.
#[test]
fn known_parameters_are_taken() {
    let types =
        |kinds: &[u16]| Parameter::SupportedAddressTypes(anabranch_wire::tlv::U16List::of(kinds));
    let v4 = Parameter::Ipv4Address([1, 1, 1, 1].into());
    let v6 = Parameter::Ipv6Address("fe80::250:56ff:fe24:9e6".parse().expect("an address"));
    for parameters in [
        &[
            Parameter::CookiePreservative(12_345),
            types(&[5, 6]),
            v6.clone(),
            v4.clone(),
        ][..],
        &[types(&[5, 6])],
        &[types(&[6])],
        &[types(&[11, 6, 5])],
    ] {
        let mut script = Script::listening(quick());
        script.ask(init_with(parameters));
        script.wait(100 * MILLISECOND);
        script.echo();
        script.expect_one("COOKIE ACK");
        let acknowledged = script.first.prev();
        script.say(&[&shutdown(acknowledged)]);
        // Meanwhile the endpoint sends HEARTBEATs to the other addresses of the peer.
        let last = script.world.shots.last().expect("answered");
        assert_eq!(last.chunks, "SHUTDOWN ACK");
        // The SHUTDOWN COMPLETE has the tag of the endpoint's packets, and therefore the T bit.
        script.say_under(TESTERS_TAG, &[&shutdown_complete(true)]);
        assert_eq!(script.state(), AssociationState::Closed);
    }
    let mut script = Script::calling(quick());
    script.say(&[&init_ack_with(&[cookie(), v6, v4])]);
    script.expect("COOKIE ECHO");
    script.say(&[&Chunk::CookieAck]);
    assert_eq!(script.state(), AssociationState::Established);
}

/// AS-V-1-7-1, AS-V-1-7-3, AS-V-1-7-5: the smaller number of streams is used.
#[test]
fn the_lesser_number_of_streams_counts() {
    let streams = |outbound: u16, inbound: u16| {
        quick().with(|it| (it.outbound_streams, it.inbound_streams) = (outbound, inbound))
    };
    for (peers, expected) in [((100, 1), (1, 2)), ((2, 2), (2, 2)), ((1, 9), (2, 1))] {
        let mut script = Script::listening(streams(2, 2));
        let ack = script.ask(Init {
            outbound_streams: peers.0,
            inbound_streams: peers.1,
            ..init()
        });
        assert_eq!(ack.outbound_streams, expected.0);
        assert_eq!(ack.inbound_streams, 2);
        script.echo();
        script.expect("COOKIE ACK");
        assert_eq!(script.association().status().outbound_streams, expected.0);
        assert_eq!(script.association().status().inbound_streams, expected.1);
    }
    let mut script = Script::calling(streams(2, 1));
    let Chunk::Init(sent) = chunks_of(&script.world.shots[0].bytes).remove(0) else {
        panic!()
    };
    assert_eq!((sent.outbound_streams, sent.inbound_streams), (2, 1));
    script.say(&[&init_ack_with(&[cookie()])]);
    script.expect("COOKIE ECHO");
    script.say(&[&Chunk::CookieAck]);
    assert_eq!(script.association().status().outbound_streams, 1);
}

/// AS-I-1-7-2, AS-I-1-7-4: an INIT with no streams or with a window below 1,500 bytes should be
/// refused.
#[test]
fn no_streams_are_refused() {
    let bad = [
        Init {
            outbound_streams: 0,
            ..init_with(&[cookie()])
        },
        Init {
            inbound_streams: 0,
            ..init_with(&[cookie()])
        },
        Init {
            a_rwnd: 1_499,
            ..init_with(&[cookie()])
        },
    ];
    for bad in bad {
        let mut script = Script::listening(quick());
        script.say_under(0, &[&Chunk::Init(bad.clone())]);
        let answer = script.expect("ABORT");
        assert_eq!(
            first_cause(&answer),
            (false, Some(Cause::InvalidMandatoryParameter))
        );
        assert_eq!(
            header_of(&script.world.shots[0].bytes).verification_tag,
            TESTERS_TAG
        );
        let no_streams = bad.a_rwnd >= 1_500;
        let mut script = Script::calling(quick());
        script.say(&[&Chunk::InitAck(InitAck(bad))]);
        let answer = script.expect("ABORT");
        assert_eq!(
            first_cause(&answer).1,
            Some(Cause::InvalidMandatoryParameter)
        );
        assert_eq!(script.state() == AssociationState::Closed, no_streams);
    }
}

/// AS-I-1-8-1 to AS-I-1-8-4: the two high bits of an unknown parameter should decide how it is
/// handled.
#[test]
fn unknown_parameters_of_an_init() {
    for (middle, expected) in [
        (0xC0CC, &[1, 2, 3][..]),
        (0x00CC, &[1]),
        (0x40CC, &[1, 2]),
        (0x80CC, &[1, 3]),
    ] {
        let mut script = Script::listening(quick());
        let kinds = [0xC0CC, middle, 0xC0CC];
        let parameters: Vec<_> = (1..=3)
            .map(|it| unknown(kinds[it - 1], &[it as u8; 4]))
            .collect();
        let ack = script.ask(init_with(&parameters));
        let told: Vec<_> = reported(&ack.parameters)
            .iter()
            .map(|it| usize::from(it[4]))
            .collect();
        assert_eq!(told, expected, "{middle:#x}");
        script.echo();
        script.expect("COOKIE ACK");
        script.tear_down(0);
    }
}

/// RFC 9260 §3.2.2: all unknown parameters that request a report should be reported, as long as the
/// reports fit into one packet (§6.10).
#[test]
fn as_many_unknown_parameters_are_reported_as_a_packet_holds() {
    for count in [40, 100] {
        let mut script = Script::listening(quick());
        let parameters: Vec<_> = (0..count).map(|it| unknown(0xC100 + it, &[1; 4])).collect();
        let ack = script.ask(init_with(&parameters));
        assert_eq!(
            reported(&ack.parameters).len(),
            usize::from(count).min(ack_room(&script))
        );
    }
}

/// Number of reports of 12 bytes that fit next to the cookie in the INIT ACK.
fn ack_room(script: &Script) -> usize {
    let packet = 1_500 - 20;
    let cookie = (script.cookie.len() + 4).next_multiple_of(4);
    (packet - 12 - 20 - cookie) / 12
}

/// AS-O-1-9-1, AS-O-1-9-2, DM-O-4-2-1: in ESTABLISHED an INIT should be answered, or refused if it
/// has new addresses. The association should not change.
#[test]
fn an_init_in_established() {
    let mut script = Script::accepted(quick());
    script.wait(200 * MILLISECOND);
    for tag in [3, TESTERS_TAG] {
        script.say_under(
            0,
            &[&Chunk::Init(Init {
                initiate_tag: tag,
                ..init()
            })],
        );
        let shot = script.world.shots.last().expect("answered").clone();
        assert_eq!(shot.chunks, "INIT ACK");
        assert_eq!(header_of(&shot.bytes).verification_tag, tag);
        script.seen += 1;
    }
    let elsewhere = Parameter::Ipv4Address([1, 1, 1, 1].into());
    script.say_under(
        0,
        &[&Chunk::Init(init_with(std::slice::from_ref(&elsewhere)))],
    );
    let (reflected, cause) = first_cause(&script.expect("ABORT"));
    let addresses = Parameters::of(&[elsewhere]);
    assert_eq!(
        (reflected, cause),
        (false, Some(Cause::RestartWithNewAddresses { addresses }))
    );
    script.say(&[&heartbeat(b"123456789012")]);
    script.expect("HEARTBEAT ACK");
    script.tear_down(0);
}

/// AS-V-1-11-1, AS-V-1-11-2, AS-I-1-15, RT-I-11-3: all addresses of the peer are used.
#[test]
fn all_addresses_of_the_peer_are_used() {
    let second = address(A, 1);
    let homes = || quick().with(|it| it.addresses = vec![address(Z, 0), address(Z, 1)]);
    let mut script = Script::calling_at(homes(), &[address(A, 0), second]);
    script.expect_after(100 * MILLISECOND, "INIT");
    let remotes: Vec<_> = script.world.shots.iter().map(|it| it.path.remote).collect();
    assert_eq!(remotes, [address(A, 0), second]);
    let mut script = Script::listening(homes());
    script.ask(init_with(&[Parameter::address(second)]));
    script.echo();
    script.expect_one("COOKIE ACK");
    let Chunk::Heartbeat(probe) = script.expect_one("HEARTBEAT").remove(0) else {
        panic!()
    };
    let ack = Chunk::HeartbeatAck(anabranch_wire::chunk::HeartbeatAck { info: probe.info });
    let path = Path::new(address(Z, 1), second);
    let tag = script.tag;
    script.world.inject_from(Z, path, packet(A, tag, &[&ack]));
    script.send(1_000);
    script.expect_one("DATA");
    script.expect_within(SECOND, "DATA");
    let sent: Vec<_> = script
        .world
        .shots
        .iter()
        .filter(|it| it.chunks == "DATA")
        .collect();
    assert_eq!(sent[0].path.remote, address(A, 0));
    assert_eq!(sent[1].path.remote, second);
}

/// AS-V-1-12-1, AS-I-1-12-2: a host name should be refused.
#[test]
fn a_host_name_is_refused() {
    let name = || Parameter::HostNameAddress(Bytes::from_static(b"a.b\0"));
    let parameter = Bytes::from_static(b"\x00\x0b\x00\x08a.b\0");
    let expected = Some(Cause::UnresolvableAddress { parameter });
    let mut script = Script::listening(quick());
    script.say_under(0, &[&Chunk::Init(init_with(&[name()]))]);
    assert_eq!(
        first_cause(&script.expect("ABORT")),
        (false, expected.clone())
    );
    let mut script = Script::calling(quick());
    script.say(&[&init_ack_with(&[cookie(), name()])]);
    assert_eq!(first_cause(&script.expect("ABORT")), (false, expected));
    assert_eq!(script.state(), AssociationState::Closed);
}

/// AS-I-1-14-1, AS-I-1-14-2: an INIT with tag 0 should be ignored, and an INIT ACK with tag 0
/// should be answered by an ABORT.
#[test]
fn the_tag_0() {
    let mut script = Script::listening(quick());
    script.say_under(
        0,
        &[&Chunk::Init(Init {
            initiate_tag: 0,
            ..init()
        })],
    );
    script.expect_nothing();
    script.wait(SECOND);
    script.ask(init());
    let mut script = Script::calling(quick());
    let ack = Init {
        initiate_tag: 0,
        ..init_with(&[cookie()])
    };
    script.say(&[&Chunk::InitAck(InitAck(ack))]);
    let answer = script.expect("ABORT");
    assert_eq!(
        first_cause(&answer),
        (true, Some(Cause::InvalidMandatoryParameter))
    );
    assert_eq!(script.state(), AssociationState::Closed);
}

/// IMH-I-3-1, IMH-I-3-2, IMH-I-3-8: setup chunks that are too short, or longer than their packets,
/// should be ignored.
#[test]
fn setup_chunks_that_are_too_short_do_nothing() {
    for (tag, chunk) in [
        (0, raw(1, 0, &[1, 2, 3, 4])),
        (0, vec![1, 0, 0, 0x60]),
        (5, vec![1, 0, 0, 0x60]),
    ] {
        let mut script = Script::listening(quick());
        script.world.inject(Z, raw_packet(A, tag, &chunk));
        script.expect_nothing();
        script.ask(init());
    }
    let mut script = Script::calling(quick());
    script.say_raw(&raw(2, 0, &[1, 2, 3, 4]));
    script.expect_nothing();
    script.expect_after(100 * MILLISECOND, "INIT");
}

/// IMH-I-3-3, IMH-I-3-5: a COOKIE ECHO with a wrong tag or with an unknown cookie should be
/// ignored.
#[test]
fn a_wrong_cookie_echo_does_nothing() {
    for forged in [false, true] {
        let mut script = Script::listening(quick());
        script.ask(init());
        if forged {
            let cookie = Bytes::from_static(&[1; 16]);
            script.say(&[&Chunk::CookieEcho(CookieEcho { cookie })]);
        } else {
            let echo = script.cookie_echo();
            script.say_under(script.tag ^ 1, &[&echo]);
        }
        script.expect_nothing();
        assert_eq!(script.associations(), 0);
        script.echo();
        script.expect("COOKIE ACK");
        script.close();
        script.expect("SHUTDOWN");
    }
}

/// IMH-I-3-4: a packet with a wrong checksum should be ignored.
#[test]
fn a_wrong_checksum_does_nothing() {
    let mut script = Script::listening(quick());
    let mut bytes = packet(A, 0, &[&Chunk::Init(init())]).to_vec();
    bytes[8] ^= 1;
    script.world.inject(Z, bytes.into());
    script.expect_nothing();
    script.ask(init());
}

/// IMH-I-3-6: an expired cookie should be reported.
#[test]
fn a_stale_cookie_is_reported() {
    let mut script = Script::listening(quick());
    script.ask(init());
    script.wait(65 * SECOND);
    script.echo();
    let (_, cause) = first_cause(&script.expect("ERROR"));
    let measure_of_staleness = 5_000_000;
    assert_eq!(
        cause,
        Some(Cause::StaleCookie {
            measure_of_staleness
        })
    );
    assert_eq!(script.associations(), 0);
}

/// E-O-6-1, E-O-6-2: an ERROR with Stale Cookie should restart the setup. It should be ignored once
/// the association is established.
#[test]
fn a_stale_cookie_begins_the_setup_again() {
    let stale = error(Cause::StaleCookie {
        measure_of_staleness: 1_000_000,
    });
    let mut script = Script::cookie_echoed(quick());
    script.say(&[&stale]);
    script.expect("INIT");
    assert_eq!(script.state(), AssociationState::CookieWait);
    let mut script = Script::called(quick());
    script.say(&[&stale]);
    script.say(&[&data(0, "BE", 1_000)]);
    script.expect("SACK");
    assert_eq!(script.read(), [1_000]);
    script.close();
    script.expect("SHUTDOWN");
}

/// RFC 9260 §5.2.6, §5.3.1: a restarted setup should use a new tag. An INIT ACK that answers the
/// earlier INIT then arrives too late and should be ignored.
#[test]
fn a_restarted_setup_has_a_new_tag() {
    let stale = || {
        error(Cause::StaleCookie {
            measure_of_staleness: 0,
        })
    };
    let mut script = Script::cookie_echoed(quick());
    let mut tags = vec![script.tag];
    for _ in 0..3 {
        script.say(&[&stale()]);
        let Chunk::Init(sent) = script.expect("INIT").remove(0) else {
            panic!()
        };
        let preservative = sent.parameters.iter().flatten();
        assert!(
            preservative
                .into_iter()
                .any(|it| matches!(it, Parameter::CookiePreservative(_)))
        );
        assert_eq!(sent.initial_tsn, script.first);
        assert!(!tags.contains(&sent.initiate_tag));
        // The INIT is retransmitted unchanged.
        let again = script.expect_within(SECOND, "INIT");
        assert_eq!(again, [Chunk::Init(sent.clone())]);
        script.say(&[&init_ack_with(&[cookie()])]);
        script.expect_nothing();
        assert_eq!(script.state(), AssociationState::CookieWait);
        script.tag = sent.initiate_tag;
        tags.push(script.tag);
        script.say(&[&init_ack_with(&[cookie()])]);
        script.expect("COOKIE ECHO");
        // An ERROR that answers an earlier COOKIE ECHO should not affect the new setup.
        script.say_under(tags[tags.len() - 2], &[&stale()]);
        script.expect_nothing();
    }
    script.say(&[&Chunk::CookieAck]);
    assert_eq!(script.state(), AssociationState::Established);
    script.tear_down(0);
}

/// E-I-6-4: an INIT ACK without a cookie should be reported.
#[test]
fn a_missing_cookie_is_reported() {
    let mut script = Script::calling(quick());
    script.say(&[&init_ack_with(&[])]);
    let (reflected, cause) = first_cause(&script.expect("ABORT"));
    let kinds = anabranch_wire::tlv::U16List::of(&[7]);
    assert_eq!(
        (reflected, cause),
        (false, Some(Cause::MissingMandatoryParameter { kinds }))
    );
}

/// E-I-6-5, E-I-6-6: unknown parameters of an INIT ACK should be reported with the COOKIE ECHO, no
/// matter whether they come before or after the cookie.
#[test]
fn unknown_parameters_of_an_init_ack() {
    for first in [false, true] {
        let mut script = Script::calling(quick());
        let odd = unknown(0xC00C, &[1]);
        let list = if first {
            [odd, cookie()]
        } else {
            [cookie(), odd]
        };
        script.say(&[&init_ack_with(&list)]);
        let mut answer = script.expect("COOKIE ECHO, ERROR");
        let (_, cause) = first_cause(&answer.split_off(1));
        let Some(Cause::UnrecognizedParameters { parameters }) = cause else {
            panic!("{cause:?}")
        };
        assert_eq!(parameters.as_bytes()[..5], [0xC0, 0x0C, 0, 5, 1]);
        script.say(&[&Chunk::CookieAck]);
        assert_eq!(script.state(), AssociationState::Established);
    }
    let mut script = Script::listening(quick());
    script.ask(init());
    let parameters = Parameters::of(&[Parameter::ForwardTsnSupported]);
    let echo = script.cookie_echo();
    script.say(&[&echo, &error(Cause::UnrecognizedParameters { parameters })]);
    script.expect("COOKIE ACK");
    script.tear_down(0);
}

/// Items B and C of §5.1.5, FH-O-5-3-5: a COOKIE ECHO with a valid cookie should be ignored if its
/// source address is not unicast.
#[test]
fn a_cookie_from_a_broadcast_address_does_nothing() {
    let mut script = Script::listening(quick());
    script.ask(init());
    let (echo, tag) = (script.cookie_echo(), script.tag);
    let path = Path::new(address(Z, 0), [224, 0, 0, 1].into());
    script.world.inject_from(Z, path, packet(A, tag, &[&echo]));
    script.expect_nothing();
    assert_eq!(script.associations(), 0);
}
