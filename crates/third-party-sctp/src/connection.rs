//! One end of an association. It has the driver interface of all transports in this project.

use std::collections::VecDeque;

use anabranch_transport::{Ecn, Nanos, Path, Transmit, Transport};
use anabranch_wire::checksum;
use bytes::{Bytes, BytesMut};

use crate::adapter::{Adapter, Role, StackState};
use crate::config::Config;
use crate::event::Event;
use crate::stack::Stack;
use crate::tag_rewrite::TagRewriter;

/// One end of an association of a third-party stack. Its input and output are SCTP packets.
pub struct Connection {
    end: Box<dyn Adapter>,
    translator: TagRewriter,
    /// Path to the peer; `None` while listening.
    path: Option<Path>,
    /// Whether the checksums of received packets are verified.
    checksum: bool,
    /// Messages that are passed to the stack together at the next poll.
    unsent: Vec<(u16, Bytes)>,
    /// Number of bytes in the messages of `unsent`.
    unsent_bytes: usize,
    closing: bool,
    shut: bool,
    failed: bool,
    events: VecDeque<Event>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("path", &self.path)
            .field("translator", &self.translator)
            .finish_non_exhaustive()
    }
}

/// Random seed, and properties of packets that the stack does not know.
#[derive(Clone, Copy, Debug)]
pub struct Outside {
    /// Ports, local port first.
    pub ports: [u16; 2],
    /// Length of the IP header, bytes.
    pub ip: u16,
    /// Whether checksums of received packets are verified.
    pub checksum: bool,
    /// Seed of the numbers that replace the random numbers of the stack.
    pub seed: [u8; 32],
}

impl Connection {
    /// Creates an end that connects along `path`. The first packet is returned by the next poll.
    ///
    /// # Errors
    /// Fails if the stack was not compiled in or rejects the configuration.
    pub fn connect(
        now: Nanos,
        stack: &Stack,
        config: &Config,
        path: Path,
        outside: &Outside,
    ) -> Result<Self, String> {
        let mut made = Self::new(now, stack, config, Role::Initiator, outside)?;
        made.path = Some(path);
        Ok(made)
    }

    /// Creates an end that waits for a peer.
    ///
    /// # Errors
    /// Fails if the stack was not compiled in or rejects the configuration.
    pub fn listen(stack: &Stack, config: &Config, outside: &Outside) -> Result<Self, String> {
        Self::new(0, stack, config, Role::Responder, outside)
    }

    fn new(
        now: Nanos,
        stack: &Stack,
        config: &Config,
        side: Role,
        outside: &Outside,
    ) -> Result<Self, String> {
        let missing = || {
            let name = stack.name;
            format!("{name} is not compiled in (feature `{name}`)")
        };
        let open = stack.open.ok_or_else(missing)?;
        Ok(Self {
            end: open(config, config.packet(outside.ip), side, now)?,
            translator: TagRewriter::new(outside.ports, outside.seed),
            path: None,
            checksum: outside.checksum,
            unsent: Vec::new(),
            unsent_bytes: 0,
            closing: false,
            shut: false,
            failed: false,
            events: VecDeque::new(),
        })
    }

    /// Whether messages can be sent.
    pub fn is_up(&self) -> bool {
        self.end.is_up()
    }

    /// Number of bytes in pending messages. Depending on the stack, these are not sent yet, or not
    /// acknowledged yet.
    pub fn buffered(&mut self) -> usize {
        self.end.buffered() + self.unsent_bytes
    }

    /// Queues a message to be sent at the next poll.
    pub fn send(&mut self, stream: u16, payload: Bytes) {
        self.unsent_bytes += payload.len();
        self.unsent.push((stream, payload));
    }

    /// Returns the next received message with its stream.
    pub fn receive(&mut self) -> Option<(u16, Vec<u8>)> {
        self.end.receive()
    }

    /// Shuts the association down after all data is acknowledged.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Internal state reported by the stack.
    pub fn facts(&mut self) -> StackState {
        self.end.facts()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        if !self.failed
            && !self.shut
            && let Some(reason) = self.end.failure()
        {
            self.failed = true;
            self.events.push_back(Event::Failed(reason));
        }
        self.events.pop_front()
    }

    /// Passes pending messages and the shutdown to the stack.
    fn settle(&mut self, now: Nanos) {
        if !self.end.is_up() || self.failed {
            return;
        }
        if !self.unsent.is_empty() {
            self.unsent_bytes = 0;
            let sent = self.end.send(now, std::mem::take(&mut self.unsent));
            if let Err(reason) = sent {
                self.failed = true;
                self.events.push_back(Event::Failed(reason));
            }
        } else if self.closing && !self.shut && self.end.buffered() == 0 {
            self.shut = true;
            self.end.shut_down(now);
        }
    }
}

impl Transport for Connection {
    fn handle_datagram(&mut self, now: Nanos, path: Path, _: Ecn, datagram: Bytes) {
        if self.checksum && !checksum::verify(&datagram) {
            return;
        }
        self.path.get_or_insert(path);
        let mut packet = BytesMut::from(datagram);
        let events = &mut self.events;
        self.translator
            .inward(&mut packet, &mut |event| events.push_back(event));
        self.end.take(now, packet.freeze());
    }

    fn handle_timeout(&mut self, now: Nanos) {
        if self.end.deadline().is_some_and(|due| due <= now) {
            self.end.expire(now);
        }
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        self.settle(now);
        let path = self.path?;
        let packet = self.end.give(now)?;
        let begin = out.len();
        out.extend_from_slice(&packet);
        let events = &mut self.events;
        self.translator
            .outward(&mut out[begin..], &mut |event| events.push_back(event));
        Some(Transmit {
            path,
            len: packet.len(),
            ecn: Ecn::NotEct,
            may_fragment: false,
        })
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.end.deadline()
    }
}
