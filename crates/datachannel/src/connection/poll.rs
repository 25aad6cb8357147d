//! Moves data between the layers, after each call of the user.

use anabranch_sctp::{
    Association, AssociationState, Interest, MessageBytes, Output, ReconfigOutcome, StreamDirection,
};

use super::*;

impl Connection {
    /// Lets each layer process the output of the others, until no layer has output.
    pub(super) fn drive(&mut self, now: Nanos) {
        while !self.closed {
            let polled = match self.poll_dtls(now) {
                Ok(polled) => polled,
                Err(reason) => return self.end(reason),
            };
            self.poll_sctp();
            if self.closed {
                return;
            }
            let sent = match self.send_packets(now) {
                Ok(sent) => sent,
                Err(reason) => return self.end(reason),
            };
            self.collect_events();
            if !polled && !sent {
                return;
            }
        }
    }

    /// Processes the output of DTLS: sends datagrams, and passes their content to SCTP. Returns
    /// whether there was any.
    fn poll_dtls(&mut self, now: Nanos) -> Result<bool, Closed> {
        let mut polled = false;
        while let Some(output) = self.dtls.poll()? {
            polled = true;
            match output {
                crate::dtls::Output::Datagram(bytes) => self.transmit(bytes),
                crate::dtls::Output::Data(bytes) => self.handle_packet(now, bytes),
                crate::dtls::Output::Connected => self.connect(now),
                crate::dtls::Output::Closed => return Err(Closed::ByPeer),
            }
        }
        Ok(polled)
    }

    fn handle_packet(&mut self, now: Nanos, packet: Bytes) {
        let path = Path::new(LOCAL_ADDRESS, REMOTE_ADDRESS);
        self.sctp.handle_datagram(now, path, Ecn::NotEct, packet);
    }

    /// Starts the association. Both ends do so, and the two INITs result in one association (RFC
    /// 8841 §9.2; RFC 9260 §5.2.1).
    fn connect(&mut self, now: Nanos) {
        // Fails if the peer has already started the association.
        if let Ok(id) = self.sctp.connect(now, &[REMOTE_ADDRESS], self.sctp_port) {
            self.association = Some(id);
        }
    }

    /// Processes the output of SCTP in order.
    fn poll_sctp(&mut self) {
        while let Some((id, association)) = self.sctp.poll_ready() {
            if self.association.is_none() || association.state() == AssociationState::Established {
                association.report_sent();
                self.association = Some(id);
            }
        }
        let association = self.association.and_then(|id| self.sctp.association(id));
        let most = match association.is_some_and(Association::is_closed) {
            // After the end, everything up to the size of the receive buffer is read, because the
            // peer got an acknowledgement for it.
            true => usize::MAX,
            false => MAX_UNREAD,
        };
        if let Some(reason) = self.read_up_to(most) {
            self.end(reason);
        }
    }

    /// Reads from SCTP until this many bytes are unpolled. Returns why the association ended, if it
    /// did.
    fn read_up_to(&mut self, most: usize) -> Option<Closed> {
        const OUTPUTS: Interest = Interest::MESSAGES.and(Interest::EVENTS);
        self.collect_events();
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
                // Not requested.
                Output::MessagePart(_) | Output::Writable | Output::Sent { .. } => {}
            }
            self.collect_events();
        }
        None
    }

    /// Processes an event of SCTP. Returns why the connection ended, if it did.
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
            // The missed events may have reported abandoned messages.
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
            // A connection ends with its association, because a restarted peer has lost all
            // channels (RFC 8831 §6.2).
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
            | E::PeerAuthenticated(_)
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

    /// Processes the result of a stream reset.
    fn handle_reset(
        &mut self,
        direction: StreamDirection,
        streams: &[u16],
        outcome: ReconfigOutcome,
    ) {
        let performed = outcome == ReconfigOutcome::Performed;
        // An empty list means all streams (RFC 6525 §4.1). This end never sends such a request.
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

    /// Converts events of channels to events of the connection.
    fn collect_events(&mut self) {
        while let Some(event) = self.channels.take_event() {
            self.unread += event.held();
            self.events.push_back(Event::Channel(event));
        }
    }

    /// Passes data from the channels to SCTP, and packets from SCTP to DTLS. Returns whether a
    /// packet was sent.
    fn send_packets(&mut self, now: Nanos) -> Result<bool, Closed> {
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
            self.mark_sent();
            self.dtls.send(&packet)?;
            // Packets are passed one at a time, because DTLS queues only a few.
            self.poll_dtls(now)?;
        }
        Ok(sent)
    }

    /// Marks the channels whose data was sent.
    fn mark_sent(&mut self) {
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

    /// Ends the connection.
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
        // Everything up to the size of the receive buffer is read, because the peer got an
        // acknowledgement for it.
        let _ = self.read_up_to(usize::MAX);
        self.channels.handle_end();
        self.collect_events();
        self.events.push_back(Event::Closed(reason));
    }
}

/// Maximum size of a message that is copied out of its packet, bytes. A longer message fills at
/// least a quarter of the largest record.
const MAX_COPIED: usize = 16 << 10;

/// Copies a short message to separate memory, because it would otherwise keep its whole packet in
/// memory while it is unread.
fn own(message: MessageBytes) -> Bytes {
    match message {
        MessageBytes::One(bytes) if bytes.len() < MAX_COPIED => Bytes::copy_from_slice(&bytes),
        message => message.into_bytes(),
    }
}
