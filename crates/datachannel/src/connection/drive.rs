//! What goes on between the layers, after each call from outside.

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
        anabranch_transport::Transport::handle_datagram(
            &mut self.sctp,
            now,
            path,
            Ecn::NotEct,
            packet,
        );
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

    /// Takes messages, as many as may wait.
    fn read(&mut self) {
        self.collect();
        while self.unread < MAX_UNREAD
            && let Some(association) = self
                .association
                .and_then(|id| self.sctp.association_mut(id))
            && let Some(message) = association.poll_message()
        {
            let bytes = message.payload.into_bytes();
            self.channels
                .handle_message(message.stream, message.ppid, bytes);
            self.collect();
        }
    }

    /// Makes events of what channels tell.
    fn collect(&mut self) {
        while let Some(event) = self.channels.poll_event() {
            if let ChannelEvent::Message(_, payload) = &event {
                self.unread += payload.len();
            }
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
        while let Some(outgoing) = self.sctp.poll_outgoing(now, &mut self.packet) {
            sent = true;
            let packet = self.packet.split_to(outgoing.transmit.len);
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
        self.channels.handle_end();
        self.collect();
        self.events.push_back(Event::Closed(reason));
    }
}
