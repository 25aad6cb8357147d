//! Tests that a single message is sent by the task of its sender, and that the driver still does
//! its other work. On a single-threaded runtime the driver cannot run between two lines of a test
//! without an `await`.

use crate::common;

use std::future::{Future, poll_fn};
use std::net::{SocketAddr, UdpSocket as Bound};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use anabranch_net::{
    Association, BindOptions, Carrier, CloseReason, Config, Endpoint, Observer, Peer, SendOptions,
};
use common::{HANGS, LOOPBACK, pattern, without_timers};
use tokio::net::UdpSocket;

/// Runs a test on one thread; fails if the test hangs.
fn alone<F: Future<Output = ()>>(test: F) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let ended = tokio::time::timeout(HANGS, test).await;
        ended.expect("the test comes to its end");
    });
}

fn on_loopback(config: Config) -> Config {
    config.with(|it| {
        it.addresses = vec![LOOPBACK];
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
    })
}

/// Two endpoints with the two ends of an association between them.
struct Pair {
    client: Endpoint,
    server: Endpoint,
    asks: Association,
    answers: Association,
}

impl Pair {
    async fn of(client: Endpoint, server: Endpoint, udp_port: u16) -> Self {
        let peer = Peer::from((LOOPBACK, server.port())).over_udp(udp_port);
        let asks = client.connect(peer).await.expect("it listens");
        let answers = server.accept().await.expect("it came");
        Self {
            client,
            server,
            asks,
            answers,
        }
    }

    async fn without_timers(observer: Option<Box<dyn Observer>>) -> Self {
        let config = without_timers(on_loopback(Config::default()));
        let server = Endpoint::bind(config.clone().with(|it| it.accept = true));
        let client = match observer {
            Some(observer) => {
                Endpoint::bind_with(config, BindOptions::default().with_observer(observer))
            }
            None => Endpoint::bind(config),
        };
        let (client, server) = (client.expect("loopback"), server.expect("loopback"));
        let udp_port = server.udp_port();
        Self::of(client, server, udp_port).await
    }

    /// Sends one message in each direction. Afterwards all data of the client is acknowledged, and
    /// its driver sleeps.
    async fn ping(&self, seed: u32) {
        for (from, to) in [(&self.asks, &self.answers), (&self.answers, &self.asks)] {
            let sent = from.send(pattern(seed, 100), SendOptions::default());
            sent.await.expect("up");
            let message = to.recv().await.expect("up").expect("open");
            assert_eq!(message.bytes, pattern(seed, 100));
        }
    }

    /// Number of packets sent so far; called while no task uses the sockets.
    fn packets_sent(&self) -> u64 {
        self.client.statistics().packets_sent
    }

    fn queue(&self, seed: u32, size: usize) {
        let queued = self
            .asks
            .try_send(pattern(seed, size), SendOptions::default());
        queued.expect("room");
    }
}

#[test]
fn a_lone_message_leaves_at_once_and_those_behind_it_together() {
    alone(async {
        let pair = Pair::without_timers(None).await;
        for round in 0..50 {
            pair.ping(round).await;
            let before = pair.packets_sent();
            pair.queue(1_000, 100);
            let after = pair.packets_sent();
            assert!(after > before, "round {round}");
            // While that message is in flight, further messages wait for the driver, which fills
            // packets with them.
            for seed in 1_001..1_011 {
                pair.queue(seed, 100);
            }
            assert_eq!(pair.packets_sent(), after, "round {round}");
            for seed in 1_000..1_011 {
                let message = pair.answers.recv().await.expect("up").expect("open");
                assert_eq!(message.bytes, pattern(seed, 100), "in order");
            }
        }
        let packets = pair.packets_sent();
        // Packets of each round: the ping, the SACK for the answer, the single message, and one
        // packet with the other messages.
        assert!(packets < 50 * 5, "{packets}");
        pair.asks.shutdown().await.expect("graceful");
        drop(pair.server);
    });
}

#[test]
fn a_large_message_is_left_to_the_driver() {
    alone(async {
        let pair = Pair::without_timers(None).await;
        pair.ping(0).await;
        let before = pair.packets_sent();
        pair.queue(1, 100_000);
        assert_eq!(pair.packets_sent(), before);
        let message = pair.answers.recv().await.expect("up").expect("open");
        assert_eq!(message.bytes, pattern(1, 100_000));
    });
}

/// An observer that counts packets.
struct Count(Arc<AtomicUsize>);

impl Observer for Count {
    fn packet(&mut self, _: &anabranch_net::ObservedPacket<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn who_watches_is_called_from_the_task_of_the_endpoint_alone() {
    alone(async {
        let seen = Arc::new(AtomicUsize::new(0));
        let pair = Pair::without_timers(Some(Box::new(Count(Arc::clone(&seen))))).await;
        pair.ping(0).await;
        let before = (pair.packets_sent(), seen.load(Ordering::Relaxed));
        pair.queue(1, 100);
        assert_eq!((pair.packets_sent(), seen.load(Ordering::Relaxed)), before);
        let message = pair.answers.recv().await.expect("up").expect("open");
        assert_eq!(message.bytes, pattern(1, 100));
    });
}

/// Forwards packets between a client and the server at `to`, but drops the client's packets with
/// the numbers in `lost`, counted from one.
async fn relay(socket: UdpSocket, to: SocketAddr, lost: Arc<AtomicUsize>) {
    let mut buffer = [0; 2_048];
    let mut client = None;
    loop {
        let (length, from) = socket.recv_from(&mut buffer).await.expect("loopback");
        let packet = &buffer[..length];
        if from != to {
            client = Some(from);
            let drops = |left: usize| left.checked_sub(1);
            if lost
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, drops)
                .is_ok()
            {
                continue;
            }
        }
        let next = if from == to { client } else { Some(to) };
        socket
            .send_to(packet, next.expect("the client begins"))
            .await
            .expect("loopback");
    }
}

/// The driver has no timer set, so it must be woken for the retransmission timer of the message.
#[test]
fn a_message_that_left_at_once_and_was_lost_is_sent_again() {
    alone(async {
        let config = on_loopback(Config::default()).with(|it| {
            it.sctp.heartbeat_interval = None;
            it.sctp.delayed_sack = false;
            (it.sctp.rto_min, it.sctp.rto_max) = (20_000_000, 20_000_000);
            // Large limits, because on a busy machine many of these timers may expire in a row, and
            // no message should be abandoned.
            it.sctp.max_init_retransmits = 1_000;
            (it.sctp.association_max_retrans, it.sctp.path_max_retrans) = (1_000, 1_000);
        });
        let server = Endpoint::bind(config.clone().with(|it| it.accept = true));
        let server = server.expect("loopback");
        let client = Endpoint::bind(config).expect("loopback");
        let between = UdpSocket::bind((LOOPBACK, 0)).await.expect("loopback");
        let udp_port = between.local_addr().expect("bound").port();
        let lost = Arc::new(AtomicUsize::new(0));
        let to = SocketAddr::new(LOOPBACK, server.udp_port());
        let relaying = tokio::spawn(relay(between, to, Arc::clone(&lost)));
        let pair = Pair::of(client, server, udp_port).await;
        for round in 0..5 {
            pair.ping(round).await;
            // Waits until no SACK is in flight, because the packet to be lost must carry the
            // message.
            while pair.answers.status().expect("up").unackdata > 0 {
                tokio::task::yield_now().await;
            }
            // Waits until earlier timers of the driver have expired, so that only the message can
            // wake it.
            tokio::time::sleep(Duration::from_millis(100)).await;
            let before = pair.packets_sent();
            lost.store(1, Ordering::Relaxed);
            pair.queue(1_000, 100);
            assert!(pair.packets_sent() > before, "it left at once");
            let message = pair.answers.recv().await.expect("up").expect("open");
            assert_eq!(message.bytes, pattern(1_000, 100));
        }
        relaying.abort();
    });
}

/// Dropping a waiting reader loses no message of the others, and frees its slot.
#[test]
fn readers_come_and_go() {
    alone(async {
        let pair = Pair::without_timers(None).await;
        for seed in 0..20 {
            let mut goes = Box::pin(pair.answers.recv());
            let mut idle = Context::from_waker(Waker::noop());
            assert!(goes.as_mut().poll(&mut idle).is_pending());
            let clone = pair.answers.clone();
            let stays = [0, 1].map(|_| {
                let reader = clone.clone();
                tokio::spawn(async move { reader.recv().await })
            });
            tokio::task::yield_now().await;
            drop(goes);
            pair.queue(seed, 100);
            pair.queue(seed, 100);
            for reader in stays {
                let message = reader.await.expect("no panic").expect("up").expect("open");
                assert_eq!(message.bytes, pattern(seed, 100));
            }
        }
    });
}

/// A waiting task is notified of the end even if its future was moved to another task.
#[test]
fn a_reader_that_moves_is_woken_where_it_is() {
    alone(async {
        let pair = Pair::without_timers(None).await;
        let answers = pair.answers.clone();
        let mut waits = Box::pin(async move { answers.recv().await });
        let polled = poll_fn(|cx| Poll::Ready(waits.as_mut().poll(cx).is_pending()));
        assert!(polled.await);
        let moved = tokio::spawn(waits);
        tokio::task::yield_now().await;
        pair.asks.abort("over");
        let ended = moved.await.expect("no panic").expect_err("aborted");
        assert!(
            matches!(ended.0, CloseReason::AbortedByPeer { .. }),
            "{ended:?}"
        );
    });
}

/// The sockets are closed with the last endpoint, even if a handle of an ended association remains.
#[test]
fn the_port_is_free_again_while_an_ended_association_is_held() {
    alone(async {
        let Pair {
            client,
            server,
            asks,
            answers,
        } = Pair::without_timers(None).await;
        let port = client.udp_port();
        drop((client, server));
        asks.shutdown().await.expect("graceful");
        drop(answers);
        assert!(asks.try_send("late", SendOptions::default()).is_err());
        // A handle keeps the endpoint alive, so that remaining messages can be read.
        assert!(Bound::bind((LOOPBACK, port)).is_err());
        let again = asks.clone();
        drop(asks);
        assert_eq!(again.closed().await, CloseReason::Shutdown);
        drop(again);
        while Bound::bind((LOOPBACK, port)).is_err() {
            tokio::task::yield_now().await;
        }
    });
}
