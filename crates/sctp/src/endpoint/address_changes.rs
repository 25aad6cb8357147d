//! Packets from an address that their sender adds by them (RFC 5061 §5.2): an ASCONF names an address that is known.

use std::net::IpAddr;

use anabranch_wire::chunk::kind;
use anabranch_wire::extension::{Asconf, Extension};
use anabranch_wire::packet::Packet;

use super::{Arrival, Endpoint};
use crate::association::Association;
use crate::extensions::ASCONF;

/// ASCONFs of a packet that are looked at.
const MOST_ASCONFS: usize = 4;

impl Endpoint {
    /// The association that the address of one of the packet's ASCONFs belongs to, if the packet has its tag: of several, the first may
    /// name an address that it has deleted itself, when it comes again (RFC 5061 §5.5). Whether it may do anything is shown by the AUTH
    /// before it.
    pub(super) fn by_asconf(&mut self, arrival: &Arrival, packet: &Packet<'_>) -> Option<u32> {
        if !(ASCONF.wanted)(&self.config) {
            return None;
        }
        let chunks = packet.chunks().map_while(Result::ok);
        let asconfs = chunks.filter(|raw| raw.kind == kind::ASCONF);
        asconfs.take(MOST_ASCONFS).find_map(|raw| {
            let Ok(Extension::Asconf(Asconf { address, .. })) = Extension::decode(raw) else {
                return None;
            };
            self.with_address(arrival, address.to_canonical())
        })
    }

    /// The association of a peer that has `address`, if the packet has its tag.
    fn with_address(&mut self, arrival: &Arrival, address: IpAddr) -> Option<u32> {
        let (port, tag) = (arrival.header.source_port, arrival.header.verification_tag);
        let fits = |it: &Association| it.local_tag() == tag && it.takes_address_changes();
        let slot = self.live(port, address).or_else(|| {
            // An address that was added lately and is not verified.
            self.table.claimants(port, address, tag).next()
        })?;
        self.table.get(slot).is_some_and(fits).then_some(slot)
    }
}
