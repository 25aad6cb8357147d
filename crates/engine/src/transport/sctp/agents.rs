//! SCTP agents of a flow: a source that opens an association and sends its workload, and a sink
//! that receives the messages.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::ControlFlow;

use anabranch_sctp::{
    AssociationId, CloseReason, Endpoint, Event, Interest, Output, SendOptions, TransmitOptions,
    UdpTransmit,
};
use anabranch_sim::Agent;
use anabranch_sim::workload::Message;
use anabranch_transport::{Ecn, Nanos, Path, ProbeSet, Trace, Transmit, Transport};
use bytes::{Bytes, BytesMut};

use super::DATA_HEADER;
use super::application_reader::ApplicationReader;
use super::link_follower::Follower;
use super::resume::{observe, resume};
use crate::agent::flow_stats::SharedFlowStats;
use crate::agent::message_header::{MessageHeader, payload};
use crate::agent::resume::Resuming;
use crate::agent::transfers::Key;
use crate::agent::{Feed, earlier};

/// Configuration of a source, in addition to that of its endpoint.
pub struct SourceConfig {
    /// Addresses of the peer, with the primary address first.
    pub remote: Vec<IpAddr>,
    /// Port of the peer.
    pub remote_port: u16,
    /// Whether messages are sent unordered, so that they may overtake one another.
    pub unordered: bool,
    /// Whether the workload never ends and its messages are not tracked. Messages that were queued
    /// but not started when the flow stops then count as never offered.
    pub endless: bool,
    /// Whether each message starts with its offer time and its number; the receiver computes the
    /// one-way delay.
    pub stamped: bool,
    /// Whether the statistics track the messages that the transport accepts.
    pub told: bool,
    /// Whether messages without a stream are identified by their numbers.
    pub numbered: bool,
    /// Number of negotiated streams. A transfer in pieces uses the stream with the number of the
    /// transfer modulo this number.
    pub streams: u16,
    /// Maximum number of bytes that are queued in advance of transmission: a packet if the workload
    /// has no pace, otherwise the send buffer.
    pub ahead: usize,
}

/// Client agent that opens an association at its start time and sends its workload.
pub struct SourceAgent {
    endpoint: Endpoint,
    config: SourceConfig,
    association: Option<AssociationId>,
    feed: Feed,
    /// Whether the sink sends answers.
    answered: bool,
    /// Number of messages, and pieces of transfers, that the transport has accepted.
    accepted: u64,
    /// Number of transfers in pieces that the transport has accepted.
    transfers: u64,
    /// Bytes of the current transfer that the transport has accepted.
    given: usize,
    zeros: Bytes,
    shut: bool,
    /// Send options of all messages, according to the settings.
    options: SendOptions,
    links: Follower,
    flow_stats: SharedFlowStats,
    resuming: Option<Resuming>,
}

impl SourceAgent {
    /// Creates a source with its own endpoint.
    pub fn new(
        endpoint: Endpoint,
        config: SourceConfig,
        feed: Feed,
        flow_stats: SharedFlowStats,
        links: Follower,
        resuming: Option<Resuming>,
    ) -> Self {
        // Slices of static memory need no reference counting.
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        let zeros = Bytes::from_static(&ZEROS);
        let options = SendOptions::of(endpoint.config()).with_unordered(config.unordered);
        Self {
            endpoint,
            config,
            association: None,
            answered: feed.facts().answered,
            feed,
            accepted: 0,
            transfers: 0,
            given: 0,
            zeros,
            shut: false,
            options,
            links,
            flow_stats,
            resuming,
        }
    }

    /// Whether there is a message for which the association has buffer space, or the end of the
    /// workload must be signalled. The feed is polled even without buffer space, so that none of
    /// its deadlines stays in the past.
    #[inline]
    fn has_something(&mut self, id: AssociationId, now: Nanos) -> bool {
        if self.feed.waiting(now).is_some() {
            self.has_room(id, self.config.ahead)
        } else {
            self.feed.is_over() && !self.shut
        }
    }

    /// Whether fewer than `ahead` bytes are queued in the association.
    #[inline]
    fn has_room(&self, id: AssociationId, ahead: usize) -> bool {
        let association = self.endpoint.association(id);
        association.is_some_and(|it| it.send_buffer().unsent() < ahead)
    }

    /// Sends messages while there is buffer space, and shuts the association down after the last
    /// one.
    #[inline]
    fn top_up(&mut self, now: Nanos) {
        // After most packets there is nothing to send, so this is checked first without waking the
        // association.
        if let Some(id) = self.association
            && self.has_something(id, now)
        {
            self.hand_over(id, now);
        }
    }

    /// Slow path of [`Self::top_up`]: sends messages or signals the end.
    #[inline(never)]
    fn hand_over(&mut self, id: AssociationId, now: Nanos) {
        while self.has_room(id, self.config.ahead) {
            let Some(message) = self.feed.waiting(now) else {
                break;
            };
            let told = self.config.told.then_some(*message);
            let &Message {
                size: whole,
                stream,
                piece,
                ..
            } = message;
            let stamp = self.config.stamped.then(|| MessageHeader {
                time: now,
                number: self.is_numbered().then_some(self.accepted),
            });
            let left = whole - self.given;
            let size = piece.map_or(left, |piece| piece.min(left));
            let stream = stream.or_else(|| {
                // All pieces of a transfer use the same stream.
                let number = self.transfers % u64::from(self.config.streams.max(1));
                piece.map(|_| number as u16)
            });
            let payload = payload(&mut self.zeros, size, stamp);
            // With a single stream the scheduler has no choice, so stream 0 is named directly.
            let on = stream.or((self.config.streams == 1).then_some(0));
            let options = self.options.with_stream(on);
            let taken = self.endpoint.send(now, id, payload, &options);
            if !matches!(taken, Some(Ok(()))) {
                break;
            }
            if let Some(message) = told {
                self.tell_taken(now, stream, &message);
            }
            self.accepted += 1;
            self.given += size;
            if self.given == whole {
                self.given = 0;
                self.transfers += 1;
                self.feed.take();
            }
        }
        if self.feed.is_over() && !self.shut {
            // The result is ignored, because an error means that the association is already closing
            // or closed.
            self.shut = true;
            let association = self.endpoint.association_mut(id);
            let _ = association.map(|it| it.shutdown(now, None));
        }
    }

    /// Whether messages carry their numbers in the stamp.
    fn is_numbered(&self) -> bool {
        self.config.numbered || self.flow_stats.borrow().once.is_some()
    }

    /// Records in the statistics that the transport has accepted the message, or its first piece.
    fn tell_taken(&mut self, now: Nanos, stream: Option<u16>, message: &Message) {
        let mut flow_stats = self.flow_stats.borrow_mut();
        if let Some(once) = &mut flow_stats.once {
            once.accept();
        }
        if self.given == 0 {
            let key = stream.map_or(Key::Number(self.accepted), Key::Stream);
            flow_stats.begin(now, key, message);
        }
    }

    /// Changes the addresses of the association after changes of the host's links.
    #[inline]
    fn asconf_on_link_change(&mut self, now: Nanos) {
        if self.links.is_due(now)
            && let Some(association) = self
                .association
                .and_then(|id| self.endpoint.association_mut(id))
        {
            self.links.follow(now, association);
        }
    }

    /// Processes received data, which consists of answers.
    fn take_answers(&mut self, now: Nanos) {
        let Some(association) = self
            .association
            .filter(|_| self.answered)
            .and_then(|id| self.endpoint.association_mut(id))
        else {
            return;
        };
        while let Some(part) = association.poll_part() {
            let (key, bytes) = (Key::Stream(part.stream), part.payload.len() as u64);
            let arrival = self.flow_stats.borrow_mut().arrive(now, key, bytes);
            if arrival.complete {
                self.feed.answered(now);
            }
        }
    }

    #[inline]
    fn observe(&mut self, now: Nanos) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            self.handle_event(now, id, event);
        }
        // Checked first, because only few packets produce a sample.
        if self.has_samples() {
            self.take_samples();
        }
        if let (Some(resuming), Some(id)) = (&mut self.resuming, self.association) {
            observe(now, resuming, &self.endpoint, id);
        }
    }

    #[inline]
    fn has_samples(&self) -> bool {
        let association = self
            .association
            .and_then(|id| self.endpoint.association(id));
        association.is_some_and(|it| !it.trace().is_empty())
    }

    #[inline(never)]
    fn handle_event(&mut self, now: Nanos, id: AssociationId, event: Event) {
        match event {
            Event::Established { .. } => {
                resume(now, self.resuming.as_mut(), &mut self.endpoint, id);
            }
            Event::Closed(reason) => {
                if let Some(resuming) = &mut self.resuming {
                    resuming.end();
                }
                if reason != CloseReason::Shutdown {
                    self.flow_stats.borrow_mut().failed = Some(reason.to_string());
                }
            }
            Event::StreamLimitMet { .. } => self.flow_stats.borrow_mut().stream_limits_met += 1,
            _ => {}
        }
    }

    #[inline(never)]
    fn take_samples(&mut self) {
        let association = self.association;
        let Some(association) = association.and_then(|id| self.endpoint.association_mut(id)) else {
            return;
        };
        let mut flow_stats = self.flow_stats.borrow_mut();
        for sample in association.trace_mut().drain() {
            flow_stats.sample(sample);
        }
    }
}

impl Agent for SourceAgent {
    fn start(&mut self, now: Nanos) {
        self.feed.start();
        match self
            .endpoint
            .connect(now, &self.config.remote, self.config.remote_port)
        {
            Ok(id) => {
                self.association = Some(id);
                let probes = self.flow_stats.borrow().sender_probes();
                if let Some(association) = self.endpoint.association_mut(id) {
                    *association.trace_mut() = Trace::new(probes);
                    let primary = association.paths().primary();
                    let cwnd = association.paths().get(primary).cwnd();
                    self.flow_stats.borrow_mut().first_window(now, cwnd as f64);
                }
                resume(now, self.resuming.as_mut(), &mut self.endpoint, id);
            }
            Err(error) => self.flow_stats.borrow_mut().failed = Some(error.to_string()),
        }
        self.top_up(now);
    }

    fn stop(&mut self, now: Nanos) {
        self.feed.stop();
        if let (true, Some(association)) = (
            self.config.endless,
            self.association
                .and_then(|id| self.endpoint.association_mut(id)),
        ) {
            association.cancel_unsent();
        }
        self.top_up(now);
    }

    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        self.endpoint.handle_datagram(now, path, ecn, datagram);
        self.asconf_on_link_change(now);
        self.take_answers(now);
        self.observe(now);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.endpoint.handle_timeout(now);
        self.asconf_on_link_change(now);
        self.observe(now);
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        self.top_up(now);
        let transmit = self.endpoint.poll_transmit(now, out);
        if transmit.is_none() {
            self.observe(now);
        }
        transmit
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let links = self.association.and(self.links.deadline());
        earlier(
            earlier(self.endpoint.poll_timeout(), self.feed.deadline()),
            links,
        )
    }
}

/// Server agent that accepts an association and receives its messages.
pub struct SinkAgent {
    endpoint: Endpoint,
    /// Id of the association, once it exists.
    association: Option<AssociationId>,
    stamped: bool,
    /// Maximum user data of a chunk, bytes; longer messages arrive in several chunks.
    fragment: u64,
    probes: ProbeSet,
    reader: ApplicationReader,
    /// Stamps of partially received messages, by stream.
    begun: BTreeMap<u16, MessageHeader>,
    /// Answers that are due: the stream, and the bytes that are not sent yet.
    answers: VecDeque<(u16, u64)>,
    zeros: Bytes,
    flow_stats: SharedFlowStats,
    links: Follower,
    /// Packets of the endpoint's last batch, without the first one.
    waiting: VecDeque<(Transmit, Bytes)>,
    /// Whether the endpoint has no more packets to send.
    drained: bool,
    resuming: Option<Resuming>,
}

impl SinkAgent {
    /// Creates a sink with its own endpoint, and starts to listen. `fragment` is the maximum user
    /// data of a chunk, bytes.
    ///
    /// The application reads `rate` bits per second; `None`: it reads all data immediately.
    pub fn new(
        mut endpoint: Endpoint,
        stamped: bool,
        fragment: u64,
        rate: Option<u64>,
        flow_stats: SharedFlowStats,
        links: Follower,
        resuming: Option<Resuming>,
    ) -> Self {
        endpoint.listen(true);
        let probes = flow_stats.borrow().receiver_probes();
        Self {
            endpoint,
            association: None,
            stamped,
            fragment,
            probes,
            reader: ApplicationReader::new(rate),
            begun: BTreeMap::new(),
            answers: VecDeque::new(),
            zeros: Bytes::new(),
            flow_stats,
            links,
            waiting: VecDeque::new(),
            drained: false,
            resuming,
        }
    }

    /// Id of the first association, which is kept for the whole run.
    #[inline]
    fn first_association(&mut self) -> Option<AssociationId> {
        if self.association.is_none() {
            self.association = self.endpoint.associations().next();
        }
        self.association
    }

    fn take(&mut self, now: Nanos) {
        let first = self.first_association();
        while let Some(id) = first
            && let Some(association) = self.endpoint.association_mut(id)
            && let Some(Output::Event(event)) = association.poll_output(Interest::EVENTS)
        {
            if matches!(event, Event::Established { .. }) {
                if !self.probes.is_empty() {
                    *association.trace_mut() = Trace::new(self.probes);
                }
                resume(now, self.resuming.as_mut(), &mut self.endpoint, id);
            } else if let (Event::Closed(_), Some(resuming)) = (event, &mut self.resuming) {
                resuming.end();
            }
        }
        if let (Some(resuming), Some(id)) = (&mut self.resuming, first) {
            observe(now, resuming, &self.endpoint, id);
        }
        let Some(association) = first.and_then(|id| self.endpoint.association_mut(id)) else {
            return;
        };
        let mut flow_stats = self.flow_stats.borrow_mut();
        let reader = &mut self.reader;
        let unwatched = !self.stamped && flow_stats.is_unwatched();
        loop {
            reader.behind = !reader.is_ready(now);
            if reader.behind {
                break;
            }
            let Some(part) = association.poll_part() else {
                break;
            };
            let size = part.payload.len() as u64;
            reader.read(now, size);
            let chunks = match (part.begins, part.ends) {
                (true, true) => size.div_ceil(self.fragment),
                _ => part.payload.parts().len() as u64,
            };
            if unwatched {
                flow_stats.count(size, DATA_HEADER * chunks, part.ends.into());
                continue;
            }
            flow_stats.deliver(now, size, DATA_HEADER * chunks);
            let arrived = flow_stats.arrive(now, Key::Stream(part.stream), size);
            self.answers
                .extend(arrived.asked.map(|bytes| (part.stream, bytes)));
            let mut stamp = match (self.stamped, part.begins) {
                (true, true) => part
                    .payload
                    .parts()
                    .first()
                    .and_then(|it| MessageHeader::read(it)),
                (true, false) => self.begun.remove(&part.stream),
                (false, _) => None,
            };
            if !part.ends {
                self.begun.extend(stamp.take().map(|it| (part.stream, it)));
                continue;
            }
            flow_stats.message(now, stamp.map(|stamp| now.saturating_sub(stamp.time)));
            let number = stamp.and_then(|stamp| stamp.number);
            if let Some(number) = number {
                flow_stats.arrive(now, Key::Number(number), u64::MAX);
            }
            if let (Some(number), Some(once)) = (number, &mut flow_stats.once) {
                once.deliver(number);
            }
        }
        for sample in association.trace_mut().drain() {
            flow_stats.sample(sample);
        }
    }

    /// Changes the addresses of the association after changes of the host's links.
    fn asconf_on_link_change(&mut self, now: Nanos) {
        if !self.links.is_due(now) {
            return;
        }
        let id = self.first_association();
        if let Some(association) = id.and_then(|id| self.endpoint.association_mut(id)) {
            self.links.follow(now, association);
        }
    }

    /// Sends pending answers while there is buffer space.
    fn answer(&mut self, now: Nanos) {
        let id = self.first_association();
        while let Some((stream, left)) = self.answers.front_mut() {
            let Some(association) = id.and_then(|id| self.endpoint.association_mut(id)) else {
                return;
            };
            let size = (*left).min(self.fragment);
            let bytes = payload(&mut self.zeros, size as usize, None);
            // If the send buffer is full, the rest of the answer stays pending. The end of an
            // association is not reported here, because the source reports it.
            let options = SendOptions::on(*stream).reliable();
            if association.send(now, bytes, &options).is_err() {
                return;
            }
            *left -= size;
            if *left == 0 {
                self.answers.pop_front();
            }
        }
    }

    /// Marks the endpoint as having packets to send, because of input or a timeout.
    fn wake(&mut self, now: Nanos) {
        self.drained = false;
        self.asconf_on_link_change(now);
        self.take(now);
    }

    /// Next packet to send: from the last batch, or from the endpoint if its state may have
    /// changed.
    #[inline(never)] // Where there is none, nothing need be made room for.
    fn give(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        if let Some((transmit, bytes)) = self.waiting.pop_front() {
            out.extend_from_slice(&bytes);
            return Some(transmit);
        }
        self.answer(now);
        let transmit = self.poll_endpoint(now, out);
        self.drained = true;
        transmit
    }

    /// Returns the first packet of the endpoint's next batch, and stores the others.
    fn poll_endpoint(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        let (mut first, waiting) = (None, &mut self.waiting);
        let give = |outgoing: UdpTransmit, out: &mut BytesMut| {
            let transmit = outgoing.transmit;
            match first {
                None => first = Some(transmit),
                Some(_) => {
                    let bytes = out.split_off(out.len() - transmit.len);
                    waiting.push_back((transmit, bytes.freeze()));
                }
            }
            ControlFlow::Continue(())
        };
        self.endpoint
            .poll_transmit_batch(now, TransmitOptions::default(), out, give);
        first
    }
}

impl Agent for SinkAgent {
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        self.endpoint.handle_datagram(now, path, ecn, datagram);
        self.wake(now);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.endpoint.handle_timeout(now);
        self.wake(now);
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        // All packets were sent, and there is no pending answer that buffer space might now permit.
        if self.drained && self.waiting.is_empty() && self.answers.is_empty() {
            return None;
        }
        self.give(now, out)
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let own = earlier(self.reader.deadline(), self.links.deadline());
        earlier(self.endpoint.poll_timeout(), own)
    }
}
