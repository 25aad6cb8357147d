//! What goes on between the layers, after each call from outside.

use anabranch_sctp::{MessageBytes, ReconfigOutcome, StreamDirection};

use super::*;
use crate::channel::ppid;
use crate::dcep::is_open;

impl Connection {
    /// Lets each layer take what the others have for it, until nothing moves.
    pub(super) fn drive(&mut self, now: Nanos) {
        while !self.closed {
            let heard = match self.hear(now) {
                Ok(heard) => heard,
                Err(reason) => return self.end(reason),
            };
            self.tell();
            if self.closed {
                return;
            }
            let sent = match self.say(now) {
                Ok(sent) => sent,
                Err(reason) => return self.end(reason),
            };
            self.collect();
            if !heard && !sent {
                return;
            }
        }
    }

    /// What DTLS has: datagrams go out, what they held goes to SCTP. Whether there was something.
    fn hear(&mut self, now: Nanos) -> Result<bool, Closed> {
        let mut heard = false;
        while let Some(output) = self.dtls.poll()? {
            heard = true;
            match output {
                crate::dtls::Output::Datagram(bytes) => self.transmit(bytes),
                crate::dtls::Output::Data(bytes) => self.handle_packet(now, bytes),
                crate::dtls::Output::Connected => self.begin(now),
                crate::dtls::Output::Closed => return Err(Closed::ByPeer),
            }
        }
        Ok(heard)
    }

    fn handle_packet(&mut self, now: Nanos, packet: Bytes) {
        let path = Path::new(HERE, THERE);
        self.sctp.handle_datagram(now, path, Ecn::NotEct, packet);
    }

    /// Both ends begin an association, and it is one (RFC 8841 §9.2; RFC 9260 §5.2.1).
    fn begin(&mut self, now: Nanos) {
        // Unless the peer has begun it already.
        if let Ok(id) = self.sctp.connect(now, &[THERE], self.sctp_port) {
            self.association = Some(id);
        }
    }

    /// What SCTP tells, and the messages it has.
    fn tell(&mut self) {
        while let Some((id, event)) = self.sctp.poll_event() {
            match event {
                anabranch_sctp::Event::Established {
                    outbound_streams,
                    inbound_streams,
                } => {
                    self.association = Some(id);
                    self.channels.handle_up(outbound_streams, inbound_streams);
                    self.events.push_back(Event::Connected);
                }
                anabranch_sctp::Event::MessageAbandoned(message) => {
                    if let Some(stream) = message.stream {
                        self.channels.handle_abandoned(stream);
                    }
                }
                // Some of them may have told of messages that were given up.
                anabranch_sctp::Event::Missed { .. } => self.channels.handle_sent_any(),
                anabranch_sctp::Event::StreamsReset {
                    direction,
                    streams,
                    outcome,
                } => self.hear_of_reset(direction, &streams, outcome),
                anabranch_sctp::Event::StreamsAdded {
                    outbound_streams,
                    inbound_streams,
                    ..
                } => self
                    .channels
                    .handle_added(outbound_streams, inbound_streams),
                // The peer's channels are all gone: a connection is one association long (RFC 8831 §6.2).
                anabranch_sctp::Event::Restarted { .. } => {
                    return self.end(Closed::Association(
                        anabranch_sctp::CloseReason::AbortedByPeer { cause: None },
                    ));
                }
                anabranch_sctp::Event::Closed(reason) if self.association == Some(id) => {
                    self.read();
                    return self.end(match reason {
                        anabranch_sctp::CloseReason::AbortedHere => Closed::Here,
                        reason => Closed::Association(reason),
                    });
                }
                _ => {}
            }
        }
        self.read();
    }

    /// Streams were reset, or were not. Of those that come from the peer it counts once all messages before it are read.
    fn hear_of_reset(
        &mut self,
        direction: StreamDirection,
        streams: &[u16],
        outcome: ReconfigOutcome,
    ) {
        let performed = outcome == ReconfigOutcome::Performed;
        // None listed: all (RFC 6525 §4.1). This side never asks for that.
        let all = match direction {
            StreamDirection::Incoming if performed && streams.is_empty() => {
                self.channels.take_all_reset()
            }
            _ => Vec::new(),
        };
        for &stream in streams.iter().chain(&all) {
            match direction {
                StreamDirection::Outgoing if performed => self.channels.handle_reset_done(stream),
                StreamDirection::Outgoing => self.channels.handle_reset_refused(stream),
                StreamDirection::Incoming if performed => drop(self.resets.insert(stream)),
                StreamDirection::Incoming => {}
            }
        }
    }

    /// The peer's resets count now.
    fn settle_resets(&mut self) {
        while let Some(stream) = self.resets.pop_first() {
            self.channels.handle_reset(stream);
        }
        self.collect();
    }

    /// Takes messages, as many as may wait.
    fn read(&mut self) {
        self.read_up_to(MAX_UNREAD);
    }

    fn read_up_to(&mut self, most: usize) {
        self.collect();
        while self.unread < most
            && let Some(association) = self
                .association
                .and_then(|id| self.sctp.association_mut(id))
            && let Some(message) = association.poll_message()
        {
            let bytes = own(message.payload);
            // Another channel on the stream: what was before it is read.
            if opens(message.ppid, &bytes) && self.resets.remove(&message.stream) {
                self.channels.handle_reset(message.stream);
            }
            self.channels
                .handle_message(message.stream, message.ppid, bytes);
            self.collect();
        }
        if self.unread < most && !self.resets.is_empty() {
            self.settle_resets();
        }
    }

    /// Makes events of what channels tell.
    fn collect(&mut self) {
        while let Some(event) = self.channels.take_event() {
            self.unread += event.held();
            self.events.push_back(Event::Channel(event));
        }
    }

    /// Channels give to SCTP, and SCTP to DTLS. Whether a packet went.
    fn say(&mut self, now: Nanos) -> Result<bool, Closed> {
        if let Some(association) = self
            .association
            .and_then(|id| self.sctp.association_mut(id))
        {
            self.channels.pump(now, association);
        }
        let mut sent = false;
        while let Some(transmit) = self.sctp.poll_transmit(now, &mut self.packet) {
            sent = true;
            let packet = self.packet.split_to(transmit.len);
            for stream in streams_of(&packet) {
                self.channels.handle_sent(stream);
            }
            self.dtls.send(&packet)?;
            // One at a time: DTLS keeps few.
            self.hear(now)?;
        }
        Ok(sent)
    }

    fn transmit(&mut self, bytes: Bytes) {
        if let Some(remote) = self.ice.remote() {
            self.transmits.push_back((remote, bytes));
        }
    }

    /// Ends all of it.
    pub(super) fn end(&mut self, reason: Closed) {
        if self.closed {
            return;
        }
        self.closed = true;
        self.dtls.close();
        while let Ok(Some(output)) = self.dtls.poll() {
            if let crate::dtls::Output::Datagram(bytes) = output {
                self.transmit(bytes);
            }
        }
        // What the peer was told that it arrived is read, too: as much as the receive buffer holds.
        self.read_up_to(usize::MAX);
        self.channels.handle_end();
        self.collect();
        self.events.push_back(Event::Closed(reason));
    }
}

/// The longest message that is copied out of the packet that it came in, bytes: a longer one is a quarter of the longest record at least.
const COPIED: usize = 16 << 10;

/// A message in memory that it does not share: a short one would keep its whole packet as long as nobody reads it.
fn own(message: MessageBytes) -> Bytes {
    match message {
        MessageBytes::One(bytes) if bytes.len() < COPIED => Bytes::copy_from_slice(&bytes),
        message => message.into_bytes(),
    }
}

/// The streams that a packet of ours carries data of: its chunks DATA and I-DATA name theirs at the same place (RFC 9260 §3.3.1,
/// RFC 8260 §2.1).
fn streams_of(packet: &[u8]) -> impl Iterator<Item = u16> {
    let mut rest = packet.get(12..).unwrap_or_default();
    let chunk = move || {
        let &[kind, _, high, low, ..] = rest else {
            return None;
        };
        let stream = match (kind, rest.get(8..10)) {
            (0 | 64, Some(&[high, low])) => Some(u16::from_be_bytes([high, low])),
            _ => None,
        };
        let length = usize::from(u16::from_be_bytes([high, low])).max(4);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(stream)
    };
    std::iter::from_fn(chunk).flatten()
}

/// Whether a message is a DATA_CHANNEL_OPEN, well-formed or not.
fn opens(ppid: u32, bytes: &Bytes) -> bool {
    ppid == ppid::DCEP && is_open(bytes)
}
