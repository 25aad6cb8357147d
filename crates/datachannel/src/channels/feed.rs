//! Handing messages to the association, and closing channels.
//!
//! Which channel's bytes go next is decided there, where the pieces of large messages can come between each other (RFC 8260 §3.6). What
//! is handed over early costs nothing but memory, and can no longer be dropped; so each channel has a little there. Of large messages
//! all together are no more than a receiver holds: where the pieces of more than that come between each other, none ends.

use anabranch_transport::Nanos;

use super::one::State;
use super::{ChannelEvent, Channels};
use crate::carrier::{Carrier, Outgoing, Refused};
use crate::channel::{Reliability, ppid};

/// Bytes of large messages that are under way at a time, unless it is a single one: half of what a receiver holds at least.
const MAX_LARGE: usize = 1 << 20;

impl Channels {
    /// Hands the carrier what it can take, and closes what is to be closed. To be called after every other call, and whenever
    /// the carrier has sent something, of which [`Channels::handle_sent`] tells.
    pub fn pump(&mut self, now: Nanos, carrier: &mut impl Carrier) {
        self.settle(carrier);
        self.abandon(now);
        while self.streams.is_some() {
            let Some(stream) = self.next_to_hand() else {
                break;
            };
            if !self.hand(now, stream, carrier) {
                break;
            }
        }
        self.reset_closing(carrier);
        self.reset_refused(carrier);
        self.take_turns(now);
    }

    /// The channel whose first message finishes first, where each has its priority's share (RFC 8831 §6.4), of those that may hand
    /// over one. A large one that does not fit holds up the other large ones, lest they go before it for ever.
    fn next_to_hand(&self) -> Option<u16> {
        let [small, large] = &self.ready.turns;
        let large = large.first().filter(|&&(_, stream)| {
            let first = self.table.get(&stream).and_then(|it| it.queue.front());
            self.large == 0 || first.is_some_and(|it| self.large + it.large() <= MAX_LARGE)
        });
        let next = [small.first(), large].into_iter().flatten().min();
        next.map(|&(_, stream)| stream)
    }

    /// Hands over the stream's first message; `false` if the carrier takes none now.
    fn hand(&mut self, now: Nanos, stream: u16, carrier: &mut impl Carrier) -> bool {
        let Some(channel) = self.table.get_mut(&stream) else {
            return false;
        };
        let Some(next) = channel.queue.front() else {
            return false;
        };
        let finish = channel.finish_of(next);
        // Until the peer knows the channel, nothing may overtake the DATA_CHANNEL_OPEN (RFC 8832 §6); and that is reliable.
        let control = next.ppid == ppid::DCEP;
        let unordered = !control && !channel.options.ordered && channel.state != State::Opening;
        let outgoing = Outgoing {
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
        if !channel.weighed {
            carrier.set_weight(stream, channel.weight());
            channel.weighed = true;
        }
        let sent = carrier.send(now, outgoing);
        match sent {
            Ok(()) => {
                channel.finish = finish;
                self.served = self.served.max(finish);
                self.large += channel.hand_first();
            }
            Err(Refused::Full) => {}
            Err(Refused::Closing) => channel.drop_queue(),
        }
        self.list(stream);
        sent.is_ok()
    }

    /// What the carrier has no more is sent, or given up.
    fn settle(&mut self, carrier: &impl Carrier) {
        while let Some(stream) = self.ready.sent.pop_first() {
            let Some(channel) = self.table.get_mut(&stream) else {
                continue;
            };
            let before = channel.buffered();
            self.large -= channel.handed.settle(carrier.buffered(stream));
            self.tell_low(stream, before);
        }
    }

    /// Gives up what waited too long. What the carrier has is its own business.
    fn abandon(&mut self, now: Nanos) {
        while let Some(&(deadline, stream)) = self.ready.aging.first()
            && deadline <= now
            && let Some(channel) = self.table.get_mut(&stream)
        {
            let before = channel.buffered();
            let abandoned = channel.abandon(now);
            let event = ChannelEvent::Abandoned(channel.id);
            self.events.extend((0..abandoned).map(|_| event.clone()));
            self.tell_low(stream, before);
        }
    }

    /// `bufferedAmount` of the stream's channel was `before`, and may have fallen to the low mark.
    fn tell_low(&mut self, stream: u16, before: usize) {
        if let Some(channel) = self.table.get(&stream)
            && channel.fell_to_low(before)
        {
            let low = ChannelEvent::BufferedAmountLow(channel.id);
            self.events.push_back(low);
        }
        self.list(stream);
    }

    /// Resets the streams of channels that close and have nothing left to hand over.
    fn reset_closing(&mut self, carrier: &mut impl Carrier) {
        while let Some(&stream) = self.ready.closing.first()
            && let Some(channel) = self.table.get_mut(&stream)
        {
            // Before the association is up the peer knows of nothing.
            if self.streams.is_none() {
                self.end(stream);
            } else if carrier.reset(stream).is_ok() {
                channel.reset_asked = true;
                self.list(stream);
            } else if channel.handed.is_empty() {
                // The peer cannot be told. Its half stays open, so the stream cannot be used again.
                self.spent.insert(stream);
                self.end(stream);
            } else {
                channel.reset_refused = true;
                self.list(stream);
            }
        }
    }
}
