//! Receipts: futures that tell what became of one message.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use anabranch_sctp::{AbandonPolicy, CloseReason, Delivery};
use thiserror::Error;
use tokio::sync::oneshot;

use crate::error::AssociationError;

/// What became of one message ([`Association::send_with_receipt`](crate::Association::send_with_receipt)): ready when the peer has acknowledged
/// all of it, or when it is certain that it will not.
///
/// **Acknowledged** means that the cumulative TSN of the peer has passed the message (RFC 9260 §6.2.1). A Gap Ack Block alone is no receipt:
/// the peer may drop again what it reported by one, and a receipt cannot be taken back. So a message that arrived behind a lost one has its
/// receipt when that was sent again. The peer's SCTP has the message then; whether its application has read it, only that application can
/// tell.
///
/// It holds neither the association nor the message. Cancel-safe: if it is dropped, the message is sent all the same. As any future, it must
/// not be polled after it was ready.
#[derive(Debug)]
#[must_use = "a receipt tells only whoever awaits it"]
pub struct Receipt(oneshot::Receiver<Answer>);

/// Why a message was not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeliveryError {
    /// It was given up by the policy that it was sent with (RFC 3758, RFC 7496). If all of it was sent, it may have reached the peer all
    /// the same.
    #[error("the message was given up ({0:?})")]
    Abandoned(AbandonPolicy),
    /// It was taken back before any of it was sent ([`Association::cancel_unsent`](crate::Association::cancel_unsent)).
    #[error("the message was taken back before it was sent")]
    Unsent,
    /// The peer lost its state and set the association up anew before it had acknowledged the message, which may have reached it.
    #[error("the peer began the association anew")]
    Restarted,
    /// The association ended before the peer had acknowledged the message, which may have reached it.
    #[error(transparent)]
    Association(#[from] AssociationError),
}

type Answer = Result<(), DeliveryError>;

impl Future for Receipt {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        // Whoever would answer is gone only together with the endpoint.
        let gone = |_| Err(AssociationError(CloseReason::AbortedHere).into());
        Pin::new(&mut self.0)
            .poll(cx)
            .map(|answer| answer.unwrap_or_else(gone))
    }
}

/// A receipt, and what it is told.
#[derive(Debug)]
pub(crate) struct Answered(oneshot::Sender<Answer>, Answer);

impl Answered {
    /// Tells whoever waits for it, if anybody does.
    pub(crate) fn tell(self) {
        let _ = self.0.send(self.1);
    }
}

/// The receipts of an association that were not answered yet.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    next: u64,
    open: BTreeMap<u64, oneshot::Sender<Answer>>,
}

impl Receipts {
    /// The number of the next one.
    pub(crate) fn next_number(&self) -> u64 {
        self.next
    }

    /// One more, of that number.
    pub(crate) fn open(&mut self) -> Receipt {
        let (answer, receipt) = oneshot::channel();
        self.open.insert(self.next, answer);
        self.next += 1;
        Receipt(receipt)
    }

    /// Whether none is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The protocol told what became of a message.
    pub(crate) fn answer(&mut self, number: u64, delivery: Delivery) -> Option<Answered> {
        let receipt = self.open.remove(&number)?;
        let answer = match delivery {
            Delivery::Acknowledged => Ok(()),
            Delivery::Abandoned(policy) => Err(DeliveryError::Abandoned(policy)),
            // Of the others nothing was sent.
            _ => Err(DeliveryError::Unsent),
        };
        Some(Answered(receipt, answer))
    }

    /// No message that waits will be acknowledged.
    pub(crate) fn answer_all(&mut self, why: &DeliveryError) -> impl Iterator<Item = Answered> {
        let open = std::mem::take(&mut self.open).into_values();
        let answer: Answer = Err(why.clone());
        open.map(move |receipt| Answered(receipt, answer.clone()))
    }
}
