//! The sockets of a driver, what waits to be sent on them, and what was counted.

use std::task::{Context, Poll};

use crate::socket::Sockets;
use crate::socket_errors::SocketErrors;
use crate::status::EndpointStatistics;
use crate::transmit_queue::{SendCounters, TransmitQueue};

/// The sending side, and what is counted of both.
#[derive(Debug)]
pub(crate) struct Io {
    pub sockets: Sockets,
    pub transmit_queue: TransmitQueue,
    pub sent: SendCounters,
    pub failures: SocketErrors,
    pub receive_calls: u64,
    pub receive_errors: u64,
    /// Datagrams that hold no whole packet.
    pub broken: u64,
    /// Packets dropped since too many waited.
    pub dropped: u64,
    /// Packets that another driver of the group has received for this one.
    pub handed_over: u64,
    /// Something was put into the mail of another, who may have to be woken.
    pub handed: bool,
}

impl Io {
    /// On these sockets, with nothing to send.
    pub(crate) fn new(sockets: Sockets) -> Self {
        Self {
            sockets,
            transmit_queue: TransmitQueue::default(),
            sent: SendCounters::default(),
            failures: SocketErrors::default(),
            receive_calls: 0,
            receive_errors: 0,
            broken: 0,
            dropped: 0,
            handed_over: 0,
            handed: false,
        }
    }

    /// Puts what was counted of the sockets where an endpoint shows it, of which `foreign` packets were not for it; errors apart.
    pub(crate) fn publish(&self, foreign: u64, statistics: &mut EndpointStatistics) {
        self.sent.publish(statistics);
        statistics.receive_calls = self.receive_calls;
        statistics.packets_dropped = self.dropped;
        statistics.packets_handed_over = self.handed_over;
        statistics.foreign = foreign + self.broken;
    }

    /// Puts errors where an endpoint shows them.
    pub(crate) fn publish_failures(&self, statistics: &mut EndpointStatistics) {
        statistics.receive_errors = self.receive_errors;
        statistics.socket_errors = self.failures.reasons().to_vec();
    }

    /// Whether so much waits that no more is gathered.
    pub(crate) fn is_full(&self) -> bool {
        TransmitQueue::is_full(self.transmit_queue.bytes.len())
    }

    /// Sends what was gathered, as far as the sockets take it. Ready when nothing waits any more.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.transmit_queue.is_empty() {
            return Poll::Ready(());
        }
        let counts = (&mut self.sent, &mut self.failures);
        self.transmit_queue.poll_flush(cx, &self.sockets, counts)
    }

    /// The same in another task than the driver's, as far as the sockets take it at once. Whether nothing waits any more.
    pub(crate) fn try_flush(&mut self) -> bool {
        let counts = (&mut self.sent, &mut self.failures);
        self.transmit_queue.try_flush(&self.sockets, counts)
    }
}
