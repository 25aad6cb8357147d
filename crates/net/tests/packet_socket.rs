//! Endpoints on transports of the application: a network in memory in virtual time, and sockets
//! that are bound already.

use crate::common;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use anabranch_net::{
    AddressChange, BindError, Carrier, Config, Endpoint, OutgoingPacket, PacketSocket, Peer,
    ReceivedPacket, SendOptions, SharedSockets,
};
use bytes::Bytes;
use common::lane::{Lane, ends};
use common::{LOOPBACK, bounded, pattern, without_timers};
use tokio::time::Instant;

/// One end of a link in memory, which loses every tenth packet.
struct End {
    sent: u64,
    local: SocketAddr,
    peer: SocketAddr,
    sends: Arc<Lane>,
    receives: Arc<Lane>,
}

impl PacketSocket for End {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn poll_send(
        &mut self,
        _: &mut Context<'_>,
        packet: &OutgoingPacket<'_>,
    ) -> Poll<io::Result<()>> {
        assert_eq!(packet.to, self.peer);
        self.sent += 1;
        if !self.sent.is_multiple_of(10) {
            self.sends.push(packet.bytes);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<ReceivedPacket>> {
        self.receives.poll_pop(cx, buffer, self.peer)
    }
}

fn link() -> [Box<dyn PacketSocket>; 2] {
    let lanes = [Arc::<Lane>::default(), Arc::default()];
    [0, 1].map(|side| {
        let (local, peer) = ends(side);
        let end = End {
            sent: 0,
            local,
            peer,
            sends: Arc::clone(&lanes[side]),
            receives: Arc::clone(&lanes[1 - side]),
        };
        Box::new(end) as Box<dyn PacketSocket>
    })
}

/// Losses cause timeouts of seconds, which pass in virtual time.
#[tokio::test(start_paused = true)]
async fn an_association_over_packets_in_memory_lives_in_virtual_time() {
    let [here, there] = link();
    let config = Config::default();
    let client = SharedSockets::on_packets(&config, vec![here]).expect("a socket");
    let client = Endpoint::bind_with(config.clone(), &client).expect("free");
    let server = SharedSockets::on_packets(&config, vec![there]).expect("a socket");
    let listening = Config::server(7).with(|it| it.carrier = config.carrier);
    let server = Endpoint::bind_with(listening, &server).expect("free");
    assert_eq!(client.local_addresses(), [([10, 0, 0, 1], 9_899).into()]);

    let began = Instant::now();
    let held = client
        .connect(([10, 0, 0, 2], 7))
        .await
        .expect("it listens");
    let served = server.accept().await.expect("it came");
    let messages: Vec<Bytes> = (0..300).map(|seed| pattern(seed, 3_000)).collect();
    let sent = messages.clone();
    let sending = tokio::spawn(async move {
        for message in sent {
            held.send(message, SendOptions::default()).await?;
        }
        held.shutdown().await.expect("graceful");
        Ok::<_, anabranch_net::SendError>(())
    });
    for message in &messages {
        let received = served.recv().await.expect("up").expect("a message");
        assert_eq!(received.bytes, message);
    }
    assert_eq!(served.recv().await, Ok(None));
    sending.await.expect("no panic").expect("sent");
    let took = began.elapsed();
    assert!(
        took < Duration::from_secs(3_600),
        "{took:?} of virtual time"
    );
    assert!(server.statistics().packets_received > 300);
}

/// An endpoint on sockets that the application has bound uses their addresses.
#[test]
fn an_endpoint_stands_on_sockets_that_are_bound_already() {
    bounded(async {
        let config = without_timers(Config::default()).with(|it| {
            it.carrier = Carrier::Encapsulated {
                port: 0,
                peer_port: 0,
            };
        });
        let bind = || {
            let socket = UdpSocket::bind((LOOPBACK, 0)).expect("loopback");
            let bound = socket.local_addr().expect("bound");
            let sockets = SharedSockets::on_udp(&config, vec![socket]).expect("a socket");
            assert_eq!(sockets.local_addresses(), [bound]);
            (sockets, bound.port())
        };
        let ((here, _), (there, udp_port)) = (bind(), bind());
        let client = Endpoint::bind_with(config.clone(), &here).expect("free");
        let listening = config.clone().with(|it| it.accept = true);
        let server = Endpoint::bind_with(listening, &there).expect("free");
        let peer = Peer::from((LOOPBACK, server.port())).over_udp(udp_port);
        let held = client.connect(peer).await.expect("it listens");
        let served = server.accept().await.expect("it came");
        held.send(pattern(1, 20_000), SendOptions::on(3))
            .await
            .expect("up");
        let message = served.recv().await.expect("up").expect("a message");
        assert_eq!(message.bytes, pattern(1, 20_000));
        let other: IpAddr = [127, 0, 0, 77].into();
        client
            .change_addresses(&[AddressChange::Add(other)])
            .expect_err("no socket is opened");
        held.shutdown().await.expect("graceful");
    });
}

#[test]
fn no_socket_is_no_endpoint() {
    bounded(async {
        let config = Config::default();
        let refused = SharedSockets::on_udp(&config, Vec::new()).expect_err("none");
        assert!(matches!(refused, BindError::Config(_)), "{refused}");
        let refused = SharedSockets::on_packets(&config, Vec::new()).expect_err("none");
        assert!(matches!(refused, BindError::Config(_)), "{refused}");
    });
}

/// A packet socket is called only from the endpoint's task, even for a message that could be sent
/// immediately.
#[tokio::test(start_paused = true)]
async fn a_send_does_not_call_the_socket_of_the_caller() {
    let [here, there] = link();
    let config = without_timers(Config::default());
    let client = SharedSockets::on_packets(&config, vec![here]).expect("a socket");
    let client = Endpoint::bind_with(config.clone(), &client).expect("free");
    let server = SharedSockets::on_packets(&config, vec![there]).expect("a socket");
    let listening = Config::server(7).with(|it| it.carrier = config.carrier);
    let server = Endpoint::bind_with(without_timers(listening), &server).expect("free");
    let held = client
        .connect(([10, 0, 0, 2], 7))
        .await
        .expect("it listens");
    let served = server.accept().await.expect("it came");
    let sent = served.send("first", SendOptions::default());
    sent.await.expect("up");
    held.recv().await.expect("up").expect("open");
    let before = client.statistics().packets_sent;
    held.try_send("second", SendOptions::default())
        .expect("room");
    assert_eq!(client.statistics().packets_sent, before, "nobody has run");
    let message = served.recv().await.expect("up").expect("open");
    assert_eq!(&message.bytes[..], b"second");
    assert!(client.statistics().packets_sent > before);
}
