use std::collections::BTreeMap;

use dimpl::crypto::HashAlgorithm;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};

use super::secrets::Secrets;
use super::*;

const AMF: &str = "spiffe://example.org/amf";
const GNB: &str = "spiffe://example.org/gnb";

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Settings of an end with this name, for peers with the name `peer` and a certificate of
/// `trusted`.
fn settings(
    issuer: &CertifiedIssuer<'static, KeyPair>,
    trusted: &CertifiedIssuer<'static, KeyPair>,
    own: &str,
    peer: &str,
) -> Arc<Rfc6083Settings> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.subject_alt_names = vec![SanType::URI(own.try_into().unwrap())];
    let key = KeyPair::generate().unwrap();
    let chain = params.signed_by(&key, issuer).unwrap().pem();
    let key = key.serialize_pem();
    let credentials = Credentials::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    let trust = Trust::default().with_authorities(trusted.pem().as_bytes());
    Arc::new(Rfc6083Settings::new(&credentials, trust.unwrap().with_name(peer)).unwrap())
}

/// One end, with its keys for AUTH.
struct End {
    connection: Connection,
    keys: BTreeMap<u16, [u8; 64]>,
    active: u16,
    identity: Option<PeerIdentity>,
    failed: Option<&'static str>,
    /// Sent messages: type, epoch, key, and whether it had to wait until all others were
    /// acknowledged.
    sent: Vec<(u8, u16, u16, bool)>,
}

impl End {
    fn new(settings: Arc<Rfc6083Settings>, role: Role) -> Self {
        #[expect(clippy::disallowed_methods, reason = "dimpl requires a time")]
        let now = Instant::now();
        Self {
            connection: Connection::new(settings, role, now),
            keys: BTreeMap::from([(0, [0; 64])]),
            active: 0,
            identity: None,
            failed: None,
            sent: Vec::new(),
        }
    }

    fn work(&mut self) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        while let Some(action) = self.connection.poll() {
            match action {
                HandshakeAction::Send {
                    record,
                    key,
                    after_all,
                } => {
                    let (kind, epoch) = record::header_of(&record).unwrap();
                    assert!(self.keys.contains_key(&key));
                    self.sent.push((kind, epoch, key, after_all));
                    out.push(record);
                }
                HandshakeAction::SetKey { id, key } => {
                    self.keys.insert(id, *key);
                }
                HandshakeAction::UseKey(id) => {
                    assert!(self.keys.contains_key(&id));
                    self.active = id;
                }
                HandshakeAction::RemoveKey(id) => {
                    assert_ne!(id, self.active);
                    self.keys.remove(&id);
                }
                HandshakeAction::Established(identity) => self.identity = Some(identity),
                HandshakeAction::Fail(why) => self.failed = Some(why),
            }
        }
        out
    }
}

fn talk(settings: [Arc<Rfc6083Settings>; 2]) -> [End; 2] {
    let [client, server] = settings;
    let mut ends = [
        End::new(client, Role::Client),
        End::new(server, Role::Server),
    ];
    loop {
        let mut idle = true;
        for from in [0, 1] {
            for message in ends[from].work() {
                idle = false;
                ends[1 - from].connection.handle_message(&message);
            }
        }
        if idle {
            return ends;
        }
    }
}

fn established() -> [End; 2] {
    let issuer = authority();
    let ends = talk([
        settings(&issuer, &issuer, GNB, AMF),
        settings(&issuer, &issuer, AMF, GNB),
    ]);
    for end in &ends {
        assert_eq!(end.failed, None);
        assert!(end.connection.is_established());
    }
    ends
}

#[test]
fn both_ends_prove_their_identity_and_export_the_same_key() {
    let ends = established();
    for (end, peer) in ends.iter().zip([AMF, GNB]) {
        assert_eq!(end.identity.as_ref().unwrap().names, [peer]);
        assert_eq!(end.active, 1);
        assert_eq!(end.keys.keys().collect::<Vec<_>>(), [&1]);
    }
    assert_eq!(ends[0].keys[&1], ends[1].keys[&1]);
    assert_ne!(ends[0].keys[&1], established()[0].keys[&1]);
}

/// RFC 6083 §4.7, §4.8: ChangeCipherSpec waits until all other messages are acknowledged, and
/// Finished uses the new key.
#[test]
fn the_key_changes_between_change_cipher_spec_and_finished() {
    for end in established() {
        let (before, last) = end.sent.split_at(end.sent.len() - 2);
        assert!(before.iter().all(|it| *it == (22, 0, 0, false)));
        assert_eq!(last, [(20, 0, 0, true), (22, 1, 1, false)]);
    }
}

#[test]
fn messages_are_opened_in_any_order_and_number() {
    let mut ends = established();
    for (from, to) in [(0, 1), (1, 0)] {
        let mut seal = |at: u32| ends[from].connection.seal(&at.to_be_bytes()).unwrap();
        let records: Vec<_> = (0..2_000).map(&mut seal).collect();
        for (at, record) in records.iter().enumerate().rev() {
            assert!(Connection::is_data(record));
            let opened = ends[to].connection.open(record).unwrap();
            assert_eq!(opened, Opened::Data((at as u32).to_be_bytes().to_vec()));
        }
    }
}

#[test]
fn the_longest_message_and_a_longer_one() {
    let mut ends = established();
    let longest = vec![5; MAX_MESSAGE];
    let record = ends[0].connection.seal(&longest).unwrap();
    let opened = ends[1].connection.open(&record);
    assert_eq!(opened, Ok(Opened::Data(longest)));
    assert_eq!(ends[0].connection.seal(&[5; MAX_MESSAGE + 1]), None);
}

#[test]
fn a_closed_end_sends_nothing_more() {
    let mut ends = established();
    let alert = ends[0].connection.close().unwrap();
    assert_eq!(ends[1].connection.open(&alert), Ok(Opened::Closed));
    assert_eq!(ends[0].connection.seal(b"more"), None);
    assert_eq!(ends[0].connection.close(), None);
}

#[test]
fn a_message_that_was_changed_anywhere_is_refused() {
    let mut ends = established();
    let record = ends[0].connection.seal(b"message").unwrap();
    for at in 0..record.len() {
        let mut changed = record.clone();
        changed[at] ^= 1;
        // The explicit nonce need not equal the sequence number, but both are authenticated.
        ends[1].connection.open(&changed).unwrap_err();
        ends[1].connection.open(&record[..at]).unwrap_err();
    }
    let joined = [&record[..], &record[..]].concat();
    ends[1].connection.open(&joined).unwrap_err();
}

#[test]
fn a_peer_of_another_authority_or_name_is_refused() {
    let [issuer, other] = [authority(), authority()];
    let good = |own, peer| settings(&issuer, &issuer, own, peer);
    let issuers = [
        (settings(&other, &issuer, GNB, AMF), good(AMF, GNB), 1),
        (good(GNB, AMF), settings(&other, &issuer, AMF, GNB), 0),
    ];
    let names = [
        (good("spiffe://example.org/x", AMF), good(AMF, GNB), 1),
        (good(GNB, AMF), good("spiffe://example.org/x", GNB), 0),
    ];
    let issuers = issuers.map(|it| {
        (
            it,
            "the peer's certificate is of an authority that is not trusted",
        )
    });
    let names = names.map(|it| (it, "the peer's certificate has none of the expected names"));
    for ((client, server, at), why) in issuers.into_iter().chain(names) {
        let ends = talk([client, server]);
        assert_eq!(ends[at].failed, Some(why));
        assert!(ends[at].identity.is_none());
        assert!(!ends[at].connection.is_established());
    }
}

#[test]
fn messages_after_a_failed_handshake_have_no_effect() {
    let [issuer, other] = [authority(), authority()];
    let client = settings(&other, &issuer, GNB, AMF);
    let mut ends = talk([client, settings(&issuer, &issuer, AMF, GNB)]);
    assert!(ends[1].failed.take().is_some());
    for kind in [20, 22] {
        ends[1].connection.handle_message(&empty(kind, 1));
        ends[1].connection.handle_message(&empty(kind, 0));
    }
    assert!(ends[1].work().is_empty());
    assert_eq!(ends[1].failed, None);
}

#[test]
fn a_request_to_negotiate_again_is_declined() {
    let mut ends = established();
    let hello = ends[0]
        .connection
        .seal_as(content_type::HANDSHAKE, &[0; 12]);
    let answer = ends[1].connection.open(&hello.unwrap()).unwrap();
    let Opened::Nothing(Some(alert)) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(ends[0].connection.open(&alert), Ok(Opened::Nothing(None)));
}

/// RFC 6083 §4.6 is not supported because the library of the handshake ends a connection whose peer
/// begins another handshake. If this test fails, `docs/SECURITY-SCTP.md` should be changed.
#[test]
fn dimpl_has_no_second_handshake() {
    #[expect(clippy::disallowed_methods, reason = "dimpl requires a time")]
    let now = Instant::now();
    let issuer = authority();
    let [mut client, mut server] =
        [(GNB, AMF, true), (AMF, GNB, false)].map(|(own, peer, active)| {
            let it = settings(&issuer, &issuer, own, peer);
            let mut dtls = Dtls::new_12(it.config.clone(), it.certificate.clone(), now);
            dtls.set_active(active);
            dtls.handle_timeout(now).unwrap();
            dtls
        });
    let (mut connected, mut secrets, mut first) = ([false; 2], None, None);
    while connected != [true; 2] {
        let (output, seen) = secrets::during(|| poll_all(&mut client));
        secrets = secrets.or(seen);
        connected[0] |= output.connected;
        for record in output.records {
            server.handle_packet(&record).unwrap();
            first.get_or_insert(record);
        }
        let output = poll_all(&mut server);
        connected[1] |= output.connected;
        for record in output.records {
            let (result, seen) = secrets::during(|| client.handle_packet(&record));
            result.unwrap();
            secrets = secrets.or(seen);
        }
    }
    let mut records = Records::new(&secrets.unwrap(), true).unwrap();
    // Another ClientHello, numbered after the client's messages 0 to 4 (RFC 6347 §4.2.2).
    let mut hello = first.unwrap()[record::HEADER..].to_vec();
    hello[4..6].copy_from_slice(&[0, 5]);
    let record = records.seal(content_type::HANDSHAKE, &hello).unwrap();
    let result = server.handle_packet(&record);
    assert!(
        matches!(result, Err(dimpl::Error::RenegotiationAttempt)),
        "{result:?}"
    );
}

/// A record header with this type and epoch, without content.
fn empty(kind: u8, epoch: u8) -> [u8; 13] {
    [kind, 0xFE, 0xFD, 0, epoch, 0, 0, 0, 0, 0, 0, 0, 0]
}

/// Before a peer is authenticated, only handshake messages from it should reach dimpl.
#[test]
fn encrypted_messages_other_than_finished_are_refused() {
    let issuer = authority();
    let server = || End::new(settings(&issuer, &issuer, AMF, GNB), Role::Server);
    let why = Some("more than one encrypted message in the handshake");
    let mut end = server();
    end.connection.handle_message(&empty(22, 2));
    end.work();
    assert_eq!(end.failed, why);
    let mut end = server();
    end.connection.finished = true;
    end.connection.handle_message(&empty(22, 1));
    end.work();
    assert_eq!(end.failed, why);
    let mut end = server();
    end.connection.handle_message(&empty(22, 0)[..12]);
    end.work();
    assert_eq!(end.failed, Some("a message is not one record of DTLS 1.2"));
}

#[test]
fn a_key_of_another_kind_is_refused_at_once() {
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let params = CertificateParams::new(Vec::new()).unwrap();
    let chain = params.self_signed(&key).unwrap().pem();
    let key = key.serialize_pem();
    let credentials = Credentials::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    let trust = Trust::default().with_authorities(authority().pem().as_bytes());
    let error = Rfc6083Settings::new(&credentials, trust.unwrap()).unwrap_err();
    assert!(error.to_string().contains("ECDSA"), "{error}");
}

/// The last sequence number of a key is reserved for close_notify.
#[test]
fn an_exhausted_key_still_closes() {
    let mut ends = established();
    let [client, server] = &mut ends;
    client.connection.records.as_mut().unwrap().exhaust();
    assert_eq!(client.connection.seal(b"more"), None);
    let request = server.connection.seal_as(content_type::HANDSHAKE, &[0; 4]);
    let declined = client.connection.open(&request.unwrap());
    assert_eq!(declined, Ok(Opened::Nothing(None)));
    let close = client.connection.close().unwrap();
    assert_eq!(server.connection.open(&close), Ok(Opened::Closed));
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

/// Expected values from tests/rfc6083.py, which uses an independent library.
#[test]
fn shared_keys_and_records_are_those_of_an_independent_library() {
    let master: Vec<u8> = (0..48).collect();
    let randoms = [[0x22; 32], [0x11; 32]].concat();
    for (hash, key, record) in [
        (
            HashAlgorithm::SHA256,
            "5feb8e57656592303df9b757dfb15ecf63d7aa8e6418350daa8daf0aa3245431\
             5431c8f9bddfd85e55f98a24088f3af223f4fca4d72edc0ba700642f571514f4",
            "17fefd0001000000010000002d00010000000100009eadaa3a3f010f8f7ce90f\
             fd7b9320814ae49df059f109cdcd2a4c3c8216260d6f80a0f062",
        ),
        (
            HashAlgorithm::SHA384,
            "d98398b3e7dcc8f77082839a839e5af049c6d2d20761732374c4bc04b500c9fd\
             38ba4656313ac15c2904cb23066c9834668dbe4acb365ef18fc7550002437f77",
            "17fefd0001000000010000002d0001000000010000dc71aa13e2bc0a631338db\
             905426dfe0643a2228ab23dc254409a71a1954dd6451d3f746d3",
        ),
    ] {
        let secrets = Secrets::new(hash, &master, &randoms).unwrap();
        assert_eq!(secrets.shared_key().to_vec(), bytes(key));
        let mut client = Records::new(&secrets, true).unwrap();
        let server = Records::new(&secrets, false).unwrap();
        let content = b"a message of the user";
        assert_eq!(client.seal(23, content), Some(bytes(record)));
        assert_eq!(server.open(&bytes(record)), Some(content.to_vec()));
    }
}
