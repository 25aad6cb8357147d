//! Demultiplexing of packets to associations.

use anabranch_transport::{Ecn, Nanos};
use anabranch_wire::chunk::kind;
use anabranch_wire::packet::{Chunks, Frame, Packet};

use super::association_table::FlowKey;
use super::{Arrival, Endpoint};
use crate::association::{Admission, Association, FastPath};
use crate::discard::DiscardReason;

impl Arrival {
    fn flow_key(&self) -> FlowKey {
        FlowKey {
            header: self.header,
            udp_port: self.udp_port,
            path: self.path,
        }
    }
}

/// Whether the cached lookup of the last packet can be used for a packet that starts with this
/// chunk.
#[inline]
pub(super) fn carries_data(first: Frame<'_>) -> bool {
    matches!(first.kind, kind::DATA | kind::SACK)
}

impl Endpoint {
    /// Finds the association of a packet that does not start with INIT or COOKIE ECHO. The
    /// associations are tried in this order: the one with the source address, one with a matching
    /// tag that lists the source address as unverified, and one that waits for an INIT ACK with
    /// this tag. `None` if the sender is a peer of another shard.
    pub(super) fn lookup(&mut self, arrival: &Arrival, first: Frame<'_>) -> Option<u32> {
        let (port, address) = (arrival.header.source_port, arrival.path.remote);
        let tag = arrival.header.verification_tag;
        let known = self.table.find(port, address);
        if known.is_none() && self.table.shard().other(port, address).is_some() {
            return None;
        }
        known
            .or_else(|| {
                let mut claimants = self.table.claimants(port, address, tag);
                claimants.find(|&slot| match self.table.get(slot) {
                    Some(it) => it.admits(arrival.header, first).is_its_own(),
                    None => self
                        .table
                        .view(slot)
                        .is_some_and(|it| it.has_tag(tag, first)),
                })
            })
            .or_else(|| {
                let waiting = self.table.find_waiting(tag);
                waiting.filter(|_| first.kind == kind::INIT_ACK)
            })
    }

    /// Passes the chunks of a packet to its association. `behind`: other chunks of the packet
    /// precede `first`.
    #[inline]
    pub(super) fn deliver(
        &mut self,
        slot: u32,
        arrival: Arrival,
        first: Frame<'_>,
        rest: Chunks<'_>,
        behind: bool,
    ) {
        let Some(association) = self.table.get_mut(slot) else {
            return;
        };
        association.follow_udp_port(arrival.path.remote, arrival.udp_port);
        let way = arrival.flow_key();
        // The lookup is not cached if it used an address inside a chunk, because every such packet
        // must be checked (RFC 5061 §4.1.1).
        let is_its_own = self.table.find(way.header.source_port, way.path.remote) == Some(slot);
        let again = is_its_own && !behind && !arrival.without && carries_data(first);
        let again = again && !arrival.protected;
        self.table.came(again.then_some(way), slot);
        if let Some(association) = self.table.get_mut(slot) {
            self.taken = Some(slot);
            association.begin_packet(arrival.ecn, rest.packet_len());
            self.deliver_chunks(arrival.now, &way, slot, first, rest, behind);
        }
    }

    /// Passes the chunks to the association, and updates the table afterwards.
    fn deliver_chunks(
        &mut self,
        now: Nanos,
        way: &FlowKey,
        slot: u32,
        first: Frame<'_>,
        rest: Chunks<'_>,
        behind: bool,
    ) {
        let Some(association) = self.table.get_mut(slot) else {
            return;
        };
        association.handle_chunks(now, way.path, first, rest, behind, &mut self.discards);
        let has_news = association.has_news();
        if association.addresses_changed() {
            association.follow_udp_port(way.path.remote, way.udp_port);
            self.renew_tag(now, slot);
            self.table.index(slot);
        }
        self.table.sends(slot);
        if has_news {
            self.table.note_output(slot);
        }
    }

    /// Changes the tag of an association that restarts the setup after a Stale Cookie error (RFC
    /// 9260 §5.2.6; §5.3.1 requires a new tag). The peer may have accepted an earlier cookie. If
    /// so, the peer would discard a new cookie with the same tag (§5.2.4).
    #[cold]
    #[inline(never)]
    fn renew_tag(&mut self, now: Nanos, slot: u32) {
        if !(self.table.get(slot)).is_some_and(Association::begins_again) {
            return;
        }
        let tag = self.draw_free_tag();
        let life = self.config.valid_cookie_life;
        if let Some(former) = self.table.renew_tag(slot, tag) {
            self.retired.make().retire(now, former, life, 0);
        }
    }

    /// Processes a packet of DATA or SACKs with the same addresses, ports and tag as the last
    /// packet, so that lookup and source checks need not be repeated. Returns `false` if the packet
    /// was not processed.
    #[inline(always)]
    pub(super) fn deliver_to_last_flow(
        &mut self,
        now: Nanos,
        ecn: Ecn,
        way: &FlowKey,
        packet: &Packet<'_>,
    ) -> bool {
        let Some(slot) = self.table.comes_again(way) else {
            return false;
        };
        let mut chunks = packet.chunks();
        let Some(Ok(first)) = chunks.next_frame() else {
            return false;
        };
        let Some(association) = self.table.get_mut(slot) else {
            return false;
        };
        if association.is_closed() || !carries_data(first) {
            return false;
        }
        self.taken = Some(slot);
        association.begin_packet(ecn, chunks.packet_len());
        match association.try_fast_path(now, way.path, first, chunks, &mut self.discards) {
            FastPath::Whole => {
                // `note_output` is called only if there are new events: most packets cause none.
                let has_news = association.has_news();
                self.table.sends(slot);
                if has_news {
                    self.table.note_output(slot);
                }
            }
            FastPath::Until {
                frame,
                rest,
                behind,
            } => self.deliver_chunks(now, way, slot, frame, rest, behind),
        }
        true
    }

    /// Processes a packet that does not start with INIT or COOKIE ECHO.
    #[inline(always)]
    pub(super) fn dispatch(
        &mut self,
        arrival: Arrival,
        first: Frame<'_>,
        rest: Chunks<'_>,
        packet: &Packet<'_>,
    ) {
        let slot = match self.lookup(&arrival, first) {
            None if self.table.shard().has_any() && self.is_for_another(&arrival, first) => return,
            None => self.by_asconf(&arrival, packet),
            known => known,
        };
        let found = slot.and_then(|it| Some((it, self.table.get(it)?)));
        let accepts = || match (found, slot) {
            (Some((_, it)), _) => it.accepts_zero_checksums(),
            (None, Some(slot)) => {
                let view = self.table.view(slot);
                view.is_some_and(|it| it.accepts_zero_checksums)
            }
            (None, None) => false,
        };
        if arrival.without && !accepts() && !packet.is_intact() {
            return self.discards.count(DiscardReason::ZeroChecksum);
        }
        let Some((slot, association)) = found else {
            return match slot {
                Some(slot) => self.forward_packet(slot, arrival, packet),
                None => self.out_of_the_blue(arrival, packet),
            };
        };
        if association.is_closed() {
            // The association still has to send its final packet. An ABORT as an answer to this
            // packet could overtake it, and the error cause in the final packet would be lost.
            if association.has_last_words() {
                return self.discards.count(DiscardReason::OutOfTheBlue);
            }
            self.retire(arrival.now, slot);
            return self.out_of_the_blue(arrival, packet);
        }
        if matches!(first.kind, kind::INIT_ACK | kind::SHUTDOWN_COMPLETE)
            && rest.clone().next_frame().is_some()
        {
            return self.discards.count(DiscardReason::ForbiddenBundle);
        }
        match association.admits(arrival.header, first) {
            Admission::Admitted if first.kind == kind::INIT_ACK && self.is_behind(slot) => {
                self.discards.count(DiscardReason::SupersededAttempt);
            }
            Admission::Admitted
                if first.kind == kind::INIT_ACK && self.refuses_init_ack(slot, arrival, first) => {}
            Admission::Admitted => self.deliver(slot, arrival, first, rest, false),
            Admission::Refused(DiscardReason::Unprotected) => self.drop_unprotected(slot),
            Admission::Refused(reason) => self.discards.count(reason),
            Admission::OutOfTheBlue => self.out_of_the_blue(arrival, packet),
        }
    }
}
