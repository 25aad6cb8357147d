//! Explicit congestion notification (RFC 3168 §6.1, RFC 9768 §3.1): negotiation in the handshake,
//! and the echo of marks by the receiver.

use anabranch_transport::Ecn;
use anabranch_wire::tcp::Flags;

use super::accurate_ecn::{AccurateReceiver, INITIAL_BYTES, INITIAL_CE_PACKETS};
use crate::tx::accurate_ecn::AccurateSender;
use crate::tx::ecn::SettledEcn;

/// ECN variant that an end supports according to its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EcnSupport {
    None,
    /// Only RFC 3168.
    Classic,
    /// RFC 9768; and RFC 3168 with a peer that supports only that.
    Accurate,
}

/// SYN with both flags: an ECN-setup SYN (§6.1.1).
const SETUP: Flags = Flags(Flags::ECE.0 | Flags::CWR.0);

/// ECN state of one end: offers sent and received, and the mode that follows from them.
#[derive(Debug, Default)]
pub(super) struct Agreement {
    /// This end sent an ECN-setup SYN or SYN-ACK.
    offered: bool,
    /// The last SYN or SYN-ACK of the peer was an ECN-setup one, and this end uses ECN. An end that
    /// supports AccECN does not change this after the peer's first SYN; in AccECN mode it is
    /// `false`.
    peer_offered: bool,
    /// Modes that the peer's SYNs have requested so far: ECN according to RFC 3168, and AccECN. The
    /// modes are recorded only if this end supports both.
    requested_classic: bool,
    requested_accurate: bool,
    /// The peer answered a SYN with ECN flags with a RST.
    refused: bool,
    /// A SYN or SYN-ACK without ECN was sent or received, so data of this end must not be
    /// ECN-capable (§6.1.1).
    withdrawn: bool,
    /// A mark was received. Acknowledgements carry ECN-Echo until a CWR arrives (§6.1.3).
    echoing: bool,
    /// State of AccECN mode (RFC 9768), once entered.
    accurate: Option<Box<AccurateReceiver>>,
}

impl Agreement {
    /// Flags of a SYN. Only the first SYN requests ECN; its retransmissions do not, because a
    /// middlebox may drop such requests (§6.1.1.1). A request for accurate ECN is sent twice (RFC
    /// 9768 §3.1.4.1).
    pub(super) fn syn_flags(&mut self, number: u32, support: EcnSupport) -> Flags {
        let (flags, last) = match support {
            EcnSupport::None => (Flags::NONE, 0),
            EcnSupport::Classic => (SETUP, 1),
            EcnSupport::Accurate => (SETUP | Flags::AE, 2),
        };
        if number <= last && !self.refused {
            self.offered = true;
            return flags;
        }
        self.withdrawn = true;
        Flags::NONE
    }

    /// Flags of a SYN-ACK, which accepts ECN if the SYN requested it.
    pub(super) fn syn_ack_flags(&mut self) -> Flags {
        if let Some(accurate) = &mut self.accurate {
            return accurate.syn_ack_flags();
        }
        if self.peer_offered && !self.withdrawn {
            self.offered = true;
            return Flags::ECE;
        }
        self.withdrawn = true;
        Flags::NONE
    }

    /// Processes the first SYN or SYN-ACK of the peer, which determines the mode of the connection
    /// (RFC 9768 §3.1.2 table 2, §3.1.3).
    pub(super) fn on_syn(&mut self, flags: Flags, field: Ecn, support: EcnSupport) {
        if support != EcnSupport::Accurate {
            return self.on_classic_syn(flags, support == EcnSupport::Classic);
        }
        let is_answer = flags.contains(Flags::ACK);
        if !is_answer {
            self.record_request(flags);
        }
        match (is_answer, flags.ace()) {
            // A SYN-ACK with all flags set is a reflected SYN.
            (_, 0) | (true, 7) => {}
            (true, 1) | (false, 3) => self.peer_offered = true,
            (_, report) => {
                let mut accurate = AccurateReceiver::new(field, is_answer);
                if is_answer {
                    accurate.on_handshake_report(report);
                }
                self.accurate = Some(Box::new(accurate));
            }
        }
    }

    /// Processes a repeated SYN before the connection is established. If this end supports AccECN,
    /// the mode does not change. Returns `false` if the SYNs of the peer requested both modes: the
    /// connection must then be reset (RFC 9768 §3.1.5).
    pub(super) fn on_syn_again(&mut self, flags: Flags, field: Ecn, support: EcnSupport) -> bool {
        if support != EcnSupport::Accurate {
            self.on_classic_syn(flags, support == EcnSupport::Classic);
            return true;
        }
        // This SYN-ACK belongs to a simultaneous open, in which the SYN of the peer was already
        // processed.
        if flags.contains(Flags::ACK) {
            return true;
        }
        let without = flags.ace() == 0;
        match &mut self.accurate {
            Some(accurate) => {
                accurate.on_syn(field);
                accurate.withdrawn |= without;
            }
            None => self.withdrawn |= without,
        }
        self.record_request(flags);
        !(self.requested_classic && self.requested_accurate)
    }

    /// Records the mode that a SYN of the peer requests (RFC 9768 table 2).
    fn record_request(&mut self, flags: Flags) {
        match flags.ace() {
            0 => {}
            3 => self.requested_classic = true,
            _ => self.requested_accurate = true,
        }
    }

    /// Processes a repeated SYN-ACK after the connection was established. Returns whether its
    /// acknowledgement must report the ECN field of the SYN-ACK (RFC 9768 §3.2.2.1).
    pub(super) fn on_syn_ack_again(&mut self, flags: Flags, field: Ecn) -> bool {
        match &mut self.accurate {
            Some(accurate) if !matches!(flags.ace(), 0 | 1 | 7) => {
                accurate.on_syn_ack(field);
                true
            }
            _ => false,
        }
    }

    /// Processes the first acknowledgement of this end's SYN-ACK, which carries neither data nor
    /// SACK blocks (RFC 9768 §3.2.2.1 table 4).
    pub(super) fn on_ack_of_syn_ack(&mut self, flags: Flags) {
        if let Some(accurate) = &mut self.accurate {
            accurate.on_handshake_report(flags.ace());
        }
    }

    /// State of AccECN mode, if the connection is in this mode.
    #[inline]
    pub(super) fn accurate_mut(&mut self) -> Option<&mut AccurateReceiver> {
        self.accurate.as_deref_mut()
    }

    /// Result of the negotiation, as needed by the data sender.
    pub(super) fn settled(&self) -> SettledEcn {
        let Some(accurate) = &self.accurate else {
            return SettledEcn {
                capable: self.is_capable(),
                ..SettledEcn::default()
            };
        };
        // Only a server counts a mark of the packet that it sent in the handshake. A client does
        // not count a mark of its SYN, because the server does not count it either (§3.2.2.2).
        let counted = u64::from(accurate.syn_marked() && accurate.is_server());
        SettledEcn {
            capable: accurate.is_capable(),
            accurate: (accurate.reads_counters())
                .then(|| AccurateSender::new(INITIAL_CE_PACKETS + counted, INITIAL_BYTES)),
            syn_marked: accurate.syn_marked(),
        }
    }

    /// Processes a SYN or SYN-ACK of the peer according to RFC 3168. A SYN-ACK with both flags set
    /// is a reflected SYN and does not accept ECN (§6.1.1).
    fn on_classic_syn(&mut self, flags: Flags, wanted: bool) {
        let asks = flags.contains(SETUP);
        let agrees = flags.contains(Flags::ECE) && !flags.contains(Flags::CWR);
        self.peer_offered = wanted
            && if flags.contains(Flags::ACK) {
                agrees
            } else {
                asks
            };
    }

    /// Whether the SYN should be sent again without ECN after a RST, because the flags may have
    /// caused the RST (§6.1.1.1).
    pub(super) fn retries_without(&mut self) -> bool {
        let retries = self.offered && !self.withdrawn && !self.refused;
        self.refused |= retries;
        retries
    }

    /// Whether the data of this end may be ECN-capable if the connection is not in AccECN mode.
    fn is_capable(&self) -> bool {
        self.offered && self.peer_offered && !self.withdrawn
    }

    /// Updates the echo for an acceptable segment with data, with TCP flags `flags` and the ECN
    /// field `ecn` of its packet.
    pub(super) fn receive_data(&mut self, flags: Flags, ecn: Ecn) {
        // CWR is processed before the mark, because the packet that carries CWR may itself be
        // marked.
        if flags.contains(Flags::CWR) {
            self.echoing = false;
        }
        if ecn == Ecn::Ce && self.offered && self.peer_offered {
            self.echoing = true;
        }
    }

    /// Whether this packet is marked differently from the previous one, so that earlier data must
    /// be acknowledged first. Used for controllers that need an echo of each mark regardless of CWR
    /// (RFC 8257 §3.2).
    pub(super) fn changes_echo(&self, ecn: Ecn) -> bool {
        self.offered && self.peer_offered && self.echoing != (ecn == Ecn::Ce)
    }

    /// Toggles the echo, see [`Self::changes_echo`].
    pub(super) fn toggle_echo(&mut self) {
        self.echoing = !self.echoing;
    }

    /// ECN flags of an acknowledgement.
    pub(super) fn echo(&self) -> Flags {
        if self.echoing {
            Flags::ECE
        } else {
            Flags::NONE
        }
    }
}
