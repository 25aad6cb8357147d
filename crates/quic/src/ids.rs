//! Identifiers and keys of an endpoint, derived from its seed.

use std::time::Duration;

use quinn_proto::crypto::{AeadKey, CryptoError, HandshakeTokenKey, HmacKey};
use quinn_proto::{ConnectionId, ConnectionIdGenerator};

/// Length of a connection identifier, bytes.
const LENGTH: usize = 8;

/// Generator of connection identifiers. They are derived from the seed by SplitMix64 (Steele, Lea,
/// Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct Identifiers(u64);

impl Identifiers {
    pub fn new(seed: [u8; 32]) -> Self {
        let words = seed.chunks_exact(8).map(|word| {
            let word = word.first_chunk().copied().unwrap_or_default();
            u64::from_be_bytes(word)
        });
        Self(words.fold(0, |all, word| all.rotate_left(17) ^ word))
    }

    /// The next identifier.
    pub fn next(&mut self) -> ConnectionId {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ConnectionId::new(&(mixed ^ (mixed >> 31)).to_be_bytes())
    }
}

impl ConnectionIdGenerator for Identifiers {
    fn generate_cid(&mut self) -> ConnectionId {
        self.next()
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// Key of stateless reset tokens. A token is a checksum of the connection identifier, which
/// suffices to make tokens different.
pub(crate) struct ResetKey;

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        let mut sum = crc_fast::crc32_iscsi(data);
        for word in signature.chunks_mut(4) {
            word.copy_from_slice(&sum.to_be_bytes()[..word.len()]);
            sum = crc_fast::crc32_iscsi(&sum.to_be_bytes());
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut own = [0; 32];
        self.sign(data, &mut own);
        (own == signature).then_some(()).ok_or(CryptoError)
    }
}

/// Replacement for the key of address validation tokens. It encrypts nothing, because servers here
/// neither validate addresses nor issue tokens for later connections.
pub(crate) struct NoTokens;

impl HandshakeTokenKey for NoTokens {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for NoTokens {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError)
    }

    fn open<'a>(&self, _: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Err(CryptoError)
    }
}
