//! DAC: SACKs are delayed although data overtakes other data, and say how many packets they answer, so that a missing TSN counts
//! as many reports as packets have passed it (Iyengar et al. 2006, delayed ack for CMT). The two high bits of a SACK's flags
//! carry that number, 1 to 3, where RFC 9260 §3.3.4 has zeros. The receiving half is in `rx/sack_policy.rs`.

use anabranch_wire::Tsn;

use crate::tx::Sender;
use crate::tx::ack::Newly;

/// Where the number stands in the flags.
const SHIFT: u32 = 6;
/// The most that two bits tell.
const MOST: u32 = 3;

/// The flags of a SACK that answers so many packets.
pub(crate) fn flags(packets: u32) -> u8 {
    (packets.min(MOST) << SHIFT) as u8
}

impl Sender {
    /// The flags of the SACK that is taken next; 0 once it is.
    #[cold]
    pub(crate) fn note_sack_flags(&mut self, flags: u8) {
        if let Some(cmt) = &mut self.cmt {
            cmt.reported = flags >> SHIFT;
        }
    }

    /// Reports that the SACK at hand makes for the missing `tsn`: the packets it answers, if all were of one path and all are
    /// later than `tsn`; else one.
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
