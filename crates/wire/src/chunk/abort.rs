//! ABORT (RFC 9260 §3.3.7).

use bytes::BytesMut;

use crate::cause::Causes;
use crate::chunk::kind;
use crate::encode::{Encode, chunk_header, padded, put_padding};
use crate::packet::{CHUNK_HEADER, RawChunk};

/// The T bit of ABORT and SHUTDOWN COMPLETE (RFC 9260 §8.5.1).
pub(super) const TAG_REFLECTED: u8 = 0x01;

/// Ends the association immediately.
///
/// RFC 9260 §3.3.7:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |    Type = 6   |   Reserved  |T|             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                  Error Causes (zero or more)                  |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abort {
    /// Whether the verification tag was copied from the packet that this ABORT answers (T bit). The
    /// sender copies it if it does not know the tag of its peer.
    pub tag_reflected: bool,
    /// Error causes, decoded during iteration. The list may be empty.
    pub causes: Causes,
}

impl Abort {
    pub(super) fn decode(raw: RawChunk) -> Self {
        let tag_reflected = raw.flags & TAG_REFLECTED != 0;
        Self {
            tag_reflected,
            causes: Causes::from_bytes(raw.into_value()),
        }
    }
}

impl Encode for Abort {
    fn encoded_len(&self) -> usize {
        padded(CHUNK_HEADER + self.causes.as_bytes().len())
    }

    fn encode(&self, out: &mut BytesMut) {
        let flags = if self.tag_reflected { TAG_REFLECTED } else { 0 };
        put_causes(kind::ABORT, flags, &self.causes, out);
    }
}

/// Writes a chunk that consists of causes only: ABORT or ERROR.
pub(super) fn put_causes(kind: u8, flags: u8, causes: &Causes, out: &mut BytesMut) {
    let length = CHUNK_HEADER + causes.as_bytes().len();
    out.extend_from_slice(&chunk_header(kind, flags, length));
    out.extend_from_slice(causes.as_bytes());
    put_padding(out, length);
}
