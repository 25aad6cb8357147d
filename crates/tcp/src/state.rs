//! Connection states (RFC 9293 §3.3.2).

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// A SYN was sent; waiting for the peer's SYN.
    SynSent,
    /// A SYN was sent and received; waiting for the acknowledgement of the sent SYN.
    SynReceived,
    /// Open.
    Established,
    /// Closed locally; the FIN is not acknowledged.
    FinWait1,
    /// Closed locally and acknowledged; waiting for the peer's FIN.
    FinWait2,
    /// Closed by the peer, but not locally.
    CloseWait,
    /// Both ends closed at the same time; waiting for the acknowledgement of the FIN.
    Closing,
    /// The peer closed first; waiting for the acknowledgement of the FIN.
    LastAck,
    /// Waiting until no old segment can be in the network (RFC 9293 §3.6.1).
    TimeWait,
}

impl State {
    /// Whether both SYNs are acknowledged and the connection has not ended.
    pub const fn is_synchronized(self) -> bool {
        !matches!(
            self,
            State::Closed | State::Listen | State::SynSent | State::SynReceived
        )
    }

    /// Whether data or a FIN may be outstanding.
    pub const fn sends(self) -> bool {
        matches!(
            self,
            State::Established
                | State::CloseWait
                | State::FinWait1
                | State::Closing
                | State::LastAck
        )
    }

    /// Whether the peer has not closed yet, so that its data must be accepted.
    pub const fn receives(self) -> bool {
        matches!(self, State::Established | State::FinWait1 | State::FinWait2)
    }
}
