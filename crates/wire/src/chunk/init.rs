//! INIT (RFC 9260 §3.3.2).

use bytes::{Buf, BytesMut};

use crate::chunk::{DecodeError, fixed_part, kind};
use crate::encode::{Encode, chunk_header, padded, put_padding};
use crate::packet::RawChunk;
use crate::parameter::Parameters;
use crate::serial::Tsn;

/// Number of value bytes before the parameters.
const FIXED: usize = 16;
/// Number of bytes of the chunk before the parameters.
pub(super) const BEFORE_PARAMETERS: usize = crate::packet::CHUNK_HEADER + FIXED;

/// Requests an association.
///
/// RFC 9260 §3.3.2:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |    Type = 1   |     Flags     |             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                          Initiate Tag                         |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |           Advertised Receiver Window Credit (a_rwnd)          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |        Outbound Streams       |        Inbound Streams        |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                          Initial TSN                          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                        Parameters (TLV)                       |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Init {
    /// Verification tag that the peer must use in its packets. It must not be 0. The decoder
    /// accepts 0 nevertheless.
    pub initiate_tag: u32,
    /// Advertised receiver window credit, bytes.
    pub a_rwnd: u32,
    /// Number of streams that the sender wants to use for sending. It must not be 0. The decoder
    /// accepts 0 nevertheless.
    pub outbound_streams: u16,
    /// Maximum number of streams that the peer may use for sending. It must not be 0. The decoder
    /// accepts 0 nevertheless.
    pub inbound_streams: u16,
    /// First TSN that the sender will use.
    pub initial_tsn: Tsn,
    /// Parameters, decoded during iteration.
    pub parameters: Parameters,
}

impl Init {
    #[inline]
    pub(super) fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        let &[
            t0,
            t1,
            t2,
            t3,
            w0,
            w1,
            w2,
            w3,
            o0,
            o1,
            i0,
            i1,
            n0,
            n1,
            n2,
            n3,
        ] = fixed_part::<FIXED>(&raw)?;
        let mut parameters = raw.into_value();
        parameters.advance(FIXED);
        Ok(Self {
            initiate_tag: u32::from_be_bytes([t0, t1, t2, t3]),
            a_rwnd: u32::from_be_bytes([w0, w1, w2, w3]),
            outbound_streams: u16::from_be_bytes([o0, o1]),
            inbound_streams: u16::from_be_bytes([i0, i1]),
            initial_tsn: Tsn(u32::from_be_bytes([n0, n1, n2, n3])),
            parameters: Parameters::from_bytes(parameters),
        })
    }

    fn length(&self) -> usize {
        BEFORE_PARAMETERS + self.parameters.as_bytes().len()
    }

    /// Chunk header and fixed part of a chunk of type `kind` and of `length` bytes. INIT and INIT
    /// ACK have the same format.
    #[inline(always)]
    pub(super) fn before_parameters(&self, kind: u8, length: usize) -> [u8; BEFORE_PARAMETERS] {
        let mut bytes = [0; BEFORE_PARAMETERS];
        bytes[..4].copy_from_slice(&chunk_header(kind, 0, length));
        bytes[4..8].copy_from_slice(&self.initiate_tag.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.a_rwnd.to_be_bytes());
        bytes[12..14].copy_from_slice(&self.outbound_streams.to_be_bytes());
        bytes[14..16].copy_from_slice(&self.inbound_streams.to_be_bytes());
        bytes[16..].copy_from_slice(&self.initial_tsn.0.to_be_bytes());
        bytes
    }

    /// Encodes the INIT as a chunk of type `kind`.
    pub(super) fn encode_as(&self, kind: u8, out: &mut BytesMut) {
        out.extend_from_slice(&self.before_parameters(kind, self.length()));
        out.extend_from_slice(self.parameters.as_bytes());
        put_padding(out, self.length());
    }
}

impl Encode for Init {
    fn encoded_len(&self) -> usize {
        padded(self.length())
    }

    fn encode(&self, out: &mut BytesMut) {
        self.encode_as(kind::INIT, out);
    }
}
