//! AUTH during setup: invalid offers, authenticated cookies, collisions and restarts (RFC 4895 §6).

use crate::common;

use anabranch_sctp::{
    AssociationId, AssociationState, AuthHmac, Authentication, ChunkTypes, CloseReason, Config,
    DiscardReason, Endpoint, Event, SharedKeys,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::{Chunk, CookieEcho, Init, kind};
use anabranch_wire::parameter::{Parameter, Parameters};
use anabranch_wire::serial::Tsn;
use anabranch_wire::tlv::Tlv;
use bytes::Bytes;
use common::caller::cookie_of;
use common::signed::Signer;
use common::wrong::{discarded, encoded};
use common::*;

fn demanding(types: &[u8]) -> Config {
    Config::default().with(|it| {
        it.authentication = Authentication::On;
        it.authenticated_chunks = Some(ChunkTypes::of(types));
    })
}

fn with_key(config: Config, secret: &'static str) -> Config {
    config.with(|it| {
        it.auth_keys = SharedKeys::only(1, secret);
    })
}

fn tlv(kind: u16, value: &[u8]) -> Parameter {
    Parameter::Unknown(Tlv::new(kind, value).expect("short"))
}

/// INIT from A with these parameters.
fn init(parameters: &[Parameter]) -> Bytes {
    let init = Init {
        initiate_tag: 0xBEEF,
        a_rwnd: 65_536,
        outbound_streams: 10,
        inbound_streams: 10,
        initial_tsn: Tsn(1_000),
        parameters: Parameters::of(parameters),
    };
    packet(A, 0, &[&Chunk::Init(init)])
}

fn sound() -> Vec<Parameter> {
    vec![
        tlv(0x8002, &[7; 32]),
        tlv(0x8003, &[kind::ASCONF]),
        tlv(0x8004, &[0, 3, 0, 1]),
    ]
}

/// Sends an INIT with these parameters; returns it and the answer of Z.
fn asked(world: &mut World, parameters: &[Parameter]) -> (Bytes, Bytes) {
    let init = init(parameters);
    world.inject(Z, init.clone());
    (init, world.shot(Z, "INIT ACK"))
}

fn up(world: &World) -> usize {
    world.endpoints[Z].associations().count()
}

#[test]
fn offers_that_break_a_rule_are_aborted() {
    let mut short = sound();
    short[0] = tlv(0x8002, &[7; 31]);
    let mut without_sha_1 = sound();
    without_sha_1[2] = tlv(0x8004, &[0, 3]);
    let mut odd = sound();
    odd[2] = tlv(0x8004, &[0, 3, 0]);
    let mut twice = sound();
    twice.push(tlv(0x8002, &[8; 32]));
    let mut long = sound();
    long[1] = tlv(0x8003, &[9; 300]);
    for parameters in [short, without_sha_1, odd, twice, long] {
        let mut world = World::new(demanding(&[]));
        world.inject(Z, init(&parameters));
        let abort = world.shot(Z, "ABORT");
        assert_eq!(abort[16..18], [0, 13], "Protocol Violation: {parameters:?}");
        assert_eq!(discarded(&world, Z, DiscardReason::BadInit), 1);
        // An end without AUTH treats the AUTH parameters as unknown.
        let mut world = World::new(Config::default());
        asked(&mut world, &parameters);
    }
}

#[test]
fn an_offer_that_is_not_whole_is_none() {
    for left_out in [0, 2] {
        let mut parameters = sound();
        parameters.remove(left_out);
        let mut world = World::new(demanding(&[kind::COOKIE_ECHO]));
        let (_, ack) = asked(&mut world, &parameters);
        assert!(common::signed::vector_of(&ack).is_empty());
        let (tag, cookie) = cookie_of(&ack);
        let echo = Chunk::CookieEcho(CookieEcho { cookie });
        world.inject(Z, packet(A, tag, &[&echo]));
        assert_eq!(up(&world), 1, "nothing was agreed on, and nothing demanded");
    }
}

/// Hand-made COOKIE ECHO. Z checks it with the AUTH parameters in the cookie and the shared key,
/// which the cookie does not contain.
#[test]
fn a_cookie_echo_is_taken_only_with_the_key() {
    let secret = "of this pair";
    let z = with_key(demanding(&[kind::COOKIE_ECHO]), secret);
    let mut world = World::with_configs(Config::default(), z);
    let (asking, ack) = asked(&mut world, &sound());
    assert!(
        !ack.windows(secret.len()).any(|it| it == secret.as_bytes()),
        "no secret on the wire"
    );
    let (tag, cookie) = cookie_of(&ack);
    let echo = encoded(&Chunk::CookieEcho(CookieEcho { cookie }));
    let right = Signer::new(&asking, &ack, secret.as_bytes(), 1);
    let wrong = Signer::new(&asking, &ack, b"of another", 1);
    let null = Signer::new(&asking, &ack, b"", 0);
    let count = |world: &World| {
        [DiscardReason::Unauthenticated, DiscardReason::BadAuth].map(|it| discarded(world, Z, it))
    };
    world.inject(Z, raw_packet(A, tag, &echo));
    assert_eq!((up(&world), count(&world)), (0, [1, 0]));
    world.inject(Z, raw_packet(A, tag, &wrong.sign(&echo)));
    world.inject(Z, raw_packet(A, tag, &null.sign(&echo)));
    assert_eq!((up(&world), count(&world)), (0, [1, 2]));
    let answers = world.story.iter().filter(|it| it.starts_with("Z -> "));
    assert_eq!(answers.count(), 1, "silently");
    let mut behind = wrong.sign(&[]);
    behind.extend(right.sign(&echo));
    world.inject(Z, raw_packet(A, tag, &behind));
    assert_eq!(up(&world), 0, "its AUTH is the second");
    let mut altered = right.sign(&echo);
    *altered.last_mut().expect("long") ^= 1;
    world.inject(Z, raw_packet(A, tag, &altered));
    assert_eq!(up(&world), 0);
    world.inject(Z, raw_packet(A, tag, &right.sign(&echo)));
    assert_eq!(up(&world), 1);
    // Z does not require authentication from A; A requires it for ASCONF only.
    assert!(
        world.story.iter().any(|it| it == "Z -> COOKIE ACK -> A"),
        "{:#?}",
        world.story
    );
}

/// Chunks after the COOKIE ECHO are authenticated together with it, or have a separate AUTH.
#[test]
fn data_behind_a_cookie_echo_is_vouched_for() {
    let text = [
        0, 3, 0, 20, 0, 0, 3, 232, 0, 0, 0, 0, 0, 0, 0, 0, b't', b'e', b'x', b't',
    ];
    for (demanded, before, between, taken) in [
        (&[kind::COOKIE_ECHO, kind::DATA][..], true, false, true),
        (&[kind::DATA], true, false, true),
        (&[kind::DATA], false, true, true),
        (&[kind::DATA], false, false, false),
    ] {
        let mut world = World::with_configs(Config::default(), demanding(demanded));
        let (asking, ack) = asked(&mut world, &sound());
        let (tag, cookie) = cookie_of(&ack);
        let signer = Signer::new(&asking, &ack, b"", 0);
        let echo = encoded(&Chunk::CookieEcho(CookieEcho { cookie }));
        let behind = if between {
            signer.sign(&text)
        } else {
            text.to_vec()
        };
        let whole = [&echo[..], &behind].concat();
        let whole = if before { signer.sign(&whole) } else { whole };
        world.inject(Z, raw_packet(A, tag, &whole));
        let z = world.only_association(Z);
        assert_eq!(
            world.receive_all(Z, z).len(),
            usize::from(taken),
            "{demanded:?}"
        );
        // The next packet must be authenticated.
        world.inject(Z, raw_packet(A, tag, &text));
        let unproved = u64::from(!taken) + 1;
        assert_eq!(
            discarded(&world, Z, DiscardReason::Unauthenticated),
            unproved
        );
    }
}

/// CVE-2014-0101: an AUTH before a COOKIE ECHO of an association whose peer never offered AUTH.
#[test]
fn cve_2014_0101_auth_before_a_cookie_echo_that_offers_none() {
    for z in [
        Config::default(),
        demanding(&[]),
        demanding(&[kind::COOKIE_ECHO]),
    ] {
        let mut world = World::with_configs(Config::default(), z);
        let (asking, ack) = asked(&mut world, &[]);
        let (tag, cookie) = cookie_of(&ack);
        let echo = encoded(&Chunk::CookieEcho(CookieEcho { cookie }));
        for hmac_id in [1, 3, 0] {
            let mut signer = Signer::new(&asking, &ack, b"", 0);
            signer.hmac_id = hmac_id;
            world.inject(Z, raw_packet(A, tag, &signer.sign(&echo)));
        }
        world.inject(
            Z,
            raw_packet(A, tag, &[&[15, 0, 0, 8, 0, 0, 0, 1], &echo[..]].concat()),
        );
        assert_eq!(up(&world), 0);
        world.inject(Z, raw_packet(A, tag, &echo));
        assert_eq!(up(&world), 1, "without it the cookie is good");
    }
}

fn established(world: &World, a: AssociationId, z: AssociationId) {
    assert_eq!(
        world.state(A, a),
        AssociationState::Established,
        "{:#?}",
        world.story
    );
    assert_eq!(
        world.state(Z, z),
        AssociationState::Established,
        "{:#?}",
        world.story
    );
}

/// Exchanges one message in each direction.
fn talk(world: &mut World, a: AssociationId, z: AssociationId) {
    world.send(A, a, 0, "there");
    world.send(Z, z, 0, "and back");
    world.run_for(5 * SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 1, "{:#?}", world.story);
    assert_eq!(world.receive_all(A, a).len(), 1, "{:#?}", world.story);
}

/// CVE-2014-5077, CVE-2015-1421: INIT collision with AUTH. Whichever packets are lost, the keys are
/// derived from the parameters of both ends.
#[test]
fn cve_2014_5077_and_2015_1421_collisions_with_auth() {
    for demanded in [
        &[][..],
        &[kind::DATA, kind::SACK],
        &[kind::COOKIE_ECHO, kind::DATA],
    ] {
        for lost in ["", "INIT", "INIT ACK", "COOKIE ECHO", "AUTH", "COOKIE ACK"] {
            for count in [1, 2] {
                for later in [0, 5, 10, 15, 25] {
                    let config = with_key(demanding(demanded), "shared");
                    let mut world = World::new(config);
                    world.endpoints[A].listen(true);
                    world.fate = lose(lost, count);
                    let a = world.connect();
                    world.run_for(later * MILLISECOND);
                    let now = world.now;
                    let z = world.endpoints[Z].connect(now, &[address(A, 0)], PORT_A);
                    world.drain(Z);
                    world.run_for(30 * SECOND);
                    let z = z.unwrap_or_else(|_| world.only_association(Z));
                    established(&world, a, z);
                    talk(&mut world, a, z);
                }
            }
        }
    }
}

/// Replaces A's endpoint by a new one, which connects to Z again.
fn restart_a(world: &mut World, config: Config, seed: u8) -> AssociationId {
    let config = config.with(|it| {
        it.addresses = vec![address(A, 0)];
    });
    world.endpoints[A] = Endpoint::new(config, PORT_A, [seed; 32]).expect("settings");
    world.connect()
}

#[test]
fn a_restart_has_new_keys() {
    let config = with_key(demanding(&[kind::DATA, kind::SACK]), "shared");
    let mut world = World::new(config.clone());
    let (a, z) = world.established();
    talk(&mut world, a, z);
    let a = restart_a(&mut world, config, 11);
    world.run_for(SECOND);
    assert!(
        world
            .told(Z)
            .contains(&Event::Restarted { data_lost: false })
    );
    established(&world, a, z);
    talk(&mut world, a, z);
    // Restart by a new endpoint without AUTH.
    let a = restart_a(&mut world, Config::default(), 12);
    world.run_for(SECOND);
    established(&world, a, z);
    talk(&mut world, a, z);
    let is_on = |world: &World| {
        world.endpoints[Z]
            .association(z)
            .expect("known")
            .negotiated()
            .authentication
    };
    assert!(!is_on(&world));
    let a = restart_a(&mut world, with_key(demanding(&[kind::DATA]), "shared"), 13);
    world.run_for(SECOND);
    established(&world, a, z);
    talk(&mut world, a, z);
    assert!(is_on(&world));
}

/// RFC 4895 §6.3: if COOKIE ECHO must be authenticated, a restarted peer is refused, because it
/// does not know the key of the existing association.
#[test]
fn a_restart_without_the_old_key_is_refused_where_cookie_echoes_are_demanded() {
    let config = demanding(&[kind::COOKIE_ECHO, kind::DATA]);
    for restarted in [config.clone(), Config::default()] {
        let mut world = World::new(config.clone());
        let (_, z) = world.established();
        let a = restart_a(&mut world, restarted.clone(), 14);
        world.run_for(500 * MILLISECOND);
        assert_eq!(world.state(A, a), AssociationState::CookieEchoed);
        assert!(
            !world
                .told(Z)
                .iter()
                .any(|it| matches!(it, Event::Restarted { .. }))
        );
        assert_eq!(world.state(Z, z), AssociationState::Established);
        let reasons = [DiscardReason::BadAuth, DiscardReason::Unauthenticated];
        let count: u64 = reasons.iter().map(|it| discarded(&world, Z, *it)).sum();
        assert!(count > 0);
    }
}

#[test]
fn keys_that_differ_keep_strangers_out() {
    let z = with_key(demanding(&[kind::COOKIE_ECHO]), "ours");
    for a in [with_key(demanding(&[]), "theirs"), demanding(&[])] {
        let mut world = World::with_configs(a, z.clone());
        let a = world.connect();
        world.run_for(500 * SECOND);
        assert_eq!(world.close_reason(A, a), Some(CloseReason::NoCookieAck));
        assert_eq!(up(&world), 0);
        assert!(discarded(&world, Z, DiscardReason::BadAuth) > 3);
    }
}

/// A duplicate COOKIE ECHO of the association is accepted with its key, and answered again.
#[test]
fn a_cookie_echo_that_comes_twice() {
    let config = demanding(&[kind::COOKIE_ECHO]);
    let mut world = World::new(config);
    world.fate = lose("COOKIE ACK", 1);
    let a = world.connect();
    world.run_for(20 * SECOND);
    let z = world.only_association(Z);
    established(&world, a, z);
    let echoes = world
        .story
        .iter()
        .filter(|it| *it == "A -> AUTH, COOKIE ECHO -> Z");
    assert_eq!(echoes.count(), 2);
}

/// Lists of chunk types that fill the parameter: the size of the cookie stays bounded.
#[test]
fn long_lists_are_carried_whole() {
    let types: Vec<u8> = (0..=255).collect();
    let mut parameters = sound();
    parameters[1] = tlv(0x8003, &types);
    let mut world = World::new(demanding(&types));
    let (asking, ack) = asked(&mut world, &parameters);
    assert!(ack.len() < 1_200, "{}", ack.len());
    let (tag, cookie) = cookie_of(&ack);
    let signer = Signer::new(&asking, &ack, b"", 0);
    let echo = encoded(&Chunk::CookieEcho(CookieEcho { cookie }));
    world.inject(Z, raw_packet(A, tag, &signer.sign(&echo)));
    let answer = world.shot(Z, "AUTH, COOKIE ACK");
    assert!(signer.is_right(&answer));
}

/// The settings change between INIT ACK and COOKIE ECHO: the association has the offer of the INIT
/// ACK, and the next one the new settings.
#[test]
fn changed_settings_are_those_of_the_next_handshake() {
    let later = ChunkTypes::of(&[kind::SACK]);
    let both = |set: ChunkTypes| [kind::DATA, kind::SACK].map(|it| set.has(it));
    let mut world = World::with_configs(demanding(&[]), demanding(&[kind::DATA]));
    let a = world.connect();
    while !world.story.iter().any(|it| it.contains("INIT ACK")) {
        assert!(world.step(2 * SECOND), "{:#?}", world.story);
    }
    let refused = world.endpoints[Z].change_config(|it| it.mtu = 0);
    refused.expect_err("too small");
    let change = |world: &mut World| {
        let changed = world.endpoints[Z].change_config(|it| {
            it.authenticated_chunks = Some(later);
            it.authentication_hmac = AuthHmac::Sha1;
        });
        changed.expect("valid");
    };
    change(&mut world);
    world.run_for(SECOND);
    let z = world.only_association(Z);
    let negotiated = |world: &World, host: usize, id| {
        let association = world.endpoints[host].association(id).expect("known");
        association.negotiated()
    };
    let local = negotiated(&world, Z, z).local_auth_chunks;
    assert_eq!(both(local), [true, false]);
    assert_eq!(both(negotiated(&world, A, a).peer_auth_chunks), both(local));
    for (from, to, id) in [(A, Z, a), (Z, A, z)] {
        world.send(from, id, 0, "text");
        world.run_for(SECOND);
        let other = if to == A { a } else { z };
        assert_eq!(world.receive_all(to, other).len(), 1, "{:#?}", world.story);
    }
    // Restart by a new endpoint: INIT ACK and association have the new settings.
    let a = restart_a(&mut world, demanding(&[]), 15);
    world.run_for(SECOND);
    let local = negotiated(&world, Z, z).local_auth_chunks;
    assert_eq!(both(local), [false, true]);
    assert_eq!(both(negotiated(&world, A, a).peer_auth_chunks), both(local));
    talk(&mut world, a, z);
    let mut world = World::with_configs(demanding(&[]), demanding(&[kind::DATA]));
    change(&mut world);
    let (a, z) = world.established();
    let local = negotiated(&world, Z, z).local_auth_chunks;
    assert_eq!(both(local), [false, true]);
    assert_eq!(both(negotiated(&world, A, a).peer_auth_chunks), both(local));
}

/// The endpoint's settings change while an association exists, and then the peer restarts: both
/// ends compute the same keys, from the parameters of the new INIT ACK.
#[test]
fn a_restart_after_another_hmac_was_set() {
    let sha_1 = |it: &mut Config| it.authentication_hmac = AuthHmac::Sha1;
    let config = demanding(&[kind::DATA, kind::SACK]);
    for demanded in [config.clone(), demanding(&[kind::COOKIE_ACK])] {
        let mut world = World::with_configs(config.clone(), demanded);
        let (_, z) = world.established();
        world.endpoints[Z].change_config(sha_1).expect("valid");
        let a = restart_a(&mut world, config.clone(), 16);
        world.run_for(SECOND);
        established(&world, a, z);
        talk(&mut world, a, z);
        assert_eq!(discarded(&world, Z, DiscardReason::BadAuth), 0);
    }
}

/// AUTH is off when the association is created, and on with a key when the peer restarts: the
/// association has the key with which the endpoint has verified the COOKIE ECHO.
#[test]
fn a_restart_after_auth_was_enabled_has_the_keys_of_the_endpoint() {
    for demanded in [&[kind::DATA][..], &[kind::DATA, kind::COOKIE_ECHO]] {
        let config = with_key(demanding(demanded), "shared");
        let mut world = World::new(Config::default());
        let (_, z) = world.established();
        let changed = world.endpoints[Z].change_config(|it| {
            it.authentication = config.authentication;
            it.authenticated_chunks = config.authenticated_chunks;
            it.auth_keys = config.auth_keys.clone();
        });
        changed.expect("valid");
        let a = restart_a(&mut world, config, 17);
        world.run_for(SECOND);
        established(&world, a, z);
        talk(&mut world, a, z);
        assert_eq!(discarded(&world, Z, DiscardReason::BadAuth), 0);
    }
}

/// RFC 9260 §5.2.1: in a collision, the INIT ACK has the parameters of the own INIT, although the
/// endpoint's settings have changed since.
#[test]
fn a_collision_has_the_settings_of_the_own_init() {
    type Change = fn(&mut Config);
    let cases: [(Config, Change); 4] = [
        (demanding(&[kind::DATA]), |it| {
            it.authentication_hmac = AuthHmac::Sha1;
        }),
        (demanding(&[kind::DATA]), |it| {
            it.authenticated_chunks = Some(ChunkTypes::of(&[kind::SACK, kind::COOKIE_ACK]));
        }),
        (Config::default(), |it| {
            it.authentication = Authentication::On;
            it.authenticated_chunks = Some(ChunkTypes::of(&[kind::DATA]));
        }),
        (demanding(&[kind::DATA]), |it| {
            it.authentication = Authentication::Off;
            it.authenticated_chunks = None;
        }),
    ];
    for (number, (before, change)) in cases.into_iter().enumerate() {
        for later in [0, 5, 10, 15, 25] {
            for lost in ["", "INIT", "INIT ACK", "COOKIE ECHO"] {
                let mut world = World::with_configs(demanding(&[kind::DATA]), before.clone());
                world.endpoints[A].listen(true);
                world.fate = lose(lost, 1);
                let now = world.now;
                let z = world.endpoints[Z].connect(now, &[address(A, 0)], PORT_A);
                let z = z.expect("no association yet");
                world.endpoints[Z].change_config(change).expect("valid");
                world.drain(Z);
                world.run_for(later * MILLISECOND);
                let now = world.now;
                let a = world.endpoints[A].connect(now, &[address(Z, 0)], PORT_Z);
                world.drain(A);
                world.run_for(30 * SECOND);
                let a = a.unwrap_or_else(|_| world.only_association(A));
                established(&world, a, z);
                talk(&mut world, a, z);
                let bad = discarded(&world, Z, DiscardReason::BadAuth)
                    + discarded(&world, A, DiscardReason::BadAuth);
                assert_eq!(bad, 0, "{number} {later} {lost}");
            }
        }
    }
    // An attempt without AUTH is not refused because AUTH is required of later associations.
    let mut world = World::new(Config::default());
    let now = world.now;
    let z = world.endpoints[Z].connect(now, &[address(A, 0)], PORT_A);
    let required = |it: &mut Config| it.authentication = Authentication::Required;
    world.endpoints[Z].change_config(required).expect("valid");
    world.drain(Z);
    let a = world.connect();
    world.run_for(SECOND);
    established(&world, a, z.expect("no association yet"));
}

/// AUTH becomes required between INIT ACK and COOKIE ECHO: a cookie without AUTH is not accepted.
#[test]
fn a_cookie_without_auth_is_refused_after_auth_was_required() {
    for (a, accepted) in [(Config::default(), 0), (demanding(&[]), 1)] {
        let mut world = World::with_configs(a, demanding(&[]));
        world.connect();
        while !world.story.iter().any(|it| it.contains("INIT ACK")) {
            assert!(world.step(2 * SECOND), "{:#?}", world.story);
        }
        let required = |it: &mut Config| it.authentication = Authentication::Required;
        world.endpoints[Z].change_config(required).expect("valid");
        world.run_for(500 * MILLISECOND);
        assert_eq!(up(&world), accepted);
        let refused = discarded(&world, Z, DiscardReason::Unauthenticated);
        assert_eq!(refused, 1 - accepted as u64);
    }
}
