//! Incoming associations on which the application decides.

use crate::common;

use anabranch_net::{
    AssociationError, Carrier, CloseReason, Config, ConnectError, Endpoint, Peer, Refusal,
    SendOptions,
};
use common::{LOOPBACK, bounded, without_timers};

fn settings() -> Config {
    without_timers(Config::default()).with(|it| {
        it.addresses = vec![LOOPBACK];
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
    })
}

fn deciding(undecided: usize) -> Endpoint {
    let config = settings().with(|it| (it.accept, it.undecided) = (true, undecided));
    Endpoint::bind(config).expect("loopback")
}

fn peer_of(server: &Endpoint) -> Peer {
    Peer::from((LOOPBACK, server.port())).over_udp(server.udp_port())
}

#[test]
fn a_peer_waits_for_the_decision_and_is_accepted() {
    bounded(async {
        let server = deciding(1);
        let client = Endpoint::bind(settings()).expect("loopback");
        let (udp_port, port) = (client.udp_port(), client.port());
        let peer = peer_of(&server);
        let connecting = tokio::spawn(async move { client.connect(peer).await });
        let incoming = server.incoming().await.expect("one came");
        assert_eq!(incoming.peer_addr(), (LOOPBACK, port).into());
        assert_eq!(incoming.udp_port(), udp_port);
        assert_eq!(incoming.local_addr(), (LOOPBACK, server.port()).into());
        assert_eq!(incoming.addresses(), [LOOPBACK]);
        assert!(!connecting.is_finished(), "nobody has answered");
        let served = incoming.accept().expect("it is there");
        let held = connecting.await.expect("no panic").expect("accepted");
        let sent = served.send("welcome", SendOptions::default());
        sent.await.expect("up");
        let message = held.recv().await.expect("up").expect("a message");
        assert_eq!(&message.bytes[..], b"welcome");
        held.shutdown().await.expect("graceful");
        assert_eq!(served.closed().await, CloseReason::Shutdown);
    });
}

#[test]
fn a_peer_is_refused_with_what_the_application_says() {
    bounded(async {
        let server = deciding(4);
        let aborted = |cause| {
            ConnectError::Association(AssociationError(CloseReason::AbortedByPeer { cause }))
        };
        for (refusal, expected) in [
            (Some(Refusal::Reason("not today".into())), aborted(Some(12))),
            (Some(Refusal::OutOfResource), aborted(Some(4))),
            (Some(Refusal::Plain), aborted(None)),
            (None, aborted(None)),
        ] {
            let client = Endpoint::bind(settings()).expect("loopback");
            let peer = peer_of(&server);
            let connecting = tokio::spawn(async move { client.connect(peer).await });
            let incoming = server.incoming().await.expect("one came");
            match refusal {
                Some(refusal) => incoming.refuse_with(refusal),
                None => drop(incoming),
            }
            let error = connecting.await.expect("no panic").expect_err("refused");
            assert_eq!(error, expected);
        }
        server.wait_idle().await;
    });
}

#[test]
fn a_peer_is_sent_elsewhere_and_follows_if_it_likes() {
    bounded(async {
        let server = deciding(4);
        let elsewhere = Endpoint::bind(settings().with(|it| it.accept = true));
        let elsewhere = elsewhere.expect("loopback");
        let client = Endpoint::bind(settings()).expect("loopback");
        let (peer, other) = (peer_of(&server), peer_of(&elsewhere));
        let connecting = tokio::spawn(async move { (client.connect(peer).await, client) });
        server.incoming().await.expect("one came").redirect(&other);
        let (error, client) = connecting.await.expect("no panic");
        let Err(ConnectError::Redirected(named)) = error else {
            panic!("{error:?}");
        };
        assert_eq!(named, other);
        client.connect(named).await.expect("it listens");
    });
}

/// `accept` works in the same way as without decisions.
#[test]
fn accept_takes_all_that_come() {
    bounded(async {
        let server = deciding(8);
        let client = Endpoint::bind(settings()).expect("loopback");
        let peer = peer_of(&server);
        let (held, served) = tokio::join!(client.connect(peer), server.accept());
        let (held, served) = (held.expect("accepted"), served.expect("it came"));
        served.abort("enough");
        held.closed().await;
        assert_eq!(
            held.status().and_then(|it| it.abort_reason).as_deref(),
            Some(&b"enough"[..])
        );
    });
}

/// Refusing new associations also refuses the peers that wait, and an `Incoming` that still exists
/// can no longer be accepted.
#[test]
fn an_endpoint_that_turns_peers_away_refuses_those_that_wait() {
    bounded(async {
        let server = deciding(4);
        let client = Endpoint::bind(settings()).expect("loopback");
        let peer = peer_of(&server);
        let connecting = tokio::spawn(async move { client.connect(peer).await });
        let incoming = server.incoming().await.expect("one came");
        server.refuse();
        let error = connecting.await.expect("no panic").expect_err("refused");
        let lost = AssociationError(CloseReason::AbortedByPeer { cause: None });
        assert_eq!(error, ConnectError::Association(lost));
        incoming.accept().expect_err("it was refused");
        server.incoming().await.expect_err("no more");
    });
}
