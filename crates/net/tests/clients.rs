//! Clients: timeouts of attempts, the end of `accept`, confirmation of paths, and reconnecting.

use crate::common;

use std::net::IpAddr;
use std::time::Duration;

use anabranch_net::{
    AcceptError, Association, AssociationError, Carrier, CloseReason, Config, ConnectError,
    ConnectionFailure, Endpoint, Event, PathState, Peer, ReconnectEvent, ReconnectPolicy,
    ReconnectingClient,
};
use common::{LOOPBACK, bounded, pair, pattern, without_timers};

fn config(addresses: Vec<IpAddr>) -> Config {
    Config::default().with(|it| {
        it.addresses = addresses;
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
    })
}

#[test]
fn an_attempt_has_a_limit_of_its_own() {
    assert_eq!(Config::default().connect_timeout, Duration::from_secs(30));
    bounded(async {
        let silent = std::net::UdpSocket::bind((LOOPBACK, 0)).expect("loopback");
        let port = silent.local_addr().expect("bound").port();
        let config = without_timers(config(vec![LOOPBACK]));
        let config = config.with(|it| it.connect_timeout = Duration::from_millis(50));
        let client = Endpoint::bind(config).expect("loopback");
        // Connects by address, and then by name.
        for peer in [Peer::from((LOOPBACK, 7)), Peer::named("localhost", 7)] {
            let connected = client.connect(peer.over_udp(port)).await;
            let no_answer = AssociationError(CloseReason::NoAnswer);
            assert_eq!(
                connected.map(drop),
                Err(ConnectError::Association(no_answer))
            );
        }
        client.wait_idle().await;
    });
}

#[test]
fn accept_says_why_there_is_no_association() {
    bounded(async {
        let server = Endpoint::bind(config(vec![LOOPBACK])).expect("loopback");
        let accepted = server.accept().await.map(drop);
        assert_eq!(accepted, Err(AcceptError::NotListening));
        server.listen(true);
        let waiting = tokio::spawn({
            let server = server.clone();
            async move { server.accept().await.map(drop) }
        });
        server.close().await;
        assert_eq!(waiting.await.expect("no panic"), Err(AcceptError::Closed));
        assert_eq!(
            server.incoming().await.map(drop),
            Err(AcceptError::Closed),
            "it stays closed"
        );
        let text = "the endpoint is closed and accepts no more associations";
        assert_eq!(AcceptError::Closed.to_string(), text);
    });
}

/// The second address is confirmed by a HEARTBEAT (RFC 9260 §5.4).
#[cfg(target_os = "linux")] // all of 127.0.0.0/8 is this host's
#[test]
fn a_path_is_up_when_its_address_is_confirmed() {
    bounded(async {
        let [first, second] = [1, 2].map(|last| IpAddr::from([127, 0, 23, last]));
        let server = config(vec![first, second]).with(|it| it.accept = true);
        let server = Endpoint::bind(server).expect("loopback");
        let client = Endpoint::bind(config(vec![[127, 0, 23, 3].into()])).expect("loopback");
        let peer = Peer::from((first, server.port())).over_udp(server.udp_port());
        let association = client.connect(peer).await.expect("it listens");
        assert_eq!(association.peer_addr(), (first, server.port()).into());
        assert_eq!(association.peer_addr().port(), server.port());
        assert_eq!(
            association.local_addr(),
            (IpAddr::from([127, 0, 23, 3]), client.port()).into()
        );
        loop {
            match association.next_event().await.expect("up") {
                Event::PathChanged {
                    address,
                    state: PathState::Active,
                    ..
                } if address == second => break,
                Event::PathChanged {
                    address,
                    state: PathState::Inactive,
                    ..
                } => panic!("{address} is there"),
                _ => {}
            }
        }
    });
}

/// The halves of two streams run in four tasks; each receiver gets only messages of its own stream.
#[test]
fn halves_of_streams_move_to_other_tasks() {
    bounded(async {
        let (client, server) = pair(Config::default()).await;
        let mut receivers = Vec::new();
        for stream in [2, 5] {
            let (mut send, _) = client.stream(stream);
            let (_, mut recv) = server.stream(stream);
            tokio::spawn(async move {
                for seed in 0..20 {
                    // The last messages are larger than a packet.
                    let message = pattern(seed + u32::from(send.number()), 300 * seed as usize + 1);
                    send.send(message).await.expect("up");
                }
            });
            receivers.push(tokio::spawn(async move {
                for seed in 0..20 {
                    let message = recv.recv().await.expect("up").expect("open");
                    let expected = pattern(seed + u32::from(stream), 300 * seed as usize + 1);
                    assert_eq!((message.stream, message.bytes), (stream, expected));
                }
            }));
        }
        for receiver in receivers {
            receiver.await.expect("all came");
        }
    });
}

/// The receiving half assembles a message from its parts, and a message that is too long aborts the
/// association.
#[test]
fn a_half_puts_parts_together_up_to_the_limit() {
    bounded(async {
        let config = Config::default().with(|it| {
            it.sctp.receive_buffer = 64 * 1024;
            it.max_message_size = 300_000;
        });
        let (client, server) = pair(config).await;
        let (_, mut recv) = server.stream(1);
        let (mut send, _) = client.stream(1);
        let sent = pattern(1, 300_000);
        let sending = tokio::spawn({
            let sent = sent.clone();
            async move { send.send(sent).await }
        });
        let message = recv.recv().await.expect("up").expect("open");
        assert_eq!(message.bytes, sent);
        sending.await.expect("no panic").expect("up");
    });
}

/// The next event, except starts of attempts.
async fn next(client: &mut ReconnectingClient) -> ReconnectEvent {
    loop {
        match client.next_event().await.expect("it goes on") {
            ReconnectEvent::Connecting { .. } => {}
            event => return event,
        }
    }
}

async fn connected(client: &mut ReconnectingClient) -> Association {
    match next(client).await {
        ReconnectEvent::Connected(association) => association,
        event => panic!("{event:?}"),
    }
}

#[test]
fn a_client_connects_again_until_its_policy_ends_it() {
    bounded(async {
        let server = config(vec![LOOPBACK]).with(|it| it.accept = true);
        let server = Endpoint::bind(server).expect("loopback");
        let peer = Peer::from((LOOPBACK, server.port())).over_udp(server.udp_port());
        let policy = ReconnectPolicy::default().with(|it| {
            it.first_delay = Duration::from_millis(5);
            it.jitter = 0.0;
            it.max_failures = Some(3);
            it.stable_after = Duration::ZERO;
        });
        let endpoint = Endpoint::bind(config(vec![LOOPBACK])).expect("loopback");
        let mut client = ReconnectingClient::new(endpoint, peer, policy);
        let first = client.next_event().await;
        assert!(matches!(
            first,
            Some(ReconnectEvent::Connecting { attempt: 1 })
        ));
        let association = connected(&mut client).await;
        let known = client.association().await.expect("up");
        assert_eq!(known.id(), association.id());

        // The peer aborts: the client reconnects after the first delay.
        let served = server.accept().await.expect("it came");
        served.abort("restart");
        let ReconnectEvent::Failed { failure, retry_in } = next(&mut client).await else {
            panic!("the association has ended");
        };
        let aborted = CloseReason::AbortedByPeer { cause: Some(12) };
        assert_eq!(failure, ConnectionFailure::Closed(aborted));
        assert_eq!(retry_in, Duration::from_millis(5));
        let again = client.association().await.expect("it listens");
        assert_ne!(again.id(), association.id());

        // The server stops listening and aborts: the end of the association is the first of three
        // consecutive failures.
        let served = server.accept().await.expect("it came again");
        server.listen(false);
        served.abort("gone");
        let mut delays = Vec::new();
        let last = loop {
            match next(&mut client).await {
                ReconnectEvent::Failed { retry_in, .. } => delays.push(retry_in.as_millis()),
                ReconnectEvent::Ended(failure) => break failure,
                event => panic!("{event:?}"),
            }
        };
        assert_eq!(delays, [5, 10]);
        assert!(matches!(last, ConnectionFailure::Connect(_)), "{last}");
        assert!(client.next_event().await.is_none());
        assert_eq!(client.association().await.map(drop), Err(last));
    });
}

/// An association that is shutting down is not returned, because it refuses messages, and a loop of
/// `association` and `send` would spin.
#[test]
fn a_client_does_not_return_an_association_that_shuts_down() {
    bounded(async {
        let server = config(vec![LOOPBACK]).with(|it| it.accept = true);
        let server = Endpoint::bind(server).expect("loopback");
        let peer = Peer::from((LOOPBACK, server.port())).over_udp(server.udp_port());
        let policy = ReconnectPolicy::default().with(|it| it.first_delay = Duration::ZERO);
        let endpoint = Endpoint::bind(config(vec![LOOPBACK])).expect("loopback");
        let mut client = ReconnectingClient::new(endpoint, peer, policy);
        let first = client.association().await.expect("it listens");
        first.start_shutdown(None);
        let second = client.association().await.expect("it listens");
        assert_ne!(first.id(), second.id());
        second
            .send("a message", Default::default())
            .await
            .expect("it is established");
    });
}
