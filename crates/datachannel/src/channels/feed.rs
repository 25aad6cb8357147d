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

/// Bytes of a channel that wait in the association: enough that it never starves.
const FEED: usize = 64 << 10;
/// Bytes of large messages that are under way at a time, unless it is a single one: half of what a receiver holds at least.
const MAX_LARGE: usize = 1 << 20;

impl Channels {
    /// Hands the carrier what it can take, and closes what is to be closed. To be called after every other call, and whenever
    /// the carrier has sent something.
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
    }

    /// The channel whose first message finishes first, where each has its priority's share (RFC 8831 §6.4), of those that may hand
    /// over one.
    fn next_to_hand(&self) -> Option<u16> {
        let waiting = self.table.iter().filter_map(|(&stream, channel)| {
            let next = channel.queue.front()?;
            let large = next.large();
            let fits = large == 0 || self.large == 0 || self.large + large <= MAX_LARGE;
            let due = fits && channel.handed.left() < FEED;
            due.then(|| (channel.finish_of(next), stream))
        });
        waiting.min().map(|(_, stream)| stream)
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
        match carrier.send(now, outgoing) {
            Ok(()) => {
                channel.finish = finish;
                self.served = self.served.max(finish);
                self.large += channel.hand_first();
                true
            }
            Err(Refused::Full) => false,
            Err(Refused::Closing) => {
                channel.drop_queue();
                false
            }
        }
    }

    /// What the carrier has no more is sent, or given up.
    fn settle(&mut self, carrier: &impl Carrier) {
        for (&stream, channel) in &mut self.table {
            if channel.handed.is_empty() {
                continue;
            }
            let before = channel.buffered();
            self.large -= channel.handed.settle(carrier.buffered(stream));
            if channel.fell_to_low(before) {
                let low = ChannelEvent::BufferedAmountLow(channel.id);
                self.events.push_back(low);
            }
        }
    }

    /// Gives up what waited too long. What the carrier has is its own business.
    fn abandon(&mut self, now: Nanos) {
        for channel in self.table.values_mut() {
            let before = channel.buffered();
            for _ in 0..channel.abandon(now) {
                self.events.push_back(ChannelEvent::Abandoned(channel.id));
            }
            if channel.fell_to_low(before) {
                let low = ChannelEvent::BufferedAmountLow(channel.id);
                self.events.push_back(low);
            }
        }
    }

    /// Resets the streams of channels that close and have nothing left to hand over.
    fn reset_closing(&mut self, carrier: &mut impl Carrier) {
        let due: Vec<u16> = self
            .table
            .iter()
            .filter(|(_, it)| it.state == State::Closing && !it.reset_asked && it.queue.is_empty())
            .map(|(&stream, _)| stream)
            .collect();
        for stream in due {
            // Before the association is up the peer knows of nothing.
            let known = self.streams.is_some();
            let channel = self.table.get_mut(&stream);
            if known && carrier.reset(stream).is_ok() {
                if let Some(channel) = channel {
                    channel.reset_asked = true;
                }
            } else if known {
                // The peer cannot be told. Its half stays open, so the stream cannot be used again.
                if channel.is_some_and(|it| !it.handed.is_empty()) {
                    continue;
                }
                self.spent.insert(stream);
                self.end(stream);
            } else {
                self.end(stream);
            }
        }
    }
}
