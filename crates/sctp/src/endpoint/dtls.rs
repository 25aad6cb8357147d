//! Packets with a DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.2, §5.4).

use anabranch_dtls::OpenError;
use anabranch_wire::chunk::kind;
use anabranch_wire::extension::{Dtls, Extension};
use anabranch_wire::packet::{Checksum, Chunks, Frame, Packet};

use super::{Arrival, Endpoint};
use crate::association::Association;
use crate::discard::DiscardReason;

impl Endpoint {
    /// Processes a packet whose first chunk is a DTLS chunk: opens it and processes the chunks in
    /// it.
    #[cold]
    #[inline(never)]
    pub(super) fn on_dtls(
        &mut self,
        arrival: Arrival,
        first: Frame<'_>,
        chunks: Chunks<'_>,
        packet: &Packet<'_>,
    ) {
        let Ok(Extension::Dtls(chunk)) = Extension::decode(first.to_raw()) else {
            return self.discards.count(DiscardReason::ChunkFields);
        };
        let Some(slot) = self.protected_by(&arrival, first, &chunk) else {
            // The DTLS chunk is treated as an unknown chunk, or the packet as out of the blue.
            return self.dispatch(arrival, first, chunks, packet);
        };
        if !chunks.is_at_end() {
            return self.discards.count(DiscardReason::BundledDtls);
        }
        let Some(association) = self.table.get_mut(slot) else {
            return self.forward_dtls(slot, arrival, packet);
        };
        if arrival.without && !association.accepts_zero_checksums() && !packet.is_intact() {
            return self.discards.count(DiscardReason::ZeroChecksum);
        }
        let ours = association.local_tag() == arrival.header.verification_tag;
        if !ours && !chunk.restart {
            return self.discards.count(DiscardReason::VerificationTag);
        }
        let opened = match association.open_dtls(first.common_header(), &chunk) {
            Ok(opened) => opened,
            Err(error) => return self.discards.count(reason_of(error)),
        };
        self.take_opened(arrival, slot, ours, &opened);
        if let Some(association) = self.table.get_mut(slot) {
            association.end_dtls();
        }
    }

    /// Processes the chunks of an opened DTLS chunk; `opened` starts with the common header.
    fn take_opened(&mut self, arrival: Arrival, slot: u32, ours: bool, opened: &bytes::Bytes) {
        let Ok(packet) = Packet::parse(opened, Checksum::Ignore) else {
            return self.discards.count(DiscardReason::Malformed);
        };
        let mut chunks = packet.chunks();
        let first = match chunks.next_frame() {
            Some(Ok(first)) => first,
            _ => return self.discards.count(DiscardReason::ChunkLength),
        };
        let arrival = Arrival {
            protected: true,
            without: false,
            ..arrival
        };
        match first.kind {
            // INIT and INIT ACK are never protected, and DTLS chunks are not nested.
            kind::INIT | kind::INIT_ACK | kind::DTLS => {
                self.discards.count(DiscardReason::ForbiddenBundle);
            }
            kind::COOKIE_ECHO => self.on_cookie_echo(arrival, first.value(), chunks, None),
            _ if !ours => self.discards.count(DiscardReason::VerificationTag),
            _ => {
                let from = arrival.path.remote;
                let port = arrival.header.source_port;
                if self.table.find(port, from) == Some(slot) {
                    self.dispatch(arrival, first, chunks, &packet);
                } else {
                    self.deliver(slot, arrival, first, chunks, false);
                }
            }
        }
    }

    /// Association whose keys may open this DTLS chunk.
    fn protected_by(&mut self, arrival: &Arrival, first: Frame<'_>, chunk: &Dtls) -> Option<u32> {
        let slot = if chunk.restart {
            self.live(arrival.header.source_port, arrival.path.remote)
        } else {
            self.lookup(arrival, first)
        };
        slot.filter(|&slot| match self.table.get(slot) {
            Some(it) => !it.is_closed() && it.key_agreement_or_restart(),
            None => (self.table.view(slot)).is_some_and(|it| !it.is_closed() && it.takes_dtls),
        })
    }

    /// Discards an unprotected packet of an association that requires protection.
    #[cold]
    #[inline(never)]
    pub(super) fn drop_unprotected(&mut self, slot: u32) {
        let discards = &mut self.discards;
        if let Some(association) = self.table.get_mut(slot) {
            Association::count_unprotected(association, discards);
        }
    }
}

pub(super) fn reason_of(error: OpenError) -> DiscardReason {
    match error {
        OpenError::Forged | OpenError::Exhausted => DiscardReason::ForgedDtls,
        OpenError::Replayed => DiscardReason::ReplayedDtls,
        _ => DiscardReason::BadDtls,
    }
}
