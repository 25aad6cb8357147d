//! Streams as separate sending and receiving halves, and associations through common traits:
//! [`Messages`] is a `Stream`, [`SendStream`] a `Sink`, and [`ByteStream`] reads and writes bytes.

mod bytes;
mod messages;
mod recv_stream;
mod send_stream;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use anabranch_sctp::CloseReason;

pub use self::bytes::ByteStream;
pub use self::messages::Messages;
pub use self::recv_stream::RecvStream;
pub use self::send_stream::SendStream;
use crate::association::Association;
use crate::error::{AssociationError, SendError, SinkError};

/// A future that is stored between polls.
type Waiting<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Future that waits for space in the send buffer, stored between polls.
#[derive(Default)]
struct WaitWritable(Option<Waiting<()>>);

impl WaitWritable {
    /// Ready when there may be space for `size` bytes. The caller should try to send, and poll
    /// again if there is not enough space.
    fn poll(&mut self, cx: &mut Context<'_>, association: &Association, size: usize) -> Poll<()> {
        let waiting = self.0.get_or_insert_with(|| {
            let association = association.clone();
            Box::pin(async move { association.room(size).await })
        });
        let ready = waiting.as_mut().poll(cx);
        if ready.is_ready() {
            self.0 = None;
        }
        ready
    }
}

/// Future that waits for the end of a graceful shutdown, stored between polls.
#[derive(Default)]
struct ShutdownFuture(Option<Waiting<Result<(), AssociationError>>>);

impl ShutdownFuture {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        association: &Association,
    ) -> Poll<Result<(), AssociationError>> {
        let waiting = self.0.get_or_insert_with(|| {
            let association = association.clone();
            Box::pin(async move { association.shutdown().await })
        });
        waiting.as_mut().poll(cx)
    }
}

impl From<AssociationError> for io::Error {
    /// `ConnectionReset` if the peer aborted, `TimedOut` if it did not answer, and
    /// `ConnectionAborted` for other reasons.
    fn from(lost: AssociationError) -> Self {
        let kind = match lost.0 {
            CloseReason::AbortedByPeer { .. } => io::ErrorKind::ConnectionReset,
            CloseReason::NoAnswer
            | CloseReason::NoCookieAck
            | CloseReason::PeerUnreachable
            | CloseReason::ShutdownTimeout => io::ErrorKind::TimedOut,
            _ => io::ErrorKind::ConnectionAborted,
        };
        Self::new(kind, lost)
    }
}

impl From<SendError> for io::Error {
    /// `BrokenPipe` if the association is closing or closed, and `InvalidInput` for other reasons.
    fn from(error: SendError) -> Self {
        let kind = match error {
            SendError::Closing => io::ErrorKind::BrokenPipe,
            _ => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

impl From<SinkError> for io::Error {
    fn from(error: SinkError) -> Self {
        match error {
            SinkError::Send(error) => error.into(),
            SinkError::Association(error) => error.into(),
            SinkError::NotReady => Self::new(io::ErrorKind::WouldBlock, error),
        }
    }
}
