//! Connection states (RFC 9293 §3.3.2).

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection.
    Closed,
    /// Waiting for a SYN from any peer.
    Listen,
    /// A SYN was sent; this end waits for the peer's SYN.
    SynSent,
    /// Both SYNs were exchanged; this end waits for the acknowledgement of its SYN.
    SynReceived,
    /// Both directions are open.
    Established,
    /// This end has closed first; its FIN is not acknowledged yet.
    FinWait1,
    /// This end has closed, and its FIN is acknowledged; it waits for the peer's FIN.
    FinWait2,
    /// The peer has closed; this end has not.
    CloseWait,
    /// Both ends closed at the same time; this end waits for the acknowledgement of its FIN.
    Closing,
    /// The peer closed first, and then this end; this end waits for the acknowledgement of its FIN.
    LastAck,
    /// Both ends have closed; this end waits until no old segment can be in the network (RFC 9293
    /// §3.6.1).
    TimeWait,
}

impl State {
    /// Whether both SYNs are acknowledged and the connection still exists.
    pub const fn is_synchronized(self) -> bool {
        !matches!(
            self,
            Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived
        )
    }

    /// Whether data or a FIN of this end may be outstanding.
    pub const fn sends(self) -> bool {
        matches!(
            self,
            Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck
        )
    }

    /// Whether the peer may still send data, which must be accepted.
    pub const fn receives(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }
}
