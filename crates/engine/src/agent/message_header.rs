//! Stamp at the start of a message: its offer time and its number, for the receiver.

use anabranch_transport::Nanos;
use bytes::{Bytes, BytesMut};

/// Stamp in the first bytes of a message: the offer time, and the number in its association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// Time at which the message was offered, nanoseconds.
    pub time: Nanos,
    /// Number of the message; `None` if the message is too short for it.
    pub number: Option<u64>,
}

impl MessageHeader {
    const WORD: usize = 8;

    /// Writes the header to the start of a message. Parts that do not fit are omitted.
    pub fn write(self, message: &mut [u8]) {
        let words = [Some(self.time), self.number];
        for (place, word) in message.chunks_exact_mut(Self::WORD).zip(words) {
            place.copy_from_slice(&word.unwrap_or(0).to_be_bytes());
        }
    }

    /// Reads the header from the start of a message; `None` if the message is shorter than the
    /// time.
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

/// Content of a message of `size` bytes: zeros, with the header at the start if there is one.
/// Without a header it is a slice of `zeros`, so that nothing is copied.
pub fn payload(zeros: &mut Bytes, size: usize, header: Option<MessageHeader>) -> Bytes {
    if let Some(header) = header {
        let mut message = BytesMut::zeroed(size);
        header.write(&mut message);
        return message.freeze();
    }
    if zeros.len() < size {
        *zeros = Bytes::from(vec![0; size]);
    }
    zeros.slice(..size)
}
