//! Receipts: futures that report the delivery of one message.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use anabranch_sctp::{AbandonPolicy, CloseReason, DeliveryStatus};
use thiserror::Error;
use tokio::sync::oneshot;

use crate::error::AssociationError;

/// Future of the delivery of one message
/// ([`Association::send_with_receipt`](crate::Association::send_with_receipt)): ready when the peer
/// has acknowledged the whole message, or when that can no longer happen.
///
/// **Acknowledged** means that the cumulative TSN of the peer has passed the message (RFC 9260
/// §6.2.1). A gap ack block is not sufficient, because the peer may renege on it and a receipt
/// cannot be withdrawn. Therefore the receipt of a message that follows a lost message becomes
/// ready only after the retransmission. An acknowledgement shows that the peer's SCTP has the
/// message; only the peer's application can confirm that it was read.
///
/// A receipt keeps neither the association nor the message alive. Cancel-safe: if it is dropped,
/// the message is still sent. Like any future, it must not be polled after it was ready.
#[derive(Debug)]
#[must_use = "a receipt tells only whoever awaits it"]
pub struct Receipt(oneshot::Receiver<Answer>);

/// Why a message was not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeliveryError {
    /// The message was abandoned by its policy (RFC 3758, RFC 7496). If all of its chunks were
    /// sent, it may still have reached the peer.
    #[error("the message was given up ({0:?})")]
    Abandoned(AbandonPolicy),
    /// The message was removed before any chunk of it was sent
    /// ([`Association::cancel_unsent`](crate::Association::cancel_unsent)).
    #[error("the message was taken back before it was sent")]
    Unsent,
    /// The peer lost its state and restarted the association before it acknowledged the message.
    /// The message may have been delivered before.
    #[error("the peer began the association anew")]
    Restarted,
    /// The association ended before the peer acknowledged the message, which may still have been
    /// delivered.
    #[error(transparent)]
    Association(#[from] AssociationError),
}

pub(crate) type Answer = Result<(), DeliveryError>;

impl Receipt {
    /// The result, if there is one; the receipt must not be polled afterwards.
    #[cfg(feature = "rfc6083")]
    pub(crate) fn take_answer(&mut self) -> Option<Answer> {
        use oneshot::error::TryRecvError;
        match self.0.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Closed) => Some(Err(gone())),
        }
    }
}

/// The error if the sender of the result was dropped, which happens only when the endpoint is
/// dropped.
fn gone() -> DeliveryError {
    AssociationError(CloseReason::AbortedHere).into()
}

impl Future for Receipt {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        Pin::new(&mut self.0)
            .poll(cx)
            .map(|answer| answer.unwrap_or_else(|_| Err(gone())))
    }
}

/// A receipt with its result, to be completed.
#[derive(Debug)]
pub(crate) struct CompletedReceipt(oneshot::Sender<Answer>, Answer);

impl CompletedReceipt {
    /// Completes the receipt, if it was not dropped.
    pub(crate) fn complete(self) {
        let _ = self.0.send(self.1);
    }
}

/// The open receipts of an association.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    next: u64,
    open: BTreeMap<u64, oneshot::Sender<Answer>>,
}

impl Receipts {
    /// The number that the next receipt will get.
    pub(crate) fn next_number(&self) -> u64 {
        self.next
    }

    /// Creates the next receipt.
    pub(crate) fn open(&mut self) -> Receipt {
        let (answer, receipt) = oneshot::channel();
        self.open.insert(self.next, answer);
        self.next += 1;
        Receipt(receipt)
    }

    /// Returns true if no receipt is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the receipt for a message whose outcome the protocol has reported.
    pub(crate) fn answer(
        &mut self,
        number: u64,
        delivery: DeliveryStatus,
    ) -> Option<CompletedReceipt> {
        let receipt = self.open.remove(&number)?;
        let answer = match delivery {
            DeliveryStatus::Acknowledged => Ok(()),
            DeliveryStatus::Abandoned(policy) => Err(DeliveryError::Abandoned(policy)),
            // The other outcome: the message was removed before any chunk of it was sent.
            _ => Err(DeliveryError::Unsent),
        };
        Some(CompletedReceipt(receipt, answer))
    }

    /// Completes all receipts with an error, because no further message will be acknowledged.
    pub(crate) fn answer_all(
        &mut self,
        why: &DeliveryError,
    ) -> impl Iterator<Item = CompletedReceipt> {
        let open = std::mem::take(&mut self.open).into_values();
        let answer: Answer = Err(why.clone());
        open.map(move |receipt| CompletedReceipt(receipt, answer.clone()))
    }
}
