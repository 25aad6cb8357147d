//! Events that a connection reports to its user.

use std::fmt;

/// Event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete, and data can be sent.
    Connected,
    /// The peer has closed its direction: no data follows after the data that can be read now.
    PeerClosed,
    /// Both ends have closed, and all data was acknowledged.
    Closed,
    /// The connection failed for this reason.
    Failed(Failure),
}

/// Reason why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The peer answered the SYN with a RST, because no socket listens on the port.
    Refused,
    /// The peer sent a RST after the handshake.
    Reset,
    /// The limit of consecutive retransmissions was reached (RFC 9293 §3.8.3).
    TimedOut,
    /// The local user called [`Connection::abort`](crate::Connection::abort).
    Aborted,
}

/// Formats the reason as text for messages.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "nobody listens there",
            Self::Reset => "reset by the peer",
            Self::TimedOut => "too many retransmissions in a row",
            Self::Aborted => "aborted here",
        })
    }
}
