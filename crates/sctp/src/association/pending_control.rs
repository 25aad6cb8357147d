//! Conditions under which an association cannot use the fast path, such as pending control chunks.

/// Set of such conditions, tested by one comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PendingControl(u8);

/// A control chunk that must be sent, or a condition that restricts which chunks may be sent.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum ControlTask {
    /// A RE-CONFIG with requests must be sent.
    ReConfig = 1,
    /// An ASCONF must be sent.
    Asconf = 2,
    /// No source address is left from which chunks other than an ASCONF may be sent.
    NoSourceAddress = 4,
    /// The peer has no verified address, so only HEARTBEATs may be sent.
    NoVerifiedPath = 8,
}

impl PendingControl {
    /// Whether the set is empty.
    #[inline]
    pub(crate) fn are_none(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn has(self, task: ControlTask) -> bool {
        self.0 & task as u8 != 0
    }

    pub(crate) fn set(&mut self, task: ControlTask) {
        self.0 |= task as u8;
    }

    pub(crate) fn clear(&mut self, task: ControlTask) {
        self.0 &= !(task as u8);
    }
}
