//! What can be written into a packet.

use bytes::BytesMut;

/// Something with a place in a packet: a chunk, a parameter, a cause.
pub trait Encode {
    /// Bytes that [`Encode::encode`] appends, padding to a multiple of 4 included.
    fn encoded_len(&self) -> usize;

    /// Appends the bytes. The length field has 16 bits; what does not fit in it must not be encoded, which
    /// [`crate::packet::PacketBuilder`] and [`crate::tlv::TlvWriter`] see to.
    fn encode(&self, out: &mut BytesMut);
}

/// There is no room left for what was to be added; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room left in the packet")]
pub struct Full;

/// `len` rounded up to a multiple of 4 (RFC 9260 §3.2).
#[inline]
pub const fn padded(len: usize) -> usize {
    len.next_multiple_of(4)
}

/// Appends the zero bytes that bring something of `len` bytes to a multiple of 4.
#[inline(always)]
pub(crate) fn put_padding(out: &mut BytesMut, len: usize) {
    const ZEROS: [u8; 3] = [0; 3];
    let missing = padded(len) - len;
    if missing > 0 {
        out.extend_from_slice(&ZEROS[..missing]);
    }
}

/// A chunk's header (RFC 9260 §3.2). `length` counts the header, not the padding.
#[inline]
pub(crate) fn chunk_header(kind: u8, flags: u8, length: usize) -> [u8; 4] {
    let [high, low] = length_field(length);
    [kind, flags, high, low]
}

/// A parameter's or cause's header (RFC 9260 §3.2.1). `length` counts the header, not the padding.
#[inline]
pub(crate) fn tlv_header(kind: u16, length: usize) -> [u8; 4] {
    let ([a, b], [high, low]) = (kind.to_be_bytes(), length_field(length));
    [a, b, high, low]
}

#[inline]
fn length_field(length: usize) -> [u8; 2] {
    debug_assert!(
        length <= usize::from(u16::MAX),
        "a length of {length} does not fit its field"
    );
    (length as u16).to_be_bytes()
}
