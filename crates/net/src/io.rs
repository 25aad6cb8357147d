//! The sockets of a driver with their transmit queue and counters.

use std::task::{Context, Poll};

use crate::socket::Sockets;
use crate::socket_errors::SocketErrors;
use crate::status::EndpointStatistics;
use crate::transmit_queue::{SendCounters, TransmitQueue};

/// Sockets, transmit queue, and counters of sent and received packets.
#[derive(Debug)]
pub(crate) struct Io {
    pub sockets: Sockets,
    pub transmit_queue: TransmitQueue,
    pub sent: SendCounters,
    pub failures: SocketErrors,
    pub receive_calls: u64,
    pub receive_errors: u64,
    /// Received datagrams that were dropped because they contain no whole packet.
    pub broken: u64,
    /// Received packets that were dropped because the receive queue was full.
    pub dropped: u64,
    /// Packets that another shard has received and passed to this shard.
    pub handed_over: u64,
    /// True if a packet was passed to another shard, which may have to be woken.
    pub handed: bool,
}

impl Io {
    /// Creates the state for these sockets, with an empty transmit queue.
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

    /// Copies the counters of the sockets to the statistics of an endpoint, except errors.
    /// `foreign` is the number of packets from wrong UDP ports.
    pub(crate) fn publish(&self, foreign: u64, statistics: &mut EndpointStatistics) {
        self.sent.publish(statistics);
        statistics.receive_calls = self.receive_calls;
        statistics.packets_dropped = self.dropped;
        statistics.packets_handed_over = self.handed_over;
        statistics.foreign = foreign + self.broken;
    }

    /// Copies the error counters to the statistics of an endpoint.
    pub(crate) fn publish_failures(&self, statistics: &mut EndpointStatistics) {
        statistics.receive_errors = self.receive_errors;
        statistics.socket_errors = self.failures.reasons().to_vec();
    }

    /// Returns true if the transmit queue is full.
    pub(crate) fn is_full(&self) -> bool {
        TransmitQueue::is_full(self.transmit_queue.bytes.len())
    }

    /// Sends queued packets until the queue is empty (ready) or the sockets are not writable.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.transmit_queue.is_empty() {
            return Poll::Ready(());
        }
        let counts = (&mut self.sent, &mut self.failures);
        self.transmit_queue.poll_flush(cx, &self.sockets, counts)
    }

    /// Sends queued packets from a task other than the driver's, without waiting. Returns true if
    /// the queue is empty afterwards.
    pub(crate) fn try_flush(&mut self) -> bool {
        let counts = (&mut self.sent, &mut self.failures);
        self.transmit_queue.try_flush(&self.sockets, counts)
    }
}
