//! Tests of endpoints that share a port (shards). For their peers they should behave like one
//! endpoint. The table of peers is the one of the crate `net`.

use std::net::IpAddr;

use anabranch_sctp::{
    AssociationId, AssociationState, CloseReason, Config, ConnectError, DiscardReason, Endpoint,
    Event, Interest, Output, PathState, Recipient, SendOptions,
};
use anabranch_transport::time::SECOND;
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use anabranch_wire::chunk::{Abort, Chunk, kind};
use anabranch_wire::packet::{Checksum, CommonHeader, Packet, PacketBuilder};
use bytes::{Bytes, BytesMut};
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

#[path = "../../net/src/shard_peers.rs"]
mod shard_peers;

use shard_peers::SharedPeers;

const CLIENTS: usize = 3;
const PORT: u16 = 5_000;
const SERVER_PORT: u16 = 7;

/// Address of this client on this network.
fn of_client(client: usize, network: u8) -> IpAddr {
    [10, 0, network, 10 + client as u8].into()
}

fn of_server(network: u8) -> IpAddr {
    [10, 0, network, 1].into()
}

fn config(addresses: Vec<IpAddr>) -> Config {
    Config::default().with(|it| {
        it.addresses = addresses;
        it.delayed_sack = false;
        it.heartbeat_interval = None;
    })
}

/// Packet from or to a client.
#[derive(Clone, Debug)]
struct Shot {
    path: Path,
    bytes: Bytes,
}

/// Clients, and a server of one endpoint or of several shards. Packets arrive without delay.
struct World {
    now: Nanos,
    clients: Vec<Endpoint>,
    peers: Option<SharedPeers>,
    server: Vec<Endpoint>,
    /// Random numbers that select the shard to which a packet is delivered.
    chooses: Pcg64Mcg,
    /// All packets that clients have sent.
    sent: Vec<Shot>,
    /// Description of all packets and events, without random values.
    log: Vec<String>,
    handed: u32,
    /// Last Initiate Tag that each client has sent.
    asked: [u32; CLIENTS],
}

impl World {
    fn new(count: u32, seed: u64) -> Self {
        let peers = (count > 0).then(|| SharedPeers::new(count));
        let server = (0..count.max(1)).map(|number| {
            let settings = config(vec![of_server(0), of_server(1)]);
            let mut endpoint =
                Endpoint::new(settings, SERVER_PORT, [number as u8 + 1; 32]).expect("settings");
            if let Some(shared) = &peers {
                let peers = shared.shard(number, SERVER_PORT, &endpoint.config().addresses);
                endpoint.set_shard(Some(peers));
            }
            endpoint.listen(true);
            endpoint
        });
        let server = server.collect();
        let mut world = Self {
            now: SECOND,
            clients: Vec::new(),
            server,
            peers,
            chooses: Pcg64Mcg::seed_from_u64(seed),
            sent: Vec::new(),
            log: Vec::new(),
            handed: 0,
            asked: [1; CLIENTS],
        };
        for client in 0..CLIENTS {
            let fresh = world.fresh(vec![of_client(client, 0), of_client(client, 1)], 0);
            world.clients.push(fresh);
        }
        world
    }

    fn fresh(&self, addresses: Vec<IpAddr>, life: u8) -> Endpoint {
        let seed = [100 + life; 32];
        let mut client = Endpoint::new(config(addresses), PORT, seed).expect("settings");
        client.listen(true);
        client
    }

    /// Any of the server's endpoints.
    fn any(&mut self) -> usize {
        self.chooses.next_u32() as usize % self.server.len()
    }

    /// Delivers a packet to the shard of its verification tag, or to a random shard if it has no
    /// tag or the shards share no table of peers. The shard may return another shard, to which the
    /// packet is then delivered.
    fn deliver(&mut self, shot: &Shot) {
        let tag = tag_of(&shot.bytes);
        let came = self.any();
        let mut to = match &self.peers {
            Some(peers) if tag != 0 => peers.of_tag(tag) as usize,
            _ => came,
        };
        for hop in 0.. {
            assert!(hop < 3, "it comes to an end");
            let (now, path) = (self.now, shot.path.reversed());
            let packet = (&shot.bytes, 0..shot.bytes.len());
            let server = &mut self.server[to];
            let Recipient::Shard(other) =
                server.handle_udp_datagram(now, path, 0, Ecn::NotEct, packet)
            else {
                break;
            };
            assert!(other as usize != to);
            to = other as usize;
            self.handed += 1;
        }
    }

    /// Lets all hosts send until no packet is left.
    fn settle(&mut self) {
        let mut quiet = false;
        while !std::mem::replace(&mut quiet, true) {
            for client in 0..CLIENTS {
                while let Some(shot) = next_of(&mut self.clients[client], self.now) {
                    quiet = false;
                    self.log.push(format!("{client} sends {}", words(&shot)));
                    self.asked[client] = initiate_tag(&shot).unwrap_or(self.asked[client]);
                    self.sent.push(shot.clone());
                    self.deliver(&shot);
                }
                while self.clients[client].poll_event().is_some() {}
            }
            for number in 0..self.server.len() {
                while let Some(shot) = next_of(&mut self.server[number], self.now) {
                    quiet = false;
                    self.log.push(format!("the server sends {}", words(&shot)));
                    // The packet is delivered to the host that has its destination address.
                    let to = (0..CLIENTS).find(|&it| {
                        [0, 1]
                            .map(|at| of_client(it, at))
                            .contains(&shot.path.remote)
                    });
                    let (to, path) = (to.expect("a client"), shot.path.reversed());
                    let client = &mut self.clients[to];
                    client.handle_datagram(self.now, path, Ecn::NotEct, shot.bytes);
                }
                self.hear(number);
            }
        }
        self.forget_closed();
    }

    fn hear(&mut self, number: usize) {
        let outputs = Interest::MESSAGES.and(Interest::EVENTS);
        while let Some((_, association)) = self.server[number].poll_ready() {
            while let Some(output) = association.poll_output(outputs) {
                let paths = association.paths();
                let peer = Some(paths.get(paths.primary()).path().remote);
                self.log.push(match output {
                    Output::Event(Event::Established { .. }) => format!("{peer:?} is up"),
                    Output::Event(Event::Restarted { .. }) => format!("{peer:?} restarted"),
                    Output::Event(Event::Closed(reason)) => format!("an end: {reason:?}"),
                    Output::Message(message) => format!("{peer:?} said {}", message.payload.len()),
                    _ => continue,
                });
            }
        }
    }

    fn forget_closed(&mut self) {
        for endpoint in self.clients.iter_mut().chain(&mut self.server) {
            for id in endpoint.associations().collect::<Vec<_>>() {
                endpoint.release(id);
            }
        }
    }

    /// Open associations of the server, with the index of their endpoint.
    fn open(&self) -> Vec<(usize, AssociationId)> {
        let all = self.server.iter().enumerate();
        let all = all.flat_map(|(at, it)| it.associations().map(move |id| (at, id)));
        all.filter(|&(at, id)| {
            self.server[at]
                .association(id)
                .is_some_and(|it| !it.is_closed())
        })
        .collect()
    }

    /// Active paths of the server's associations.
    fn paths(&self) -> Vec<String> {
        let of = |&(at, id): &(usize, AssociationId)| {
            let paths = self.server[at].association(id).expect("open").paths();
            // An address that a peer of another shard has verified is not removed from the paths at
            // once, but only when this shard would verify it. Therefore only active paths are
            // compared.
            let active = paths
                .iter()
                .filter(|(_, it)| it.state() == PathState::Active);
            let each = active.map(|(_, it)| (it.path(), it.error_count()));
            format!("{:?} {:?}", paths.primary(), each.collect::<Vec<_>>())
        };
        let mut all: Vec<_> = self.open().iter().map(of).collect();
        all.sort();
        all
    }

    /// The association of the server with the peer that has verified this address.
    fn with(&self, address: IpAddr) -> Option<(usize, AssociationId)> {
        self.open().into_iter().find(|&(at, id)| {
            let association = self.server[at].association(id).expect("open");
            let mut active =
                (association.paths().iter()).filter(|(_, it)| it.state() == PathState::Active);
            active.any(|(_, it)| it.path().remote == address)
        })
    }

    fn connect(&mut self, client: usize) -> bool {
        let now = self.now;
        let begun = self.clients[client].connect(now, &[of_server(0)], SERVER_PORT);
        self.settle();
        begun.is_ok()
    }

    fn discarded(&self, reason: DiscardReason) -> u64 {
        self.server.iter().map(|it| it.discards().of(reason)).sum()
    }
}

fn tag_of(packet: &Bytes) -> u32 {
    u32::from_be_bytes(packet[4..8].try_into().expect("a header"))
}

fn next_of(endpoint: &mut Endpoint, now: Nanos) -> Option<Shot> {
    let mut out = BytesMut::new();
    let path = endpoint.poll_transmit(now, &mut out)?.path;
    let bytes = out.freeze();
    Some(Shot { path, bytes })
}

/// Initiate Tag of an INIT or INIT ACK.
fn initiate_tag(init: &Shot) -> Option<u32> {
    let packet = Packet::parse(&init.bytes, Checksum::Ignore).expect("a packet");
    let first = packet.chunks().flatten().next().expect("a chunk");
    let asks = matches!(first.kind, kind::INIT | kind::INIT_ACK);
    asks.then(|| u32::from_be_bytes(first.value()[..4].try_into().expect("a tag")))
}

/// Describes a packet by its addresses and by the type, flags and length of each chunk; the
/// contents, which may be random, are omitted.
fn words(shot: &Shot) -> String {
    let packet = Packet::parse(&shot.bytes, Checksum::Ignore).expect("a packet");
    let chunks = packet.chunks().flatten();
    let kinds: Vec<_> = chunks
        .map(|it| (it.kind, it.flags, it.value().len()))
        .collect();
    format!("{:?} {kinds:?}", shot.path)
}

fn packet(tag: u32, chunk: &Chunk) -> Bytes {
    let header = CommonHeader {
        source_port: PORT,
        destination_port: SERVER_PORT,
        verification_tag: tag,
    };
    let mut out = BytesMut::new();
    let mut packet = PacketBuilder::new(&mut out, header, 1_000);
    packet.push(chunk).expect("room");
    packet.finish(true);
    out.freeze()
}

/// Performs one of many steps. The same numbers cause the same step in every world.
fn act(world: &mut World, [what, who, which, odd]: [usize; 4]) {
    let client = who % CLIENTS;
    world.now += SECOND / 10;
    let now = world.now;
    match what % 10 {
        0 | 1 => {
            let begun = world.connect(client);
            world.log.push(format!("begun: {begun}"));
        }
        // The client loses its state, and perhaps an address. Or it claims an address of another
        // client.
        2 => {
            let own = [0, 1].map(|network| of_client(client, network));
            let addresses = match which % 4 {
                0 => own.to_vec(),
                1 => vec![own[0]],
                2 => vec![own[0], of_client(odd % CLIENTS, 1)],
                _ => vec![own[1], own[0]],
            };
            world.clients[client] = world.fresh(addresses, (odd % 100) as u8);
            world.connect(client);
        }
        3 => {
            let ids: Vec<_> = world.clients[client].associations().collect();
            for id in ids {
                let association = world.clients[client].association_mut(id).expect("there");
                let _ = match odd % 2 {
                    0 => association.shutdown(now, None),
                    _ => association.abort(now, Bytes::new()),
                };
            }
        }
        4 => {
            if let Some((at, id)) = world.with(of_client(client, 0)) {
                let association = world.server[at].association_mut(id).expect("open");
                let _ = match odd % 2 {
                    0 => association.shutdown(now, None),
                    _ => association.abort(now, Bytes::new()),
                };
            }
        }
        // The server connects to a client, from a random shard.
        5 => {
            let at = world.any();
            let begun = world.server[at].connect(now, &[of_client(client, odd as u8 % 2)], PORT);
            world
                .log
                .push(format!("the server began: {}", begun.is_ok()));
        }
        // An old packet arrives again, perhaps from the other address of the client.
        6 | 7 if !world.sent.is_empty() => {
            let mut again = world.sent[which % world.sent.len()].clone();
            if odd.is_multiple_of(4) {
                again.path.local = of_client(client, odd as u8 / 4 % 2);
            }
            world.log.push(format!("again {}", words(&again)));
            world.deliver(&again);
        }
        // A packet with the tag of the peer, reflected or not, or with a random tag, which should
        // match nothing. It contains an ABORT, a COOKIE ACK or a SHUTDOWN ACK.
        8 => {
            let tag = match odd % 3 {
                0 => odd as u32 | 1,
                _ => world.asked[client],
            };
            let abort = Chunk::Abort(Abort {
                tag_reflected: odd % 5 > 0,
                causes: anabranch_wire::cause::Causes::empty(),
            });
            let bytes = match odd % 7 {
                0 => packet(tag, &Chunk::CookieAck),
                1 => packet(tag, &Chunk::ShutdownAck),
                _ => packet(tag, &abort),
            };
            let path = Path::new(of_client(client, which as u8 % 2), of_server(0));
            world.deliver(&Shot { path, bytes });
        }
        _ => {
            let ids: Vec<_> = world.clients[client].associations().collect();
            for id in ids {
                let association = world.clients[client].association_mut(id).expect("there");
                let message = Bytes::from(vec![1; odd % 3_000 + 1]);
                let _ = association.send(0, message, &SendOptions::new());
            }
        }
    }
    world.settle();
}

#[test]
fn shards_are_to_their_peers_what_one_endpoint_is() {
    let (mut handed, mut ups, mut restarts) = (0, 0, 0);
    let reasons = |world: &World| {
        let all = DiscardReason::ALL.iter();
        all.map(|&it| (it, world.discarded(it)))
            .filter(|it| it.1 > 0)
            .collect::<Vec<_>>()
    };
    for seed in 0..60 {
        let mut draw = Pcg64Mcg::seed_from_u64(seed);
        let mut worlds = [0, 1, 3].map(|count| World::new(count, seed));
        for turn in 0..120 {
            let numbers = [(); 4].map(|()| (draw.next_u32() >> 8) as usize);
            for world in &mut worlds {
                act(world, numbers);
            }
            let [alone, one, three] = &worlds;
            for world in [one, three] {
                assert_eq!(alone.log, world.log, "seed {seed}, turn {turn}");
                assert_eq!(alone.paths(), world.paths(), "seed {seed}, turn {turn}");
                assert_eq!(reasons(alone), reasons(world), "seed {seed}, turn {turn}");
            }
            for world in &mut worlds {
                let count = |what: &str| world.log.iter().filter(|it| it.contains(what)).count();
                (ups, restarts) = (ups + count("is up"), restarts + count("restarted"));
                world.log.clear();
            }
        }
        let [_, _, three] = worlds;
        handed += three.handed;
        // When the associations end, their peers should be removed from the table.
        let mut three = three;
        let peers = three.peers.clone().expect("several");
        for (at, id) in three.open() {
            let association = three.server[at].association_mut(id).expect("open");
            association.abort(three.now, Bytes::new()).expect("open");
        }
        three.settle();
        assert_eq!(peers.known_addresses(), (0, 0), "seed {seed}");
    }
    let enough = handed > 500 && ups > 3_000 && restarts > 300;
    assert!(enough, "{handed} handed, {ups} up, {restarts} restarts");
}

/// A world of three shards with one association of client 0, and the shard that has this
/// association.
fn one_of_three(seed: u64) -> (World, usize, AssociationId) {
    let mut world = World::new(3, seed);
    assert!(world.connect(0));
    let [(at, id)] = world.open()[..] else {
        panic!("one is up")
    };
    (world, at, id)
}

#[test]
fn tags_are_of_the_class_of_the_endpoint() {
    for seed in 0..20 {
        let mut world = World::new(3, seed);
        let peers = world.peers.clone().expect("several");
        for (number, endpoint) in world.server.iter_mut().enumerate() {
            for peer in 0..20 {
                let address = [10, 0, 2 + number as u8, peer].into();
                endpoint.connect(world.now, &[address], PORT).expect("free");
                let init = next_of(endpoint, world.now).expect("an INIT");
                assert_eq!(
                    peers.of_tag(initiate_tag(&init).expect("an INIT")) as usize,
                    number
                );
            }
        }
    }
}

#[test]
fn a_peer_that_restarts_from_another_address_finds_its_association() {
    for seed in 0..20 {
        let (mut world, at, id) = one_of_three(seed);
        let addresses = vec![of_client(0, 1), of_client(0, 0)];
        world.clients[0] = world.fresh(addresses, 77);
        let now = world.now;
        // The client connects to the server's address on the other network. It therefore uses its
        // own address on that network.
        let begun = world.clients[0].connect(now, &[of_server(1)], SERVER_PORT);
        world.log.clear();
        world.settle();
        assert_eq!(world.open(), [(at, id)]);
        let restarted = world
            .log
            .iter()
            .filter(|it| it.contains("restarted"))
            .count();
        assert_eq!(restarted, 1, "{:#?}", world.log);
        let here = world.clients[0]
            .association(begun.expect("free"))
            .expect("up");
        assert_eq!(here.state(), AssociationState::Established);
    }
}

#[test]
fn a_sibling_does_not_call_a_peer_that_another_has() {
    let (mut world, at, id) = one_of_three(1);
    let now = world.now;
    for number in 0..3 {
        let called = world.server[number].connect(now, &[of_client(0, 0)], PORT);
        let expected = match number == at {
            true => ConnectError::Exists(id),
            false => ConnectError::ExistsElsewhere,
        };
        assert_eq!(called, Err(expected));
        // If only one of several addresses belongs to a known peer, connecting should fail as well,
        // and none of the addresses should be added to the table.
        let both = [of_client(1, 0), of_client(0, 0)];
        world.server[number]
            .connect(now, &both, PORT)
            .expect_err("it has one");
    }
    let peers = world.peers.clone().expect("several");
    assert_eq!(peers.owner(SERVER_PORT, PORT, of_client(1, 0)), None);
    // After the association is closed, each shard may connect to this peer.
    let association = world.server[at].association_mut(id).expect("open");
    association.abort(now, Bytes::new()).expect("open");
    world.settle();
    let other = (at + 1) % 3;
    world.server[other]
        .connect(now, &[of_client(0, 0)], PORT)
        .expect("free");
    world.settle();
    assert!(matches!(world.open()[..], [(by, _)] if by == other));
}

/// An ABORT with the T bit has the tag of the packet that it answers, which is the tag of the peer
/// (RFC 9260 §8.4, rule 8). It should end the association, even if this tag belongs to another
/// shard.
#[test]
fn a_reflected_tag_ends_the_association_whosever_class_it_is_of() {
    for seed in 0..20 {
        let (mut world, at, id) = one_of_three(seed);
        let peer_tag = initiate_tag(&world.sent[0]).expect("an INIT");
        let tag_reflected = true;
        let causes = anabranch_wire::cause::Causes::empty();
        let abort = Chunk::Abort(Abort {
            tag_reflected,
            causes,
        });
        let path = Path::new(of_client(0, 1), of_server(0));
        let shot = |tag: u32| Shot {
            path,
            bytes: packet(tag, &abort),
        };
        world.deliver(&shot(peer_tag.wrapping_add(1).max(1)));
        assert_eq!(world.discarded(DiscardReason::BadTagAbort), 1);
        assert_eq!(world.open(), [(at, id)]);
        world.deliver(&shot(peer_tag));
        let reason = world.server[at]
            .association(id)
            .and_then(|it| it.close_reason());
        assert!(matches!(reason, Some(CloseReason::AbortedByPeer { .. })));
    }
}

/// INITs of one peer reach three shards, and each shard answers. Only one of the COOKIE ECHOs
/// should create an association.
#[test]
fn two_shards_do_not_take_in_one_peer() {
    let mut world = World::new(3, 1);
    let now = world.now;
    world.clients[0]
        .connect(now, &[of_server(0)], SERVER_PORT)
        .expect("free");
    let init = next_of(&mut world.clients[0], now).expect("an INIT");
    let mut echoes = Vec::new();
    for number in 0..3 {
        let path = init.path.reversed();
        world.server[number].handle_datagram(now, path, Ecn::NotEct, init.bytes.clone());
        let ack = next_of(&mut world.server[number], now).expect("an INIT ACK");
        // A client that has just connected accepts any of the INIT ACKs.
        let mut client = world.fresh(vec![of_client(0, 0), of_client(0, 1)], 0);
        client
            .connect(now, &[of_server(0)], SERVER_PORT)
            .expect("free");
        next_of(&mut client, now).expect("the same INIT");
        client.handle_datagram(now, ack.path.reversed(), Ecn::NotEct, ack.bytes);
        echoes.push(next_of(&mut client, now).expect("a COOKIE ECHO"));
    }
    for echo in &echoes {
        let packet = Packet::parse(&echo.bytes, Checksum::Ignore).expect("a packet");
        let first = packet.chunks().flatten().next().expect("a chunk");
        assert_eq!(first.kind, kind::COOKIE_ECHO);
        world.deliver(echo);
    }
    assert_eq!(world.open().len(), 1);
    assert_eq!(world.discarded(DiscardReason::LateCookie), 2);
}
