//! DAC: SACKs are delayed despite reordering between paths and report the number of packets they
//! acknowledge, so that a missing TSN receives one report per later packet ("delayed ack for CMT"
//! of Iyengar et al. 2006). The two high bits of a SACK's flags, which are zero in RFC 9260 §3.3.4,
//! contain this number, 1 to 3. `rx/sack_policy.rs` contains the receiver side.

use anabranch_wire::Tsn;

use crate::tx::Sender;
use crate::tx::ack::Newly;

/// Bit position of the number of packets in the flags.
const SHIFT: u32 = 6;
/// Maximum number of packets that two bits can report.
const MAX: u32 = 3;

/// Flags of a SACK that acknowledges this number of packets.
pub(crate) fn flags(packets: u32) -> u8 {
    (packets.min(MAX) << SHIFT) as u8
}

impl Sender {
    /// Stores the flags of the SACK that is processed next; reset to 0 afterwards.
    #[cold]
    pub(crate) fn note_sack_flags(&mut self, flags: u8) {
        if let Some(cmt) = &mut self.cmt {
            cmt.reported = flags >> SHIFT;
        }
    }

    /// Number of missing reports for `tsn` that the current SACK counts as: the number of packets
    /// that the SACK acknowledges, if all these packets were sent on one path and after `tsn`; else
    /// one.
    pub(in crate::tx) fn reports_of(&self, tsn: Tsn, newly: &Newly) -> u32 {
        let Some(cmt) = self.cmt.as_ref().filter(|cmt| cmt.delayed_ack) else {
            return 1;
        };
        let paths = self.acks.iter().filter(|ack| ack.chunks > 0).count();
        let before_all = newly.lowest_by_gap.is_some_and(|lowest| tsn.lt(lowest));
        if paths == 1 && before_all {
            u32::from(cmt.reported).max(1)
        } else {
            1
        }
    }
}
