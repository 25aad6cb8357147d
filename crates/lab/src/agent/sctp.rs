//! SCTP in the simulator: a source that opens an association and feeds it, a sink that takes what comes.

use std::net::IpAddr;

use anabranch_sctp::{
    Association, AssociationId, CloseReason, Config, Endpoint, Event, Message as SctpMessage,
};
use anabranch_sim::Agent;
use anabranch_transport::{Nanos, Path, Probe, ProbeSet, Transmit, Transport};
use bytes::{BufMut, Bytes, BytesMut};

use super::settings::DATA_HEADER;
use super::tally::SharedTally;
use super::{Feed, earlier};

/// What a source needs beside its endpoint.
pub struct SourceConfig {
    /// The peer's addresses, the primary first.
    pub remote: Vec<IpAddr>,
    /// The peer's port.
    pub remote_port: u16,
    /// Streams, used in turn where the workload names none.
    pub streams: u16,
    /// Messages may overtake one another.
    pub unordered: bool,
    /// Each message begins with the time it was offered, for the one-way delay.
    pub stamped: bool,
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
    next_stream: u16,
    zeros: Bytes,
    shut: bool,
    tally: SharedTally,
}

impl Source {
    /// A source at an endpoint of its own.
    pub fn new(endpoint: Endpoint, config: SourceConfig, feed: Feed, tally: SharedTally) -> Self {
        // Static bytes are cut without counting references.
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        let zeros = Bytes::from_static(&ZEROS);
        Self {
            endpoint,
            config,
            association: None,
            feed,
            next_stream: 0,
            zeros,
            shut: false,
            tally,
        }
    }

    /// Whether there is a message and room for it, or the end is to be told. Asks the feed even where there is no room,
    /// so that a deadline of the feed never stays behind.
    fn has_something(&mut self, id: AssociationId, now: Nanos) -> bool {
        match self.feed.peek(now) {
            Some(_) => self
                .endpoint
                .association(id)
                .is_some_and(|association| association.buffered() < self.config.ahead),
            None => self.feed.is_over() && !self.shut,
        }
    }

    /// Hands messages over while there is room, and closes after the last.
    fn top_up(&mut self, now: Nanos) {
        let Some(id) = self.association else {
            return;
        };
        // After most packets there is nothing to do, and to look does not wake the association.
        if !self.has_something(id, now) {
            return;
        }
        let Some(association) = self.endpoint.association_mut(id) else {
            return;
        };
        while association.buffered() < self.config.ahead {
            let Some(message) = self.feed.peek(now) else {
                break;
            };
            let stream = message.stream.unwrap_or(self.next_stream) % self.config.streams;
            let payload = payload(
                &mut self.zeros,
                message.size,
                self.config.stamped.then_some(now),
            );
            let sent = SctpMessage {
                ppid: 0,
                unordered: self.config.unordered,
                payload,
            };
            if association.send(stream, sent).is_err() {
                break;
            }
            self.feed.take();
            self.next_stream = (self.next_stream + 1) % self.config.streams;
        }
        if self.feed.is_over() && !self.shut {
            // Refused only where the association is closing or closed already.
            self.shut = true;
            let _ = association.shutdown(now);
        }
    }

    fn observe(&mut self) {
        while let Some((_, event)) = self.endpoint.poll_event() {
            if let Event::Closed(reason) = event
                && reason != CloseReason::Shutdown
            {
                self.tally.borrow_mut().failed = Some(format!("{reason:?}"));
            }
        }
        // Few packets leave a sample.
        let Some(association) = self
            .association
            .filter(|&id| {
                self.endpoint
                    .association(id)
                    .is_some_and(Association::has_samples)
            })
            .and_then(|id| self.endpoint.association_mut(id))
        else {
            return;
        };
        let mut tally = self.tally.borrow_mut();
        for sample in association.drain_trace() {
            tally.sample(sample);
        }
    }
}

/// A message of `size` bytes, a slice of `zeros` unless it is stamped.
fn payload(zeros: &mut Bytes, size: usize, stamp: Option<Nanos>) -> Bytes {
    if let Some(now) = stamp.filter(|_| size >= 8) {
        let mut stamped = BytesMut::zeroed(size);
        stamped[..8].as_mut().put_u64(now);
        return stamped.freeze();
    }
    if zeros.len() < size {
        *zeros = Bytes::from(vec![0; size]);
    }
    zeros.slice(..size)
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
                let probes = self.tally.borrow().probes();
                if let Some(association) = self.endpoint.association_mut(id) {
                    association.set_probes(probes);
                }
            }
            Err(error) => self.tally.borrow_mut().failed = Some(error.to_string()),
        }
        self.top_up(now);
    }

    fn stop(&mut self, now: Nanos) {
        self.feed.stop();
        self.top_up(now);
    }

    fn handle_datagram(&mut self, now: Nanos, path: Path, datagram: Bytes) {
        self.endpoint.handle_datagram(now, path, datagram);
        self.observe();
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.endpoint.handle_timeout(now);
        self.observe();
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        self.top_up(now);
        let transmit = self.endpoint.poll_transmit(now, out);
        if transmit.is_none() {
            self.observe();
        }
        transmit
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        earlier(self.endpoint.poll_timeout(), self.feed.deadline())
    }
}

/// Accepts associations and takes their messages.
pub struct Sink {
    endpoint: Endpoint,
    stamped: bool,
    /// The most user data of a chunk: longer messages came in several.
    fragment: u64,
    probes: ProbeSet,
    tally: SharedTally,
}

/// Probes that a receiver records.
const RECEIVING: [Probe; 4] = [
    Probe::Received,
    Probe::AdvertisedRwnd,
    Probe::HeadOfLineWait,
    Probe::Buffered,
];

impl Sink {
    /// A sink at an endpoint of its own, which begins to listen.
    pub fn new(mut endpoint: Endpoint, stamped: bool, tally: SharedTally) -> Self {
        endpoint.listen(true);
        let fragment = fragment(endpoint.config());
        let wanted = tally.borrow().recorded_probes();
        let probes = RECEIVING
            .into_iter()
            .chain([Probe::Delivered])
            .filter(|probe| wanted.contains(*probe))
            .fold(ProbeSet::NONE, ProbeSet::with);
        Self {
            endpoint,
            stamped,
            fragment,
            probes,
            tally,
        }
    }

    fn take(&mut self, now: Nanos) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            if matches!(event, Event::Established { .. }) && !self.probes.is_empty() {
                let probes = self.probes;
                if let Some(association) = self.endpoint.association_mut(id) {
                    association.set_probes(probes);
                }
            }
        }
        let ids: Option<AssociationId> = self.endpoint.associations().next();
        let Some(association) = ids.and_then(|id| self.endpoint.association_mut(id)) else {
            return;
        };
        let mut tally = self.tally.borrow_mut();
        while let Some(message) = association.poll_message() {
            let size = message.payload.len() as u64;
            tally.deliver(now, size, DATA_HEADER * size.div_ceil(self.fragment));
            let delay = self
                .stamped
                .then(|| stamp(message.payload.parts()))
                .flatten();
            tally.message(delay.map(|sent| now.saturating_sub(sent)));
        }
        for sample in association.drain_trace() {
            tally.record(sample);
        }
    }
}

/// The most user data of a chunk over IPv4.
fn fragment(config: &Config) -> u64 {
    super::settings::sctp_chunk(config) - DATA_HEADER
}

/// The time at the beginning of a stamped message.
fn stamp(parts: &[Bytes]) -> Option<Nanos> {
    Some(u64::from_be_bytes(*parts.first()?.first_chunk::<8>()?))
}

impl Agent for Sink {
    fn handle_datagram(&mut self, now: Nanos, path: Path, datagram: Bytes) {
        self.endpoint.handle_datagram(now, path, datagram);
        self.take(now);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.endpoint.handle_timeout(now);
        self.take(now);
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, out)
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.endpoint.poll_timeout()
    }
}
