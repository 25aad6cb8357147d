//! Closing associations without the peer's cooperation: this side limits the time.

use crate::common;

use std::net::UdpSocket;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anabranch_net::sctp::{self, Event};
use anabranch_net::{
    Association, AssociationError, Carrier, CloseReason, Config, Endpoint, Peer, SendOptions,
    TrySendError,
};
use anabranch_transport::{Ecn, Path, Transport};
use bytes::{Bytes, BytesMut};
use common::{LOOPBACK, bounded, without_timers};

/// Timeout that is long enough for a handshake, and short enough for a test.
const SOON: Duration = Duration::from_millis(50);
/// Offset of the first chunk's type, after the common header (RFC 9260 §3).
const FIRST_CHUNK: usize = 12;
const ABORT: u8 = 6;

fn settings() -> Config {
    Config::default().with(|it| {
        it.addresses = vec![LOOPBACK];
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
    })
}

/// A peer that completes the handshake and then is silent. Its thread ends when it receives an
/// ABORT.
fn silent_after_the_handshake() -> (Peer, JoinHandle<()>) {
    let socket = UdpSocket::bind((LOOPBACK, 0)).expect("loopback");
    let peer = Peer::from((LOOPBACK, 7)).over_udp(socket.local_addr().expect("bound").port());
    let thread = thread::spawn(move || {
        let mut endpoint =
            sctp::Endpoint::new(sctp::Config::default(), 7, [7; 32]).expect("settings");
        endpoint.listen(true);
        let mut buffer = [0; 65_536];
        let mut silent = false;
        loop {
            let (len, from) = socket.recv_from(&mut buffer).expect("a packet");
            if silent {
                match buffer[FIRST_CHUNK] {
                    ABORT => return,
                    _ => continue,
                }
            }
            let path = Path::new(LOOPBACK, from.ip());
            endpoint.handle_datagram(0, path, Ecn::NotEct, Bytes::copy_from_slice(&buffer[..len]));
            let mut out = BytesMut::new();
            while let Some(transmit) = endpoint.poll_transmit(0, &mut out) {
                socket.send_to(&out[..transmit.len], from).expect("sent");
                out.clear();
            }
            while let Some((_, event)) = endpoint.poll_event() {
                silent |= matches!(event, Event::Established { .. });
            }
        }
    });
    (peer, thread)
}

/// The shutdown ends after the caller's timeout, without a timer of the protocol.
#[test]
fn a_shutdown_of_a_silent_peer_ends_when_the_caller_says() {
    bounded(async {
        let client = Endpoint::bind(without_timers(settings())).expect("loopback");
        let (peer, thread) = silent_after_the_handshake();
        let association = client.connect(peer).await.expect("it answers");
        let sent = association.send("never acknowledged", SendOptions::default());
        sent.await.expect("up");
        let ended = association.shutdown_with_timeout(SOON).await;
        assert_eq!(ended, Err(AssociationError(CloseReason::ShutdownTimeout)));
        assert_eq!(association.closed().await, CloseReason::ShutdownTimeout);
        thread.join().expect("the peer is told by an ABORT");
    });
}

#[test]
fn a_bound_outlives_the_future_and_the_earliest_counts() {
    bounded(async {
        let client = Endpoint::bind(without_timers(settings())).expect("loopback");
        let (peer, thread) = silent_after_the_handshake();
        let association = client.connect(peer).await.expect("it answers");
        association.start_shutdown(Some(Duration::from_secs(3_600)));
        {
            let mut waiting = Box::pin(association.shutdown_with_timeout(SOON));
            tokio::select! {
                biased;
                _ = &mut waiting => panic!("nobody answers"),
                () = std::future::ready(()) => {}
            }
        }
        association.start_shutdown(Some(Duration::MAX));
        assert_eq!(association.closed().await, CloseReason::ShutdownTimeout);
        thread.join().expect("the peer is told by an ABORT");
    });
}

#[test]
fn a_bound_that_is_not_needed_changes_nothing() {
    bounded(async {
        let (client, server) = common::pair(settings()).await;
        let sent = client.send(vec![1; 500_000], SendOptions::default());
        sent.await.expect("up");
        let closing = tokio::spawn(async move {
            client
                .shutdown_with_timeout(Duration::from_secs(3_600))
                .await
                .map(|()| client)
        });
        let message = server.recv().await.expect("up").expect("open");
        assert_eq!(message.bytes.len(), 500_000);
        assert_eq!(server.recv().await, Ok(None));
        let client = closing.await.expect("no panic").expect("graceful");
        assert_eq!(client.closed().await, CloseReason::Shutdown);
    });
}

/// An association whose peer acknowledges everything but reads nothing, so that its receive window
/// is closed and data is queued.
async fn behind_a_shut_window(config: Config) -> (Endpoint, Association, Association) {
    let mut config = config;
    config.sctp.receive_buffer = 64 * 1024;
    let server = Endpoint::bind(config.clone().with(|it| it.accept = true));
    let server = server.expect("loopback");
    let client = Endpoint::bind(config).expect("loopback");
    let peer = Peer::from((LOOPBACK, server.port())).over_udp(server.udp_port());
    let sender = client.connect(peer).await.expect("it listens");
    let reader = server.accept().await.expect("it came");
    loop {
        match sender.try_send(vec![1; 10_000], SendOptions::default()) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) if sender.status().expect("up").rwnd < 1_000 => break,
            Err(TrySendError::Full(_)) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    }
    (client, sender, reader)
}

/// The peer acknowledges every window probe, so no timer of the protocol ends the association.
#[test]
fn a_dropped_association_ends_though_its_peer_keeps_the_window_closed() {
    bounded(async {
        let config = settings().with(|it| it.linger = SOON);
        let (client, sender, reader) = behind_a_shut_window(config).await;
        drop(sender);
        client.wait_idle().await;
        let aborted = CloseReason::AbortedByPeer { cause: Some(12) };
        assert_eq!(reader.closed().await, aborted);
    });
}

#[test]
fn an_endpoint_closes_within_a_bound() {
    bounded(async {
        let (client, sender, reader) = behind_a_shut_window(settings()).await;
        client.close_with_timeout(SOON).await;
        assert_eq!(sender.closed().await, CloseReason::ShutdownTimeout);
        let aborted = CloseReason::AbortedByPeer { cause: Some(12) };
        assert_eq!(reader.closed().await, aborted);
    });
}

/// After the unsent messages are cancelled, only data in flight delays the shutdown.
#[test]
fn messages_that_were_not_sent_can_be_taken_back() {
    bounded(async {
        let (_client, sender, reader) = behind_a_shut_window(settings()).await;
        let withdrawn = sender.cancel_unsent();
        assert!(withdrawn > 50, "{withdrawn} of 1 MiB in 10 kB");
        let closing = tokio::spawn(async move { sender.shutdown().await });
        let mut came = 0;
        while reader.recv().await.expect("a graceful end").is_some() {
            came += 1;
        }
        assert!((1..20).contains(&came), "{came} of 64 KiB in 10 kB");
        assert_eq!(closing.await.expect("no panic"), Ok(()));
    });
}

/// A draining endpoint continues to serve established associations, and refuses new ones.
#[test]
fn an_endpoint_that_drains_serves_to_the_end_whom_it_has() {
    bounded(async {
        let server = Endpoint::bind(settings().with(|it| it.accept = true)).expect("loopback");
        let client = Endpoint::bind(settings()).expect("loopback");
        let peer = Peer::from((LOOPBACK, server.port())).over_udp(server.udp_port());
        let held = client.connect(peer.clone()).await.expect("it listens");
        let serving = server.accept().await.expect("it came");
        assert!(!server.drain(Duration::ZERO).await, "one is open");
        assert!(server.accept().await.is_err());
        let other = Endpoint::bind(settings()).expect("loopback");
        assert!(other.connect(peer).await.is_err(), "refused");
        let sent = held.send("still served", SendOptions::default());
        sent.await.expect("up");
        let message = serving.recv().await.expect("up").expect("open");
        assert_eq!(&message.bytes[..], b"still served");
        let draining = tokio::spawn(async move { server.drain(Duration::from_secs(3_600)).await });
        held.shutdown().await.expect("graceful");
        assert!(draining.await.expect("no panic"));
    });
}
