//! Heartbeat fields of RSCTP (Ho and Cheng 2008, Figs. 3-4 and 3-5), used if both ends have offered
//! [`Parameter::Rsctp`](crate::Parameter::Rsctp).
//!
//! The paper draws two 32-bit fields at the start of the Heartbeat Info of either chunk, and gives
//! no units:
//!
//! ```text
//! HEARTBEAT                                   HEARTBEAT ACK
//! | Info Type = 1   | Info Length     |      | Info Type = 1   | Info Length     |
//! | current time: us of the sender    |      | available bandwidth: bytes/s      |
//! | chunk count: DATA chunks so far   |      | chunk loss rate: millionths       |
//! | the sender's own (path, nonce)    |      | the whole info of the HEARTBEAT   |
//! ```
//!
//! - *current time* counts microseconds from any origin and wraps after 71 minutes; only
//!   differences are meaningful.
//! - *chunk count* is the number of DATA chunks, retransmissions included, that were sent on this
//!   path since the association began, modulo 2^32. The field is a total instead of the count since
//!   the last HEARTBEAT, because a lost HEARTBEAT should not distort the result.
//! - *available bandwidth* is in bytes per second, up to 34 Gbit/s; 0 means "no estimate", because
//!   a path without traffic was not measured.
//! - *chunk loss rate* is in millionths; [`NO_LOSS_RATE`] means "no estimate", because no chunk was
//!   sent that could be lost.
//!
//! The figures do not define the bytes after the two fields. RFC 9260 §3.3.6 requires that the info
//! is echoed unchanged, and §5.4 requires a nonce in it. The acknowledgement therefore ends with
//! the whole info of the HEARTBEAT.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// "No estimate" in the field of the chunk loss rate.
pub const NO_LOSS_RATE: u32 = u32::MAX;
/// A chunk loss rate of 1.
pub const WHOLE: u32 = 1_000_000;
/// Size of the two fields, bytes.
pub const FIELDS: usize = 8;

/// The Heartbeat Info of an RSCTP HEARTBEAT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatFields {
    /// Clock of the sender, microseconds.
    pub current_time: u32,
    /// DATA chunks sent on this path so far, modulo 2^32.
    pub chunk_count: u32,
    /// Data of the sender of the HEARTBEAT. The receiver must return it unchanged.
    pub own: Bytes,
}

impl HeartbeatFields {
    /// The encoded info.
    pub fn encode(&self) -> Bytes {
        joined(self.current_time, self.chunk_count, &self.own)
    }

    /// Decodes an info; `None` if it is shorter than the two fields.
    pub fn decode(info: Bytes) -> Option<Self> {
        let (current_time, chunk_count, own) = split(info)?;
        Some(Self {
            current_time,
            chunk_count,
            own,
        })
    }
}

/// The Heartbeat Info of an RSCTP HEARTBEAT ACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatAckFields {
    /// Bytes per second; 0 means no estimate.
    pub available_bandwidth: u32,
    /// Millionths of the chunks sent; [`NO_LOSS_RATE`] means no estimate.
    pub chunk_loss_rate: u32,
    /// The whole info of the HEARTBEAT that is answered.
    pub echoed: Bytes,
}

impl HeartbeatAckFields {
    /// The encoded info.
    pub fn encode(&self) -> Bytes {
        joined(self.available_bandwidth, self.chunk_loss_rate, &self.echoed)
    }

    /// Decodes an info; `None` if it is shorter than the two fields.
    pub fn decode(info: Bytes) -> Option<Self> {
        let (available_bandwidth, chunk_loss_rate, echoed) = split(info)?;
        Some(Self {
            available_bandwidth,
            chunk_loss_rate,
            echoed,
        })
    }
}

fn joined(first: u32, second: u32, rest: &[u8]) -> Bytes {
    let mut info = BytesMut::with_capacity(FIELDS + rest.len());
    info.put_u32(first);
    info.put_u32(second);
    info.put_slice(rest);
    info.freeze()
}

fn split(mut info: Bytes) -> Option<(u32, u32, Bytes)> {
    if info.len() < FIELDS {
        return None;
    }
    let (first, second) = (info.get_u32(), info.get_u32());
    Some((first, second, info))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encode;
    use crate::chunk::{Heartbeat, HeartbeatAck};

    /// Compares the chunks with Figs. 3-4 and 3-5, byte by byte.
    #[test]
    fn the_chunks_as_the_figures_draw_them() {
        let request = HeartbeatFields {
            current_time: 0x0102_0304,
            chunk_count: 0x0506_0708,
            own: Bytes::from_static(b"nonce"),
        };
        let info = request.encode();
        let mut out = BytesMut::new();
        Heartbeat { info: info.clone() }.encode(&mut out);
        assert_eq!(
            out[..],
            *b"\x04\x00\x00\x15\x00\x01\x00\x11\x01\x02\x03\x04\x05\x06\x07\x08nonce\0\0\0"
        );
        assert_eq!(HeartbeatFields::decode(info.clone()), Some(request));

        let answer = HeartbeatAckFields {
            available_bandwidth: 125_000,
            chunk_loss_rate: 50_000,
            echoed: info,
        };
        let mut out = BytesMut::new();
        HeartbeatAck {
            info: answer.encode(),
        }
        .encode(&mut out);
        assert_eq!(
            out[..],
            *b"\x05\x00\x00\x1d\x00\x01\x00\x19\x00\x01\xe8\x48\x00\x00\xc3\x50\
            \x01\x02\x03\x04\x05\x06\x07\x08nonce\0\0\0"
        );
        assert_eq!(HeartbeatAckFields::decode(answer.encode()), Some(answer));
    }

    #[test]
    fn an_info_without_both_fields_is_none() {
        for length in 0..FIELDS {
            let info = Bytes::from(vec![7; length]);
            assert_eq!(HeartbeatFields::decode(info.clone()), None);
            assert_eq!(HeartbeatAckFields::decode(info), None);
        }
        let fields = HeartbeatFields::decode(Bytes::from(vec![0; FIELDS])).expect("both fields");
        assert!(fields.own.is_empty());
    }
}
