//! The states of a connection (RFC 9293 §3.3.2).

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// Sent a SYN, waits for its match.
    SynSent,
    /// Sent and received a SYN, waits for the acknowledgement of its own.
    SynReceived,
    /// Open.
    Established,
    /// Closed here; the FIN is not acknowledged.
    FinWait1,
    /// Closed here and acknowledged; waits for the peer's FIN.
    FinWait2,
    /// The peer closed; this end has not.
    CloseWait,
    /// Both closed at once; waits for the acknowledgement of the FIN.
    Closing,
    /// The peer closed first; waits for the acknowledgement of the FIN.
    LastAck,
    /// Waits until no old segment can be about (RFC 9293 §3.6.1).
    TimeWait,
}

impl State {
    /// Both SYNs are acknowledged, and the connection is not over.
    pub const fn is_synchronized(self) -> bool {
        !matches!(
            self,
            State::Closed | State::Listen | State::SynSent | State::SynReceived
        )
    }

    /// Text or a FIN may be on its way to the peer.
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

    /// The peer has not closed yet: its text is taken.
    pub const fn receives(self) -> bool {
        matches!(self, State::Established | State::FinWait1 | State::FinWait2)
    }
}
