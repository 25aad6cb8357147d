//! SCTP chunks, one file each (RFC 9260 §3.3).

mod abort;
mod cookie_ack;
mod cookie_echo;
mod cwr;
mod data;
mod ecne;
mod error;
mod heartbeat;
mod heartbeat_ack;
mod init;
mod init_ack;
mod pad;
mod sack;
mod shutdown;
mod shutdown_ack;
mod shutdown_complete;
#[cfg(test)]
mod tests;

use bytes::BytesMut;

use crate::encode::Encode;
use crate::packet::{Frame, RawChunk};

pub use abort::Abort;
pub use cookie_ack::CookieAck;
pub use cookie_echo::CookieEcho;
pub use cwr::Cwr;
pub use data::Data;
pub use ecne::Ecne;
pub use error::ErrorChunk;
pub use heartbeat::Heartbeat;
pub use heartbeat_ack::{HeartbeatAck, HeartbeatCopy};
pub use init::Init;
pub use init_ack::InitAck;
pub use pad::Pad;
pub use sack::{GapAckBlock, OutgoingSack, Sack};
pub use shutdown::Shutdown;
pub use shutdown_ack::ShutdownAck;
pub use shutdown_complete::ShutdownComplete;

/// Chunk types (RFC 9260 §3.2).
pub mod kind {
    /// Payload data.
    pub const DATA: u8 = 0;
    /// Initiation.
    pub const INIT: u8 = 1;
    /// Initiation acknowledgement.
    pub const INIT_ACK: u8 = 2;
    /// Selective acknowledgement.
    pub const SACK: u8 = 3;
    /// Heartbeat request.
    pub const HEARTBEAT: u8 = 4;
    /// Heartbeat acknowledgement.
    pub const HEARTBEAT_ACK: u8 = 5;
    /// Abort.
    pub const ABORT: u8 = 6;
    /// Shutdown.
    pub const SHUTDOWN: u8 = 7;
    /// Shutdown acknowledgement.
    pub const SHUTDOWN_ACK: u8 = 8;
    /// Operation error.
    pub const ERROR: u8 = 9;
    /// State cookie.
    pub const COOKIE_ECHO: u8 = 10;
    /// Cookie acknowledgement.
    pub const COOKIE_ACK: u8 = 11;
    /// Explicit congestion notification echo.
    pub const ECNE: u8 = 12;
    /// Congestion window reduced.
    pub const CWR: u8 = 13;
    /// Shutdown complete.
    pub const SHUTDOWN_COMPLETE: u8 = 14;
    /// Authentication (RFC 4895 §4.1).
    pub const AUTH: u8 = 0x0F;
    /// Payload data of interleavable messages (RFC 8260 §2.1).
    pub const I_DATA: u8 = 0x40;
    /// DTLS: the encrypted chunks of a packet (draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.2).
    pub const DTLS: u8 = 0x41;
    /// Address configuration acknowledgement (RFC 5061 §4.1.2).
    pub const ASCONF_ACK: u8 = 0x80;
    /// Stream reconfiguration (RFC 6525 §3.1).
    pub const RE_CONFIG: u8 = 0x82;
    /// Padding (RFC 4820).
    pub const PAD: u8 = 0x84;
    /// Moves the cumulative TSN past abandoned data (RFC 3758 §3.2).
    pub const FORWARD_TSN: u8 = 0xC0;
    /// Address configuration change (RFC 5061 §4.1.1).
    pub const ASCONF: u8 = 0xC1;
    /// FORWARD TSN for interleaved messages (RFC 8260 §2.3.1).
    pub const I_FORWARD_TSN: u8 = 0xC2;
}

/// A decoded chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// Payload data.
    Data(Data),
    /// Initiation.
    Init(Init),
    /// Initiation acknowledgement.
    InitAck(InitAck),
    /// Selective acknowledgement.
    Sack(Sack),
    /// Heartbeat request.
    Heartbeat(Heartbeat),
    /// Heartbeat acknowledgement.
    HeartbeatAck(HeartbeatAck),
    /// Abort.
    Abort(Abort),
    /// Shutdown.
    Shutdown(Shutdown),
    /// Shutdown acknowledgement.
    ShutdownAck,
    /// Operation error.
    Error(ErrorChunk),
    /// State cookie.
    CookieEcho(CookieEcho),
    /// Cookie acknowledgement.
    CookieAck,
    /// Explicit congestion notification echo.
    Ecne(Ecne),
    /// Congestion window reduced.
    Cwr(Cwr),
    /// Shutdown complete.
    ShutdownComplete(ShutdownComplete),
    /// Padding.
    Pad(Pad),
    /// Any other type; [`RawChunk::action`] returns how it should be handled. This includes the
    /// chunks of extensions. An endpoint that has negotiated an extension should decode them by
    /// [`Extension::decode`](crate::extension::Extension::decode). For all other endpoints they are
    /// unknown.
    Unknown(RawChunk),
}

/// Decoding error of a chunk whose header and length are valid. The chunks after it can still be
/// read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The chunk is shorter than the fixed part of its type.
    #[error("chunk of type {kind} has a length of {length}, less than {needed}")]
    TooShort {
        /// The chunk's type.
        kind: u8,
        /// Length, header included.
        length: usize,
        /// Minimum length for this type.
        needed: usize,
    },
    /// A SACK announces more Gap Ack Blocks and duplicate TSNs than fit its length.
    #[error(
        "SACK counts {gap_blocks} gap blocks and {duplicates} duplicates in a length of {length}"
    )]
    SackCounts {
        /// Announced number of Gap Ack Blocks.
        gap_blocks: u16,
        /// Announced number of duplicate TSNs.
        duplicates: u16,
        /// Length, header included.
        length: usize,
    },
    /// A HEARTBEAT or HEARTBEAT ACK does not contain a valid Heartbeat Info parameter at its
    /// beginning.
    #[error("chunk of type {kind} without Heartbeat Info")]
    NoHeartbeatInfo {
        /// The chunk's type.
        kind: u8,
    },
    /// The number of bytes after the fixed part is not a multiple of the size of an entry.
    #[error("chunk of type {kind} has a length of {length}, which ends within an entry")]
    PartialEntry {
        /// The chunk's type.
        kind: u8,
        /// Length, header included.
        length: usize,
    },
    /// An ASCONF does not begin with a valid address parameter (RFC 5061 §4.1.1).
    #[error("ASCONF without an address")]
    NoAddress,
}

impl Chunk {
    /// Decodes the value of the chunk. Parameters and causes are not decoded yet. Errors in them
    /// are found only by iterating over them.
    ///
    /// Reserved flags and bytes after the last field are ignored.
    ///
    /// # Errors
    /// The value does not meet the requirements of its type.
    #[inline]
    pub fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        Ok(match raw.kind {
            kind::DATA => Self::Data(Data::decode(raw)?),
            kind::SACK => Self::Sack(Sack::decode(raw)?),
            _ => return Self::decode_control(raw),
        })
    }

    /// Decodes all types except DATA and SACK, which are the most frequent ones.
    fn decode_control(raw: RawChunk) -> Result<Self, DecodeError> {
        Ok(match raw.kind {
            kind::INIT => Self::Init(Init::decode(raw)?),
            kind::INIT_ACK => Self::InitAck(InitAck::decode(raw)?),
            kind::HEARTBEAT => Self::Heartbeat(Heartbeat::decode(raw)?),
            kind::HEARTBEAT_ACK => Self::HeartbeatAck(HeartbeatAck::decode(raw)?),
            kind::ABORT => Self::Abort(Abort::decode(raw)),
            kind::SHUTDOWN => Self::Shutdown(Shutdown::decode(raw)?),
            kind::SHUTDOWN_ACK => Self::ShutdownAck,
            kind::ERROR => Self::Error(ErrorChunk::decode(raw)),
            kind::COOKIE_ECHO => Self::CookieEcho(CookieEcho::decode(raw)),
            kind::COOKIE_ACK => Self::CookieAck,
            kind::ECNE => Self::Ecne(Ecne::decode(raw)?),
            kind::CWR => Self::Cwr(Cwr::decode(raw)?),
            kind::SHUTDOWN_COMPLETE => Self::ShutdownComplete(ShutdownComplete::decode(raw)),
            kind::PAD => Self::Pad(Pad::decode(&raw)),
            _ => Self::Unknown(raw),
        })
    }

    /// Chunk type.
    pub fn kind(&self) -> u8 {
        match self {
            Self::Data(_) => kind::DATA,
            Self::Init(_) => kind::INIT,
            Self::InitAck(_) => kind::INIT_ACK,
            Self::Sack(_) => kind::SACK,
            Self::Heartbeat(_) => kind::HEARTBEAT,
            Self::HeartbeatAck(_) => kind::HEARTBEAT_ACK,
            Self::Abort(_) => kind::ABORT,
            Self::Shutdown(_) => kind::SHUTDOWN,
            Self::ShutdownAck => kind::SHUTDOWN_ACK,
            Self::Error(_) => kind::ERROR,
            Self::CookieEcho(_) => kind::COOKIE_ECHO,
            Self::CookieAck => kind::COOKIE_ACK,
            Self::Ecne(_) => kind::ECNE,
            Self::Cwr(_) => kind::CWR,
            Self::ShutdownComplete(_) => kind::SHUTDOWN_COMPLETE,
            Self::Pad(_) => kind::PAD,
            Self::Unknown(raw) => raw.kind,
        }
    }

    fn as_encode(&self) -> &dyn Encode {
        match self {
            Self::Data(chunk) => chunk,
            Self::Init(chunk) => chunk,
            Self::InitAck(chunk) => chunk,
            Self::Sack(chunk) => chunk,
            Self::Heartbeat(chunk) => chunk,
            Self::HeartbeatAck(chunk) => chunk,
            Self::Abort(chunk) => chunk,
            Self::Shutdown(chunk) => chunk,
            Self::ShutdownAck => &ShutdownAck,
            Self::Error(chunk) => chunk,
            Self::CookieEcho(chunk) => chunk,
            Self::CookieAck => &CookieAck,
            Self::Ecne(chunk) => chunk,
            Self::Cwr(chunk) => chunk,
            Self::ShutdownComplete(chunk) => chunk,
            Self::Pad(chunk) => chunk,
            Self::Unknown(chunk) => chunk,
        }
    }
}

impl Encode for Chunk {
    fn encoded_len(&self) -> usize {
        self.as_encode().encoded_len()
    }

    fn encode(&self, out: &mut BytesMut) {
        self.as_encode().encode(out);
    }
}

/// Like [`fixed_part`], for a chunk that is still part of its packet.
#[inline]
pub(crate) fn fixed_part_of<'a, const N: usize>(
    frame: &Frame<'a>,
) -> Result<&'a [u8; N], DecodeError> {
    frame.value().first_chunk().ok_or(DecodeError::TooShort {
        kind: frame.kind,
        length: frame.length(),
        needed: crate::packet::CHUNK_HEADER + N,
    })
}

/// Returns the first `N` bytes of the value. Every chunk of this type must have them.
#[inline]
pub(crate) fn fixed_part<const N: usize>(raw: &RawChunk) -> Result<&[u8; N], DecodeError> {
    raw.value().first_chunk().ok_or(DecodeError::TooShort {
        kind: raw.kind,
        length: raw.whole().len(),
        needed: crate::packet::CHUNK_HEADER + N,
    })
}
