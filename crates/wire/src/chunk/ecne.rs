//! ECNE (RFC 4960 Appendix A; RFC 9260 §3.2 keeps the type reserved).

use bytes::BytesMut;

use crate::chunk::shutdown::{TSN_ONLY, put_tsn_only, tsn_only};
use crate::chunk::{DecodeError, kind};
use crate::encode::Encode;
use crate::packet::RawChunk;
use crate::serial::Tsn;

/// Reports to the data sender that one of its packets was marked on the path (congestion
/// experienced).
///
/// RFC 4960 Appendix A:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |   Type = 12   |     Flags     |           Length = 8          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                       Lowest TSN Number                       |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ecne {
    /// Lowest TSN in the marked packet.
    pub lowest_tsn: Tsn,
}

impl Ecne {
    pub(super) fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        tsn_only(&raw).map(|lowest_tsn| Self { lowest_tsn })
    }
}

impl Encode for Ecne {
    fn encoded_len(&self) -> usize {
        TSN_ONLY
    }

    fn encode(&self, out: &mut BytesMut) {
        put_tsn_only(kind::ECNE, self.lowest_tsn, out);
    }
}
