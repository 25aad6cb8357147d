//! ERROR (RFC 9260 §3.3.10).

use bytes::BytesMut;

use crate::cause::Causes;
use crate::chunk::abort::put_causes;
use crate::chunk::kind;
use crate::encode::{Encode, padded};
use crate::packet::{CHUNK_HEADER, RawChunk};

/// Reports errors that do not end the association.
///
/// RFC 9260 §3.3.10:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |    Type = 9   |     Flags     |             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                   Error Causes (one or more)                  |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorChunk {
    /// Error causes, decoded during iteration. The RFC requires at least one. The decoder accepts
    /// an empty list as well.
    pub causes: Causes,
}

impl ErrorChunk {
    pub(super) fn decode(raw: RawChunk) -> Self {
        Self {
            causes: Causes::from_bytes(raw.into_value()),
        }
    }
}

impl Encode for ErrorChunk {
    fn encoded_len(&self) -> usize {
        padded(CHUNK_HEADER + self.causes.as_bytes().len())
    }

    fn encode(&self, out: &mut BytesMut) {
        put_causes(kind::ERROR, 0, &self.causes, out);
    }
}
