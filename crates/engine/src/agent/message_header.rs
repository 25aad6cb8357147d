//! Stamps of messages: the offer time and the number, for the receiver.

use anabranch_transport::Nanos;
use bytes::{Bytes, BytesMut};

/// The stamp in the first bytes of a message: its offer time, and its number in its association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// Offer time.
    pub time: Nanos,
    /// The number; `None` in a message that is too short for it.
    pub number: Option<u64>,
}

impl MessageHeader {
    const WORD: usize = 8;

    /// Writes the stamp to the start of a message, as far as it fits.
    pub fn write(self, message: &mut [u8]) {
        let words = [Some(self.time), self.number];
        for (place, word) in message.chunks_exact_mut(Self::WORD).zip(words) {
            place.copy_from_slice(&word.unwrap_or(0).to_be_bytes());
        }
    }

    /// Reads the stamp from the start of a message; `None` if the message is too short.
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

/// A message of `size` bytes; without a stamp it is a slice of `zeros`.
pub fn payload(zeros: &mut Bytes, size: usize, stamp: Option<MessageHeader>) -> Bytes {
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
