//! Writes packets.

use bytes::BytesMut;

use crate::checksum;
use crate::encode::{Encode, Full, padded};
use crate::packet::{COMMON_HEADER, CommonHeader, frame};

/// The longest packet whatever the limit says: lengths have 16 bits.
const MAX_PACKET: usize = 65_532;

/// Writes one packet at the end of a buffer, chunk by chunk, never longer than its limit.
///
/// The packet is there after [`finish`](PacketBuilder::finish). A builder that is dropped without it leaves the buffer as
/// it was before [`new`](PacketBuilder::new).
#[derive(Debug)]
pub struct PacketBuilder<'a> {
    out: &'a mut BytesMut,
    start: usize,
    end: usize,
}

impl<'a> PacketBuilder<'a> {
    /// Begins a packet at the end of `out`. `limit` is the most bytes the SCTP packet may have, its common header
    /// included (the path's MTU less IP and encapsulation).
    #[inline(always)]
    pub fn new(out: &'a mut BytesMut, header: CommonHeader, limit: usize) -> Self {
        let start = out.len();
        // One reservation serves the whole packet; what the packet leaves free serves the next one.
        out.reserve(limit.clamp(COMMON_HEADER, MAX_PACKET));
        out.extend_from_slice(&first_bytes(header));
        Self {
            out,
            start,
            end: start + limit.min(MAX_PACKET) / 4 * 4,
        }
    }

    /// A packet whose chunks stand in `out` already, behind place for the common header: it is all that `out` has. They are whole, with their
    /// padding.
    ///
    /// # Errors
    /// [`Full`] where there is no such place, or they are more than a packet holds.
    pub fn around(out: &'a mut BytesMut, header: CommonHeader) -> Result<Self, Full> {
        let end = out.len();
        if !(COMMON_HEADER..=MAX_PACKET).contains(&end) {
            return Err(Full);
        }
        out[..COMMON_HEADER].copy_from_slice(&first_bytes(header));
        Ok(Self { out, start: 0, end })
    }

    /// Lets the packet have `more` bytes beyond what is there, whatever its limit: for a chunk that cannot be made smaller.
    pub fn make_room(&mut self, more: usize) {
        let most = MAX_PACKET - self.len();
        self.end = self.end.max(self.out.len() + more.min(most));
    }

    /// Bytes left for chunks, a multiple of 4.
    #[inline]
    pub fn room(&self) -> usize {
        self.end.saturating_sub(self.out.len())
    }

    /// Bytes written so far, the common header included.
    #[inline]
    pub fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// Whether there is no chunk yet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == COMMON_HEADER
    }

    /// Adds a chunk.
    ///
    /// # Errors
    /// [`Full`] where there is no room; nothing is written then.
    #[inline(always)]
    pub fn push(&mut self, chunk: &impl Encode) -> Result<(), Full> {
        if chunk.encoded_len() > self.room() {
            return Err(Full);
        }
        chunk.encode(self.out);
        Ok(())
    }

    /// Sets flags of a chunk that is in the packet already: the one that began at `at`, as [`PacketBuilder::len`] was before
    /// it was pushed. Nothing happens where no chunk can begin.
    #[inline]
    pub fn set_flags(&mut self, at: usize, flags: u8) {
        if let Some(byte) = self.out.get_mut(self.start + at + 1) {
            *byte |= flags;
        }
    }

    /// Lets the packet be longer than its limit by `more` bytes.
    pub fn raise_limit(&mut self, more: usize) {
        self.end = (self.end + more).min(self.start + MAX_PACKET);
    }

    /// Where the first chunk begins whose type `is_wanted`, as [`PacketBuilder::len`] was before it was pushed.
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

    /// Puts `chunk` before the one that begins at `at`, whatever the packet's limit.
    pub fn insert(&mut self, at: usize, chunk: &impl Encode) {
        let (at, end) = (self.start + at, self.out.len());
        chunk.encode(self.out);
        self.out[at..].rotate_left(end - at);
    }

    /// What was written from `at` on.
    pub fn written_from(&mut self, at: usize) -> &mut [u8] {
        &mut self.out[self.start + at..]
    }

    /// Ends the packet and returns its length in bytes. With `checksum` the CRC32c is filled in (RFC 9260 §6.8),
    /// otherwise the field stays 0.
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

/// The common header before the checksum is known.
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
