//! What a connection tells its user.

use std::fmt;

/// Something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is done.
    Connected,
    /// The peer closed: after what is readable nothing more will come.
    PeerClosed,
    /// Both ends closed and everything was acknowledged.
    Closed,
    /// The connection is over before its time.
    Failed(Failure),
}

/// Why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// Nobody listens: a RST answered the SYN.
    Refused,
    /// The peer sent a RST.
    Reset,
    /// Too many retransmissions in a row (RFC 9293 §3.8.3).
    TimedOut,
    /// [`Connection::abort`](crate::Connection::abort) was called here.
    Aborted,
}

/// Why, in words.
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
