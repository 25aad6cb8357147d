//! Ciphers of the crate ring, which selects an implementation by the features of the processor.
//! ring does not overwrite keys when they are dropped.

use ring::aead::quic::{self, HeaderProtectionKey};
use ring::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey,
};

use super::super::TAG;
use crate::material::{IV_LEN, KeyMaterial};
use crate::suite::Suite;

/// An AEAD cipher. Boxed, because key schedules of AES have some hundred bytes, which should not be
/// moved with an association.
pub(crate) struct Aead(Box<LessSafeKey>);

impl Aead {
    pub(crate) fn new(material: &KeyMaterial) -> Self {
        let algorithm = match material.suite() {
            Suite::Aes128Gcm => &AES_128_GCM,
            Suite::Aes256Gcm => &AES_256_GCM,
            Suite::Chacha20Poly1305 => &CHACHA20_POLY1305,
        };
        let key = UnboundKey::new(algorithm, material.key()).expect("the length was checked");
        Self(Box::new(LessSafeKey::new(key)))
    }

    /// Encrypts `inner` in place, and writes the tag.
    pub(crate) fn seal(
        &self,
        nonce: &[u8; IV_LEN],
        header: &[u8],
        inner: &mut [u8],
        tag: &mut [u8],
    ) {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let aad = Aad::from(header);
        let made = self.0.seal_in_place_separate_tag(nonce, aad, inner);
        let made = made.expect("a record is far shorter than what an AEAD takes");
        tag.copy_from_slice(made.as_ref());
    }

    /// Decrypts `inner` in place; returns true if it is authentic.
    pub(crate) fn open(
        &self,
        nonce: &[u8; IV_LEN],
        header: &[u8],
        inner: &mut [u8],
        tag: &[u8],
    ) -> bool {
        let Ok(tag) = Tag::try_from(tag) else {
            return false;
        };
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let aad = Aad::from(header);
        let opened = self
            .0
            .open_in_place_separate_tag(nonce, aad, tag, inner, 0..);
        opened.is_ok()
    }
}

/// Encrypts sequence numbers (RFC 9147 §4.2.3). QUIC has the same masks for its headers (RFC 9001
/// §5.4).
pub(crate) struct Mask(Box<HeaderProtectionKey>);

impl Mask {
    pub(crate) fn new(material: &KeyMaterial) -> Self {
        let algorithm = match material.suite() {
            Suite::Aes128Gcm => &quic::AES_128,
            Suite::Aes256Gcm => &quic::AES_256,
            Suite::Chacha20Poly1305 => &quic::CHACHA20,
        };
        let key = HeaderProtectionKey::new(algorithm, material.sequence_key());
        Self(Box::new(key.expect("the length was checked")))
    }

    /// The two bytes with which a 16-bit sequence number is encrypted, from the first 16 bytes of
    /// the encrypted part.
    pub(crate) fn of(&self, sample: &[u8]) -> [u8; 2] {
        let mask = self.0.new_mask(&sample[..TAG]);
        let [first, second, ..] = mask.expect("16 bytes");
        [first, second]
    }
}

#[cfg(test)]
mod tests {
    use super::super::rust;
    use super::*;

    /// Bytes that differ with `seed`.
    fn bytes(seed: u8, length: usize) -> Vec<u8> {
        let one = |at: usize| (at as u8).wrapping_mul(31).wrapping_add(seed);
        (0..length).map(one).collect()
    }

    /// Compares the ciphers of this module with those of `rust`, for contents of all short lengths
    /// and of some lengths of whole packets and records.
    #[test]
    fn both_libraries_seal_and_open_the_same_records() {
        for suite in [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::Chacha20Poly1305] {
            let material = KeyMaterial::from_secret(suite, &[5; 48]);
            let (ours, theirs) = (Aead::new(&material), rust::Aead::new(&material));
            let masks = (Mask::new(&material), rust::Mask::new(&material));
            for length in (0..300).chain([1_199, 1_200, 1_201, 16_384]) {
                let (nonce, header) = ([length as u8; IV_LEN], [40, 1, 2]);
                let mut record = bytes(length as u8, length);
                let mut other = record.clone();
                let (mut tag, mut other_tag) = ([0; TAG], [0; TAG]);
                ours.seal(&nonce, &header, &mut record, &mut tag);
                theirs.seal(&nonce, &header, &mut other, &mut other_tag);
                assert!(record == other && tag == other_tag, "{suite:?}, {length}");
                assert_eq!(masks.0.of(&tag), masks.1.of(&tag), "{suite:?}, {length}");
                assert!(ours.open(&nonce, &header, &mut other, &tag));
                assert_eq!(other, bytes(length as u8, length));
                assert!(theirs.open(&nonce, &header, &mut record, &tag));
                tag[length % TAG] ^= 1;
                assert!(!ours.open(&nonce, &header, &mut record, &tag));
            }
        }
    }
}
