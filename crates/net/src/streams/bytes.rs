//! A stream of an association as a stream of bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{RecvStream, SendStream};
use crate::association::Association;

/// Both directions of one stream as a stream of bytes, for libraries that use tokio's [`AsyncRead`]
/// and [`AsyncWrite`], or with the feature `smol` those of `futures-io`: see
/// [`Association::byte_stream`]. [`ByteStream::into_split`] returns the two directions, which may
/// be moved to different tasks.
///
/// **Message boundaries are not preserved**: each write makes one message of at most 64 KiB, and a
/// read returns bytes of one message, regardless of the size of the peer's messages. Programs that
/// need the boundaries should use [`Association::recv`] and [`Association::send`]. `shutdown` shuts
/// the **association** down ([`SendStream`]).
#[derive(Debug)]
pub struct ByteStream {
    send: SendStream,
    recv: RecvStream,
}

impl Association {
    /// The sending and the receiving half of `stream`, for messages or bytes. The two halves may be
    /// moved to different tasks. Like a clone of the association, each half keeps it open.
    ///
    /// ```no_run
    /// # async fn run(association: anabranch_net::Association) {
    /// let (mut send, mut recv) = association.stream(3);
    /// tokio::spawn(async move { send.send("a request").await });
    /// tokio::spawn(async move { while let Ok(Some(message)) = recv.recv().await {} });
    /// # }
    /// ```
    pub fn stream(&self, stream: u16) -> (SendStream, RecvStream) {
        (
            SendStream::new(self.clone(), stream),
            RecvStream::new(self.clone(), stream),
        )
    }

    /// Both directions of `stream` as a [`ByteStream`].
    pub fn byte_stream(&self, stream: u16) -> ByteStream {
        let (send, recv) = self.stream(stream);
        ByteStream { send, recv }
    }
}

impl ByteStream {
    /// Returns a copy that sends all messages with this Payload Protocol Identifier.
    #[must_use]
    pub fn with_ppid(mut self, ppid: u32) -> Self {
        self.send = self.send.with_ppid(ppid);
        self
    }

    /// The association of the stream.
    pub fn association(&self) -> &Association {
        self.send.association()
    }

    /// The sending and the receiving half.
    pub fn into_split(self) -> (SendStream, RecvStream) {
        (self.send, self.recv)
    }
}

impl AsyncRead for ByteStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        AsyncRead::poll_read(Pin::new(&mut self.recv), cx, buffer)
    }
}

impl AsyncWrite for ByteStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(&mut self.send), cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(Pin::new(&mut self.send), cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_shutdown(Pin::new(&mut self.send), cx)
    }
}

/// smol and its libraries use this trait.
#[cfg(feature = "smol")]
impl futures_io::AsyncRead for ByteStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        futures_io::AsyncRead::poll_read(Pin::new(&mut self.recv), cx, buffer)
    }
}

/// smol and its libraries use this trait.
#[cfg(feature = "smol")]
impl futures_io::AsyncWrite for ByteStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        futures_io::AsyncWrite::poll_write(Pin::new(&mut self.send), cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        futures_io::AsyncWrite::poll_flush(Pin::new(&mut self.send), cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        futures_io::AsyncWrite::poll_close(Pin::new(&mut self.send), cx)
    }
}
