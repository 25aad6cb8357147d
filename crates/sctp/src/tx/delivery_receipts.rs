//! Delivery receipts: outcome of messages for which the user requested it (RFC 9260 leaves this to
//! the upper layer; RFC 6458 only has a notification that all data is acknowledged,
//! SCTP_SENDER_DRY_EVENT, §6.1.9).
//!
//! A message is acknowledged when the cumulative TSN has passed its last chunk. Gap ack blocks do
//! not count, because the receiver may still renege on them (RFC 9260 §6.2), and a receipt is
//! final.

use std::collections::VecDeque;

use anabranch_wire::Tsn;

use super::Sender;
use crate::pr_sctp::AbandonPolicy;

/// Outcome of a message with a requested receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeliveryStatus {
    /// The peer's SCTP has finally acknowledged all of it: the cumulative TSN has passed it. The
    /// peer's application may not have read it.
    Acknowledged,
    /// The message was abandoned by this policy. If all of it was sent, it may still have reached
    /// the peer.
    Abandoned(AbandonPolicy),
    /// The message was cancelled before any chunk was sent
    /// ([`Association::cancel_unsent`](crate::Association::cancel_unsent)).
    Withdrawn,
    /// The message was queued before the association was established, on a stream that the peer did
    /// not grant.
    NoSuchStream,
}

/// The receipts of messages in flight, and receipts to be reported.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    /// The last TSNs of completely sent messages and their receipt numbers. TSNs ascend.
    ends: VecDeque<(Tsn, u64)>,
    news: VecDeque<(u64, DeliveryStatus)>,
}

impl Receipts {
    /// The peer has acknowledged all up to `cumulative`.
    #[inline]
    pub fn acknowledged(&mut self, cumulative: Tsn) {
        while let Some(&(last, number)) = self.ends.front()
            && last.le(cumulative)
        {
            self.ends.pop_front();
            self.news.push_back((number, DeliveryStatus::Acknowledged));
        }
    }

    /// A message with the highest sent TSN `last` was abandoned.
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
    /// The next receipt to report to the user.
    #[inline]
    pub(crate) fn next_receipt(&mut self) -> Option<(u64, DeliveryStatus)> {
        self.receipts.as_mut()?.news.pop_front()
    }

    /// Chunk `tsn` was sent for the first time: records the message if this is its end and a
    /// receipt is requested.
    pub(super) fn note_receipt(&mut self, tsn: Tsn) {
        if let Some(receipts) = &mut self.receipts
            && let Some(number) = self.queue.take_ended()
        {
            receipts.ends.push_back((tsn, number));
        }
    }

    /// Reports the same outcome for all these messages.
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
