//! SHUTDOWN (RFC 9260 §3.3.8).

use bytes::BytesMut;

use crate::chunk::{DecodeError, fixed_part, kind};
use crate::encode::{Encode, chunk_header};
use crate::packet::RawChunk;
use crate::serial::Tsn;

/// Starts a graceful shutdown.
///
/// RFC 9260 §3.3.8:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |    Type = 7   |     Flags     |           Length = 8          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                       Cumulative TSN Ack                      |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// Last TSN received before the first gap.
    pub cumulative_tsn_ack: Tsn,
}

impl Shutdown {
    pub(super) fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        tsn_only(&raw).map(|cumulative_tsn_ack| Self { cumulative_tsn_ack })
    }
}

impl Encode for Shutdown {
    fn encoded_len(&self) -> usize {
        TSN_ONLY
    }

    fn encode(&self, out: &mut BytesMut) {
        put_tsn_only(kind::SHUTDOWN, self.cumulative_tsn_ack, out);
    }
}

/// Length of a chunk that consists of one TSN (SHUTDOWN, ECNE, CWR), bytes.
pub(super) const TSN_ONLY: usize = 8;

pub(super) fn tsn_only(raw: &RawChunk) -> Result<Tsn, DecodeError> {
    fixed_part(raw).map(|bytes| Tsn(u32::from_be_bytes(*bytes)))
}

pub(super) fn put_tsn_only(kind: u8, tsn: Tsn, out: &mut BytesMut) {
    out.extend_from_slice(&chunk_header(kind, 0, TSN_ONLY));
    out.extend_from_slice(&tsn.0.to_be_bytes());
}
