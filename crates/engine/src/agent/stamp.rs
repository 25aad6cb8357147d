//! What messages carry so that their receiver can tell when they were offered, and which they are.

use anabranch_transport::Nanos;
use bytes::{Bytes, BytesMut};

/// What a message says of itself in its first bytes: when it was offered, and its number in its association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When it was offered.
    pub time: Nanos,
    /// None in a message that has no room for it.
    pub number: Option<u64>,
}

impl Stamp {
    const WORD: usize = 8;

    /// Writes it to the begin of a message, as far as there is room.
    pub fn write(self, message: &mut [u8]) {
        let words = [Some(self.time), self.number];
        for (place, word) in message.chunks_exact_mut(Self::WORD).zip(words) {
            place.copy_from_slice(&word.unwrap_or(0).to_be_bytes());
        }
    }

    /// Reads it from the begin of a message; `None` where that is too short.
    pub fn read(message: &[u8]) -> Option<Self> {
        let mut words = message.chunks_exact(Self::WORD).map_while(|word| {
            let word = word.first_chunk::<8>()?;
            Some(u64::from_be_bytes(*word))
        });
        Some(Self {
            time: words.next()?,
            number: words.next(),
        })
    }
}

/// A message of `size` bytes, a slice of `zeros` unless it is stamped.
pub fn payload(zeros: &mut Bytes, size: usize, stamp: Option<Stamp>) -> Bytes {
    if let Some(stamp) = stamp {
        let mut stamped = BytesMut::zeroed(size);
        stamp.write(&mut stamped);
        return stamped.freeze();
    }
    if zeros.len() < size {
        *zeros = Bytes::from(vec![0; size]);
    }
    zeros.slice(..size)
}
