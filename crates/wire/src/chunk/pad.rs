//! PAD (RFC 4820 §3).

use bytes::BytesMut;

use crate::chunk::kind;
use crate::encode::{Encode, chunk_header, padded};
use crate::packet::{CHUNK_HEADER, RawChunk};

/// Makes a packet longer and has no other effect. A receiver that does not know the type must skip
/// it without a report.
///
/// RFC 4820 §3:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |   Type = 132  |     Flags     |             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                          Padding Data                         |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pad {
    /// Length of the padding data, bytes. The data is zero in sent chunks, and is ignored in
    /// received ones.
    pub length: u16,
}

impl Pad {
    /// A PAD chunk of `size` bytes including its header. `size` must be a multiple of 4 from 4 to
    /// 65,532.
    pub const fn of_size(size: usize) -> Self {
        Self {
            length: (size - CHUNK_HEADER) as u16,
        }
    }

    pub(super) fn decode(raw: &RawChunk) -> Self {
        Self {
            length: raw.value().len() as u16,
        }
    }
}

impl Encode for Pad {
    fn encoded_len(&self) -> usize {
        padded(CHUNK_HEADER + usize::from(self.length))
    }

    fn encode(&self, out: &mut BytesMut) {
        let length = CHUNK_HEADER + usize::from(self.length);
        out.extend_from_slice(&chunk_header(kind::PAD, 0, length));
        out.resize(out.len() + padded(length) - CHUNK_HEADER, 0);
    }
}
