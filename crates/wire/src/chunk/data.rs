//! DATA (RFC 9260 §3.3.1).

use bytes::{Buf, Bytes, BytesMut};

use crate::chunk::{DecodeError, fixed_part, fixed_part_of, kind};
use crate::encode::{Encode, chunk_header, padded, put_padding};
use crate::packet::{Frame, RawChunk};
use crate::serial::{Ssn, Tsn};

const ENDING: u8 = 0x01;
const BEGINNING: u8 = 0x02;
const UNORDERED: u8 = 0x04;
const IMMEDIATE: u8 = 0x08;

/// Number of value bytes before the user data.
const FIXED: usize = 12;

/// A message or a fragment of one. When received, its user data is a slice of the datagram; when
/// sent, it may be borrowed.
///
/// RFC 9260 §3.3.1:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |    Type = 0   |  Res  |I|U|B|E|             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                              TSN                              |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |       Stream Identifier       |     Stream Sequence Number    |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                  Payload Protocol Identifier                  |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                           User Data                           |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data<B = Bytes> {
    /// Transmission Sequence Number of the chunk.
    pub tsn: Tsn,
    /// Stream of the message.
    pub stream_id: u16,
    /// Sequence number of the message in its stream. Not used if `unordered` is set.
    pub ssn: Ssn,
    /// Payload Protocol Identifier, passed unchanged to the user of the peer.
    pub ppid: u32,
    /// Whether the message may be delivered without regard to the order of its stream (U bit).
    pub unordered: bool,
    /// Whether this is the first fragment of the message (B bit).
    pub beginning: bool,
    /// Whether this is the last fragment of the message (E bit).
    pub ending: bool,
    /// Whether the receiver should send a SACK without delay (I bit).
    pub immediate: bool,
    /// User data of the fragment. It must not be empty on the wire. The decoder accepts empty user
    /// data nevertheless, see [`Data::has_no_user_data`].
    pub user_data: B,
}

impl Data {
    /// The I bit in the chunk flags. It means that the receiver should send a SACK without delay.
    pub const IMMEDIATE: u8 = IMMEDIATE;

    /// Length of the chunk before its user data, bytes.
    pub const HEADER: usize = 16;

    /// Whether the chunk has no user data. The receiver must answer such a chunk with an ABORT and
    /// the cause No User Data (RFC 9260 §6.2).
    #[inline]
    pub fn has_no_user_data(&self) -> bool {
        self.user_data.is_empty()
    }

    /// Decodes a chunk of type DATA in the same way as
    /// [`Chunk::decode`](crate::chunk::Chunk::decode).
    ///
    /// # Errors
    /// The chunk is shorter than its header.
    #[inline]
    pub fn decode(raw: RawChunk) -> Result<Self, DecodeError> {
        let fixed = *fixed_part::<FIXED>(&raw)?;
        let flags = raw.flags;
        let mut user_data = raw.into_value();
        user_data.advance(FIXED);
        Ok(Self::of(flags, fixed, user_data))
    }

    /// Like [`Data::decode`], for a chunk that is still part of its packet. Only the user data
    /// becomes a slice of the datagram.
    ///
    /// # Errors
    /// The chunk is shorter than its header.
    #[inline(always)]
    pub fn read(frame: &Frame<'_>) -> Result<Self, DecodeError> {
        let fixed = *fixed_part_of::<FIXED>(frame)?;
        Ok(Self::of(frame.flags, fixed, frame.value_from(FIXED)))
    }

    /// User data of a chunk that [`Data::view`] decoded, as a slice of the datagram.
    #[inline(always)]
    pub fn slice(frame: &Frame<'_>) -> Bytes {
        frame.value_from(FIXED)
    }
}

impl<'a> Data<&'a [u8]> {
    /// Like [`Data::read`], but borrows the user data. This avoids an update of the datagram's
    /// reference count.
    ///
    /// # Errors
    /// The chunk is shorter than its header.
    #[inline(always)]
    pub fn view(frame: &Frame<'a>) -> Result<Self, DecodeError> {
        let fixed = *fixed_part_of::<FIXED>(frame)?;
        Ok(Self::of(frame.flags, fixed, &frame.value()[FIXED..]))
    }
}

impl<B> Data<B> {
    #[inline(always)]
    fn of(flags: u8, fixed: [u8; FIXED], user_data: B) -> Self {
        let [t0, t1, t2, t3, s0, s1, n0, n1, p0, p1, p2, p3] = fixed;
        Self {
            tsn: Tsn(u32::from_be_bytes([t0, t1, t2, t3])),
            stream_id: u16::from_be_bytes([s0, s1]),
            ssn: Ssn(u16::from_be_bytes([n0, n1])),
            ppid: u32::from_be_bytes([p0, p1, p2, p3]),
            unordered: flags & UNORDERED != 0,
            beginning: flags & BEGINNING != 0,
            ending: flags & ENDING != 0,
            immediate: flags & IMMEDIATE != 0,
            user_data,
        }
    }

    /// This chunk with other user data.
    #[inline(always)]
    pub fn with<C>(&self, user_data: C) -> Data<C> {
        Data {
            tsn: self.tsn,
            stream_id: self.stream_id,
            ssn: self.ssn,
            ppid: self.ppid,
            unordered: self.unordered,
            beginning: self.beginning,
            ending: self.ending,
            immediate: self.immediate,
            user_data,
        }
    }

    #[inline]
    fn flags(&self) -> u8 {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        bit(self.unordered, UNORDERED)
            | bit(self.beginning, BEGINNING)
            | bit(self.ending, ENDING)
            | bit(self.immediate, IMMEDIATE)
    }
}

impl<B: AsRef<[u8]>> Encode for Data<B> {
    #[inline]
    fn encoded_len(&self) -> usize {
        padded(Data::HEADER + self.user_data.as_ref().len())
    }

    #[inline(always)]
    fn encode(&self, out: &mut BytesMut) {
        let user_data = self.user_data.as_ref();
        let length = Data::HEADER + user_data.len();
        let mut header = [0; Data::HEADER];
        header[0..4].copy_from_slice(&chunk_header(kind::DATA, self.flags(), length));
        header[4..8].copy_from_slice(&self.tsn.0.to_be_bytes());
        header[8..10].copy_from_slice(&self.stream_id.to_be_bytes());
        header[10..12].copy_from_slice(&self.ssn.0.to_be_bytes());
        header[12..16].copy_from_slice(&self.ppid.to_be_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(user_data);
        put_padding(out, length);
    }
}
