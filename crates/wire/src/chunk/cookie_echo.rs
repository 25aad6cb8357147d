//! COOKIE ECHO (RFC 9260 §3.3.11).

use bytes::{Bytes, BytesMut};

use crate::chunk::kind;
use crate::encode::{Encode, chunk_header, padded, put_padding};
use crate::packet::{CHUNK_HEADER, RawChunk};

/// Returns the State Cookie to the endpoint that created it.
///
/// RFC 9260 §3.3.11:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |   Type = 10   |     Flags     |             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                             Cookie                            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CookieEcho {
    /// Value of the State Cookie parameter as received.
    pub cookie: Bytes,
}

impl CookieEcho {
    pub(super) fn decode(raw: RawChunk) -> Self {
        Self {
            cookie: raw.into_value(),
        }
    }
}

impl Encode for CookieEcho {
    fn encoded_len(&self) -> usize {
        padded(CHUNK_HEADER + self.cookie.len())
    }

    fn encode(&self, out: &mut BytesMut) {
        let length = CHUNK_HEADER + self.cookie.len();
        out.extend_from_slice(&chunk_header(kind::COOKIE_ECHO, 0, length));
        out.extend_from_slice(&self.cookie);
        put_padding(out, length);
    }
}
