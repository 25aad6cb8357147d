//! The three carriers over IPv4 and IPv6, and the detection of the peer's UDP port.

use crate::common;

use std::net::{IpAddr, Ipv6Addr};

use anabranch_net::{BindError, Carrier, Config, Endpoint, Peer, SendOptions};
use common::{LOOPBACK, bounded, pattern, without_timers};

/// Exchanges a hundred messages in each direction between two endpoints with these settings, and
/// shuts down.
async fn exchange(client: Config, server: Config) {
    let server = Endpoint::bind(server).expect("a server on the loopback interface");
    let client = Endpoint::bind(client).expect("a client on the loopback interface");
    exchange_between(&client, &server).await;
}

async fn exchange_between(client_endpoint: &Endpoint, server: &Endpoint) {
    let address = server.local_addresses()[0].ip();
    let peer = Peer::from((address, server.port())).over_udp(server.udp_port());
    let association = client_endpoint.connect(peer).await.expect("it listens");
    let accepted = server.accept().await.expect("it came");
    for index in 0..100u32 {
        let size = 1 + index as usize * 200;
        let options = SendOptions::default()
            .with_ppid(index)
            .with_unordered(index % 3 == 0);
        association
            .send(
                pattern(index, size),
                options.with_stream(Some((index % 5) as u16)),
            )
            .await
            .expect("up");
        let message = accepted.recv().await.expect("up").expect("open");
        assert_eq!(message.bytes, pattern(index, size));
        accepted
            .send(message.bytes, options.with_stream(Some(message.stream)))
            .await
            .expect("up");
        let back = association.recv().await.expect("up").expect("open");
        assert_eq!(
            (back.stream, back.ppid, back.bytes),
            ((index % 5) as u16, index, pattern(index, size))
        );
    }
    association.shutdown().await.expect("graceful");
    assert_eq!(client_endpoint.statistics().discards.total(), 0);
}

fn at(address: IpAddr, carrier: Carrier) -> Config {
    // No timer expires, because retransmitted chunks would be counted as drops.
    without_timers(Config::default().with(|it| {
        it.addresses = vec![address];
        it.carrier = carrier;
        it.accept = true;
    }))
}

const ANY_PORT: Carrier = Carrier::Encapsulated {
    port: 0,
    peer_port: 0,
};

#[test]
fn inside_udp_over_both_families() {
    for address in [LOOPBACK, Ipv6Addr::LOCALHOST.into()] {
        bounded(exchange(at(address, ANY_PORT), at(address, ANY_PORT)));
    }
}

#[test]
fn at_every_address_of_the_host() {
    bounded(async {
        let any = || {
            Config::default().with(|it| {
                it.carrier = ANY_PORT;
                it.accept = true;
            })
        };
        for address in [LOOPBACK, Ipv6Addr::LOCALHOST.into()] {
            let (client, server) = (Endpoint::bind(any()), Endpoint::bind(any()));
            let (client, server) = (client.expect("any"), server.expect("any"));
            let peer = Peer::from((address, server.port())).over_udp(server.udp_port());
            let association = client.connect(peer).await.expect("it listens");
            let accepted = server.accept().await.expect("it came");
            accepted
                .send("from every address", SendOptions::default())
                .await
                .expect("up");
            assert!(association.recv().await.expect("up").is_some());
            // The server answers from the address that the client used.
            let status = accepted.status().expect("up");
            assert_eq!(
                (status.primary.local, status.primary.address),
                (address, address)
            );
            association.shutdown().await.expect("graceful");
        }
    });
}

#[test]
fn between_two_fixed_udp_ports() {
    bounded(async {
        // Two ports that are free now. If another process binds them first, the test tries two
        // others.
        let (one, other) = loop {
            let held = [(); 2].map(|()| std::net::UdpSocket::bind((LOOPBACK, 0)).expect("a port"));
            let [port, peer_port] = held.map(|socket| socket.local_addr().expect("bound").port());
            let fixed = |port, peer_port| at(LOOPBACK, Carrier::Udp { port, peer_port });
            let one = Endpoint::bind(fixed(port, peer_port));
            match (one, Endpoint::bind(fixed(peer_port, port))) {
                (Ok(one), Ok(other)) => break (one, other),
                (Err(BindError::Socket { .. }), _) | (_, Err(BindError::Socket { .. })) => {}
                (Err(error), _) | (_, Err(error)) => panic!("{error}"),
            }
        };
        exchange_between(&one, &other).await;
    });
}

#[test]
fn a_fixed_port_receives_no_other() {
    bounded(async {
        let server = at(
            LOOPBACK,
            Carrier::Udp {
                port: 0,
                peer_port: 9,
            },
        );
        let server = Endpoint::bind(server).expect("loopback");
        let stranger = Endpoint::bind(at(LOOPBACK, ANY_PORT)).expect("loopback");
        let peer = Peer::from((LOOPBACK, server.port())).over_udp(server.udp_port());
        let attempt = stranger.connect(peer);
        tokio::select! {
            result = attempt => panic!("the server answered: {result:?}"),
            () = async {
                while server.statistics().foreign == 0 {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
        assert_eq!(server.statistics().packets_received, 0);
    });
}

#[test]
fn right_above_ip_or_a_word_about_what_to_do() {
    // Over raw IP every endpoint receives every SCTP packet of the host, so each needs a unique
    // port, even if this test runs twice at the same time.
    let first = 1_024 + (std::process::id() % 20_000) as u16 * 3;
    let [probed, served, calling] = [first, first + 1, first + 2];
    bounded(async {
        for address in [LOOPBACK, Ipv6Addr::LOCALHOST.into()] {
            match Endpoint::bind(at(address, Carrier::Ip).with(|it| it.port = probed)) {
                Ok(probe) => drop(probe),
                Err(BindError::RawNotAllowed(_)) => {
                    let message =
                        Endpoint::bind(at(address, Carrier::Ip).with(|it| it.port = probed))
                            .map(drop)
                            .expect_err("as before")
                            .to_string();
                    assert!(
                        message.contains("CAP_NET_RAW") && message.contains("UDP"),
                        "{message}"
                    );
                    continue;
                }
                Err(other) => panic!("{other}"),
            }
            let server = Endpoint::bind(at(address, Carrier::Ip).with(|it| it.port = served));
            let client = Endpoint::bind(at(address, Carrier::Ip).with(|it| it.port = calling));
            let (server, client) = (server.expect("root"), client.expect("root"));
            let association = client.connect((address, served)).await.expect("it listens");
            let accepted = server.accept().await.expect("it came");
            for size in [1, 1_000, 100_000] {
                association
                    .send(pattern(1, size), SendOptions::default())
                    .await
                    .expect("up");
                let message = accepted.recv().await.expect("up").expect("open");
                assert_eq!(message.bytes, pattern(1, size));
            }
            assert_eq!(association.status().expect("up").primary.udp_port, 0);
            association.shutdown().await.expect("graceful");
        }
    });
}

/// With these carriers zero checksums are refused, because no layer below SCTP detects damaged
/// packets (RFC 9653 §3).
#[tokio::test]
async fn without_dtls_every_packet_has_its_checksum() {
    let mut config = Config::default();
    config.sctp.zero_checksum = anabranch_sctp::ZeroChecksum::Dtls;
    let refused = Endpoint::bind(config).expect_err("nothing finds damage");
    assert!(matches!(&refused, BindError::Config(it) if it.contains("zero_checksum")));
}
