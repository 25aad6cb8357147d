//! Packets of a detached association with a DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.2,
//! §5.4). The association has the keys, and its endpoint has the secret of cookies. In a protected
//! restart, the association therefore opens the DTLS chunk with the COOKIE ECHO, the endpoint
//! verifies the cookie, and the association then restarts.

use std::sync::Arc;

use anabranch_wire::chunk::kind;
use anabranch_wire::extension::Extension;
use anabranch_wire::packet::{Checksum, Chunks, Frame, Packet};
use bytes::Bytes;

use super::super::dtls::reason_of;
use super::{DetachedAssociation, EndpointEvent, Notice};
use crate::discard::DiscardReason;
use crate::endpoint::association_event::{ForwardedPacket, Input};
use crate::endpoint::{Arrival, Endpoint};

impl DetachedAssociation {
    /// Opens the DTLS chunk of a packet, and processes the chunks in it.
    #[cold]
    pub(super) fn handle_dtls(
        &mut self,
        arrival: Arrival,
        by_source: bool,
        first: Frame<'_>,
        rest: &Chunks<'_>,
    ) {
        let Ok(Extension::Dtls(chunk)) = Extension::decode(first.to_raw()) else {
            return self.discards.count(DiscardReason::ChunkFields);
        };
        if !rest.is_at_end() {
            return self.discards.count(DiscardReason::BundledDtls);
        }
        let ours = self.association.local_tag() == arrival.header.verification_tag;
        if !ours && !chunk.restart {
            return self.discards.count(DiscardReason::VerificationTag);
        }
        match self.association.open_dtls(first.common_header(), &chunk) {
            Ok(bytes) => {
                let arrival = Arrival {
                    protected: true,
                    without: false,
                    ..arrival
                };
                let opened = ForwardedPacket {
                    arrival,
                    by_source,
                    opened_by: self.association.opened_by(),
                    bytes,
                };
                self.take_opened(ours, opened);
                self.association.end_dtls();
            }
            Err(error) => self.discards.count(reason_of(error)),
        }
    }

    /// Processes the chunks of an opened DTLS chunk; `opened` starts with the common header.
    fn take_opened(&mut self, ours: bool, opened: ForwardedPacket) {
        let Ok(packet) = Packet::parse(&opened.bytes, Checksum::Ignore) else {
            return self.discards.count(DiscardReason::Malformed);
        };
        let mut rest = packet.chunks();
        let Some(Ok(first)) = rest.next_frame() else {
            return self.discards.count(DiscardReason::ChunkLength);
        };
        match first.kind {
            // INIT and INIT ACK are never protected, and DTLS chunks are not nested.
            kind::INIT | kind::INIT_ACK | kind::DTLS => {
                self.discards.count(DiscardReason::ForbiddenBundle);
            }
            kind::COOKIE_ECHO => {
                self.notice = Some(EndpointEvent(Notice::CookieEcho(Box::new(opened))));
            }
            _ if !ours => self.discards.count(DiscardReason::VerificationTag),
            _ => self.handle_admitted(&opened.arrival, first, rest, false),
        }
    }
}

impl Endpoint {
    /// Queues a packet with a DTLS chunk for the detached association in `slot`, even if the tag
    /// differs. The association checks the tag, because the endpoint does not know the new tag
    /// immediately after a restart.
    #[cold]
    #[inline(never)]
    pub(in crate::endpoint) fn forward_dtls(
        &mut self,
        slot: u32,
        arrival: Arrival,
        packet: &Packet<'_>,
    ) {
        let view = self.table.view(slot);
        let ours = view.is_some_and(|it| it.local_tag == arrival.header.verification_tag);
        self.forward_packet(slot, arrival, packet);
        if !ours {
            // The endpoint does not know this tag, so only the association can verify that its peer
            // sent the packet. The packet is therefore not reported as accepted.
            self.taken = None;
        }
    }

    /// Verifies the cookie of a COOKIE ECHO that the detached association in `slot` has opened, and
    /// sends cookie and packet back to the association.
    pub(super) fn on_opened_cookie(&mut self, slot: u32, opened: Box<ForwardedPacket>) {
        let arrival = opened.arrival;
        let bytes = Bytes::clone(&opened.bytes);
        let packet = Packet::parse(&bytes, Checksum::Ignore);
        let first = packet.map(|it| it.chunks().next_frame());
        let Ok(Some(Ok(first))) = first else {
            return self.discards.count(DiscardReason::Malformed);
        };
        let Some(cookie) = self.open_cookie(&arrival, first.value()) else {
            return self.discards.count(DiscardReason::InvalidCookie);
        };
        let (port, mut addresses) = (cookie.remote_port, cookie.peer_addresses.iter());
        if addresses.find_map(|&it| self.live(port, it)) != Some(slot) {
            return self.discards.count(DiscardReason::LateCookie);
        }
        let config = Arc::clone(&self.config);
        self.forward(slot, Input::CookieEcho(opened, Box::new(cookie), config));
    }
}
