//! Tests of one endpoint with many peers: the backlog limit should be enforced, and the user should
//! be notified of free space in send buffers.

use crate::common;

use std::net::IpAddr;

use anabranch_sctp::{
    AssociationId, AssociationState, Config, Endpoint, Interest, Output, SendError, SendOptions,
    work_counter,
};
use anabranch_transport::time::SECOND;
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use bytes::{Bytes, BytesMut};
use common::{PORT_A, PORT_Z};

const HUB: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 1));

fn address(peer: usize) -> IpAddr {
    [10, 0, (peer >> 8) as u8, peer as u8].into()
}

struct Crowd {
    hub: Endpoint,
    peers: Vec<Endpoint>,
    now: Nanos,
}

impl Crowd {
    fn new(peers: usize, change: impl Fn(&mut Config)) -> Self {
        let endpoint = |address, port, seed| {
            let config = Config::default().with(|it| {
                it.addresses = vec![address];
                change(it);
            });
            Endpoint::new(config, port, seed).expect("settings")
        };
        let seed = |peer: usize| {
            let mut seed = [7; 32];
            seed[..8].copy_from_slice(&peer.to_le_bytes());
            seed
        };
        Self {
            hub: endpoint(HUB, PORT_Z, [9; 32]),
            peers: (0..peers)
                .map(|it| endpoint(address(it), PORT_A, seed(it)))
                .collect(),
            now: SECOND,
        }
    }

    /// Exchanges packets between the hub and these peers until there are none. In each round the
    /// peers send first.
    fn exchange(&mut self, who: impl Fn(usize) -> bool) {
        let mut out = BytesMut::new();
        loop {
            let mut sent: Vec<(Path, Bytes)> = Vec::new();
            for (_, peer) in self.peers.iter_mut().enumerate().filter(|(it, _)| who(*it)) {
                while let Some(transmit) = peer.poll_transmit(self.now, &mut out) {
                    sent.push((transmit.path.reversed(), out.split().freeze()));
                }
            }
            let mut quiet = sent.is_empty();
            for (path, packet) in sent {
                self.hub
                    .handle_datagram(self.now, path, Ecn::NotEct, packet);
            }
            while let Some(transmit) = self.hub.poll_transmit(self.now, &mut out) {
                quiet = false;
                let packet = out.split().freeze();
                let to = (0..self.peers.len()).find(|it| address(*it) == transmit.path.remote);
                if let Some(to) = to.filter(|to| who(*to)) {
                    let path = transmit.path.reversed();
                    self.peers[to].handle_datagram(self.now, path, Ecn::NotEct, packet);
                    let ids: Vec<AssociationId> = self.peers[to].associations().collect();
                    for id in ids {
                        let association = self.peers[to].association_mut(id);
                        let association = association.expect("it is there");
                        while association.poll_message().is_some() {}
                    }
                }
            }
            if quiet {
                return;
            }
        }
    }

    fn call(&mut self, peer: usize) {
        let begun = self.peers[peer].connect(self.now, &[HUB], PORT_Z);
        begun.expect("no association yet");
    }

    fn are_up(&self) -> Vec<usize> {
        let is_up = |it: &usize| {
            let peer = &self.peers[*it];
            let all = || peer.associations().filter_map(|id| peer.association(id));
            all().any(|it| it.state() == AssociationState::Established)
        };
        (0..self.peers.len()).filter(is_up).collect()
    }
}

/// COOKIE ECHOs that arrive before events are polled cannot exceed the backlog.
#[test]
fn no_more_begin_than_are_let() {
    let mut crowd = Crowd::new(10, |_| {});
    crowd.hub.set_backlog(3);
    (0..8).for_each(|peer| crowd.call(peer));
    crowd.exchange(|_| true);
    assert_eq!(crowd.are_up().len(), 3);
    assert_eq!(crowd.hub.associations().count(), 3);
    crowd.call(8);
    crowd.exchange(|_| true);
    assert_eq!(crowd.are_up().len(), 3, "no more");
    crowd.hub.set_backlog(1);
    crowd.call(9);
    crowd.exchange(|_| true);
    assert!(crowd.are_up().contains(&9));
    assert_eq!(crowd.hub.associations().count(), 4);
}

/// Establishes all peers and returns their associations.
fn up(crowd: &mut Crowd) -> Vec<AssociationId> {
    let peers = crowd.peers.len();
    crowd.hub.listen(true);
    for first in (0..peers).step_by(20) {
        (first..peers.min(first + 20)).for_each(|peer| crowd.call(peer));
        crowd.exchange(|_| true);
    }
    while crowd.hub.poll_event().is_some() {}
    let mut ids = vec![None; peers];
    for id in crowd.hub.associations() {
        let paths = crowd.hub.association(id).expect("it is there").paths();
        let remote = paths.get(paths.primary()).path().remote;
        let peer = (0..peers).find(|it| address(*it) == remote);
        ids[peer.expect("a peer's")] = Some(id);
    }
    ids.into_iter().map(|id| id.expect("up")).collect()
}

/// Fills the send buffer of an association.
fn fill(crowd: &mut Crowd, id: AssociationId) {
    let message = Bytes::from(vec![7; 1_000]);
    let association = crowd.hub.association_mut(id).expect("it is there");
    while association.send(0, message.clone(), &SendOptions::new()) != Err(SendError::BufferFull) {}
}

/// Requests a notification when the association has space for a message of `size` bytes.
fn wait_writable(crowd: &mut Crowd, id: AssociationId, size: usize) {
    let association = crowd.hub.association_mut(id).expect("it is there");
    association.wait_writable(size);
}

/// Associations that have reported the space for which their users waited.
fn writable(crowd: &mut Crowd) -> Vec<AssociationId> {
    let mut writable = Vec::new();
    while let Some((id, association)) = crowd.hub.poll_ready() {
        if association.poll_output(Interest::WRITABLE) == Some(Output::Writable) {
            writable.push(id);
        }
    }
    writable
}

fn settings(config: &mut Config) {
    config.send_buffer = 16 << 10;
    config.heartbeat_interval = None;
}

/// An association with space is reported once, and the number of steps does not depend on other
/// waiting associations.
#[test]
fn a_writable_association_is_notified_and_the_others_are_not_examined() {
    const PEERS: usize = 400;
    const ONE: usize = 17;
    let steps = |others_wait: bool| {
        let mut crowd = Crowd::new(PEERS, settings);
        let ids = up(&mut crowd);
        for (peer, id) in ids.iter().enumerate().filter(|(peer, _)| *peer != ONE) {
            fill(&mut crowd, *id);
            if others_wait || peer == ONE {
                wait_writable(&mut crowd, *id, 1_000);
                wait_writable(&mut crowd, *id, 900);
            }
        }
        // Packets that the hub sends are lost.
        crowd.exchange(|_| false);
        assert_eq!(writable(&mut crowd), [], "all are full");
        fill(&mut crowd, ids[ONE]);
        wait_writable(&mut crowd, ids[ONE], 1_000);
        work_counter::take();
        crowd.exchange(|peer| peer == ONE);
        let told = writable(&mut crowd);
        assert_eq!(told, [ids[ONE]]);
        let steps = work_counter::take();
        fill(&mut crowd, ids[ONE]);
        crowd.exchange(|peer| peer == ONE);
        assert_eq!(writable(&mut crowd), [], "it was told once");
        steps
    };
    let alone = steps(false);
    assert!(alone > 0, "looks are counted");
    assert_eq!(steps(true), alone);
}

/// An association should be reported as writable at once if it has buffer space or is closed.
/// Released associations should not be reported.
#[test]
fn available_space_and_the_end_are_reported() {
    let mut crowd = Crowd::new(3, settings);
    let ids = up(&mut crowd);
    for id in &ids {
        wait_writable(&mut crowd, *id, 16 << 10);
    }
    crowd.exchange(|_| true);
    let mut told = writable(&mut crowd);
    told.sort();
    let mut all = ids.clone();
    all.sort();
    assert_eq!(told, all, "nothing is queued");

    for id in &ids {
        fill(&mut crowd, *id);
        wait_writable(&mut crowd, *id, 16 << 10);
    }
    crowd.exchange(|_| false);
    assert_eq!(writable(&mut crowd), []);
    for id in &ids[..2] {
        let association = crowd.hub.association_mut(*id).expect("up");
        association
            .abort(crowd.now, Bytes::new())
            .expect("it is up");
    }
    crowd.exchange(|_| false);
    assert!(crowd.hub.release(ids[0]));
    crowd.exchange(|_| false);
    let mut told = writable(&mut crowd);
    told.sort();
    assert_eq!(told, [ids[1]]);
}
