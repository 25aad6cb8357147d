//! Associations that the DTLS chunk protects, on real sockets.

use crate::common;

use std::sync::Arc;

use anabranch_net::sctp::dtls::preshared;
use anabranch_net::sctp::dtls::tls::{Credentials, TlsSettings, Trust};
use anabranch_net::{Config, Endpoint, Event, Peer, SendOptions};
use common::bounded;
use common::certificates::{authority, bind};
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair, SanType, date_time_ymd};

const CLIENT: &str = "spiffe://example.org/gnb";
const SERVER: &str = "spiffe://example.org/amf";

/// An endpoint with a certificate of `issuer`, which `change` modifies, for peers with certificates
/// of that issuer.
fn endpoint(
    issuer: &CertifiedIssuer<'static, KeyPair>,
    name: &str,
    change: impl FnOnce(&mut CertificateParams),
) -> Endpoint {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.subject_alt_names = vec![SanType::URI(name.try_into().expect("ASCII"))];
    change(&mut params);
    let key = KeyPair::generate().expect("a key");
    let chain = params.signed_by(&key, issuer).expect("signed").pem();
    let key = key.serialize_pem();
    let credentials = Credentials::from_pem(chain.as_bytes(), key.as_bytes()).expect("PEM");
    let trust = Trust::default().with_authorities(issuer.pem().as_bytes());
    let trust = trust.expect("PEM").with_name(CLIENT).with_name(SERVER);
    let settings = TlsSettings::new(credentials, trust, false).expect("they fit");
    bind(Config::default().with_certificates(Arc::new(settings)))
}

fn at(server: &Endpoint) -> Peer {
    Peer::new([[127, 0, 0, 1].into()], server.port()).over_udp(server.udp_port())
}

#[test]
fn both_ends_learn_who_the_peer_is() {
    bounded(async {
        let issuer = authority();
        let server = endpoint(&issuer, SERVER, |_| {});
        let client = endpoint(&issuer, CLIENT, |_| {});
        let association = client.connect(at(&server)).await.expect("trusted");
        let accepted = server.accept().await.expect("trusted");
        for (end, peer) in [(&association, SERVER), (&accepted, CLIENT)] {
            assert!(end.negotiated().security);
            assert_eq!(end.peer_identity().expect("proved").names, [peer]);
        }
        let sent = association.send("hello", SendOptions::default());
        sent.await.expect("up");
        let message = accepted.recv().await.expect("up").expect("open");
        assert_eq!(&message.bytes[..], b"hello");
        association.shutdown().await.expect("up");
    });
}

#[test]
fn each_wrong_certificate_ends_the_attempt() {
    bounded(async {
        let [issuer, other] = [authority(), authority()];
        let server = endpoint(&issuer, SERVER, |_| {});
        let wrong = [
            endpoint(&other, CLIENT, |_| {}),
            endpoint(&issuer, "spiffe://example.org/other", |_| {}),
            endpoint(&issuer, CLIENT, |it| {
                it.not_after = date_time_ymd(2020, 1, 1)
            }),
            // A client with a preshared secret instead of a certificate.
            bind(
                Config::default()
                    .with_preshared_secret(preshared::PresharedSettings::new(&[7; 16])),
            ),
            // A client without protection.
            bind(Config::default()),
        ];
        for client in wrong {
            client.connect(at(&server)).await.expect_err("not trusted");
        }
        // The application accepts only the association of the trusted peer.
        let client = endpoint(&issuer, CLIENT, |_| {});
        let _trusted = client.connect(at(&server)).await.expect("trusted");
        let accepted = server.accept().await.expect("open");
        assert_eq!(accepted.peer_identity().expect("proved").names, [CLIENT]);
        // The client refuses a server whose certificate has expired.
        let expired = endpoint(&issuer, SERVER, |it| {
            it.not_after = date_time_ymd(2020, 1, 1)
        });
        let client = endpoint(&issuer, CLIENT, |_| {});
        client.connect(at(&expired)).await.expect_err("expired");
    });
}

#[test]
fn an_event_reports_each_proof() {
    bounded(async {
        let issuer = authority();
        let server = endpoint(&issuer, SERVER, |_| {});
        let client = endpoint(&issuer, CLIENT, |_| {});
        let association = client.connect(at(&server)).await.expect("trusted");
        loop {
            let event = association.next_event().await.expect("up");
            if let Event::PeerAuthenticated(peer) = event {
                assert_eq!(peer.names, [SERVER]);
                break;
            }
        }
    });
}
