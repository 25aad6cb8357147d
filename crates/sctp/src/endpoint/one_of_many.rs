//! An endpoint among its siblings: its tags, and the packets that are not for it.

use std::net::IpAddr;

use anabranch_wire::chunk::kind;
use anabranch_wire::packet::Frame;

use super::siblings::{Member, Siblings};
use super::{Arrival, Endpoint};
use crate::discard::Discard;

/// The T bit of ABORT and SHUTDOWN COMPLETE: the tag is the one that the sender of this chunk was sent to under (RFC 9260 §3.3.7, §3.3.13).
const TAG_REFLECTED: u8 = 1;

/// Of several that are one to their peers.
impl Endpoint {
    /// Makes it the one of that number among `siblings`, counted from 0. They have the port and the addresses in common; others among them may
    /// have the port at other addresses. It is called before the endpoint has any association, or gets any packet.
    pub fn join(&mut self, siblings: &Siblings, number: u32) {
        let member = Member::new(siblings, number, self.port, &self.config.addresses);
        self.table.join(member);
    }

    /// Leaves its siblings, who may then have associations with the peers of this one: it is driven no more.
    pub fn leave_siblings(&mut self) {
        self.table.join(Member::default());
    }

    /// Which sibling the last packet is for that [`Endpoint::handle_udp_datagram`] was given, if it is for another: nothing was done with it here, and
    /// it is handed to that one. Where that finds it to be for a third, the peer has begun anew there meanwhile.
    pub fn take_misdirected(&mut self) -> Option<u32> {
        self.table.siblings().take_misdirected()
    }

    /// A verification tag for an association of this endpoint's. Without siblings it is the next that is drawn.
    pub(super) fn draw_tag(&mut self) -> u32 {
        loop {
            let drawn = self.random.tag();
            if let Some(tag) = self.table.siblings().own_tag(drawn) {
                return tag;
            }
        }
    }

    /// As [`Self::draw_tag`], for an INIT: no other that waits for its INIT ACK has the tag.
    pub(super) fn draw_free_tag(&mut self) -> u32 {
        loop {
            let tag = self.draw_tag();
            if !self.table.tag_in_use(tag) {
                return tag;
            }
        }
    }

    /// The sibling that has an association with a peer of these addresses: of the first of them that anybody knows. None where that is here.
    #[inline]
    pub(super) fn sibling_with(&mut self, port: u16, addresses: &[IpAddr]) -> Option<u32> {
        let none = !self.table.siblings().has_any();
        if none {
            None
        } else {
            self.first_owner(port, addresses)
        }
    }

    #[cold]
    #[inline(never)]
    fn first_owner(&mut self, port: u16, addresses: &[IpAddr]) -> Option<u32> {
        for &address in addresses {
            if self.live(port, address).is_some() {
                return None;
            }
            let other = self.table.siblings().other(port, address);
            if other.is_some() {
                return other;
            }
        }
        None
    }

    /// The packet at hand is for that one.
    #[cold]
    pub(super) fn misdirected(&mut self, sibling: u32) {
        self.table.siblings().misdirect(sibling);
    }

    /// Whether a sibling has an association with a peer of one of these addresses. A cookie of this endpoint's then comes late: that
    /// association does not have its tag, and is not what its Tie-Tags speak of (RFC 9260 §5.2.4, action C and "no other").
    pub(super) fn is_siblings_peer(&mut self, port: u16, addresses: &[IpAddr]) -> bool {
        let siblings = self.table.siblings();
        siblings.has_any()
            && addresses
                .iter()
                .any(|&it| siblings.other(port, it).is_some())
    }

    /// Whether a packet that no association here takes is none out of the blue: the sender is a sibling's peer. What its association may take
    /// under a tag that is not of its own class is left to it. The rest it would throw away for the tag (RFC 9260 §8.5), and so does
    /// this one.
    #[cold]
    #[inline(never)]
    pub(super) fn is_siblings(&mut self, arrival: &Arrival, first: Frame<'_>) -> bool {
        let (port, address) = (arrival.header.source_port, arrival.path.remote);
        let tag = arrival.header.verification_tag;
        let ends = matches!(first.kind, kind::ABORT | kind::SHUTDOWN_COMPLETE);
        let reflected = ends && first.flags & TAG_REFLECTED != 0;
        let siblings = self.table.siblings();
        let owner = siblings.other(port, address);
        let wanted = reflected || first.kind == kind::SHUTDOWN_ACK;
        let claimant = || siblings.other_claimant(port, address, tag);
        match owner.or_else(|| reflected.then(claimant).flatten()) {
            None => return false,
            Some(sibling) if wanted => siblings.misdirect(sibling),
            Some(_) if ends => self.discards.count(Discard::BlindEnd),
            Some(_) => self.discards.count(Discard::VerificationTag),
        }
        true
    }
}
