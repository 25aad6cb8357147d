//! Endpoint as a member of a shard group: drawing of tags, and detection of packets for other
//! shards.

use std::net::IpAddr;

use anabranch_wire::chunk::kind;
use anabranch_wire::packet::Frame;

use super::shard::{Shard, ShardPeers};
use super::{Arrival, Endpoint};
use crate::discard::DiscardReason;

/// T bit of ABORT and SHUTDOWN COMPLETE: the tag is the sender's own (RFC 9260 §3.3.7, §3.3.13).
const TAG_REFLECTED: u8 = 1;

impl Endpoint {
    /// Makes this endpoint a shard: one of several endpoints with the same port and addresses that
    /// appear as one endpoint to peers. `peers` contains the peers of all shards. `None`: the
    /// endpoint is the only one, or is no longer driven. Must be called before the endpoint has an
    /// association or receives a packet.
    pub fn set_shard(&mut self, peers: Option<Box<dyn ShardPeers>>) {
        let shard = peers.map(Shard::new);
        self.table.join(shard.unwrap_or_default());
    }

    /// Draws a verification tag for an association of this endpoint. Without other shards, the tag
    /// is the next random number.
    pub(super) fn draw_tag(&mut self) -> u32 {
        loop {
            let drawn = self.random.tag();
            if let Some(tag) = self.table.shard().own_tag(drawn) {
                return tag;
            }
        }
    }

    /// Like [`Self::draw_tag`], for an INIT: the tag differs from those of all other unanswered
    /// INITs.
    pub(super) fn draw_free_tag(&mut self) -> u32 {
        loop {
            let tag = self.draw_tag();
            if !self.table.tag_in_use(tag) {
                return tag;
            }
        }
    }

    /// Other shard that has an association with a peer at the first known address of `addresses`;
    /// `None` if this endpoint has the association.
    #[inline]
    pub(super) fn shard_with(&mut self, port: u16, addresses: &[IpAddr]) -> Option<u32> {
        let none = !self.table.shard().has_any();
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
            let other = self.table.shard().other(port, address);
            if other.is_some() {
                return other;
            }
        }
        None
    }

    /// Records that the current packet belongs to `shard`.
    #[cold]
    pub(super) fn misrouted(&mut self, shard: u32) {
        self.table.shard().misroute(shard);
    }

    /// Whether another shard has an association with a peer at one of these addresses. A cookie of
    /// this endpoint is then late, because that association has another local tag and other
    /// Tie-Tags (RFC 9260 §5.2.4, action C and "no other").
    pub(super) fn is_peer_of_another(&mut self, port: u16, addresses: &[IpAddr]) -> bool {
        let shard = self.table.shard();
        shard.has_any() && addresses.iter().any(|&it| shard.other(port, it).is_some())
    }

    /// Whether a packet without a matching association belongs to a peer of another shard, so that
    /// it is not out of the blue. Chunks that the other shard may accept with any tag are passed to
    /// that shard. Other packets are discarded here, as the other shard would discard them because
    /// of their tag (RFC 9260 §8.5).
    #[cold]
    #[inline(never)]
    pub(super) fn is_for_another(&mut self, arrival: &Arrival, first: Frame<'_>) -> bool {
        let (port, address) = (arrival.header.source_port, arrival.path.remote);
        let tag = arrival.header.verification_tag;
        let ends = matches!(first.kind, kind::ABORT | kind::SHUTDOWN_COMPLETE);
        let reflected = ends && first.flags & TAG_REFLECTED != 0;
        let shard = self.table.shard();
        let owner = shard.other(port, address);
        let wanted = reflected || first.kind == kind::SHUTDOWN_ACK;
        let claimant = || shard.other_claimant(port, address, tag);
        match owner.or_else(|| reflected.then(claimant).flatten()) {
            None => return false,
            Some(other) if wanted => shard.misroute(other),
            Some(_) if ends => self.discards.count(DiscardReason::BadTagAbort),
            Some(_) => self.discards.count(DiscardReason::VerificationTag),
        }
        true
    }
}
