//! The sending half of a stream.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use anabranch_sctp::SendOptions;
use bytes::Bytes;
use futures_sink::Sink;
use tokio::io::AsyncWrite;

use super::{ShutdownFuture, WaitWritable};
use crate::association::Association;
use crate::error::{SendError, SinkError, TrySendError};

/// Maximum size of the message that one write creates, bytes.
const MAX_WRITE: usize = 64 * 1024;

/// The sending half of one stream: see [`Association::stream`].
///
/// As a [`Sink`] it sends messages with the options of [`SendStream::with_options`]. `flush` waits
/// until the messages are queued, not until the peer has received them. A sink that is dropped
/// without `flush` may lose its last message. As an [`AsyncWrite`] it sends bytes, reliably and in
/// order: each write creates one message of at most 64 KiB, which is sent as soon as possible.
///
/// **Closing.** `close` of the sink and `shutdown` of the writer shut the **association** down and
/// wait until everything has arrived, because SCTP cannot end one direction or one stream alone
/// (RFC 9260 §9.2).
pub struct SendStream {
    association: Association,
    options: SendOptions,
    pending: Option<Bytes>,
    room: WaitWritable,
    ending: ShutdownFuture,
}

impl SendStream {
    pub(super) fn new(association: Association, stream: u16) -> Self {
        Self {
            association,
            options: SendOptions::on(stream),
            pending: None,
            room: WaitWritable::default(),
            ending: ShutdownFuture::default(),
        }
    }

    /// Returns a copy that sends messages with these options, but always on this stream.
    #[must_use]
    pub fn with_options(mut self, options: SendOptions) -> Self {
        self.options = options.with_stream(self.options.stream);
        self
    }

    /// Returns a copy that sends all messages with this Payload Protocol Identifier.
    #[must_use]
    pub fn with_ppid(mut self, ppid: u32) -> Self {
        self.options = self.options.with_ppid(ppid);
        self
    }

    /// The number of the stream.
    pub fn number(&self) -> u16 {
        self.options.stream.unwrap_or_default()
    }

    /// The association of the stream.
    pub fn association(&self) -> &Association {
        &self.association
    }

    /// Queues a message, and waits while the send buffer is full.
    ///
    /// Cancel-safe: if the future is dropped before it is ready, the message was not queued.
    ///
    /// # Errors
    /// The errors of [`Association::send`].
    pub async fn send(&mut self, bytes: impl Into<Bytes>) -> Result<(), SendError> {
        self.association.send(bytes, self.options).await
    }

    /// Queues a message if the send buffer has space for it now.
    ///
    /// # Errors
    /// The errors of [`Association::try_send`].
    pub fn try_send(&mut self, bytes: impl Into<Bytes>) -> Result<(), TrySendError> {
        self.association.try_send(bytes, self.options)
    }

    fn poll_pending(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        while let Some(bytes) = self.pending.take() {
            match self.try_send(bytes) {
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

    fn poll_put(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_pending(cx))?;
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let most = MAX_WRITE.min(self.association.max_message_size());
        let bytes = &bytes[..bytes.len().min(most)];
        let mut message = Bytes::copy_from_slice(bytes);
        // Bytes are always sent reliably and in order, regardless of the default options.
        let options = self.options.with_unordered(false).reliable();
        loop {
            match self.association.try_send(message, options) {
                Ok(()) => return Poll::Ready(Ok(bytes.len())),
                Err(TrySendError::Error(error)) => return Poll::Ready(Err(error.into())),
                Err(TrySendError::Full(given_back)) => {
                    message = given_back;
                    ready!(self.room.poll(cx, &self.association, bytes.len()));
                }
            }
        }
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        ready!(self.poll_pending(cx))?;
        let ended = self.ending.poll(cx, &self.association);
        ended.map_err(SinkError::from)
    }
}

impl<B: Into<Bytes>> Sink<B> for SendStream {
    type Error = SinkError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        self.poll_pending(cx).map_err(SinkError::from)
    }

    fn start_send(mut self: Pin<&mut Self>, item: B) -> Result<(), SinkError> {
        if self.pending.is_some() {
            return Err(SinkError::NotReady);
        }
        match self.try_send(item) {
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
        self.poll_end(cx)
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_put(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_pending(cx).map_err(io::Error::from)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_end(cx).map_err(io::Error::from)
    }
}

/// smol and its libraries use this trait.
#[cfg(feature = "smol")]
impl futures_io::AsyncWrite for SendStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_put(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_pending(cx).map_err(io::Error::from)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_end(cx).map_err(io::Error::from)
    }
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendStream")
            .field("association", &self.association)
            .field("stream", &self.number())
            .finish_non_exhaustive()
    }
}
