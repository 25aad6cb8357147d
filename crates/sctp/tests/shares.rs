//! Tests of admission at a full endpoint: no single address should be able to lock out others.

use std::collections::BTreeSet;
use std::net::IpAddr;

use anabranch_sctp::{
    AssociationId, AssociationState, CloseReason, Config, Endpoint, Event, SendOptions,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use bytes::{Bytes, BytesMut};

const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 1));
const PORT: u16 = 7;

struct Net {
    server: Endpoint,
    /// Address and endpoint of each peer.
    peers: Vec<(IpAddr, Endpoint)>,
    now: Nanos,
    closed: Vec<CloseReason>,
    /// Indexes of peers that no longer send or receive.
    mute: BTreeSet<usize>,
}

impl Net {
    fn new(most: usize) -> Self {
        let mut server = Endpoint::new(config(SERVER), PORT, [9; 32]).expect("settings");
        server.listen(true);
        server.set_max_associations(most);
        Self {
            server,
            peers: Vec::new(),
            now: SECOND,
            closed: Vec::new(),
            mute: BTreeSet::new(),
        }
    }

    /// Creates a peer at this address and port, and lets it connect. Returns its index, and whether
    /// its association is established.
    fn call(&mut self, address: IpAddr, port: u16) -> (usize, bool) {
        let mut seed = [1; 32];
        seed[..2].copy_from_slice(&port.to_le_bytes());
        seed[2] = self.peers.len() as u8;
        let peer = Endpoint::new(config(address), port, seed).expect("settings");
        self.peers.push((address, peer));
        let number = self.peers.len() - 1;
        let peer = &mut self.peers[number].1;
        let id = peer.connect(self.now, &[SERVER], PORT).expect("an attempt");
        self.exchange();
        (number, self.settled(number, id))
    }

    /// Waits until an attempt is settled, and returns whether its association is established.
    /// Unanswered packets are retransmitted.
    fn settled(&mut self, number: usize, id: AssociationId) -> bool {
        for _ in 0..200 {
            let association = self.peers[number].1.association_mut(id);
            match association.map(|it| it.state()) {
                Some(AssociationState::CookieWait | AssociationState::CookieEchoed) => (),
                state => return state == Some(AssociationState::Established),
            }
            self.now += 50 * MILLISECOND;
            let peers = self.peers.iter_mut().map(|(_, peer)| peer);
            for endpoint in peers.chain([&mut self.server]) {
                if endpoint.poll_timeout().is_some_and(|at| at <= self.now) {
                    endpoint.handle_timeout(self.now);
                }
            }
            self.exchange();
        }
        false
    }

    fn is_up(&mut self, number: usize, id: AssociationId) -> bool {
        let association = self.peers[number].1.association_mut(id);
        association.is_some_and(|it| it.state() == AssociationState::Established)
    }

    fn exchange(&mut self) {
        let mut out = BytesMut::new();
        loop {
            let mut quiet = true;
            for number in 0..self.peers.len() {
                let mut sent: Vec<(Path, Bytes)> = Vec::new();
                let peer = &mut self.peers[number].1;
                while let Some(it) = peer.poll_transmit(self.now, &mut out) {
                    sent.push((it.path.reversed(), out.split().freeze()));
                }
                if self.mute.contains(&number) {
                    continue;
                }
                for (path, packet) in sent {
                    quiet = false;
                    self.server
                        .handle_datagram(self.now, path, Ecn::NotEct, packet);
                }
            }
            while let Some(it) = self.server.poll_transmit(self.now, &mut out) {
                quiet = false;
                let packet = out.split().freeze();
                let port = u16::from_be_bytes([packet[2], packet[3]]);
                let is_to = |(address, peer): &(IpAddr, Endpoint)| {
                    *address == it.path.remote && peer.port() == port
                };
                let to = self.peers.iter().position(is_to);
                if let Some(number) = to.filter(|it| !self.mute.contains(it)) {
                    let path = it.path.reversed();
                    let peer = &mut self.peers[number].1;
                    peer.handle_datagram(self.now, path, Ecn::NotEct, packet);
                }
            }
            // Closed associations are released, as a driver does it.
            while let Some((id, event)) = self.server.poll_event() {
                if let Event::Closed(reason) = event {
                    self.closed.push(reason);
                    self.server.release(id);
                }
            }
            if quiet {
                return;
            }
        }
    }

    /// The peer with this index sends data.
    fn speak(&mut self, number: usize) {
        let (_, peer) = &mut self.peers[number];
        let id = peer.associations().next().expect("it is there");
        let association = peer.association_mut(id).expect("it is there");
        let message = Bytes::from_static(b"here");
        association
            .send(0, message, &SendOptions::new())
            .expect("room");
        self.exchange();
    }

    fn open(&mut self, number: usize) -> bool {
        let id = self.peers[number].1.associations().next();
        id.is_some_and(|id| self.is_up(number, id))
    }
}

fn config(address: IpAddr) -> Config {
    Config::default().with(|it| it.addresses = vec![address])
}

fn host(last: u8) -> IpAddr {
    [10, 0, 0, last].into()
}

#[test]
fn one_address_has_all_places_until_another_needs_one() {
    let mut net = Net::new(16);
    let all: Vec<usize> = (0..16)
        .map(|port| {
            let (number, up) = net.call(host(1), 1_000 + port);
            assert!(up, "{port}");
            number
        })
        .collect();
    // The first peer has sent data, the second one is alive but silent, and the others no longer
    // answer.
    net.speak(all[0]);
    net.mute.extend(&all[2..]);
    // The address has more associations than its share, and no slot is free. The new association
    // should replace a silent one of the same address.
    let (another, up) = net.call(host(1), 2_000);
    assert!(up && net.closed == [CloseReason::Displaced]);
    net.mute.insert(another);
    for other in 2..16 {
        assert!(net.call(host(other), 5_000).1, "{other}");
    }
    let displaced = |it: &CloseReason| *it == CloseReason::Displaced;
    assert_eq!(net.closed.iter().filter(|it| displaced(it)).count(), 15);
    assert!(net.open(all[0]) && net.open(all[1]), "silent ones go first");
    // The share of the first address is two of 16. It has two associations left and should keep
    // them.
    let (_, up) = net.call(host(99), 5_000);
    assert!(!up);
    assert!(net.open(all[0]) && net.open(all[1]));
}

#[test]
fn who_answers_keeps_no_more_than_a_share_either() {
    let mut net = Net::new(16);
    for port in 0..16 {
        let (number, up) = net.call(host(1), 1_000 + port);
        assert!(up);
        net.speak(number);
    }
    assert!(!net.call(host(1), 2_000).1, "none is silent");
    assert!(net.closed.is_empty());
    for other in 2..16 {
        assert!(net.call(host(other), 5_000).1, "{other}");
    }
    assert!(!net.call(host(99), 5_000).1);
}

#[test]
fn addresses_of_one_network_of_64_bits_share() {
    let mut net = Net::new(16);
    let of =
        |network: u16, host: u16| -> IpAddr { [0x2001, 0xdb8, 0, network, 0, 0, 0, host].into() };
    // The server has an IPv6 address as well.
    let server: IpAddr = [0x2001, 0xdb8, 9, 9, 0, 0, 0, 1].into();
    let both = Config::default().with(|it| it.addresses = vec![server]);
    net.server = Endpoint::new(both, PORT, [9; 32]).expect("settings");
    net.server.listen(true);
    net.server.set_max_associations(16);
    let mut call = |network, host| {
        let address = of(network, host);
        let mut seed = [3; 32];
        seed[..4].copy_from_slice(&[network as u8, (network >> 8) as u8, host as u8, 1]);
        let mut peer = Endpoint::new(config(address), 5_000, seed).expect("settings");
        let id = peer.connect(net.now, &[server], PORT);
        net.peers.push((address, peer));
        net.exchange();
        net.settled(net.peers.len() - 1, id.expect("an attempt"))
    };
    for host in 0..16 {
        assert!(call(1, host), "{host}");
    }
    // Different networks should have separate shares. The first network should keep two of 16
    // associations.
    for network in 2..16 {
        assert!(call(network, 1), "{network}");
    }
    assert!(!call(99, 1));
}
