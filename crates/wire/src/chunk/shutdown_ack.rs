//! SHUTDOWN ACK (RFC 9260 §3.3.9).

use bytes::BytesMut;

use crate::chunk::kind;
use crate::encode::{Encode, chunk_header};
use crate::packet::CHUNK_HEADER;

/// Answers a SHUTDOWN once no data is outstanding.
///
/// RFC 9260 §3.3.9:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |    Type = 8   |     Flags     |           Length = 4          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownAck;

impl Encode for ShutdownAck {
    fn encoded_len(&self) -> usize {
        CHUNK_HEADER
    }

    fn encode(&self, out: &mut BytesMut) {
        out.extend_from_slice(&chunk_header(kind::SHUTDOWN_ACK, 0, CHUNK_HEADER));
    }
}
