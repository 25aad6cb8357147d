//! Adapter interface of a stack.

use anabranch_transport::Nanos;
use bytes::Bytes;

/// Port of both ends inside a stack, because some stacks support no other. Packets on the wire have
/// other ports.
pub(crate) const PORT: u16 = 5000;

/// Adapter for one end of an association.
pub(crate) trait Adapter {
    /// Processes an SCTP packet.
    fn take(&mut self, now: Nanos, packet: Bytes);

    /// The next packet to send.
    fn give(&mut self, now: Nanos) -> Option<Bytes>;

    /// Whether messages can be sent.
    fn is_up(&self) -> bool;

    /// Number of bytes that were passed to the stack and are pending, as the stack counts them.
    fn buffered(&mut self) -> usize;

    /// Sends messages; each has a stream and a payload.
    ///
    /// # Errors
    /// The stack rejects one, with the reason.
    fn send(&mut self, now: Nanos, messages: Vec<(u16, Bytes)>) -> Result<(), String>;

    /// The next received message with its stream.
    fn receive(&mut self) -> Option<(u16, Vec<u8>)>;

    /// Shuts the association down after all data is acknowledged.
    fn shut_down(&mut self, now: Nanos);

    /// Reason why the association has ended, unless it was shut down by the user.
    fn failure(&mut self) -> Option<String>;

    /// Internal state reported by the stack.
    fn facts(&mut self) -> StackState;

    /// Deadline of the next call to [`Adapter::expire`].
    fn deadline(&self) -> Option<Nanos>;

    /// Handles expired timers.
    fn expire(&mut self, now: Nanos);
}

/// Internal state reported by a stack. Values that it does not report are `None` or 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackState {
    /// Congestion window, bytes.
    pub cwnd: Option<u64>,
    /// Smoothed round-trip time, nanoseconds.
    pub rtt: Option<Nanos>,
    /// Number of expired retransmission timers.
    pub timeouts: u64,
    /// Number of fast retransmits, as the stack counts them.
    pub fast_retransmits: u64,
}

/// Role of an end in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Sends INIT.
    Initiator,
    /// Responder for INIT.
    Responder,
}
