//! Undelivered messages: messages that are not acknowledged when the association ends or the peer
//! restarts it.
//!
//! The user receives each of them back, as a whole (RFC 9260 §11.2 B; SCTP_SEND_FAILED_EVENT, RFC
//! 6458 §6.1.11). The beginning of a message may be acknowledged and released before its end. A
//! fragmented message is therefore stored as a whole until its last chunk is acknowledged: first in
//! the queue, then by the TSN of that chunk. The chunks are slices of the stored message, so that
//! it takes no further memory for user data.

use std::collections::BTreeMap;

use anabranch_wire::Tsn;
use bytes::Bytes;

use super::delivery_receipts::DeliveryStatus;
use super::fragmented_messages::FragmentedMessages;
use super::send_queue::{Fragment, Unsent};
use super::{LazySender, Outstanding, Sender};
use crate::pr_sctp::MessageId;

/// Message that was not acknowledged: see [`UndeliveredMessage`](crate::UndeliveredMessage).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Returned {
    pub stream: Option<u16>,
    pub ppid: u32,
    pub unordered: bool,
    pub payload: Bytes,
    pub context: u32,
    pub sent: bool,
}

/// Partly sent messages, in the order of their first unacknowledged chunks.
#[derive(Default)]
struct Begun {
    /// Indices of the fragmented messages in `all`.
    places: BTreeMap<MessageId, usize>,
    all: Vec<Returned>,
}

impl Begun {
    /// Adds the next part of a message. `whole` is the whole message if this is its last part, else
    /// empty.
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

    /// Adds chunk `tsn`, which was sent and is unacknowledged.
    fn add_sent(&mut self, tsn: Tsn, part: Fragment, payloads: &mut FragmentedMessages) {
        let whole = match (part.ends_several(), part.ending) {
            (true, _) => payloads.take(tsn),
            (false, true) => part.user_data.clone(),
            (false, false) => Bytes::new(),
        };
        self.add(part, whole);
    }

    /// Returns the messages, except those that were abandoned after their first chunk, which have
    /// no last chunk.
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
    /// Drops messages queued on streams from number `streams` on, which the peer did not accept.
    /// Returns their number.
    pub(super) fn forget_streams_from(&mut self, streams: u16) -> usize {
        let forgotten = self.queue.forget_streams_from(streams);
        let receipts = forgotten.iter().filter_map(|it| it.receipt);
        self.answer_all(receipts, DeliveryStatus::NoSuchStream);
        let count = forgotten.len();
        if count > 0 {
            self.not_granted.make().extend(forgotten);
        }
        count
    }
}

impl LazySender {
    /// Returns the messages on streams that the peer did not grant.
    pub(crate) fn take_not_granted(&mut self) -> impl Iterator<Item = Returned> {
        let unsent = self.get_mut().map(|it| it.not_granted.take());
        let unsent = unsent.unwrap_or_default();
        unsent.into_iter().map(Unsent::undelivered)
    }

    /// Removes and returns all undelivered messages when the sender is dropped. Messages that were
    /// abandoned are not included, because they were already reported.
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
