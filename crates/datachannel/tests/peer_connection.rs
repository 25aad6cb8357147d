//! [`PeerConnection`] on a loopback socket, against the sans-I/O core on another one. No test
//! depends on durations.

use crate::common;

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use anabranch_datachannel::channels::{ChannelEvent, SendError};
use anabranch_datachannel::{
    ChannelId, ChannelOptions, Config, Connection, DataChannel, Event, Identity, Payload,
    PeerConnection, RandomSeed,
};
use bytes::Bytes;
use common::{attribute, check, offer_of};
use tokio::net::UdpSocket;

#[path = "../examples/echo_server.rs"]
mod echo_server;

/// The client: the sans-I/O core, driven by the test.
struct Client {
    socket: UdpSocket,
    connection: Connection,
    origin: Instant,
    events: Vec<Event>,
    buffer: Vec<u8>,
    server: SocketAddr,
    /// Connectivity checks to the server and to the client. The tests must send them, because both
    /// ends have ICE lite, and each end needs checks from the other.
    checks: [Vec<u8>; 2],
    next_check: u64,
}

/// Interval between two checks; consent expires after 30 s (RFC 7675 §5.1).
const BETWEEN_CHECKS: u64 = 2_000_000_000;

impl Client {
    /// Creates a client that is connected to a server.
    async fn connect() -> (Self, PeerConnection) {
        Self::connect_with(Config::default()).await
    }

    async fn connect_with(config: Config) -> (Self, PeerConnection) {
        #[expect(clippy::disallowed_methods, reason = "sockets live in real time")]
        let origin = Instant::now();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let identity = Identity::new([1; 32]).unwrap();
        let accept = |offer: &str| {
            let secret = RandomSeed::new([2; 32]);
            let config = Config::default();
            Connection::accept(offer, &config, &identity, &secret, address, (origin, 0)).unwrap()
        };
        // The credentials are derived from the secret, so those of a draft answer equal those of
        // the final one.
        let draft = format!(
            "v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=ice-ufrag:xxxx\r\n\
            a=ice-pwd:xxxxxxxxxxxxxxxxxxxxxx\r\na=setup:passive\r\na=fingerprint:sha-256 {}\r\n",
            identity.fingerprint()
        );
        let (_, first) = accept(&draft);
        let offer = offer_of(&first, "active");
        let (peer, answer) = PeerConnection::accept(&offer, config).await.unwrap();
        let (connection, own) = accept(&offer_of(&answer, "passive"));
        let port = answer
            .lines()
            .find_map(|line| line.strip_prefix("m=application "));
        let port = port.and_then(|rest| rest.split(' ').next()).unwrap();
        let server = SocketAddr::from(([127, 0, 0, 1], port.parse().unwrap()));
        // Each end gets nominating checks in the name of the other.
        let [of_server, of_client] = [[&answer, &own], [&own, &answer]]
            .map(|[of, by]| check(of, by, true, &attribute(of, "ice-pwd")));
        let mut client = Self {
            socket,
            connection,
            origin,
            events: Vec::new(),
            buffer: vec![0; 65_535],
            server,
            checks: [of_server, of_client],
            next_check: 0,
        };
        client
            .until(|client| client.events.contains(&Event::Connected))
            .await;
        (client, peer)
    }

    fn now(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// Sends checks to both ends if they are due.
    async fn check(&mut self) {
        let now = self.now();
        if now >= self.next_check {
            self.next_check = now + BETWEEN_CHECKS;
            let [of_server, of_client] = &self.checks;
            self.connection.handle_datagram(now, self.server, of_client);
            self.socket.send_to(of_server, self.server).await.unwrap();
        }
    }

    /// Drives the client until `done` returns true.
    async fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        loop {
            self.check().await;
            while let Some((to, datagram)) = self.connection.poll_transmit() {
                // Responses to checks are not sent, because the test evaluates none.
                if datagram[0] > 3 {
                    self.socket.send_to(&datagram, to).await.unwrap();
                }
            }
            while let Some(event) = self.connection.poll_event() {
                self.events.push(event);
            }
            if done(self) {
                return;
            }
            let due = self.connection.poll_timeout();
            let wait = due.map_or(u64::MAX, |due| due.saturating_sub(self.now()));
            let wait = Duration::from_nanos(wait.min(1_000_000_000));
            let received = self.socket.recv_from(&mut self.buffer);
            match tokio::time::timeout(wait, received).await {
                Ok(received) => {
                    let (length, from) = received.unwrap();
                    let now = self.now();
                    // Responses to checks are ignored, because the test evaluates none.
                    if self.buffer[0] > 3 {
                        let datagram = &self.buffer[..length];
                        self.connection.handle_datagram(now, from, datagram);
                    }
                }
                Err(_) => {
                    let now = self.now();
                    self.connection.handle_timeout(now);
                }
            }
        }
    }

    fn open(&mut self, label: &str) -> ChannelId {
        let now = self.now();
        self.connection
            .open(now, ChannelOptions::new(label))
            .unwrap()
    }

    fn send(&mut self, id: ChannelId, payload: impl Into<Payload>) {
        let now = self.now();
        self.connection.send(now, id, payload.into()).unwrap();
    }

    fn has(&self, event: &ChannelEvent) -> bool {
        let of_channels = |it: &Event| matches!(it, Event::Channel(it) if it == event);
        self.events.iter().any(of_channels)
    }

    fn messages(&self, id: ChannelId) -> Vec<&Payload> {
        let of = |event| match event {
            &Event::Channel(ChannelEvent::Message(of, ref payload)) if of == id => Some(payload),
            _ => None,
        };
        self.events.iter().filter_map(of).collect()
    }
}

/// Drives the client concurrently with `work` of the server, until `work` is done.
async fn beside<T>(client: &mut Client, work: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        result = work => result,
        () = client.until(|_| false) => unreachable!("it goes on for ever"),
    }
}

#[tokio::test]
async fn messages_both_ways() {
    let (mut client, peer) = Client::connect().await;
    let id = client.open("label");
    client.send(id, "first");
    let channel = beside(&mut client, peer.incoming()).await.unwrap();
    assert_eq!((channel.id(), channel.label()), (0, "label"));
    assert!(channel.opened().await);
    let message = beside(&mut client, channel.recv()).await;
    assert_eq!(message, Some(Payload::from("first")));
    let large = Bytes::from(vec![7; 262_144]);
    channel.send(large.clone()).await.unwrap();
    client.until(|client| client.messages(id).len() == 1).await;
    assert_eq!(client.messages(id), [&Payload::from(large)]);

    let mine = peer.open(ChannelOptions::new("from the server")).unwrap();
    assert_eq!(mine.id(), 1);
    assert!(beside(&mut client, mine.opened()).await);
    assert!(peer.statistics().is_some());
    assert_eq!(peer.discards(), []);
}

/// Tests the example `echo_server`.
#[tokio::test]
async fn the_example_greets_and_sends_everything_back() {
    let (mut client, peer) = Client::connect().await;
    let serving = tokio::spawn(echo_server::serve(peer));
    let id = client.open("label");
    client.send(id, "text");
    client.send(id, Bytes::from_static(b"bytes"));
    client.until(|client| client.messages(id).len() == 2).await;
    let bytes = Payload::from(Bytes::from_static(b"bytes"));
    assert_eq!(client.messages(id), [&Payload::from("text"), &bytes]);
    let greeted = |client: &mut Client| {
        let is_greeting = |event: &Event| {
            let hello = Payload::from("hello");
            matches!(event, Event::Channel(ChannelEvent::Message(_, it)) if *it == hello)
        };
        client.events.iter().any(is_greeting)
    };
    client.until(greeted).await;
    client.connection.close(client.now());
    beside(&mut client, serving)
        .await
        .expect("no panic")
        .expect("it greeted");
}

/// Unread data should be limited, and arrive completely after it is read.
#[tokio::test]
async fn one_that_reads_late() {
    let (mut client, peer) = Client::connect().await;
    let id = client.open("");
    for number in 0..40 {
        client.send(id, Bytes::from(vec![number; 262_144]));
    }
    let channel = beside(&mut client, peer.incoming()).await.unwrap();
    // Of 10 MiB sent, the server buffers at most 4 MiB (handles) and 1 MiB (core), and the receive
    // window holds 2 MiB. Each of the three may exceed its limit by one message.
    let stuck = |client: &Client| client.connection.channels().buffered_amount(id);
    client.until(|client| stuck(client) < 6 << 20).await;
    for number in 0..40 {
        let message = beside(&mut client, channel.recv()).await;
        assert_eq!(
            message,
            Some(Payload::from(Bytes::from(vec![number; 262_144])))
        );
    }
    assert_eq!(stuck(&client), 0);
}

#[tokio::test]
async fn the_low_mark() {
    let (mut client, peer) = Client::connect().await;
    let channel = peer.open(ChannelOptions::new("")).unwrap();
    assert!(beside(&mut client, channel.opened()).await);
    channel.set_buffered_amount_low_threshold(1_000_000);
    for _ in 0..20 {
        channel.send(Bytes::from(vec![1; 262_144])).await.unwrap();
    }
    assert!(channel.buffered_amount() > 1_000_000);
    beside(&mut client, channel.buffered_amount_low()).await;
    assert!(channel.buffered_amount() <= 1_000_000);
}

#[tokio::test]
async fn every_waiter_is_notified_of_the_end() {
    let (mut client, peer) = Client::connect().await;
    client.open("");
    let channel = beside(&mut client, peer.incoming()).await.unwrap();
    let now = client.now();
    client.connection.close(now);
    let all = async {
        assert_eq!(channel.recv().await, None);
        channel.closed().await;
        channel.buffered_amount_low().await;
        assert!(peer.incoming().await.is_none());
        assert!(channel.try_send("late").is_err());
        peer.closed().await
    };
    beside(&mut client, all).await;
    assert!(peer.open(ChannelOptions::new("")).is_err());
}

/// The options of a channel should be available even if the channel was closed before it was
/// accepted, by its opener or by the end of the connection.
#[tokio::test]
async fn a_channel_that_ended_before_it_was_taken() {
    for whole in [true, false] {
        let (mut client, peer) = Client::connect().await;
        let asked = ChannelOptions::new("label")
            .with_protocol("protocol")
            .with_ordered(false)
            .with_priority(512);
        let now = client.now();
        let id = client.connection.open(now, asked.clone()).unwrap();
        client
            .until(|client| client.has(&ChannelEvent::Opened(id)))
            .await;
        let now = client.now();
        match whole {
            true => client.connection.close(now),
            false => client.connection.close_channel(now, id),
        }
        if whole {
            beside(&mut client, peer.closed()).await;
        } else {
            client
                .until(|client| client.has(&ChannelEvent::Closed(id)))
                .await;
        }
        let channel = beside(&mut client, peer.incoming()).await.unwrap();
        assert_eq!((channel.label(), channel.options()), ("label", &asked));
        assert_eq!(channel.recv().await, None);
    }
}

/// If messages of a channel are unread, the notification of the end should not be delayed. The
/// unread messages can still be read.
#[tokio::test]
async fn the_end_is_reported_although_messages_are_not_read() {
    let (mut client, peer) = Client::connect().await;
    let [unread, other] = ["unread", "other"].map(|label| client.open(label));
    let first = beside(&mut client, peer.incoming()).await.unwrap();
    let second = beside(&mut client, peer.incoming()).await.unwrap();
    assert_eq!((first.id(), second.id()), (unread.stream(), other.stream()));
    for number in 0..40 {
        client.send(unread, Bytes::from(vec![number; 262_144]));
    }
    // Waits until 6.5 MiB of the 10 MiB are sent: more than the receive window of 2 MiB and the 4
    // MiB that the other end buffers.
    let left = |client: &Client| client.connection.channels().buffered_amount(unread);
    client.until(|client| left(client) < 7 << 19).await;
    let now = client.now();
    client.connection.close(now);
    let all = async {
        peer.closed().await;
        first.closed().await;
        assert_eq!(second.recv().await, None);
        assert!(peer.incoming().await.is_none());
        for number in 0..16 {
            let message = Payload::from(Bytes::from(vec![number; 262_144]));
            assert_eq!(first.recv().await, Some(message));
        }
        while first.recv().await.is_some() {}
    };
    // A passing test does not come close to this time limit, even on a busy machine.
    let limit = Duration::from_secs(600);
    let heard = tokio::time::timeout(limit, beside(&mut client, all)).await;
    assert!(heard.is_ok(), "somebody still waits");
}

/// A connection should be closed when its handle and all its channels are dropped.
#[tokio::test]
async fn dropping_all_closes() {
    let (mut client, peer) = Client::connect().await;
    let id = client.open("");
    let channel: DataChannel = beside(&mut client, peer.incoming()).await.unwrap();
    drop(peer);
    channel.send("still here").await.unwrap();
    client.until(|client| client.messages(id).len() == 1).await;
    drop(channel);
    client.until(|client| client.connection.is_closed()).await;
}

/// A waker that counts how often it was called.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A future that was polled once, and is not polled again.
struct Waiting<'a> {
    wakes: Arc<Wakes>,
    _future: Pin<Box<dyn Future<Output = ()> + 'a>>,
}

impl<'a> Waiting<'a> {
    fn on(future: impl Future<Output = ()> + 'a) -> Self {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut future: Pin<Box<dyn Future<Output = ()> + 'a>> = Box::pin(future);
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        Self {
            wakes,
            _future: future,
        }
    }
}

/// A message for one channel should wake only the task that waits for that channel.
#[tokio::test]
async fn a_message_wakes_one() {
    const CHANNELS: usize = 200;
    let (mut client, peer) = Client::connect().await;
    let ids: Vec<_> = (0..CHANNELS).map(|_| client.open("")).collect();
    let mut channels = Vec::new();
    for _ in 0..CHANNELS {
        channels.push(beside(&mut client, peer.incoming()).await.unwrap());
    }
    let mut waiting: Vec<Waiting<'_>> = Vec::new();
    for channel in &channels {
        waiting.push(Waiting::on(async { drop(channel.recv().await) }));
    }
    waiting.push(Waiting::on(async { drop(peer.incoming().await) }));
    waiting.push(Waiting::on(async { drop(peer.closed().await) }));
    let woken = |waiting: &[Waiting<'_>]| {
        let count = |(at, it): (usize, &Waiting<'_>)| (at, it.wakes.0.load(Relaxed));
        let woken = waiting.iter().enumerate().map(count);
        woken.filter(|&(_, it)| it > 0).collect::<Vec<_>>()
    };
    for number in 0..20 {
        client.send(ids[7], "for the eighth");
        client.send(ids[9], Bytes::from(vec![number; 30_000]));
        let last = |wakes: &[(usize, usize)]| wakes.iter().any(|&(at, _)| at == 9);
        client.until(|_| last(&woken(&waiting))).await;
    }
    // When the server has accepted this channel, all earlier messages have arrived.
    client.open("the last");
    let incoming = |wakes: &[(usize, usize)]| wakes.iter().any(|&(at, _)| at == CHANNELS);
    client.until(|_| incoming(&woken(&waiting))).await;
    // Each of these tasks is woken once, because it checks again only when it is woken.
    assert_eq!(woken(&waiting), [(7, 1), (9, 1), (CHANNELS, 1)]);
    let now = client.now();
    client.connection.close(now);
    client
        .until(|_| woken(&waiting).len() == waiting.len())
        .await;
}

/// Channels that wait for space should get it in order, so that neither busy channels nor channels
/// that are not polled can starve them. Waiting tasks should be notified of the end.
#[tokio::test]
async fn space_in_turn() {
    let config = Config::default().with(|it| it.max_buffered_total = 1 << 20);
    let (mut client, peer) = Client::connect_with(config).await;
    let channels: Vec<_> = (0..6)
        .map(|_| peer.open(ChannelOptions::new("")).unwrap())
        .collect();
    let payload = Bytes::from(vec![1; 200_000]);
    let counts: Vec<_> = channels.iter().map(|_| AtomicUsize::new(0)).collect();
    {
        let greedy = channels.iter().zip(&counts).map(|(channel, count)| {
            let payload = payload.clone();
            async move {
                while channel.send(payload.clone()).await.is_ok() {
                    count.fetch_add(1, Relaxed);
                }
            }
        });
        let greedy = greedy.map(|it| Box::pin(it) as Pin<Box<dyn Future<Output = ()> + '_>>);
        let mut greedy: Vec<_> = greedy.enumerate().collect();
        let (origin, mut looked) = (client.origin, Duration::MAX);
        let all = std::future::poll_fn(|context| {
            // A reservation that is not used within 100 ms is lost. On a busy machine all channels
            // may be late; then those with the fewest messages try first.
            let now = origin.elapsed();
            let away = now.saturating_sub(std::mem::replace(&mut looked, now));
            let late = away > Duration::from_millis(50);
            let had = |at: usize| if late { counts[at].load(Relaxed) } else { at };
            greedy.sort_by_key(|(at, _)| had(*at));
            greedy.retain_mut(|(_, it)| it.as_mut().poll(context).is_pending());
            let done = counts.iter().all(|it| it.load(Relaxed) > 20);
            if done { Poll::Ready(()) } else { Poll::Pending }
        });
        beside(&mut client, all).await;
        // The first channel filled the queues before the others waited. Without reservations it
        // would have 30 times as many messages as the others.
        let all = counts.iter().map(|it| it.load(Relaxed));
        assert!(all.clone().max() < Some(100), "{counts:?}");
        assert!(all.min() > Some(20), "{counts:?}");
    }
    // No more data is read from now on.
    let all = |channels: &[DataChannel]| -> usize {
        channels.iter().map(DataChannel::buffered_amount).sum()
    };
    while channels[0].try_send(payload.clone()).is_ok() {}
    assert!(all(&channels) >= 1 << 20);
    assert_eq!(channels[1].try_send("x"), Err(SendError::ConnectionFull));
    let mut first = Box::pin(channels[1].send("first"));
    let mut second = Box::pin(channels[2].send("second"));
    let mut third = Box::pin(channels[3].send("third"));
    let mut context = Context::from_waker(Waker::noop());
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());
    assert!(third.as_mut().poll(&mut context).is_pending());
    // Closing a channel should end its wait, whatever its position in the queue.
    channels[2].close();
    assert_eq!(second.await, Err(SendError::Closed));
    channels[1].close();
    assert_eq!(first.await, Err(SendError::Closed));
    assert!(third.as_mut().poll(&mut context).is_pending());
    peer.close();
    assert_eq!(third.await, Err(SendError::Closed));
}

#[tokio::test]
async fn an_offer_that_is_none() {
    let refused = PeerConnection::accept("v=0\r\n", Config::default()).await;
    let why = refused.err().map(|error| error.to_string());
    let expected = "the offer: no section m=application ... UDP/DTLS/SCTP webrtc-datachannel";
    assert_eq!(why.as_deref(), Some(expected));
}
