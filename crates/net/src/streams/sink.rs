//! A stream of an association as a `Sink` of messages.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use anabranch_sctp::SendOptions;
use bytes::Bytes;
use futures_sink::Sink;

use super::{Ending, Room};
use crate::association::Association;
use crate::error::{SendError, SinkError, TrySendError};

/// A [`Sink`] whose items are messages on one stream, all sent alike: see [`Association::sink`].
///
/// Ready means that the message before has room in the send buffer. `flush` gives when every message is queued with the
/// association, not when it has arrived. `close` flushes and shuts the **association** down, as [`Association::shutdown`] does: SCTP
/// cannot end one direction or one stream alone (RFC 9260 §9.2). A sink that is dropped without `flush` may lose its last message.
pub struct MessageSink {
    association: Association,
    stream: u16,
    options: SendOptions,
    pending: Option<Bytes>,
    room: Room,
    ending: Ending,
}

impl Association {
    /// A [`Sink`] of messages on `stream`, which are sent as `options` say. It gives the errors of [`Association::send`].
    pub fn sink(&self, stream: u16, options: SendOptions) -> MessageSink {
        MessageSink {
            association: self.clone(),
            stream,
            options,
            pending: None,
            room: Room::default(),
            ending: Ending::default(),
        }
    }
}

impl MessageSink {
    fn poll_pending(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        while let Some(bytes) = self.pending.take() {
            match self.association.try_send(self.stream, bytes, self.options) {
                Ok(()) => {}
                Err(TrySendError::Error(error)) => return Poll::Ready(Err(error)),
                Err(TrySendError::Full(bytes)) => {
                    let size = bytes.len();
                    self.pending = Some(bytes);
                    ready!(self.room.poll(cx, &self.association, size));
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<B: Into<Bytes>> Sink<B> for MessageSink {
    type Error = SinkError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        self.poll_pending(cx).map_err(SinkError::from)
    }

    fn start_send(mut self: Pin<&mut Self>, item: B) -> Result<(), SinkError> {
        if self.pending.is_some() {
            return Err(SinkError::NotReady);
        }
        match self.association.try_send(self.stream, item, self.options) {
            Ok(()) => Ok(()),
            Err(TrySendError::Error(error)) => Err(error.into()),
            Err(TrySendError::Full(bytes)) => {
                self.pending = Some(bytes);
                Ok(())
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        self.poll_pending(cx).map_err(SinkError::from)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        let this = &mut *self;
        ready!(this.poll_pending(cx))?;
        this.ending
            .poll(cx, &this.association)
            .map_err(SinkError::from)
    }
}

impl fmt::Debug for MessageSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageSink")
            .field("association", &self.association)
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}
