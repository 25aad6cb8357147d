//! Two sets of channels, connected by transports that behave like an association with or without
//! RE-CONFIG.

mod bounds;
mod closing;
mod random_sequences;
mod refused;

use super::*;
use crate::channel::Reliability;
use crate::sctp_transport::{OutgoingMessage, ReconfigUnavailable, SctpTransport, SendRefused};

const LIMITS: Limits = Limits {
    max_message: 1 << 20,
    max_buffered: 4 << 20,
    max_buffered_total: 64 << 20,
    max_channels: 100,
};

/// A transport that accepts messages in order, and sends them when the test requests it.
#[derive(Default)]
struct Pipe {
    waiting: VecDeque<OutgoingMessage>,
    /// Number of unsent bytes of each stream.
    bytes: BTreeMap<u16, usize>,
    /// Streams whose reset was requested; `None`: RE-CONFIG is not supported.
    resets: Option<VecDeque<u16>>,
    full: bool,
    weights: BTreeMap<u16, u16>,
}

impl Pipe {
    fn with_resets() -> Self {
        Self {
            resets: Some(VecDeque::new()),
            ..Self::default()
        }
    }

    /// Sends the next message.
    fn pop(&mut self) -> Option<OutgoingMessage> {
        let message = self.waiting.pop_front()?;
        *self.bytes.get_mut(&message.stream).unwrap() -= message.payload.len();
        Some(message)
    }
}

impl SctpTransport for Pipe {
    fn buffered(&self, stream: u16) -> usize {
        self.bytes.get(&stream).copied().unwrap_or_default()
    }

    fn set_weight(&mut self, stream: u16, weight: u16) {
        self.weights.insert(stream, weight);
    }

    fn send(&mut self, _now: Nanos, message: OutgoingMessage) -> Result<(), SendRefused> {
        assert!(!message.payload.is_empty(), "SCTP carries no empty message");
        if self.full {
            return Err(SendRefused::Full);
        }
        *self.bytes.entry(message.stream).or_default() += message.payload.len();
        self.waiting.push_back(message);
        Ok(())
    }

    fn reset(&mut self, stream: u16) -> Result<(), ReconfigUnavailable> {
        self.resets
            .as_mut()
            .ok_or(ReconfigUnavailable)?
            .push_back(stream);
        Ok(())
    }
}

struct End {
    channels: Channels,
    pipe: Pipe,
    now: Nanos,
}

impl End {
    fn new(role: DtlsRole, pipe: Pipe) -> Self {
        let channels = Channels::new(role, LIMITS);
        Self {
            channels,
            pipe,
            now: 0,
        }
    }

    fn pump(&mut self) {
        self.channels.handle_sent_any();
        self.channels.pump(self.now, &mut self.pipe);
    }

    /// All events except [`ChannelEvent::BufferedAmountLow`].
    fn events(&mut self) -> Vec<ChannelEvent> {
        let mut events = self.all_events();
        events.retain(|it| !matches!(it, ChannelEvent::BufferedAmountLow(_)));
        events
    }

    fn all_events(&mut self) -> Vec<ChannelEvent> {
        std::iter::from_fn(|| self.channels.poll_event()).collect()
    }

    fn open(&mut self, options: ChannelOptions) -> ChannelId {
        self.channels.open(options).unwrap()
    }

    fn up(mut self) -> Self {
        self.channels.handle_established(1_000, 1_000);
        self
    }
}

fn pair() -> (End, End) {
    let end = |role| End::new(role, Pipe::with_resets()).up();
    (end(DtlsRole::Client), end(DtlsRole::Server))
}

fn pair_without_resets() -> (End, End) {
    let end = |role| End::new(role, Pipe::default()).up();
    (end(DtlsRole::Client), end(DtlsRole::Server))
}

/// Transfers messages and resets in both directions until there are none.
fn exchange(a: &mut End, b: &mut End) {
    loop {
        a.pump();
        b.pump();
        if !carry(a, b) & !carry(b, a) {
            return;
        }
    }
}

/// Transfers one message or reset. A reset is transferred after the messages that were sent before
/// it.
fn carry(from: &mut End, to: &mut End) -> bool {
    if let Some(message) = from.pipe.pop() {
        let OutgoingMessage {
            stream,
            ppid,
            payload,
            ..
        } = message;
        to.channels.handle_message(stream, ppid, payload);
        return true;
    }
    let reset = from.pipe.resets.as_mut().and_then(VecDeque::pop_front);
    if let Some(stream) = reset {
        to.channels.handle_reset(stream);
        from.channels.handle_reset_done(stream);
    }
    reset.is_some()
}

fn forget(a: &mut End, b: &mut End) {
    a.events();
    b.events();
}

fn text(text: &str) -> Payload {
    Payload::from(text)
}

#[test]
fn each_end_has_its_own_streams() {
    let (mut a, mut b) = pair();
    let of = |end: &mut End| {
        (0..3)
            .map(|_| end.open(ChannelOptions::new("")).stream)
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&mut a), [0, 2, 4]);
    assert_eq!(of(&mut b), [1, 3, 5]);
    exchange(&mut a, &mut b);
    let incoming = |end: &mut End| {
        let events = end.events().into_iter();
        events
            .filter(|it| matches!(it, ChannelEvent::Incoming(_)))
            .count()
    };
    assert_eq!((incoming(&mut a), incoming(&mut b)), (3, 3));
    assert!(a.channels.discards().iter().next().is_none());
}

#[test]
fn channel_options_arrive_at_the_peer() {
    let (mut a, mut b) = pair();
    let was_refused = ChannelOptions {
        label: "label".into(),
        protocol: "protocol".into(),
        ordered: false,
        reliability: Reliability::MaxLifetime(50),
        priority: 1_024,
        negotiated: None,
    };
    let id = a.open(was_refused.clone());
    a.channels.send(0, id, text("first")).unwrap();
    exchange(&mut a, &mut b);
    assert_eq!(
        b.events(),
        [
            ChannelEvent::Incoming(id),
            ChannelEvent::Message(id, text("first"))
        ]
    );
    assert_eq!(b.channels.options(id), Some(&was_refused));
    assert_eq!(a.events(), [ChannelEvent::Opened(id)]);
}

/// DCEP messages are ordered and reliable, and so is data until the peer has acknowledged the
/// channel (RFC 8832 §6).
#[test]
fn nothing_overtakes_the_opening() {
    let (mut a, mut b) = pair();
    let mut options = ChannelOptions::new("fast");
    options.ordered = false;
    options.reliability = Reliability::MaxRetransmits(0);
    let id = a.open(options);
    a.channels.send(0, id, text("early")).unwrap();
    a.pump();
    let sent: Vec<_> = a
        .pipe
        .waiting
        .iter()
        .map(|it| (it.ppid, it.unordered, it.max_retransmits))
        .collect();
    assert_eq!(sent, [(50, false, None), (51, false, Some(0))]);
    exchange(&mut a, &mut b);
    a.channels.send(0, id, text("late")).unwrap();
    a.pump();
    assert!(a.pipe.waiting[0].unordered);
    // The accepting end may send before it gets an acknowledgement; its DATA_CHANNEL_ACK is
    // ordered.
    b.channels.send(0, id, text("back")).unwrap();
    b.pump();
    assert!(b.pipe.waiting[0].unordered);
}

/// A message from the peer should have the effect of its DATA_CHANNEL_ACK.
#[test]
fn data_opens_as_an_ack_does() {
    let (mut a, _) = pair();
    let id = a.open(ChannelOptions::new(""));
    a.channels
        .handle_message(id.stream, 51, Bytes::from_static(b"hello"));
    assert_eq!(
        a.events(),
        [
            ChannelEvent::Opened(id),
            ChannelEvent::Message(id, text("hello"))
        ]
    );
    a.channels
        .handle_message(id.stream, 50, Bytes::from_static(&[2]));
    assert_eq!(a.channels.discards().of(DiscardReason::AckUnexpected), 1);
}

#[test]
fn openings_that_are_refused() {
    let (mut a, _) = pair();
    let open = |label: String| open_message(&ChannelOptions::new(label)).encode();
    let refused = |a: &mut End, stream, reason| {
        let before = a.channels.discards().of(reason);
        a.channels.handle_message(stream, 50, open(String::new()));
        assert_eq!(a.channels.discards().of(reason), before + 1, "{stream}");
        assert_eq!(a.events(), []);
    };
    // Refused streams: wrong parity, beyond the streams of the association, reserved.
    for stream in [0, 1_001, 65_535] {
        refused(&mut a, stream, DiscardReason::OpenRefused);
    }
    a.channels
        .handle_message(9, 50, Bytes::from_static(&[3, 3]));
    assert_eq!(a.channels.discards().of(DiscardReason::Dcep), 1);
    // Names of maximum length, 16 MiB in total, should not all be stored.
    for stream in (101..301).step_by(2) {
        a.channels
            .handle_message(stream, 50, open("x".repeat(65_535)));
    }
    assert_eq!(a.events().len(), 16);
    assert_eq!(a.channels.discards().of(DiscardReason::TooManyChannels), 84);
    for stream in (301..999).step_by(2) {
        a.channels.handle_message(stream, 50, open(String::new()));
    }
    assert_eq!(a.events().len(), LIMITS.max_channels - 16);
}

#[test]
fn messages_without_a_receiver() {
    let (mut a, _) = pair();
    let bytes = Bytes::from_static(b"?");
    a.channels.handle_message(3, 51, bytes.clone());
    assert_eq!(a.channels.discards().of(DiscardReason::NoChannel), 1);
    let id = a.open(ChannelOptions::new(""));
    for ppid in [0, 52, 54, 99] {
        a.channels.handle_message(id.stream, ppid, bytes.clone());
    }
    a.channels
        .handle_message(id.stream, 51, Bytes::from_static(&[0xFF]));
    assert_eq!(a.channels.discards().of(DiscardReason::Payload), 5);
    a.channels.close(id);
    a.channels.handle_message(id.stream, 51, bytes);
    assert_eq!(a.channels.discards().of(DiscardReason::NoChannel), 2);
}

#[test]
fn a_channel_that_was_agreed_on() {
    let (mut a, mut b) = pair();
    let mut options = ChannelOptions::new("");
    options.negotiated = Some(500);
    let (at_a, at_b) = (a.open(options.clone()), b.open(options.clone()));
    assert_eq!(
        a.channels.open(options.clone()),
        Err(OpenError::Stream(500))
    );
    options.negotiated = Some(1_000);
    assert_eq!(
        a.channels.open(options.clone()),
        Err(OpenError::Stream(1_000))
    );
    a.channels.send(0, at_a, text("hello")).unwrap();
    exchange(&mut a, &mut b);
    assert_eq!(a.events(), [ChannelEvent::Opened(at_a)]);
    let message = ChannelEvent::Message(at_b, text("hello"));
    assert_eq!(b.events(), [ChannelEvent::Opened(at_b), message]);
}

#[test]
fn the_buffered_amount_counts_messages_until_they_are_sent() {
    let (mut a, mut b) = pair();
    let id = a.open(ChannelOptions::new("label"));
    let other = a.open(ChannelOptions::new("other"));
    exchange(&mut a, &mut b);
    a.all_events();
    a.channels.set_buffered_amount_low(id, 100);
    a.channels.send(0, id, text(&"x".repeat(300))).unwrap();
    a.channels.send(0, id, text("")).unwrap();
    a.channels.send(0, other, text("yy")).unwrap();
    assert_eq!(a.channels.buffered_amount(id), 300);
    a.pump();
    assert_eq!(
        (
            a.channels.buffered_amount(id),
            a.channels.buffered_amount(other)
        ),
        (300, 2)
    );
    // The short message and 199 bytes of the long one are sent.
    let all = BTreeMap::from([(id.stream, 301), (other.stream, 2)]);
    assert_eq!(a.pipe.bytes, all);
    a.pipe.bytes = BTreeMap::from([(id.stream, 102)]);
    a.pump();
    assert_eq!(
        (
            a.channels.buffered_amount(id),
            a.channels.buffered_amount(other)
        ),
        (101, 0)
    );
    a.pipe.bytes.insert(id.stream, 101);
    a.pump();
    assert_eq!(a.channels.buffered_amount(id), 100);
    let low = ChannelEvent::BufferedAmountLow;
    assert_eq!(a.all_events(), [low(other), low(id)]);
    a.pipe.bytes.clear();
    a.pump();
    // The event is emitted only once per fall.
    assert_eq!(a.all_events(), []);
}

#[test]
fn a_queue_has_its_limit() {
    let (mut a, _) = pair();
    let id = a.open(ChannelOptions::new(""));
    a.pipe.full = true;
    let over = text(&"x".repeat(LIMITS.max_message + 1));
    let (length, max) = (LIMITS.max_message + 1, LIMITS.max_message);
    assert_eq!(
        a.channels.send(0, id, over),
        Err(SendError::TooLarge { length, max })
    );
    let most = text(&"x".repeat(LIMITS.max_message));
    for _ in 0..4 {
        a.channels.send(0, id, most.clone()).unwrap();
    }
    assert_eq!(a.channels.send(0, id, text("")), Err(SendError::Full));
    // Empty messages also fill the queue.
    let other = a.open(ChannelOptions::new(""));
    let taken = (0..)
        .take_while(|_| a.channels.send(0, other, text("")).is_ok())
        .count();
    assert!(taken < 100_000, "{taken}");
    a.pump();
    assert!(a.pipe.waiting.is_empty());
}

/// Each channel's priority should be passed to the association once, as its weight (RFC 8831 §6.4);
/// priority 0 counts as 1.
#[test]
fn priorities_are_weights() {
    let (mut a, mut b) = pair();
    let of = |priority| ChannelOptions::new("").with_priority(priority);
    let ids = [256, 1_024, 0].map(|priority| a.open(of(priority)));
    exchange(&mut a, &mut b);
    let expected = [256, 1_024, 1];
    for (id, weight) in ids.into_iter().zip(expected) {
        assert_eq!(a.pipe.weights[&id.stream], weight);
        // The other end uses the same weight.
        assert_eq!(b.pipe.weights[&id.stream], weight);
    }
}

/// Large messages wait if a receiver could not buffer all of them; they should be scheduled by the
/// weights of their channels. A message that fits a packet should not wait.
#[test]
fn large_messages_under_way_have_a_limit() {
    let (mut a, mut b) = pair();
    let of = |priority| ChannelOptions::new("").with_priority(priority);
    let low: Vec<_> = (0..10).map(|_| a.open(of(256))).collect();
    let high: Vec<_> = (0..10).map(|_| a.open(of(1_024))).collect();
    let quick = a.open(of(256));
    exchange(&mut a, &mut b);
    let large = Payload::Binary(Bytes::from(vec![0; 200_000]));
    for &id in low.iter().chain(&high) {
        for _ in 0..10 {
            a.channels.send(0, id, large.clone()).unwrap();
        }
    }
    a.pump();
    let under_way = |a: &End| {
        a.pipe
            .waiting
            .iter()
            .filter(|it| it.payload.len() > 2_000)
            .count()
    };
    assert_eq!(under_way(&a), 5, "less than a megabyte");
    a.channels.send(0, quick, text("quick")).unwrap();
    a.pump();
    assert_eq!(
        a.pipe.waiting.back().map(|it| it.stream),
        Some(quick.stream)
    );
    // All but the last byte of each message is sent, so that all are still in transmission.
    for left in a.pipe.bytes.values_mut() {
        *left = (*left).min(1);
    }
    a.pump();
    assert_eq!(under_way(&a), 5);
    let mut shares = [0, 0];
    a.pipe.waiting.clear();
    a.pipe.bytes.clear();
    for _ in 0..50 {
        a.pump();
        let sent = a.pipe.pop().unwrap();
        shares[usize::from(high.iter().any(|it| it.stream == sent.stream))] += 1;
    }
    assert!((38..=42).contains(&shares[1]), "{shares:?}");
}

#[test]
fn channels_before_the_association() {
    let mut a = End::new(DtlsRole::Client, Pipe::with_resets());
    let (kept, closed) = (
        a.open(ChannelOptions::new("")),
        a.open(ChannelOptions::new("")),
    );
    let beyond = a.open(ChannelOptions {
        negotiated: Some(10),
        ..ChannelOptions::new("")
    });
    a.channels.send(0, kept, text("early")).unwrap();
    a.channels.close(closed);
    a.pump();
    assert!(a.pipe.waiting.is_empty());
    a.channels.handle_established(10, 20);
    a.pump();
    // Both DATA_CHANNEL_OPENs and the message are passed on; then the stream of one channel is
    // reset.
    assert_eq!(a.pipe.waiting.len(), 3);
    assert_eq!(a.pipe.resets, Some(VecDeque::from([closed.stream])));
    let events = a.events();
    assert!(events.contains(&ChannelEvent::Closed(beyond)), "{events:?}");
    a.channels.handle_end();
    let ended = [kept, closed].map(ChannelEvent::Closed);
    assert_eq!(a.events(), ended);
    assert_eq!(
        a.channels.open(ChannelOptions::new("")),
        Err(OpenError::Closed)
    );
}

/// Queued messages that exceed their lifetime should be abandoned, except the DATA_CHANNEL_OPEN;
/// the association abandons messages that were passed to it.
#[test]
fn messages_grow_old() {
    let (mut a, mut b) = pair();
    let mut options = ChannelOptions::new("");
    options.reliability = Reliability::MaxLifetime(50);
    let id = a.open(options);
    let ms = 1_000_000;
    a.pipe.full = true;
    for at in [0, 10, 20] {
        let message = text(&at.to_string());
        a.channels.send(at * ms, id, message).unwrap();
    }
    a.now = 60 * ms - 1;
    a.pump();
    assert_eq!(a.channels.abandoned(id), 1);
    a.now = 60 * ms;
    a.pump();
    assert_eq!(
        (a.channels.abandoned(id), a.channels.buffered_amount(id)),
        (2, 2)
    );
    a.pipe.full = false;
    a.pump();
    let deadlines: Vec<_> = a.pipe.waiting.iter().map(|it| it.deadline).collect();
    assert_eq!(deadlines, [None, Some(70 * ms)]);
    a.now = 500 * ms;
    exchange(&mut a, &mut b);
    let arrived = [
        ChannelEvent::Incoming(id),
        ChannelEvent::Message(id, text("20")),
    ];
    assert_eq!(b.events(), arrived);
    assert_eq!(a.channels.abandoned(id), 2);
}
