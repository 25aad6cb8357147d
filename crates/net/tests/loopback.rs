//! Two endpoints on the loopback interface.

use crate::common;

use std::net::IpAddr;

use anabranch_net::{
    AssociationError, BindError, BindOptions, Carrier, CloseReason, Config, ConnectError,
    Direction, Endpoint, Event, ObservedPacket, Observer, PathState, Peer, SendError, SendOptions,
    TrySendError, sctp,
};
use anabranch_transport::Ecn;
use bytes::{Bytes, BytesMut};
use common::{LOOPBACK, bounded, pair, pattern, without_timers};

#[test]
fn messages_arrive_whole_and_in_order_on_each_stream() {
    bounded(async {
        let (client, server) = pair(Config::default()).await;
        let sender = tokio::spawn(async move {
            for index in 0..2_000u32 {
                let size = 1 + (index as usize * 7919) % 20_000;
                let options = SendOptions::default()
                    .with_ppid(index)
                    .with_unordered(false);
                let sent = client.send(
                    pattern(index, size),
                    options.with_stream(Some((index % 7) as u16)),
                );
                sent.await.expect("room comes");
            }
            client.shutdown().await
        });
        let mut next = [0u32, 1, 2, 3, 4, 5, 6];
        let mut count = 0;
        while let Some(message) = server.recv().await.expect("a graceful end") {
            let index = next[usize::from(message.stream)];
            next[usize::from(message.stream)] += 7;
            let size = 1 + (index as usize * 7919) % 20_000;
            assert_eq!((message.ppid, message.unordered), (index, false));
            assert_eq!(message.bytes, pattern(index, size), "message {index}");
            count += 1;
        }
        assert_eq!(count, 2_000);
        assert_eq!(sender.await.expect("no panic"), Ok(()));
        assert_eq!(server.closed().await, CloseReason::Shutdown);
    });
}

#[test]
fn both_directions_at_once_and_unordered() {
    bounded(async {
        let (client, server) = pair(Config::default()).await;
        let run = |association: anabranch_net::Association, seed: u32| async move {
            let receiver = association.clone();
            let taken = tokio::spawn(async move {
                let mut sum = 0u64;
                for _ in 0..1_000 {
                    let message = receiver.recv().await.expect("up").expect("not closed");
                    assert!(message.unordered);
                    assert_eq!(message.bytes, pattern(message.ppid, 3_000));
                    sum += u64::from(message.ppid);
                }
                sum
            });
            for index in 0..1_000 {
                let options = SendOptions::default()
                    .with_ppid(seed + index)
                    .with_unordered(true);
                let sent =
                    association.send(pattern(seed + index, 3_000), options.with_stream(Some(1)));
                sent.await.expect("room comes");
            }
            taken.await.expect("no panic")
        };
        let (one, other) = tokio::join!(run(client, 0), run(server, 5_000));
        let sum = |first: u64| (first..first + 1_000).sum::<u64>();
        assert_eq!((one, other), (sum(5_000), sum(0)));
    });
}

#[test]
fn a_sender_waits_for_space_and_a_reader_makes_it() {
    bounded(async {
        let mut config = Config::default();
        config.sctp.send_buffer = 64 * 1024;
        config.sctp.receive_buffer = 64 * 1024;
        let (client, server) = pair(config).await;
        let message = Bytes::from(vec![7; 10_000]);
        let mut queued = 0;
        // The peer reads nothing: both buffers fill, and the sender has to wait. A probe of the
        // closed window may still free some space.
        let refused = loop {
            let full = client.try_send(message.clone(), SendOptions::default());
            match full {
                Ok(()) => queued += 1,
                Err(TrySendError::Full(back)) if client.status().expect("up").rwnd < 1_000 => {
                    break back;
                }
                Err(TrySendError::Full(_)) => tokio::task::yield_now().await,
                Err(other) => panic!("{other}"),
            }
        };
        assert_eq!(refused, message, "what is not taken is given back");
        loop {
            let mut waiting = Box::pin(client.send(message.clone(), SendOptions::default()));
            tokio::select! {
                biased;
                sent = &mut waiting => sent.expect("up"),
                () = std::future::ready(()) => break,
            }
            queued += 1;
        }
        assert!(
            (6..30).contains(&queued),
            "{queued} messages of 10 kB were taken"
        );
        // The message of the dropped future was not queued.
        let total = queued + 50;
        let sender = tokio::spawn(async move {
            for _ in 0..50 {
                client
                    .send(message.clone(), SendOptions::default())
                    .await
                    .expect("up");
            }
            client.shutdown().await
        });
        let mut received = 0;
        while server.recv().await.expect("a graceful end").is_some() {
            received += 1;
        }
        assert_eq!(received, total);
        assert_eq!(sender.await.expect("no panic"), Ok(()));
    });
}

#[test]
fn a_dropped_receive_loses_no_message() {
    bounded(async {
        let (client, server) = pair(Config::default()).await;
        let mut seen = Vec::new();
        for index in 0..200u32 {
            let mut pending = Box::pin(server.recv());
            // Polls `send` once, so that it waits, and then drops it.
            tokio::select! {
                biased;
                _ = &mut pending => panic!("nothing was sent"),
                () = std::future::ready(()) => {}
            }
            drop(pending);
            client
                .send(pattern(index, 100), SendOptions::default())
                .await
                .expect("up");
            seen.push(server.recv().await.expect("up").expect("open").bytes);
        }
        let expected: Vec<Bytes> = (0..200).map(|index| pattern(index, 100)).collect();
        assert_eq!(seen, expected);
    });
}

#[test]
fn errors_of_a_send_say_what_is_allowed() {
    bounded(async {
        let mut config = Config::default();
        config.sctp.outbound_streams = 3;
        config.max_message_size = 1_000;
        let (client, _server) = pair(config).await;
        let send = |stream, size: usize| {
            let client = &client;
            async move { client.send(vec![0; size], SendOptions::on(stream)).await }
        };
        assert_eq!(
            send(3, 10).await,
            Err(SendError::NoSuchStream {
                stream: 3,
                streams: 3
            })
        );
        assert_eq!(send(0, 0).await, Err(SendError::Empty));
        assert_eq!(
            send(0, 1_001).await,
            Err(SendError::TooLarge {
                size: 1_001,
                most: 1_000
            })
        );
        client.start_shutdown(None);
        assert_eq!(send(0, 10).await, Err(SendError::Closing));
    });
}

#[test]
fn an_abort_reaches_the_peer_after_what_had_arrived() {
    bounded(async {
        let (client, server) = pair(Config::default()).await;
        client
            .send("last words", SendOptions::default())
            .await
            .expect("up");
        assert_eq!(
            server.recv().await.expect("up").expect("open").bytes,
            "last words"
        );
        client.abort("enough");
        assert_eq!(client.closed().await, CloseReason::AbortedHere);
        let reason = CloseReason::AbortedByPeer { cause: Some(12) };
        assert_eq!(server.recv().await, Err(AssociationError(reason)));
    });
}

#[test]
fn the_last_handle_closes_gracefully_and_the_endpoint_follows() {
    bounded(async {
        let (client, server) = pair(Config::default()).await;
        let message = Bytes::from(vec![1; 500_000]);
        client
            .send(message.clone(), SendOptions::default())
            .await
            .expect("up");
        drop(client);
        assert_eq!(
            server.recv().await.expect("up").expect("open").bytes,
            message
        );
        assert_eq!(server.recv().await, Ok(None));
    });
}

#[test]
fn no_listener_and_no_acceptor() {
    bounded(async {
        let mut config = Config::default().with(|it| it.addresses = vec![LOOPBACK]);
        let quiet = Endpoint::bind(config.clone()).expect("loopback");
        let client = Endpoint::bind(config.clone()).expect("loopback");
        // An endpoint that does not accept answers immediately with an ABORT (RFC 9260 §8.4, rule
        // 3).
        let peer = Peer::from((LOOPBACK, quiet.port())).over_udp(quiet.udp_port());
        let refused = client.connect(peer).await.map(drop);
        let aborted = CloseReason::AbortedByPeer { cause: None };
        assert_eq!(
            refused,
            Err(ConnectError::Association(AssociationError(aborted)))
        );
        assert!(quiet.accept().await.is_err());
        // No answer comes, because the port is bound but never read.
        let silent = std::net::UdpSocket::bind((LOOPBACK, 0)).expect("loopback");
        let udp_port = silent.local_addr().expect("bound").port();
        config.sctp.profile.rto_initial.0 = 20_000_000;
        config.sctp.rto_min = 20_000_000;
        config.sctp.rto_max = 40_000_000;
        config.sctp.max_init_retransmits = 3;
        let client = Endpoint::bind(config).expect("loopback");
        let peer = Peer::from((LOOPBACK, 7)).over_udp(udp_port);
        let unanswered = client.connect(peer).await.map(drop);
        assert_eq!(
            unanswered,
            Err(ConnectError::Association(AssociationError(
                CloseReason::NoAnswer
            )))
        );
    });
}

#[test]
fn a_dropped_attempt_is_abandoned() {
    bounded(async {
        let client = Endpoint::bind(Config::default().with(|it| it.addresses = vec![LOOPBACK]))
            .expect("loopback");
        let peer = Peer::from((LOOPBACK, 7)).over_udp(9);
        {
            let mut attempt = Box::pin(client.connect(peer));
            tokio::select! {
                biased;
                _ = &mut attempt => panic!("nobody is there"),
                () = std::future::ready(()) => {}
            }
        }
        client.wait_idle().await;
    });
}

fn up(address: IpAddr) -> Event {
    Event::PathChanged {
        path: sctp::PathId(1),
        address,
        state: PathState::Active,
    }
}

/// An address that the application passed is confirmed without a HEARTBEAT (RFC 9260 §5.4, rule 1).
/// The event is reported even if the peer lists the same address.
#[test]
fn an_address_that_the_user_gave_is_reported_as_confirmed() {
    bounded(async {
        let home = |last| IpAddr::from([127, 0, 0, last]);
        let mut server = Config::server(5_001);
        server.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
        server.addresses = vec![home(1), home(2)];
        let mut client = server.clone();
        client.addresses = vec![home(3)];
        client.port = 0;
        let server = Endpoint::bind(server).expect("loopback");
        let client = Endpoint::bind(client).expect("loopback");
        let peer = Peer::new(vec![home(1), home(2)], 5_001).over_udp(server.udp_port());
        let association = client.connect(peer).await.expect("it listens");
        let told = association.next_event().await;
        assert_eq!(told, Some(up(home(2))));
    });
}

#[test]
fn several_addresses_are_reported_and_a_primary_can_be_chosen() {
    bounded(async {
        let home = |last| IpAddr::from([127, 0, 0, last]);
        let mut server = Config::server(5_001);
        server.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
        server.addresses = vec![home(1), home(2)];
        let mut client = server.clone();
        client.addresses = vec![home(3), home(4)];
        client.port = 0;
        let server = Endpoint::bind(server).expect("loopback");
        let client = Endpoint::bind(client).expect("loopback");
        let peer = Peer::from((home(1), 5_001)).over_udp(server.udp_port());
        let association = client.connect(peer).await.expect("it listens");
        let accepted = server.accept().await.expect("it came");
        // Waits for the HEARTBEAT that confirms the second address (RFC 9260 §5.4).
        assert_eq!(association.next_event().await, Some(up(home(2))));
        assert!(association.set_primary(home(2)));
        assert!(!association.set_primary(home(9)));
        assert_eq!(accepted.next_event().await, Some(up(home(4))));
        assert_eq!(
            association.next_event().await,
            Some(Event::PrimaryChanged {
                path: sctp::PathId(1),
                address: home(2)
            })
        );
        association
            .send(vec![5; 100_000], SendOptions::default())
            .await
            .expect("up");
        assert_eq!(
            accepted
                .recv()
                .await
                .expect("up")
                .expect("open")
                .bytes
                .len(),
            100_000
        );
        let status = association.status().expect("up");
        assert_eq!((status.primary.address, status.paths.len()), (home(2), 2));
        assert!(status.primary.srtt.is_some());
        assert_eq!(status.counters.sender.bytes_sent, 100_000);
        association.shutdown().await.expect("graceful");
    });
}

#[test]
fn a_bind_that_cannot_be_says_why() {
    bounded(async {
        let taken = Endpoint::bind(Config::default().with(|it| it.addresses = vec![LOOPBACK]))
            .expect("loopback");
        let again = Config::default().with(|it| {
            it.addresses = vec![LOOPBACK];
            it.carrier = Carrier::Encapsulated {
                port: taken.udp_port(),
                peer_port: 0,
            };
        });
        match Endpoint::bind(again).map(drop) {
            Err(BindError::Socket { address, port, .. }) => {
                assert_eq!((address, port), (LOOPBACK, taken.udp_port()));
            }
            other => panic!("{other:?}"),
        }
        let mut small = Config::default();
        small.sctp.receive_buffer = 1_000;
        let message = Endpoint::bind(small)
            .map(drop)
            .expect_err("too small")
            .to_string();
        assert!(
            message.contains("1000 B") && message.contains("1500 B"),
            "{message}"
        );
    });
}

/// If the driver did not wait for its socket, only a timer would wake it, and no timer expires in
/// this test. The window fits the socket buffers, so that no packet is lost: only a timer would
/// retransmit a lost packet.
#[test]
fn bulk_waits_for_no_timer() {
    bounded(async {
        let mut config = without_timers(Config::default());
        config.sctp.receive_buffer = 64 * 1024;
        let (client, server) = pair(config).await;
        let taking = tokio::spawn(async move {
            let mut bytes = 0;
            while let Some(message) = server.recv().await.expect("a graceful end") {
                bytes += message.bytes.len();
            }
            bytes
        });
        let message = Bytes::from(vec![1; 1_024]);
        for _ in 0..20_000 {
            client
                .send(message.clone(), SendOptions::default().with_stream(None))
                .await
                .expect("up");
        }
        client.shutdown().await.expect("graceful");
        assert_eq!(taking.await.expect("no panic"), 20_000 * 1_024);
    });
}

/// Parts of a message can be read before its end arrives, and a message of any length fits through
/// a small buffer.
#[test]
fn messages_larger_than_the_receive_buffer_come_whole_or_in_parts() {
    const SIZE: usize = 8 << 20;
    bounded(async {
        for in_parts in [false, true] {
            let mut config = Config::default().with(|it| it.max_message_size = SIZE);
            config.sctp.receive_buffer = 256 << 10;
            let (client, server) = pair(config).await;
            let sender = tokio::spawn(async move {
                for (stream, size) in [(1, SIZE), (1, 5), (2, SIZE / 4)] {
                    let options = SendOptions::default();
                    let sent = client.send(
                        pattern(stream.into(), size),
                        options.with_stream(Some(stream)),
                    );
                    sent.await.expect("room comes");
                }
                client.shutdown().await
            });
            let mut came = Vec::new();
            if in_parts {
                let mut so_far = BytesMut::new();
                while let Some(part) = server.recv_part().await.expect("a graceful end") {
                    assert!(part.bytes.len() <= 512 << 10, "{}", part.bytes.len());
                    assert_eq!(part.begins, so_far.is_empty());
                    so_far.extend_from_slice(&part.bytes);
                    if part.ends {
                        came.push((part.stream, so_far.split().freeze()));
                    }
                }
            } else {
                while let Some(message) = server.recv().await.expect("a graceful end") {
                    came.push((message.stream, message.bytes));
                }
            }
            let sizes: Vec<_> = came.iter().map(|(at, it)| (*at, it.len())).collect();
            assert_eq!(sizes, [(1, SIZE), (1, 5), (2, SIZE / 4)]);
            let intact =
                |(stream, bytes): &(u16, Bytes)| *bytes == pattern(u32::from(*stream), bytes.len());
            assert!(came.iter().all(intact));
            assert_eq!(sender.await.expect("no panic"), Ok(()));
        }
    });
}

#[test]
fn a_message_longer_than_the_reader_wants_ends_the_association_and_says_why() {
    bounded(async {
        let mut config = Config::default();
        config.sctp.receive_buffer = 64 << 10;
        let (client, server) = pair(config).await;
        let options = SendOptions::default();
        let sent = client.send(pattern(1, 1 << 20), options.with_stream(Some(3)));
        sent.await.expect("room comes");
        let whole = server.recv().await.expect("up").expect("not closed");
        assert_eq!(whole.bytes, pattern(1, 1 << 20), "as large as is allowed");
        // The limit of this server is lower than that of its client, so the client can send a message
        // that the server refuses.
        let mut config = Config::default();
        config.sctp.receive_buffer = 64 << 10;
        config.max_message_size = 100_000;
        let server = Endpoint::bind(config.with(|it| {
            it.accept = true;
            it.addresses = vec![LOOPBACK];
            it.carrier = Carrier::Encapsulated {
                port: 0,
                peer_port: 0,
            };
        }))
        .expect("loopback");
        let client = Endpoint::bind(Config::default().with(|it| it.addresses = vec![LOOPBACK]))
            .expect("loopback");
        let peer = Peer::from((LOOPBACK, server.port())).over_udp(server.udp_port());
        let client = client.connect(peer).await.expect("it listens");
        let server = server.accept().await.expect("it came");
        let sent = client.send(pattern(1, 200_000), options.with_stream(Some(3)));
        sent.await.expect("room");
        let reason = CloseReason::MessageTooLong { most: 100_000 };
        assert_eq!(server.recv().await, Err(AssociationError(reason)));
        let aborted = CloseReason::AbortedByPeer { cause: Some(4) };
        assert_eq!(client.recv().await, Err(AssociationError(aborted)));
    });
}

/// By default the packet size is discovered: it grows from 1,200 to 1,500 bytes, less the IP and
/// UDP headers.
#[test]
fn the_path_mtu_is_found() {
    bounded(async {
        // No probe counts as lost, even if its acknowledgement is late.
        let mut config = without_timers(Config::default());
        let (client, server) = pair(config.clone()).await;
        let mtu = || client.status().expect("held").primary.mtu;
        loop {
            match mtu() {
                1472 => break,
                first => assert_eq!(first, 1172),
            }
            let sent = client.send("ping", SendOptions::default());
            sent.await.expect("room");
            server.recv().await.expect("up").expect("not closed");
        }
        config.sctp.path_mtu_discovery = false;
        config.sctp.mtu = 1300;
        let (client, _server) = pair(config).await;
        assert_eq!(client.status().expect("held").primary.mtu, 1272);
    });
}

/// Number of packets by direction (sent: true) and ECN field.
#[derive(Clone, Default)]
struct Fields(std::sync::Arc<std::sync::Mutex<std::collections::BTreeMap<(bool, Ecn), u64>>>);

impl Observer for Fields {
    fn packet(&mut self, seen: &ObservedPacket<'_>) {
        let out = seen.direction == Direction::Out;
        let mut counts = self.0.lock().expect("no panic");
        *counts.entry((out, seen.ecn)).or_default() += 1;
    }
}

/// With ECN at both ends, new DATA is sent as ECT(0), and the socket of the other end reports this
/// (RFC 6951 §5.8).
#[test]
fn the_ecn_field_passes_inside_udp() {
    bounded(async {
        for uses_ecn in [true, false] {
            let mut config = Config::default().with(|it| {
                it.addresses = vec![LOOPBACK];
                it.carrier = Carrier::Encapsulated {
                    port: 0,
                    peer_port: 0,
                };
                it.accept = true;
            });
            config.sctp.profile.ecn = uses_ecn;
            let (here, there) = (Fields::default(), Fields::default());
            let bind = |fields: &Fields| {
                let observer = Box::new(fields.clone());
                Endpoint::bind_with(
                    config.clone(),
                    BindOptions::default().with_observer(observer),
                )
                .expect("loopback")
            };
            let (client, server) = (bind(&here), bind(&there));
            let peer = Peer::from((LOOPBACK, server.port())).over_udp(server.udp_port());
            let association = client.connect(peer).await.expect("it listens");
            let taken = server.accept().await.expect("it came");
            for index in 0..50 {
                let sent = association.send(pattern(index, 1_000), SendOptions::default());
                sent.await.expect("room");
            }
            for _ in 0..50 {
                taken.recv().await.expect("up").expect("not closed");
            }
            let count = |fields: &Fields, out: bool| {
                let counts = fields.0.lock().expect("no panic");
                counts.get(&(out, Ecn::Ect0)).copied().unwrap_or(0)
            };
            // On a slow machine there may be retransmissions, which are sent as Not-ECT.
            let (sent, received) = (count(&here, true), count(&there, false));
            assert_eq!(sent > 0, uses_ecn, "{sent}");
            assert_eq!(received > 0, uses_ecn, "{received} of {sent}");
            assert!(received <= sent);
        }
    });
}
