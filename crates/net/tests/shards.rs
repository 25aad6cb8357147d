//! Shards: endpoints with their own sockets and tasks that appear to peers as one endpoint.

use crate::common;

use std::net::IpAddr;

use anabranch_net::{
    Association, BindError, Carrier, Config, ConnectError, Endpoint, Event, Peer, SendOptions,
    Shard, SharedSockets, ThreadRuntime,
};
use common::switch::{client, servers};
use common::{LOOPBACK, bounded, pattern};
use futures_util::FutureExt;

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

/// Echoes messages.
async fn echo(association: Association) {
    while let Ok(Some(message)) = association.recv().await {
        let options = SendOptions::default().with_ppid(message.ppid);
        if association
            .send(message.bytes, options.with_stream(Some(message.stream)))
            .await
            .is_err()
        {
            break;
        }
    }
}

/// Sends `count` messages, receives the echoes, and closes.
async fn converse(association: &Association, seed: u32, count: u32) {
    for number in 0..count {
        let message = pattern(seed + number, 3_000);
        let sent = association.send(message.clone(), SendOptions::default());
        sent.await.expect("up");
        let back = association.recv().await.expect("up").expect("open");
        assert_eq!(back.bytes, message);
    }
    association.shutdown().await.expect("graceful");
}

#[test]
fn peers_are_spread_over_threads_and_each_has_its_echo() {
    const SHARDS: usize = 3;
    const CLIENTS: usize = 12;
    let shards = Shard::open(&settings(), SHARDS).expect("loopback");
    let numbers: Vec<usize> = shards.iter().map(Shard::number).collect();
    assert_eq!(numbers, [0, 1, 2]);
    let (port, at) = (shards[0].port(), shards[0].local_addresses()[0]);
    assert!(
        shards
            .iter()
            .all(|it| it.local_addresses() == [at] && it.port() == port)
    );
    let (accepted, taken) = std::sync::mpsc::channel();
    let mut ends = Vec::new();
    let mut threads = Vec::new();
    for shard in shards {
        let accepted = accepted.clone();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        ends.push(end);
        threads.push(std::thread::spawn(move || {
            let runtime = ThreadRuntime::new().expect("a runtime");
            runtime.block_on(async {
                let number = shard.number();
                let server = shard.bind().expect("bound");
                let serving = async {
                    while let Ok(association) = server.accept().await {
                        accepted.send(number).expect("somebody counts");
                        let spawner = anabranch_net::ThreadSpawner::current().expect("here");
                        drop(spawner.spawn(echo(association)));
                    }
                };
                tokio::select! {
                    () = serving => {}
                    _ = ended => {}
                }
                server.wait_idle().await;
            });
        }));
    }
    bounded(async move {
        let mut talks = Vec::new();
        for number in 0..CLIENTS as u32 {
            // Some clients share one UDP port, so that a run of packets may belong to several
            // associations.
            let client = Endpoint::bind(settings()).expect("loopback");
            let peer = Peer::from((LOOPBACK, port)).over_udp(at.port());
            talks.push(tokio::spawn(async move {
                let association = client.connect(peer).await.expect("it listens");
                converse(&association, number * 1_000, 50).await;
            }));
        }
        for talk in talks {
            talk.await.expect("no panic");
        }
    });
    drop((accepted, ends));
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert_eq!(taken.iter().count(), CLIENTS);
}

/// Associations between the same two UDP ports are one flow for the system, which coalesces their
/// packets and selects the socket by the first one.
#[test]
fn associations_of_one_flow_go_each_to_its_shard() {
    bounded(async {
        let shards = Shard::open(&settings(), 2).expect("loopback");
        let (port, at) = (shards[0].port(), shards[0].local_addresses()[0]);
        let servers: Vec<Endpoint> = shards
            .into_iter()
            .map(|it| it.bind().expect("bound"))
            .collect();
        for server in servers.clone() {
            tokio::spawn(async move {
                while let Ok(association) = server.accept().await {
                    tokio::spawn(echo(association));
                }
            });
        }
        let sockets = SharedSockets::open(&settings()).expect("loopback");
        let mut talks = Vec::new();
        for number in 0..8 {
            let own_port = settings().with(|it| it.port = 6_000 + number);
            let client = Endpoint::bind_with(own_port, &sockets).expect("free");
            let peer = Peer::from((LOOPBACK, port)).over_udp(at.port());
            talks.push(tokio::spawn(async move {
                let association = client.connect(peer).await.expect("it listens");
                converse(&association, u32::from(number) * 1_000, 30).await;
            }));
        }
        for talk in talks {
            talk.await.expect("no panic");
        }
        let all: Vec<_> = servers.iter().map(Endpoint::statistics).collect();
        assert!(all.iter().all(|it| it.packets_dropped == 0), "{all:?}");
    });
}

#[tokio::test(start_paused = true)]
async fn packets_that_come_to_another_shard_are_handed_over() {
    let (switch, servers) = servers(3);
    let mut talks = Vec::new();
    for host in 10..20 {
        let client = client(&switch, host, 0);
        talks.push(tokio::spawn(async move {
            let association = client
                .connect(([10, 0, 0, 1], 7))
                .await
                .expect("it listens");
            converse(&association, u32::from(host) * 1_000, 30).await;
        }));
    }
    let (count, mut counted) = tokio::sync::mpsc::unbounded_channel();
    for (number, server) in servers.iter().cloned().enumerate() {
        let count = count.clone();
        tokio::spawn(async move {
            while let Ok(association) = server.accept().await {
                count.send(number).expect("somebody counts");
                tokio::spawn(echo(association));
            }
        });
    }
    for talk in talks {
        talk.await.expect("no panic");
    }
    let mut by_shard = [0; 3];
    while let Ok(number) = counted.try_recv() {
        by_shard[number] += 1;
    }
    assert_eq!(by_shard.iter().sum::<u32>(), 10);
    let all: Vec<_> = servers.iter().map(Endpoint::statistics).collect();
    for statistics in &all {
        assert!(statistics.packets_handed_over > 0, "{statistics}");
        assert_eq!(statistics.packets_dropped, 0);
    }
    // With three shards in round robin, two of three packets arrive at the wrong shard.
    let handed: u64 = all.iter().map(|it| it.packets_handed_over).sum();
    let received: u64 = all.iter().map(|it| it.packets_received).sum();
    assert!(handed > received / 3, "{handed} of {received}");
}

/// The peer has lost its state and reconnects from another address; its INIT arrives at any shard.
#[tokio::test(start_paused = true)]
async fn the_shard_that_has_the_peer_sees_its_restart() {
    let (switch, servers) = servers(3);
    for turn in 0..3 {
        // Shifts the round robin, so that the INIT arrives at a different shard each time.
        switch.lock().expect("whole").turn += turn;
        let host = 10 + turn as u8;
        let first = client(&switch, host, 0);
        let held = first.connect(([10, 0, 0, 1], 7)).await.expect("it listens");
        let accepted = async {
            let all = servers.iter().map(|it| Box::pin(it.accept()));
            futures_util::future::select_all(all).await
        };
        let (accepted, number, _) = accepted.await;
        let accepted = accepted.expect("it came");
        // The peer has lost its state, so no ABORT is sent for the old association.
        let again = client(&switch, host, 1);
        let up = again.connect(([10, 0, 1, 1], 7)).await.expect("it listens");
        loop {
            match accepted.next_event().await.expect("it lives") {
                Event::Restarted { .. } => break,
                _ => continue,
            }
        }
        for (other, server) in servers.iter().enumerate() {
            let is_idle = server.wait_idle().now_or_never().is_some();
            assert_eq!(is_idle, other != number);
        }
        accepted
            .send("again", SendOptions::default())
            .await
            .expect("up");
        let message = up.recv().await.expect("up").expect("open");
        assert_eq!(&message.bytes[..], b"again");
        drop(held);
        accepted.abort("the next");
        up.recv().await.expect_err("aborted");
        drop(accepted);
        servers[number].wait_idle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_shards_do_not_call_one_peer() {
    let (switch, servers) = servers(2);
    let peer = client(&switch, 10, 0);
    peer.listen(true);
    let called = || Peer::from(([10, 0, 0, 10], 5_000)).over_udp(9_899);
    let held = servers[0].connect(called()).await.expect("it listens");
    let refused = servers[1]
        .connect(called())
        .await
        .expect_err("the other has it");
    let expected = anabranch_net::sctp::ConnectError::ExistsElsewhere;
    assert_eq!(refused, ConnectError::Refused(expected));
    let accepted = peer.accept().await.expect("it came");
    tokio::spawn(echo(accepted));
    converse(&held, 1, 20).await;
    drop(held);
    servers[0].wait_idle().await;
    servers[1].connect(called()).await.expect("it is free");
}

#[test]
fn settings_that_no_shards_can_have_are_refused() {
    let refused = |config: Config, count: usize| {
        let refused = Shard::open(&config, count).map(drop).expect_err("refused");
        assert!(matches!(refused, BindError::Config(_)), "{refused}");
        refused.to_string()
    };
    assert!(refused(settings(), 0).contains("allowed: 1 to 256"));
    assert!(refused(settings(), 257).contains("allowed: 1 to 256"));
    let raw = Config::server(7).with(|it| it.carrier = Carrier::Ip);
    assert!(refused(raw, 2).contains("directly over IP"));
}

/// Only shards of the group can be bound to the port, although each of its sockets allows sharing.
#[test]
fn the_port_of_a_group_is_given_to_no_other() {
    let shards = Shard::open(&settings(), 2).expect("loopback");
    let port = shards[0].local_addresses()[0].port();
    let same = settings().with(|it| {
        it.carrier = Carrier::Encapsulated { port, peer_port: 0 };
    });
    for count in [1, 2] {
        let taken = Shard::open(&same, count).map(drop);
        assert!(matches!(taken, Err(BindError::Socket { .. })), "{taken:?}");
    }
    drop(shards);
    Shard::open(&same, 2).expect("free again");
}

/// Like any endpoint, a single shard does not share its port, and passes no packets on.
#[test]
fn one_shard_is_an_endpoint_alone() {
    bounded(async {
        let mut shards = Shard::open(&settings(), 1).expect("loopback");
        let server = shards.remove(0).bind().expect("bound");
        let client = Endpoint::bind(settings()).expect("loopback");
        let at: IpAddr = LOOPBACK;
        let peer = Peer::from((at, server.port())).over_udp(server.udp_port());
        let held = client.connect(peer).await.expect("it listens");
        tokio::spawn(echo(server.accept().await.expect("it came")));
        converse(&held, 1, 20).await;
        assert_eq!(server.statistics().packets_handed_over, 0);
    });
}
