//! What is asked of a stack's adapter.

use anabranch_transport::Nanos;
use bytes::Bytes;

/// The port of both ends inside a stack: some know no other. The packets outside have others.
pub(crate) const PORT: u16 = 5000;

/// One end of an association, as its adapter shows it.
pub(crate) trait End {
    /// Takes an SCTP packet.
    fn take(&mut self, now: Nanos, packet: Bytes);

    /// The next packet to send.
    fn give(&mut self, now: Nanos) -> Option<Bytes>;

    /// Whether messages may be sent.
    fn is_up(&self) -> bool;

    /// Bytes that were handed over and wait, as the stack counts them.
    fn buffered(&mut self) -> usize;

    /// Sends messages, a stream and a payload each.
    ///
    /// # Errors
    /// The stack refuses one; the message says why.
    fn send(&mut self, now: Nanos, messages: Vec<(u16, Bytes)>) -> Result<(), String>;

    /// The next message that arrived, with its stream.
    fn receive(&mut self) -> Option<(u16, Vec<u8>)>;

    /// Ends the association, when everything was acknowledged.
    fn shut_down(&mut self, now: Nanos);

    /// Why the association is over, if it is and nobody asked for it.
    fn failure(&mut self) -> Option<String>;

    /// What it tells of itself.
    fn facts(&mut self) -> Facts;

    /// When [`End::expire`] must be called at the latest.
    fn deadline(&self) -> Option<Nanos>;

    /// Runs the timers that are due.
    fn expire(&mut self, now: Nanos);
}

/// What a stack tells of itself; what it does not tell is `None`, or stays 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// Congestion window, bytes.
    pub cwnd: Option<u64>,
    /// Smoothed round-trip time, nanoseconds.
    pub rtt: Option<Nanos>,
    /// Expired retransmission timers.
    pub timeouts: u64,
    /// Fast retransmits, as the stack counts them.
    pub fast_retransmits: u64,
}

/// Whether an end connects or waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// It sends INIT.
    Connects,
    /// It answers one.
    Waits,
}
