//! The DTLS chunk and the DTLS Key Management Parameter
//! (draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.2 and §4.1).

use bytes::{BufMut, Bytes, BytesMut};

use super::chunk_len;
use crate::chunk::{DecodeError, fixed_part, kind};
use crate::encode::{Encode, chunk_header, put_padding};
use crate::packet::{CHUNK_HEADER, RawChunk};
use crate::parameter;
use crate::tlv::{HEADER, Tlv, TlvError};

/// Payload protocol identifier of key management messages
/// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §9.5).
pub const PPID_DTLS_KEY_MANAGEMENT: u32 = 4242;

/// R bit of the DTLS chunk.
const RESTART: u8 = 0x01;

/// The encrypted chunks of a packet. The DTLS chunk must be the only chunk of the packet.
///
/// draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.2:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |  Type = 0x41  |   reserved  |R|             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |  Pre-Padding  |                                               |
/// +-+-+-+-+-+-+-+-+                                               |
/// /             Payload: one DTLSCiphertext (RFC 9147 §4)         /
/// |                               +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                               |         Post-Padding          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
///
/// The Pre-Padding and the record header are 4 bytes, so the encrypted chunks are aligned to
/// 4 bytes and can be decrypted in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dtls {
    /// R bit: whether the record is protected with a restart key context.
    pub restart: bool,
    /// The DTLS record, which is not parsed here.
    pub record: Bytes,
}

impl Dtls {
    /// Length in bytes of the chunk header and the Pre-Padding.
    pub const HEADER: usize = CHUNK_HEADER + 1;

    /// Decodes a chunk of type DTLS.
    ///
    /// # Errors
    /// The chunk has no Pre-Padding.
    pub fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        let &[_ignored] = fixed_part(&raw)?;
        Ok(Self {
            restart: raw.flags & RESTART != 0,
            record: raw.into_value().slice(1..),
        })
    }

    /// Chunk header and Pre-Padding of a chunk with a record of `record` bytes, at most 65,530.
    pub fn header(restart: bool, record: usize) -> [u8; Self::HEADER] {
        let flags = if restart { RESTART } else { 0 };
        let [kind, flags, high, low] = chunk_header(kind::DTLS, flags, Self::HEADER + record);
        [kind, flags, high, low, 0]
    }
}

impl Encode for Dtls {
    fn encoded_len(&self) -> usize {
        chunk_len(1, &self.record)
    }

    fn encode(&self, out: &mut BytesMut) {
        out.extend_from_slice(&Self::header(self.restart, self.record.len()));
        out.extend_from_slice(&self.record);
        put_padding(out, Self::HEADER + self.record.len());
    }
}

/// Offers the DTLS chunk and lists the supported key management methods. It is allowed only in INIT
/// and INIT ACK.
///
/// draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.1:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |     Parameter Type = 0x8006   |        Parameter Length       |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                          Tie Breaker                          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// | Reserved|R|S|C| DTLS KMId #1  | DTLS KMId #2  /  DTLS KMId #N |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DtlsKeyManagement {
    /// Random number that determines the roles if both ends support both roles.
    pub tie_breaker: u32,
    /// R bit: whether the sender supports protected restarts.
    pub restart: bool,
    /// S bit: whether the sender supports the server role.
    pub server: bool,
    /// C bit: whether the sender supports the client role.
    pub client: bool,
    /// The five high bits, which are reserved and must be 0 in a parameter that this endpoint
    /// sends. The receiver ignores these bits, but they are kept, because keys are derived from the
    /// parameter as it was received (§6).
    pub reserved: u8,
    /// Identifiers of key management methods in descending order of preference. There is at least
    /// one.
    pub methods: Bytes,
}

impl DtlsKeyManagement {
    /// Number of value bytes before the identifiers.
    const FIXED: usize = 5;
    const R: u8 = 0x04;
    const S: u8 = 0x02;
    const C: u8 = 0x01;
    const RESERVED: u8 = 0xF8;

    /// The parameter with its header and without padding. Keys are derived from these bytes (§6).
    pub fn whole(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(HEADER + self.value_len());
        let length = (HEADER + self.value_len()) as u16;
        bytes.put_u16(parameter::kind::DTLS_KEY_MANAGEMENT);
        bytes.put_u16(length);
        self.put_value(&mut bytes);
        bytes.freeze()
    }

    pub(super) fn value_len(&self) -> usize {
        Self::FIXED + self.methods.len()
    }

    pub(super) fn put_value(&self, out: &mut BytesMut) {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        out.put_u32(self.tie_breaker);
        out.put_u8(
            bit(self.restart, Self::R)
                | bit(self.server, Self::S)
                | bit(self.client, Self::C)
                | (self.reserved & Self::RESERVED),
        );
        out.extend_from_slice(&self.methods);
    }

    /// Decodes the value of a parameter of this type.
    ///
    /// # Errors
    /// The parameter has no identifier.
    pub fn decode(tlv: Tlv) -> Result<Self, TlvError> {
        let (kind, length) = (tlv.kind, tlv.whole().len());
        let Some((&[t0, t1, t2, t3, bits], [_, ..])) = tlv.value().split_first_chunk() else {
            return Err(TlvError::BadLength { kind, length });
        };
        Ok(Self {
            tie_breaker: u32::from_be_bytes([t0, t1, t2, t3]),
            restart: bits & Self::R != 0,
            server: bits & Self::S != 0,
            client: bits & Self::C != 0,
            reserved: bits & Self::RESERVED,
            methods: tlv.into_value().slice(Self::FIXED..),
        })
    }
}
