//! Several endpoints on the same sockets: one UDP port carries all SCTP ports (RFC 6951 §5.1).

use crate::common;

use std::net::{IpAddr, Ipv4Addr};

use anabranch_net::{
    AddressChange, AddressError, Association, AssociationError, BindError, Carrier, CloseReason,
    Config, ConnectError, Endpoint, Peer, SendOptions, SharedSockets,
};
use anabranch_sctp::ZeroChecksum;
use common::{LOOPBACK, bounded, pattern};

fn settings(port: u16) -> Config {
    Config::default().with(|it| {
        it.port = port;
        it.accept = port != 0;
        it.addresses = vec![LOOPBACK];
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
    })
}

fn sockets() -> SharedSockets {
    SharedSockets::open(&settings(0)).expect("loopback")
}

async fn refused(client: &Endpoint, peer: Peer) {
    let aborted = CloseReason::AbortedByPeer { cause: None };
    assert_eq!(
        client.connect(peer).await.map(drop),
        Err(ConnectError::Association(AssociationError(aborted)))
    );
}

/// Sends `count` messages that depend on `seed`, and shuts down.
async fn feed(association: Association, seed: u32, count: u32) {
    for index in 0..count {
        let sent = association.send(pattern(seed + index, 2_000), SendOptions::default());
        sent.await.expect("up");
    }
    association.shutdown().await.expect("graceful");
}

#[test]
fn each_port_has_its_own_associations() {
    bounded(async {
        let shared = sockets();
        let ports = [5_001, 5_002, 5_003];
        let servers =
            ports.map(|port| Endpoint::bind_with(settings(port), &shared).expect("a free port"));
        // The clients share sockets too, so that all packets go from one UDP port to another.
        let clients = sockets();
        let mut sending = Vec::new();
        let mut taking = Vec::new();
        for (index, server) in servers.iter().enumerate() {
            let client = Endpoint::bind_with(settings(0), &clients).expect("any port");
            let peer = Peer::from((LOOPBACK, server.port())).over_udp(shared.udp_port());
            let association = client.connect(peer).await.expect("it listens");
            let accepted = server.accept().await.expect("it came");
            let primary = accepted.status().expect("up").primary;
            assert_eq!(primary.udp_port, clients.udp_port());
            let seed = index as u32 * 100_000;
            sending.push(tokio::spawn(feed(association, seed, 1_000)));
            taking.push(tokio::spawn(async move {
                for number in 0..1_000 {
                    let message = accepted.recv().await.expect("up").expect("open");
                    assert_eq!(message.bytes, pattern(seed + number, 2_000));
                }
                assert_eq!(accepted.recv().await, Ok(None));
            }));
        }
        for task in sending.into_iter().chain(taking) {
            task.await.expect("no panic");
        }
    });
}

#[test]
fn settings_that_are_refused_leave_the_port_free() {
    bounded(async {
        let shared = sockets();
        let mut config = settings(5_001);
        config.sctp.zero_checksum = ZeroChecksum::Dtls;
        let refused = Endpoint::bind_with(config, &shared).map(drop);
        assert!(matches!(refused, Err(BindError::Config(_))), "{refused:?}");
        Endpoint::bind_with(settings(5_001), &shared).expect("free");
    });
}

#[test]
fn an_unused_port_is_reported_and_can_be_bound_again() {
    bounded(async {
        let shared = sockets();
        let bind = |port| Endpoint::bind_with(settings(port), &shared);
        let (first, second) = (bind(5_001).expect("free"), bind(5_002).expect("free"));
        let again = bind(5_001).map(drop);
        assert!(
            matches!(again, Err(BindError::PortTaken(5_001))),
            "{again:?}"
        );
        let client = Endpoint::bind(settings(0)).expect("loopback");
        let peer = |port| Peer::from((LOOPBACK, port)).over_udp(shared.udp_port());
        refused(&client, peer(5_003)).await;
        let held = client.connect(peer(5_002)).await.expect("it listens");
        let accepted = second.accept().await.expect("it came");

        drop(first);
        let third = loop {
            match bind(5_001) {
                Err(BindError::PortTaken(_)) => tokio::task::yield_now().await,
                other => break other.expect("free again"),
            }
        };
        drop(third);
        while bind(5_001).is_err() {
            tokio::task::yield_now().await;
        }
        // When one endpoint ends, the others continue.
        held.send("still here", SendOptions::default())
            .await
            .expect("up");
        let message = accepted.recv().await.expect("up").expect("open");
        assert_eq!(message.bytes, "still here");
        held.shutdown().await.expect("graceful");
    });
}

/// Endpoints with the same port get the packets to their own addresses, and cannot share an
/// address.
#[test]
fn one_port_can_be_had_at_several_addresses() {
    bounded(async {
        let [first, second, third] =
            [1, 2, 3].map(|last| IpAddr::from(Ipv4Addr::new(127, 0, 0, last)));
        let at = |port, addresses: &[IpAddr]| {
            settings(port).with(|it| it.addresses = addresses.to_vec())
        };
        let shared =
            SharedSockets::open(&at(0, &[first, second, third])).expect("loopback has them");
        let bind = |addresses: &[IpAddr]| Endpoint::bind_with(at(5_001, addresses), &shared);
        let servers = [bind(&[first]), bind(&[second])].map(|it| it.expect("free there"));
        // An endpoint without addresses in its settings has all addresses of the sockets.
        for taken in [&[first][..], &[third, second], &[]] {
            let refused = bind(taken).map(drop);
            assert!(
                matches!(refused, Err(BindError::PortTaken(5_001))),
                "{refused:?}"
            );
        }
        let client = Endpoint::bind(settings(0)).expect("loopback");
        for round in 0..2 {
            for (server, address) in servers.iter().zip([first, second]) {
                let peer = Peer::from((address, 5_001)).over_udp(shared.udp_port());
                let association = client.connect(peer).await.expect("it listens");
                let accepted = server.accept().await.expect("it came there");
                let seed = 1_000 * round;
                let sending = tokio::spawn(feed(association, seed, 100));
                for number in 0..100 {
                    let message = accepted.recv().await.expect("up").expect("open");
                    assert_eq!(message.bytes, pattern(seed + number, 2_000));
                }
                assert_eq!(accepted.recv().await, Ok(None));
                sending.await.expect("no panic");
            }
        }
        // The address of another endpoint cannot be added, but a free one can.
        let refused = servers[0].change_addresses(&[AddressChange::Add(second)]);
        let AddressError::Socket(refused) = refused.expect_err("it is the other's") else {
            panic!("another error");
        };
        assert!(matches!(*refused, BindError::PortTaken(5_001)));
        assert_eq!(servers[0].addresses(), [first]);
        servers[0]
            .change_addresses(&[AddressChange::Add(third)])
            .expect("nobody has it");
        assert!(bind(&[third]).is_err());
        servers[0]
            .change_addresses(&[AddressChange::Remove(third)])
            .expect("it has it");
        drop(bind(&[third]).expect("nobody has it"));
    });
}

#[test]
fn an_endpoint_alone_answers_for_its_whole_udp_port() {
    bounded(async {
        let server = Endpoint::bind(settings(5_001)).expect("loopback");
        let client = Endpoint::bind(settings(0)).expect("loopback");
        let elsewhere = Peer::from((LOOPBACK, 5_002)).over_udp(server.udp_port());
        refused(&client, elsewhere).await;
    });
}

#[test]
fn endpoints_outlive_the_handle_of_their_sockets() {
    bounded(async {
        let shared = sockets();
        let udp_port = shared.udp_port();
        let server = Endpoint::bind_with(settings(5_001), &shared).expect("free");
        drop(shared);
        let client = Endpoint::bind(settings(0)).expect("loopback");
        let peer = Peer::from((LOOPBACK, 5_001)).over_udp(udp_port);
        let association = client.connect(peer).await.expect("it listens");
        let accepted = server.accept().await.expect("it came");
        drop(server);
        association.shutdown().await.expect("graceful");
        assert_eq!(accepted.recv().await, Ok(None));
        drop(accepted);
        // After the last endpoint the sockets are closed, and the port is free.
        while std::net::UdpSocket::bind((LOOPBACK, udp_port)).is_err() {
            tokio::task::yield_now().await;
        }
    });
}

/// Number of endpoints on the same sockets, large enough that a search through all of them for each
/// packet would be noticed.
const ENDPOINTS: u16 = 200;

/// Each of many endpoints is woken separately: by packets, by its users, and when its handles are
/// dropped.
#[test]
fn each_of_many_endpoints_does_what_is_to_be_done() {
    bounded(async {
        let server = Endpoint::bind(settings(5_001)).expect("loopback");
        let clients = sockets();
        let peer = Peer::from((LOOPBACK, 5_001)).over_udp(server.udp_port());
        let mut pairs = Vec::new();
        for number in 0..ENDPOINTS {
            let client = Endpoint::bind_with(settings(10_000 + number), &clients).expect("free");
            let association = client.connect(peer.clone()).await.expect("it listens");
            let accepted = server.accept().await.expect("it came");
            pairs.push((client, association, accepted));
        }
        for round in 0..3 {
            for (number, (_, association, accepted)) in pairs.iter().enumerate() {
                let text = format!("message {round} of client {number}");
                let sent = association.send(text.clone(), SendOptions::default());
                sent.await.expect("up");
                let message = accepted.recv().await.expect("up").expect("open");
                assert_eq!(message.bytes, text);
                let back = accepted.send(message.bytes, SendOptions::default());
                back.await.expect("up");
                let message = association.recv().await.expect("up").expect("open");
                assert_eq!(message.bytes, text);
            }
        }
        let last = pairs.pop().expect("there are many");
        for (client, association, accepted) in pairs {
            let ends = tokio::spawn(async move { accepted.recv().await });
            association.shutdown().await.expect("graceful");
            assert_eq!(ends.await.expect("no panic"), Ok(None));
            drop((client, association));
        }
        for number in 0..ENDPOINTS - 1 {
            while Endpoint::bind_with(settings(10_000 + number), &clients).is_err() {
                tokio::task::yield_now().await;
            }
        }
        let (_client, association, accepted) = last;
        let sent = association.send("alone", SendOptions::default());
        sent.await.expect("up");
        let message = accepted.recv().await.expect("up").expect("open");
        assert_eq!(message.bytes, "alone");
    });
}

/// The timers of each endpoint expire in time although no packet arrives that would wake the
/// driver.
#[test]
fn each_of_many_endpoints_keeps_its_own_timers() {
    bounded(async {
        let clients = sockets();
        // The port is bound and never read.
        let silent = std::net::UdpSocket::bind((LOOPBACK, 0)).expect("loopback");
        let port = silent.local_addr().expect("bound").port();
        let mut attempts = Vec::new();
        for number in 0..ENDPOINTS {
            let config = settings(10_000 + number).with(|it| {
                it.accept = false;
                it.sctp.max_init_retransmits = u32::from(number % 3);
                it.sctp.rto_min = 10_000_000 + 1_000_000 * u64::from(number % 7);
                it.sctp.rto_max = it.sctp.rto_min;
            });
            let client = Endpoint::bind_with(config, &clients).expect("free");
            let peer = Peer::from((LOOPBACK, 5_001)).over_udp(port);
            attempts.push(tokio::spawn(
                async move { client.connect(peer).await.map(drop) },
            ));
        }
        for attempt in attempts {
            let ended = attempt.await.expect("no panic");
            assert_eq!(
                ended,
                Err(ConnectError::Association(AssociationError(
                    CloseReason::NoAnswer
                )))
            );
        }
    });
}
