//! DTLS chunk with certificates (draft-porfiri-tsvwg-sctp-dtls-handshake).

use crate::common;
use crate::dtls::{DTLS, exchange, protected, with_methods};

use std::sync::{Arc, OnceLock};

use anabranch_dtls::tls::{Credentials, METHOD, Tls, TlsSettings, Trust};
use anabranch_sctp::{AssociationState, CloseReason, Event, KeyMethods, Violation};
use anabranch_transport::time::{MILLISECOND, SECOND};
use common::*;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_ED25519, SanType,
};

const NAME: &str = "spiffe://example.org/peer";

fn key() -> KeyPair {
    // Signatures of this algorithm have a constant length, so that the seed determines the sizes of
    // packets.
    KeyPair::generate_for(&PKCS_ED25519).expect("a key")
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, key()).expect("signed")
}

fn common_authority() -> &'static CertifiedIssuer<'static, KeyPair> {
    static AUTHORITY: OnceLock<CertifiedIssuer<'static, KeyPair>> = OnceLock::new();
    AUTHORITY.get_or_init(authority)
}

/// Key management method of an end that has a certificate of `issuer` and accepts peers of the
/// common authority. `long`: its certificate chain does not fit into the initial cwnd.
fn method_by(issuer: &CertifiedIssuer<'static, KeyPair>, long: bool) -> KeyMethods {
    let own = key();
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.subject_alt_names = vec![SanType::URI(NAME.try_into().expect("ASCII"))];
    let mut chain = params.signed_by(&own, issuer).expect("signed").pem();
    for _ in 0..if long { 40 } else { 0 } {
        chain += &issuer.pem();
    }
    let own = own.serialize_pem();
    let credentials = Credentials::from_pem(chain.as_bytes(), own.as_bytes()).expect("PEM");
    let trusted = common_authority().pem();
    let trust = Trust::default().with_authorities(trusted.as_bytes());
    let trust = trust.expect("PEM").with_name(NAME);
    let settings = Arc::new(TlsSettings::new(credentials, trust, false).expect("they fit"));
    KeyMethods::managed(METHOD, true, move |_| Box::new(Tls::new(settings.clone())))
}

pub fn methods(long: bool) -> KeyMethods {
    method_by(common_authority(), long)
}

fn proofs(world: &World, host: usize) -> usize {
    let told = world.told(host);
    told.iter()
        .filter(|it| matches!(it, Event::PeerAuthenticated(peer) if peer.names == [NAME]))
        .count()
}

#[test]
fn both_ends_authenticate_before_the_user_can_send() {
    for long in [false, true] {
        let mut world = World::new(with_methods(methods(long)));
        let a = world.connect();
        world.run_for(10 * SECOND);
        let ids = [a, world.only_association(Z)];
        for (host, id) in [A, Z].into_iter().zip(ids) {
            let association = world.endpoints[host].association(id).expect("known");
            let identity = association
                .protection()
                .peer_identity()
                .expect("authenticated");
            assert_eq!(identity.to_string(), NAME);
            assert!(association.protection().restart_keys().is_some());
            let told = world.told(host);
            let of = |found: fn(&Event) -> bool| told.iter().position(found).expect("reported");
            let proved = of(|it| matches!(it, Event::PeerAuthenticated(_)));
            assert!(proved < of(|it| matches!(it, Event::Established { .. })));
        }
        exchange(&mut world, ids, &[1, 1_000, 5_000]);
    }
}

#[test]
fn both_ends_authenticate_again_with_each_rekeying() {
    let (mut world, [a, z]) = protected(with_methods(methods(false)));
    for (host, id) in [(A, a), (Z, z)] {
        world.forget();
        let now = world.now;
        let association = world.endpoints[host].association_mut(id).expect("known");
        association.protection_mut().rekey(now);
        world.drain(host);
        exchange(&mut world, [a, z], &[100]);
        assert_eq!([proofs(&world, A), proofs(&world, Z)], [1, 1]);
        assert!(world.shots.iter().all(|it| it.chunks == DTLS));
    }
}

#[test]
fn a_peer_of_another_authority_is_refused() {
    let other = authority();
    let of_other = with_methods(method_by(&other, false));
    let mut world = World::with_configs(of_other, with_methods(methods(false)));
    let a = world.connect();
    world.run_for(5 * SECOND);
    let z = world.only_association(Z);
    let reason = "the peer's certificate is of an authority that is not trusted";
    let violation = CloseReason::PeerViolation(Violation::Protocol(reason));
    let reasons = [world.close_reason(A, a), world.close_reason(Z, z)];
    assert!(reasons.contains(&Some(violation)), "{reasons:?}");
    for host in [A, Z] {
        let established = |it: &Event| matches!(it, Event::Established { .. });
        assert!(!world.told(host).iter().any(established));
    }
}

/// The server protects its packets before the client does. If SACKs of the client are lost at that
/// time, the server must still accept the client's later SACKs, although they are unprotected.
#[test]
fn lost_acknowledgments_of_a_long_handshake_delay_it_but_do_not_end_it() {
    for lost in 1..12 {
        let mut world = World::new(with_methods(methods(true)));
        let mut acknowledgments = 0;
        world.fate = Box::new(move |shot| {
            if !shot.chunks.contains("SACK") {
                return Fate::Deliver;
            }
            acknowledgments += 1;
            if acknowledgments == lost || acknowledgments == lost + 1 {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        });
        let a = world.connect();
        world.run_for(40 * SECOND);
        let z = world.only_association(Z);
        for (host, id) in [(A, a), (Z, z)] {
            let state = world.state(host, id);
            assert_eq!(
                state,
                AssociationState::Established,
                "{lost}: {:#?}",
                world.story
            );
            let association = world.endpoints[host].association(id).expect("known");
            assert!(
                association.protection().is_active(),
                "{lost}: {:#?}",
                world.story
            );
        }
        world.run_for(10 * MILLISECOND);
        exchange(&mut world, [a, z], &[100]);
    }
}
