//! State of a channel that other modules access: lifecycle, pending work, and request for queue
//! space.

use anabranch_transport::Nanos;

/// Approximate memory of a queued message besides its payload, bytes.
pub(super) const MESSAGE_OVERHEAD: usize = 64;

/// State of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The peer has not acknowledged the channel yet.
    Opening,
    /// Both ends have opened the channel.
    Open,
    /// The channel is being closed.
    Closing,
}

/// Pending work of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PendingWork {
    /// The first queued message: whether it is large, and its virtual finish time. `None` if no
    /// message can be passed on.
    pub next_message: Option<(bool, u64)>,
    /// Time at which the next queued message is abandoned.
    pub deadline: Option<Nanos>,
    /// True if the channel's stream should be reset.
    pub closing: bool,
    /// Size of the queue, bytes.
    pub queued_bytes: usize,
}

/// Request of a channel for space in the queues.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpaceRequest {
    /// Size of the refused message, bytes.
    pub size: usize,
    /// Number in the queue of waiting channels, until space is granted.
    pub ticket: Option<u64>,
    /// End of the reservation, if space is reserved.
    pub reserved_until: Option<Nanos>,
}

impl SpaceRequest {
    /// Whether the channel is waiting without a reservation.
    pub(super) fn is_waiting(&self) -> bool {
        self.ticket.is_some() && self.reserved_until.is_none()
    }
}
