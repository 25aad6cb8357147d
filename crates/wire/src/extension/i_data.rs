//! I-DATA (RFC 8260 §2.1).

use bytes::{Bytes, BytesMut};

use crate::chunk::{DecodeError, fixed_part, fixed_part_of, kind};
use crate::encode::{Encode, chunk_header, padded, put_padding};
use crate::packet::{CHUNK_HEADER, Frame, RawChunk};
use crate::serial::{Fsn, Mid, Tsn};

const ENDING: u8 = 0x01;
const BEGINNING: u8 = 0x02;
const UNORDERED: u8 = 0x04;
const IMMEDIATE: u8 = 0x08;

/// Number of value bytes before the user data.
const FIXED: usize = 16;

/// Position of a fragment in its message. The chunk has one field for both cases (RFC 8260 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentPosition {
    /// The first fragment (B bit), whose FSN is implicitly 0.
    First {
        /// Payload Protocol Identifier. Only the first fragment has it.
        ppid: u32,
    },
    /// A fragment after the first.
    Later {
        /// Fragment Sequence Number within the message.
        fsn: Fsn,
    },
}

/// A message or a fragment of one. Fragments of other messages may be sent between its fragments.
///
/// RFC 8260 §2.1:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |   Type = 64   |  Res  |I|U|B|E|             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                              TSN                              |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |       Stream Identifier       |            Reserved           |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                       Message Identifier                      |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |        PPID (B = 1) or Fragment Sequence Number (B = 0)       |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                           User Data                           |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IData<B = Bytes> {
    /// Transmission Sequence Number of the chunk.
    pub tsn: Tsn,
    /// Stream of the message.
    pub stream_id: u16,
    /// Message number, counted separately for the ordered and the unordered messages of each
    /// stream.
    pub mid: Mid,
    /// Position of the fragment in the message.
    pub position: FragmentPosition,
    /// Whether the message may be delivered without regard to the order of its stream (U bit).
    pub unordered: bool,
    /// Whether this is the last fragment of the message (E bit).
    pub ending: bool,
    /// Whether the receiver should send a SACK without delay (I bit).
    pub immediate: bool,
    /// User data of the fragment. It must not be empty on the wire. The decoder accepts empty user
    /// data nevertheless.
    pub user_data: B,
}

impl IData {
    /// Length of the chunk before its user data, bytes.
    pub const HEADER: usize = CHUNK_HEADER + FIXED;

    /// Decodes a chunk of type I-DATA.
    ///
    /// # Errors
    /// The chunk is shorter than its header.
    pub fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        let fixed = *fixed_part::<FIXED>(&raw)?;
        let flags = raw.flags;
        Ok(Self::of(flags, fixed, raw.into_value().slice(FIXED..)))
    }

    /// Like [`IData::decode`], for a chunk that is still part of its packet. Only the user data
    /// becomes a slice of the datagram.
    ///
    /// # Errors
    /// The chunk is shorter than its header.
    pub fn read(frame: &Frame<'_>) -> Result<Self, DecodeError> {
        let fixed = *fixed_part_of::<FIXED>(frame)?;
        Ok(Self::of(frame.flags, fixed, frame.value_from(FIXED)))
    }

    fn of(flags: u8, fixed: [u8; FIXED], user_data: Bytes) -> Self {
        let [t0, t1, t2, t3, s0, s1, _, _, m0, m1, m2, m3, p0, p1, p2, p3] = fixed;
        let either = u32::from_be_bytes([p0, p1, p2, p3]);
        Self {
            tsn: Tsn(u32::from_be_bytes([t0, t1, t2, t3])),
            stream_id: u16::from_be_bytes([s0, s1]),
            mid: Mid(u32::from_be_bytes([m0, m1, m2, m3])),
            position: if flags & BEGINNING != 0 {
                FragmentPosition::First { ppid: either }
            } else {
                FragmentPosition::Later { fsn: Fsn(either) }
            },
            unordered: flags & UNORDERED != 0,
            ending: flags & ENDING != 0,
            immediate: flags & IMMEDIATE != 0,
            user_data,
        }
    }
}

impl<B: AsRef<[u8]>> IData<B> {
    fn flags(&self) -> u8 {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let first = matches!(self.position, FragmentPosition::First { .. });
        bit(self.ending, ENDING)
            | bit(first, BEGINNING)
            | bit(self.unordered, UNORDERED)
            | bit(self.immediate, IMMEDIATE)
    }
}

impl<B: AsRef<[u8]>> Encode for IData<B> {
    fn encoded_len(&self) -> usize {
        padded(IData::HEADER + self.user_data.as_ref().len())
    }

    fn encode(&self, out: &mut BytesMut) {
        let user_data = self.user_data.as_ref();
        let length = IData::HEADER + user_data.len();
        let either = match self.position {
            FragmentPosition::First { ppid } => ppid,
            FragmentPosition::Later { fsn } => fsn.0,
        };
        out.extend_from_slice(&chunk_header(kind::I_DATA, self.flags(), length));
        out.extend_from_slice(&self.tsn.0.to_be_bytes());
        out.extend_from_slice(&self.stream_id.to_be_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.mid.0.to_be_bytes());
        out.extend_from_slice(&either.to_be_bytes());
        out.extend_from_slice(user_data);
        put_padding(out, length);
    }
}
