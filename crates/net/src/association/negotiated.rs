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

    /// Whether both ends may change their addresses (RFC 5061).
    pub fn takes_address_changes(&self) -> bool {
        self.speaks(sctp::Association::takes_address_changes)
    }

    /// Whether both ends use ECN.
    pub fn uses_ecn(&self) -> bool {
        self.speaks(sctp::Association::uses_ecn)
    }

    /// Whether packets go to the peer without a checksum (RFC 9653).
    pub fn sends_zero_checksums(&self) -> bool {
        self.speaks(sctp::Association::sends_zero_checksums)
    }

    /// All that is spoken, by the names of the settings that offer it.
    pub fn extensions(&self) -> Vec<&'static str> {
        type Asked = fn(&sctp::Association) -> bool;
        const ALL: [(&str, Asked); 7] = [
            (
                "partial_reliability",
                sctp::Association::is_partially_reliable,
            ),
            ("interleaving", sctp::Association::is_interleaving),
            ("reconfiguration", sctp::Association::is_reconfigurable),
            ("authentication", sctp::Association::is_authenticated),
            ("address_changes", sctp::Association::takes_address_changes),
            ("zero_checksum", sctp::Association::sends_zero_checksums),
            ("ecn", sctp::Association::uses_ecn),
        ];
        let mut state = self.shared.lock();
        let association = state.association(self.id);
        let spoken = association.iter().flat_map(|it| {
            let spoken = ALL.iter().filter(|(_, speaks)| speaks(it));
            spoken.map(|(name, _)| *name)
        });
        spoken.collect()
    }

    fn speaks(&self, what: impl FnOnce(&sctp::Association) -> bool) -> bool {
        let mut state = self.shared.lock();
        let association = state.association(self.id);
        association.is_some_and(|it| what(it))
    }
}
