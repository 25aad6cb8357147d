//! Buffer splitting between the paths of concurrent multipath transfer.

use anabranch_settings::spelled;

/// Which buffers are split between the active paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BufferSplit {
    /// Neither buffer is split.
    #[default]
    Off,
    /// The send buffer: limits data sent on a path and not yet cumulatively acknowledged.
    Sender,
    /// The peer's receive buffer: limits data in flight on a path.
    Receiver,
    /// Both buffers.
    Both,
}
spelled!(BufferSplit: BufferSplit::Off = "off", BufferSplit::Sender = "sender", BufferSplit::Receiver = "receiver",
    BufferSplit::Both = "both");
