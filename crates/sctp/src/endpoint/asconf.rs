//! ASCONF from a source address that it adds (RFC 5061 §5.2): lookup by an address inside the
//! ASCONF.

use std::net::IpAddr;

use anabranch_wire::chunk::kind;
use anabranch_wire::extension::{Asconf, Extension};
use anabranch_wire::packet::Packet;

use super::{Arrival, Endpoint};
use crate::association::Association;
use crate::extensions::ASCONF;

/// Maximum number of ASCONFs examined per packet.
const MAX_ASCONFS: usize = 4;

impl Endpoint {
    /// Association found by the address in one of the packet's ASCONFs, if the verification tag
    /// matches. All ASCONFs of the packet are tried, because the first ASCONF may be a
    /// retransmission that contains an address which was removed when the ASCONF first arrived (RFC
    /// 5061 §5.5). The AUTH before the ASCONF is verified later.
    pub(super) fn by_asconf(&mut self, arrival: &Arrival, packet: &Packet<'_>) -> Option<u32> {
        if !(ASCONF.wanted)(&self.config) {
            return None;
        }
        let chunks = packet.chunks().map_while(Result::ok);
        let asconfs = chunks.filter(|raw| raw.kind == kind::ASCONF);
        asconfs.take(MAX_ASCONFS).find_map(|raw| {
            let Ok(Extension::Asconf(Asconf { address, .. })) = Extension::decode(raw) else {
                return None;
            };
            self.with_address(arrival, address.to_canonical())
        })
    }

    /// Association whose peer has or lists `address`, if the verification tag matches.
    fn with_address(&mut self, arrival: &Arrival, address: IpAddr) -> Option<u32> {
        let (port, tag) = (arrival.header.source_port, arrival.header.verification_tag);
        let fits = |it: &Association| it.local_tag() == tag && it.uses_asconf();
        let slot = self.live(port, address).or_else(|| {
            // The address may have been added recently, and not be verified yet.
            self.table.claimants(port, address, tag).next()
        })?;
        let fits = match self.table.get(slot) {
            Some(association) => fits(association),
            None => (self.table.view(slot)).is_some_and(|it| it.local_tag == tag && it.uses_asconf),
        };
        fits.then_some(slot)
    }
}
