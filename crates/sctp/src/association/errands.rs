//! What an association has to do beside data and its acknowledgement.

/// What keeps an association from being plain: several things that one look tells of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Errands(u8);

/// One of them.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum Errand {
    /// A RE-CONFIG with requests must be sent.
    ReConfig = 1,
    /// An ASCONF must be sent.
    Asconf = 2,
    /// No address is left that anything but an ASCONF may be sent from.
    Mute = 4,
    /// The peer has no verified address, that anything but HEARTBEATs may be sent to.
    Stranded = 8,
}

impl Errands {
    /// Whether there are none.
    #[inline]
    pub(crate) fn are_none(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn has(self, errand: Errand) -> bool {
        self.0 & errand as u8 != 0
    }

    pub(crate) fn set(&mut self, errand: Errand) {
        self.0 |= errand as u8;
    }

    pub(crate) fn clear(&mut self, errand: Errand) {
        self.0 &= !(errand as u8);
    }
}
