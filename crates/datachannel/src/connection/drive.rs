//! What goes on between the layers, after each call from outside.

use anabranch_sctp::{
    Association, Interest, MessageBytes, Output, ReconfigOutcome, StreamDirection,
};

use super::*;

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

    /// What SCTP has for this side, in its order.
    fn tell(&mut self) {
        while let Some((id, association)) = self.sctp.poll_ready() {
            if self.association.is_none() || association.is_established() {
                association.report_sent();
                self.association = Some(id);
            }
        }
        let association = self.association.and_then(|id| self.sctp.association(id));
        let most = match association.is_some_and(Association::is_closed) {
            // What the peer was told that it arrived is read, too: as much as the receive buffer holds.
            true => usize::MAX,
            false => MAX_UNREAD,
        };
        if let Some(reason) = self.read_up_to(most) {
            self.end(reason);
        }
    }

    /// Takes what SCTP has, until so many bytes wait to be polled. Gives why that is over, if it is.
    fn read_up_to(&mut self, most: usize) -> Option<Closed> {
        const OUTPUTS: Interest = Interest::MESSAGES.and(Interest::EVENTS);
        self.collect();
        while self.unread < most
            && let Some(association) = self
                .association
                .and_then(|id| self.sctp.association_mut(id))
            && let Some(output) = association.poll_output(OUTPUTS)
        {
            match output {
                Output::Message(message) => {
                    let bytes = own(message.payload);
                    self.channels
                        .handle_message(message.stream, message.ppid, bytes);
                }
                Output::Event(event) => {
                    let ended = self.handle_event(event);
                    if ended.is_some() {
                        return ended;
                    }
                }
                // Nobody asked for them.
                Output::MessagePart(_) | Output::Writable | Output::Sent { .. } => {}
            }
            self.collect();
        }
        None
    }

    /// An event of SCTP's. Gives why the connection is over, if it is.
    fn handle_event(&mut self, event: anabranch_sctp::Event) -> Option<Closed> {
        use anabranch_sctp::{CloseReason, Event as E};
        match event {
            E::Established {
                outbound_streams,
                inbound_streams,
            } => {
                self.channels
                    .handle_established(outbound_streams, inbound_streams);
                self.events.push_back(Event::Connected);
            }
            E::MessageAbandoned(message) => {
                if let Some(stream) = message.stream {
                    self.channels.handle_abandoned(stream);
                }
            }
            // Some of them may have told of messages that were given up.
            E::Missed { .. } => self.channels.handle_sent_any(),
            E::StreamsReset {
                direction,
                streams,
                outcome,
            } => self.handle_reset(direction, &streams, outcome),
            E::StreamsAdded {
                outbound_streams,
                inbound_streams,
                ..
            } => self
                .channels
                .handle_streams_added(outbound_streams, inbound_streams),
            // The peer's channels are all gone: a connection is one association long (RFC 8831 §6.2).
            E::Restarted { .. } => {
                return Some(Closed::Association(CloseReason::AbortedByPeer {
                    cause: None,
                }));
            }
            E::Closed(CloseReason::AbortedHere) => return Some(Closed::Here),
            E::Closed(reason) => return Some(Closed::Association(reason)),
            E::PathChanged { .. }
            | E::PrimaryChanged { .. }
            | E::KeysRequired(_)
            | E::RestartKeys
            | E::PeerError { .. }
            | E::PartialDeliveryAborted { .. }
            | E::SendFailed { .. }
            | E::MessageUndelivered(_)
            | E::Receipt { .. }
            | E::AssociationReset { .. }
            | E::AdaptationIndication { .. }
            | E::PeerAddressAdded { .. }
            | E::PeerAddressRemoved { .. }
            | E::AddressChanged { .. }
            | E::PeerAuthKey { .. }
            | E::StreamLimitMet { .. }
            | E::PeerShutdown => {}
        }
        None
    }

    /// Streams were reset, or were not.
    fn handle_reset(
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
                StreamDirection::Incoming if performed => self.channels.handle_reset(stream),
                StreamDirection::Incoming => {}
            }
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
            self.note_sent();
            self.dtls.send(&packet)?;
            // One at a time: DTLS keeps few.
            self.hear(now)?;
        }
        Ok(sent)
    }

    /// Of the channels of which something was sent less waits.
    fn note_sent(&mut self) {
        let association = self.association;
        let association = association.and_then(|id| self.sctp.association_mut(id));
        if let Some(association) = association {
            while let Some(Output::Sent { stream }) = association.poll_output(Interest::SENT) {
                self.channels.handle_sent(stream);
            }
        }
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
        let _ = self.read_up_to(usize::MAX);
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
