//! Adapter: the interface through which this crate uses every third-party stack.

use anabranch_transport::Nanos;
use bytes::Bytes;

/// Port that both ends use inside a stack, because some stacks support no other. Packets on the
/// wire have other ports.
pub(crate) const PORT: u16 = 5000;

/// Adapter of a stack for one end of an association.
pub(crate) trait Adapter {
    /// Processes an SCTP packet.
    fn take(&mut self, now: Nanos, packet: Bytes);

    /// Returns the next packet to send.
    fn give(&mut self, now: Nanos) -> Option<Bytes>;

    /// Whether messages can be sent.
    fn is_up(&self) -> bool;

    /// Number of bytes that were passed to the stack and are pending, according to the stack.
    fn buffered(&mut self) -> usize;

    /// Sends messages; each has a stream and a payload.
    ///
    /// # Errors
    /// Returns the reason if the stack rejects a message.
    fn send(&mut self, now: Nanos, messages: Vec<(u16, Bytes)>) -> Result<(), String>;

    /// Returns the next received message with its stream.
    fn receive(&mut self) -> Option<(u16, Vec<u8>)>;

    /// Shuts the association down after all data is acknowledged.
    fn shut_down(&mut self, now: Nanos);

    /// Reason why the association has failed; `None` if it has not, or if the user has shut it
    /// down.
    fn failure(&mut self) -> Option<String>;

    /// State that the stack reports.
    fn facts(&mut self) -> StackState;

    /// Time by which [`Adapter::expire`] should be called.
    fn deadline(&self) -> Option<Nanos>;

    /// Handles timers that have expired.
    fn expire(&mut self, now: Nanos);
}

/// State that a stack reports. Values that a stack does not report are `None` or 0.
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
    /// Sends the INIT.
    Initiator,
    /// Waits for an INIT and answers it.
    Responder,
}
