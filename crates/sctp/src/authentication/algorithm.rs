//! HMAC algorithms of AUTH (RFC 4895 §3.3, §8).

use anabranch_wire::extension::hmac_id;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::Sha256;

/// An HMAC algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Sha1,
    Sha256,
}

impl Algorithm {
    /// Length of the longest HMAC in bytes.
    pub(crate) const MAX_LEN: usize = 32;

    /// Algorithm with this identifier.
    pub(crate) fn of(id: u16) -> Option<Self> {
        match id {
            hmac_id::SHA_1 => Some(Self::Sha1),
            hmac_id::SHA_256 => Some(Self::Sha256),
            _ => None,
        }
    }

    pub(crate) fn id(self) -> u16 {
        match self {
            Self::Sha1 => hmac_id::SHA_1,
            Self::Sha256 => hmac_id::SHA_256,
        }
    }

    /// Length of the HMAC in bytes.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

/// HMAC state initialized with a key, so that the key is not hashed again for every packet.
#[derive(Clone)]
pub(crate) enum HmacKey {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
}

impl HmacKey {
    pub(crate) fn new(algorithm: Algorithm, key: &[u8]) -> Self {
        const ANY: &str = "HMAC takes a key of any length";
        match algorithm {
            Algorithm::Sha1 => Self::Sha1(Hmac::new_from_slice(key).expect(ANY)),
            Algorithm::Sha256 => Self::Sha256(Hmac::new_from_slice(key).expect(ANY)),
        }
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        match self {
            Self::Sha1(_) => Algorithm::Sha1,
            Self::Sha256(_) => Algorithm::Sha256,
        }
    }

    /// HMAC over the concatenated `parts`, at the start of the returned array.
    pub(crate) fn sign(&self, parts: &[&[u8]]) -> [u8; Algorithm::MAX_LEN] {
        let mut out = [0; Algorithm::MAX_LEN];
        match self {
            Self::Sha1(mac) => out[..20].copy_from_slice(&fed(mac, parts).finalize().into_bytes()),
            Self::Sha256(mac) => out.copy_from_slice(&fed(mac, parts).finalize().into_bytes()),
        }
        out
    }

    /// Whether `hmac` is the HMAC of `parts`, compared in constant time.
    pub(crate) fn verify(&self, parts: &[&[u8]], hmac: &[u8]) -> bool {
        match self {
            Self::Sha1(mac) => fed(mac, parts).verify_slice(hmac).is_ok(),
            Self::Sha256(mac) => fed(mac, parts).verify_slice(hmac).is_ok(),
        }
    }
}

fn fed<M: Mac + Clone>(mac: &M, parts: &[&[u8]]) -> M {
    let mut mac = mac.clone();
    for part in parts {
        mac.update(part);
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn is(algorithm: Algorithm, key: &[u8], data: &[u8], expected: &str) {
        let keyed = HmacKey::new(algorithm, key);
        let (one, two) = data.split_at(data.len() / 3);
        let hmac = &keyed.sign(&[one, two])[..algorithm.len()];
        assert_eq!(hex(hmac), expected, "{algorithm:?}");
        assert!(keyed.verify(&[data], hmac));
        assert!(!keyed.verify(&[data, b"."], hmac));
        assert!(!keyed.verify(&[data], &hmac[1..]));
        assert!(!keyed.verify(&[data], &[]));
    }

    /// Test vectors of HMAC-SHA-256: RFC 4231 §4.2 to §4.4, §4.7, §4.8.
    #[test]
    fn vectors_of_sha_256() {
        let is = |key: &[u8], data: &[u8], expected| is(Algorithm::Sha256, key, data, expected);
        is(
            &[0x0B; 20],
            b"Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        );
        is(
            b"Jefe",
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        );
        is(
            &[0xAA; 20],
            &[0xDD; 50],
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
        );
        is(
            &[0xAA; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        );
        is(
            &[0xAA; 131],
            b"This is a test using a larger than block-size key and a larger than block-size data. The key needs to be \
              hashed before being used by the HMAC algorithm.",
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
        );
    }

    /// Test vectors of HMAC-SHA-1: RFC 2202 §3, test cases 1 to 3, 6 and 7.
    #[test]
    fn vectors_of_sha_1() {
        let is = |key: &[u8], data: &[u8], expected| is(Algorithm::Sha1, key, data, expected);
        is(
            &[0x0B; 20],
            b"Hi There",
            "b617318655057264e28bc0b6fb378c8ef146be00",
        );
        is(
            b"Jefe",
            b"what do ya want for nothing?",
            "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
        );
        is(
            &[0xAA; 20],
            &[0xDD; 50],
            "125d7342b9ac11cd91a39af48aa17b4f63f175d3",
        );
        is(
            &[0xAA; 80],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "aa4ae5e15272d00e95705637ce8a3b55ed402112",
        );
        is(
            &[0xAA; 80],
            b"Test Using Larger Than Block-Size Key and Larger Than One Block-Size Data",
            "e8e99d0f45237d786d6bbaa7965c7808bbff1a91",
        );
    }
}
