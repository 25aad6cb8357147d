//! INIT ACK (RFC 9260 §3.3.3).

use bytes::BytesMut;

use crate::chunk::{DecodeError, Init, kind};
use crate::encode::{Encode, Full};
use crate::packet::RawChunk;

/// Answers an INIT and has the same format. Its parameters include the State Cookie.
///
/// RFC 9260 §3.3.3:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |    Type = 2   |     Flags     |             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                          Initiate Tag                         |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |           Advertised Receiver Window Credit (a_rwnd)          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |        Outbound Streams       |        Inbound Streams        |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                          Initial TSN                          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |           Parameters (TLV), State Cookie among them           |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitAck(pub Init);

impl InitAck {
    pub(super) fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        Init::decode(raw).map(Self)
    }

    /// Overwrites the first bytes of `chunk` with the header and the fixed part. The parameters
    /// must already be in `chunk`, after space for header and fixed part. The parameters of `self`
    /// are not used.
    ///
    /// # Errors
    /// [`Full`] if `chunk` is too short for header and fixed part, or longer than a chunk may be.
    pub fn put_before_parameters(&self, chunk: &mut [u8]) -> Result<(), Full> {
        let length = chunk.len();
        match chunk.first_chunk_mut() {
            Some(first) if length <= usize::from(u16::MAX) => {
                *first = self.before_parameters(kind::INIT_ACK, length);
                Ok(())
            }
            _ => Err(Full),
        }
    }
}

impl std::ops::Deref for InitAck {
    type Target = Init;

    fn deref(&self) -> &Init {
        &self.0
    }
}

impl Encode for InitAck {
    fn encoded_len(&self) -> usize {
        self.0.encoded_len()
    }

    fn encode(&self, out: &mut BytesMut) {
        self.0.encode_as(kind::INIT_ACK, out);
    }
}
