//! Random numbers of a connection, derived from one seed.

use sha2::{Digest, Sha256};

use crate::sdp::IceCredentials;

/// Seed of a connection's random numbers: 32 random bytes, which must be secret and unique to the
/// connection.
#[derive(Clone)]
pub struct RandomSeed([u8; 32]);

impl std::fmt::Debug for RandomSeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RandomSeed")
    }
}

impl RandomSeed {
    /// Creates a generator from these bytes.
    pub fn new(seed: [u8; 32]) -> Self {
        Self(seed)
    }

    fn draw(&self, what: &str) -> [u8; 32] {
        Sha256::new()
            .chain_update(self.0)
            .chain_update(what)
            .finalize()
            .into()
    }

    /// A text of `count` random characters, each with 4 bits of randomness.
    fn letters(&self, what: &str, count: usize) -> String {
        let bytes = self.draw(what);
        let letters = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        letters
            .take(count)
            .map(|it| char::from(b'a' + it))
            .collect()
    }

    /// ICE credentials with 32 bits (ufrag) and 128 bits (password) of randomness; RFC 8445 §5.3
    /// requires 24 and 128.
    pub(super) fn credentials(&self) -> IceCredentials {
        IceCredentials {
            ufrag: self.letters("ufrag", 8),
            pwd: self.letters("pwd", 32),
        }
    }

    fn number(&self, what: &str) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.draw(what);
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    pub(super) fn session(&self) -> u64 {
        self.number("session")
    }

    pub(super) fn dtls(&self) -> u64 {
        self.number("dtls")
    }

    pub(super) fn sctp(&self) -> [u8; 32] {
        self.draw("sctp")
    }
}
