//! Association setup (RFC 9260 §5): contents of INIT and INIT ACK.

mod offer;
mod optional_parameters;

use std::net::IpAddr;

pub(crate) use offer::{MIN_A_RWND, Offer, OfferError};
pub(crate) use optional_parameters::OptionalParameters;

use anabranch_wire::chunk::{Init, InitAck};
use anabranch_wire::extension::{DtlsKeyManagement, InitParameter};
use anabranch_wire::packet::COMMON_HEADER;
use anabranch_wire::parameter::{Parameter, Parameters, kind};
use anabranch_wire::serial::Tsn;
use anabranch_wire::tlv::{HEADER, TlvWriter, U16List, put_header};
use bytes::{Bytes, BytesMut};

use crate::authentication::RANDOM_LEN;
use crate::config::Config;
use crate::dtls_chunk::Security;
use crate::extensions::{AUTH, DTLS, Extensions};

/// Maximum length in bytes of the parameters of extensions other than AUTH.
const EXTENSIONS: usize = 100;
/// Length in bytes of a packet with an INIT or INIT ACK without parameters.
const BARE_INIT: usize = COMMON_HEADER + 20;
/// Length in bytes of the part of an INIT ACK packet that precedes the cookie.
pub(crate) const BEFORE_COOKIE: usize = BARE_INIT + HEADER;

/// Maximum length in bytes of the parameters of an INIT or INIT ACK to `remote`. Parameters that do
/// not fit into one packet are omitted (RFC 9260 §6.10).
fn room_for_parameters(config: &Config, remote: IpAddr) -> usize {
    config.max_packet(remote) - BARE_INIT
}

/// Values that this end sends in INIT or INIT ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalOffer {
    pub(crate) tag: u32,
    pub(crate) initial_tsn: Tsn,
    pub(crate) outbound_streams: u16,
    pub(crate) inbound_streams: u16,
    /// Random number for AUTH and for the tie breaker of the DTLS chunk, if one of them is offered.
    pub(crate) auth_random: Option<[u8; RANDOM_LEN]>,
}

/// Creates an INIT (RFC 9260 §3.3.2).
pub(crate) fn init(
    config: &Config,
    own: LocalOffer,
    remote: IpAddr,
    cookie_preservative: Option<u32>,
) -> Init {
    let room = room_for_parameters(config, remote);
    if config.minimal_init {
        return assemble(config, own, Parameters::empty());
    }
    let families = Bytes::from_static(families(config, remote));
    let offered = Extensions::of(config);
    let says_more = offered != Extensions::default()
        || config.adaptation_layer.is_some()
        || own.auth_random.is_some()
        || cookie_preservative.is_some()
        || config.addresses.len() > 1;
    if !says_more && families.len() <= room / 4 * 4 {
        return assemble(config, own, Parameters::from_bytes(families));
    }
    let parameters = all(config, own, offered, families, room, cookie_preservative);
    assemble(config, own, parameters)
}

/// All parameters of an INIT that has other parameters in addition to Supported Address Types
/// (`families`), in at most `room` bytes.
#[cold]
#[inline(never)]
fn all(
    config: &Config,
    own: LocalOffer,
    offered: Extensions,
    families: Bytes,
    room: usize,
    cookie_preservative: Option<u32>,
) -> Parameters {
    let mut parameters = TlvWriter::new(room);
    if !families.is_empty()
        && let Some(families) = U16List::from_bytes(families.slice(HEADER..))
    {
        let _ = parameters.push(&Parameter::SupportedAddressTypes(families));
    }
    offered.push(&mut parameters);
    OptionalParameters::push(config, offered, &mut parameters);
    push_auth(config, own, &mut parameters);
    push_dtls(config, own, offered, &mut parameters);
    if let Some(increment) = cookie_preservative {
        let _ = parameters.push(&Parameter::CookiePreservative(increment));
    }
    // The addresses are added last, because some of them may not fit.
    push_addresses(&mut parameters, config);
    parameters.finish()
}

/// Encoded Supported Address Types parameter for a connection to `remote` (RFC 9260 §3.3.2.1.6),
/// usually the only parameter of an INIT. Empty inside DTLS.
fn families(config: &Config, remote: IpAddr) -> &'static [u8] {
    const KIND: u8 = kind::SUPPORTED_ADDRESS_TYPES as u8;
    const V4: u8 = kind::IPV4_ADDRESS as u8;
    const V6: u8 = kind::IPV6_ADDRESS as u8;
    let has = |is_of: fn(&IpAddr) -> bool| is_of(&remote) || config.addresses.iter().any(is_of);
    if config.over_dtls {
        return &[];
    }
    match (has(IpAddr::is_ipv4), has(IpAddr::is_ipv6)) {
        (true, true) => &[0, KIND, 0, 8, 0, V4, 0, V6],
        (true, false) => &[0, KIND, 0, 6, 0, V4],
        (false, _) => &[0, KIND, 0, 6, 0, V6],
    }
}

/// Fast version of [`init_ack`] for an INIT ACK whose only parameter is the cookie. `packet`
/// contains the cookie after [`BEFORE_COOKIE`] bytes; these bytes are filled in except for the
/// common header. Returns `false` if the fast version cannot be used.
pub(crate) fn init_ack_around(
    config: &Config,
    own: LocalOffer,
    remote: IpAddr,
    offer: &Offer,
    both: Extensions,
    packet: &mut BytesMut,
) -> bool {
    let parameter = packet.len() - BARE_INIT;
    let says_more = both != Extensions::default()
        || config.adaptation_layer.is_some()
        || config.addresses.len() > 1
        || !offer.unrecognized.is_empty();
    // If the length is a multiple of 4, the chunk needs no padding.
    let stands = parameter.is_multiple_of(4) && parameter <= room_for_parameters(config, remote);
    if says_more || !stands {
        return false;
    }
    let bare = InitAck(assemble(config, own, Parameters::empty()));
    let [whole, value] = [COMMON_HEADER, BARE_INIT];
    put_header(kind::STATE_COOKIE, &mut packet[value..]).is_ok()
        && bare.put_before_parameters(&mut packet[whole..]).is_ok()
}

/// Creates an INIT ACK with `cookie`, before which there is space for the parameter header. The
/// INIT ACK answers `offer` with the extensions in `both`, and reports unrecognized parameters (RFC
/// 9260 §3.3.3).
pub(crate) fn init_ack(
    config: &Config,
    own: LocalOffer,
    remote: IpAddr,
    cookie: BytesMut,
    offer: &Offer,
    both: Extensions,
) -> InitAck {
    // Usually there are no other parameters. A cookie that does not fit into a packet is sent in a
    // larger packet, without other parameters, and IP may fragment it.
    let room = room_for_parameters(config, remote).max(cookie.len().next_multiple_of(4));
    let mut parameters = TlvWriter::begun_by(kind::STATE_COOKIE, cookie, room)
        .unwrap_or_else(|_| TlvWriter::new(room));
    both.push(&mut parameters);
    OptionalParameters::push(config, both, &mut parameters);
    if both.has(&AUTH) {
        push_auth(config, own, &mut parameters);
    }
    push_dtls(config, own, both, &mut parameters);
    push_addresses(&mut parameters, config);
    for parameter in &offer.unrecognized {
        let _ = parameters.push_value(kind::UNRECOGNIZED_PARAMETER, parameter);
    }
    InitAck(assemble(config, own, parameters.finish()))
}

/// Adds the AUTH parameters of this endpoint, if AUTH is offered.
fn push_auth(config: &Config, own: LocalOffer, parameters: &mut TlvWriter) {
    if let Some(random) = own.auth_random
        && config.security == Security::Off
    {
        config.auth_offer(random).push(parameters);
    }
}

/// Adds the DTLS Key Management Parameter of this endpoint, if the DTLS chunk is in `extensions`.
fn push_dtls(config: &Config, own: LocalOffer, extensions: Extensions, parameters: &mut TlvWriter) {
    let said = own.key_management(config).filter(|_| extensions.has(&DTLS));
    if let Some(said) = said
        && let Ok(parameter) = InitParameter::DtlsKeyManagement(said).to_parameter()
    {
        let _ = parameters.push(&parameter);
    }
}

impl LocalOffer {
    /// DTLS Key Management Parameter of this endpoint, if it offers the DTLS chunk.
    pub(crate) fn key_management(self, config: &Config) -> Option<DtlsKeyManagement> {
        let [t0, t1, t2, t3, ..] = self.auth_random?;
        let tie_breaker = u32::from_be_bytes([t0, t1, t2, t3]);
        let offers = config.security != Security::Off;
        offers.then(|| config.key_methods.parameter(tie_breaker))
    }
}

/// Whether an INIT ACK to `remote` with a cookie of `cookie` bytes has space for the AUTH
/// parameters.
pub(crate) fn has_room_for_auth(
    config: &Config,
    own: LocalOffer,
    remote: IpAddr,
    cookie: usize,
) -> bool {
    let said = own
        .auth_random
        .map_or(0, |random| config.auth_offer(random).encoded_len());
    // The sum also contains the parameter header of the cookie (4 bytes) and space for the
    // parameters of other extensions.
    cookie + said + 4 + EXTENSIONS <= room_for_parameters(config, remote)
}

/// Adds the addresses of an endpoint with several addresses. A single address is known from the
/// packet's source (RFC 9260 §5.1.2 A). Inside DTLS no addresses are listed (RFC 8261 §6.1).
fn push_addresses(parameters: &mut TlvWriter, config: &Config) {
    if config.addresses.len() > 1 && !config.over_dtls {
        for &address in &config.addresses {
            // IPv4-mapped IPv6 addresses are listed as IPv4 addresses (§3.3.2.1.2).
            let _ = parameters.push(&Parameter::address(address.to_canonical()));
        }
    }
}

fn assemble(config: &Config, own: LocalOffer, parameters: Parameters) -> Init {
    Init {
        initiate_tag: own.tag,
        a_rwnd: config.receive_buffer.max(MIN_A_RWND),
        outbound_streams: own.outbound_streams,
        inbound_streams: own.inbound_streams,
        initial_tsn: own.initial_tsn,
        parameters,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: LocalOffer = LocalOffer {
        tag: 1,
        initial_tsn: Tsn(1),
        outbound_streams: 1,
        inbound_streams: 1,
        auth_random: None,
    };

    /// [`init_ack_around`] must create the same INIT ACK as [`init_ack`], and must refuse if there
    /// are more parameters.
    #[test]
    fn an_init_ack_around_its_cookie_is_the_one_that_carries_it() {
        use anabranch_wire::Encode;
        let remote: IpAddr = [10, 0, 0, 1].into();
        let init = assemble(&Config::default(), OWN, Parameters::empty());
        let mut other = Offer::of(&init, remote);
        other
            .unrecognized
            .push(Bytes::from_static(&[0xc1, 0, 0, 4]));
        let plain = Offer::of(&init, remote);
        let two = vec![[10, 0, 0, 2].into(), [10, 0, 0, 3].into()];
        let [usual, small, several] = [
            Config::default(),
            Config::default().with(|it| it.mtu = 128),
            Config::default().with(|it| it.addresses = two),
        ];
        let none = Extensions::default();
        let some = Extensions::from_bits(1).expect("a bit");
        for (config, offer, both, length, around) in [
            (&usual, &plain, none, 100, true),
            (&usual, &plain, none, 102, false),
            (&usual, &plain, some, 100, false),
            (&usual, &other, none, 100, false),
            (&several, &plain, none, 100, false),
            (&small, &plain, none, 100, false),
            (&small, &plain, none, 72, true),
        ] {
            let mut packet = BytesMut::zeroed(BEFORE_COOKIE);
            packet.extend((0..length).map(|at| at as u8));
            let mut expected = BytesMut::new();
            let entry = BytesMut::from(&packet[BARE_INIT..]);
            init_ack(config, OWN, remote, entry, offer, both).encode(&mut expected);
            let done = init_ack_around(config, OWN, remote, offer, both, &mut packet);
            assert_eq!(done, around, "{length}");
            assert_eq!(packet[COMMON_HEADER..] == expected[..], done);
        }
    }

    /// The precomputed parameter of an INIT must equal the encoded parameter.
    #[test]
    fn the_families_are_the_parameter_that_distinguishes_them() {
        let [v4, v6]: [IpAddr; 2] = [[10, 0, 0, 1].into(), std::net::Ipv6Addr::LOCALHOST.into()];
        for (ours, remote, kinds) in [
            (None, v4, &[kind::IPV4_ADDRESS][..]),
            (None, v6, &[kind::IPV6_ADDRESS]),
            (Some(v4), v6, &[kind::IPV4_ADDRESS, kind::IPV6_ADDRESS]),
        ] {
            let config = Config::default().with(|it| it.addresses = Vec::from_iter(ours));
            let inside = config.clone().with(|it| it.over_dtls = true);
            for preservative in [None, Some(5)] {
                let said = init(&inside, OWN, remote, preservative).parameters;
                let rest = preservative.map(Parameter::CookiePreservative);
                let expected = Parameters::of(rest.as_slice());
                assert_eq!(said.as_bytes(), expected.as_bytes(), "RFC 8261 §6.1");
            }
            let told = Parameter::SupportedAddressTypes(U16List::of(kinds));
            let expected = Parameters::of(std::slice::from_ref(&told));
            let usual = init(&config, OWN, remote, None).parameters;
            assert_eq!(usual.as_bytes(), expected.as_bytes());
            // The parameter is the same if further parameters follow.
            let more = init(&config, OWN, remote, Some(5)).parameters;
            let preservative = Parameter::CookiePreservative(5);
            assert_eq!(
                more.as_bytes(),
                Parameters::of(&[told, preservative]).as_bytes()
            );
        }
    }
}
