//! Events that a connection reports to its user.

use std::fmt;

/// A reported event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// The peer has closed: no more data will arrive after the data that can be read now.
    PeerClosed,
    /// Both ends have closed and all data was acknowledged.
    Closed,
    /// The connection failed.
    Failed(Failure),
}

/// Reason why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The SYN was answered with a RST, because no listener exists.
    Refused,
    /// The peer sent a RST.
    Reset,
    /// Too many consecutive retransmissions (RFC 9293 §3.8.3).
    TimedOut,
    /// The local user called [`Connection::abort`](crate::Connection::abort).
    Aborted,
}

/// The reason as text.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Refused => "nobody listens there",
            Failure::Reset => "reset by the peer",
            Failure::TimedOut => "too many retransmissions in a row",
            Failure::Aborted => "aborted here",
        })
    }
}
