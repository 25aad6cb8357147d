//! Extensions beyond RFC 9260, which are used if both ends offer them. Each extension has a file or
//! directory that declares an [`Extension`], and an entry in [`REGISTRY`].

mod asconf;
mod authentication;
mod dtls;
mod ecn;

use anabranch_wire::parameter::{Parameter, kind};
use anabranch_wire::tlv::TlvWriter;
use bytes::Bytes;

use crate::config::Config;
use crate::extension_descriptor::Extension;
use crate::{interleaving, pr_sctp, reconfig, rsctp, zero_checksum};

pub(crate) use asconf::ASCONF;
pub(crate) use authentication::AUTH;
pub(crate) use dtls::DTLS;
pub(crate) use ecn::ECN;
pub(crate) use interleaving::{INTERLEAVED_ABANDONING, INTERLEAVING};
pub(crate) use pr_sctp::PARTIAL_RELIABILITY;
pub(crate) use reconfig::RE_CONFIG;
pub(crate) use rsctp::RSCTP;
pub(crate) use zero_checksum::ZERO_CHECKSUM;

/// All extensions; the index is the bit number in [`Extensions`]. The order may change, because
/// cookies are valid only at the endpoint that created them.
static REGISTRY: [&Extension; 10] = [
    &RSCTP,
    &ECN,
    &PARTIAL_RELIABILITY,
    &ZERO_CHECKSUM,
    &RE_CONFIG,
    &INTERLEAVING,
    &INTERLEAVED_ABANDONING,
    &AUTH,
    &ASCONF,
    &DTLS,
];

/// Set of extensions, offered by one end or negotiated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extensions(u16);

const _: () = assert!(REGISTRY.len() <= u16::BITS as usize, "one bit each");

impl Extensions {
    /// Extensions that an endpoint with these settings offers.
    #[inline(never)]
    pub(crate) fn of(config: &Config) -> Self {
        Self::those(|extension| (extension.wanted)(config))
    }

    /// Extensions offered in an INIT. A minimal INIT offers none, so extensions in the INIT ACK are
    /// then not negotiated.
    pub(crate) fn in_init(config: &Config) -> Self {
        if config.minimal_init {
            return Self::default();
        }
        Self::of(config)
    }

    fn those(wanted: impl Fn(&Extension) -> bool) -> Self {
        let bits = REGISTRY.iter().enumerate();
        let bits = bits.filter(|(_, extension)| wanted(extension));
        Self(bits.fold(0, |bits, (place, _)| bits | 1 << place))
    }

    /// Adds `extension` to the set or removes it, for extensions whose use depends on further
    /// parameters.
    pub(crate) fn set(&mut self, extension: &Extension, offered: bool) {
        if self.0 == 0 && !offered {
            return;
        }
        self.set_one(extension, offered);
    }

    #[inline(never)]
    fn set_one(&mut self, extension: &Extension, offered: bool) {
        let bit = Self::those(|it| std::ptr::eq(it, extension)).0;
        self.0 = if offered { self.0 | bit } else { self.0 & !bit };
    }

    /// Extensions that both ends offer.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn iter(self) -> impl Iterator<Item = &'static Extension> {
        let places = REGISTRY.iter().enumerate();
        places
            .filter(move |(place, _)| self.0 >> place & 1 == 1)
            .map(|(_, extension)| *extension)
    }

    /// Whether `extension` is in the set.
    pub(crate) fn has(self, extension: &Extension) -> bool {
        self.0 != 0 && self.iter().any(|it| std::ptr::eq(it, extension))
    }

    /// Whether chunks of type `kind` belong to an extension of the set. All other types outside of
    /// RFC 9260 are unknown (RFC 9260 §3.2).
    pub(crate) fn take_chunk(self, kind: u8) -> bool {
        self.0 != 0 && self.iter().any(|it| it.chunks.contains(&kind))
    }

    /// Whether both ends may abandon messages: by FORWARD TSN, or by I-FORWARD-TSN with
    /// interleaving (RFC 8260 §2.3.1).
    pub(crate) fn give_up(self) -> bool {
        let means = if self.has(&INTERLEAVING) {
            &INTERLEAVED_ABANDONING
        } else {
            &PARTIAL_RELIABILITY
        };
        self.has(means)
    }

    /// Records the extensions that a parameter of the peer offers. Returns `false` if the parameter
    /// offers none.
    #[inline(never)]
    pub(crate) fn note(&mut self, parameter: &Parameter) -> bool {
        let offered = match parameter {
            // Unknown parameters return early, because a peer can send hundreds of them.
            Parameter::Unknown(tlv) if tlv.kind != kind::ZERO_CHECKSUM_ACCEPTABLE => Self(0),
            Parameter::SupportedExtensions(list) => Self::those(|it| {
                !it.chunks.is_empty() && it.chunks.iter().all(|kind| list.contains(kind))
            }),
            own => Self::those(|it| (it.parameter)().as_ref() == Some(own)),
        };
        self.0 |= offered.0;
        offered.0 != 0 || matches!(parameter, Parameter::SupportedExtensions(_))
    }

    /// Adds the parameters that offer this set to INIT or INIT ACK.
    pub(crate) fn push(self, parameters: &mut TlvWriter) {
        if self.0 == 0 {
            return;
        }
        let mut chunks = Vec::new();
        for extension in self.iter() {
            if let Some(parameter) = (extension.parameter)() {
                let _ = parameters.push(&parameter);
            }
            chunks.extend_from_slice(extension.chunks);
        }
        if !chunks.is_empty() {
            let _ = parameters.push(&Parameter::SupportedExtensions(Bytes::from(chunks)));
        }
    }

    /// Encodes the set for a cookie, in two bytes.
    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    /// Decodes [`Extensions::bits`]; `None` for unknown bits.
    pub(crate) fn from_bits(bits: u16) -> Option<Self> {
        (u32::from(bits) >> REGISTRY.len() == 0).then_some(Self(bits))
    }
}

#[cfg(test)]
mod tests {
    use anabranch_wire::chunk::kind;

    use super::*;

    #[test]
    fn each_extension_has_a_parameter_or_chunks_of_its_own() {
        let mut chunks: Vec<u8> = Vec::new();
        for extension in REGISTRY {
            let has_one = (extension.parameter)().is_some() || !extension.chunks.is_empty();
            assert!(has_one || std::ptr::eq(extension, &DTLS));
            for kind in extension.chunks {
                assert!(!chunks.contains(kind), "{kind}");
                chunks.push(*kind);
            }
        }
    }

    #[test]
    fn either_parameter_offers_partial_reliability_and_both_are_sent() {
        let list = Parameter::SupportedExtensions(Bytes::from_static(&[kind::FORWARD_TSN]));
        for offer in [Parameter::ForwardTsnSupported, list] {
            let mut offered = Extensions::default();
            assert!(offered.note(&offer));
            assert!(offered.has(&PARTIAL_RELIABILITY) && !offered.has(&ECN));
            assert!(offered.take_chunk(kind::FORWARD_TSN));
            let mut sent = TlvWriter::new(100);
            offered.push(&mut sent);
            let expected = [192, 0, 0, 4, 128, 8, 0, 5, 192];
            assert_eq!(sent.finish::<Parameter>().as_bytes()[..9], expected);
        }
        let mut offered = Extensions::default();
        assert!(!offered.note(&Parameter::CookiePreservative(1)));
        assert_eq!(offered, Extensions::default());
        assert!(!offered.take_chunk(kind::FORWARD_TSN));
    }
}
