use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType, date_time_ymd,
};
use sha2::{Digest, Sha256};

use super::*;
use crate::end::{End, talk};
use crate::epochs::DRAIN;
use crate::record::{HEADER, OpenError};

const PARAMETERS: [&[u8]; 2] = [
    &[0x80, 6, 0, 10, 0, 0, 0, 1, 7, METHOD],
    &[0x80, 6, 0, 10, 0, 0, 0, 2, 7, METHOD],
];
const AMF: &str = "spiffe://example.org/amf";
const GNB: &str = "spiffe://example.org/gnb";

struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key, in PEM format, and its fingerprint.
struct Issued {
    certificate: String,
    key: String,
    fingerprint: [u8; 32],
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn issue(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = vec![SanType::URI(name.try_into().unwrap())];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Issued {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            fingerprint: Sha256::digest(certificate.der()).into(),
        }
    }

    fn trust(&self) -> Trust {
        let pem = self.0.pem();
        Trust::default().with_authorities(pem.as_bytes()).unwrap()
    }
}

fn settings(own: &Issued, trust: Trust) -> Arc<TlsSettings> {
    let credentials =
        Credentials::from_pem(own.certificate.as_bytes(), own.key.as_bytes()).unwrap();
    Arc::new(TlsSettings::new(credentials, trust, false).unwrap())
}

fn start(settings: [Arc<TlsSettings>; 2], parameters: [[&[u8]; 2]; 2]) -> [End; 2] {
    let mut ends = settings.map(|it| End::new(Tls::new(it)));
    ends[0].start(Role::Client, parameters[0], None);
    ends[1].start(Role::Server, parameters[1], None);
    talk(0, &mut ends);
    ends
}

/// Settings of two ends with one authority, each of which accepts only the name of the other.
fn settings_of_pair() -> [Arc<TlsSettings>; 2] {
    let authority = Authority::new();
    let [gnb, amf] = [GNB, AMF].map(|it| authority.issue(it, |_| {}));
    [
        settings(&gnb, authority.trust().with_name(AMF)),
        settings(&amf, authority.trust().with_name(GNB)),
    ]
}

fn established() -> [End; 2] {
    start(settings_of_pair(), [PARAMETERS; 2])
}

fn exchange(ends: &mut [End; 2]) {
    for (from, to) in [(0, 1), (1, 0)] {
        let record = ends[from].seal(b"chunks");
        assert_ne!(&record[HEADER..][..6], b"chunks");
        assert_eq!(ends[to].open(false, record), Ok(b"chunks".to_vec()));
    }
}

#[test]
fn both_ends_prove_their_identity_and_agree_on_keys() {
    let mut ends = established();
    for (end, peer) in ends.iter().zip([AMF, GNB]) {
        assert_eq!(end.failed, None);
        assert!(end.protected);
        assert_eq!(end.identity.as_ref().unwrap().names, [peer]);
        assert!(end.contexts.seals_restart(3) && end.contexts.opens_restarts());
    }
    exchange(&mut ends);
}

/// A modified parameter leads to different keys, so that the first record cannot be opened.
#[test]
fn a_parameter_that_was_changed_on_the_way_makes_the_keys_differ() {
    let changed = [PARAMETERS[0], &[0x80, 6, 0, 10, 0, 0, 0, 2, 3, METHOD]];
    let mut ends = start(settings_of_pair(), [PARAMETERS, changed]);
    let record = ends[1].seal(b"protection established");
    assert_eq!(ends[0].failed, None);
    assert_eq!(ends[0].open(false, record), Err(OpenError::Forged));
}

/// Each end should refuse an invalid certificate of the other end, and report the error of this
/// kind of certificate.
#[test]
fn each_wrong_certificate_is_refused_with_its_reason() {
    let [authority, other] = [Authority::new(), Authority::new()];
    let usage = |it: ExtendedKeyUsagePurpose| {
        move |params: &mut CertificateParams| params.extended_key_usages = vec![it]
    };
    let good = [GNB, AMF].map(|it| authority.issue(it, |_| {}));
    let trust = || authority.trust().with_name(AMF).with_name(GNB);
    for wrong in [0, 1] {
        let of_other_role = [
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let name = [GNB, AMF][wrong];
        let cases = [
            (
                authority.issue(name, |it| it.not_after = date_time_ymd(2020, 1, 1)),
                "the peer's certificate has expired",
            ),
            (
                authority.issue(name, |it| it.not_before = date_time_ymd(4000, 1, 1)),
                "the peer's certificate is not valid yet",
            ),
            (
                other.issue(name, |_| {}),
                "the peer's certificate is of an authority that is not trusted",
            ),
            (
                authority.issue("spiffe://example.org/other", |_| {}),
                "the peer's certificate has none of the expected names",
            ),
            (
                authority.issue(name, usage(of_other_role[wrong].clone())),
                "the peer's certificate is not for this end of a connection",
            ),
        ];
        for (certificate, reason) in cases {
            let mut both = [settings(&good[0], trust()), settings(&good[1], trust())];
            both[wrong] = settings(&certificate, trust());
            let ends = start(both, [PARAMETERS; 2]);
            assert_eq!(ends[1 - wrong].failed, Some(reason), "of end {wrong}");
            assert!(!ends.iter().any(|it| it.protected), "{reason}");
        }
    }
}

#[derive(Debug)]
struct NoCertificate;

impl rustls::client::ResolvesClientCert for NoCertificate {
    fn resolve(
        &self,
        _: &[&[u8]],
        _: &[rustls::SignatureScheme],
    ) -> Option<Arc<rustls::sign::CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

#[test]
fn a_client_without_a_certificate_is_refused() {
    let [client, server] = settings_of_pair();
    let mut anonymous = rustls::ClientConfig::clone(&client.client);
    anonymous.client_auth_cert_resolver = Arc::new(NoCertificate);
    let client = Arc::new(TlsSettings {
        client: Arc::new(anonymous),
        server: client.server.clone(),
        ..*client
    });
    let ends = start([client, server], [PARAMETERS; 2]);
    assert_eq!(ends[1].failed, Some("the peer has no certificate"));
    assert_eq!(ends[0].failed, Some("the peer requires a certificate"));
    assert!(!ends[0].protected && !ends[1].protected);
}

#[test]
fn a_pinned_certificate_needs_no_authority() {
    let [first, second, third] = [(); 3].map(|()| Authority::new().issue(GNB, |_| {}));
    let trusts = |it: &Issued| Trust::default().with_fingerprint(it.fingerprint);
    let both = [
        settings(&first, trusts(&second)),
        settings(&second, trusts(&first)),
    ];
    exchange(&mut start(both, [PARAMETERS; 2]));
    let both = [
        settings(&first, trusts(&second)),
        settings(&third, trusts(&first)),
    ];
    let ends = start(both, [PARAMETERS; 2]);
    let reason = "the peer's certificate is of an authority that is not trusted";
    assert_eq!(ends[0].failed, Some(reason));
    let both = [
        settings(&first, trusts(&second).with_name(AMF)),
        settings(&second, trusts(&first)),
    ];
    let ends = start(both, [PARAMETERS; 2]);
    let reason = "the peer's certificate has none of the expected names";
    assert_eq!(ends[0].failed, Some(reason));
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let authority = Authority::new();
    let [one, two] = [(); 2].map(|()| authority.issue(GNB, |_| {}));
    let credentials = |certificate: &Issued, key: &Issued| {
        Credentials::from_pem(certificate.certificate.as_bytes(), key.key.as_bytes()).unwrap()
    };
    let of_none = TlsSettings::new(credentials(&one, &one), Trust::default(), false);
    assert!(matches!(of_none, Err(SettingsError::NoTrust)));
    let mixed = TlsSettings::new(credentials(&one, &two), authority.trust(), false);
    assert!(matches!(mixed, Err(SettingsError::Tls(_))));
    for (certificate, key) in [(&one.key, &one.key), (&one.certificate, &one.certificate)] {
        let read = Credentials::from_pem(certificate.as_bytes(), key.as_bytes());
        assert!(matches!(read, Err(SettingsError::Pem { .. })), "{read:?}");
    }
}

#[test]
fn new_keys_replace_those_in_use_without_a_gap_and_both_authenticate_again() {
    let mut ends = established();
    for (round, by) in [(1, 0), (2, 1), (3, 0)] {
        ends.iter_mut().for_each(|it| it.identity = None);
        let late = [ends[0].seal(b"late"), ends[1].seal(b"late")];
        ends[by].method.rekey(round);
        talk(round, &mut ends);
        for from in [0, 1] {
            assert!(ends[from].identity.is_some());
            let id = Some(KeyId::primary(3 + round));
            assert_eq!(ends[from].contexts.sealing_id(), id);
            let record = late[from].clone();
            assert_eq!(ends[1 - from].open(false, record), Ok(b"late".to_vec()));
        }
        exchange(&mut ends);
    }
}

/// During a rekeying each message is sent with keys that the peer has, and every record in flight
/// can be opened.
#[test]
fn records_between_the_messages_of_a_rekeying_can_be_opened() {
    let mut ends = established();
    ends[0].method.rekey(1);
    let mut messages = 0;
    for from in [0, 1, 0, 1] {
        for message in ends[from].act() {
            messages += 1;
            exchange(&mut ends);
            ends[1 - from].method.handle_message(1, &message);
        }
        ends[1 - from].contexts.sealing_id().unwrap();
        exchange(&mut ends);
    }
    assert_eq!(messages, 4);
    ends[0].act();
    exchange(&mut ends);
    assert!(
        ends.iter()
            .all(|it| it.contexts.sealing_id() == Some(KeyId::primary(4)))
    );
}

#[test]
fn of_two_that_begin_at_the_same_time_the_client_goes_on() {
    let mut ends = established();
    ends.iter_mut().for_each(|it| it.method.rekey(1));
    talk(1, &mut ends);
    for end in &ends {
        assert_eq!(end.failed, None);
        assert_eq!(end.contexts.sealing_id(), Some(KeyId::primary(4)));
    }
}

#[test]
fn a_peer_that_changes_its_identity_is_refused() {
    let authority = Authority::new();
    let [gnb, amf, renewed, other] = [GNB, AMF, AMF, GNB].map(|it| authority.issue(it, |_| {}));
    for (server, failed) in [
        (renewed, None),
        (other, Some("the peer has another identity than before")),
    ] {
        let both = [&gnb, &amf].map(|it| settings(it, authority.trust()));
        let mut ends = start(both, [PARAMETERS; 2]);
        let client_identity = ends[1].identity.clone();
        // The association restarts, protected by the restart keys of epoch 3.
        ends[1] = End::new(Tls::new(settings(&server, authority.trust())));
        ends[1].identity = client_identity;
        let keys = [1, 2].map(|it| KeyMaterial::from_secret(Default::default(), &[it; 32]));
        ends[1].contexts.restarting(3, &keys[0], &keys[1]);
        ends[0].contexts.restarted(3);
        ends[0].start(Role::Client, PARAMETERS, Some(3));
        ends[1].start(Role::Server, PARAMETERS, Some(3));
        talk(0, &mut ends);
        assert_eq!(ends[0].failed, failed);
        if failed.is_none() {
            for end in &mut ends {
                end.method.handle_timeout(DRAIN);
                end.act();
                assert!(end.contexts.seals_restart(3));
            }
        }
    }
}

#[test]
fn messages_that_were_changed_anywhere_end_the_handshake() {
    let settings = settings_of_pair();
    for message in 0..3 {
        let mut at = 1;
        loop {
            let mut ends = settings.clone().map(|it| End::new(Tls::new(it)));
            ends[0].start(Role::Client, PARAMETERS, None);
            ends[1].start(Role::Server, PARAMETERS, None);
            let (mut number, mut length) = (0, 0);
            for from in [0, 1, 0, 1] {
                for mut sent in ends[from].act() {
                    if number == message {
                        length = sent.len();
                        sent[at] ^= 0x01;
                    }
                    number += 1;
                    ends[1 - from].method.handle_message(0, &sent);
                }
            }
            ends.iter_mut().for_each(|it| drop(it.act()));
            let both = ends.iter().all(|it| it.protected);
            assert!(!both, "byte {at} of message {message}");
            // Skips some bytes, because adjacent bytes belong to the same field.
            at += 13;
            if at >= length {
                break;
            }
        }
    }
}
