//! Peer's parameters in an INIT or INIT ACK, parsed and validated (RFC 9260 §3.3.2, §3.3.3,
//! §5.1.2).

use std::net::IpAddr;

use anabranch_wire::cause::Cause;
use anabranch_wire::chunk::Init;
use anabranch_wire::encode::padded;
use anabranch_wire::extension::DtlsKeyManagement;
use anabranch_wire::parameter::{Parameter, kind};
use anabranch_wire::serial::Tsn;
use anabranch_wire::tlv::{HEADER, Tlv, TlvError, U16List};
use bytes::Bytes;

use crate::address::{Addresses, MAX_PEER_ADDRESSES, is_unicast};
use crate::authentication::{
    AuthParameters, AuthParametersBuilder, Authentication, NegotiatedAuth, RANDOM_LEN,
};
use crate::config::Config;
use crate::discard::DiscardReason;
use crate::dtls_chunk::{DtlsTerms, Mismatch, Security, is_compatible};
use crate::event::Violation;
use crate::extensions::{ASCONF, AUTH, DTLS, Extensions, PARTIAL_RELIABILITY};
use crate::handshake::OptionalParameters;

/// Minimum initial a_rwnd of a peer in bytes (RFC 9260 §3.3.2).
pub(crate) const MIN_A_RWND: u32 = 1_500;

/// Parameters that the peer offers for a new association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) initiate_tag: u32,
    pub(crate) a_rwnd: u32,
    pub(crate) outbound_streams: u16,
    pub(crate) inbound_streams: u16,
    pub(crate) initial_tsn: Tsn,
    /// Source address of the packet first, then the listed addresses: unicast, without duplicates,
    /// at most [`MAX_PEER_ADDRESSES`].
    pub(crate) addresses: Addresses,
    pub(crate) cookie: Option<Bytes>,
    /// Extensions that the peer supports.
    pub(crate) extensions: Extensions,
    /// AUTH parameters of the peer, if this endpoint supports AUTH.
    pub(crate) auth: Option<AuthParameters>,
    /// DTLS Key Management Parameter of the peer, if this endpoint offers the DTLS chunk.
    pub(crate) dtls: Option<Box<DtlsKeyManagement>>,
    /// Optional parameters of the peer.
    pub(crate) remarks: OptionalParameters,
    /// Requested increase of the cookie lifetime, in milliseconds.
    pub(crate) cookie_preservative: Option<u32>,
    /// Complete unrecognized parameters that must be reported to the peer.
    pub(crate) unrecognized: Vec<Bytes>,
}

/// Remaining space in bytes for reports of unrecognized parameters. All unrecognized parameters
/// should be reported (RFC 9260 §3.2.2), but only as many as fit into one packet are stored
/// (§6.10).
struct Reports(usize);

impl Reports {
    /// Space for reports in an otherwise empty packet of `packet` bytes.
    fn within(packet: usize) -> Self {
        Self(packet)
    }

    /// Reserves space for a parameter of `length` bytes; returns `false` if it does not fit. In an
    /// INIT ACK, each report is a separate parameter.
    fn take(&mut self, length: usize) -> bool {
        let left = self.0.checked_sub(HEADER + padded(length));
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// Why an offer is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OfferError {
    /// The Initiate Tag is 0, so an answer is impossible.
    ZeroTag,
    /// A fixed field is invalid: no stream, or an a_rwnd below 1,500 bytes.
    Field,
    /// The parameter list is malformed, or a parameter contradicts its length.
    Malformed,
    /// The peer sent this Host Name Address parameter, which RFC 9260 forbids.
    HostName(Bytes),
    /// The AUTH parameters of the peer are invalid (RFC 4895 §6.1), for the reason that is reported
    /// to the peer.
    BadAuth(&'static str),
    /// The peer does not offer AUTH, which this end requires.
    NoAuth,
    /// The DTLS chunk is required and cannot be used.
    Dtls(Mismatch),
}

impl OfferError {
    /// Violation to report to the user if the peer's INIT ACK is refused for this error.
    pub(crate) fn violation(&self) -> Violation {
        match self {
            OfferError::ZeroTag | OfferError::Field => Violation::BadInitAck,
            OfferError::HostName(_) => Violation::HostName,
            OfferError::Malformed => Violation::Protocol("an INIT ACK with a malformed parameter"),
            OfferError::BadAuth(what) => Violation::Protocol(what),
            OfferError::NoAuth => Violation::NoAuth,
            OfferError::Dtls(mismatch) => Violation::Protocol(mismatch.words()),
        }
    }

    /// Reason with which a refused INIT is counted.
    pub(crate) fn reason(&self) -> DiscardReason {
        match self {
            OfferError::Dtls(_) => DiscardReason::DtlsOffer,
            _ => DiscardReason::BadInit,
        }
    }

    /// Error cause of the ABORT that refuses the offer; `None` if it is discarded silently.
    pub(crate) fn cause(&self) -> Option<Cause> {
        match self {
            OfferError::ZeroTag => None,
            OfferError::Field => Some(Cause::InvalidMandatoryParameter),
            OfferError::Malformed => Some(Cause::ProtocolViolation {
                information: Bytes::from_static(b"malformed parameter"),
            }),
            OfferError::HostName(parameter) => Some(Cause::UnresolvableAddress {
                parameter: parameter.clone(),
            }),
            OfferError::BadAuth(what) => Some(Cause::ProtocolViolation {
                information: Bytes::from_static(what.as_bytes()),
            }),
            OfferError::Dtls(mismatch) => {
                let tlv = Tlv::new(mismatch.cause().code(), &[]);
                tlv.ok().map(Cause::Unknown)
            }
            OfferError::NoAuth => Some(Cause::MissingMandatoryParameter {
                kinds: U16List::of(&[kind::RANDOM, kind::HMAC_ALGO]),
            }),
        }
    }
}

impl Offer {
    /// Offer with the fixed fields of an INIT or INIT ACK received from `source`, unchecked. The
    /// caller must call [`Self::read`] next.
    #[inline(always)]
    pub(crate) fn of(init: &Init, source: IpAddr) -> Self {
        Self {
            initiate_tag: init.initiate_tag,
            a_rwnd: init.a_rwnd,
            outbound_streams: init.outbound_streams,
            inbound_streams: init.inbound_streams,
            initial_tsn: init.initial_tsn,
            addresses: Addresses::from_elem(source, 1),
            cookie: None,
            extensions: Extensions::default(),
            auth: None,
            dtls: None,
            remarks: OptionalParameters::default(),
            cookie_preservative: None,
            unrecognized: Vec::new(),
        }
    }

    /// Parses the parameters and validates the offer. `config` are the local settings, and `ours`
    /// the local extensions.
    ///
    /// # Errors
    /// The offer must be refused.
    pub(crate) fn read(
        &mut self,
        init: &Init,
        ours: Extensions,
        config: &Config,
    ) -> Result<(), OfferError> {
        let reports = Reports::within(config.max_packet(self.addresses[0]));
        self.read_all(init, ours, reports)?;
        self.has_what_is_required(config)
    }

    fn read_all(
        &mut self,
        init: &Init,
        ours: Extensions,
        mut reports: Reports,
    ) -> Result<(), OfferError> {
        if init.initiate_tag == 0 {
            return Err(OfferError::ZeroTag);
        }
        if init.outbound_streams == 0 || init.inbound_streams == 0 || init.a_rwnd < MIN_A_RWND {
            return Err(OfferError::Field);
        }
        let source = self.addresses[0];
        let mut auth = None;
        let mut parameters = init.parameters.iter();
        while let Some(parameter) = parameters.next() {
            let parameter = parameter.map_err(|_| OfferError::Malformed)?;
            if !self.take(parameter, source, ours, &mut auth, &mut reports)? {
                self.find_cookie(parameters);
                break;
            }
        }
        if !self.remarks.are_none() {
            self.remarks.settle(&self.addresses);
        }
        self.auth = auth.and_then(|it: Box<AuthParametersBuilder>| it.finish());
        self.extensions.set(&AUTH, self.auth.is_some());
        self.extensions.set(&DTLS, self.dtls.is_some());
        Ok(())
    }

    /// Finds the cookie in `rest`, the parameters after an unknown parameter that ends the
    /// processing. The INIT ACK must nevertheless be answered by a COOKIE ECHO (RFC 9260 §3.2.1).
    #[cold]
    #[inline(never)]
    fn find_cookie(&mut self, rest: impl Iterator<Item = Result<Parameter, TlvError>>) {
        let cookie = |parameter| match parameter {
            Parameter::StateCookie(cookie) => Some(cookie),
            _ => None,
        };
        if self.cookie.is_none() {
            self.cookie = rest.map_while(Result::ok).find_map(cookie);
        }
    }

    /// Takes the peer's AUTH parameters, if this end offered AUTH with the random number `random`.
    /// If AUTH was not negotiated, removes extensions that need it from `extensions`.
    #[inline(always)]
    pub(crate) fn settle_auth(
        &mut self,
        random: Option<&[u8; RANDOM_LEN]>,
        extensions: &mut Extensions,
        config: &Config,
    ) -> Option<Box<NegotiatedAuth>> {
        if random.is_none() && *extensions == Extensions::default() {
            return None;
        }
        self.settle_auth_of(random, extensions, config)
    }

    #[cold]
    #[inline(never)]
    fn settle_auth_of(
        &mut self,
        random: Option<&[u8; RANDOM_LEN]>,
        extensions: &mut Extensions,
        config: &Config,
    ) -> Option<Box<NegotiatedAuth>> {
        let both = random.copied().zip(self.auth.take());
        let terms = both.map(|(random, peer)| {
            let own = config.auth_offer(random);
            Box::new(NegotiatedAuth { own, peer })
        });
        extensions.set(&AUTH, terms.is_some());
        if terms.is_none() && !config.profile.asconf_without_auth {
            extensions.set(&ASCONF, false);
        }
        terms
    }

    /// Takes the peer's DTLS Key Management Parameter, if this end offered `own`. If the DTLS chunk
    /// is not used, removes it from `extensions`.
    pub(crate) fn settle_dtls(
        &mut self,
        own: Option<DtlsKeyManagement>,
        extensions: &mut Extensions,
    ) -> Result<Option<Box<DtlsTerms>>, Mismatch> {
        let Some((own, peer)) = own.zip(self.dtls.take()) else {
            extensions.set(&DTLS, false);
            return Ok(None);
        };
        let terms = DtlsTerms { own, peer: *peer };
        terms.agree()?;
        Ok(Some(Box::new(terms)))
    }

    /// Checks the peer's offer of the DTLS chunk. In strict mode, an offer without the DTLS chunk
    /// or with an incompatible parameter is refused. In loose mode, an incompatible parameter is
    /// ignored.
    #[cold]
    #[inline(never)]
    fn judge_dtls(&mut self, config: &Config) -> Result<(), OfferError> {
        let own = config.key_methods.parameter(0);
        let judged = match &self.dtls {
            None => Err(Mismatch::Missing),
            Some(peer) => is_compatible(&own, peer),
        };
        match judged {
            Err(mismatch) if config.security == Security::DtlsChunk => {
                Err(OfferError::Dtls(mismatch))
            }
            Err(_) => {
                self.dtls = None;
                self.extensions.set(&DTLS, false);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Refuses an offer without an extension that `config` requires.
    fn has_what_is_required(&mut self, config: &Config) -> Result<(), OfferError> {
        if config.security != Security::Off {
            self.judge_dtls(config)?;
        }
        if config.authentication == Authentication::Required && self.auth.is_none() {
            return Err(OfferError::NoAuth);
        }
        let changes = config.address_changes && self.extensions.has(&ASCONF);
        if changes && self.auth.is_none() && !config.profile.asconf_without_auth {
            return Err(OfferError::NoAuth); // RFC 5061 §4.2.7
        }
        Ok(())
    }

    /// Processes one parameter. Returns `false` if the following parameters must be ignored.
    fn take(
        &mut self,
        parameter: Parameter,
        source: IpAddr,
        ours: Extensions,
        auth: &mut Option<Box<AuthParametersBuilder>>,
        reports: &mut Reports,
    ) -> Result<bool, OfferError> {
        match parameter {
            Parameter::Ipv4Address(address) => self.add_address(address.into(), source),
            Parameter::Ipv6Address(address) => self.add_address(address.into(), source),
            Parameter::StateCookie(cookie) => self.cookie = Some(cookie),
            Parameter::CookiePreservative(increment) => self.cookie_preservative = Some(increment),
            Parameter::HostNameAddress(name) => {
                return Err(OfferError::HostName(host_name_parameter(name)));
            }
            // These parameters have no effect. This endpoint sends to any listed address that it
            // can reach, and does not need reports of unrecognized parameters.
            Parameter::SupportedAddressTypes(_)
            | Parameter::UnrecognizedParameter(_)
            | Parameter::HeartbeatInfo(_) => {}
            // Report Forward-TSN-Supported as unrecognized if the extension is not offered, because
            // its type has the report bit set.
            Parameter::ForwardTsnSupported if !ours.has(&PARTIAL_RELIABILITY) => {
                self.report(Bytes::from_static(&[0xC0, 0x00, 0x00, 0x04]), reports);
            }
            Parameter::Rsctp
            | Parameter::EcnCapable
            | Parameter::SupportedExtensions(_)
            | Parameter::ForwardTsnSupported => {
                self.extensions.note(&parameter);
            }
            Parameter::Unknown(tlv) => return self.take_other(tlv, source, ours, auth, reports),
        }
        Ok(true)
    }

    /// Processes one parameter of an extension.
    #[cold]
    #[inline(never)]
    fn take_other(
        &mut self,
        tlv: Tlv,
        source: IpAddr,
        ours: Extensions,
        auth: &mut Option<Box<AuthParametersBuilder>>,
        reports: &mut Reports,
    ) -> Result<bool, OfferError> {
        if ours.has(&AUTH) {
            let auth = auth.get_or_insert_default();
            if auth.take(&tlv).map_err(OfferError::BadAuth)? {
                return Ok(true);
            }
        }
        if tlv.kind == kind::DTLS_KEY_MANAGEMENT && ours.has(&DTLS) {
            let parameter = DtlsKeyManagement::decode(tlv).map_err(|_| OfferError::Malformed)?;
            self.dtls.get_or_insert_with(|| Box::new(parameter));
            return Ok(true);
        }
        let taken = self.remarks.take(&tlv, source, ours);
        let parameter = Parameter::Unknown(tlv);
        if taken.map_err(|_| OfferError::Malformed)? || self.extensions.note(&parameter) {
            return Ok(true);
        }
        let action = parameter.action();
        if let Parameter::Unknown(tlv) = parameter
            && action.report
        {
            self.report(tlv.into_whole(), reports);
        }
        Ok(!action.stop)
    }

    #[cold]
    #[inline(never)]
    fn report(&mut self, whole: Bytes, reports: &mut Reports) {
        if reports.take(whole.len()) {
            self.unrecognized.push(whole);
        }
    }

    /// Adds an address of the peer. A loopback address is accepted only from a loopback source,
    /// because it is meaningful only on the same host (RFC 9260 §5.1.2). An IPv4-mapped IPv6
    /// address, which should not be listed (§3.3.2.1.2), is treated as the IPv4 address.
    #[inline(never)]
    fn add_address(&mut self, address: IpAddr, source: IpAddr) {
        let address = address.to_canonical();
        let usable = is_unicast(address) && (!address.is_loopback() || source.is_loopback());
        if usable && !self.addresses.contains(&address) && self.addresses.len() < MAX_PEER_ADDRESSES
        {
            self.addresses.push(address);
        }
    }
}

/// Encodes the Host Name Address parameter again, truncated to fit into an ABORT, without padding.
#[cold]
#[inline(never)]
fn host_name_parameter(mut name: Bytes) -> Bytes {
    name.truncate(256);
    let tlv = Tlv::new(anabranch_wire::parameter::kind::HOST_NAME_ADDRESS, &name);
    tlv.map(|tlv| tlv.whole().clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::parameter::Parameters;

    const SOURCE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn read(init: &Init, source: IpAddr, ours: Extensions) -> Result<Offer, OfferError> {
        let mut offer = Offer::of(init, source);
        let reports = Reports::within(1_480);
        offer.read_all(init, ours, reports).map(|()| offer)
    }

    fn init(parameters: Parameters) -> Init {
        Init {
            initiate_tag: 1,
            a_rwnd: 65_536,
            outbound_streams: 1,
            inbound_streams: 1,
            initial_tsn: Tsn(1),
            parameters,
        }
    }

    fn unknown(kind: u16, value: &[u8]) -> Parameter {
        Parameter::Unknown(Tlv::new(kind, value).expect("short"))
    }

    #[test]
    fn fields_that_break_their_rules() {
        let mut zero_tag = init(Parameters::empty());
        zero_tag.initiate_tag = 0;
        assert_eq!(
            read(&zero_tag, SOURCE, Extensions::default()),
            Err(OfferError::ZeroTag)
        );
        for broken in [
            Init {
                outbound_streams: 0,
                ..init(Parameters::empty())
            },
            Init {
                inbound_streams: 0,
                ..init(Parameters::empty())
            },
            Init {
                a_rwnd: 1_499,
                ..init(Parameters::empty())
            },
        ] {
            assert_eq!(
                read(&broken, SOURCE, Extensions::default()),
                Err(OfferError::Field)
            );
        }
        assert!(
            read(
                &Init {
                    a_rwnd: 1_500,
                    ..init(Parameters::empty())
                },
                SOURCE,
                Extensions::default(),
            )
            .is_ok()
        );
    }

    #[test]
    fn unknown_parameters_follow_their_two_high_bits() {
        let address = Parameter::Ipv4Address([10, 0, 0, 9].into());
        for (kind, reported, goes_on) in [
            (0x3FF0, 0, false),
            (0x7FF0, 1, false),
            (0xBFF0, 0, true),
            (0xFFF0, 1, true),
        ] {
            let offer = read(
                &init(Parameters::of(&[unknown(kind, b"abcd"), address.clone()])),
                SOURCE,
                Extensions::default(),
            )
            .unwrap();
            assert_eq!(offer.unrecognized.len(), reported, "{kind:#x}");
            assert_eq!(offer.addresses.len() == 2, goes_on, "{kind:#x}");
        }
    }

    #[test]
    fn many_unknown_parameters_are_reported_within_bounds() {
        let many: Vec<_> = (0..5_000).map(|_| unknown(0xC123, &[0; 8])).collect();
        let offer = read(&init(Parameters::of(&many)), SOURCE, Extensions::default()).unwrap();
        // A packet of 1,480 bytes has space for 92 reports of 16 bytes each.
        assert_eq!(offer.unrecognized.len(), 92);
    }

    #[test]
    fn addresses_are_unicast_each_once_and_few() {
        let mut list: Vec<_> = (0..100)
            .map(|last| Parameter::Ipv4Address([10, 0, 1, last].into()))
            .collect();
        list.insert(0, Parameter::Ipv4Address([10, 0, 0, 1].into()));
        for bad in [
            [224, 0, 0, 1],
            [255, 255, 255, 255],
            [0, 0, 0, 0],
            [127, 0, 0, 1],
        ] {
            list.insert(0, Parameter::Ipv4Address(bad.into()));
        }
        let offer = read(&init(Parameters::of(&list)), SOURCE, Extensions::default()).unwrap();
        assert_eq!(offer.addresses.len(), MAX_PEER_ADDRESSES);
        assert_eq!(offer.addresses[0], SOURCE);
        assert!(
            offer
                .addresses
                .iter()
                .all(|address| address.to_string().starts_with("10.0."))
        );
    }

    #[test]
    fn a_parameter_partly_outside_the_chunk_refuses_the_whole_offer() {
        let good = Parameters::of(&[Parameter::Ipv4Address([10, 0, 0, 9].into())]);
        for cut in 1..good.as_bytes().len() {
            let offer = read(
                &init(Parameters::from_bytes(good.as_bytes().slice(..cut))),
                SOURCE,
                Extensions::default(),
            );
            assert_eq!(offer, Err(OfferError::Malformed), "cut to {cut}");
        }
    }

    #[test]
    fn a_host_name_is_refused_with_the_parameter() {
        let offer = read(
            &init(Parameters::of(&[Parameter::HostNameAddress(
                Bytes::from_static(b"a.b\0"),
            )])),
            SOURCE,
            Extensions::default(),
        );
        let Err(OfferError::HostName(whole)) = offer else {
            panic!("{offer:?}")
        };
        assert_eq!(&whole[..], b"\x00\x0b\x00\x08a.b\0");
    }
}
