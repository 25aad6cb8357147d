//! Explicit Congestion Notification: the chunks ECNE and CWR, which RFC 9260 §3.2 reserves and RFC
//! 4960 Appendix A describes.
//!
//! - ECN is used if both ends offer it by the parameter 0x8000 of INIT and INIT ACK. This side
//!   offers it if the profile switch `ecn` is on.
//! - A packet whose DATA is all new is ECN-capable. The receiver of a packet marked CE sends an
//!   ECNE with each SACK until a CWR answers the last marked packet.
//! - The sender reacts to an ECNE once per window of data and destination ([`crate::tx`]), and
//!   reports this by a CWR with the next DATA. Neither ECNE nor CWR causes a separate packet, so
//!   that flooding with these chunks has no effect.

use anabranch_transport::{Ecn, Nanos};
use anabranch_wire::Tsn;
use anabranch_wire::chunk::{Cwr, Ecne};
use anabranch_wire::packet::PacketBuilder;

use crate::association::Association;
use crate::discard::{DiscardCounts, DiscardReason};
use crate::tx::{Heard, Sender};

/// ECN state of an association.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// Whether the current packet is marked CE, and none of its DATA was accepted so far.
    marked: bool,
    /// Lowest TSN of the last marked packet, to be reported by ECNE until a CWR acknowledges it.
    echo: Option<Tsn>,
    /// TSN that the next CWR acknowledges; `None`: no CWR is due.
    cwr_owed: Option<Tsn>,
    /// Whether the last written packet contains only new DATA, so that it may be ECN-capable.
    capable: bool,
}

impl Association {
    /// Records the ECN field of a received packet before its chunks are processed.
    pub(crate) fn note_field(&mut self, ecn: Ecn) {
        let marked = ecn == Ecn::Ce;
        if marked {
            self.control.rare().marks_received += 1;
        }
        if let Some(marks) = &mut self.marks {
            marks.marked = marked;
        }
    }

    /// Records new DATA of the current packet. The first TSN is the lowest, because TSNs increase
    /// within a packet (RFC 9260 §6.10).
    pub(crate) fn note_marked_data(&mut self, tsn: Tsn) {
        if let Some(marks) = &mut self.marks
            && std::mem::take(&mut marks.marked)
            && marks.echo.is_none_or(|echo| tsn.gt(echo))
        {
            marks.echo = Some(tsn);
        }
    }

    /// Processes an ECNE, which reports that a packet of this side was marked.
    pub(crate) fn on_ecne(&mut self, now: Nanos, ecne: Ecne, discards: &mut DiscardCounts) {
        let Some(marks) = self.marks.as_mut().filter(|_| self.state.sends_data()) else {
            return discards.count(DiscardReason::WrongState);
        };
        let tsn = ecne.lowest_tsn;
        match self
            .tx
            .make(&self.config, self.local_initial_tsn)
            .handle_ecne(now, tsn, &mut self.paths, &mut self.trace)
        {
            Heard::Impossible => discards.count(DiscardReason::BadEcne),
            Heard::Answered => {
                let later = marks.cwr_owed.is_none_or(|owed| tsn.gt(owed));
                marks.cwr_owed = if later { Some(tsn) } else { marks.cwr_owed };
            }
        }
    }

    /// Processes a CWR, by which the peer reports that it reduced its cwnd for a marked packet.
    pub(crate) fn on_cwr(&mut self, cwr: Cwr, discards: &mut DiscardCounts) {
        match &mut self.marks {
            // If the CWR is for an earlier mark, the later mark is still reported.
            Some(marks) => marks.echo = marks.echo.filter(|echo| echo.gt(cwr.lowest_tsn)),
            None => discards.count(DiscardReason::WrongState),
        }
    }

    /// Adds the ECNE that precedes a SACK.
    #[inline(never)]
    pub(crate) fn push_ecne(&self, packet: &mut PacketBuilder<'_>) {
        if let Some(lowest_tsn) = self.marks.as_ref().and_then(|marks| marks.echo) {
            // If the packet is full, the ECNE is sent with the next SACK.
            let _ = packet.push(&Ecne { lowest_tsn });
        }
    }

    /// Adds the CWR that precedes DATA.
    pub(crate) fn push_cwr(&mut self, packet: &mut PacketBuilder<'_>) {
        if let Some(marks) = &mut self.marks
            && let Some(lowest_tsn) = marks.cwr_owed
            && packet.push(&Cwr { lowest_tsn }).is_ok()
        {
            marks.cwr_owed = None;
        }
    }

    /// Determines whether a written packet with `chunks` DATA chunks contains only new DATA. If it
    /// does, [`Sender::never_marked`] still has the value `before`, read before the packet was
    /// written.
    ///
    /// [`Sender::never_marked`]: crate::tx::Sender::never_marked
    pub(crate) fn note_written(&mut self, chunks: usize, before: u64) {
        if let Some(marks) = &mut self.marks {
            let after = self.tx.get().map_or(0, Sender::never_marked);
            marks.capable = chunks > 0 && after == before;
        }
    }

    /// ECN field of the last written packet.
    pub(crate) fn take_field(&mut self) -> Ecn {
        let capable = |marks: &mut Box<Marks>| std::mem::take(&mut marks.capable);
        if self.marks.as_mut().is_some_and(capable) {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        }
    }
}
