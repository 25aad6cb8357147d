//! A stream of an association as bytes.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use anabranch_sctp::SendOptions;
use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Ending, Room, Waiting};
use crate::association::Association;
use crate::error::{AssociationError, TrySendError};
use crate::message::MessagePart;

/// Bytes of a write that make one message, at most.
const MOST_WRITE: usize = 64 * 1024;

/// One stream of an association as a stream of bytes, for libraries that know tokio's [`AsyncRead`] and [`AsyncWrite`], or with the feature `smol` those of `futures-io`: see
/// [`Association::byte_stream`].
///
/// **Message boundaries mean nothing here.** Each write makes one message (or several: at most 64 KiB each), and a read gives what
/// has come, of one message at a time, whatever the size of the peer's messages. Whoever needs the boundaries uses
/// [`Association::recv`] and [`Association::send`]. Messages go in order and reliably, with PPID 0 unless
/// [`ByteStream::with_ppid`] says otherwise; what the peer sends unordered is taken as it comes.
///
/// **Other streams** are left for others: several byte streams of one association, each on a stream of its own, can be read by
/// several tasks. They share the receive window: a stream that nobody reads fills it, and holds up all. [`Association::recv`]
/// reads all streams, these too.
///
/// **The end.** Reads give the end (0 bytes) when the peer has shut the association down and everything is read. SCTP knows no
/// end of one direction or of one stream (RFC 9260 §9.2): `shutdown` of the writing half shuts the **association** down, and gives
/// when everything has arrived. What the peer had sent by then can still be read. `flush` does nothing: what is written is sent as soon
/// as it may be.
pub struct ByteStream {
    association: Association,
    stream: u16,
    options: SendOptions,
    unread: Bytes,
    reading: Option<Waiting<Result<Option<MessagePart>, AssociationError>>>,
    room: Room,
    ending: Ending,
}

impl Association {
    /// `stream` of this association, in both directions, as a [`ByteStream`].
    pub fn byte_stream(&self, stream: u16) -> ByteStream {
        ByteStream {
            association: self.clone(),
            stream,
            // Of bytes in order none may be left out, whatever the defaults say.
            options: SendOptions::default().reliable(),
            unread: Bytes::new(),
            reading: None,
            room: Room::default(),
            ending: Ending::default(),
        }
    }
}

impl ByteStream {
    /// The same, with this Payload Protocol Identifier in all messages that it makes.
    #[must_use]
    pub fn with_ppid(mut self, ppid: u32) -> Self {
        self.options = self.options.with_ppid(ppid);
        self
    }

    /// The association.
    pub fn association(&self) -> &Association {
        &self.association
    }

    /// Makes `unread` hold something; `false` at the end.
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

    fn poll_put(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let most = MOST_WRITE.min(self.association.max_message_size());
        let bytes = &bytes[..bytes.len().min(most)];
        let mut message = Bytes::copy_from_slice(bytes);
        loop {
            match self
                .association
                .try_send(self.stream, message, self.options)
            {
                Ok(()) => return Poll::Ready(Ok(bytes.len())),
                Err(TrySendError::Error(error)) => return Poll::Ready(Err(error.into())),
                Err(TrySendError::Full(given_back)) => {
                    message = given_back;
                    ready!(self.room.poll(cx, &self.association, bytes.len()));
                }
            }
        }
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.ending
            .poll(cx, &self.association)
            .map_err(io::Error::from)
    }
}

impl AsyncRead for ByteStream {
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

impl AsyncWrite for ByteStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_put(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_end(cx)
    }
}

/// As smol and its libraries have it.
#[cfg(feature = "smol")]
impl futures_io::AsyncRead for ByteStream {
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

/// As smol and its libraries have it.
#[cfg(feature = "smol")]
impl futures_io::AsyncWrite for ByteStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_put(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_end(cx)
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteStream")
            .field("association", &self.association)
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}
