//! The receiving half of a stream.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use anabranch_sctp::CloseReason;
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};

use super::Waiting;
use crate::association::Association;
use crate::error::AssociationError;
use crate::message::{Message, MessagePart};

/// The receiving half of one stream: see [`Association::stream`]. Messages of other streams stay in
/// the receive buffer, which all streams share. Therefore every stream must be read: an unread one
/// fills the buffer and blocks the others.
///
/// [`AsyncRead`] reads the bytes of messages, ordered or not, without their boundaries; a read
/// returns bytes of one message. After the peer has shut the association down and all messages of
/// the stream were read, a read returns 0 bytes.
pub struct RecvStream {
    association: Association,
    stream: u16,
    unread: Bytes,
    fragments: Option<BytesMut>,
    reading: Option<Waiting<Result<Option<MessagePart>, AssociationError>>>,
}

impl RecvStream {
    pub(super) fn new(association: Association, stream: u16) -> Self {
        Self {
            association,
            stream,
            unread: Bytes::new(),
            fragments: None,
            reading: None,
        }
    }

    /// The number of the stream.
    pub fn number(&self) -> u16 {
        self.stream
    }

    /// The association of the stream.
    pub fn association(&self) -> &Association {
        &self.association
    }

    /// The next message of the stream; `None` if the association was shut down gracefully and all
    /// messages of the stream were read. A message in parts is assembled, up to
    /// [`Config::max_message_size`](crate::Config::max_message_size).
    ///
    /// Cancel-safe: if the future is dropped, no message is lost.
    ///
    /// # Errors
    /// The association was aborted or has failed. A message that is too long aborts it:
    /// [`CloseReason::MessageTooLong`].
    pub async fn recv(&mut self) -> Result<Option<Message>, AssociationError> {
        while let Some(part) = self.recv_part().await? {
            if part.begins && part.ends {
                return Ok(Some(part.into()));
            }
            if part.begins {
                self.fragments = Some(BytesMut::new());
            }
            // Skips the part, because another reader has read the start of this message.
            let Some(fragments) = &mut self.fragments else {
                continue;
            };
            let most = self.association.max_message_size();
            if fragments.len() + part.bytes.len() > most {
                self.association.abort("message too long");
                return Err(AssociationError(CloseReason::MessageTooLong { most }));
            }
            fragments.extend_from_slice(&part.bytes);
            if part.ends {
                let bytes = self.fragments.take().unwrap_or_default().freeze();
                return Ok(Some(MessagePart { bytes, ..part }.into()));
            }
        }
        Ok(None)
    }

    /// The next message, or part of a message, like [`Association::recv_part`].
    ///
    /// Cancel-safe: if the future is dropped, no part is lost.
    ///
    /// # Errors
    /// The association was aborted or has failed, and all parts of the stream were read.
    pub async fn recv_part(&mut self) -> Result<Option<MessagePart>, AssociationError> {
        self.association.recv_part_on(self.stream).await
    }

    /// The next message or part, or `None` if none can be read at present.
    pub fn try_recv_part(&mut self) -> Option<MessagePart> {
        self.association.try_recv_part_on(self.stream)
    }

    /// Receives the next part into `unread`, if that is empty; `false` at the end of the stream.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while self.unread.is_empty() {
            if self.reading.is_none()
                && let Some(part) = self.association.try_recv_part_on(self.stream)
            {
                self.unread = part.bytes;
                continue;
            }
            let (association, stream) = (&self.association, self.stream);
            let reading = self.reading.get_or_insert_with(|| {
                let association = association.clone();
                Box::pin(async move { association.recv_part_on(stream).await })
            });
            let part = ready!(reading.as_mut().poll(cx));
            self.reading = None;
            match part? {
                Some(part) => self.unread = part.bytes,
                None => return Poll::Ready(Ok(false)),
            }
        }
        Poll::Ready(Ok(true))
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() > 0 && ready!(self.poll_fill(cx))? {
            let most = self.unread.len().min(buffer.remaining());
            buffer.put_slice(&self.unread[..most]);
            self.unread.advance(most);
        }
        Poll::Ready(Ok(()))
    }
}

/// smol and its libraries use this trait.
#[cfg(feature = "smol")]
impl futures_io::AsyncRead for RecvStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if buffer.is_empty() || !ready!(self.poll_fill(cx))? {
            return Poll::Ready(Ok(0));
        }
        let most = self.unread.len().min(buffer.len());
        self.unread.copy_to_slice(&mut buffer[..most]);
        Poll::Ready(Ok(most))
    }
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvStream")
            .field("association", &self.association)
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}
