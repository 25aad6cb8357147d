//! State of a channel that other modules share: lifecycle, pending work, request for queue space.

use anabranch_transport::Nanos;

/// Approximate memory of a queued message besides its payload, bytes.
pub(super) const MESSAGE_OVERHEAD: usize = 64;

/// State of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The peer has not acknowledged it.
    Opening,
    /// Both ends know it.
    Open,
    /// The channel is being closed.
    Closing,
}

/// Pending work of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PendingWork {
    /// A message can be passed on: whether it is large, and its virtual finish time.
    pub next_message: Option<(bool, u64)>,
    /// Time at which a queued message is abandoned.
    pub deadline: Option<Nanos>,
    /// The channel's stream should be reset.
    pub closing: bool,
    /// Size of its queue, bytes.
    pub queued_bytes: usize,
}

/// Position of a channel in the queue for space.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpaceRequest {
    /// Size of the refused message, bytes.
    pub size: usize,
    /// Queue number, until it gets space.
    pub ticket: Option<u64>,
    /// End of its reservation.
    pub reserved_until: Option<Nanos>,
}

impl SpaceRequest {
    /// Whether the channel is waiting without a reservation.
    pub(super) fn is_waiting(&self) -> bool {
        self.ticket.is_some() && self.reserved_until.is_none()
    }
}
