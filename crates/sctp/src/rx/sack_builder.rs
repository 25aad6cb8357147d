//! Construction of SACK chunks (RFC 9260 §3.3.4, §6.2).

use anabranch_transport::{Nanos, Probe, Trace};
use anabranch_wire::chunk::{OutgoingSack, Sack};
use anabranch_wire::{Full, PacketBuilder};

use super::Receiver;
use crate::fast_path::FAST_PATH_PROBES;

impl Receiver {
    /// Adds a SACK to a packet, with as many Gap Ack Blocks and then duplicate TSNs as fit. The
    /// SACK counts as sent.
    ///
    /// # Errors
    /// [`Full`] if not even a SACK without blocks fits. The state is then unchanged.
    pub fn push_sack(
        &mut self,
        now: Nanos,
        packet: &mut PacketBuilder<'_>,
        trace: &mut Trace,
    ) -> Result<(), Full> {
        let fitting = Sack::gap_blocks_within(packet.room(), 0);
        let gaps = self.tracker.gap_count().min(fitting);
        let duplicates = self.tracker.duplicates().len().min(fitting - gaps);
        let advertised = self.window_to_advertise();
        let at = packet.len();
        let blocks = self.tracker.blocks(gaps);
        packet.push(&self.sack_of(advertised, blocks, duplicates))?;
        if let Some(packets) = self.sack.packets_to_report() {
            packet.set_flags(at, crate::tx::sack_flags(packets));
        }
        self.tracker.forget_duplicates(duplicates);
        self.window.advertised(advertised);
        self.sack.sent();
        self.statistics.sacks += 1;
        trace.record(now, Probe::AdvertisedRwnd, 0, advertised.into());
        self.record_late(now, trace);
        self.held.record(now, self.window.used(), trace);
        Ok(())
    }

    /// Whether the SACK has the standard format, and no probe records it.
    #[inline]
    pub(crate) fn sack_is_untraced(&self, trace: &Trace) -> bool {
        self.sack.packets_to_report().is_none()
            && trace.wants_only(FAST_PATH_PROBES)
            && self.held.is_off()
            && self.unrecorded.is_empty()
    }

    /// Whether the SACK has neither Gap Ack Blocks nor duplicate TSNs.
    #[inline]
    pub(crate) fn sack_is_cumulative_only(&self) -> bool {
        !self.tracker.has_gaps() && !self.tracker.has_duplicates()
    }

    /// Like [`Self::push_sack`], for a SACK that is [untraced](Self::sack_is_untraced) and has the
    /// [cumulative TSN only](Self::sack_is_cumulative_only).
    ///
    /// # Errors
    /// [`Full`] if the SACK does not fit. The state is then unchanged.
    #[inline(always)]
    pub(crate) fn push_plain_sack(&mut self, packet: &mut PacketBuilder<'_>) -> Result<(), Full> {
        let advertised = self.window_to_advertise();
        packet.push(&self.sack_of(advertised, std::iter::empty(), 0))?;
        self.window.advertised(advertised);
        self.sack.sent();
        self.statistics.sacks += 1;
        Ok(())
    }

    /// Window in bytes to advertise in the current SACK.
    #[inline(always)]
    fn window_to_advertise(&mut self) -> u32 {
        self.window.note_packet(self.packet);
        self.window.look(&self.statistics);
        self.window.to_advertise()
    }

    fn sack_of<G>(&self, a_rwnd: u32, gap_blocks: G, duplicates: usize) -> OutgoingSack<'_, G> {
        OutgoingSack {
            cumulative_tsn_ack: self.tracker.cumulative(),
            a_rwnd,
            gap_blocks,
            duplicates: &self.tracker.duplicates()[..duplicates],
        }
    }

    /// Whether the cumulative TSN contains all information of a SACK: no gap, no duplicate, and an
    /// unchanged window.
    pub(crate) fn point_says_all(&self) -> bool {
        !self.tracker.has_gaps() && !self.tracker.has_duplicates() && self.window.is_as_advertised()
    }

    /// Records that another chunk contained the cumulative TSN, so that no SACK is needed.
    pub(crate) fn point_told(&mut self) {
        self.sack.sent();
    }
}
