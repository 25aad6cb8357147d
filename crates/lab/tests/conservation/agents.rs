//! Applications that know the sent data, and check the received data: order of messages within each
//! stream, and intact contents.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use anabranch_sctp::{
    Association, AssociationId, CloseReason, Endpoint, Event as SctpEvent, SendError, SendOptions,
};
use anabranch_sim::{Agent, Rng};
use anabranch_tcp::{Connection, Event as TcpEvent};
use anabranch_transport::{Ecn, Nanos, Path, Transmit, Transport};
use bytes::{BufMut, Bytes, BytesMut};

/// A message to be sent by an application.
#[derive(Clone, Copy)]
pub struct Offer {
    pub stream: u16,
    pub unordered: bool,
    pub size: usize,
}

/// State of a flow, shared by its two ends: messages to send, and their results.
pub struct Flow {
    pub name: String,
    pub offers: Vec<Offer>,
    /// Number of messages accepted by the transport.
    pub accepted: usize,
    /// True if the sender was notified that the association or connection was closed gracefully.
    pub finished: bool,
    /// The reason, if an end has reported a failure.
    pub failed: Option<String>,
    /// Which SCTP messages were received, by number.
    received: Vec<bool>,
    /// Number of bytes received from a TCP stream.
    pub bytes: usize,
    last: BTreeMap<u16, usize>,
}

pub type Shared = Rc<RefCell<Flow>>;

impl Flow {
    pub fn new(name: String, offers: Vec<Offer>) -> Shared {
        let received = vec![false; offers.len()];
        Rc::new(RefCell::new(Self {
            name,
            offers,
            accepted: 0,
            finished: false,
            failed: None,
            received,
            bytes: 0,
            last: BTreeMap::new(),
        }))
    }

    /// Number of received SCTP messages.
    pub fn received(&self) -> usize {
        self.received.iter().filter(|&&came| came).count()
    }

    pub fn total_bytes(&self) -> usize {
        self.offers.iter().map(|offer| offer.size).sum()
    }

    fn fail(&mut self, why: &impl std::fmt::Debug) {
        self.failed.get_or_insert(format!("{why:?}"));
    }

    /// Checks a received message: it was sent, was not received before, is in order within its
    /// stream, and is intact.
    fn take(&mut self, stream: u16, unordered: bool, payload: &Bytes) {
        let name = &self.name;
        assert!(
            payload.len() >= 4,
            "{name}: a message of {} bytes",
            payload.len()
        );
        let number = u32::from_be_bytes([payload[0], payload[1], payload[2], payload[3]]) as usize;
        let offer = self
            .offers
            .get(number)
            .unwrap_or_else(|| panic!("{name}: message {number} was never sent"));
        assert!(
            number < self.accepted,
            "{name}: message {number} was never sent"
        );
        assert_eq!(
            (offer.stream, offer.unordered),
            (stream, unordered),
            "{name}: message {number}"
        );
        assert_eq!(
            payload,
            &message(number, offer.size),
            "{name}: message {number} was altered"
        );
        assert!(
            !std::mem::replace(&mut self.received[number], true),
            "{name}: message {number} came twice"
        );
        if !unordered && let Some(before) = self.last.insert(stream, number) {
            assert!(
                before < number,
                "{name}: stream {stream}: {number} after {before}"
            );
        }
    }
}

/// Contents of a message, which depend on its number and on the offset.
pub fn message(number: usize, size: usize) -> Bytes {
    let mut bytes = BytesMut::with_capacity(size);
    bytes.put_u32(number as u32);
    bytes.extend(
        (4..size)
            .map(|place| (place.wrapping_mul(31) ^ number.wrapping_mul(7) ^ (place >> 8)) as u8),
    );
    bytes.freeze()
}

/// The byte at this offset of a TCP stream.
fn stream_byte(place: usize) -> u8 {
    (place.wrapping_mul(31) ^ (place >> 8).wrapping_mul(17) ^ (place >> 16)) as u8
}

pub fn secret(rng: &mut Rng) -> [u8; 32] {
    let mut secret = [0; 32];
    secret
        .chunks_exact_mut(8)
        .for_each(|word| word.copy_from_slice(&rng.bits().to_le_bytes()));
    secret
}

/// SCTP application that sends the messages of a flow, and shuts down after the last one.
pub struct SctpSource {
    pub endpoint: Endpoint,
    pub remote: Vec<IpAddr>,
    pub port: u16,
    pub association: Option<AssociationId>,
    pub flow: Shared,
}

impl SctpSource {
    fn work(&mut self, now: Nanos) {
        let mut flow = self.flow.borrow_mut();
        if let Some(association) = self
            .association
            .and_then(|id| self.endpoint.association_mut(id))
        {
            offer(now, association, &mut flow);
            if flow.accepted == flow.offers.len() && !association.is_closed() {
                association.shutdown(now, None).expect("it is open");
            }
        }
        while let Some((_, event)) = self.endpoint.poll_event() {
            match event {
                SctpEvent::Closed(CloseReason::Shutdown) => flow.finished = true,
                SctpEvent::Closed(reason) => flow.fail(&reason),
                _ => {}
            }
        }
    }
}

fn offer(now: Nanos, association: &mut Association, flow: &mut Flow) {
    while let Some(&Offer {
        stream,
        unordered,
        size,
    }) = flow.offers.get(flow.accepted)
    {
        let payload = message(flow.accepted, size);
        let options = SendOptions::on(stream)
            .with_ppid(7)
            .with_unordered(unordered);
        match association.send(now, payload, &options) {
            Ok(()) => flow.accepted += 1,
            Err(SendError::BufferFull | SendError::Closing) => return,
            Err(error) => panic!("{}: {error}", flow.name),
        }
    }
}

impl Agent for SctpSource {
    fn start(&mut self, now: Nanos) {
        let id = self
            .endpoint
            .connect(now, &self.remote, self.port)
            .expect("a peer to connect to");
        self.association = Some(id);
        self.work(now);
    }

    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        self.endpoint.handle_datagram(now, path, ecn, datagram);
        self.work(now);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.endpoint.handle_timeout(now);
        self.work(now);
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        let transmit = self.endpoint.poll_transmit(now, out);
        if transmit.is_none() {
            self.work(now);
            return self.endpoint.poll_transmit(now, out);
        }
        transmit
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.endpoint.poll_timeout()
    }
}

/// SCTP application that listens, and checks received messages.
pub struct SctpSink {
    pub endpoint: Endpoint,
    /// Whether the sink reads messages before they are complete.
    pub in_parts: bool,
    /// Received parts of incomplete messages by stream.
    pub begun: BTreeMap<u16, BytesMut>,
    pub flow: Shared,
}

impl SctpSink {
    fn work(&mut self) {
        let mut flow = self.flow.borrow_mut();
        let ids: Vec<AssociationId> = self.endpoint.associations().collect();
        for id in ids {
            let association = self.endpoint.association_mut(id).expect("it is listed");
            while self.in_parts
                && let Some(part) = association.poll_part()
            {
                let begun = self.begun.remove(&part.stream);
                assert_eq!(begun.is_none(), part.begins, "{}", flow.name);
                let mut bytes = begun.unwrap_or_default();
                bytes.extend_from_slice(&part.payload.into_bytes());
                if part.ends {
                    flow.take(part.stream, part.unordered, &bytes.freeze());
                } else {
                    self.begun.insert(part.stream, bytes);
                }
            }
            while !self.in_parts
                && let Some(message) = association.poll_message()
            {
                flow.take(
                    message.stream,
                    message.unordered,
                    &message.payload.into_bytes(),
                );
            }
        }
        while let Some((_, event)) = self.endpoint.poll_event() {
            if let SctpEvent::Closed(reason) = event
                && reason != CloseReason::Shutdown
            {
                flow.fail(&reason);
            }
        }
    }
}

impl Agent for SctpSink {
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        self.endpoint.handle_datagram(now, path, ecn, datagram);
        self.work();
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.endpoint.handle_timeout(now);
        self.work();
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, out)
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.endpoint.poll_timeout()
    }
}

/// TCP application that writes the bytes of a flow and then closes.
pub struct TcpSource {
    /// The connection to start, until it is started.
    pub connect: Option<Connection>,
    pub connection: Option<Connection>,
    /// Number of bytes written.
    pub written: usize,
    pub flow: Shared,
}

impl TcpSource {
    fn work(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        let mut flow = self.flow.borrow_mut();
        let mut connected = false;
        while let Some(event) = connection.poll_event() {
            match event {
                TcpEvent::Connected => connected = true,
                TcpEvent::Closed => flow.finished = true,
                TcpEvent::Failed(failure) => flow.fail(&failure),
                _ => {}
            }
        }
        // Not before the handshake is complete, because CLOSE would discard written data (RFC 9293
        // §3.10.4).
        let open = connected || flow.accepted > 0;
        while open && let Some(offer) = flow.offers.get(flow.accepted) {
            let bytes: BytesMut = (self.written..self.written + offer.size)
                .map(stream_byte)
                .collect();
            if connection.write(bytes.freeze()).is_err() {
                return;
            }
            self.written += offer.size;
            flow.accepted += 1;
        }
        if open {
            connection.close();
        }
    }
}

impl Agent for TcpSource {
    fn start(&mut self, _: Nanos) {
        self.connection = self.connect.take();
    }

    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        if let Some(connection) = &mut self.connection {
            connection.handle_datagram(now, path, ecn, datagram);
        }
        self.work();
    }

    fn handle_timeout(&mut self, now: Nanos) {
        if let Some(connection) = &mut self.connection {
            connection.handle_timeout(now);
        }
        self.work();
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        self.connection.as_mut()?.poll_transmit(now, out)
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.connection.as_ref()?.poll_timeout()
    }
}

/// TCP application that waits for its peer, checks every byte, and then closes.
pub struct TcpSink {
    pub connection: Connection,
    pub flow: Shared,
}

impl TcpSink {
    fn work(&mut self) {
        let mut flow = self.flow.borrow_mut();
        while let Some(bytes) = self.connection.read() {
            for byte in bytes {
                assert_eq!(
                    byte,
                    stream_byte(flow.bytes),
                    "{}: byte {} was altered",
                    flow.name,
                    flow.bytes
                );
                flow.bytes += 1;
            }
        }
        while let Some(event) = self.connection.poll_event() {
            match event {
                TcpEvent::PeerClosed => self.connection.close(),
                TcpEvent::Failed(failure) => flow.fail(&failure),
                _ => {}
            }
        }
    }
}

impl Agent for TcpSink {
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        self.connection.handle_datagram(now, path, ecn, datagram);
        self.work();
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.connection.handle_timeout(now);
        self.work();
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        self.connection.poll_transmit(now, out)
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.connection.poll_timeout()
    }
}
