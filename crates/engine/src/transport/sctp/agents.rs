//! The ends of an SCTP flow in the simulator: a source that opens an association and feeds it, a sink that takes what comes.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::ControlFlow;

use anabranch_sctp::{
    Association, AssociationId, CloseReason, Endpoint, Event, Interest, Outgoing, Output,
    SendOptions, TransmitOptions,
};
use anabranch_sim::Agent;
use anabranch_sim::workload::Message;
use anabranch_transport::{Ecn, Nanos, Path, ProbeSet, Transmit, Transport};
use bytes::{Bytes, BytesMut};

use super::DATA_HEADER;
use super::follower::Follower;
use super::reader::Reader;
use super::resume::{observe, resume};
use crate::agent::resume::Resuming;
use crate::agent::stamp::{Stamp, payload};
use crate::agent::tally::SharedTally;
use crate::agent::transfers::Key;
use crate::agent::{Feed, earlier};

/// What a source needs beside its endpoint.
pub struct SourceConfig {
    /// The peer's addresses, the primary first.
    pub remote: Vec<IpAddr>,
    /// The peer's port.
    pub remote_port: u16,
    /// Messages may overtake one another.
    pub unordered: bool,
    /// The workload never runs dry and nobody asks for its messages: what was handed over and not begun when the flow stops
    /// was never offered.
    pub endless: bool,
    /// Each message begins with the time it was offered, for the one-way delay, and its number.
    pub stamped: bool,
    /// The tally wants to know which messages the transport took.
    pub told: bool,
    /// Messages that the workload gives no stream are known again by their numbers, which they carry.
    pub numbered: bool,
    /// Streams that are negotiated: a transfer in pieces has that of its number.
    pub streams: u16,
    /// So much is handed over ahead of what was sent, bytes: enough for a packet, where the workload has no pace of its
    /// own; the send buffer, where it has.
    pub ahead: usize,
}

/// Opens an association at its start time and sends its workload.
pub struct Source {
    endpoint: Endpoint,
    config: SourceConfig,
    association: Option<AssociationId>,
    feed: Feed,
    /// Messages want answers, which the other end sends.
    answered: bool,
    /// Messages and pieces of transfers that the transport took.
    accepted: u64,
    /// Transfers in pieces that it took.
    transfers: u64,
    /// Bytes of the present transfer that it took.
    given: usize,
    zeros: Bytes,
    shut: bool,
    /// How messages are sent, as the settings say.
    options: SendOptions,
    links: Follower,
    tally: SharedTally,
    resuming: Option<Resuming>,
}

impl Source {
    /// A source at an endpoint of its own.
    pub fn new(
        endpoint: Endpoint,
        config: SourceConfig,
        feed: Feed,
        tally: SharedTally,
        links: Follower,
        resuming: Option<Resuming>,
    ) -> Self {
        // Static bytes are cut without counting references.
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
            tally,
            resuming,
        }
    }

    /// Whether there is a message and room for it, or the end is to be told. Asks the feed even where there is no room,
    /// so that a deadline of the feed never stays behind.
    #[inline]
    fn has_something(&mut self, id: AssociationId, now: Nanos) -> bool {
        if self.feed.waiting(now).is_some() {
            self.has_room(id, self.config.ahead)
        } else {
            self.feed.is_over() && !self.shut
        }
    }

    /// Whether less than `ahead` bytes wait.
    #[inline]
    fn has_room(&self, id: AssociationId, ahead: usize) -> bool {
        let association = self.endpoint.association(id);
        association.is_some_and(|it| it.buffered() < ahead)
    }

    /// Hands messages over while there is room, and closes after the last.
    #[inline]
    fn top_up(&mut self, now: Nanos) {
        // After most packets there is nothing to do, and to look does not wake the association.
        if let Some(id) = self.association
            && self.has_something(id, now)
        {
            self.hand_over(id, now);
        }
    }

    /// As [`Self::top_up`], where there is something to do.
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
            let stamp = self.config.stamped.then(|| Stamp {
                time: now,
                number: self.is_numbered().then_some(self.accepted),
            });
            let left = whole - self.given;
            let size = piece.map_or(left, |piece| piece.min(left));
            let stream = stream.or_else(|| {
                // Pieces of one transfer keep together.
                let number = self.transfers % u64::from(self.config.streams.max(1));
                piece.map(|_| number as u16)
            });
            let payload = payload(&mut self.zeros, size, stamp);
            // Where there is one stream, whichever has its turn is that.
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
            // Refused only where the association is closing or closed already.
            self.shut = true;
            let association = self.endpoint.association_mut(id);
            let _ = association.map(|it| it.shutdown(now, None));
        }
    }

    /// Whether messages carry their numbers.
    fn is_numbered(&self) -> bool {
        self.config.numbered || self.tally.borrow().once.is_some()
    }

    /// Tells the tally that the transport took the message, or its first piece.
    fn tell_taken(&mut self, now: Nanos, stream: Option<u16>, message: &Message) {
        let mut tally = self.tally.borrow_mut();
        if let Some(once) = &mut tally.once {
            once.accept();
        }
        if self.given == 0 {
            let key = stream.map_or(Key::Number(self.accepted), Key::Stream);
            tally.begin(now, key, message);
        }
    }

    /// Tells the association what has become of its host's links.
    #[inline]
    fn follow_links(&mut self, now: Nanos) {
        if self.links.is_due(now)
            && let Some(association) = self
                .association
                .and_then(|id| self.endpoint.association_mut(id))
        {
            self.links.follow(now, association);
        }
    }

    /// Takes what comes back: answers.
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
            if self.tally.borrow_mut().arrive(now, key, bytes).complete {
                self.feed.answered(now);
            }
        }
    }

    #[inline]
    fn observe(&mut self, now: Nanos) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            self.handle_event(now, id, event);
        }
        // Few packets leave a sample.
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
        association.is_some_and(Association::has_samples)
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
                    self.tally.borrow_mut().failed = Some(reason.to_string());
                }
            }
            Event::StreamLimitMet { .. } => self.tally.borrow_mut().stream_limits_met += 1,
            _ => {}
        }
    }

    #[inline(never)]
    fn take_samples(&mut self) {
        let association = self.association;
        let Some(association) = association.and_then(|id| self.endpoint.association_mut(id)) else {
            return;
        };
        let mut tally = self.tally.borrow_mut();
        for sample in association.drain_trace() {
            tally.sample(sample);
        }
    }
}

impl Agent for Source {
    fn start(&mut self, now: Nanos) {
        self.feed.start();
        match self
            .endpoint
            .connect(now, &self.config.remote, self.config.remote_port)
        {
            Ok(id) => {
                self.association = Some(id);
                let probes = self.tally.borrow().sender_probes();
                if let Some(association) = self.endpoint.association_mut(id) {
                    association.set_probes(probes);
                    let primary = association.paths().primary();
                    let cwnd = association.paths().get(primary).cwnd();
                    self.tally.borrow_mut().first_window(now, cwnd as f64);
                }
                resume(now, self.resuming.as_mut(), &mut self.endpoint, id);
            }
            Err(error) => self.tally.borrow_mut().failed = Some(error.to_string()),
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
            association.withdraw_unsent();
        }
        self.top_up(now);
    }

    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        self.endpoint.handle_datagram(now, path, ecn, datagram);
        self.follow_links(now);
        self.take_answers(now);
        self.observe(now);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.endpoint.handle_timeout(now);
        self.follow_links(now);
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

/// Accepts associations and takes their messages.
pub struct Sink {
    endpoint: Endpoint,
    /// Once it is there.
    association: Option<AssociationId>,
    stamped: bool,
    /// The most user data of a chunk: longer messages came in several.
    fragment: u64,
    probes: ProbeSet,
    reader: Reader,
    /// Stamps of messages that came in part, by stream.
    begun: BTreeMap<u16, Stamp>,
    /// Answers that are asked for: the stream and the bytes still to be sent.
    answers: VecDeque<(u16, u64)>,
    zeros: Bytes,
    tally: SharedTally,
    links: Follower,
    /// Packets beyond the first of those that the endpoint gave at once.
    waiting: VecDeque<(Transmit, Bytes)>,
    /// The endpoint gave all that it had.
    drained: bool,
    resuming: Option<Resuming>,
}

impl Sink {
    /// A sink at an endpoint of its own, which begins to listen. `fragment` is the most user data of a chunk, bytes.
    ///
    /// The application reads `rate` bits per second; without one it is always ready.
    pub fn new(
        mut endpoint: Endpoint,
        stamped: bool,
        fragment: u64,
        rate: Option<u64>,
        tally: SharedTally,
        links: Follower,
        resuming: Option<Resuming>,
    ) -> Self {
        endpoint.listen(true);
        let probes = tally.borrow().receiver_probes();
        Self {
            endpoint,
            association: None,
            stamped,
            fragment,
            probes,
            reader: Reader::new(rate),
            begun: BTreeMap::new(),
            answers: VecDeque::new(),
            zeros: Bytes::new(),
            tally,
            links,
            waiting: VecDeque::new(),
            drained: false,
            resuming,
        }
    }

    /// The association that came first, which is not released.
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
                    association.set_probes(self.probes);
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
        let mut tally = self.tally.borrow_mut();
        let reader = &mut self.reader;
        let unwatched = !self.stamped && tally.is_unwatched();
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
                tally.count(size, DATA_HEADER * chunks, part.ends.into());
                continue;
            }
            tally.deliver(now, size, DATA_HEADER * chunks);
            let arrived = tally.arrive(now, Key::Stream(part.stream), size);
            self.answers
                .extend(arrived.asked.map(|bytes| (part.stream, bytes)));
            let mut stamp = match (self.stamped, part.begins) {
                (true, true) => part.payload.parts().first().and_then(|it| Stamp::read(it)),
                (true, false) => self.begun.remove(&part.stream),
                (false, _) => None,
            };
            if !part.ends {
                self.begun.extend(stamp.take().map(|it| (part.stream, it)));
                continue;
            }
            tally.message(now, stamp.map(|stamp| now.saturating_sub(stamp.time)));
            let number = stamp.and_then(|stamp| stamp.number);
            if let Some(number) = number {
                tally.arrive(now, Key::Number(number), u64::MAX);
            }
            if let (Some(number), Some(once)) = (number, &mut tally.once) {
                once.deliver(number);
            }
        }
        if association.has_samples() {
            for sample in association.drain_trace() {
                tally.sample(sample);
            }
        }
    }

    /// Tells the association what has become of its host's links.
    fn follow_links(&mut self, now: Nanos) {
        if !self.links.is_due(now) {
            return;
        }
        let id = self.first_association();
        if let Some(association) = id.and_then(|id| self.endpoint.association_mut(id)) {
            self.links.follow(now, association);
        }
    }

    /// Sends what is left of answers while there is room.
    fn answer(&mut self, now: Nanos) {
        let id = self.first_association();
        while let Some((stream, left)) = self.answers.front_mut() {
            let Some(association) = id.and_then(|id| self.endpoint.association_mut(id)) else {
                return;
            };
            let size = (*left).min(self.fragment);
            let bytes = payload(&mut self.zeros, size as usize, None);
            // The rest goes when there is room again; an association that ends is the source's to report.
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

    /// Something came, or is due: the endpoint is to be asked again.
    fn wake(&mut self, now: Nanos) {
        self.drained = false;
        self.follow_links(now);
        self.take(now);
    }

    /// The next packet, if there is one: something waits, or the endpoint has not been asked for all since it changed.
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

    /// The first packet of those that the endpoint has; the others wait.
    fn poll_endpoint(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        let (mut first, waiting) = (None, &mut self.waiting);
        let give = |outgoing: Outgoing, out: &mut BytesMut| {
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

impl Agent for Sink {
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        self.endpoint.handle_datagram(now, path, ecn, datagram);
        self.wake(now);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.endpoint.handle_timeout(now);
        self.wake(now);
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        // Unless there are answers, which go as far as there is room, all has gone.
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
