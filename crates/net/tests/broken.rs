//! Sockets that always return errors or stay unwritable: work is limited, and timers still run.

use crate::common;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use anabranch_net::{
    Association, AssociationError, CloseReason, Config, Endpoint, OutgoingPacket, PacketSocket,
    ReceivedPacket, SendOptions, SharedSockets, SocketOperation,
};
use common::lane::{Lane, ends};
use common::pattern;
use tokio::time::{Instant, timeout};

/// Maximum number of calls, far more than a test needs. A driver in a busy loop is stopped here, so
/// that its test fails instead of hanging.
const MAX_CALLS: u64 = 100_000;
/// The Linux error numbers `EBADF` and `ENETDOWN`.
const BAD: i32 = 9;
const DOWN: i32 = 100;

/// Behaviour of one end of a link in memory, set by the test.
#[derive(Default)]
struct Mood {
    receives_fail: AtomicBool,
    sends_fail: AtomicBool,
    is_full: AtomicBool,
    calls: AtomicU64,
    sender: Mutex<Option<Waker>>,
}

impl Mood {
    fn is_set(&self, what: &AtomicBool) -> bool {
        let calls = self.calls.fetch_add(1, Ordering::SeqCst);
        what.load(Ordering::SeqCst) && calls < MAX_CALLS
    }

    fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    fn has_room(&self) {
        self.is_full.store(false, Ordering::SeqCst);
        let waker = self.sender.lock().expect("no panic").take();
        waker.into_iter().for_each(Waker::wake);
    }
}

struct End {
    local: SocketAddr,
    peer: SocketAddr,
    sends: Arc<Lane>,
    receives: Arc<Lane>,
    mood: Arc<Mood>,
}

impl PacketSocket for End {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        packet: &OutgoingPacket<'_>,
    ) -> Poll<io::Result<()>> {
        if self.mood.is_set(&self.mood.sends_fail) {
            return Poll::Ready(Err(io::Error::from_raw_os_error(DOWN)));
        }
        if self.mood.is_set(&self.mood.is_full) {
            *self.mood.sender.lock().expect("no panic") = Some(cx.waker().clone());
            return Poll::Pending;
        }
        self.sends.push(packet.bytes);
        Poll::Ready(Ok(()))
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<ReceivedPacket>> {
        if self.mood.is_set(&self.mood.receives_fail) {
            return Poll::Ready(Err(io::Error::from_raw_os_error(BAD)));
        }
        self.receives.poll_pop(cx, buffer, self.peer)
    }
}

/// A client and a server with an association, and the behaviour of the client's socket.
struct Pair {
    client: Endpoint,
    held: Association,
    served: Association,
    mood: Arc<Mood>,
    _server: Endpoint,
}

async fn pair(config: Config) -> Pair {
    let lanes = [Arc::<Lane>::default(), Arc::default()];
    let moods = [Arc::<Mood>::default(), Arc::default()];
    let [here, there] = [0, 1].map(|side| {
        let (local, peer) = ends(side);
        Box::new(End {
            local,
            peer,
            sends: Arc::clone(&lanes[side]),
            receives: Arc::clone(&lanes[1 - side]),
            mood: Arc::clone(&moods[side]),
        }) as Box<dyn PacketSocket>
    });
    let client = SharedSockets::on_packets(&config, vec![here]).expect("a socket");
    let client = Endpoint::bind_with(config.clone(), &client).expect("free");
    let server = SharedSockets::on_packets(&config, vec![there]).expect("a socket");
    let listening = Config::server(7).with(|it| {
        it.carrier = config.carrier;
        it.sctp = config.sctp.clone();
    });
    let server = Endpoint::bind_with(listening, &server).expect("free");
    let held = client.connect(([10, 0, 0, 2], 7)).await.expect("up");
    let served = server.accept().await.expect("it came");
    Pair {
        client,
        held,
        served,
        mood: Arc::clone(&moods[0]),
        _server: server,
    }
}

async fn sleep_millis(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// During an hour of virtual time a failing socket is called only some thousand times, and when it
/// works again, the association continues.
#[tokio::test(start_paused = true)]
async fn a_failing_socket_is_polled_rarely_and_works_again() {
    let config = Config::default().with(|it| it.sctp.heartbeat_interval = None);
    let pair = pair(config).await;
    let before = pair.mood.calls();
    pair.mood.receives_fail.store(true, Ordering::SeqCst);
    let sent = pair.served.send("wakes it", SendOptions::default());
    sent.await.expect("room");
    sleep_millis(60_000).await;
    let calls = pair.mood.calls() - before;
    assert!((20..1_000).contains(&calls), "{calls} calls in a minute");
    let statistics = pair.client.statistics();
    assert!(statistics.receive_errors > 20, "{statistics}");
    let [reason] = &statistics.socket_errors[..] else {
        panic!("{statistics}");
    };
    assert_eq!(
        (reason.doing, reason.code),
        (SocketOperation::Receiving, Some(BAD))
    );
    assert_eq!(reason.count, statistics.receive_errors);
    pair.mood.receives_fail.store(false, Ordering::SeqCst);
    let message = pair.held.recv().await.expect("up").expect("open");
    assert_eq!(&message.bytes[..], b"wakes it");
    let calls = pair.mood.calls();
    sleep_millis(60_000).await;
    assert!(pair.mood.calls() - calls < 20, "it rests no more");
}

/// The protocol treats packets that cannot be sent as lost, and retransmits them when its timers
/// expire.
#[tokio::test(start_paused = true)]
async fn a_socket_that_does_not_send_costs_what_the_timers_do() {
    let pair = pair(Config::default()).await;
    let before = pair.mood.calls();
    pair.mood.sends_fail.store(true, Ordering::SeqCst);
    for seed in 0..20 {
        let sent = pair
            .held
            .send(pattern(seed, 10_000), SendOptions::default());
        sent.await.expect("room");
    }
    sleep_millis(60_000).await;
    let calls = pair.mood.calls() - before;
    assert!(calls < 1_000, "{calls} calls in a minute");
    let statistics = pair.client.statistics();
    assert!(statistics.send_errors > 1, "{statistics}");
    let reasons = &statistics.socket_errors;
    assert_eq!(reasons.len(), 1, "{statistics}");
    assert_eq!(
        (reasons[0].doing, reasons[0].code),
        (SocketOperation::Sending, Some(DOWN))
    );
    pair.mood.sends_fail.store(false, Ordering::SeqCst);
    for seed in 0..20 {
        let message = pair.served.recv().await.expect("up").expect("open");
        assert_eq!(message.bytes, pattern(seed, 10_000));
    }
}

/// While the socket is not writable, the peer receives nothing and sends no answers. Associations
/// end by their timers, and users are notified.
#[tokio::test(start_paused = true)]
async fn timers_run_while_the_socket_is_full() {
    let pair = pair(Config::default()).await;
    pair.mood.is_full.store(true, Ordering::SeqCst);
    let sent = pair.held.send(pattern(1, 1_000), SendOptions::default());
    sent.await.expect("room");
    let closed = timeout(Duration::from_secs(3_600), pair.held.closed()).await;
    assert_eq!(closed, Ok(CloseReason::PeerUnreachable));
    let calls = pair.mood.calls();
    assert!(calls < 1_000, "{calls} calls");
}

/// A shutdown with a timeout ends in time although more data is queued than a batch can hold.
#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_in_time_while_the_socket_is_full() {
    let config = Config::default().with(|it| it.sctp.send_buffer = 1 << 20);
    for messages in [1, 90] {
        let pair = pair(config.clone()).await;
        pair.mood.is_full.store(true, Ordering::SeqCst);
        for seed in 0..messages {
            let sent = pair
                .held
                .try_send(pattern(seed, 10_000), SendOptions::default());
            sent.expect("room");
        }
        sleep_millis(10).await;
        let began = Instant::now();
        let limit = Duration::from_secs(2);
        let ended = timeout(
            Duration::from_secs(600),
            pair.held.shutdown_with_timeout(limit),
        )
        .await;
        assert_eq!(
            ended,
            Ok(Err(AssociationError(CloseReason::ShutdownTimeout)))
        );
        let took = began.elapsed();
        assert!(took < Duration::from_secs(4), "{took:?}");
        let calls = pair.mood.calls();
        assert!(calls < 1_000, "{calls} calls");
    }
}

/// The socket is unwritable for a while. Afterwards all messages arrive, and the driver has made
/// few calls meanwhile.
#[tokio::test(start_paused = true)]
async fn all_arrives_once_there_is_space_again() {
    let config = Config::default().with(|it| it.sctp.send_buffer = 1 << 20);
    let pair = pair(config).await;
    pair.mood.is_full.store(true, Ordering::SeqCst);
    for seed in 0..90 {
        let sent = pair
            .held
            .try_send(pattern(seed, 10_000), SendOptions::default());
        sent.expect("room");
    }
    // The peer sends meanwhile, and its messages are received.
    let sent = pair.served.send("meanwhile", SendOptions::default());
    sent.await.expect("room");
    let heard = timeout(Duration::from_secs(5), pair.held.recv()).await;
    let heard = heard.expect("no room to send is needed").expect("up");
    assert_eq!(&heard.expect("open").bytes[..], b"meanwhile");
    sleep_millis(5_000).await;
    pair.mood.has_room();
    for seed in 0..90 {
        let message = pair.served.recv().await.expect("up").expect("open");
        assert_eq!(message.bytes, pattern(seed, 10_000), "message {seed}");
    }
    let calls = pair.mood.calls();
    assert!(calls < 5_000, "{calls} calls");
}

/// If associations end while their socket is never writable, their last packets are dropped after
/// the limit, and the socket is closed.
#[tokio::test(start_paused = true)]
async fn a_socket_that_never_has_space_is_let_go_after_the_end() {
    let config = Config::default().with(|it| it.sctp.send_buffer = 1 << 20);
    // The limit is T5-shutdown-guard: five times RTO.Max (RFC 9260 §9.2).
    let guard = Duration::from_nanos(5 * config.sctp.rto_max);
    // Tested with one message, and with so many that the last packets wait in the protocol.
    for messages in [1, 90] {
        let Pair {
            client,
            held,
            served,
            mood,
            _server,
        } = pair(config.clone()).await;
        mood.is_full.store(true, Ordering::SeqCst);
        for seed in 0..messages {
            let sent = held.try_send(pattern(seed, 10_000), SendOptions::default());
            sent.expect("room");
        }
        sleep_millis(10).await;
        let began = Instant::now();
        client.close_with_timeout(Duration::from_secs(2)).await;
        drop((held, client, served));
        // The driver owns the socket, which holds a reference to the behaviour.
        let is_there = || Arc::strong_count(&mood) > 1;
        assert!(is_there(), "packets that may yet leave are kept");
        while is_there() && began.elapsed() < 3 * guard {
            sleep_millis(1_000).await;
        }
        let took = began.elapsed();
        let bound = guard..guard + Duration::from_secs(10);
        assert!(!is_there() && bound.contains(&took), "{took:?}");
        let calls = mood.calls();
        assert!(calls < 1_000, "{calls} calls");
    }
}

/// Dropped packets count as lost in the network: an association that continues retransmits them
/// when the socket is writable.
#[tokio::test(start_paused = true)]
async fn an_association_outlives_what_was_abandoned() {
    let config = Config::default().with(|it| {
        it.sctp.association_max_retrans = 1_000;
        it.sctp.path_max_retrans = 1_000;
    });
    let pair = pair(config).await;
    pair.mood.is_full.store(true, Ordering::SeqCst);
    let sent = pair.held.send(pattern(1, 10_000), SendOptions::default());
    sent.await.expect("room");
    sleep_millis(3_600_000).await;
    assert!(pair.client.statistics().send_errors > 0);
    pair.mood.has_room();
    let message = pair.served.recv().await.expect("up").expect("open");
    assert_eq!(message.bytes, pattern(1, 10_000));
    let calls = pair.mood.calls();
    assert!(calls < 2_000, "{calls} calls");
}
