//! The channels of an association (RFC 8831, RFC 8832), without the association: they are handed messages, and hand messages to a
//! [`Carrier`](crate::carrier::Carrier).

mod feed;
mod handed;
mod line;
mod one;
mod ready;
mod refused;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anabranch_transport::Nanos;
use bytes::Bytes;
use thiserror::Error;

use crate::channel::{ChannelId, ChannelOptions, Payload, ppid};
use crate::dcep::{Dcep, Open, is_open};
use crate::discard::{Discard, Discards};
use line::Line;
use one::{Channel, Queued, State};
use ready::Ready;
use refused::Refusals;

/// Stream 65,535 is not to be used (RFC 8832 §5: identifiers are below it).
const MAX_STREAM: u16 = 65_534;
/// Bytes of labels and protocols of the channels that the peer opened, all together.
const MAX_NAMES: usize = 1 << 20;

/// Which end of DTLS this is, which says whose streams are even (RFC 8832 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The DTLS client opens channels on even streams.
    Client,
    /// The DTLS server opens channels on odd streams.
    Server,
}

impl Role {
    /// What a stream that this end opens leaves when divided by 2.
    fn parity(self) -> u16 {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }
}

/// Why no channel was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Every stream of this end's parity that the association has is taken.
    #[error("no stream is left")]
    NoStream,
    /// The stream that was agreed on is taken, or the association has it not.
    #[error("stream {0} cannot be used")]
    Stream(u16),
    /// There are as many channels as there may be.
    #[error("{0} channels are open, as many as there may be")]
    TooMany(usize),
    /// A label or protocol is longer than its field can tell.
    #[error("a {0} of {1} bytes; allowed: 65535")]
    Name(&'static str, usize),
    /// The connection ended.
    #[error("the connection is closed")]
    Closed,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The channel is closing or closed.
    #[error("the channel is closed")]
    Closed,
    /// It is larger than the peer takes (`a=max-message-size`, RFC 8841 §6.1).
    #[error("a message of {length} bytes; the peer takes {max}")]
    TooLarge {
        /// Its length.
        length: usize,
        /// The largest that the peer takes.
        max: usize,
    },
    /// The channel's queue is full; try again when `bufferedAmount` has fallen.
    #[error("the channel's queue is full")]
    Full,
    /// The queues of all channels together are full, or others wait for room there; try again when `bufferedAmount` of one has fallen.
    #[error("the queues of the connection's channels are full")]
    ConnectionFull,
}

/// What channels tell.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChannelEvent {
    /// The peer opened a channel.
    Incoming(ChannelId),
    /// The peer took a channel of ours.
    Opened(ChannelId),
    /// A message came.
    Message(ChannelId, Payload),
    /// `bufferedAmount` fell to the low mark.
    BufferedAmountLow(ChannelId),
    /// A message of ours was given up by the channel's [`Reliability`](crate::Reliability). One of which all was sent may have arrived all the same.
    Abandoned(ChannelId),
    /// A channel ended; the last of it.
    Closed(ChannelId),
}

/// What an event holds beside its payload, about, bytes.
const EVENT: usize = 64;
/// Memory of a channel that ended until the end is polled, without its names, about, bytes.
const GONE: usize = 128;

impl ChannelEvent {
    /// Memory that it holds until it is polled, about, bytes.
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
    /// The largest message that the peer takes, bytes.
    pub max_message: usize,
    /// The most that a channel's queue holds, bytes.
    pub max_buffered: usize,
    /// The most that the queues of all channels hold together, bytes.
    pub max_buffered_total: usize,
    /// The most channels.
    pub max_channels: usize,
}

impl Limits {
    /// Those of a connection with these settings; the peer takes messages of any length.
    pub fn of(config: &crate::Config) -> Self {
        Self {
            max_message: usize::MAX,
            max_buffered: config.max_buffered,
            max_buffered_total: config.max_buffered_total,
            max_channels: config.max_channels,
        }
    }
}

/// A channel that ended.
#[derive(Debug)]
struct Gone {
    options: ChannelOptions,
    /// Bytes of label and protocol, where the peer named them.
    names: usize,
}

/// All channels of an association.
#[derive(Debug)]
pub struct Channels {
    role: Role,
    limits: Limits,
    /// Streams either way, once the association is up.
    streams: Option<u16>,
    ended: bool,
    table: BTreeMap<u16, Channel>,
    /// The options of channels that ended, until their end is polled.
    gone: BTreeMap<ChannelId, Gone>,
    /// How many channels each stream carried before.
    turns: BTreeMap<u16, u32>,
    /// Streams that cannot be used again, since they were closed without a reset.
    spent: BTreeSet<u16>,
    /// Streams that are reset because a channel of the peer was refused there.
    refused: Refusals,
    /// Bytes of the peer's labels and protocols, also of channels whose end was not polled.
    names: usize,
    /// Bytes of large messages of which the association has not sent all, with what it has sent of them.
    large: usize,
    /// Which channels have something to do.
    ready: Ready,
    /// Channels that were full, were asked for room, and have it now.
    relieved: BTreeSet<ChannelId>,
    /// Channels that wait for room in all queues together.
    line: Line,
    /// Somebody polls who was relieved.
    watched: bool,
    /// Weighted fair queueing: the finish of the message served last.
    served: u64,
    events: VecDeque<ChannelEvent>,
    discards: Discards,
}

impl Channels {
    /// No channels yet.
    pub fn new(role: Role, limits: Limits) -> Self {
        Self {
            role,
            limits,
            streams: None,
            ended: false,
            table: BTreeMap::new(),
            gone: BTreeMap::new(),
            turns: BTreeMap::new(),
            spent: BTreeSet::new(),
            refused: Refusals::default(),
            names: 0,
            large: 0,
            ready: Ready::default(),
            relieved: BTreeSet::new(),
            line: Line::default(),
            watched: false,
            served: 0,
            events: VecDeque::new(),
            discards: Discards::default(),
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ChannelEvent> {
        let event = self.take_event()?;
        self.forget_polled(&event);
        Some(event)
    }

    /// The next event. [`Channels::forget_polled`] is to be called when the user has polled it.
    pub(crate) fn take_event(&mut self) -> Option<ChannelEvent> {
        self.events.pop_front()
    }

    /// The user polled this event: nothing is kept of a channel that it reports as closed.
    pub(crate) fn forget_polled(&mut self, event: &ChannelEvent) {
        if let ChannelEvent::Closed(id) = event
            && let Some(gone) = self.gone.remove(id)
        {
            self.names -= gone.names;
        }
    }

    /// What the peer sent in vain.
    pub fn discards(&self) -> &Discards {
        &self.discards
    }

    /// Opens a channel. Messages may be sent at once (RFC 8832 §6); [`ChannelEvent::Opened`] tells that the peer took it.
    ///
    /// # Errors
    /// It cannot be opened.
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
        let id = self.name(stream);
        let negotiated = options.negotiated.is_some();
        let mut channel = Channel::new(id, options, self.served);
        if negotiated {
            channel.state = State::Open;
            self.events.push_back(ChannelEvent::Opened(id));
        } else {
            channel.push(Queued::control(&open_message(&channel.options)));
        }
        self.insert(channel);
        Ok(id)
    }

    fn name(&self, stream: u16) -> ChannelId {
        let turn = self.turns.get(&stream).copied().unwrap_or_default();
        ChannelId { stream, turn }
    }

    /// Whether a channel may be opened on `stream`. Before the association is up all there can be are assumed.
    fn usable(&self, stream: u16) -> bool {
        stream <= MAX_STREAM
            && self.streams.is_none_or(|streams| stream < streams)
            && !self.table.contains_key(&stream)
            && !self.spent.contains(&stream)
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

    /// The options that either end asked for; `None` once [`ChannelEvent::Closed`] was polled.
    pub fn options(&self, id: ChannelId) -> Option<&ChannelOptions> {
        let open = self.get(id).map(|channel| &channel.options);
        open.or_else(|| self.gone.get(&id).map(|gone| &gone.options))
    }

    /// Queues a message.
    ///
    /// # Errors
    /// It was not taken.
    pub fn send(&mut self, now: Nanos, id: ChannelId, payload: Payload) -> Result<(), SendError> {
        let limits = self.limits;
        let served = self.served;
        let held = self.ready.held();
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
            channel.asked = true;
            return Err(SendError::Full);
        }
        if !self.line.lets_in(channel, held, &limits) {
            self.queue_up(id, length);
            return Err(SendError::ConnectionFull);
        }
        self.line.leave(id, std::mem::take(&mut channel.place));
        if channel.queue.is_empty() {
            channel.finish = channel.finish.max(served);
        }
        channel.push(Queued::data(payload, channel.deadline(now)));
        self.list(id.stream);
        Ok(())
    }

    /// Bytes given to `send` that are not sent yet (`bufferedAmount`). 0 once the channel is closed.
    pub fn buffered_amount(&self, id: ChannelId) -> usize {
        self.get(id).map_or(0, |channel| channel.buffered())
    }

    /// Messages of the channel that were given up by its [`Reliability`](crate::Reliability). One of which all was sent may have arrived all the same. 0 once
    /// the channel is closed.
    pub fn abandoned(&self, id: ChannelId) -> u64 {
        self.get(id).map_or(0, |channel| channel.abandoned)
    }

    /// Sets the mark at which [`ChannelEvent::BufferedAmountLow`] comes (`bufferedAmountLowThreshold`); 0 at first.
    pub fn set_buffered_amount_low(&mut self, id: ChannelId, bytes: usize) {
        if let Some(channel) = self.get_mut(id) {
            channel.low = bytes;
        }
    }

    /// Closes a channel, when what was queued is sent (RFC 8831 §6.7). [`ChannelEvent::Closed`] follows.
    pub fn close(&mut self, id: ChannelId) {
        if let Some(channel) = self.get_mut(id) {
            channel.state = State::Closing;
            self.list(id.stream);
        }
    }

    /// The carrier sent something of the stream, or gave it up. To be called before [`Channels::pump`], which asks for no other's.
    pub fn handle_sent(&mut self, stream: u16) {
        if self
            .table
            .get(&stream)
            .is_some_and(|it| !it.handed.is_empty())
        {
            self.ready.sent.insert(stream);
        }
    }

    /// The carrier may have sent something of any stream.
    pub fn handle_sent_any(&mut self) {
        let handed = self.table.iter().filter(|(_, it)| !it.handed.is_empty());
        self.ready.sent.extend(handed.map(|(&stream, _)| stream));
    }

    /// The association is up, with so many streams outwards and inwards. Channels on others end.
    pub fn handle_up(&mut self, outbound: u16, inbound: u16) {
        let streams = outbound.min(inbound);
        self.streams = Some(streams);
        let beyond: Vec<u16> = self.table.range(streams..).map(|(&it, _)| it).collect();
        for stream in beyond {
            self.end(stream);
        }
    }

    /// The connection ended: every channel does.
    pub fn handle_end(&mut self) {
        self.ended = true;
        self.refused.clear();
        while let Some((&stream, _)) = self.table.first_key_value() {
            self.end(stream);
        }
    }

    /// A message of the peer's.
    pub fn handle_message(&mut self, stream: u16, ppid: u32, bytes: Bytes) {
        if self.ended {
            return;
        }
        if ppid == ppid::DCEP {
            if is_open(&bytes) {
                self.begin_again(stream);
            }
            return match Dcep::decode(&bytes) {
                Ok(Dcep::Open(open)) => self.on_open(stream, open),
                Ok(Dcep::Ack) => self.on_ack(stream),
                Err(_) if is_open(&bytes) => self.refuse(stream, Discard::Dcep),
                Err(_) => self.discards.count(Discard::Dcep),
            };
        }
        let channel = self.table.get_mut(&stream);
        let Some(channel) = channel.filter(|it| it.state != State::Closing) else {
            return self.discards.count(Discard::NoChannel);
        };
        let id = channel.id;
        // Whatever the peer sends on the stream says that it knows the channel (RFC 8832 §6).
        if channel.state == State::Opening {
            channel.state = State::Open;
            self.events.push_back(ChannelEvent::Opened(id));
        }
        match Payload::from_wire(ppid, bytes) {
            Some(payload) => self.events.push_back(ChannelEvent::Message(id, payload)),
            None => self.discards.count(Discard::Payload),
        }
    }

    /// The peer opens a channel on the stream. If it has reset its half, it has carried out our reset,
    /// too, though its answer was lost.
    fn begin_again(&mut self, stream: u16) {
        let again = |channel: &Channel| channel.reset_in && channel.reset_asked;
        if self.table.get(&stream).is_some_and(again) {
            self.handle_reset_done(stream);
        }
        self.refused.begin_again(stream);
    }

    /// DATA_CHANNEL_OPEN (RFC 8832 §6).
    fn on_open(&mut self, stream: u16, open: Open) {
        let theirs = stream % 2 != self.role.parity();
        if !theirs || !self.usable(stream) {
            return self.refuse(stream, Discard::OpenRefused);
        }
        let names = open.label.len() + open.protocol.len();
        if self.table.len() >= self.limits.max_channels || self.names + names > MAX_NAMES {
            return self.refuse(stream, Discard::TooManyChannels);
        }
        self.names += names;
        let id = self.name(stream);
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
        channel.push(Queued::control(&Dcep::Ack));
        self.insert(channel);
        self.events.push_back(ChannelEvent::Incoming(id));
    }

    /// DATA_CHANNEL_ACK (RFC 8832 §6).
    fn on_ack(&mut self, stream: u16) {
        match self.table.get_mut(&stream) {
            Some(channel) if channel.state == State::Opening => {
                channel.state = State::Open;
                let id = channel.id;
                self.events.push_back(ChannelEvent::Opened(id));
            }
            _ => self.discards.count(Discard::AckUnexpected),
        }
    }

    /// The carrier gave up a message of the stream.
    pub fn handle_abandoned(&mut self, stream: u16) {
        if let Some(channel) = self.table.get_mut(&stream) {
            channel.abandoned += 1;
            self.events.push_back(ChannelEvent::Abandoned(channel.id));
        }
        self.handle_sent(stream);
    }

    /// The peer reset its half of the stream: the channel closes here, too (RFC 8831 §6.7).
    pub fn handle_reset(&mut self, stream: u16) {
        if let Some(channel) = self.table.get_mut(&stream) {
            channel.state = State::Closing;
            channel.reset_in = true;
            // What the peer will not read need not be sent.
            channel.drop_queue();
            self.list(stream);
            self.end_if_reset(stream);
        }
        self.refused.handle_reset(stream);
    }

    /// The peer carried out our reset of the stream.
    pub fn handle_reset_done(&mut self, stream: u16) {
        self.refused.handle_reset_done(stream);
        let channel = self.table.get_mut(&stream);
        if let Some(channel) = channel.filter(|it| it.reset_asked) {
            channel.reset_out = true;
            self.end_if_reset(stream);
        }
    }

    /// The peer refused our reset of the stream: the channel ends here, and the stream cannot be used again.
    pub fn handle_reset_refused(&mut self, stream: u16) {
        if self.refused.contains(stream) {
            self.spent.insert(stream);
            self.refused.forget(stream);
        }
        if self.table.get(&stream).is_some_and(|it| it.reset_asked) {
            self.spent.insert(stream);
            self.end(stream);
        }
    }

    /// The streams that have channels.
    pub fn streams(&self) -> Vec<u16> {
        self.table.keys().copied().collect()
    }

    /// The peer reset all its streams: those that have channels, or whose DATA_CHANNEL_OPEN was
    /// refused, and that were not reset before. A request of a few bytes costs as much once for each.
    pub fn take_all_reset(&mut self) -> Vec<u16> {
        let streams = std::mem::take(&mut self.ready.unreset);
        streams.into_iter().chain(self.refused.unreset()).collect()
    }

    /// There are more streams outwards and inwards.
    pub fn handle_added(&mut self, outbound: u16, inbound: u16) {
        self.streams = Some(outbound.min(inbound));
    }

    /// A stream that is reset both ways can carry another channel.
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
        self.list(stream);
    }

    fn end(&mut self, stream: u16) {
        if let Some(channel) = self.table.remove(&stream) {
            self.ready.forget(stream, channel.listed);
            self.line.leave(channel.id, channel.place);
            if channel.asked && self.watched {
                self.relieved.insert(channel.id);
            }
            // A name is used once, also where there was no reset: the stream may not have been agreed on, and be added later.
            *self.turns.entry(stream).or_default() += 1;
            self.large -= channel.handed.large();
            self.events.push_back(ChannelEvent::Closed(channel.id));
            let gone = Gone {
                options: channel.options,
                names: channel.names,
            };
            self.gone.insert(channel.id, gone);
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
