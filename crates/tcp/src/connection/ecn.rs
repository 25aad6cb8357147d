//! Explicit congestion notification (RFC 3168 §6.1): negotiation, and the receiver's echo of marks.

use anabranch_transport::Ecn;
use anabranch_wire::tcp::Flags;

/// SYN with both flags: an ECN-setup SYN (§6.1.1).
const SETUP: Flags = Flags(Flags::ECE.0 | Flags::CWR.0);

/// ECN state of one end: sent and received offers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Agreement {
    /// This end sent an ECN-setup SYN or SYN-ACK.
    offered: bool,
    /// The last SYN or SYN-ACK of the peer was an ECN-setup one, and this end uses ECN.
    peer_offered: bool,
    /// A SYN or SYN-ACK without ECN was sent later. Data of this end must not be ECN-capable
    /// (§6.1.1).
    withdrawn: bool,
    /// A mark was received. Acknowledgements carry ECN-Echo until a CWR arrives (§6.1.3).
    echoing: bool,
}

impl Agreement {
    /// Flags of a SYN. Only the first SYN requests ECN; its retransmissions do not, because a
    /// middlebox may drop such requests (§6.1.1.1).
    pub fn syn_flags(&mut self, first: bool, wanted: bool) -> Flags {
        if wanted && first {
            self.offered = true;
            return SETUP;
        }
        self.withdrawn = true;
        Flags::NONE
    }

    /// Flags of a SYN-ACK, which accepts ECN if the SYN requested it.
    pub fn syn_ack_flags(&mut self) -> Flags {
        if self.peer_offered && !self.withdrawn {
            self.offered = true;
            return Flags::ECE;
        }
        self.withdrawn = true;
        Flags::NONE
    }

    /// Processes the SYN or SYN-ACK of the peer. A SYN-ACK with both flags set is a reflected SYN
    /// and does not accept ECN (§6.1.1).
    pub fn on_syn_flags(&mut self, flags: Flags, wanted: bool) {
        let asks = flags.contains(SETUP);
        let agrees = flags.contains(Flags::ECE) && !flags.contains(Flags::CWR);
        self.peer_offered = wanted
            && if flags.contains(Flags::ACK) {
                agrees
            } else {
                asks
            };
    }

    /// Whether a SYN without ECN should be tried after a RST, which may have been caused by the
    /// flags (§6.1.1.1).
    pub fn may_retry_without(&self) -> bool {
        self.offered && !self.withdrawn
    }

    /// Whether the data of this end may be ECN-capable.
    pub fn is_capable(&self) -> bool {
        self.offered && self.peer_offered && !self.withdrawn
    }

    /// Processes data in an acceptable segment with `flags`, received in a packet with `ecn`.
    pub fn receive_data(&mut self, flags: Flags, ecn: Ecn) {
        // CWR comes first because the packet that carries it may be marked itself.
        if flags.contains(Flags::CWR) {
            self.echoing = false;
        }
        if ecn == Ecn::Ce && self.offered && self.peer_offered {
            self.echoing = true;
        }
    }

    /// Whether this packet changes the echo, so that earlier data must be acknowledged first. For
    /// controllers that need an echo of each mark regardless of CWR (RFC 8257 §3.2).
    pub fn changes_echo(&self, ecn: Ecn) -> bool {
        self.offered && self.peer_offered && self.echoing != (ecn == Ecn::Ce)
    }

    /// Toggles the echo, see [`Self::changes_echo`].
    pub fn toggle_echo(&mut self) {
        self.echoing = !self.echoing;
    }

    /// ECN flags of an acknowledgement.
    pub fn echo(&self) -> Flags {
        if self.echoing {
            Flags::ECE
        } else {
            Flags::NONE
        }
    }
}
