//! ICMP beside raw IP: a message about a packet of ours ends the attempt that it says is in vain.

use crate::common;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Sender, channel};

use anabranch_net::{
    BindError, Carrier, CloseReason, Config, ConnectError, Direction, Endpoint, Lost, Observer,
    Peer, Seen,
};
use common::{LOOPBACK, bounded};
use socket2::{Domain, Protocol, Socket, Type};

/// Hands on what is sent.
struct Watch(Sender<Vec<u8>>);

impl Observer for Watch {
    fn packet(&mut self, seen: &Seen<'_>) {
        if seen.direction == Direction::Out {
            // Nobody listens any more once the test has what it needs.
            let _ = self.0.send(seen.packet.to_vec());
        }
    }
}

/// Protocol unreachable about `packet` on its way to `remote`.
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

/// The system may say so itself, or not, where another raw socket takes the packet; the test does in any case.
#[test]
fn a_connect_to_where_nobody_speaks_sctp_ends_with_the_first_icmp_message() {
    bounded(async {
        let (sender, sent) = channel();
        let config = Config::default().with(|it| {
            it.addresses = vec![LOOPBACK];
            it.carrier = Carrier::Ip;
        });
        let client = match Endpoint::bind_observed(config, Box::new(Watch(sender))) {
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
        // About each packet of the attempt, until the endpoint is gone.
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
            Err(ConnectError::Lost(Lost(CloseReason::ProtocolUnreachable)))
        );
        assert!(ended, "{:?}", result.err());
    });
}
