//! Ciphers implemented in Rust, which overwrite their keys when they are dropped. The exception is
//! the key that GHASH derives for AES-GCM, because polyval 0.6.2 keeps it in a `ManuallyDrop` on
//! x86.

use aes::cipher::{BlockEncrypt, KeyInit, KeyIvInit, StreamCipher, StreamCipherSeek};
use aes::{Aes128, Aes256};
use aes_gcm::aead::AeadInPlace;
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use chacha20::ChaCha20;
use chacha20poly1305::ChaCha20Poly1305;

use super::super::TAG;
use crate::material::{IV_LEN, KeyMaterial};
use crate::suite::Suite;

/// An AEAD cipher. Boxed, because key schedules of AES have some hundred bytes, which should not be
/// moved with an association.
pub(crate) enum Aead {
    Aes128(Box<Aes128Gcm>),
    Aes256(Box<Aes256Gcm>),
    Chacha20(Box<ChaCha20Poly1305>),
}

impl Aead {
    pub(crate) fn new(material: &KeyMaterial) -> Self {
        let key = material.key();
        match material.suite() {
            Suite::Aes128Gcm => Self::Aes128(Box::new(Aes128Gcm::new(key.into()))),
            Suite::Aes256Gcm => Self::Aes256(Box::new(Aes256Gcm::new(key.into()))),
            Suite::Chacha20Poly1305 => Self::Chacha20(Box::new(ChaCha20Poly1305::new(key.into()))),
        }
    }

    /// Encrypts `inner` in place, and writes the tag.
    pub(crate) fn seal(
        &self,
        nonce: &[u8; IV_LEN],
        header: &[u8],
        inner: &mut [u8],
        tag: &mut [u8],
    ) {
        let nonce = nonce.into();
        let made = match self {
            Self::Aes128(it) => it.encrypt_in_place_detached(nonce, header, inner),
            Self::Aes256(it) => it.encrypt_in_place_detached(nonce, header, inner),
            Self::Chacha20(it) => it.encrypt_in_place_detached(nonce, header, inner),
        };
        let made = made.expect("a record is far shorter than what an AEAD takes");
        tag.copy_from_slice(&made);
    }

    /// Decrypts `inner` in place; returns true if it is authentic.
    pub(crate) fn open(
        &self,
        nonce: &[u8; IV_LEN],
        header: &[u8],
        inner: &mut [u8],
        tag: &[u8],
    ) -> bool {
        let (nonce, tag) = (nonce.into(), tag.into());
        match self {
            Self::Aes128(it) => it.decrypt_in_place_detached(nonce, header, inner, tag),
            Self::Aes256(it) => it.decrypt_in_place_detached(nonce, header, inner, tag),
            Self::Chacha20(it) => it.decrypt_in_place_detached(nonce, header, inner, tag),
        }
        .is_ok()
    }
}

/// Encrypts sequence numbers (RFC 9147 §4.2.3).
pub(crate) enum Mask {
    Aes128(Box<Aes128>),
    Aes256(Box<Aes256>),
    Chacha20(zeroize::Zeroizing<[u8; 32]>),
}

impl Mask {
    pub(crate) fn new(material: &KeyMaterial) -> Self {
        let key = material.sequence_key();
        match material.suite() {
            Suite::Aes128Gcm => Self::Aes128(Box::new(Aes128::new(key.into()))),
            Suite::Aes256Gcm => Self::Aes256(Box::new(Aes256::new(key.into()))),
            Suite::Chacha20Poly1305 => {
                let mut own = zeroize::Zeroizing::new([0; 32]);
                own.copy_from_slice(key);
                Self::Chacha20(own)
            }
        }
    }

    /// The two bytes with which a 16-bit sequence number is encrypted, from the first 16 bytes of
    /// the encrypted part.
    pub(crate) fn of(&self, sample: &[u8]) -> [u8; 2] {
        let mut block = [0; TAG];
        block.copy_from_slice(&sample[..TAG]);
        match self {
            Self::Aes128(it) => it.encrypt_block((&mut block).into()),
            Self::Aes256(it) => it.encrypt_block((&mut block).into()),
            Self::Chacha20(key) => {
                let [c0, c1, c2, c3, nonce @ ..] = block;
                let mut stream = ChaCha20::new((&**key).into(), (&nonce).into());
                // The counter is in blocks of 64 bytes.
                stream.seek(u64::from(u32::from_le_bytes([c0, c1, c2, c3])) * 64);
                block = [0; TAG];
                stream.apply_keystream(&mut block[..2]);
            }
        }
        [block[0], block[1]]
    }
}

#[cfg(test)]
mod tests {
    use zeroize::ZeroizeOnDrop;

    use super::*;

    /// Overwriting keys is an optional feature of the cipher crates, so this test fails to compile
    /// if it is disabled. Of AES-GCM only AES is checked, because GHASH does not overwrite its key.
    #[test]
    fn keys_are_overwritten_when_they_are_dropped() {
        fn is_overwritten<T: ZeroizeOnDrop>() {}
        is_overwritten::<Aes128>();
        is_overwritten::<Aes256>();
        is_overwritten::<ChaCha20Poly1305>();
    }
}
