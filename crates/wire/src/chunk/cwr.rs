//! CWR (RFC 4960 Appendix A; RFC 9260 §3.2 keeps the type reserved).

use bytes::BytesMut;

use crate::chunk::shutdown::{TSN_ONLY, put_tsn_only, tsn_only};
use crate::chunk::{DecodeError, kind};
use crate::encode::Encode;
use crate::packet::RawChunk;
use crate::serial::Tsn;

/// Reports to the data receiver that the sender has reduced its cwnd.
///
/// RFC 4960 Appendix A:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |   Type = 13   |     Flags     |           Length = 8          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                       Lowest TSN Number                       |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cwr {
    /// TSN of the ECNE that this CWR answers.
    pub lowest_tsn: Tsn,
}

impl Cwr {
    pub(super) fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        tsn_only(&raw).map(|lowest_tsn| Self { lowest_tsn })
    }
}

impl Encode for Cwr {
    fn encoded_len(&self) -> usize {
        TSN_ONLY
    }

    fn encode(&self, out: &mut BytesMut) {
        put_tsn_only(kind::CWR, self.lowest_tsn, out);
    }
}
