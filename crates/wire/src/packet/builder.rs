//! Packet builder.

use bytes::BytesMut;

use crate::checksum;
use crate::encode::{Encode, Full, padded};
use crate::packet::{COMMON_HEADER, CommonHeader, frame};

/// Maximum length of a packet, even if its limit is larger, because length fields have 16 bits.
const MAX_PACKET: usize = 65_532;

/// Builds one packet at the end of a buffer, chunk by chunk, within a length limit.
///
/// The packet is complete after [`finish`](PacketBuilder::finish). If the builder is dropped before
/// that, the buffer returns to its state before [`new`](PacketBuilder::new).
#[derive(Debug)]
pub struct PacketBuilder<'a> {
    out: &'a mut BytesMut,
    start: usize,
    end: usize,
}

impl<'a> PacketBuilder<'a> {
    /// Starts a packet at the end of `out`. `limit` is the maximum length of the SCTP packet in
    /// bytes, including the common header. It is the path MTU without IP and encapsulation headers.
    #[inline(always)]
    pub fn new(out: &'a mut BytesMut, header: CommonHeader, limit: usize) -> Self {
        let start = out.len();
        // One reservation is sufficient for the whole packet. The next packet uses the bytes that
        // remain.
        out.reserve(limit.clamp(COMMON_HEADER, MAX_PACKET));
        out.extend_from_slice(&first_bytes(header));
        Self {
            out,
            start,
            end: start + limit.min(MAX_PACKET) / 4 * 4,
        }
    }

    /// Creates a packet whose chunks are already in `out`, after space for the common header. The
    /// chunks must be complete and padded, and `out` must contain no other bytes.
    ///
    /// # Errors
    /// [`Full`] if there is no space for the header, or the chunks exceed the maximum packet
    /// length.
    pub fn around(out: &'a mut BytesMut, header: CommonHeader) -> Result<Self, Full> {
        let end = out.len();
        if !(COMMON_HEADER..=MAX_PACKET).contains(&end) {
            return Err(Full);
        }
        out[..COMMON_HEADER].copy_from_slice(&first_bytes(header));
        Ok(Self { out, start: 0, end })
    }

    /// Raises the limit so that `more` bytes can be added, for a chunk that cannot be made smaller.
    pub fn make_room(&mut self, more: usize) {
        let most = MAX_PACKET - self.len();
        self.end = self.end.max(self.out.len() + more.min(most));
    }

    /// Space left for chunks, bytes; a multiple of 4.
    #[inline]
    pub fn room(&self) -> usize {
        self.end.saturating_sub(self.out.len())
    }

    /// Number of bytes written so far, including the common header.
    #[inline]
    pub fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// Whether the packet has no chunk yet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == COMMON_HEADER
    }

    /// Adds a chunk.
    ///
    /// # Errors
    /// [`Full`] if there is not enough space; nothing is written then.
    #[inline(always)]
    pub fn push(&mut self, chunk: &impl Encode) -> Result<(), Full> {
        if chunk.encoded_len() > self.room() {
            return Err(Full);
        }
        chunk.encode(self.out);
        Ok(())
    }

    /// Sets the flags of a chunk that is already in the packet. `at` is the offset of the chunk,
    /// which is the value of [`PacketBuilder::len`] before the chunk was added. If `at` is past the
    /// end, the call has no effect.
    #[inline]
    pub fn set_flags(&mut self, at: usize, flags: u8) {
        if let Some(byte) = self.out.get_mut(self.start + at + 1) {
            *byte |= flags;
        }
    }

    /// Raises the limit of the packet by `more` bytes.
    pub fn raise_limit(&mut self, more: usize) {
        self.end = (self.end + more).min(self.start + MAX_PACKET);
    }

    /// Offset of the first chunk for whose type `is_wanted` returns true. The offset is the value
    /// of [`PacketBuilder::len`] before the chunk was added.
    pub fn find(&self, is_wanted: impl Fn(u8) -> bool) -> Option<usize> {
        let packet = &self.out[self.start..];
        let mut at = COMMON_HEADER;
        while let Ok((kind, _, length)) = frame(packet.get(at..)?) {
            if is_wanted(kind) {
                return Some(at);
            }
            at += padded(length);
        }
        None
    }

    /// Inserts `chunk` before the chunk at offset `at`, regardless of the limit.
    pub fn insert(&mut self, at: usize, chunk: &impl Encode) {
        let (at, end) = (self.start + at, self.out.len());
        chunk.encode(self.out);
        self.out[at..].rotate_left(end - at);
    }

    /// The bytes that were written from offset `at` on.
    pub fn written_from(&mut self, at: usize) -> &mut [u8] {
        &mut self.out[self.start + at..]
    }

    /// Inserts space for `front` bytes before the chunks and appends `behind` zeros, regardless of
    /// the limit. Returns the packet without its common header.
    pub fn enclose(&mut self, front: usize, behind: usize) -> &mut [u8] {
        let (at, end) = (self.start + COMMON_HEADER, self.out.len());
        self.out.resize(end + front + behind, 0);
        self.out.copy_within(at..end, at + front);
        &mut self.out[at..]
    }

    /// Completes the packet and returns its length in bytes. If `checksum` is true, the CRC32c is
    /// written (RFC 9260 §6.8). Otherwise the checksum field is 0.
    #[inline(always)]
    pub fn finish(self, checksum: bool) -> usize {
        if checksum {
            checksum::fill(&mut self.out[self.start..]);
        }
        let length = self.len();
        std::mem::forget(self);
        length
    }
}

/// Encoded common header with a zero checksum field.
#[inline(always)]
fn first_bytes(header: CommonHeader) -> [u8; COMMON_HEADER] {
    let mut bytes = [0; COMMON_HEADER];
    bytes[0..2].copy_from_slice(&header.source_port.to_be_bytes());
    bytes[2..4].copy_from_slice(&header.destination_port.to_be_bytes());
    bytes[4..8].copy_from_slice(&header.verification_tag.to_be_bytes());
    bytes
}

impl Drop for PacketBuilder<'_> {
    fn drop(&mut self) {
        self.out.truncate(self.start);
    }
}
