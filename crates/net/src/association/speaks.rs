//! What is spoken with the peer beyond RFC 9260, since both ends offered it.

use anabranch_sctp as sctp;

use super::Association;

impl Association {
    /// Whether messages are interleaved (RFC 8260).
    pub fn is_interleaving(&self) -> bool {
        self.speaks(sctp::Association::is_interleaving)
    }

    /// Whether messages may be given up (RFC 3758).
    pub fn is_partially_reliable(&self) -> bool {
        self.speaks(sctp::Association::is_partially_reliable)
    }

    /// Whether packets go to the peer without a checksum (RFC 9653).
    pub fn sends_zero_checksums(&self) -> bool {
        self.speaks(sctp::Association::sends_zero_checksums)
    }

    fn speaks(&self, what: impl FnOnce(&sctp::Association) -> bool) -> bool {
        let mut state = self.shared.lock();
        let association = state.association(self.id);
        association.is_some_and(|it| what(it))
    }
}
