//! Key material for one direction and epoch.

use thiserror::Error;
use zeroize::{Zeroize, Zeroizing};

use crate::key_schedule::expand_label;
use crate::suite::Suite;

/// Size of a nonce, bytes.
pub(crate) const IV_LEN: usize = 12;

/// Error: a key, initialization vector or sequence number key does not have the length that its
/// suite requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{what} of {found} bytes; {suite} has {wanted}", suite = suite.name())]
pub struct InvalidKeyLength {
    what: &'static str,
    found: usize,
    wanted: usize,
    suite: Suite,
}

/// Keys that protect records in one direction (draft-ietf-tsvwg-sctp-dtls-chunk-04 §7.4): record
/// payload key, initialization vector, sequence number key. Keys are overwritten when they are
/// dropped.
#[derive(Clone)]
pub struct KeyMaterial {
    suite: Suite,
    key: Zeroizing<Vec<u8>>,
    iv: [u8; IV_LEN],
    sequence_key: Zeroizing<Vec<u8>>,
}

impl std::fmt::Debug for KeyMaterial {
    /// Writes the suite, but never the keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyMaterial")
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
}

impl Drop for KeyMaterial {
    fn drop(&mut self) {
        self.iv.zeroize();
    }
}

impl KeyMaterial {
    /// Creates key material from existing keys.
    ///
    /// # Errors
    /// A key does not have the length that `suite` requires.
    pub fn new(
        suite: Suite,
        key: &[u8],
        iv: &[u8],
        sequence_key: &[u8],
    ) -> Result<Self, InvalidKeyLength> {
        let check = |what, bytes: &[u8], wanted| {
            let found = bytes.len();
            (found == wanted).then_some(()).ok_or(InvalidKeyLength {
                what,
                found,
                wanted,
                suite,
            })
        };
        check("a key", key, suite.key_len())?;
        check("an initialization vector", iv, IV_LEN)?;
        check("a sequence number key", sequence_key, suite.key_len())?;
        let mut own = [0; IV_LEN];
        own.copy_from_slice(iv);
        Ok(Self {
            suite,
            key: Zeroizing::new(key.to_vec()),
            iv: own,
            sequence_key: Zeroizing::new(sequence_key.to_vec()),
        })
    }

    /// Derives key material from a traffic secret, with the labels "key" and "iv" (RFC 8446 §7.3)
    /// and "sn" (RFC 9147 §4.2.3).
    pub fn from_secret(suite: Suite, secret: &[u8]) -> Self {
        let mut key = Zeroizing::new(vec![0; suite.key_len()]);
        let mut sequence_key = Zeroizing::new(vec![0; suite.key_len()]);
        let mut iv = [0; IV_LEN];
        expand_label(suite, secret, "key", &[], &mut key);
        expand_label(suite, secret, "iv", &[], &mut iv);
        expand_label(suite, secret, "sn", &[], &mut sequence_key);
        Self {
            suite,
            key,
            iv,
            sequence_key,
        }
    }

    /// Cipher suite of the keys.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// The record payload key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The initialization vector.
    pub fn iv(&self) -> &[u8; IV_LEN] {
        &self.iv
    }

    /// The key that encrypts sequence numbers.
    pub fn sequence_key(&self) -> &[u8] {
        &self.sequence_key
    }
}
