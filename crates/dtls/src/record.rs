//! Records of DTLS 1.3 in the form of the DTLS chunk (RFC 9147 §4;
//! draft-ietf-tsvwg-sctp-dtls-chunk-04 §3.1, §4.2): with a sequence number of 16 bits, and without
//! length and connection ID.
//!
//! ```text
//!  0 1 2 3 4 5 6 7
//! +-+-+-+-+-+-+-+-+
//! |0|0|1|0|1|0|E E|   E E: the two low bits of the epoch
//! +-+-+-+-+-+-+-+-+
//! |    16 bits    |   of the sequence number, encrypted
//! +-+-+-+-+-+-+-+-+
//! /   encrypted   /   content, its type, zeros; and the tag of 16 bytes
//! +-+-+-+-+-+-+-+-+
//! ```

pub(crate) mod cipher;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::material::{IV_LEN, KeyMaterial};
use crate::replay::ReplayWindow;
use crate::suite::Suite;
use cipher::{Aead, Mask};

/// Size of the header before the encrypted part, bytes.
pub const HEADER: usize = 3;
/// Size of the authentication tag, bytes.
pub const TAG: usize = 16;
/// Size that a record adds to its content, bytes: header, content type, tag.
pub const OVERHEAD: usize = HEADER + 1 + TAG;
/// Maximum size of the content of a record, bytes (RFC 9147 §4, draft-ietf-tsvwg-sctp-dtls-chunk-04
/// §3.1).
pub const MAX_CONTENT: usize = 1 << 14;

/// Fixed bits of the first byte: 001, no connection ID, 16 bits of sequence number, no length.
const FIXED: u8 = 0x28;
const EPOCH_BITS: u8 = 0x03;
/// The content type application_data.
const APPLICATION_DATA: u8 = 23;

/// Reasons why a record was not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SealError {
    /// The key has sealed its maximum number of records ([`Suite::most_sealed`]).
    #[error("the key has sealed as many records as it may")]
    Exhausted,
    /// The content is longer than 16,384 bytes, or the buffer has no space for the overhead.
    #[error("the content does not fit a record")]
    Length,
    /// No sealing key is installed.
    #[error("there is no key to seal with")]
    NoKey,
}

/// Reasons why a record was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The record is too short, or its header is not that of the DTLS chunk.
    #[error("the record is too short, or its header is another than that of the DTLS chunk")]
    Format,
    /// No opening key of the record's epoch is installed.
    #[error("there is no key of its epoch")]
    NoKey,
    /// The record was opened before, or is older than the replay window.
    #[error("it was opened before, or is older than the replay window")]
    Replayed,
    /// The record was not sealed with this key, or was modified.
    #[error("it is not authentic")]
    Forged,
    /// The record is authentic, but its content is not application data.
    #[error("its content is no application data")]
    Content,
    /// The key must not be used any more, because too many records failed authentication
    /// ([`Suite::most_forged`]).
    #[error("too many records of the key were forged")]
    Exhausted,
}

/// The epoch of a record modulo 4. `None` if its header is not that of the DTLS chunk.
pub fn epoch_bits(record: &[u8]) -> Option<u8> {
    let (&first, _) = record.split_first()?;
    let long_enough = record.len() >= OVERHEAD;
    (long_enough && first & !EPOCH_BITS == FIXED).then_some(first & EPOCH_BITS)
}

/// Key that seals the records of one direction and epoch.
pub struct SealingKey {
    suite: Suite,
    aead: Aead,
    mask: Mask,
    iv: Zeroizing<[u8; IV_LEN]>,
    first_byte: u8,
    next: u64,
}

/// Key that opens the records of one direction and epoch.
pub struct OpeningKey {
    suite: Suite,
    aead: Aead,
    mask: Mask,
    iv: Zeroizing<[u8; IV_LEN]>,
    window: ReplayWindow,
    opened: u64,
    forged: u64,
}

impl std::fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealingKey")
            .field("suite", &self.suite)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for OpeningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpeningKey")
            .field("suite", &self.suite)
            .field("next", &self.window.next())
            .field("forged", &self.forged)
            .finish_non_exhaustive()
    }
}

impl SealingKey {
    /// Creates the sealing key of `epoch` from `material`.
    pub fn new(material: &KeyMaterial, epoch: u64) -> Self {
        Self {
            suite: material.suite(),
            aead: Aead::new(material),
            mask: Mask::new(material),
            iv: Zeroizing::new(*material.iv()),
            first_byte: FIXED | (epoch as u8 & EPOCH_BITS),
            next: 0,
        }
    }

    /// Number of records that were sealed (AEAD encryption invocations).
    pub fn sealed(&self) -> u64 {
        self.next
    }

    /// Maximum number of records that may be sealed.
    pub fn most(&self) -> u64 {
        self.suite.most_sealed()
    }

    /// Number of records that may still be sealed.
    pub fn left(&self) -> u64 {
        self.suite.most_sealed().saturating_sub(self.next)
    }

    /// Seals in place. `record` must contain [`HEADER`] bytes, the content, and `1 + TAG` further
    /// bytes.
    ///
    /// # Errors
    /// The key is exhausted, or the lengths are wrong; then `record` is unchanged.
    pub fn seal(&mut self, record: &mut [u8]) -> Result<(), SealError> {
        let content = record
            .len()
            .checked_sub(OVERHEAD)
            .ok_or(SealError::Length)?;
        if content > MAX_CONTENT {
            return Err(SealError::Length);
        }
        if self.left() == 0 {
            return Err(SealError::Exhausted);
        }
        let number = self.next;
        self.next += 1;
        let [.., high, low] = number.to_be_bytes();
        let header = [self.first_byte, high, low];
        let (front, rest) = record.split_at_mut(HEADER);
        let (inner, tag) = rest.split_at_mut(content + 1);
        inner[content] = APPLICATION_DATA;
        self.aead
            .seal(&nonce(&self.iv, number), &header, inner, tag);
        let mask = self.mask.of(&rest[..TAG]);
        front.copy_from_slice(&[self.first_byte, high ^ mask[0], low ^ mask[1]]);
        Ok(())
    }
}

impl OpeningKey {
    /// Creates an opening key from `material`, with a replay window of `window` records.
    pub fn new(material: &KeyMaterial, window: usize) -> Self {
        Self {
            suite: material.suite(),
            aead: Aead::new(material),
            mask: Mask::new(material),
            iv: Zeroizing::new(*material.iv()),
            window: ReplayWindow::new(window),
            opened: 0,
            forged: 0,
        }
    }

    /// Number of records that were opened.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Number of records that failed authentication.
    pub fn forged(&self) -> u64 {
        self.forged
    }

    /// Opens `record` in place. Returns the size of its content, which starts after [`HEADER`]
    /// bytes.
    ///
    /// # Errors
    /// The record must be dropped. The content of `record` is then undefined.
    pub fn open(&mut self, record: &mut [u8]) -> Result<usize, OpenError> {
        epoch_bits(record).ok_or(OpenError::Format)?;
        if self.forged >= self.suite.most_forged() {
            return Err(OpenError::Exhausted);
        }
        let (front, rest) = record.split_at_mut(HEADER);
        let mask = self.mask.of(&rest[..TAG]);
        let header = [front[0], front[1] ^ mask[0], front[2] ^ mask[1]];
        let number = nearest(
            self.window.next(),
            u16::from_be_bytes([header[1], header[2]]),
        );
        // The replay window is checked before the expensive decryption. The result is of no use to
        // an attacker, because it depends only on the sequence number that the record claims.
        if !self.window.is_new(number) {
            return Err(OpenError::Replayed);
        }
        let (inner, tag) = rest.split_at_mut(rest.len() - TAG);
        if !self
            .aead
            .open(&nonce(&self.iv, number), &header, inner, tag)
        {
            self.forged += 1;
            return Err(OpenError::Forged);
        }
        self.window.take(number);
        self.opened += 1;
        // Zeros after the content type are padding (RFC 9147 §4).
        match inner.iter().rposition(|&byte| byte != 0) {
            Some(content) if inner[content] == APPLICATION_DATA && content <= MAX_CONTENT => {
                Ok(content)
            }
            _ => Err(OpenError::Content),
        }
    }
}

/// The nonce of a record (RFC 8446 §5.3), which does not contain the epoch in DTLS 1.3.
fn nonce(iv: &[u8; IV_LEN], number: u64) -> [u8; IV_LEN] {
    let mut nonce = *iv;
    for (byte, with) in nonce[IV_LEN - 8..].iter_mut().zip(number.to_be_bytes()) {
        *byte ^= with;
    }
    nonce
}

/// The sequence number with these low 16 bits that is closest to `next`, the number after the
/// highest accepted one (RFC 9147 §4.2.2).
fn nearest(next: u64, low: u16) -> u64 {
    const TURN: u64 = 1 << 16;
    let candidate = (next & !(TURN - 1)) | u64::from(low);
    if candidate + TURN / 2 < next {
        candidate + TURN
    } else if candidate > next + TURN / 2 && candidate >= TURN {
        candidate - TURN
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_number_with_these_bits() {
        for (next, low, number) in [
            (0, 0, 0),
            (0, 65_535, 65_535), // there is none below 0
            (1, 0, 0),
            (65_536, 65_535, 65_535),
            (65_535, 0, 65_536),
            (65_540, 2, 65_538),
            (100_000, 1_000, 132_072),
            (100_000, 2_000, 67_536),
            (65_536 * 5 + 40_000, 100, 65_536 * 6 + 100),
        ] {
            assert_eq!(nearest(next, low), number, "{low} near {next}");
        }
    }
}
