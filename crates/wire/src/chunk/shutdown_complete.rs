//! SHUTDOWN COMPLETE (RFC 9260 §3.3.13).

use bytes::BytesMut;

use crate::chunk::abort::TAG_REFLECTED;
use crate::chunk::kind;
use crate::encode::{Encode, chunk_header};
use crate::packet::{CHUNK_HEADER, RawChunk};

/// Completes a graceful shutdown.
///
/// RFC 9260 §3.3.13:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |   Type = 14   |   Reserved  |T|           Length = 4          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownComplete {
    /// Whether the verification tag was copied from the packet that this chunk answers (T bit). The
    /// sender copies it if it does not know the tag of its peer.
    pub tag_reflected: bool,
}

impl ShutdownComplete {
    pub(super) fn decode(raw: RawChunk) -> Self {
        Self {
            tag_reflected: raw.flags & TAG_REFLECTED != 0,
        }
    }
}

impl Encode for ShutdownComplete {
    fn encoded_len(&self) -> usize {
        CHUNK_HEADER
    }

    fn encode(&self, out: &mut BytesMut) {
        let flags = if self.tag_reflected { TAG_REFLECTED } else { 0 };
        out.extend_from_slice(&chunk_header(kind::SHUTDOWN_COMPLETE, flags, CHUNK_HEADER));
    }
}
