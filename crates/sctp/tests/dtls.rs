//! Associations that use the DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04).

use crate::common;

use anabranch_dtls::preshared::{Flights, PresharedSettings};
use anabranch_dtls::{InstallError, KeyId, KeyMaterial, Role, Suite};
use anabranch_sctp::{
    AssociationId, AssociationState, CloseReason, Config, DiscardReason, Endpoint, Event,
    KeyMethods, Security, SendError, SendOptions,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::Chunk;
use anabranch_wire::extension::PPID_DTLS_KEY_MANAGEMENT;
use bytes::Bytes;
use common::wrong::discarded;
use common::*;

pub const DTLS: &str = "type 65";
const SECRET: &[u8] = b"the secret of A and Z";

pub fn settings() -> PresharedSettings {
    PresharedSettings::new(SECRET)
}

/// Strict DTLS mode with key management by a pre-shared secret.
pub fn strict() -> Config {
    with_methods(KeyMethods::preshared(settings()))
}

pub fn with_methods(methods: KeyMethods) -> Config {
    Config::default().with(|it| {
        it.security = Security::DtlsChunk;
        it.key_methods = methods;
    })
}

/// World with a protected association; returns both ends.
pub fn protected(config: Config) -> (World, [AssociationId; 2]) {
    let mut world = World::new(config);
    let (a, z) = world.established();
    for (host, id) in [(A, a), (Z, z)] {
        let association = world.endpoints[host].association(id).expect("known");
        assert!(association.protection().is_active(), "{}", name(host));
    }
    (world, [a, z])
}

/// Sends messages of these sizes in both directions. They must arrive unaltered.
pub fn exchange(world: &mut World, ids: [AssociationId; 2], sizes: &[usize]) {
    let message = |host: usize, number: usize, size: usize| {
        Bytes::from_iter((0..size).map(|at| (at * 7 + number + 100 * host) as u8))
    };
    for (number, &size) in sizes.iter().enumerate() {
        for host in [A, Z] {
            world.send(host, ids[host], 1, message(host, number, size));
        }
    }
    world.run_for(20 * SECOND);
    for host in [A, Z] {
        let received = world.receive_all(1 - host, ids[1 - host]);
        assert_eq!(received.len(), sizes.len(), "from {}", name(host));
        for (number, it) in received.into_iter().enumerate() {
            let expected = message(host, number, sizes[number]);
            assert!(it.payload.into_bytes() == expected, "message {number}");
        }
    }
}

#[test]
fn nothing_but_the_handshake_and_the_key_management_is_sent_in_clear() {
    let mut world = World::new(strict());
    let a = world.connect();
    world.run_for(SECOND);
    let clear: Vec<_> = world.story.iter().filter(|it| !it.contains(DTLS)).collect();
    assert_eq!(
        clear,
        [
            "A -> INIT -> Z",
            "Z -> INIT ACK -> A",
            "A -> COOKIE ECHO -> Z",
            "Z -> COOKIE ACK, DATA -> A", // the client's hello
            "A -> SACK, DATA -> Z",
        ],
        "{:#?}",
        world.story
    );
    for host in [A, Z] {
        let established = |it: &Event| matches!(it, Event::Established { .. });
        assert_eq!(
            world.told(host).iter().filter(|it| established(it)).count(),
            1
        );
    }
    let z = world.only_association(Z);
    world.forget();
    exchange(&mut world, [a, z], &[1, 100, 1_400, 1_500, 20_000]);
    world.shutdown(A, a);
    world.run_for(SECOND);
    assert_eq!(world.close_reason(Z, z), Some(CloseReason::Shutdown));
    assert!(world.shots.len() > 40);
    for shot in &world.shots {
        assert_eq!(shot.chunks, DTLS);
        assert!(shot.bytes.len() <= 1_480 && shot.bytes.len() % 4 == 0);
        assert_eq!(shot.bytes[16], 0, "the Pre-Padding");
        assert_eq!(shot.bytes[17] & 0xFC, 0x28, "16 bits of number, no length");
    }
    let [sent, received] = [A, Z].map(|host| {
        let counts = world.endpoints[host].associations().next();
        let association = counts.and_then(|id| world.endpoints[host].association(id));
        association.expect("known").protection().statistics()
    });
    assert_eq!(sent.sent_protected, received.received_protected);
    assert_eq!(received.dropped_unprotected + received.aead_failures, 0);
}

#[test]
fn the_user_cannot_send_before_protection_is_established() {
    let mut world = World::new(strict());
    let a = world.connect();
    let early = Bytes::from_static(b"early");
    for _ in 0..12 {
        let now = world.now;
        let association = world.endpoints[A].association_mut(a).expect("known");
        let protected = association.protection().is_active();
        let sent = association.send(now, early.clone(), &SendOptions::on(0));
        let expected = if protected {
            Ok(())
        } else {
            Err(SendError::NotProtected)
        };
        assert_eq!(sent, expected);
        world.run_for(10 * MILLISECOND);
    }
    assert!(world.shots.iter().all(|it| !contains(&it.bytes, b"early")));
    world.run_for(SECOND);
    let z = world.only_association(Z);
    assert!(!world.receive_all(Z, z).is_empty());
}

pub fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|it| it == part)
}

#[test]
fn each_suite_protects() {
    for suite in Suite::ALL {
        let mut settings = settings();
        settings.suite = suite;
        let (mut world, ids) = protected(with_methods(KeyMethods::preshared(settings)));
        exchange(&mut world, ids, &[10, 5_000]);
    }
}

/// Handshake flights that are as long as flights with certificates, and need several chunks.
#[test]
fn long_flights_are_fragmented() {
    let mut settings = settings();
    settings.flights = Flights::CERTIFICATES;
    let (mut world, ids) = protected(with_methods(KeyMethods::preshared(settings)));
    exchange(&mut world, ids, &[10, 5_000]);
}

#[test]
fn another_secret_ends_the_association() {
    let other = KeyMethods::preshared(PresharedSettings::new(b"some other secret"));
    let mut world = World::with_configs(strict(), with_methods(other));
    let a = world.connect();
    world.run_for(SECOND);
    assert_eq!(world.state(A, a), AssociationState::Closed);
    let told = [A, Z].map(|host| world.told(host));
    let established = |it: &Event| matches!(it, Event::Established { .. });
    assert!(!told.iter().flatten().any(established));
}

#[test]
fn loose_mode_goes_without_where_the_peer_does_not_offer_it() {
    let loose = strict().with(|it| it.security = Security::DtlsChunkLoose);
    for (a, z) in [
        (loose.clone(), Config::default()),
        (Config::default(), loose.clone()),
    ] {
        let mut world = World::with_configs(a, z);
        let (a, z) = world.established();
        exchange(&mut world, [a, z], &[10]);
        assert!(world.shots.iter().all(|it| it.chunks != DTLS));
    }
    protected(loose.clone());
    let mut world = World::with_configs(strict(), loose);
    let (a, z) = world.established();
    exchange(&mut world, [a, z], &[10]);
    assert!(world.shots.iter().all(|it| it.chunks == DTLS));
}

/// Strict mode is set between INIT ACK and COOKIE ECHO: a cookie without the DTLS chunk is not
/// accepted.
#[test]
fn a_cookie_without_the_dtls_chunk_is_refused_after_it_was_required() {
    let loose = strict().with(|it| it.security = Security::DtlsChunkLoose);
    for (a, accepted) in [(Config::default(), 0), (strict(), 1)] {
        let mut world = World::with_configs(a, loose.clone());
        world.connect();
        while !world.story.iter().any(|it| it.contains("INIT ACK")) {
            assert!(world.step(2 * SECOND), "{:#?}", world.story);
        }
        let required = |it: &mut Config| it.security = Security::DtlsChunk;
        world.endpoints[Z].change_config(required).expect("valid");
        world.run_for(500 * MILLISECOND);
        assert_eq!(world.endpoints[Z].associations().count(), accepted);
        let refused = discarded(&world, Z, DiscardReason::Unprotected);
        assert_eq!(refused, 1 - accepted as u64);
    }
}

/// Keys of the next epoch are negotiated during a transfer: requested by either end, by both ends,
/// and after a number of packets.
#[test]
fn new_keys_are_negotiated_without_a_gap() {
    let config = strict().with(|it| it.dtls_rekey_packets = Some(15));
    for (config, by) in [
        (strict(), vec![A]),
        (strict(), vec![Z, A]),
        (config, vec![]),
    ] {
        let (mut world, ids) = protected(config);
        for round in 0..6 {
            for host in [A, Z] {
                world.send(host, ids[host], 1, vec![round; 30_000]);
            }
            world.run_for(15 * MILLISECOND);
            for &host in &by {
                let now = world.now;
                let association = world.endpoints[host].association_mut(ids[host]);
                association.expect("known").protection_mut().rekey(now);
                world.drain(host);
            }
            world.run_for(20 * SECOND);
            for host in [A, Z] {
                let received = world.receive_all(host, ids[host]);
                assert_eq!(received.len(), 1);
                assert!(received[0].payload.len() == 30_000);
            }
        }
        let epochs: std::collections::BTreeSet<u8> =
            world.shots.iter().map(|it| it.bytes[17] & 3).collect();
        assert_eq!(epochs.len(), 4, "the two bits of the epoch go round");
        for host in [A, Z] {
            let association = world.endpoints[host].association(ids[host]).expect("known");
            let counts = association.protection().statistics();
            assert_eq!((counts.aead_failures, counts.replayed), (0, 0));
            assert_eq!(association.stats().sender.timeouts, 0);
        }
        assert!(world.shots.iter().all(|it| it.chunks == DTLS));
    }
}

#[test]
fn packets_are_no_longer_than_the_path_mtu_that_is_discovered() {
    let config = strict().with(|it| it.path_mtu_discovery = true);
    let mut world = World::new(config);
    world.fate = Box::new(|shot| {
        if shot.bytes.len() + 20 > 1_400 {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    let (a, z) = world.established();
    world.run_for(60 * SECOND);
    world.forget();
    exchange(&mut world, [a, z], &[50_000]);
    let longest = world.shots.iter().map(|it| it.bytes.len() + 20).max();
    assert!(
        (1_390..=1_400).contains(&longest.expect("sent")),
        "{longest:?}"
    );
}

/// After a restart with the restart keys, the association is still protected, and new keys are
/// negotiated.
#[test]
fn a_peer_that_lost_its_state_restarts_with_its_restart_keys() {
    let (mut world, [a, z]) = protected(strict());
    exchange(&mut world, [a, z], &[10]);
    let association = world.endpoints[A].association(a).expect("known");
    let keys = association.protection().restart_keys().expect("negotiated");
    assert_eq!(keys.epoch, 3);
    // A loses all other state.
    let config = world.endpoints[A].config().clone();
    world.endpoints[A] = Endpoint::new(config, PORT_A, [9; 32]).expect("settings");
    world.forget();
    let now = world.now;
    let a = world.endpoints[A]
        .connect(now, &[address(Z, 0)], PORT_Z)
        .expect("no association yet");
    let association = world.endpoints[A].association_mut(a).expect("known");
    assert!(association.protection_mut().restart_with(&keys));
    world.drain(A);
    world.run_for(SECOND);
    let clear: Vec<_> = world.story.iter().filter(|it| !it.contains(DTLS)).collect();
    assert_eq!(clear, ["A -> INIT -> Z", "Z -> INIT ACK -> A"]);
    let restart = world.shots.iter().filter(|it| it.chunks == DTLS);
    let bits: Vec<u8> = restart.map(|it| it.bytes[13]).collect();
    assert_eq!(bits[..2], [1, 1], "COOKIE ECHO and COOKIE ACK");
    assert_eq!(bits.last(), Some(&0), "then there are new keys");
    assert!(
        (world.told(Z).iter()).any(|it| matches!(it, Event::Restarted { .. })),
        "{:?}",
        world.told(Z)
    );
    exchange(&mut world, [a, z], &[10, 5_000]);
    // Keys for the next restart are available when no packet of this restart can be in flight any
    // more.
    let keys = |world: &World| {
        let association = world.endpoints[A].association(a).expect("known");
        association.protection().restart_keys().map(|it| it.epoch)
    };
    assert_eq!(keys(&world), None);
    world.run_for(200 * SECOND);
    assert_eq!(keys(&world), Some(3));
}

#[test]
fn a_restart_without_the_keys_is_refused() {
    let (mut world, [_, z]) = protected(strict());
    let config = world.endpoints[A].config().clone();
    world.endpoints[A] = Endpoint::new(config, PORT_A, [9; 32]).expect("settings");
    world.forget();
    let a = world.connect();
    world.run_for(3 * SECOND);
    assert_eq!(world.state(A, a), AssociationState::CookieEchoed);
    assert_eq!(world.state(Z, z), AssociationState::Established);
    let association = world.endpoints[Z].association(z).expect("known");
    assert!(association.protection().is_active());
    assert!(!(world.told(Z).iter()).any(|it| matches!(it, Event::Restarted { .. })));
    let unprotected = wrong::discarded(&world, Z, anabranch_sctp::DiscardReason::Unprotected);
    assert!(
        unprotected >= 2,
        "each COOKIE ECHO is counted: {unprotected}"
    );
}

#[test]
fn both_ends_may_call_at_the_same_time() {
    let mut world = World::new(strict());
    world.endpoints[A].listen(true);
    let now = world.now;
    let a = world.endpoints[A]
        .connect(now, &[address(Z, 0)], PORT_Z)
        .expect("no association yet");
    let z = world.endpoints[Z]
        .connect(now, &[address(A, 0)], PORT_A)
        .expect("no association yet");
    world.drain(A);
    world.drain(Z);
    world.run_for(5 * SECOND);
    for (host, id) in [(A, a), (Z, z)] {
        let association = world.endpoints[host].association(id).expect("known");
        assert!(association.protection().is_active(), "{:#?}", world.story);
    }
    let role = |host: usize, id| {
        let association = world.endpoints[host].association(id).expect("known");
        association.protection().agreement().expect("agreed").role
    };
    assert_ne!(role(A, a), role(Z, z));
    exchange(&mut world, [a, z], &[10, 3_000]);
}

/// Abstract API of §7: the user is the key management.
#[test]
fn the_user_may_install_the_keys() {
    let mut world = World::new(with_methods(KeyMethods::external(&[200])));
    let a = world.connect();
    let early = KeyMaterial::from_secret(Suite::Aes128Gcm, &[1; 32]);
    let association = world.endpoints[A].association_mut(a).expect("known");
    for installed in [
        association
            .protection_mut()
            .install_send_keys(KeyId::primary(3), &early),
        association
            .protection_mut()
            .install_receive_keys(KeyId::primary(3), &early),
    ] {
        assert_eq!(installed, Err(InstallError::NotUsed), "in COOKIE-WAIT");
    }
    world.run_for(SECOND);
    let z = world.only_association(Z);
    let agreements = [(A, a), (Z, z)].map(|(host, _)| {
        let told = world.told(host);
        let required = told.iter().find_map(|it| match it {
            Event::KeysRequired(agreement) => Some((**agreement).clone()),
            _ => None,
        });
        required.expect("the user is asked for keys")
    });
    assert_ne!(agreements[A].role, agreements[Z].role);
    assert_eq!(agreements[A].method, 200);
    assert_eq!(
        agreements[A].client_parameter,
        agreements[Z].client_parameter
    );
    assert_eq!(
        agreements[A].server_parameter,
        agreements[Z].server_parameter
    );
    let secret = |role| match role {
        Role::Client => [1; 32],
        Role::Server => [2; 32],
    };
    let keys = |role| KeyMaterial::from_secret(Suite::Aes128Gcm, &secret(role));
    let other = |role| match role {
        Role::Client => Role::Server,
        Role::Server => Role::Client,
    };
    for (host, id) in [(A, a), (Z, z)] {
        let role = agreements[host].role;
        let association = world.endpoints[host].association_mut(id).expect("known");
        let wrong = association
            .protection_mut()
            .install_receive_keys(KeyId::primary(4), &keys(role));
        assert!(wrong.is_err(), "the first epoch is 3");
        (association
            .protection_mut()
            .install_receive_keys(KeyId::primary(3), &keys(other(role))))
        .expect("3");
    }
    for (host, id) in [(A, a), (Z, z)] {
        let role = agreements[host].role;
        let association = world.endpoints[host].association_mut(id).expect("known");
        (association
            .protection_mut()
            .install_send_keys(KeyId::primary(3), &keys(role)))
        .expect("3");
        association.protection_mut().require();
        world.drain(host);
    }
    world.forget();
    exchange(&mut world, [a, z], &[10, 3_000]);
    assert!(world.shots.iter().all(|it| it.chunks == DTLS));
}

/// Key management messages are found also by a receiver that is created before the first DATA,
/// because an extension needs it.
#[test]
fn keys_are_negotiated_with_each_extension() {
    let extensions: [fn(&mut Config); 3] = [
        |it| it.partial_reliability = true,
        |it| it.reconfiguration = true,
        |it| it.interleaving = true,
    ];
    for extend in extensions {
        let (mut world, ids) = protected(strict().with(extend));
        exchange(&mut world, ids, &[10, 3_000]);
    }
}

/// Key management messages are returned to the user only if the user is the key management.
#[test]
fn messages_of_key_management_are_not_the_users() {
    let (mut world, ids) = protected(strict());
    world.send(A, ids[A], 0, &b"before"[..]);
    let now = world.now;
    (world.endpoints[A].association_mut(ids[A]).expect("known"))
        .protection_mut()
        .rekey(now);
    world.drain(A);
    world.send(A, ids[A], 0, &b"behind"[..]);
    world.run_for(SECOND);
    let received = world.receive_all(Z, ids[Z]);
    world.run_for(SECOND);
    let ppids: Vec<u32> = received.iter().map(|it| it.ppid).collect();
    assert_eq!(ppids, [0, 0]);
    assert_ne!(ppids[0], PPID_DTLS_KEY_MANAGEMENT);
    let association = world.endpoints[A].association(ids[A]).expect("known");
    assert_eq!(
        association
            .protection()
            .restart_keys()
            .expect("negotiated")
            .epoch,
        4
    );
}

/// The DTLS Key Management Parameter is only in INIT and INIT ACK, and AUTH is not offered together
/// with it.
#[test]
fn init_and_init_ack_have_the_parameter() {
    use anabranch_wire::extension::InitParameter;
    use anabranch_wire::tlv::TlvList;
    let mut world = World::new(strict());
    world.connect();
    world.run_for(SECOND);
    for (from, chunks) in [(A, "INIT"), (Z, "INIT ACK")] {
        let parameters = match &chunks_of(&world.shot(from, chunks))[0] {
            Chunk::Init(init) => init.parameters.clone(),
            Chunk::InitAck(ack) => ack.parameters.clone(),
            other => panic!("{other:?}"),
        };
        let list = TlvList::<InitParameter>::from_bytes(parameters.as_bytes().clone());
        let of: Vec<_> = list.iter().map(|it| it.expect("sound")).collect();
        let said: Vec<_> = of
            .iter()
            .filter_map(|it| match it {
                InitParameter::DtlsKeyManagement(it) => Some(it),
                _ => None,
            })
            .collect();
        assert_eq!(said.len(), 1);
        assert!(said[0].restart && said[0].server && said[0].client);
        assert_eq!(said[0].methods[..], [250]);
        let random = |it: &InitParameter| matches!(it, InitParameter::Random(_));
        assert!(!of.iter().any(random));
    }
}

#[test]
fn settings_that_contradict_it_are_refused() {
    use anabranch_sctp::Authentication;
    let auth = strict().with(|it| it.authentication = Authentication::On);
    let bare = strict().with(|it| it.minimal_init = true);
    let moves = strict().with(|it| {
        it.profile.asconf_without_auth = true;
        it.address_changes = true;
    });
    let large = strict().with(|it| it.mtu = 20_000);
    for config in [auth, bare, moves, large] {
        let error = Endpoint::new(config, PORT_A, [1; 32]).expect_err("refused");
        assert!(["security", "mtu"].contains(&error.field), "{error}");
    }
}
