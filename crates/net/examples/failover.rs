//! A sender with two paths to its peer, which continues over the second path when the first fails.
//!
//! `cargo run -p anabranch-net --example failover`: on Linux only, because it needs all of
//! 127.0.0.0/8.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use anabranch_net::{
    Association, AssociationError, Carrier, Config, Endpoint, Event, OutgoingPacket, PacketSocket,
    PathState, Peer, ReceivedPacket, SendOptions, SharedSockets,
};
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;

/// Addresses of the server in two networks.
pub const SERVER: [[u8; 4]; 2] = [[127, 0, 24, 1], [127, 0, 25, 1]];
/// Addresses of the client in the same networks.
pub const CLIENT: [[u8; 4]; 2] = [[127, 0, 24, 2], [127, 0, 25, 2]];
const MESSAGES: u32 = 200;

/// Settings of an endpoint with two addresses, both of which it lists in the handshake.
pub fn two_homes(addresses: [[u8; 4]; 2]) -> Config {
    let config = Config::default().with_timers(|timers| {
        timers.rto_initial = Duration::from_millis(100);
        timers.rto_min = Duration::from_millis(50);
        timers.heartbeat_interval = Some(Duration::from_millis(200));
    });
    config.with(|it| {
        it.addresses = addresses.map(IpAddr::from).to_vec();
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
        // The path becomes inactive after two consecutive timeouts.
        it.sctp.path_max_retrans = 1;
        // Should be at least the sum of Path.Max.Retrans over all paths (RFC 9260 §8.1); larger
        // here, because the host may be busy.
        it.sctp.association_max_retrans = 30;
    })
}

/// Waits until the path to an address is in a state, and prints all events.
pub async fn wait_for(
    association: &Association,
    path: IpAddr,
    wanted: PathState,
) -> Result<(), String> {
    while let Some(event) = association.next_event().await {
        println!("sender: {event:?}");
        match event {
            Event::PathChanged { address, state, .. } if (address, state) == (path, wanted) => {
                return Ok(());
            }
            _ => {}
        }
    }
    Err(format!("it has ended before {path} was {wanted:?}"))
}

/// Sends numbered messages. It has no code for the failover, because the association retransmits
/// lost data over the other path, in order.
async fn send(association: Association) -> Result<(), Box<dyn Error + Send + Sync>> {
    for number in 0..MESSAGES {
        let message = number.to_be_bytes().to_vec();
        association.send(message, SendOptions::default()).await?;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    association.shutdown().await?;
    Ok(())
}

/// Reads to the end, and returns the number of messages that arrived in order.
async fn receive(association: Association) -> Result<u32, AssociationError> {
    let mut expected = 0_u32;
    while let Some(message) = association.recv().await? {
        assert_eq!(&message.bytes[..], expected.to_be_bytes());
        expected += 1;
    }
    Ok(expected)
}

/// Runs a sender and a receiver, and cuts the first path between them.
pub async fn run() -> Result<(), Box<dyn Error + Send + Sync>> {
    let first_is_cut = Arc::new(AtomicBool::new(false));
    let listening = two_homes(SERVER).with(|it| it.accept = true);
    let server = Endpoint::bind_with(listening, &sockets(&first_is_cut).await?)?;
    let client = Endpoint::bind(two_homes(CLIENT))?;
    let [first, second] = SERVER.map(IpAddr::from);
    let peer = Peer::new([first, second], server.port()).over_udp(server.udp_port());
    let association = client.connect(peer).await?;
    let receiving = tokio::spawn(receive(server.accept().await?));

    // Data may be sent over a path only after a HEARTBEAT has confirmed its address (RFC 9260
    // §5.4).
    wait_for(&association, second, PathState::Active).await?;
    let sending = tokio::spawn(send(association.clone()));
    first_is_cut.store(true, Ordering::Relaxed);
    wait_for(&association, first, PathState::Inactive).await?;
    if let Some(status) = association.status() {
        println!("sender: data goes to {}", status.in_use.address);
        assert_eq!(status.in_use.address, second);
    }
    sending.await??;
    assert_eq!(receiving.await??, MESSAGES);
    Ok(())
}

/// A socket for each address of the server; the first one loses all packets after it is cut.
pub async fn sockets(
    first_is_cut: &Arc<AtomicBool>,
) -> Result<SharedSockets, Box<dyn Error + Send + Sync>> {
    let [first, second] = SERVER.map(IpAddr::from);
    let socket = UdpSocket::bind((first, 0)).await?;
    let port = socket.local_addr()?.port();
    let first = Cuttable {
        socket,
        is_cut: Arc::clone(first_is_cut),
    };
    let second = Cuttable {
        socket: UdpSocket::bind((second, port)).await?,
        is_cut: Arc::default(),
    };
    let config = two_homes(SERVER);
    let sockets = SharedSockets::on_packets(&config, vec![Box::new(first), Box::new(second)]);
    Ok(sockets?)
}

/// A UDP socket that loses all packets while it is cut.
struct Cuttable {
    socket: UdpSocket,
    is_cut: Arc<AtomicBool>,
}

impl PacketSocket for Cuttable {
    fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr().expect("it is bound")
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        packet: &OutgoingPacket<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_cut.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let sent = self.socket.poll_send_to(cx, packet.bytes, packet.to);
        sent.map_ok(drop)
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<ReceivedPacket>> {
        loop {
            let mut filled = ReadBuf::new(buffer);
            let from = ready!(self.socket.poll_recv_from(cx, &mut filled))?;
            if !self.is_cut.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(ReceivedPacket::new(filled.filled().len(), from)));
            }
        }
    }
}

#[tokio::main]
#[allow(dead_code, reason = "a test includes this file, and calls `run`")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    run().await
}
