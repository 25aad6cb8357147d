//! Chunks, parameters and causes of SCTP extensions, one file each.
//!
//! They are separate from [`Chunk`](crate::Chunk) and [`Parameter`](crate::Parameter) because an
//! endpoint that has not negotiated an extension must treat its chunks and parameters as unknown,
//! sound or not (RFC 9260 §3.2, §3.2.1). The decoders of the base protocol therefore return them as
//! `Unknown`, and an endpoint that has negotiated the extension decodes them here:
//!
//! ```
//! use anabranch_wire::chunk::{Chunk, kind};
//! use anabranch_wire::extension::Extension;
//! # use anabranch_wire::{RawChunk, chunk::DecodeError};
//! # fn negotiated(kind: u8) -> bool { kind == kind::FORWARD_TSN }
//! # fn take(chunk: Chunk) -> Result<(), DecodeError> {
//! if let Chunk::Unknown(raw) = chunk && negotiated(raw.kind) {
//!     match Extension::decode(raw)? {
//!         Extension::ForwardTsn(forward) => println!("up to {}", forward.new_cumulative_tsn),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod asconf;
mod asconf_ack;
mod auth;
mod cause;
mod dtls;
mod forward_tsn;
mod i_data;
mod i_forward_tsn;
mod init_parameters;
mod re_config;
mod re_config_parameter;
#[cfg(test)]
mod tests;

use bytes::{Bytes, BytesMut};

use crate::chunk::{DecodeError, kind};
use crate::encode::{Encode, chunk_header, padded, put_padding};
use crate::packet::{CHUNK_HEADER, RawChunk};

pub use asconf::{Asconf, AsconfParameter, AsconfRequest};
pub use asconf_ack::{AsconfAck, AsconfResponse};
pub use auth::{Auth, hmac_id};
pub use cause::ExtensionCause;
pub use dtls::{Dtls, DtlsKeyManagement, PPID_DTLS_KEY_MANAGEMENT};
pub use forward_tsn::{ForwardTsn, SkippedStream};
pub use i_data::{FragmentPosition, IData};
pub use i_forward_tsn::{IForwardTsn, SkippedMessage};
pub use init_parameters::{InitParameter, edmid};
pub use re_config::{Combination, ReConfig};
pub use re_config_parameter::{ReConfigParameter, ReConfigResult};

/// A decoded chunk of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extension {
    /// Abandons data (RFC 3758).
    ForwardTsn(ForwardTsn),
    /// Payload data of interleavable messages (RFC 8260).
    IData(IData),
    /// Abandons data of interleaved messages (RFC 8260).
    IForwardTsn(IForwardTsn),
    /// Reconfigures streams (RFC 6525).
    ReConfig(ReConfig),
    /// Authenticates the chunks after it (RFC 4895).
    Auth(Auth),
    /// Changes addresses (RFC 5061).
    Asconf(Asconf),
    /// Answers an ASCONF (RFC 5061).
    AsconfAck(AsconfAck),
    /// The encrypted chunks of a packet (draft-ietf-tsvwg-sctp-dtls-chunk-04).
    Dtls(Dtls),
    /// Any other type.
    Unknown(RawChunk),
}

/// Minimum length of each type in bytes, including the chunk header.
#[cfg(test)]
const SHORTEST: &[(u8, usize)] = &[
    (kind::FORWARD_TSN, 8),
    (kind::I_DATA, 20),
    (kind::I_FORWARD_TSN, 8),
    (kind::RE_CONFIG, 4),
    (kind::AUTH, 8),
    (kind::ASCONF_ACK, 8),
    (kind::ASCONF, 8),
    (kind::DTLS, 5),
];

impl Extension {
    /// Decodes the value of the chunk. Lists are not decoded yet. Errors in them are found only by
    /// iterating over them.
    ///
    /// Reserved fields and flags are ignored.
    ///
    /// # Errors
    /// The value does not meet the requirements of its type.
    pub fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        Ok(match raw.kind {
            kind::FORWARD_TSN => Self::ForwardTsn(ForwardTsn::decode(raw)?),
            kind::I_DATA => Self::IData(IData::decode(raw)?),
            kind::I_FORWARD_TSN => Self::IForwardTsn(IForwardTsn::decode(raw)?),
            kind::RE_CONFIG => Self::ReConfig(ReConfig::decode(raw)),
            kind::AUTH => Self::Auth(Auth::decode(raw)?),
            kind::ASCONF => Self::Asconf(Asconf::decode(raw)?),
            kind::ASCONF_ACK => Self::AsconfAck(AsconfAck::decode(raw)?),
            kind::DTLS => Self::Dtls(Dtls::decode(raw)?),
            _ => Self::Unknown(raw),
        })
    }

    /// The chunk's type.
    pub fn kind(&self) -> u8 {
        match self {
            Self::ForwardTsn(_) => kind::FORWARD_TSN,
            Self::IData(_) => kind::I_DATA,
            Self::IForwardTsn(_) => kind::I_FORWARD_TSN,
            Self::ReConfig(_) => kind::RE_CONFIG,
            Self::Auth(_) => kind::AUTH,
            Self::Asconf(_) => kind::ASCONF,
            Self::AsconfAck(_) => kind::ASCONF_ACK,
            Self::Dtls(_) => kind::DTLS,
            Self::Unknown(raw) => raw.kind,
        }
    }

    fn as_encode(&self) -> &dyn Encode {
        match self {
            Self::ForwardTsn(chunk) => chunk,
            Self::IData(chunk) => chunk,
            Self::IForwardTsn(chunk) => chunk,
            Self::ReConfig(chunk) => chunk,
            Self::Auth(chunk) => chunk,
            Self::Asconf(chunk) => chunk,
            Self::AsconfAck(chunk) => chunk,
            Self::Dtls(chunk) => chunk,
            Self::Unknown(chunk) => chunk,
        }
    }
}

impl Encode for Extension {
    fn encoded_len(&self) -> usize {
        self.as_encode().encoded_len()
    }

    fn encode(&self, out: &mut BytesMut) {
        self.as_encode().encode(out);
    }
}

/// Length of a chunk that has a fixed part of `fixed` bytes and the variable part `rest`, including
/// padding.
fn chunk_len(fixed: usize, rest: &[u8]) -> usize {
    padded(CHUNK_HEADER + fixed + rest.len())
}

/// Encodes a chunk without flags from a fixed part and a variable part.
fn put_chunk(kind: u8, fixed: &[u8], rest: &[u8], out: &mut BytesMut) {
    let length = CHUNK_HEADER + fixed.len() + rest.len();
    out.extend_from_slice(&chunk_header(kind, 0, length));
    out.extend_from_slice(fixed);
    out.extend_from_slice(rest);
    put_padding(out, length);
}

/// Value of `raw` from byte `fixed` on. Its length must be a multiple of `entry` bytes.
fn entries(raw: RawChunk, fixed: usize, entry: usize) -> Result<Bytes, DecodeError> {
    let (kind, length) = (raw.kind, raw.whole().len());
    let entries = raw.into_value().slice(fixed..);
    if entries.len().is_multiple_of(entry) {
        Ok(entries)
    } else {
        Err(DecodeError::PartialEntry { kind, length })
    }
}
