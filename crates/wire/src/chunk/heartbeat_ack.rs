//! HEARTBEAT ACK (RFC 9260 §3.3.6).

use bytes::{Bytes, BytesMut};

use crate::chunk::{DecodeError, Heartbeat, kind};
use crate::encode::Encode;
use crate::packet::RawChunk;

/// Answers a HEARTBEAT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatAck {
    /// The info of the HEARTBEAT as it came.
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
