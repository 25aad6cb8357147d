//! AUTH (RFC 4895 §4.1).

use bytes::{Bytes, BytesMut};

use super::{chunk_len, put_chunk};
use crate::chunk::{DecodeError, fixed_part, kind};
use crate::encode::Encode;
use crate::packet::{CHUNK_HEADER, RawChunk};

/// Number of value bytes before the HMAC.
const FIXED: usize = 4;

/// HMAC identifiers (RFC 4895 §8; 0 and 2 are reserved).
pub mod hmac_id {
    /// HMAC-SHA-1, 20 bytes. Every endpoint must support it.
    pub const SHA_1: u16 = 1;
    /// HMAC-SHA-256, 32 bytes.
    pub const SHA_256: u16 = 3;
}

/// Authenticates this chunk and all chunks after it in the packet. The HMAC is computed as if it
/// consisted of zeros.
///
/// RFC 4895 §4.1:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |   Type = 15   |     Flags     |             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |     Shared Key Identifier     |        HMAC Identifier        |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                              HMAC                             |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// Identifier of the shared key.
    pub shared_key_id: u16,
    /// Identifier of the algorithm, see [`hmac_id`].
    pub hmac_id: u16,
    /// The HMAC. Its length should match the algorithm, but the decoder accepts any length.
    pub hmac: Bytes,
}

impl Auth {
    /// Length of the chunk before the HMAC, bytes.
    pub const HEADER: usize = CHUNK_HEADER + FIXED;

    /// Decodes a chunk of type AUTH.
    ///
    /// # Errors
    /// The chunk is shorter than its two identifiers.
    pub fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        let &[k0, k1, h0, h1] = fixed_part::<FIXED>(&raw)?;
        Ok(Self {
            shared_key_id: u16::from_be_bytes([k0, k1]),
            hmac_id: u16::from_be_bytes([h0, h1]),
            hmac: raw.into_value().slice(FIXED..),
        })
    }
}

impl Encode for Auth {
    fn encoded_len(&self) -> usize {
        chunk_len(FIXED, &self.hmac)
    }

    fn encode(&self, out: &mut BytesMut) {
        let [k0, k1] = self.shared_key_id.to_be_bytes();
        let [h0, h1] = self.hmac_id.to_be_bytes();
        put_chunk(kind::AUTH, &[k0, k1, h0, h1], &self.hmac, out);
    }
}
