//! Which buffers are split between paths that are used at once.

use anabranch_settings::spelled;

/// Which buffers are split between the active paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BufferSplit {
    /// None.
    #[default]
    Off,
    /// The send buffer: what a path holds of it until the cumulative TSN passes it.
    Sender,
    /// The peer's receive buffer: what is in flight on a path.
    Receiver,
    /// Both.
    Both,
}
spelled!(BufferSplit: BufferSplit::Off = "off", BufferSplit::Sender = "sender", BufferSplit::Receiver = "receiver",
    BufferSplit::Both = "both");
