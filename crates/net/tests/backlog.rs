//! Many peers of one endpoint, connected in memory: the backlog limit is exact, and a peer with an
//! association never becomes an unknown source.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use anabranch_net::{
    Association, Config, Endpoint, OutgoingPacket, PacketSocket, ReceivedPacket, SharedSockets,
};
use anabranch_sctp::{AssociationState, ConnectOptions, Endpoint as Protocol};
use anabranch_transport::{Ecn, Path};
use bytes::{Bytes, BytesMut};

const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 1));
const UDP: u16 = 9_899;
/// SCTP port of the server and of its peers.
const PORT: u16 = 7;
const SECOND: u64 = 1_000_000_000;

fn address(peer: usize) -> IpAddr {
    [10, 0, (peer >> 8) as u8, peer as u8].into()
}

/// Packets in flight in each direction.
#[derive(Default)]
struct Air {
    there: VecDeque<(SocketAddr, Bytes)>,
    back: Vec<(SocketAddr, Bytes)>,
    receiver: Option<Waker>,
}

struct End(Arc<Mutex<Air>>);

impl PacketSocket for End {
    fn local_addr(&self) -> SocketAddr {
        SocketAddr::new(SERVER, UDP)
    }

    fn poll_send(
        &mut self,
        _: &mut Context<'_>,
        packet: &OutgoingPacket<'_>,
    ) -> Poll<io::Result<()>> {
        let mut air = self.0.lock().expect("no panic");
        air.back
            .push((packet.to, Bytes::copy_from_slice(packet.bytes)));
        Poll::Ready(Ok(()))
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<ReceivedPacket>> {
        let mut air = self.0.lock().expect("no panic");
        let Some((from, packet)) = air.there.pop_front() else {
            air.receiver = Some(cx.waker().clone());
            return Poll::Pending;
        };
        buffer[..packet.len()].copy_from_slice(&packet);
        Poll::Ready(Ok(ReceivedPacket::new(packet.len(), from)))
    }
}

/// A server, and many peers whose protocol the test drives without I/O.
struct Crowd {
    server: Endpoint,
    peers: Vec<Protocol>,
    air: Arc<Mutex<Air>>,
}

impl Crowd {
    fn new(peers: usize, backlog: usize) -> Self {
        let air = Arc::<Mutex<Air>>::default();
        let config = Config::server(PORT).with(|it| {
            it.backlog = backlog;
            it.sctp.heartbeat_interval = None;
        });
        let socket = Box::new(End(Arc::clone(&air))) as Box<dyn PacketSocket>;
        let sockets = SharedSockets::on_packets(&config, vec![socket]).expect("a socket");
        let server = Endpoint::bind_with(config, &sockets).expect("free");
        let peer = |number: usize| {
            let mut seed = [7; 32];
            seed[..8].copy_from_slice(&number.to_le_bytes());
            let config = anabranch_sctp::Config::default().with(|it| {
                it.addresses = vec![address(number)];
                it.heartbeat_interval = None;
            });
            Protocol::new(config, PORT, seed).expect("settings")
        };
        Self {
            server,
            peers: (0..peers).map(peer).collect(),
            air,
        }
    }

    fn call(&mut self, peer: usize) {
        let begun =
            self.peers[peer].connect_with(SECOND, &[SERVER], PORT, ConnectOptions::over_udp(UDP));
        begun.expect("no association yet");
    }

    /// Delivers the packets of these peers all at once, then the server's answers, until no more
    /// packets are sent.
    async fn exchange(&mut self, peers: std::ops::Range<usize>) {
        let mut out = BytesMut::new();
        loop {
            let mut sent = VecDeque::new();
            for peer in peers.clone() {
                while anabranch_transport::Transport::poll_transmit(
                    &mut self.peers[peer],
                    SECOND,
                    &mut out,
                )
                .is_some()
                {
                    sent.push_back((SocketAddr::new(address(peer), UDP), out.split().freeze()));
                }
            }
            if sent.is_empty() {
                return;
            }
            for (to, packet) in self.arrive(sent).await {
                let IpAddr::V4(ip) = to.ip() else {
                    panic!("{to}")
                };
                let [_, _, high, low] = ip.octets();
                let peer = &mut self.peers[usize::from(high) << 8 | usize::from(low)];
                let path = Path::new(to.ip(), SERVER);
                peer.handle_udp_datagram(
                    SECOND,
                    path,
                    UDP,
                    Ecn::NotEct,
                    (&packet, 0..packet.len()),
                );
            }
        }
    }

    /// Delivers packets to the server. Returns its answers.
    async fn arrive(
        &self,
        packets: impl IntoIterator<Item = (SocketAddr, Bytes)>,
    ) -> Vec<(SocketAddr, Bytes)> {
        let receiver = {
            let mut air = self.air.lock().expect("no panic");
            air.there.extend(packets);
            air.receiver.take()
        };
        receiver.into_iter().for_each(Waker::wake);
        // Virtual time advances only when the server has no work.
        tokio::time::sleep(Duration::from_millis(1)).await;
        std::mem::take(&mut self.air.lock().expect("no panic").back)
    }

    fn are_up(&self) -> usize {
        let is_up = |peer: &&Protocol| {
            let all = || peer.associations().filter_map(|id| peer.association(id));
            all().any(|it| it.state() == AssociationState::Established)
        };
        self.peers.iter().filter(is_up).count()
    }

    /// Returns true if the server treats this peer as an unknown source. The peer sends more bytes
    /// without an association than may wait from unknown sources; if it is one, some of its packets
    /// are dropped.
    async fn is_stranger(&self, peer: usize) -> bool {
        let dropped = self.server.statistics().packets_dropped;
        let from = SocketAddr::new(address(peer), UDP);
        let garbage = Bytes::from(vec![1; 60_000]);
        self.arrive(std::iter::repeat_n((from, garbage), 17)).await;
        // One more packet, because the counter is published with the next packet.
        self.arrive([(from, Bytes::from(vec![1; 100]))]).await;
        self.server.statistics().packets_dropped > dropped
    }
}

/// Never more associations wait than the backlog allows, even if many peers connect in one round;
/// accepting one makes space for another.
#[tokio::test(start_paused = true)]
async fn no_more_wait_than_the_backlog() {
    let mut crowd = Crowd::new(20, 3);
    (0..10).for_each(|peer| crowd.call(peer));
    crowd.exchange(0..10).await;
    assert_eq!(crowd.are_up(), 3);
    let first = crowd.server.accept().await.expect("it waits");
    (10..15).for_each(|peer| crowd.call(peer));
    crowd.exchange(10..15).await;
    assert_eq!(crowd.are_up(), 4);
    // An association accepted with a permit makes space only when the permit is dropped.
    let (second, place) = crowd.server.accept_with_permit().await.expect("it waits");
    crowd.call(15);
    crowd.exchange(15..16).await;
    assert_eq!(crowd.are_up(), 4);
    drop(place);
    (16..18).for_each(|peer| crowd.call(peer));
    crowd.exchange(16..18).await;
    assert_eq!(crowd.are_up(), 5);
    crowd.server.set_backlog(4);
    (18..20).for_each(|peer| crowd.call(peer));
    crowd.exchange(18..20).await;
    assert_eq!(crowd.are_up(), 6);
    drop((first, second));
}

async fn accepted(crowd: &Crowd) -> Vec<Association> {
    let mut all = Vec::new();
    while let Ok(association) = timeout_at_once(crowd.server.accept()).await {
        all.push(association.expect("the server is there"));
    }
    all
}

/// The result of a future that is ready now.
async fn timeout_at_once<T>(future: impl Future<Output = T>) -> Result<T, ()> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => Poll::Ready(Err(())),
    })
    .await
}

/// The first of very many peers counts as a known peer until its association ends.
#[tokio::test(start_paused = true)]
async fn no_peer_that_lives_is_taken_for_a_stranger() {
    const PEERS: usize = 6_000;
    let mut crowd = Crowd::new(PEERS + 1, 100_000);
    assert!(crowd.is_stranger(0).await);
    for few in 0..PEERS / 20 {
        let few = few * 20..(few + 1) * 20;
        few.clone().for_each(|peer| crowd.call(peer));
        crowd.exchange(few).await;
    }
    assert_eq!(crowd.are_up(), PEERS);
    let all = accepted(&crowd).await;
    assert_eq!(all.len(), PEERS);
    assert!(!crowd.is_stranger(0).await && !crowd.is_stranger(PEERS - 1).await);
    assert!(crowd.is_stranger(PEERS).await);
    all.iter().for_each(|it| it.abort("enough"));
    drop(all);
    crowd.arrive([]).await;
    // The end is reported only after the last packets were sent.
    crowd
        .arrive([(
            SocketAddr::new(address(PEERS), UDP),
            Bytes::from(vec![1; 100]),
        )])
        .await;
    assert!(crowd.is_stranger(0).await && crowd.is_stranger(PEERS - 1).await);
}
