//! Receipts: what becomes of messages whose user asked (RFC 9260 leaves it to the upper layer; RFC 6458 has only the notification that
//! all is acknowledged, SCTP_SENDER_DRY_EVENT, §6.1.9).
//!
//! A message is acknowledged when the cumulative TSN has passed its last chunk. What a Gap Ack Block reports does not count: the
//! receiver may still drop it (RFC 9260 §6.2), and a receipt cannot be taken back.

use std::collections::VecDeque;

use anabranch_wire::Tsn;

use super::Sender;
use crate::partial::AbandonPolicy;

/// What became of a message whose user asked for a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// The peer's SCTP has acknowledged all of it, for good: the cumulative TSN has passed it. That says nothing of whether the peer's
    /// application has read it.
    Acknowledged,
    /// It was given up by this policy. If all of it was sent, it may have reached the peer all the same.
    Abandoned(AbandonPolicy),
    /// It was taken back before any of it was sent ([`Association::withdraw_unsent`](crate::Association::withdraw_unsent)).
    Withdrawn,
    /// It was given before the association was up, on a stream that the peer then did not grant.
    NoSuchStream,
}

/// The receipts of messages in flight, and those that the user is to be told of.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    /// The last TSNs of messages of which all was sent, and the numbers of their receipts. TSNs ascend.
    ends: VecDeque<(Tsn, u64)>,
    news: VecDeque<(u64, Delivery)>,
}

impl Receipts {
    /// The peer has acknowledged all up to `cumulative`.
    #[inline]
    pub fn acknowledged(&mut self, cumulative: Tsn) {
        while let Some(&(last, number)) = self.ends.front()
            && last.le(cumulative)
        {
            self.ends.pop_front();
            self.news.push_back((number, Delivery::Acknowledged));
        }
    }

    /// A message of which `last` is the highest TSN sent was given up.
    pub fn abandoned(&mut self, number: u64, last: Option<Tsn>, policy: AbandonPolicy) {
        if let Some(last) = last {
            let at = self.ends.partition_point(|(tsn, _)| tsn.lt(last));
            if self.ends.get(at) == Some(&(last, number)) {
                self.ends.remove(at);
            }
        }
        self.news.push_back((number, Delivery::Abandoned(policy)));
    }
}

impl Sender {
    /// The next receipt that the user was not told of.
    #[inline]
    pub(crate) fn next_receipt(&mut self) -> Option<(u64, Delivery)> {
        self.receipts.as_mut()?.news.pop_front()
    }

    /// The chunk `tsn` went out for the first time: notes the message, if that ends and its user wants a receipt.
    pub(super) fn note_receipt(&mut self, tsn: Tsn) {
        if let Some(receipts) = &mut self.receipts
            && let Some(number) = self.queue.take_ended()
        {
            receipts.ends.push_back((tsn, number));
        }
    }

    /// The same became of all these messages.
    pub(super) fn answer_all(
        &mut self,
        numbers: impl IntoIterator<Item = u64>,
        delivery: Delivery,
    ) {
        if let Some(receipts) = &mut self.receipts {
            let news = numbers.into_iter().map(|number| (number, delivery));
            receipts.news.extend(news);
        }
    }
}
