//! The received messages of an association as a `Stream`.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::Waiting;
use crate::association::Association;
use crate::error::AssociationError;
use crate::message::Message;

/// The received messages of all streams of the association, as a [`Stream`]: see
/// [`Association::messages`].
///
/// The stream ends when the association was shut down gracefully and every message was read. If the
/// association was aborted or has failed, the stream returns one error before it ends. Dropping the
/// stream loses no message.
pub struct Messages {
    association: Association,
    waiting: Option<Waiting<Result<Option<Message>, AssociationError>>>,
    ended: bool,
}

impl Association {
    /// The received messages as a [`Stream`] of the results of [`Association::recv`]. Other readers
    /// take messages from the same queue.
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt;
    ///
    /// # use anabranch_net::{Association, AssociationError};
    /// # async fn print(association: Association) -> Result<(), AssociationError> {
    /// let mut messages = association.messages();
    /// while let Some(message) = messages.try_next().await? {
    ///     println!("{} bytes on stream {}", message.bytes.len(), message.stream);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn messages(&self) -> Messages {
        Messages {
            association: self.clone(),
            waiting: None,
            ended: false,
        }
    }
}

impl Stream for Messages {
    type Item = Result<Message, AssociationError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        if this.waiting.is_none()
            && let Some(message) = this.association.try_recv()
        {
            return Poll::Ready(Some(Ok(message)));
        }
        let association = &this.association;
        let waiting = this.waiting.get_or_insert_with(|| {
            let association = association.clone();
            Box::pin(async move { association.recv().await })
        });
        let received = ready!(waiting.as_mut().poll(cx));
        this.waiting = None;
        this.ended = !matches!(received, Ok(Some(_)));
        Poll::Ready(received.transpose())
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages")
            .field("association", &self.association)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
