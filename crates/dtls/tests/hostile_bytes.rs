//! Processes random bytes as records and as key management messages of the peer. The fuzz target
//! `keys` runs the same checks.

use sha2::{Digest, Sha256};

use crate::hostile;

/// Pseudorandom bytes for a seed.
fn bytes_of(seed: u64) -> Vec<u8> {
    let blocks =
        (0..8).flat_map(|block| Sha256::digest([seed, block].map(u64::to_be_bytes).concat()));
    let mut bytes: Vec<u8> = blocks.collect();
    bytes.truncate(1 + seed as usize % 250);
    bytes
}

#[test]
fn bytes_of_a_stranger_have_no_effect() {
    for seed in 0..2_000 {
        let mut bytes = bytes_of(seed);
        hostile::check(&bytes);
        // The bytes are also checked with the header of a record, and with that of a message of
        // epoch 3.
        for (at, value) in [(1, 0x2F), (2, 0x03)] {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        hostile::check(&bytes);
    }
}
