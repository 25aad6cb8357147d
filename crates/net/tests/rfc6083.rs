//! DTLS over SCTP (RFC 6083) on real sockets.

use crate::common;

use std::sync::Arc;

use anabranch_net::rfc6083::{Rfc6083Settings, SecureAssociation, SecureError};
use anabranch_net::sctp::ChunkTypes;
use anabranch_net::sctp::dtls::tls::{Credentials, Trust};
use anabranch_net::{Association, CloseReason, Config, Endpoint, Peer, SendOptions};
use common::bounded;
use common::certificates::{authority, bind};
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};

const CLIENT: &str = "client.example.org";
const SERVER: &str = "server.example.org";

fn settings(
    issuer: &CertifiedIssuer<'static, KeyPair>,
    trusted: &CertifiedIssuer<'static, KeyPair>,
    own: &str,
    peer: &str,
) -> Arc<Rfc6083Settings> {
    let params = CertificateParams::new(vec![own.to_string()]).expect("a name");
    let key = KeyPair::generate().expect("a key");
    let chain = params.signed_by(&key, issuer).expect("signed").pem();
    let key = key.serialize_pem();
    let credentials = Credentials::from_pem(chain.as_bytes(), key.as_bytes()).expect("PEM");
    let trust = Trust::default().with_authorities(trusted.pem().as_bytes());
    let trust = trust.expect("PEM").with_name(peer);
    Arc::new(Rfc6083Settings::new(&credentials, trust).expect("they fit"))
}

/// Two endpoints with an association between them.
async fn connected(configs: [Config; 2]) -> ([Endpoint; 2], [Association; 2]) {
    let [client, server] = configs.map(bind);
    let at = Peer::new([[127, 0, 0, 1].into()], server.port()).over_udp(server.udp_port());
    let association = client.connect(at).await.expect("up");
    let accepted = server.accept().await.expect("up");
    ([client, server], [association, accepted])
}

async fn secured(
    [client, server]: [Association; 2],
    [of_client, of_server]: [Arc<Rfc6083Settings>; 2],
) -> [Result<SecureAssociation, SecureError>; 2] {
    let (client, server) = tokio::join!(
        SecureAssociation::client(client, of_client),
        SecureAssociation::server(server, of_server)
    );
    [client, server]
}

fn configs() -> [Config; 2] {
    [(); 2].map(|()| Config::default().with_rfc6083())
}

fn pair() -> [Arc<Rfc6083Settings>; 2] {
    let issuer = authority();
    [
        settings(&issuer, &issuer, CLIENT, SERVER),
        settings(&issuer, &issuer, SERVER, CLIENT),
    ]
}

#[test]
fn messages_of_all_lengths_and_streams_pass_both_ways() {
    bounded(async {
        let (_endpoints, associations) = connected(configs()).await;
        let [client, server] = secured(associations, pair())
            .await
            .map(|it| it.expect("trusted"));
        assert_eq!(client.peer_identity().names, [SERVER]);
        assert_eq!(server.peer_identity().names, [CLIENT]);
        for (from, to) in [(&client, &server), (&server, &client)] {
            for (length, stream) in [(1, 0), (1_200, 1), (16_384, 2), (5_000, 1)] {
                let options = SendOptions::on(stream).with_ppid(47);
                from.send(vec![stream as u8; length], options)
                    .await
                    .expect("up");
                let message = to.recv().await.expect("up").expect("open");
                assert_eq!((message.stream, message.ppid), (stream, 47));
                assert_eq!(&message.bytes[..], vec![stream as u8; length]);
            }
        }
        let long = client.send(vec![0; 16_385], SendOptions::on(1)).await;
        assert!(matches!(long, Err(SecureError::TooLong(16_385))));
        client.send("last", SendOptions::on(3)).await.expect("up");
        let (closed, _) = tokio::join!(client.shutdown(), async {
            let last = server.recv().await.expect("up").expect("open");
            assert_eq!(&last.bytes[..], b"last");
            assert!(server.recv().await.expect("up").is_none());
        });
        closed.expect("all arrived");
    });
}

#[test]
fn a_peer_that_is_not_trusted_or_without_auth_is_refused() {
    bounded(async {
        let [issuer, other] = [authority(), authority()];
        let good = settings(&issuer, &issuer, SERVER, CLIENT);
        let wrong = settings(&other, &issuer, CLIENT, SERVER);
        let (_endpoints, associations) = connected(configs()).await;
        let [client, server] = secured(associations, [wrong, good.clone()]).await;
        assert!(matches!(server, Err(SecureError::Peer(_))), "{server:?}");
        client.expect_err("aborted by the server");

        let (_endpoints, associations) = connected([(); 2].map(|()| Config::default())).await;
        let [_, server] = associations;
        let refused = SecureAssociation::server(server, good).await;
        assert!(matches!(refused, Err(SecureError::NoAuthentication)));
    });
}

/// ABORT and SHUTDOWN are not encrypted, so only close_notify proves that no message is missing.
#[test]
fn an_end_without_close_notify_and_a_message_in_clear_are_errors() {
    bounded(async {
        let (_endpoints, associations) = connected(configs()).await;
        let [client, server] = secured(associations, pair())
            .await
            .map(|it| it.expect("trusted"));
        client.association().start_shutdown(None);
        let end = server.recv().await;
        assert!(matches!(end, Err(SecureError::Truncated)), "{end:?}");

        let (_endpoints, associations) = connected(configs()).await;
        let [client, server] = secured(associations, pair())
            .await
            .map(|it| it.expect("trusted"));
        let sent = client.association().send("in clear", SendOptions::on(0));
        sent.await.expect("up");
        let end = server.recv().await;
        let why = "a message is not one record of DTLS 1.2";
        assert!(
            matches!(end, Err(SecureError::Peer(it)) if it == why),
            "{end:?}"
        );
    });
}

/// A peer that sends endless data before it is authenticated is refused.
#[test]
fn a_peer_that_sends_data_instead_of_a_handshake_is_refused() {
    bounded(async {
        let (_endpoints, [client, server]) = connected(configs()).await;
        let [_, settings] = pair();
        let flood = async {
            let mut record = vec![23, 0xFE, 0xFD, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0];
            record.resize(13 + 0x4000, 0);
            while client
                .send(record.clone(), SendOptions::on(1))
                .await
                .is_ok()
            {}
        };
        let (refused, ()) = tokio::join!(SecureAssociation::server(server, settings), flood);
        let why = "too many messages before the handshake ends";
        assert!(
            matches!(refused, Err(SecureError::Peer(it)) if it == why),
            "{refused:?}"
        );
    });
}

/// RFC 6083 §4.5: an end that accepts DATA without AUTH is refused by the other end, and itself
/// refuses to continue.
#[test]
fn an_end_that_does_not_require_auth_for_data_is_refused() {
    bounded(async {
        for lax in [0, 1] {
            let mut both = configs();
            both[lax].sctp.authenticated_chunks = Some(ChunkTypes::of(&[]));
            let (_endpoints, associations) = connected(both).await;
            for (association, settings) in associations.into_iter().zip(pair()) {
                let refused = SecureAssociation::server(association, settings).await;
                assert!(
                    matches!(refused, Err(SecureError::NoAuthentication)),
                    "{refused:?}"
                );
            }
        }
    });
}

#[test]
fn a_peer_that_says_nothing_is_aborted_at_the_time_limit() {
    bounded(async {
        let (_endpoints, [client, server]) = connected(configs()).await;
        let [_, settings] = pair();
        let mut settings = Arc::into_inner(settings).expect("one owner");
        settings.handshake_timeout = 50_000_000;
        let refused = SecureAssociation::server(server, Arc::new(settings)).await;
        let why = "the handshake takes too long";
        assert!(
            matches!(refused, Err(SecureError::Peer(it)) if it == why),
            "{refused:?}"
        );
        client.recv().await.expect_err("aborted");
    });
}

#[test]
fn a_handshake_whose_future_is_dropped_aborts() {
    bounded(async {
        let (_endpoints, [client, server]) = connected(configs()).await;
        let [_, settings] = pair();
        {
            let mut handshake = std::pin::pin!(SecureAssociation::server(server, settings));
            let first = std::future::poll_fn(|cx| {
                std::task::Poll::Ready(handshake.as_mut().poll(cx).is_pending())
            });
            assert!(first.await, "it waits for the peer");
        }
        client.recv().await.expect_err("aborted");
    });
}

/// RFC 6083 §4.4: messages of DTLS itself are sent on stream 0 in order, also after the handshake.
#[test]
fn messages_of_dtls_outside_the_order_of_stream_0_are_refused() {
    bounded(async {
        for options in [SendOptions::on(1), SendOptions::on(0).with_unordered(true)] {
            let (_endpoints, [client, server]) = connected(configs()).await;
            let [_, settings] = pair();
            let hello = [22, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            client.send(hello.to_vec(), options).await.expect("up");
            let refused = SecureAssociation::server(server, settings).await;
            let why = "a message of the handshake that is not in the order of stream 0";
            assert!(
                matches!(refused, Err(SecureError::Peer(it)) if it == why),
                "{refused:?}"
            );
            let (_endpoints, associations) = connected(configs()).await;
            let [client, server] = secured(associations, pair())
                .await
                .map(|it| it.expect("trusted"));
            let sent = client.association().send(hello.to_vec(), options);
            sent.await.expect("up");
            let end = server.recv().await;
            let why = "a message of DTLS itself that is not in the order of stream 0";
            assert!(
                matches!(end, Err(SecureError::Peer(it)) if it == why),
                "{end:?}"
            );
        }
    });
}

/// The peer does not read all messages, so the shutdown times out. If its future is dropped,
/// messages can still be sent, and another shutdown succeeds.
#[test]
fn a_shutdown_ends_at_its_limit() {
    bounded(async {
        let mut both = configs();
        both[1].sctp.receive_buffer = 16_384;
        let (_endpoints, associations) = connected(both).await;
        let [client, server] = secured(associations, pair())
            .await
            .map(|it| it.expect("trusted"));
        let message = vec![7; 16_000];
        for _ in 0..3 {
            client.send(&message, SendOptions::on(1)).await.expect("up");
        }
        {
            let mut shutdown = std::pin::pin!(client.shutdown());
            let first = std::future::poll_fn(|cx| {
                std::task::Poll::Ready(shutdown.as_mut().poll(cx).is_pending())
            });
            assert!(first.await, "it waits for the peer");
        }
        client.send(&message, SendOptions::on(1)).await.expect("up");
        let limit = std::time::Duration::from_millis(50);
        let ended = client.shutdown_with_timeout(limit).await;
        let timeout = CloseReason::ShutdownTimeout;
        assert!(
            matches!(&ended, Err(SecureError::Association(it)) if it.0 == timeout),
            "{ended:?}"
        );
        while let Ok(message) = server.recv().await {
            message.expect("no close_notify");
        }
    });
}

/// The peer does not read, and answers window probes. A shutdown without a limit ends at the drain
/// timeout, as without DTLS, also if another future of a shutdown is dropped meanwhile.
#[test]
fn a_shutdown_ends_at_the_drain_timeout() {
    bounded(async {
        let mut both = configs();
        both[0].sctp.drain_timeout = Some(200_000_000);
        both[1].sctp.receive_buffer = 16_384;
        let (_endpoints, associations) = connected(both).await;
        let [client, _server] = secured(associations, pair())
            .await
            .map(|it| it.expect("trusted"));
        let message = vec![7; 16_000];
        for _ in 0..3 {
            client.send(&message, SendOptions::on(1)).await.expect("up");
        }
        let mut dropped = Box::pin(client.shutdown());
        let mut shutdown = std::pin::pin!(client.shutdown());
        std::future::poll_fn(|cx| {
            let _ = dropped.as_mut().poll(cx);
            let _ = shutdown.as_mut().poll(cx);
            std::task::Poll::Ready(())
        })
        .await;
        drop(dropped);
        shutdown.await.expect_err("the window is closed");
        let reason = client.association().closed().await;
        assert_eq!(reason, CloseReason::ShutdownTimeout);
    });
}

/// RFC 6083 §4.9: close_notify waits for all messages, including those on streams that the
/// scheduler serves later.
#[test]
fn nothing_is_missing_before_close_notify() {
    bounded(async {
        let (_endpoints, associations) = connected(configs()).await;
        let [client, server] = secured(associations, pair())
            .await
            .map(|it| it.expect("trusted"));
        const MESSAGES: usize = 200;
        let sender = async {
            for number in 0..MESSAGES {
                let length = if number % 2 == 0 { 16_384 } else { 1 };
                let message = vec![7; length];
                client.send(message, SendOptions::new()).await.expect("up");
            }
            client.shutdown().await.expect("all arrived");
            let late = client.send("late", SendOptions::on(1)).await;
            assert!(matches!(late, Err(SecureError::Exhausted)), "{late:?}");
        };
        let receiver = async {
            let mut count = 0;
            while server.recv().await.expect("closed well").is_some() {
                count += 1;
            }
            assert_eq!(count, MESSAGES);
            assert!(server.recv().await.expect("closed").is_none());
        };
        tokio::join!(sender, receiver);
    });
}
