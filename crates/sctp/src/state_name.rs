//! The names of an association's states, which users and events go by. What is alive in a state is in `state.rs`.

/// The name of a state (RFC 9260 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateName {
    /// COOKIE-WAIT.
    CookieWait,
    /// COOKIE-ECHOED.
    CookieEchoed,
    /// ESTABLISHED.
    Established,
    /// SHUTDOWN-PENDING.
    ShutdownPending,
    /// SHUTDOWN-SENT.
    ShutdownSent,
    /// SHUTDOWN-RECEIVED.
    ShutdownReceived,
    /// SHUTDOWN-ACK-SENT.
    ShutdownAckSent,
    /// CLOSED.
    Closed,
}
