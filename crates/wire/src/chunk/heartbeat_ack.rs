//! HEARTBEAT ACK (RFC 9260 §3.3.6).

use bytes::{Bytes, BytesMut};

use crate::chunk::{DecodeError, Heartbeat, kind};
use crate::encode::{Encode, chunk_header, padded, put_padding};
use crate::packet::{CHUNK_HEADER, RawChunk};

/// Answers a HEARTBEAT.
///
/// RFC 9260 §3.3.6:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |    Type = 5   |     Flags     |             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |    Heartbeat Info Type = 1    |     Heartbeat Info Length     |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                 Sender-Specific Heartbeat Info                |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatAck {
    /// Heartbeat Info of the HEARTBEAT, unchanged.
    pub info: Bytes,
}

impl HeartbeatAck {
    pub(super) fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        Heartbeat::decode(raw).map(|Heartbeat { info }| Self { info })
    }

    fn as_heartbeat(&self) -> Heartbeat {
        Heartbeat {
            info: self.info.clone(),
        }
    }
}

impl Encode for HeartbeatAck {
    fn encoded_len(&self) -> usize {
        self.as_heartbeat().encoded_len()
    }

    fn encode(&self, out: &mut BytesMut) {
        self.as_heartbeat().encode_as(kind::HEARTBEAT_ACK, out);
    }
}

/// A HEARTBEAT ACK with all parameters of the HEARTBEAT that it acknowledges, copied unchanged (RFC
/// 9260 §8.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatCopy {
    /// Value of the HEARTBEAT as received.
    pub parameters: Bytes,
}

impl Encode for HeartbeatCopy {
    fn encoded_len(&self) -> usize {
        padded(CHUNK_HEADER + self.parameters.len())
    }

    fn encode(&self, out: &mut BytesMut) {
        let length = CHUNK_HEADER + self.parameters.len();
        out.extend_from_slice(&chunk_header(kind::HEARTBEAT_ACK, 0, length));
        out.extend_from_slice(&self.parameters);
        put_padding(out, length);
    }
}
