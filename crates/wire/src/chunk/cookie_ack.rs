//! COOKIE ACK (RFC 9260 §3.3.12).

use bytes::BytesMut;

use crate::chunk::kind;
use crate::encode::{Encode, chunk_header};
use crate::packet::CHUNK_HEADER;

/// Answers a COOKIE ECHO: the association is established.
///
/// RFC 9260 §3.3.12:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |   Type = 11   |     Flags     |           Length = 4          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieAck;

impl Encode for CookieAck {
    fn encoded_len(&self) -> usize {
        CHUNK_HEADER
    }

    fn encode(&self, out: &mut BytesMut) {
        out.extend_from_slice(&chunk_header(kind::COOKIE_ACK, 0, CHUNK_HEADER));
    }
}
