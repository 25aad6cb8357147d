//! Setting an association up (RFC 9260 §5): what an INIT or INIT ACK offers, and what is offered from here.

mod offer;
mod remarks;

use std::net::IpAddr;

pub(crate) use offer::{MIN_A_RWND, Offer};
pub(crate) use remarks::Remarks;

use anabranch_wire::chunk::Init;
use anabranch_wire::parameter::{Parameter, Parameters, kind};
use anabranch_wire::serial::Tsn;
use anabranch_wire::tlv::{HEADER, TlvWriter, U16List};
use bytes::Bytes;

use crate::authentication::RANDOM_LEN;
use crate::config::Config;
use crate::extensions::{AUTH, Extensions};

/// The most bytes of parameters that an INIT or INIT ACK has, and less where packets are smaller. What does not fit goes
/// unsaid, so that neither outgrows a packet, whatever was asked (RFC 9260 §3.2.1 asks for a report, not for the moon).
const MAX_PARAMETERS: usize = 1_024;
/// The most bytes of the parameters of extensions, but for those of AUTH.
const EXTENSIONS: usize = 100;
/// Bytes of the parameters of most INITs: the families of addresses.
const USUAL_PARAMETERS: usize = 8;
/// Bytes of a packet with an INIT or INIT ACK without parameters.
const BARE_INIT: usize = 12 + 20;

/// Bytes of parameters that an INIT to `remote` may have.
fn room_for_parameters(config: &Config, remote: IpAddr) -> usize {
    MAX_PARAMETERS.min(config.max_packet(remote) - BARE_INIT)
}

/// The parts of an INIT that both INIT and INIT ACK are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    pub(crate) tag: u32,
    pub(crate) initial_tsn: Tsn,
    pub(crate) outbound_streams: u16,
    pub(crate) inbound_streams: u16,
    /// The random number of AUTH, where that is offered.
    pub(crate) auth_random: Option<[u8; RANDOM_LEN]>,
}

/// An INIT of this endpoint (RFC 9260 §3.3.2).
pub(crate) fn init(
    config: &Config,
    own: Own,
    remote: IpAddr,
    cookie_preservative: Option<u32>,
) -> Init {
    let room = room_for_parameters(config, remote);
    let mut parameters = TlvWriter::with_capacity(room, USUAL_PARAMETERS);
    if config.bare_init {
        return assemble(config, own, parameters.finish());
    }
    let families = Bytes::from_static(families(config, remote));
    if let Some(families) = U16List::from_bytes(families) {
        let _ = parameters.push(&Parameter::SupportedAddressTypes(families));
    }
    let offered = Extensions::of(config);
    offered.push(&mut parameters);
    Remarks::push(config, offered, &mut parameters);
    push_auth(config, own, &mut parameters);
    if let Some(increment) = cookie_preservative {
        let _ = parameters.push(&Parameter::CookiePreservative(increment));
    }
    // Last, since they are the ones that may be too many.
    push_addresses(&mut parameters, &config.addresses);
    assemble(config, own, parameters.finish())
}

/// The families of addresses that an endpoint which calls `remote` has, as the numbers of a list.
fn families(config: &Config, remote: IpAddr) -> &'static [u8] {
    const V4: [u8; 2] = kind::IPV4_ADDRESS.to_be_bytes();
    const V6: [u8; 2] = kind::IPV6_ADDRESS.to_be_bytes();
    const BOTH: [u8; 4] = [V4[0], V4[1], V6[0], V6[1]];
    let has = |is_of: fn(&IpAddr) -> bool| is_of(&remote) || config.addresses.iter().any(is_of);
    match (has(IpAddr::is_ipv4), has(IpAddr::is_ipv6)) {
        (true, true) => &BOTH,
        (true, false) => &V4,
        (false, _) => &V6,
    }
}

/// The INIT ACK that carries `cookie`, answers `offer` by the extensions that `both` speak and reports the parameters that were not recognised
/// (RFC 9260 §3.3.3).
pub(crate) fn init_ack(
    config: &Config,
    own: Own,
    remote: IpAddr,
    cookie: Bytes,
    offer: &Offer,
    both: Extensions,
) -> Init {
    // Mostly there is nothing else.
    let room = HEADER + cookie.len();
    let mut parameters = TlvWriter::with_capacity(room_for_parameters(config, remote), room);
    let _ = parameters.push(&Parameter::StateCookie(cookie));
    both.push(&mut parameters);
    Remarks::push(config, both, &mut parameters);
    if both.has(&AUTH) {
        push_auth(config, own, &mut parameters);
    }
    push_addresses(&mut parameters, &config.addresses);
    for parameter in &offer.unrecognized {
        let _ = parameters.push(&Parameter::UnrecognizedParameter(parameter.clone()));
    }
    assemble(config, own, parameters.finish())
}

/// What this end says of AUTH, where it offers that.
fn push_auth(config: &Config, own: Own, parameters: &mut TlvWriter) {
    if let Some(random) = own.auth_random {
        config.auth_offer(random).push(parameters);
    }
}

/// Whether an INIT ACK to `remote` with a cookie of so many bytes has room for what AUTH adds to it.
pub(crate) fn has_room_for_auth(config: &Config, own: Own, remote: IpAddr, cookie: usize) -> bool {
    let said = own
        .auth_random
        .map_or(0, |random| config.auth_offer(random).encoded_len());
    // The cookie's header, and the parameters of the other extensions.
    cookie + said + 4 + EXTENSIONS <= room_for_parameters(config, remote)
}

/// The addresses of an endpoint with several; one with a single address is known by the packet's source
/// (RFC 9260 §5.1.2 A).
fn push_addresses(parameters: &mut TlvWriter, addresses: &[IpAddr]) {
    if addresses.len() > 1 {
        for &address in addresses {
            // Never an IPv4-mapped IPv6 address (§3.3.2.1.2).
            let _ = parameters.push(&Parameter::address(address.to_canonical()));
        }
    }
}

fn assemble(config: &Config, own: Own, parameters: Parameters) -> Init {
    Init {
        initiate_tag: own.tag,
        a_rwnd: config.receive_buffer.max(MIN_A_RWND),
        outbound_streams: own.outbound_streams,
        inbound_streams: own.inbound_streams,
        initial_tsn: own.initial_tsn,
        parameters,
    }
}
