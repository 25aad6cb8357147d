//! The sockets of a driver, what waits to be sent on them, and what was counted.

use std::task::{Context, Poll};

use crate::outbox::{Outbox, Sent};
use crate::socket::Sockets;

/// The sending side, and what is counted of both.
#[derive(Debug)]
pub(crate) struct Io {
    pub sockets: Sockets,
    pub outbox: Outbox,
    pub sent: Sent,
    pub receive_calls: u64,
    /// Datagrams that hold no whole packet.
    pub broken: u64,
    /// Packets dropped since too many waited.
    pub dropped: u64,
}

impl Io {
    /// On these sockets, with nothing to send.
    pub fn new(sockets: Sockets) -> Self {
        Self {
            sockets,
            outbox: Outbox::default(),
            sent: Sent::default(),
            receive_calls: 0,
            broken: 0,
            dropped: 0,
        }
    }

    /// Sends what was gathered, as far as the sockets take it. Ready when nothing waits any more.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.outbox.is_empty() {
            return Poll::Ready(());
        }
        self.outbox.poll_flush(cx, &self.sockets, &mut self.sent)
    }

    /// The same in another task than the driver's, as far as the sockets take it at once. Whether nothing waits any more.
    pub fn try_flush(&mut self) -> bool {
        self.outbox.try_flush(&self.sockets, &mut self.sent)
    }
}
