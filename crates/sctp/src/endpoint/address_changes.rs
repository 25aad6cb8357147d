//! Packets from an address that their sender adds by them (RFC 5061 §5.2): an ASCONF names an address that is known.

use anabranch_wire::chunk::kind;
use anabranch_wire::extension::{Asconf, Extension};
use anabranch_wire::packet::Packet;

use super::{Arrival, Endpoint};
use crate::association::Association;
use crate::extensions::ASCONF;

impl Endpoint {
    /// The association that the address of the packet's first ASCONF belongs to, if the packet has its tag. Whether it may do anything
    /// is shown by the AUTH before it.
    #[cold]
    #[inline(never)]
    pub(super) fn by_asconf(&mut self, arrival: &Arrival, packet: &Packet<'_>) -> Option<u32> {
        if !(ASCONF.wanted)(&self.config) {
            return None;
        }
        let mut chunks = packet.chunks().map_while(Result::ok);
        let raw = chunks.find(|raw| raw.kind == kind::ASCONF)?;
        let Ok(Extension::Asconf(Asconf { address, .. })) = Extension::decode(raw) else {
            return None;
        };
        let (port, address) = (arrival.header.source_port, address.to_canonical());
        let tag = arrival.header.verification_tag;
        let fits = |it: &Association| it.local_tag() == tag && it.takes_address_changes();
        let slot = self.live(port, address).or_else(|| {
            // An address that was added lately and is not verified.
            self.table.claimants(port, address, tag).next()
        })?;
        self.table.get(slot).is_some_and(fits).then_some(slot)
    }
}
