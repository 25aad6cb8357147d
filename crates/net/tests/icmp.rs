//! ICMP over raw IP: a message about a packet of the handshake ends an attempt that cannot succeed.

use crate::common;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Sender, channel};

use anabranch_net::{
    AssociationError, BindError, BindOptions, Carrier, CloseReason, Config, ConnectError,
    Direction, Endpoint, ObservedPacket, Observer, Peer,
};
use common::{LOOPBACK, bounded};
use socket2::{Domain, Protocol, Socket, Type};

/// An observer that passes sent packets to the test.
struct Watch(Sender<Vec<u8>>);

impl Observer for Watch {
    fn packet(&mut self, seen: &ObservedPacket<'_>) {
        if seen.direction == Direction::Out {
            // Fails after the test has the packets it needs.
            let _ = self.0.send(seen.packet.to_vec());
        }
    }
}

/// An ICMP message Protocol Unreachable about `packet`, which was sent to `remote`.
fn unreachable(remote: Ipv4Addr, packet: &[u8]) -> Vec<u8> {
    let mut message = vec![3, 2, 0, 0, 0, 0, 0, 0];
    let mut header = [0; 20];
    header[0] = 0x45;
    header[9] = 132;
    header[12..16].copy_from_slice(&Ipv4Addr::LOCALHOST.octets());
    header[16..20].copy_from_slice(&remote.octets());
    message.extend_from_slice(&header);
    message.extend_from_slice(packet);
    let sum: u32 = message
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    let sum = (sum & 0xFFFF) + (sum >> 16);
    message[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    message
}

/// The test sends the ICMP message itself, because the system sends none if another raw socket
/// receives the packet.
#[test]
fn a_connect_to_a_host_without_sctp_ends_with_the_first_icmp_message() {
    bounded(async {
        let (sender, sent) = channel();
        let config = Config::default().with(|it| {
            it.addresses = vec![LOOPBACK];
            it.carrier = Carrier::Ip;
        });
        let client = match Endpoint::bind_with(
            config,
            BindOptions::default().with_observer(Box::new(Watch(sender))),
        ) {
            Ok(client) => client,
            Err(BindError::RawNotAllowed(why)) => {
                println!("skipped: no right to open raw sockets ({why})");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let nobody = Ipv4Addr::new(127, 0, 0, 77);
        let attempt = tokio::spawn({
            let client = client.clone();
            async move {
                client
                    .connect(Peer::from((IpAddr::V4(nobody), 40_404)))
                    .await
            }
        });
        let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))
            .expect("raw sockets are allowed");
        // Sends a message about each packet of the attempt, until the endpoint is gone.
        std::thread::spawn(move || {
            let to = SocketAddr::new(LOOPBACK, 0).into();
            for packet in sent {
                raw.send_to(&unreachable(nobody, &packet), &to)
                    .expect("loopback");
            }
        });
        let result = attempt.await.expect("ends");
        let ended = matches!(
            result,
            Err(ConnectError::Association(AssociationError(
                CloseReason::ProtocolUnreachable
            )))
        );
        assert!(ended, "{:?}", result.err());
    });
}

/// A peer whose process is killed sends nothing, but its UDP port is closed, so the system answers
/// packets with ICMP messages.
#[cfg(target_os = "linux")]
#[test]
fn an_association_ends_when_the_peers_port_is_closed() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let home = |port| {
        let carrier = Carrier::Encapsulated { port, peer_port: 0 };
        Config::server(5_001).with(|it| {
            it.addresses = vec![LOOPBACK];
            it.carrier = carrier;
        })
    };
    let server = {
        let _there = runtime.enter();
        Endpoint::bind(home(0)).expect("loopback")
    };
    let port = server.udp_port();
    bounded(async move {
        let client = Endpoint::bind(home(0).with(|it| it.port = 0)).expect("loopback");
        let peer = || Peer::from((LOOPBACK, 5_001)).over_udp(port);
        let association = client.connect(peer()).await.expect("it listens");
        // Ends the runtime of the server, which closes its sockets, so that the server cannot send
        // an ABORT.
        tokio::task::spawn_blocking(move || {
            runtime.shutdown_timeout(std::time::Duration::from_secs(60));
            drop(server);
        })
        .await
        .expect("it ends");
        let sends = async {
            loop {
                // Fails when the association has ended.
                let options = anabranch_net::SendOptions::default();
                let sent = association.send(&b"who is there?"[..], options).await;
                if sent.is_err() {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        let reason = tokio::select! {
            reason = association.closed() => reason,
            () = sends => association.closed().await,
        };
        assert_eq!(reason, CloseReason::ProtocolUnreachable);
        let refused = client.connect(peer()).await.expect_err("nobody is there");
        let unreachable =
            ConnectError::Association(AssociationError(CloseReason::ProtocolUnreachable));
        assert_eq!(refused, unreachable);
    });
}
