//! AUTH parameters of INIT and INIT ACK: RANDOM, CHUNKS and HMAC-ALGO (RFC 4895 §3).

use anabranch_wire::encode::Encode;
use anabranch_wire::extension::{InitParameter, hmac_id};
use anabranch_wire::parameter::kind;
use anabranch_wire::tlv::{Tlv, TlvItem, TlvWriter, U16List};
use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::{Algorithm, AuthHmac, ChunkTypes};

/// Length of a random number in bytes (RFC 4895 §6.1).
pub(crate) const RANDOM_LEN: usize = 32;
/// Maximum length of a list of chunk types in bytes: each type once.
const MAX_TYPES: usize = 256;
/// Maximum accepted length of a list of HMAC identifiers in bytes; two algorithms are defined.
const MAX_HMACS: usize = 32;

/// AUTH parameters that one end offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthParameters {
    pub(crate) random: [u8; RANDOM_LEN],
    /// Value of the CHUNKS parameter, if there is one.
    chunks: Option<Bytes>,
    /// Value of the HMAC-ALGO parameter.
    hmacs: U16List,
}

impl AuthParameters {
    /// Offer of this end: it requires authentication of `chunks` and prefers `hmac`.
    pub(crate) fn own(random: [u8; RANDOM_LEN], chunks: ChunkTypes, hmac: AuthHmac) -> Self {
        let types: Vec<u8> = chunks.iter().collect();
        let hmacs: &[u16] = match hmac {
            AuthHmac::Sha256 => &[hmac_id::SHA_256, hmac_id::SHA_1],
            AuthHmac::Sha1 => &[hmac_id::SHA_1],
        };
        Self {
            random,
            chunks: (!types.is_empty()).then(|| types.into()),
            hmacs: U16List::of(hmacs),
        }
    }

    /// Chunk types accepted only if authenticated.
    pub(crate) fn demanded(&self) -> ChunkTypes {
        ChunkTypes::of(self.chunks.as_deref().unwrap_or_default())
    }

    /// First supported algorithm of the offer (RFC 4895 §6.1).
    pub(crate) fn algorithm(&self) -> Algorithm {
        let mut known = self.algorithms();
        known.next().unwrap_or(Algorithm::Sha1)
    }

    /// Supported algorithms of the offer, in order of preference.
    pub(crate) fn algorithms(&self) -> impl Iterator<Item = Algorithm> + '_ {
        self.hmacs.iter().filter_map(Algorithm::of)
    }

    fn parameters(&self) -> impl Iterator<Item = InitParameter> + '_ {
        let random = InitParameter::Random(Bytes::copy_from_slice(&self.random));
        let chunks = self.chunks.clone().map(InitParameter::Chunks);
        let hmacs = InitParameter::HmacAlgo(self.hmacs.clone());
        [Some(random), chunks, Some(hmacs)].into_iter().flatten()
    }

    /// Length of the encoded parameters in bytes.
    pub(crate) fn encoded_len(&self) -> usize {
        self.parameters().map(|it| it.encoded_len()).sum()
    }

    /// Adds all parameters of the offer, or none if they do not all fit.
    pub(crate) fn push(&self, parameters: &mut TlvWriter) {
        if self.encoded_len() <= parameters.room() {
            for parameter in self.parameters() {
                let _ = parameters.push(&parameter);
            }
        }
    }

    /// Key vector: the parameters as sent, without padding (RFC 4895 §6.1).
    pub(crate) fn vector(&self) -> Vec<u8> {
        let mut vector = Vec::new();
        for parameter in self.parameters() {
            if let Ok(anabranch_wire::Parameter::Unknown(tlv)) = parameter.to_parameter() {
                vector.extend_from_slice(tlv.whole());
            }
        }
        vector
    }

    /// Encodes the offer into a cookie.
    pub(crate) fn encode(&self, out: &mut BytesMut) {
        out.put_slice(&self.random);
        let length = self.chunks.as_ref().map_or(u16::MAX, |it| it.len() as u16);
        out.put_u16(length);
        out.put_slice(self.chunks.as_deref().unwrap_or_default());
        out.put_u8(self.hmacs.as_bytes().len() as u8);
        out.put_slice(self.hmacs.as_bytes());
    }

    /// Decodes an offer encoded by [`AuthParameters::encode`].
    pub(crate) fn decode(body: &mut Bytes) -> Option<Self> {
        let random = take_random(body)?;
        let chunks = match body.try_get_u16().ok()? {
            u16::MAX => None,
            length => Some(take(body, length.into(), MAX_TYPES)?),
        };
        let length = body.try_get_u8().ok()?;
        let hmacs = U16List::from_bytes(take(body, length.into(), MAX_HMACS)?)?;
        Some(Self {
            random,
            chunks,
            hmacs,
        })
    }
}

/// Decodes a random number from a cookie.
fn take_random(body: &mut Bytes) -> Option<[u8; RANDOM_LEN]> {
    let mut random = [0; RANDOM_LEN];
    body.try_copy_to_slice(&mut random).ok()?;
    Some(random)
}

fn take(body: &mut Bytes, length: usize, most: usize) -> Option<Bytes> {
    (length <= most && length <= body.len()).then(|| body.split_to(length))
}

/// Parser for the parameters of a peer.
#[derive(Debug, Default)]
pub(crate) struct AuthParametersBuilder {
    random: Option<Bytes>,
    chunks: Option<Bytes>,
    hmacs: Option<U16List>,
}

/// Error text that is reported to the peer whose parameters are refused.
pub(crate) type InvalidParameter = &'static str;

impl AuthParametersBuilder {
    /// Parses an AUTH parameter; returns `false` if `tlv` is another parameter.
    pub(crate) fn take(&mut self, tlv: &Tlv) -> Result<bool, InvalidParameter> {
        if !matches!(tlv.kind, kind::RANDOM | kind::CHUNKS | kind::HMAC_ALGO) {
            return Ok(false);
        }
        let twice = match InitParameter::decode(tlv.clone()) {
            Ok(InitParameter::Random(random)) if random.len() == RANDOM_LEN => {
                self.random.replace(random).is_some()
            }
            Ok(InitParameter::Random(_)) => return Err("a random number that has not 32 bytes"),
            Ok(InitParameter::Chunks(types)) if types.len() <= MAX_TYPES => {
                self.chunks.replace(types).is_some()
            }
            Ok(InitParameter::HmacAlgo(list)) if list.as_bytes().len() <= MAX_HMACS => {
                if !list.iter().any(|id| id == hmac_id::SHA_1) {
                    return Err("a list of HMACs without SHA-1");
                }
                self.hmacs.replace(list).is_some()
            }
            _ => return Err("malformed parameter of AUTH"),
        };
        if twice {
            return Err("a parameter of AUTH twice");
        }
        Ok(true)
    }

    /// Offer of the peer, if all mandatory parameters were present. Copies the values, so that the
    /// received packet can be freed.
    pub(crate) fn finish(self) -> Option<AuthParameters> {
        let random = self.random?[..].try_into().ok()?;
        let chunks = self.chunks.map(|it| Bytes::copy_from_slice(&it));
        let hmacs: Vec<u16> = self.hmacs?.iter().collect();
        Some(AuthParameters {
            random,
            chunks,
            hmacs: U16List::of(&hmacs),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlv(kind: u16, value: &[u8]) -> Tlv {
        Tlv::new(kind, value).expect("short")
    }

    fn collected(parameters: &[Tlv]) -> Result<Option<AuthParameters>, InvalidParameter> {
        let mut all = AuthParametersBuilder::default();
        for parameter in parameters {
            all.take(parameter)?;
        }
        Ok(all.finish())
    }

    fn random() -> Tlv {
        tlv(kind::RANDOM, &[7; 32])
    }

    fn sha_1() -> Tlv {
        tlv(kind::HMAC_ALGO, &[0, 1])
    }

    #[test]
    fn the_vector_is_the_parameters_in_their_order_without_padding() {
        let chunks = tlv(kind::CHUNKS, &[0xC1]);
        let hmacs = tlv(kind::HMAC_ALGO, &[0, 3, 0, 1]);
        // The order of the parameters does not matter.
        let offer = collected(&[hmacs, chunks, random()]).expect("sound");
        let mut expected = vec![0x80, 2, 0, 36];
        expected.extend([7; 32]);
        expected.extend([0x80, 3, 0, 5, 0xC1]);
        expected.extend([0x80, 4, 0, 8, 0, 3, 0, 1]);
        assert_eq!(offer.expect("whole").vector(), expected);
        let offer = collected(&[random(), sha_1()]).expect("sound");
        let mut expected = vec![0x80, 2, 0, 36];
        expected.extend([7; 32]);
        expected.extend([0x80, 4, 0, 6, 0, 1]);
        assert_eq!(offer.expect("whole").vector(), expected);
    }

    #[test]
    fn the_first_algorithm_that_is_known_is_used() {
        for (list, algorithm) in [
            (&[0, 3, 0, 1][..], Algorithm::Sha256),
            (&[0, 1, 0, 3], Algorithm::Sha1),
            (&[0, 9, 0, 2, 0, 1], Algorithm::Sha1),
        ] {
            let offer = collected(&[random(), tlv(kind::HMAC_ALGO, list)]).expect("sound");
            assert_eq!(offer.expect("whole").algorithm(), algorithm, "{list:?}");
        }
    }

    #[test]
    fn without_a_random_number_or_a_list_of_hmacs_nothing_is_offered() {
        let chunks = tlv(kind::CHUNKS, &[0xC1]);
        assert_eq!(collected(&[]), Ok(None));
        assert_eq!(collected(&[random(), chunks.clone()]), Ok(None));
        assert_eq!(collected(&[sha_1(), chunks]), Ok(None));
        let mut all = AuthParametersBuilder::default();
        assert_eq!(all.take(&tlv(0x8005, &[])), Ok(false));
    }

    #[test]
    fn authentication_parameters_that_break_a_rule_are_refused() {
        let cases = [
            vec![tlv(kind::RANDOM, &[7; 31])],
            vec![tlv(kind::RANDOM, &[7; 33])],
            vec![tlv(kind::RANDOM, &[])],
            vec![random(), random()],
            vec![sha_1(), sha_1()],
            vec![tlv(kind::HMAC_ALGO, &[0, 3])],
            vec![tlv(kind::HMAC_ALGO, &[])],
            vec![tlv(kind::HMAC_ALGO, &[0, 1, 0])],
            vec![tlv(kind::HMAC_ALGO, &[0, 1].repeat(17))],
            vec![tlv(kind::CHUNKS, &[0; 257])],
            vec![tlv(kind::CHUNKS, &[0]), tlv(kind::CHUNKS, &[0])],
        ];
        for parameters in cases {
            assert!(collected(&parameters).is_err(), "{parameters:?}");
        }
    }

    #[test]
    fn a_cookie_carries_it_and_nothing_cut_short_is_read() {
        let chunks = tlv(kind::CHUNKS, &[5; 256]);
        for parameters in [vec![random(), sha_1()], vec![random(), chunks, sha_1()]] {
            let offer = collected(&parameters).expect("sound").expect("whole");
            let mut out = BytesMut::new();
            offer.encode(&mut out);
            let whole = out.freeze();
            assert_eq!(AuthParameters::decode(&mut whole.clone()), Some(offer));
            for len in 0..whole.len() {
                assert_eq!(
                    AuthParameters::decode(&mut whole.slice(..len)),
                    None,
                    "{len}"
                );
            }
        }
        let mut long = BytesMut::from(&[7; 32][..]);
        long.put_u16(257);
        long.put_slice(&[0; 400]);
        assert_eq!(AuthParameters::decode(&mut long.freeze()), None);
    }
}
