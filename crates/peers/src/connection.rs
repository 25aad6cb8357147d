//! One end of an association, driven as every transport of the project is.

use std::collections::VecDeque;

use anabranch_transport::{Ecn, Nanos, Path, Transmit, Transport};
use anabranch_wire::checksum;
use bytes::{Bytes, BytesMut};

use crate::config::Config;
use crate::end::{End, Facts, Side};
use crate::event::Event;
use crate::stack::Stack;
use crate::translate::Translator;

/// One end of an association of a foreign stack. What it takes and gives are SCTP packets.
pub struct Connection {
    end: Box<dyn End>,
    translator: Translator,
    /// From here to the peer; unknown to an end that waits until it hears of one.
    path: Option<Path>,
    /// Checksums of packets are verified.
    checksum: bool,
    /// What is handed over together when the stack is asked next.
    unsent: Vec<(u16, Bytes)>,
    /// Bytes of it.
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

/// What is drawn, and what packets look like outside.
#[derive(Clone, Copy, Debug)]
pub struct Outside {
    /// The ports, this end's first.
    pub ports: [u16; 2],
    /// Bytes of the IP header.
    pub ip: u16,
    /// Checksums of arriving packets are verified.
    pub checksum: bool,
    /// What stands in place of what the stack draws.
    pub seed: [u8; 32],
}

impl Connection {
    /// An end that connects along `path`. What it sends first waits to be polled.
    ///
    /// # Errors
    /// The stack was not compiled in, or refuses.
    pub fn connect(
        now: Nanos,
        stack: &Stack,
        config: &Config,
        path: Path,
        outside: &Outside,
    ) -> Result<Self, String> {
        let mut made = Self::new(now, stack, config, Side::Connects, outside)?;
        made.path = Some(path);
        Ok(made)
    }

    /// An end that waits for a peer.
    ///
    /// # Errors
    /// The stack was not compiled in, or refuses.
    pub fn listen(stack: &Stack, config: &Config, outside: &Outside) -> Result<Self, String> {
        Self::new(0, stack, config, Side::Waits, outside)
    }

    fn new(
        now: Nanos,
        stack: &Stack,
        config: &Config,
        side: Side,
        outside: &Outside,
    ) -> Result<Self, String> {
        let missing = || {
            let name = stack.name;
            format!("{name} is not compiled in (feature `{name}`)")
        };
        let open = stack.open.ok_or_else(missing)?;
        Ok(Self {
            end: open(config, config.packet(outside.ip), side, now)?,
            translator: Translator::new(outside.ports, outside.seed),
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

    /// Whether messages may be sent.
    pub fn is_up(&self) -> bool {
        self.end.is_up()
    }

    /// Bytes of messages that wait, as the stack counts them: not sent yet, or not acknowledged yet.
    pub fn buffered(&mut self) -> usize {
        self.end.buffered() + self.unsent_bytes
    }

    /// Sends a message when the connection is polled next.
    pub fn send(&mut self, stream: u16, payload: Bytes) {
        self.unsent_bytes += payload.len();
        self.unsent.push((stream, payload));
    }

    /// The next message that arrived, with its stream.
    pub fn receive(&mut self) -> Option<(u16, Vec<u8>)> {
        self.end.receive()
    }

    /// Ends the association when everything was acknowledged.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// What the stack tells of itself.
    pub fn facts(&mut self) -> Facts {
        self.end.facts()
    }

    /// What happened since it was asked last.
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

    /// Hands over what waits, and the end of it.
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
