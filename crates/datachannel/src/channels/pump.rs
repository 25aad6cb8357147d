//! Passes messages to the association, and resets the streams of closing channels.
//!
//! The association schedules the channels' data, because it can interleave fragments of large
//! messages (RFC 8260 §3.6). Messages in the transport use memory and can no longer be dropped, so
//! each channel passes only a little data ahead. The total size of large messages in the transport
//! is limited, because their interleaved fragments could otherwise fill the receive buffer without
//! completing any message.

use anabranch_transport::Nanos;

use super::channel_state::State;
use super::{ChannelEvent, Channels};
use crate::channel::{Reliability, ppid};
use crate::sctp_transport::{OutgoingMessage, SctpTransport, SendRefused};

/// Limit on the total size of large messages in transmission, bytes: half of the minimum receive
/// buffer. A single message may exceed it.
const MAX_LARGE: usize = 1 << 20;

impl Channels {
    /// Passes messages to the transport while it accepts them, and resets the streams of closing
    /// channels. Must be called after every call of another method, and, after
    /// [`Channels::handle_sent`], whenever the transport has sent data.
    pub fn pump(&mut self, now: Nanos, transport: &mut impl SctpTransport) {
        self.settle(transport);
        self.abandon(now);
        while self.streams.is_some() {
            let Some(stream) = self.next_to_send() else {
                break;
            };
            if !self.pass_on(now, stream, transport) {
                break;
            }
        }
        self.reset_closing(transport);
        self.reset_refused(transport);
        self.grant_reservations(now);
    }

    /// Selects, among channels with a queued message, the one whose first message has the earliest
    /// virtual finish time, weighted by priority (RFC 8831 §6.4). A large message that does not fit
    /// the limit blocks other large messages, so that it does not starve.
    fn next_to_send(&self) -> Option<u16> {
        let [small, large] = &self.ready.by_finish_time;
        let large = large.first().filter(|&&(_, stream)| {
            let first = self.table.get(&stream).and_then(|it| it.queue.front());
            self.large == 0 || first.is_some_and(|it| self.large + it.large() <= MAX_LARGE)
        });
        let next = [small.first(), large].into_iter().flatten().min();
        next.map(|&(_, stream)| stream)
    }

    /// Passes the first queued message of the stream to the transport; `false` if the transport
    /// does not accept it now.
    fn pass_on(&mut self, now: Nanos, stream: u16, transport: &mut impl SctpTransport) -> bool {
        let Some(channel) = self.table.get_mut(&stream) else {
            return false;
        };
        let Some(next) = channel.queue.front() else {
            return false;
        };
        let finish = channel.finish_of(next);
        // Until the peer has acknowledged the channel, messages are sent ordered so that none
        // overtakes the DATA_CHANNEL_OPEN (RFC 8832 §6).
        let control = next.ppid == ppid::DCEP;
        let unordered = !control && !channel.options.ordered && channel.state != State::Opening;
        let outgoing = OutgoingMessage {
            stream,
            ppid: next.ppid,
            unordered,
            deadline: next.deadline(),
            max_retransmits: match channel.options.reliability {
                Reliability::MaxRetransmits(retransmits) if !control => Some(retransmits),
                _ => None,
            },
            payload: next.payload.clone(),
        };
        if !channel.weight_set {
            transport.set_weight(stream, channel.weight());
            channel.weight_set = true;
        }
        let sent = transport.send(now, outgoing);
        match sent {
            Ok(()) => {
                channel.finish = finish;
                self.served = self.served.max(finish);
                self.large += channel.move_first_to_transport();
            }
            Err(SendRefused::Full) => {}
            Err(SendRefused::Closing) => channel.drop_queue(),
        }
        self.update_ready(stream);
        sent.is_ok()
    }

    /// Updates the channels whose messages the transport has sent or abandoned.
    fn settle(&mut self, transport: &impl SctpTransport) {
        while let Some(stream) = self.ready.sent.pop_first() {
            let Some(channel) = self.table.get_mut(&stream) else {
                continue;
            };
            let before = channel.buffered();
            self.large -= channel.in_flight.settle(transport.buffered(stream));
            self.emit_if_low(stream, before);
        }
    }

    /// Abandons queued messages that have expired. Messages that were passed to the transport
    /// expire there.
    fn abandon(&mut self, now: Nanos) {
        while let Some(&(deadline, stream)) = self.ready.by_deadline.first()
            && deadline <= now
            && let Some(channel) = self.table.get_mut(&stream)
        {
            let before = channel.buffered();
            let abandoned = channel.abandon(now);
            let event = ChannelEvent::Abandoned(channel.id);
            self.events.extend((0..abandoned).map(|_| event.clone()));
            self.emit_if_low(stream, before);
        }
    }

    /// Emits an event if `bufferedAmount` of the stream's channel, which was `before`, fell to the
    /// low threshold.
    fn emit_if_low(&mut self, stream: u16, before: usize) {
        if let Some(channel) = self.table.get(&stream)
            && channel.fell_to_low(before)
        {
            let low = ChannelEvent::BufferedAmountLow(channel.id);
            self.events.push_back(low);
        }
        self.update_ready(stream);
    }

    /// Resets the streams of closing channels whose messages were all passed to the transport.
    fn reset_closing(&mut self, transport: &mut impl SctpTransport) {
        while let Some(&stream) = self.ready.closing.first()
            && let Some(channel) = self.table.get_mut(&stream)
        {
            // Before the association is established the peer knows of no channel, so no reset is
            // needed.
            if self.streams.is_none() {
                self.end(stream);
            } else if transport.reset(stream).is_ok() {
                channel.reset_requested = true;
                self.update_ready(stream);
            } else if channel.in_flight.is_empty() {
                // Without RE-CONFIG the peer cannot be notified. The outgoing stream is not reset,
                // so the stream cannot be used again.
                self.unusable.insert(stream);
                self.end(stream);
            } else {
                channel.reset_refused = true;
                self.update_ready(stream);
            }
        }
    }
}
