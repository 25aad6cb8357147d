//! Shards under adverse peers, applications and networks.

use crate::common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_net::{
    Association, BindOptions, Carrier, Config, Direction, Endpoint, ObservedPacket, Observer, Peer,
    SendOptions, Shard, SharedSockets, ThreadRuntime, ThreadSpawner,
};
use common::switch::{Switch, client, client_with, shards};
use common::{Draws, LOOPBACK, bounded, pattern, without_timers};

fn settings() -> Config {
    Config::default().with(|it| {
        it.accept = true;
        it.addresses = vec![LOOPBACK];
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
    })
}

/// Like any endpoint, a single shard does not share its UDP port, because another process at the
/// port would receive packets of its peers.
#[cfg(target_os = "linux")]
#[test]
fn one_shard_shares_its_port_with_no_other() {
    let shards = Shard::open(&settings(), 1).expect("loopback");
    let at = shards[0].local_addresses()[0];
    let other = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None);
    let other = other.expect("a socket");
    other.set_reuse_port(true).expect("Linux");
    other.bind(&at.into()).expect_err("the port is taken");
}

/// An observer that counts received packets.
struct Counting(Arc<AtomicU64>);

impl Observer for Counting {
    fn packet(&mut self, seen: &ObservedPacket<'_>) {
        let came = seen.direction == Direction::In;
        self.0.fetch_add(u64::from(came), Ordering::Relaxed);
    }
}

/// Each packet is counted and observed once, even if the receiving shard passes it to another, such
/// as the INIT of a restarted peer.
#[tokio::test(start_paused = true)]
async fn each_packet_is_seen_and_counted_once() {
    let (switch, shards) = shards(3);
    let seen = Arc::<AtomicU64>::default();
    let bind = |shard: Shard| {
        let sockets = shard.start().expect("started");
        let config = without_timers(Config::server(7));
        let counting = Box::new(Counting(Arc::clone(&seen)));
        Endpoint::bind_with(config, BindOptions::from(&sockets).with_observer(counting))
            .expect("bound")
    };
    let servers: Vec<Endpoint> = shards.into_iter().map(bind).collect();
    let mut lives = Vec::new();
    for life in 0..6 {
        let client = client(&switch, 10, 0);
        // Each INIT arrives at a different shard.
        switch.lock().expect("whole").turn = life;
        let up = client.connect(([10, 0, 0, 1], 7)).await;
        let up = up.expect("it listens");
        up.send("hello", SendOptions::default()).await.expect("up");
        // The peer has lost its state without closing, so its end of the association is kept until
        // the test ends.
        lives.push((client, up));
    }
    // Virtual time advances only when no task has work.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let sent = switch.lock().expect("whole").for_server;
    let all = servers.iter().map(Endpoint::statistics);
    let counted: u64 = all.map(|it| it.packets_received).sum();
    assert_eq!((counted, seen.load(Ordering::Relaxed)), (sent, sent));
}

/// Two endpoints with one SCTP port at two addresses are independent, regardless of the shards that
/// have their associations.
#[tokio::test(start_paused = true)]
async fn endpoints_at_other_addresses_have_peers_of_their_own() {
    let (switch, shards) = shards(2);
    let bind = |shard: Shard| {
        let sockets = shard.start().expect("started");
        [0, 1].map(|network| {
            let config = without_timers(Config::server(7));
            let config = config.with(|it| it.addresses = vec![[10, 0, network, 1].into()]);
            Endpoint::bind_with(config, &sockets).expect("bound")
        })
    };
    let all: Vec<[Endpoint; 2]> = shards.into_iter().map(bind).collect();
    let peer = client(&switch, 10, 0);
    peer.listen(true);
    let called = || Peer::from(([10, 0, 0, 10], 5_000)).over_udp(9_899);
    let first = all[0][0].connect(called()).await.expect("it listens");
    let second = all[1][1].connect(called()).await.expect("another endpoint");
    // The first endpoint releases the address of the peer. The entry of the second endpoint
    // remains, so that another shard cannot connect to this peer.
    drop(first);
    all[0][0].wait_idle().await;
    let refused = all[0][1].connect(called()).await.expect_err("it has one");
    let expected = anabranch_net::sctp::ConnectError::ExistsElsewhere;
    assert_eq!(refused, anabranch_net::ConnectError::Refused(expected));
    drop(second);
}

/// Echoes messages.
async fn echo(association: Association) {
    while let Ok(Some(message)) = association.recv().await {
        let options = SendOptions::default().with_ppid(message.ppid);
        let sent = association.send(message.bytes, options.with_stream(Some(message.stream)));
        if sent.await.is_err() {
            break;
        }
    }
}

/// Sends `count` messages and receives the echoes. Returns true if the association is still
/// established.
async fn converse(association: &Association, seed: u32, count: u32) -> bool {
    for number in 0..count {
        let message = pattern(
            seed + number,
            100 + (seed as usize + number as usize) % 3_000,
        );
        let sent = association.send(message.clone(), SendOptions::default());
        if sent.await.is_err() {
            return false;
        }
        match association.recv().await {
            Ok(Some(back)) => assert_eq!(back.bytes, message),
            _ => return false,
        }
    }
    true
}

/// A client that connects, cancels calls, exchanges messages, closes in a random way, and loses its
/// state. Returns the endpoints that still exist.
async fn live(switch: Arc<Mutex<Switch>>, host: u8, seed: u64) -> Vec<Endpoint> {
    let mut random = Draws::of(seed);
    let mut lives = vec![client_with(&switch, host, 0, |it| it)];
    for turn in 0..8 {
        let network = random.below(2) as u8;
        let own = lives.last().expect("one");
        let connects = own.connect(([10, 0, network, 1], 7));
        let patience = match random.below(4) {
            0 => Duration::from_micros(random.below(3).into()),
            _ => Duration::from_secs(20),
        };
        let Ok(Ok(up)) = tokio::time::timeout(patience, connects).await else {
            continue;
        };
        let count = random.below(6);
        let talks = converse(&up, u32::from(host) * 1_000 + turn, count);
        // The call may be cancelled at any await point.
        let patience = Duration::from_micros(random.below(5).into());
        let whole = match random.below(3) {
            0 => tokio::time::timeout(patience, talks).await.unwrap_or(false),
            _ => talks.await,
        };
        match random.below(5) {
            0 => up.abort("enough"),
            1 => drop(up),
            2 if whole => {
                let _ = up.shutdown().await;
            }
            3 => {
                let first = random.below(2) as u8;
                lives.push(client_with(&switch, host, first, |it| it));
                // A host that has lost its state sends no ABORT or SHUTDOWN.
                std::mem::forget(up);
            }
            _ => {}
        }
    }
    lives
}

/// Random client behaviour on a network that delivers packets to any shard, and one shard that ends
/// in the middle. All associations end, and the remaining shards serve every peer.
#[test]
fn whatever_peers_do_shards_serve_and_come_to_an_end() {
    for seed in 0..12 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        println!("seed {seed}");
        runtime.block_on(async {
            let play = tokio::time::timeout(Duration::from_secs(3_600), play(seed));
            play.await.expect("it ends");
        });
    }
}

async fn play(seed: u64) {
    let mut random = Draws::of(seed);
    let (switch, shards) = shards(2 + seed as usize % 3);
    let mut servers: Vec<Endpoint> = (shards.into_iter())
        .map(|it| it.bind().expect("bound"))
        .collect();
    let mut accepts: Vec<_> = (servers.iter().cloned())
        .map(|server| {
            tokio::spawn(async move {
                while let Ok(association) = server.accept().await {
                    tokio::spawn(echo(association));
                }
            })
        })
        .collect();
    let hosts = 10..18;
    let lives = hosts.clone().map(|host| {
        let own = u64::from(random.below(u32::MAX));
        tokio::spawn(live(Arc::clone(&switch), host, own))
    });
    let lives: Vec<_> = lives.collect();
    for _ in 0..random.below(200) {
        tokio::task::yield_now().await;
    }
    // One shard ends, gracefully or not, together with its socket.
    let gone = random.below(servers.len() as u32) as usize;
    switch.lock().expect("whole").shards.remove(gone);
    let server = servers.remove(gone);
    match random.below(2) {
        0 => server.close_with_timeout(Duration::from_secs(5)).await,
        _ => server.abort("it goes"),
    }
    drop(accepts.remove(gone));
    drop(server);
    let mut former = Vec::new();
    for life in lives {
        former.push(life.await.expect("no panic"));
    }
    // The earlier endpoints are gone. A later client with the same address may find their
    // associations at the server, and must still connect.
    drop(former);
    for host in hosts {
        let fresh = client_with(&switch, host, 0, |it| it);
        let up = fresh.connect(([10, 0, 0, 1], 7)).await;
        let up = up.unwrap_or_else(|error| panic!("seed {seed}, host {host}: {error}"));
        assert!(converse(&up, 1, 5).await, "seed {seed}, host {host}");
        up.shutdown().await.expect("graceful");
    }
    for server in &servers {
        server.close_with_timeout(Duration::from_secs(5)).await;
        server.wait_idle().await;
    }
}

/// Threads with two ports each, and clients that connect and disconnect: no task waits forever.
#[cfg(feature = "thread")]
#[test]
fn many_come_and_go_on_threads() {
    const SHARDS: usize = 4;
    const PORTS: [u16; 2] = [7, 8];
    let shards = Shard::open(&settings().with(|it| it.port = PORTS[0]), SHARDS);
    let shards = shards.expect("loopback");
    let at = shards[0].local_addresses()[0];
    let (mut ends, mut threads) = (Vec::new(), Vec::new());
    for shard in shards {
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        ends.push(end);
        threads.push(std::thread::spawn(move || {
            let polls = Duration::from_micros(20 * (shard.number() as u64 % 2));
            let runtime = ThreadRuntime::new().expect("a runtime").busy_poll(polls);
            runtime.block_on(async {
                let sockets = shard.start().expect("started");
                let servers = PORTS.map(|port| {
                    let config = settings().with(|it| it.port = port);
                    Endpoint::bind_with(config, &sockets).expect("free")
                });
                let spawner = ThreadSpawner::current().expect("here");
                for server in servers.clone() {
                    let spawns = spawner.clone();
                    drop(spawner.spawn(async move {
                        while let Ok(association) = server.accept().await {
                            drop(spawns.spawn(echo(association)));
                        }
                    }));
                }
                let _ = ended.await;
                for server in servers {
                    server.close().await;
                    server.wait_idle().await;
                }
            });
        }));
    }
    bounded(async move {
        let mut talks = Vec::new();
        for number in 0..40 {
            talks.push(tokio::spawn(come_and_go(number, at.port(), PORTS)));
        }
        for talk in talks {
            talk.await.expect("no panic");
        }
        drop(ends);
        let joins = tokio::task::spawn_blocking(move || {
            for thread in threads {
                thread.join().expect("no panic");
            }
        });
        joins.await.expect("no panic");
    });
}

async fn come_and_go(number: u32, udp_port: u16, ports: [u16; 2]) {
    let mut random = Draws::of(number.into());
    let sockets = SharedSockets::open(&settings()).expect("loopback");
    let client = |port: u16| {
        let config = settings().with(|it| it.port = port);
        Endpoint::bind_with(config, &sockets).expect("free")
    };
    // Some clients share one flow, whose packets the system may coalesce.
    let first = 6_000 + 2 * number as u16;
    let clients = [first, first + 1].map(client);
    for turn in 0..6 {
        let own = &clients[random.below(2) as usize];
        let port = ports[random.below(2) as usize];
        let peer = Peer::from((LOOPBACK, port)).over_udp(udp_port);
        let connects = own.connect(peer);
        if random.below(4) == 0 {
            let patience = Duration::from_micros(random.below(500).into());
            let _ = tokio::time::timeout(patience, connects).await;
            continue;
        }
        // A cancelled attempt may still exist for a moment.
        let Ok(up) = connects.await else { continue };
        let whole = converse(&up, number * 100 + turn, 5).await;
        match random.below(3) {
            0 => up.abort("enough"),
            1 if whole => up.shutdown().await.expect("graceful"),
            _ => drop(up),
        }
    }
}

/// Other endpoints are added and removed on the sockets of an endpoint while its association is
/// used.
#[test]
fn endpoints_are_added_and_removed_while_another_sends() {
    bounded(async {
        let sockets = SharedSockets::open(&settings()).expect("loopback");
        let server = Endpoint::bind_with(settings().with(|it| it.port = 7), &sockets);
        let server = server.expect("free");
        let peer = || Peer::from((LOOPBACK, 7)).over_udp(server.udp_port());
        let client = Endpoint::bind(settings()).expect("loopback");
        let up = client.connect(peer()).await.expect("it listens");
        tokio::spawn(echo(server.accept().await.expect("it came")));
        let accepts = server.clone();
        tokio::spawn(async move {
            while let Ok(association) = accepts.accept().await {
                tokio::spawn(echo(association));
            }
        });
        let comes_and_goes = |number: u16| {
            let (sockets, peer) = (sockets.clone(), peer());
            async move {
                let mut random = Draws::of(number.into());
                for turn in 0..60 {
                    let config = settings().with(|it| it.port = 1_000 + number);
                    let own = match Endpoint::bind_with(config, &sockets) {
                        Ok(own) => own,
                        // The previous endpoint with this port is not removed yet.
                        Err(_) => {
                            tokio::task::yield_now().await;
                            continue;
                        }
                    };
                    if random.below(3) > 0 {
                        // After a successful `connect`, only the association keeps the endpoint
                        // alive. After a failure, dropping `own` ends the endpoint.
                        let up = own.connect(peer.clone()).await;
                        drop(own);
                        if let Ok(up) = up {
                            converse(&up, turn, random.below(4)).await;
                        }
                    }
                }
            }
        };
        let others: Vec<_> = (0..6).map(|it| tokio::spawn(comes_and_goes(it))).collect();
        assert!(converse(&up, 1, 300).await);
        for other in others {
            other.await.expect("no panic");
        }
        assert!(converse(&up, 1, 10).await);
        up.shutdown().await.expect("graceful");
        server.close().await;
        server.wait_idle().await;
    });
}
