//! Messages that an association does not deliver: it ends, or the peer begins it again, before they were acknowledged.
//!
//! Their user gets each of them back, whole (RFC 9260 §11.2 B; SCTP_SEND_FAILED_EVENT, RFC 6458 §6.1.11). The beginning of a message may have been
//! acknowledged and let go of before its end was. So a message of several chunks is kept whole until its last chunk is acknowledged: first where it
//! is cut, then by the TSN of that chunk. The chunks are slices of it, so that this takes no further memory for user data.

use std::collections::BTreeMap;

use anabranch_wire::Tsn;
use bytes::Bytes;

use super::receipts::Delivery;
use super::send_queue::{Fragment, Unsent};
use super::{Outstanding, Sender, SendingHalf};
use crate::partial::MessageId;
use crate::queue::Queue;

/// A message that was not acknowledged: see [`UndeliveredMessage`](crate::UndeliveredMessage).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Returned {
    pub stream: Option<u16>,
    pub ppid: u32,
    pub unordered: bool,
    pub payload: Bytes,
    pub context: u32,
    pub sent: bool,
}

/// All of each message of several chunks whose last one is outstanding, by the TSN of that: in the order of TSNs.
#[derive(Debug, Default)]
pub(super) struct Payloads(Queue<(Tsn, Bytes)>);

impl Payloads {
    /// The chunk `tsn`, behind all others, ends a message.
    pub fn keep(&mut self, tsn: Tsn, whole: Bytes) {
        self.0.push_back((tsn, whole));
    }

    /// The cumulative point passes a chunk.
    #[inline(always)]
    pub fn pass(&mut self, tsn: Tsn, fragment: &Fragment) {
        if fragment.ends_several() {
            self.pass_end(tsn);
        }
    }

    #[inline(never)]
    fn pass_end(&mut self, tsn: Tsn) {
        // Not where a message was given up before its last chunk was cut: then an empty chunk stands for that.
        if self.0.front().is_some_and(|(at, _)| *at == tsn) {
            self.0.pop_front();
        }
    }

    /// The message that the chunk `tsn` ends is given up: its user data goes at once.
    pub fn forget(&mut self, tsn: Tsn) {
        let place = self.0.partition_point(|(at, _)| at.lt(tsn));
        if let Some((at, whole)) = self.0.get_mut(place)
            && *at == tsn
        {
            *whole = Bytes::new();
        }
    }

    /// The message that the chunk `tsn` ends; those before it are let go of.
    fn take(&mut self, tsn: Tsn) -> Bytes {
        let mut last = Bytes::new();
        while self.0.front().is_some_and(|(at, _)| at.le(tsn)) {
            last = self.0.pop_front().map_or(last, |(_, whole)| whole);
        }
        last
    }
}

/// Messages of which something was sent, in the order of their first chunks that are not acknowledged.
#[derive(Default)]
struct Begun {
    /// Where those of several chunks are.
    places: BTreeMap<MessageId, usize>,
    all: Vec<Returned>,
}

impl Begun {
    /// The next part of a message, all of which is `whole` where the part ends it, and else empty.
    fn add(&mut self, part: Fragment, whole: Bytes) {
        let (places, all) = (&mut self.places, &mut self.all);
        let mut append = |payload| {
            all.push(Returned {
                stream: Some(part.stream),
                ppid: part.ppid,
                unordered: part.unordered,
                payload,
                context: part.context,
                sent: true,
            });
            all.len() - 1
        };
        if part.beginning && part.ending {
            append(whole);
            return;
        }
        let place = *places
            .entry(part.message())
            .or_insert_with(|| append(Bytes::new()));
        if part.ending {
            all[place].payload = whole;
        }
    }

    /// The chunk `tsn` was sent and is not acknowledged.
    fn add_sent(&mut self, tsn: Tsn, part: Fragment, payloads: &mut Payloads) {
        let whole = match (part.ends_several(), part.ending) {
            (true, _) => payloads.take(tsn),
            (false, true) => part.user_data.clone(),
            (false, false) => Bytes::new(),
        };
        self.add(part, whole);
    }

    /// Messages; what was given up on the way has no end.
    fn into_messages(mut self) -> std::vec::IntoIter<Returned> {
        self.all.retain(|it| !it.payload.is_empty());
        self.all.into_iter()
    }
}

impl Unsent {
    fn undelivered(self) -> Returned {
        Returned {
            stream: self.stream,
            ppid: self.message.ppid,
            unordered: self.message.unordered,
            payload: self.message.payload,
            context: self.context,
            sent: false,
        }
    }
}

impl Sender {
    /// Forgets what is queued on streams from `streams` on, which the peer did not agree to; returns how many messages.
    pub(super) fn forget_streams_from(&mut self, streams: u16) -> usize {
        let forgotten = self.queue.forget_streams_from(streams);
        let receipts = forgotten.iter().filter_map(|it| it.receipt);
        self.answer_all(receipts, Delivery::NoSuchStream);
        let count = forgotten.len();
        if count > 0 {
            self.not_granted.make().extend(forgotten);
        }
        count
    }
}

impl SendingHalf {
    /// Messages on streams that the peer did not grant, once.
    pub(crate) fn take_not_granted(&mut self) -> impl Iterator<Item = Returned> {
        let unsent = self.get_mut().map(|it| it.not_granted.take());
        let unsent = unsent.unwrap_or_default();
        unsent.into_iter().map(Unsent::undelivered)
    }

    /// Ends it: all that it holds is not delivered any more. Those that were given up before are left out, which were told.
    pub(crate) fn take_undelivered(&mut self) -> impl Iterator<Item = Returned> {
        let (mut begun, mut first) = (Begun::default(), Vec::new());
        let mut sender = self.get_mut().filter(|it| !it.is_drained());
        if let Some(sender) = &mut sender {
            let outstanding = std::mem::replace(
                &mut sender.outstanding,
                Outstanding::new(sender.initial_tsn),
            );
            let (chunks, mut payloads) = outstanding.into_parts();
            chunks.for_each(|(tsn, part)| begun.add_sent(tsn, part, &mut payloads));
            for mut started in sender.queue.take_started() {
                if started.beginning {
                    first.push(Unsent::of(started));
                } else {
                    let whole = std::mem::take(&mut started.user_data);
                    begun.add(started, whole);
                }
            }
        }
        let unsent = sender.map(|it| it.queue.take_unsent());
        let unsent = first.into_iter().chain(unsent.unwrap_or_default());
        begun.into_messages().chain(unsent.map(Unsent::undelivered))
    }
}

#[cfg(test)]
mod tests;
