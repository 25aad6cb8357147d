//! Channels of an association (RFC 8831, RFC 8832), independent of the SCTP implementation:
//! received messages are passed in by method calls, and outgoing messages are passed to a
//! [`SctpTransport`](crate::sctp_transport::SctpTransport).

mod backpressure;
mod channel;
mod channel_state;
mod error;
mod in_flight;
mod pump;
mod ready_set;
mod refused;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anabranch_transport::Nanos;
use bytes::Bytes;

use crate::channel::{ChannelId, ChannelOptions, Payload, ppid};
use crate::dcep::{Dcep, Open, is_open};
use crate::discard::{DiscardCounts, DiscardReason};
use backpressure::SpaceQueue;
use channel::{Channel, QueuedMessage};
use channel_state::State;
pub use error::{OpenError, SendError};
use ready_set::ReadySet;
use refused::Refusals;

/// Stream 65,535 must not be used (RFC 8832 §5: identifiers are below it).
const MAX_STREAM: u16 = 65_534;
/// Limit on the total size of labels and protocols of channels that the peer opened, bytes.
const MAX_NAMES: usize = 1 << 20;

/// DTLS role of this end, which determines the parity of its streams (RFC 8832 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DtlsRole {
    /// The DTLS client opens channels on even streams.
    Client,
    /// The DTLS server opens channels on odd streams.
    Server,
}

impl DtlsRole {
    /// Parity of the streams that this end opens.
    fn parity(self) -> u16 {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }
}

/// Events of channels.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChannelEvent {
    /// The peer opened a channel.
    Incoming(ChannelId),
    /// The peer acknowledged a channel of this end.
    Opened(ChannelId),
    /// A message arrived.
    Message(ChannelId, Payload),
    /// `bufferedAmount` fell to the low threshold.
    BufferedAmountLow(ChannelId),
    /// A message of this end was abandoned because of the channel's
    /// [`Reliability`](crate::Reliability). If all of it was sent, it may still have arrived.
    Abandoned(ChannelId),
    /// A channel was closed; its last event.
    Closed(ChannelId),
}

/// Approximate memory of an event besides its payload, bytes.
const EVENT: usize = 64;
/// Approximate memory of a closed channel until its [`ChannelEvent::Closed`] is polled, without its
/// names, bytes.
const GONE: usize = 128;

impl ChannelEvent {
    /// Approximate memory of the event until it is polled, bytes.
    pub(crate) fn held(&self) -> usize {
        match self {
            Self::Message(_, payload) => payload.len() + EVENT,
            Self::Closed(_) => EVENT + GONE,
            _ => EVENT,
        }
    }
}

/// Limits of [`Channels`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum message size that the peer accepts, bytes.
    pub max_message: usize,
    /// Maximum size of a channel's queue, bytes.
    pub max_buffered: usize,
    /// Maximum total size of the queues of all channels, bytes.
    pub max_buffered_total: usize,
    /// Maximum number of channels.
    pub max_channels: usize,
}

impl Limits {
    /// Limits for a connection with this configuration; the peer accepts messages of any length.
    pub fn of(config: &crate::Config) -> Self {
        Self {
            max_message: usize::MAX,
            max_buffered: config.max_buffered,
            max_buffered_total: config.max_buffered_total,
            max_channels: config.max_channels,
        }
    }
}

/// State of a closed channel.
#[derive(Debug)]
struct ClosedChannel {
    options: ChannelOptions,
    /// Total size of label and protocol if the peer chose them, bytes; otherwise 0.
    names: usize,
}

/// All channels of an association.
#[derive(Debug)]
pub struct Channels {
    role: DtlsRole,
    limits: Limits,
    /// Number of streams in each direction; `None` before the association is established.
    streams: Option<u16>,
    ended: bool,
    table: BTreeMap<u16, Channel>,
    /// Options of closed channels, until their [`ChannelEvent::Closed`] is polled.
    closed: BTreeMap<ChannelId, ClosedChannel>,
    /// Number of channels that used each stream before.
    generations: BTreeMap<u16, u32>,
    /// Streams that cannot be used again because they were closed without a reset.
    unusable: BTreeSet<u16>,
    /// Streams that are being reset because a channel of the peer was refused.
    refused: Refusals,
    /// Total size of labels and protocols chosen by the peer, bytes. Includes closed channels whose
    /// [`ChannelEvent::Closed`] was not polled.
    names: usize,
    /// Total size of large messages that the association has not sent completely, bytes.
    large: usize,
    /// Channels with pending work.
    ready: ReadySet,
    /// Channels that became writable after one of their messages was refused.
    writable: BTreeSet<ChannelId>,
    /// Channels that wait for space, because the queues of all channels together are full.
    space_queue: SpaceQueue,
    /// True if the user calls `poll_writable`.
    reports_writable: bool,
    /// Weighted fair queueing: virtual finish time of the message that was served last.
    served: u64,
    events: VecDeque<ChannelEvent>,
    discards: DiscardCounts,
}

impl Channels {
    /// Creates an empty set of channels.
    pub fn new(role: DtlsRole, limits: Limits) -> Self {
        Self {
            role,
            limits,
            streams: None,
            ended: false,
            table: BTreeMap::new(),
            closed: BTreeMap::new(),
            generations: BTreeMap::new(),
            unusable: BTreeSet::new(),
            refused: Refusals::default(),
            names: 0,
            large: 0,
            ready: ReadySet::default(),
            writable: BTreeSet::new(),
            space_queue: SpaceQueue::default(),
            reports_writable: false,
            served: 0,
            events: VecDeque::new(),
            discards: DiscardCounts::default(),
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ChannelEvent> {
        let event = self.take_event()?;
        self.forget_polled(&event);
        Some(event)
    }

    /// Like [`Channels::poll_event`], but keeps the state of a closed channel. The caller must call
    /// [`Channels::forget_polled`] when the user has polled the event.
    pub(crate) fn take_event(&mut self) -> Option<ChannelEvent> {
        self.events.pop_front()
    }

    /// Drops the state of a closed channel, if the event is its [`ChannelEvent::Closed`].
    pub(crate) fn forget_polled(&mut self, event: &ChannelEvent) {
        if let ChannelEvent::Closed(id) = event
            && let Some(closed) = self.closed.remove(id)
        {
            self.names -= closed.names;
        }
    }

    /// Counters of messages of the peer that were discarded.
    pub fn discards(&self) -> &DiscardCounts {
        &self.discards
    }

    /// Opens a channel. Messages may be sent immediately (RFC 8832 §6); [`ChannelEvent::Opened`]
    /// reports the peer's acknowledgement.
    ///
    /// # Errors
    /// The channel cannot be opened.
    pub fn open(&mut self, options: ChannelOptions) -> Result<ChannelId, OpenError> {
        if self.ended {
            return Err(OpenError::Closed);
        }
        for (what, name) in [("label", &options.label), ("protocol", &options.protocol)] {
            if name.len() > usize::from(u16::MAX) {
                return Err(OpenError::Name(what, name.len()));
            }
        }
        if self.table.len() >= self.limits.max_channels {
            return Err(OpenError::TooMany(self.table.len()));
        }
        let stream = match options.negotiated {
            Some(stream) if self.usable(stream) => stream,
            Some(stream) => return Err(OpenError::Stream(stream)),
            None => self.free_stream().ok_or(OpenError::NoStream)?,
        };
        let id = self.next_id(stream);
        let negotiated = options.negotiated.is_some();
        let mut channel = Channel::new(id, options, self.served);
        if negotiated {
            channel.state = State::Open;
            self.events.push_back(ChannelEvent::Opened(id));
        } else {
            channel.push(QueuedMessage::control(&open_message(&channel.options)));
        }
        self.insert(channel);
        Ok(id)
    }

    fn next_id(&self, stream: u16) -> ChannelId {
        let generation = self.generations.get(&stream).copied().unwrap_or_default();
        ChannelId { stream, generation }
    }

    /// Whether a channel may be opened on `stream`. Before the association is established, all
    /// streams are assumed to exist.
    fn usable(&self, stream: u16) -> bool {
        stream <= MAX_STREAM
            && self.streams.is_none_or(|streams| stream < streams)
            && !self.table.contains_key(&stream)
            && !self.unusable.contains(&stream)
            && !self.refused.contains(stream)
    }

    fn free_stream(&self) -> Option<u16> {
        (self.role.parity()..=MAX_STREAM)
            .step_by(2)
            .find(|&stream| self.usable(stream))
    }

    fn get(&self, id: ChannelId) -> Option<&Channel> {
        self.table.get(&id.stream).filter(|it| it.id == id)
    }

    fn get_mut(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.table.get_mut(&id.stream).filter(|it| it.id == id)
    }

    /// Options chosen by the end that opened the channel; `None` once [`ChannelEvent::Closed`] was
    /// polled.
    pub fn options(&self, id: ChannelId) -> Option<&ChannelOptions> {
        let open = self.get(id).map(|channel| &channel.options);
        open.or_else(|| self.closed.get(&id).map(|closed| &closed.options))
    }

    /// Queues a message.
    ///
    /// # Errors
    /// Describes why the message was not accepted.
    pub fn send(&mut self, now: Nanos, id: ChannelId, payload: Payload) -> Result<(), SendError> {
        let limits = self.limits;
        let served = self.served;
        let held = self.ready.queued_bytes();
        let channel = self.table.get_mut(&id.stream).filter(|it| it.id == id);
        let channel = channel.ok_or(SendError::Closed)?;
        if channel.state == State::Closing {
            return Err(SendError::Closed);
        }
        let length = payload.len();
        if length > limits.max_message {
            let max = limits.max_message;
            return Err(SendError::TooLarge { length, max });
        }
        if channel.is_full(limits.max_buffered) {
            channel.was_refused = true;
            return Err(SendError::Full);
        }
        if !self.space_queue.admits(channel, held, &limits) {
            self.wait_for_space(id, length);
            return Err(SendError::ConnectionFull);
        }
        self.space_queue
            .remove(id, std::mem::take(&mut channel.space_request));
        if channel.queue.is_empty() {
            channel.finish = channel.finish.max(served);
        }
        channel.push(QueuedMessage::data(payload, channel.deadline(now)));
        self.update_ready(id.stream);
        Ok(())
    }

    /// Number of bytes passed to `send` that are not sent yet (`bufferedAmount`); 0 for a closed
    /// channel.
    pub fn buffered_amount(&self, id: ChannelId) -> usize {
        self.get(id).map_or(0, |channel| channel.buffered())
    }

    /// Number of messages of the channel that were abandoned because of its
    /// [`Reliability`](crate::Reliability); 0 for a closed channel. If all of a message was sent,
    /// it may still have arrived.
    pub fn abandoned(&self, id: ChannelId) -> u64 {
        self.get(id).map_or(0, |channel| channel.abandoned)
    }

    /// Sets the threshold for [`ChannelEvent::BufferedAmountLow`] (`bufferedAmountLowThreshold`),
    /// bytes; 0 by default.
    pub fn set_buffered_amount_low(&mut self, id: ChannelId, bytes: usize) {
        if let Some(channel) = self.get_mut(id) {
            channel.low = bytes;
        }
    }

    /// Closes a channel after its queued messages are sent (RFC 8831 §6.7).
    /// [`ChannelEvent::Closed`] reports the end.
    pub fn close(&mut self, id: ChannelId) {
        if let Some(channel) = self.get_mut(id) {
            channel.state = State::Closing;
            self.update_ready(id.stream);
        }
    }

    /// Called when the transport has sent or abandoned data of the stream. Must be called before
    /// [`Channels::pump`], which only checks these streams.
    pub fn handle_sent(&mut self, stream: u16) {
        if self
            .table
            .get(&stream)
            .is_some_and(|it| !it.in_flight.is_empty())
        {
            self.ready.sent.insert(stream);
        }
    }

    /// Called when the transport may have sent data of any stream.
    pub fn handle_sent_any(&mut self) {
        let in_flight = self.table.iter().filter(|(_, it)| !it.in_flight.is_empty());
        self.ready.sent.extend(in_flight.map(|(&stream, _)| stream));
    }

    /// Called when the association is established, with its numbers of streams. Channels on other
    /// streams are closed.
    pub fn handle_established(&mut self, outbound: u16, inbound: u16) {
        let streams = outbound.min(inbound);
        self.streams = Some(streams);
        let beyond: Vec<u16> = self.table.range(streams..).map(|(&it, _)| it).collect();
        for stream in beyond {
            self.end(stream);
        }
    }

    /// Called when the connection has ended: closes all channels.
    pub fn handle_end(&mut self) {
        self.ended = true;
        self.refused.clear();
        while let Some((&stream, _)) = self.table.first_key_value() {
            self.end(stream);
        }
    }

    /// Processes a message from the peer.
    pub fn handle_message(&mut self, stream: u16, ppid: u32, bytes: Bytes) {
        if self.ended {
            return;
        }
        if ppid == ppid::DCEP {
            if is_open(&bytes) {
                self.reopen(stream);
            }
            return match Dcep::decode(&bytes) {
                Ok(Dcep::Open(open)) => self.on_open(stream, open),
                Ok(Dcep::Ack) => self.on_ack(stream),
                Err(_) if is_open(&bytes) => self.refuse(stream, DiscardReason::Dcep),
                Err(_) => self.discards.count(DiscardReason::Dcep),
            };
        }
        let channel = self.table.get_mut(&stream);
        let Some(channel) = channel.filter(|it| it.state != State::Closing) else {
            return self.discards.count(DiscardReason::NoChannel);
        };
        let id = channel.id;
        // Any message of the peer on the stream acknowledges the channel (RFC 8832 §6).
        if channel.state == State::Opening {
            channel.state = State::Open;
            self.events.push_back(ChannelEvent::Opened(id));
        }
        match Payload::from_wire(ppid, bytes) {
            Some(payload) => self.events.push_back(ChannelEvent::Message(id, payload)),
            None => self.discards.count(DiscardReason::Payload),
        }
    }

    /// Called when the peer opens a channel on the stream. If the peer has reset its outgoing
    /// stream, it has also performed this end's reset, even if its response was lost.
    fn reopen(&mut self, stream: u16) {
        let again = |channel: &Channel| channel.reset_in && channel.reset_requested;
        if self.table.get(&stream).is_some_and(again) {
            self.handle_reset_done(stream);
        }
        self.refused.reopen(stream);
    }

    /// Processes a DATA_CHANNEL_OPEN (RFC 8832 §6).
    fn on_open(&mut self, stream: u16, open: Open) {
        let theirs = stream % 2 != self.role.parity();
        if !theirs || !self.usable(stream) {
            return self.refuse(stream, DiscardReason::OpenRefused);
        }
        let names = open.label.len() + open.protocol.len();
        if self.table.len() >= self.limits.max_channels || self.names + names > MAX_NAMES {
            return self.refuse(stream, DiscardReason::TooManyChannels);
        }
        self.names += names;
        let id = self.next_id(stream);
        let options = ChannelOptions {
            label: open.label,
            protocol: open.protocol,
            ordered: open.ordered,
            reliability: open.reliability,
            priority: open.priority,
            negotiated: None,
        };
        let mut channel = Channel::new(id, options, self.served);
        channel.state = State::Open;
        channel.names = names;
        channel.push(QueuedMessage::control(&Dcep::Ack));
        self.insert(channel);
        self.events.push_back(ChannelEvent::Incoming(id));
    }

    /// Processes a DATA_CHANNEL_ACK (RFC 8832 §6).
    fn on_ack(&mut self, stream: u16) {
        match self.table.get_mut(&stream) {
            Some(channel) if channel.state == State::Opening => {
                channel.state = State::Open;
                let id = channel.id;
                self.events.push_back(ChannelEvent::Opened(id));
            }
            _ => self.discards.count(DiscardReason::AckUnexpected),
        }
    }

    /// Called when the transport has abandoned a message of the stream.
    pub fn handle_abandoned(&mut self, stream: u16) {
        if let Some(channel) = self.table.get_mut(&stream) {
            channel.abandoned += 1;
            self.events.push_back(ChannelEvent::Abandoned(channel.id));
        }
        self.handle_sent(stream);
    }

    /// Called when the peer has reset its outgoing stream: the channel is closed at this end too
    /// (RFC 8831 §6.7).
    pub fn handle_reset(&mut self, stream: u16) {
        if let Some(channel) = self.table.get_mut(&stream) {
            channel.state = State::Closing;
            channel.reset_in = true;
            // Queued messages are dropped, because the peer would not read them.
            channel.drop_queue();
            self.update_ready(stream);
            self.end_if_reset(stream);
        }
        self.refused.handle_reset(stream);
    }

    /// Called when the peer has performed this end's reset of the stream.
    pub fn handle_reset_done(&mut self, stream: u16) {
        self.refused.handle_reset_done(stream);
        let channel = self.table.get_mut(&stream);
        if let Some(channel) = channel.filter(|it| it.reset_requested) {
            channel.reset_out = true;
            self.end_if_reset(stream);
        }
    }

    /// Called when the peer has denied this end's reset of the stream: the channel is closed, and
    /// the stream cannot be used again.
    pub fn handle_reset_refused(&mut self, stream: u16) {
        if self.refused.contains(stream) {
            self.unusable.insert(stream);
            self.refused.forget(stream);
        }
        if self.table.get(&stream).is_some_and(|it| it.reset_requested) {
            self.unusable.insert(stream);
            self.end(stream);
        }
    }

    /// The streams that have channels.
    pub fn streams(&self) -> Vec<u16> {
        self.table.keys().copied().collect()
    }

    /// Called when the peer has reset all its streams. Returns the streams that have a channel or a
    /// refused DATA_CHANNEL_OPEN, and that the peer has not reset before. Each stream is returned
    /// only once, so that a peer that repeats such a request of a few bytes causes no work for
    /// every stream.
    pub fn take_all_reset(&mut self) -> Vec<u16> {
        let streams = std::mem::take(&mut self.ready.unreset);
        streams.into_iter().chain(self.refused.unreset()).collect()
    }

    /// Called when streams were added, with the new total numbers.
    pub fn handle_streams_added(&mut self, outbound: u16, inbound: u16) {
        self.streams = Some(outbound.min(inbound));
    }

    /// Closes the channel of a stream that is reset in both directions, so that another channel can
    /// use the stream.
    fn end_if_reset(&mut self, stream: u16) {
        let reset = self.table.get(&stream);
        if reset.is_some_and(|channel| channel.reset_in && channel.reset_out) {
            self.end(stream);
        }
    }

    fn insert(&mut self, channel: Channel) {
        let stream = channel.id.stream;
        self.table.insert(stream, channel);
        self.ready.unreset.insert(stream);
        self.update_ready(stream);
    }

    fn end(&mut self, stream: u16) {
        if let Some(channel) = self.table.remove(&stream) {
            self.ready.forget(stream, channel.pending);
            self.space_queue.remove(channel.id, channel.space_request);
            if channel.was_refused && self.reports_writable {
                self.writable.insert(channel.id);
            }
            // The generation is increased even if the stream was not reset, because an identifier
            // must not be reused if the stream is added later.
            *self.generations.entry(stream).or_default() += 1;
            self.large -= channel.in_flight.large();
            self.events.push_back(ChannelEvent::Closed(channel.id));
            let closed = ClosedChannel {
                options: channel.options,
                names: channel.names,
            };
            self.closed.insert(channel.id, closed);
        }
    }
}

fn open_message(options: &ChannelOptions) -> Dcep {
    Dcep::Open(Open {
        ordered: options.ordered,
        reliability: options.reliability,
        priority: options.priority,
        label: options.label.clone(),
        protocol: options.protocol.clone(),
    })
}
