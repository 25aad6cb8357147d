//! A network in memory that connects shards with their clients.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use anabranch_net::{
    Config, Endpoint, OutgoingPacket, PacketSocket, ReceivedPacket, Shard, SharedSockets,
};

use super::lane::Lane;
use super::without_timers;

/// A network in memory that distributes packets to the shards round robin, regardless of the shard
/// that owns them.
#[derive(Default)]
pub struct Switch {
    pub shards: Vec<Arc<Lane>>,
    pub clients: BTreeMap<SocketAddr, Arc<Lane>>,
    pub turn: usize,
    /// Number of packets for the server so far.
    pub for_server: u64,
}

/// A socket on the network: at a client's address, or a shard's at the server's address.
struct Plug {
    local: SocketAddr,
    receives: Arc<Lane>,
    switch: Arc<Mutex<Switch>>,
}

pub fn of_server(network: u8) -> SocketAddr {
    ([10, 0, network, 1], 9_899).into()
}

impl PacketSocket for Plug {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn poll_send(
        &mut self,
        _: &mut Context<'_>,
        packet: &OutgoingPacket<'_>,
    ) -> Poll<io::Result<()>> {
        let mut switch = self.switch.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = match switch.clients.get(&packet.to) {
            Some(client) => Arc::clone(client),
            None => {
                switch.turn += 1;
                switch.for_server += 1;
                Arc::clone(&switch.shards[switch.turn % switch.shards.len()])
            }
        };
        drop(switch);
        // Sender and destination are put in front of the packet.
        let ends = format!("{} {} ", self.local, packet.to);
        lane.push(&[&[ends.len() as u8], ends.as_bytes(), packet.bytes].concat());
        Poll::Ready(Ok(()))
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<ReceivedPacket>> {
        let Poll::Ready(Ok(received)) = self.receives.poll_pop(cx, buffer, self.local) else {
            return Poll::Pending;
        };
        let begin = usize::from(buffer[0]) + 1;
        let ends = String::from_utf8(buffer[1..begin].to_vec()).expect("text");
        let (from, to) = ends.trim().split_once(' ').expect("two ends");
        let to: SocketAddr = to.parse().expect("an address");
        buffer.copy_within(begin..received.len, 0);
        let mut came = ReceivedPacket::new(received.len - begin, from.parse().expect("an address"));
        came.to = Some(to.ip());
        Poll::Ready(Ok(came))
    }
}

fn plug(switch: &Arc<Mutex<Switch>>, local: SocketAddr, lane: &Arc<Lane>) -> Box<dyn PacketSocket> {
    Box::new(Plug {
        local,
        receives: Arc::clone(lane),
        switch: Arc::clone(switch),
    })
}

/// Shards of one server, on a network that gives each packet to any of them.
pub fn shards(count: usize) -> (Arc<Mutex<Switch>>, Vec<Shard>) {
    let switch = Arc::<Mutex<Switch>>::default();
    let mut sockets = Vec::new();
    for _ in 0..count {
        // All sockets of a shard share one receive queue.
        let lane = Arc::<Lane>::default();
        switch.lock().expect("whole").shards.push(Arc::clone(&lane));
        let other = Arc::default();
        sockets.push(vec![
            plug(&switch, of_server(0), &lane),
            plug(&switch, of_server(1), &other),
        ]);
    }
    let config = without_timers(Config::server(7));
    let shards = Shard::on_packets(&config, sockets).expect("sockets");
    (switch, shards)
}

/// Binds servers at a switch.
pub fn servers(count: usize) -> (Arc<Mutex<Switch>>, Vec<Endpoint>) {
    let (switch, shards) = shards(count);
    let servers = shards.into_iter().map(|it| it.bind().expect("bound"));
    (switch, servers.collect())
}

/// A client with an address in both networks, whose timers never expire during a test.
pub fn client(switch: &Arc<Mutex<Switch>>, host: u8, first: u8) -> Endpoint {
    client_with(switch, host, first, without_timers)
}

/// Binds a client with other settings.
pub fn client_with(
    switch: &Arc<Mutex<Switch>>,
    host: u8,
    first: u8,
    settings: impl FnOnce(Config) -> Config,
) -> Endpoint {
    let at = |network: u8| SocketAddr::from(([10, 0, network, host], 9_899));
    let lanes = [first, 1 - first].map(|network| {
        let lane = Arc::<Lane>::default();
        let mut switch = switch.lock().expect("whole");
        switch.clients.insert(at(network), Arc::clone(&lane));
        (network, lane)
    });
    let plugs = lanes
        .iter()
        .map(|(network, lane)| plug(switch, at(*network), lane));
    let config = settings(Config::default()).with(|it| it.port = 5_000);
    let sockets = SharedSockets::on_packets(&config, plugs.collect()).expect("sockets");
    Endpoint::bind_with(config, &sockets).expect("free")
}
