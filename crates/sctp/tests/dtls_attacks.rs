//! Attacks on associations that use the DTLS chunk: downgrade, replay, forgery, and peers that do
//! not complete the handshake (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5, §10).

use crate::common;
use crate::dtls::{DTLS, contains, exchange, protected, strict};

use anabranch_sctp::{
    AssociationId, AssociationState, CloseReason, Config, DiscardReason, Endpoint, Event,
    RestartKeys, Security, SendOptions, Violation,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::Causes;
use anabranch_wire::chunk::{Abort, Chunk, ErrorChunk};
use anabranch_wire::parameter::{Parameter, Parameters, kind};
use anabranch_wire::serial::Ssn;
use anabranch_wire::tlv::Tlv;
use bytes::Bytes;
use common::wrong::discarded;
use common::*;

/// Packet whose DTLS Key Management Parameter is changed by `change`, or omitted.
fn changed(from: usize, bytes: &Bytes, change: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Bytes {
    let new = |parameters: &Parameters| {
        let list = parameters.iter().filter_map(|it| match it.expect("sound") {
            Parameter::Unknown(tlv) if tlv.kind == kind::DTLS_KEY_MANAGEMENT => {
                let value = change(tlv.value())?;
                Some(Parameter::Unknown(
                    Tlv::new(tlv.kind, &value).expect("short"),
                ))
            }
            other => Some(other),
        });
        Parameters::of(&list.collect::<Vec<_>>())
    };
    let chunk = match chunks_of(bytes).remove(0) {
        Chunk::Init(mut init) => {
            init.parameters = new(&init.parameters);
            Chunk::Init(init)
        }
        Chunk::InitAck(mut ack) => {
            ack.0.parameters = new(&ack.parameters);
            Chunk::InitAck(ack)
        }
        other => panic!("{other:?}"),
    };
    packet(from, header_of(bytes).verification_tag, &[&chunk])
}

/// World in which an attacker alters the INIT of A or the INIT ACK of Z.
fn tampered(security: Security, victim: usize, change: impl Fn(&[u8]) -> Option<Vec<u8>>) -> World {
    let config = strict().with(|it| it.security = security);
    let mut world = World::new(config);
    let name = ["INIT", "INIT ACK"][victim];
    world.fate = lose(name, 1);
    world.connect();
    world.run_for(15 * MILLISECOND);
    let bytes = changed(victim, &world.shot(victim, name), change);
    world.inject(1 - victim, bytes);
    world.run_for(500 * MILLISECOND);
    world
}

/// Error causes of the ABORTs that `from` has sent.
fn causes(world: &World, from: usize) -> Vec<u16> {
    let aborts = world.shots.iter().filter(|it| it.from == from);
    let chunks = aborts.flat_map(|it| chunks_of(&it.bytes));
    chunks
        .filter_map(|it| match it {
            Chunk::Abort(Abort { causes, .. }) => causes.iter().next()?.ok().map(|it| it.code()),
            _ => None,
        })
        .collect()
}

#[test]
fn an_offer_without_the_parameter_is_refused_in_strict_mode() {
    for victim in [A, Z] {
        let world = tampered(Security::DtlsChunk, victim, |_| None);
        assert_eq!(causes(&world, 1 - victim), [100], "{:#?}", world.story);
        // A refused INIT is counted by its reason; a refused INIT ACK is the reason of the close.
        let refused = world.endpoints[Z].discards().of(DiscardReason::DtlsOffer);
        assert_eq!(refused, u64::from(victim == A));
        let told = world.told(A);
        let established = |it: &Event| matches!(it, Event::Established { .. });
        assert!(!told.iter().any(established));
        let closed = |it: &Event| matches!(it, Event::Closed(_));
        assert!(told.iter().any(closed), "{told:?}");
    }
}

#[test]
fn other_methods_and_roles_are_refused_with_their_cause() {
    for victim in [A, Z] {
        let of_method = |value: &[u8]| Some([&value[..5], &[7]].concat());
        let world = tampered(Security::DtlsChunk, victim, of_method);
        assert_eq!(causes(&world, 1 - victim), [101]);
        let without_roles = |value: &[u8]| Some([&value[..4], &[4], &value[5..]].concat());
        let world = tampered(Security::DtlsChunk, victim, without_roles);
        assert_eq!(causes(&world, 1 - victim), [103]);
    }
}

/// If an attacker changes any bit of a parameter, no keys are negotiated, even in loose mode,
/// because the keys are derived from both parameters.
#[test]
fn parameters_that_were_changed_on_the_way_end_the_association() {
    for security in [Security::DtlsChunk, Security::DtlsChunkLoose] {
        for victim in [A, Z] {
            // Changes of the tie breaker, reserved bits and the R bit. If a change leaves no common
            // role or method, loose mode continues without protection.
            for (byte, bit) in [(0, 0x80), (1, 1), (3, 1), (4, 4), (4, 0x08), (4, 0x80)] {
                let world = tampered(security, victim, |value| {
                    let mut value = value.to_vec();
                    value[byte] ^= bit;
                    Some(value)
                });
                let told = [A, Z].map(|host| world.told(host));
                let established = |it: &Event| matches!(it, Event::Established { .. });
                assert!(
                    !told.iter().flatten().any(established),
                    "byte {byte}: {:#?}",
                    world.story
                );
            }
        }
    }
}

#[test]
fn packets_that_are_not_protected_are_counted_and_have_no_effect() {
    let (mut world, ids) = protected(strict());
    exchange(&mut world, ids, &[10]);
    let tags = [world.tag_sent_by(Z), world.tag_sent_by(A)];
    for host in [A, Z] {
        let before = world.endpoints[host].association(ids[host]).expect("known");
        let (point, stats) = (before.cumulative_tsn(), before.stats());
        let chunks: [&[u8]; 8] = [
            &[
                0, 3, 0, 17, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, b'!', 0, 0, 0,
            ],
            &[3, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0],
            &[4, 0, 0, 8, 0, 1, 0, 4],
            &[6, 0, 0, 4],
            &[7, 0, 0, 8, 0, 0, 0, 1],
            &[9, 0, 0, 4],
            &[11, 0, 0, 4],
            &[0x84, 0, 0, 4],
        ];
        for (number, chunk) in chunks.into_iter().enumerate() {
            world.inject(host, raw_packet(1 - host, tags[host], chunk));
            let count = discarded(&world, host, DiscardReason::Unprotected);
            assert_eq!(count, number as u64 + 1, "{chunk:?}");
        }
        let after = world.endpoints[host].association(ids[host]).expect("known");
        assert_eq!(after.state(), AssociationState::Established);
        assert_eq!((after.cumulative_tsn(), after.stats()), (point, stats));
        assert_eq!(after.protection().statistics().dropped_unprotected, 8);
    }
    exchange(&mut world, ids, &[10]);
}

#[test]
fn packets_that_were_seen_before_are_discarded() {
    let (mut world, ids) = protected(strict());
    exchange(&mut world, ids, &[10, 3_000]);
    let shots = std::mem::take(&mut world.shots);
    for shot in &shots {
        world.inject(1 - shot.from, shot.bytes.clone());
    }
    for host in [A, Z] {
        let sent = shots.iter().filter(|it| it.from != host).count() as u64;
        assert_eq!(discarded(&world, host, DiscardReason::ReplayedDtls), sent);
        assert!(world.receive_all(host, ids[host]).is_empty());
    }
    exchange(&mut world, ids, &[10]);
}

#[test]
fn records_that_were_changed_or_cut_are_discarded() {
    let (mut world, ids) = protected(strict());
    world.send(A, ids[A], 0, vec![7; 200]);
    let shot = world.shots.last().expect("sent").bytes.clone();
    assert_eq!(describe(&shot), DTLS);
    let tag = header_of(&shot).verification_tag;
    let mut injected = 0;
    // Reserved flags and padding are ignored: 1 byte before the record and 3 bytes after it.
    for at in (12..shot.len() - 3).filter(|at| ![13, 16].contains(at)) {
        let mut bytes = shot[12..].to_vec();
        bytes[at - 12] ^= 0x20;
        world.inject(Z, raw_packet(A, tag, &bytes));
        let mut cut = shot[12..at].to_vec();
        if cut.len() >= 4 {
            // Valid chunk that contains only part of the record.
            let length = cut.len() as u16;
            cut[2..4].copy_from_slice(&length.to_be_bytes());
            cut.resize(cut.len().next_multiple_of(4), 0);
        }
        world.inject(Z, raw_packet(A, tag, &cut));
        injected += 2;
    }
    assert!(injected > 400);
    let association = world.endpoints[Z].association(ids[Z]).expect("known");
    assert_eq!(association.state(), AssociationState::Established);
    assert!(association.protection().statistics().aead_failures > 400);
    assert!(
        world.shots.iter().all(|it| it.chunks == DTLS),
        "nothing is answered in clear"
    );
    world.run_for(SECOND);
    let received = world.receive_all(Z, ids[Z]);
    assert_eq!(received.len(), 1, "and the packet itself arrived once");
}

#[test]
fn a_dtls_chunk_with_another_chunk_is_discarded() {
    let (mut world, ids) = protected(strict());
    world.send(A, ids[A], 0, vec![7; 200]);
    let shot = world.shots.last().expect("sent").bytes.clone();
    let tag = header_of(&shot).verification_tag;
    let pad = [0x84, 0, 0, 4];
    world.inject(Z, raw_packet(A, tag, &[&shot[12..], &pad].concat()));
    assert_eq!(discarded(&world, Z, DiscardReason::BundledDtls), 1);
    // Such a packet is also dropped while protection is not required yet, even if the other chunk
    // precedes the DTLS chunk.
    let mut world = World::new(strict());
    world.fate = Box::new(|shot| match contains(shot.chunks.as_bytes(), b"DATA") {
        true => Fate::Drop,
        false => Fate::Deliver,
    });
    world.connect();
    world.run_for(100 * MILLISECOND);
    let tag = world.tag_sent_by(A);
    world.inject(Z, raw_packet(A, tag, &[&pad[..], &shot[12..]].concat()));
    assert_eq!(discarded(&world, Z, DiscardReason::BundledDtls), 1);
}

/// T3-rtx ends the association, and the user is never notified that it was established.
#[test]
fn a_peer_that_never_finishes_is_abandoned() {
    let mut world = World::new(strict());
    let a = world.connect();
    world.fate = Box::new(|shot| {
        if shot.from == Z && contains(shot.chunks.as_bytes(), b"DATA") {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    world.run_for(100 * SECOND);
    assert_eq!(
        world.state(A, a),
        AssociationState::Closed,
        "{:?}",
        world.told(A)
    );
    for host in [A, Z] {
        let told = world.told(host);
        let established = |it: &Event| matches!(it, Event::Established { .. });
        assert!(!told.iter().any(established), "{told:?}");
    }
    assert!(world.shots.len() < 200, "{}", world.shots.len());
}

/// User data that arrives before the keys is treated as an attack, and does not reach the user.
#[test]
fn user_data_before_the_keys_ends_the_association() {
    let mut world = World::new(strict());
    let a = world.connect();
    world.run_for(25 * MILLISECOND);
    world.fate = Box::new(|_| Fate::Drop);
    world.run_for(100 * MILLISECOND);
    let z = world.only_association(Z);
    let tsn = match chunks_of(&world.shot(A, "INIT")).remove(0) {
        Chunk::Init(init) => init.initial_tsn.0,
        other => panic!("{other:?}"),
    };
    let data = packet(A, world.tag_sent_by(A), &[&wrong::data(tsn, b"clear")]);
    world.inject(Z, data);
    assert!(world.receive_all(Z, z).iter().all(|it| it.ppid != 0));
    assert!(
        matches!(
            world.close_reason(Z, z),
            Some(CloseReason::PeerViolation(_))
        ),
        "{:?}",
        world.close_reason(Z, z)
    );
    let _ = a;
}

/// An attacker that has recorded the whole association can neither restart, nor move, nor end it.
#[test]
fn a_recorded_handshake_cannot_be_replayed() {
    let mut world = World::new(strict());
    let a = world.connect();
    world.run_for(SECOND);
    let z = world.only_association(Z);
    let shots = std::mem::take(&mut world.shots);
    for shot in &shots {
        world.inject(1 - shot.from, shot.bytes.clone());
        world.run_for(10 * MILLISECOND);
    }
    world.run_for(SECOND);
    for (host, id) in [(A, a), (Z, z)] {
        let association = world.endpoints[host].association(id).expect("known");
        assert!(association.protection().is_active());
        assert_eq!(association.state(), AssociationState::Established);
    }
    exchange(&mut world, [a, z], &[100]);
}

/// User data that arrived before the keys and waits for earlier messages of its stream must not be
/// delivered when those messages arrive protected.
#[test]
fn user_data_before_the_keys_that_cannot_be_read_yet_ends_the_association() {
    let mut world = World::new(strict());
    let a = world.connect();
    world.run_for(25 * MILLISECOND);
    world.fate = Box::new(|_| Fate::Drop);
    world.run_for(100 * MILLISECOND);
    let z = world.only_association(Z);
    let tsn = match chunks_of(&world.shot(A, "INIT")).remove(0) {
        Chunk::Init(init) => init.initial_tsn.0,
        other => panic!("{other:?}"),
    };
    let Chunk::Data(mut data) = wrong::data(tsn.wrapping_add(3), b"clear") else {
        panic!("DATA");
    };
    (data.stream_id, data.ssn) = (1, Ssn(1));
    let packet = packet(A, world.tag_sent_by(A), &[&Chunk::Data(data)]);
    world.inject(Z, packet);
    world.fate = Box::new(|_| Fate::Deliver);
    world.run_for(10 * SECOND);
    for message in [&b"first"[..], b"second"] {
        let now = world.now;
        let association = world.endpoints[A].association_mut(a).expect("known");
        let _ = association.send(now, Bytes::from_static(message), &SendOptions::on(1));
        world.drain(A);
    }
    world.run_for(10 * SECOND);
    let read = world.receive_all(Z, z);
    assert!(read.is_empty(), "{read:?}");
    assert!(
        matches!(
            world.close_reason(Z, z),
            Some(CloseReason::PeerViolation(_))
        ),
        "{:?}",
        world.close_reason(Z, z)
    );
    let established = |it: &Event| matches!(it, Event::Established { .. });
    assert!(!world.told(Z).iter().any(established));
}

/// World with a protected association, in which A has lost all state except the restart keys and
/// connects to Z again. Later packets have the fate `fate`.
fn restarting(
    config: Config,
    fate: Box<dyn FnMut(&Shot) -> Fate>,
) -> (World, [AssociationId; 2], RestartKeys) {
    let (mut world, [a, z]) = protected(config);
    let association = world.endpoints[A].association(a).expect("known");
    let keys = association.protection().restart_keys().expect("negotiated");
    let config = world.endpoints[A].config().clone();
    world.endpoints[A] = Endpoint::new(config, PORT_A, [9; 32]).expect("settings");
    world.forget();
    world.fate = fate;
    let now = world.now;
    let a = world.endpoints[A]
        .connect(now, &[address(Z, 0)], PORT_Z)
        .expect("no association yet");
    let association = world.endpoints[A].association_mut(a).expect("known");
    assert!(association.protection_mut().restart_with(&keys));
    world.drain(A);
    (world, [a, z], keys)
}

fn lose_records_of(host: usize) -> Box<dyn FnMut(&Shot) -> Fate> {
    Box::new(move |shot| match shot.from == host && shot.chunks == DTLS {
        true => Fate::Drop,
        false => Fate::Deliver,
    })
}

fn is_restarted(world: &World, host: usize) -> bool {
    let told = world.told(host);
    told.iter().any(|it| matches!(it, Event::Restarted { .. }))
}

#[test]
fn an_end_that_restarts_takes_nothing_in_clear() {
    let (mut world, [a, z], _) = restarting(strict(), lose_records_of(A));
    world.run_for(100 * MILLISECOND);
    assert_eq!(world.state(A, a), AssociationState::CookieEchoed);
    let tsn = match chunks_of(&world.shot(Z, "INIT ACK")).remove(0) {
        Chunk::InitAck(ack) => ack.initial_tsn.0,
        other => panic!("{other:?}"),
    };
    let tag = world.tag_sent_by(Z);
    let data = wrong::data(tsn, b"forged");
    let error = Chunk::Error(ErrorChunk {
        causes: Causes::empty(),
    });
    for (number, chunks) in [
        &[&Chunk::CookieAck, &data][..],
        &[&Chunk::CookieAck],
        &[&error, &Chunk::CookieAck, &data],
    ]
    .into_iter()
    .enumerate()
    {
        world.inject(A, packet(Z, tag, chunks));
        let count = discarded(&world, A, DiscardReason::Unprotected);
        assert_eq!(count, number as u64 + 1, "{chunks:?}");
        assert_eq!(world.state(A, a), AssociationState::CookieEchoed);
        assert!(world.receive_all(A, a).is_empty());
    }
    world.fate = Box::new(|_| Fate::Deliver);
    world.run_for(5 * SECOND);
    assert!(is_restarted(&world, Z));
    exchange(&mut world, [a, z], &[10]);
}

/// An attacker removes the parameter from the INIT of a restart, and adds it to the INIT ACK. The
/// cookie is then for an association without the DTLS chunk.
#[test]
fn a_restart_does_not_end_the_protection_even_in_loose_mode() {
    let loose = strict().with(|it| it.security = Security::DtlsChunkLoose);
    let (mut world, [_, z], _) = restarting(loose.clone(), lose("INIT", 1));
    world.run_for(15 * MILLISECOND);
    let init = changed(A, &world.shot(A, "INIT"), |_| None);
    world.fate = lose("INIT ACK", 1);
    world.inject(Z, init);
    let ack = world.shot(Z, "INIT ACK");
    let Chunk::InitAck(mut init_ack) = chunks_of(&ack).remove(0) else {
        panic!("INIT ACK");
    };
    let value = [0, 0, 0, 1, 7, 250];
    let added = Tlv::new(kind::DTLS_KEY_MANAGEMENT, &value).expect("short");
    let list = init_ack.0.parameters.iter().map(|it| it.expect("sound"));
    let list: Vec<_> = list.chain([Parameter::Unknown(added)]).collect();
    init_ack.0.parameters = Parameters::of(&list);
    let tag = header_of(&ack).verification_tag;
    world.inject(A, packet(Z, tag, &[&Chunk::InitAck(init_ack)]));
    world.run_for(500 * MILLISECOND);
    assert!(
        world
            .shots
            .iter()
            .any(|it| it.from == A && it.chunks == DTLS)
    );
    assert!(!is_restarted(&world, Z));
    let association = world.endpoints[Z].association(z).expect("known");
    assert!(association.protection().is_active());
    assert!(discarded(&world, Z, DiscardReason::Unprotected) > 0);
    // Conversely, the attacker removes the parameter from an INIT ACK.
    let (mut world, [a, _], _) = restarting(loose, lose("INIT ACK", 1));
    world.run_for(15 * MILLISECOND);
    let ack = changed(Z, &world.shot(Z, "INIT ACK"), |_| None);
    world.inject(A, ack);
    world.run_for(500 * MILLISECOND);
    assert!(!world.story.iter().any(|it| it.contains("COOKIE ECHO")));
    assert_eq!(world.state(A, a), AssociationState::Closed);
    // The ABORT is protected by the restart keys.
    let words = "an INIT ACK without the DTLS chunk, which is required here";
    let violation = Some(CloseReason::PeerViolation(Violation::Protocol(words)));
    assert_eq!(world.close_reason(A, a), violation);
}

/// After a Stale Cookie error, the handshake of a restart starts again with the same keys, but must
/// not use the same nonces.
#[test]
fn restart_keys_that_have_sealed_cannot_be_set_again() {
    let (mut world, [a, _], keys) = restarting(strict(), lose_records_of(A));
    world.run_for(62 * SECOND);
    assert_eq!(world.state(A, a), AssociationState::CookieEchoed);
    world.fate = lose("INIT ACK", 1);
    world.run_for(2 * SECOND);
    assert_eq!(
        world.state(A, a),
        AssociationState::CookieWait,
        "{:#?}",
        world.story
    );
    let association = world.endpoints[A].association_mut(a).expect("known");
    assert!(!association.protection_mut().restart_with(&keys));
    // The timer of the handshake has been doubled to its maximum.
    world.run_for(70 * SECOND);
    assert!(is_restarted(&world, Z));
    let association = world.endpoints[A].association(a).expect("known");
    assert!(association.protection().is_active());
}
