//! HEARTBEAT (RFC 9260 §3.3.5).

use bytes::{Bytes, BytesMut};

use crate::chunk::{DecodeError, kind};
use crate::encode::{Encode, chunk_header, padded, put_padding, tlv_header};
use crate::packet::{CHUNK_HEADER, RawChunk};
use crate::parameter::{self, Parameter, Parameters};
use crate::tlv;

/// Asks whether the peer can be reached at the destination address of the packet.
///
/// RFC 9260 §3.3.5:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |    Type = 4   |     Flags     |             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |    Heartbeat Info Type = 1    |     Heartbeat Info Length     |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                 Sender-Specific Heartbeat Info                |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Value of the Heartbeat Info parameter. It has no meaning for the receiver, which returns it
    /// unchanged.
    pub info: Bytes,
}

impl Heartbeat {
    /// Length of the chunk before the Heartbeat Info, bytes.
    pub const HEADER: usize = CHUNK_HEADER + tlv::HEADER;

    pub(super) fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        let kind = raw.kind;
        // Other parameters may precede it, although none is defined (RFC 9260 §8.3).
        let parameters = Parameters::from_bytes(raw.into_value());
        let info =
            (parameters.iter().map_while(Result::ok)).find_map(|parameter| match parameter {
                Parameter::HeartbeatInfo(info) => Some(info),
                _ => None,
            });
        info.map(|info| Self { info })
            .ok_or(DecodeError::NoHeartbeatInfo { kind })
    }

    /// Encodes the HEARTBEAT as a chunk of type `kind`, because HEARTBEAT and HEARTBEAT ACK have
    /// the same format.
    pub(super) fn encode_as(&self, kind: u8, out: &mut BytesMut) {
        let length = Self::HEADER + self.info.len();
        out.extend_from_slice(&chunk_header(kind, 0, length));
        out.extend_from_slice(&tlv_header(
            parameter::kind::HEARTBEAT_INFO,
            length - CHUNK_HEADER,
        ));
        out.extend_from_slice(&self.info);
        put_padding(out, length);
    }
}

impl Encode for Heartbeat {
    fn encoded_len(&self) -> usize {
        padded(Self::HEADER + self.info.len())
    }

    fn encode(&self, out: &mut BytesMut) {
        self.encode_as(kind::HEARTBEAT, out);
    }
}
