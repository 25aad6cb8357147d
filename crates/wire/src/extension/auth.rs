//! AUTH (RFC 4895 §4.1).

use bytes::{Bytes, BytesMut};

use super::{chunk_len, put_chunk};
use crate::chunk::{DecodeError, fixed_part, kind};
use crate::encode::Encode;
use crate::packet::{CHUNK_HEADER, RawChunk};

/// Value bytes before the HMAC.
const FIXED: usize = 4;

/// HMAC identifiers (RFC 4895 §8; 0 and 2 are reserved).
pub mod hmac_id {
    /// HMAC with SHA-1, of 20 bytes. Each endpoint must support it.
    pub const SHA_1: u16 = 1;
    /// HMAC with SHA-256, of 32 bytes.
    pub const SHA_256: u16 = 3;
}

/// Authenticates itself, its HMAC taken as zeros, and all chunks behind it in the packet.
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
    /// Which shared key was used.
    pub shared_key_id: u16,
    /// Which algorithm was used, see [`hmac_id`].
    pub hmac_id: u16,
    /// The HMAC, as long as the algorithm makes it; other lengths are decoded, too.
    pub hmac: Bytes,
}

impl Auth {
    /// Length of the chunk before the HMAC, bytes.
    pub const HEADER: usize = CHUNK_HEADER + FIXED;

    /// Reads a chunk of type AUTH.
    ///
    /// # Errors
    /// It is shorter than its two identifiers.
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
