//! Explicit congestion notification (RFC 3168 §6.1): who agrees to it, and the receiver's echo of marks.

use anabranch_transport::Ecn;
use anabranch_wire::tcp::Flags;

/// SYN with both flags: an ECN-setup SYN (§6.1.1).
const SETUP: Flags = Flags(Flags::ECE.0 | Flags::CWR.0);

/// What this end sent and heard of ECN.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Agreement {
    /// This end sent an ECN-setup SYN or SYN-ACK.
    offered: bool,
    /// The peer's last SYN or SYN-ACK was an ECN-setup one, and this end uses ECN.
    heard: bool,
    /// A SYN or SYN-ACK without ECN was sent after all: this end's text must not be ECN-capable (§6.1.1).
    withdrawn: bool,
    /// A mark came: acknowledgements carry ECN-Echo until a CWR comes (§6.1.3).
    echoing: bool,
}

impl Agreement {
    /// The flags of a SYN. A first SYN asks; one that goes again does not, since a middlebox may drop what asks (§6.1.1.1).
    pub fn syn_flags(&mut self, first: bool, wanted: bool) -> Flags {
        if wanted && first {
            self.offered = true;
            return SETUP;
        }
        self.withdrawn = true;
        Flags::NONE
    }

    /// The flags of a SYN-ACK, which agrees where the SYN asked.
    pub fn syn_ack_flags(&mut self) -> Flags {
        if self.heard && !self.withdrawn {
            self.offered = true;
            return Flags::ECE;
        }
        self.withdrawn = true;
        Flags::NONE
    }

    /// The peer's SYN or SYN-ACK. A SYN-ACK with both flags is one that reflects what it was sent (§6.1.1).
    pub fn hear(&mut self, flags: Flags, wanted: bool) {
        let asks = flags.contains(SETUP);
        let agrees = flags.contains(Flags::ECE) && !flags.contains(Flags::CWR);
        self.heard = wanted
            && if flags.contains(Flags::ACK) {
                agrees
            } else {
                asks
            };
    }

    /// A RST may be an answer to the flags of the SYN; one without them may do (§6.1.1.1).
    pub fn may_retry_without(&self) -> bool {
        self.offered && !self.withdrawn
    }

    /// This end's text may be ECN-capable.
    pub fn is_capable(&self) -> bool {
        self.offered && self.heard && !self.withdrawn
    }

    /// Text came in an acceptable segment with `flags`, in a packet with `ecn`.
    pub fn receive_text(&mut self, flags: Flags, ecn: Ecn) {
        // CWR first: the packet that carries it may be marked itself.
        if flags.contains(Flags::CWR) {
            self.echoing = false;
        }
        if ecn == Ecn::Ce && self.offered && self.heard {
            self.echoing = true;
        }
    }

    /// The same where each mark is echoed, whatever CWR says (RFC 8257 §3.2). Returns whether the echo changes with this packet, so
    /// that what came before it is to be acknowledged first.
    pub fn changes_echo(&self, ecn: Ecn) -> bool {
        self.offered && self.heard && self.echoing != (ecn == Ecn::Ce)
    }

    /// See [`Self::changes_echo`].
    pub fn turn_echo(&mut self) {
        self.echoing = !self.echoing;
    }

    /// What an acknowledgement carries.
    pub fn echo(&self) -> Flags {
        if self.echoing {
            Flags::ECE
        } else {
            Flags::NONE
        }
    }
}
