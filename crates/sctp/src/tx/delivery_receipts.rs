//! Delivery receipts: they report the outcome of a message if the user requested this (RFC 9260
//! leaves it to the upper layer; RFC 6458 only has a notification that all data is acknowledged,
//! SCTP_SENDER_DRY_EVENT, §6.1.9).
//!
//! A message is acknowledged when the cumulative TSN has passed its last chunk. Gap Ack Blocks do
//! not count, because a receipt is final, but the receiver may still renege on the data that they
//! report (RFC 9260 §6.2).

use std::collections::VecDeque;

use anabranch_wire::Tsn;

use super::Sender;
use crate::pr_sctp::AbandonPolicy;

/// Final delivery status of a message with a requested receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeliveryStatus {
    /// The cumulative TSN has passed the last chunk of the message, so the peer's SCTP stack has
    /// received all of it. The peer's application may not have read it yet.
    Acknowledged,
    /// The message was abandoned because of this policy. If all its chunks were sent, it may still
    /// have reached the peer.
    Abandoned(AbandonPolicy),
    /// The message was cancelled before any chunk was sent
    /// ([`Association::cancel_unsent`](crate::Association::cancel_unsent)).
    Withdrawn,
    /// The message was queued before the association was established, on a stream that the peer did
    /// not grant.
    NoSuchStream,
}

/// Receipts of messages in flight, and receipts that were not reported yet.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    /// Last TSNs of completely sent messages with their receipt numbers, in ascending order of
    /// TSNs.
    ends: VecDeque<(Tsn, u64)>,
    news: VecDeque<(u64, DeliveryStatus)>,
}

impl Receipts {
    /// Reports messages that the cumulative TSN `cumulative` acknowledges.
    #[inline]
    pub fn acknowledged(&mut self, cumulative: Tsn) {
        while let Some(&(last, number)) = self.ends.front()
            && last.le(cumulative)
        {
            self.ends.pop_front();
            self.news.push_back((number, DeliveryStatus::Acknowledged));
        }
    }

    /// Reports an abandoned message. `last` is its highest sent TSN, or `None` if no chunk was
    /// sent.
    pub fn abandoned(&mut self, number: u64, last: Option<Tsn>, policy: AbandonPolicy) {
        if let Some(last) = last {
            let at = self.ends.partition_point(|(tsn, _)| tsn.lt(last));
            if self.ends.get(at) == Some(&(last, number)) {
                self.ends.remove(at);
            }
        }
        self.news
            .push_back((number, DeliveryStatus::Abandoned(policy)));
    }
}

impl Sender {
    /// Next receipt to report to the user.
    #[inline]
    pub(crate) fn next_receipt(&mut self) -> Option<(u64, DeliveryStatus)> {
        self.receipts.as_mut()?.news.pop_front()
    }

    /// Called when chunk `tsn` was sent for the first time: records the message if the chunk is its
    /// last and a receipt is requested.
    pub(super) fn note_receipt(&mut self, tsn: Tsn) {
        if let Some(receipts) = &mut self.receipts
            && let Some(number) = self.queue.take_ended()
        {
            receipts.ends.push_back((tsn, number));
        }
    }

    /// Reports the same status for all messages in `numbers`.
    pub(super) fn answer_all(
        &mut self,
        numbers: impl IntoIterator<Item = u64>,
        delivery: DeliveryStatus,
    ) {
        if let Some(receipts) = &mut self.receipts {
            let news = numbers.into_iter().map(|number| (number, delivery));
            receipts.news.extend(news);
        }
    }
}
