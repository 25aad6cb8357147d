//! Buffer splitting between concurrently used paths.

use anabranch_settings::spelled;

/// Buffers that are split between the active paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BufferSplit {
    /// Neither buffer is split.
    #[default]
    Off,
    /// Send buffer: data sent on a path that is not yet cumulatively acknowledged.
    Sender,
    /// Peer's receive buffer: data in flight on a path.
    Receiver,
    /// Both buffers.
    Both,
}
spelled!(BufferSplit: BufferSplit::Off = "off", BufferSplit::Sender = "sender", BufferSplit::Receiver = "receiver",
    BufferSplit::Both = "both");
