//! Encoding of packet elements.

use bytes::BytesMut;

/// An encodable element of a packet: a chunk, parameter or cause.
pub trait Encode {
    /// Number of bytes that [`Encode::encode`] appends, including padding to a multiple of 4.
    fn encoded_len(&self) -> usize;

    /// Appends the encoded bytes. An element that is too long for its 16-bit length field must not
    /// be encoded. [`crate::packet::PacketBuilder`] and [`crate::tlv::TlvWriter`] ensure this.
    fn encode(&self, out: &mut BytesMut);
}

/// Error if there is not enough space for an element. The output is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room left in the packet")]
pub struct Full;

/// Rounds `len` up to a multiple of 4 (RFC 9260 §3.2).
#[inline]
pub const fn padded(len: usize) -> usize {
    len.next_multiple_of(4)
}

/// Appends the zero bytes that are needed after `len` bytes to reach a multiple of 4.
#[inline(always)]
pub(crate) fn put_padding(out: &mut BytesMut, len: usize) {
    const ZEROS: [u8; 3] = [0; 3];
    let missing = padded(len) - len;
    if missing > 0 {
        out.extend_from_slice(&ZEROS[..missing]);
    }
}

/// Header of a chunk (RFC 9260 §3.2). `length` includes the header, but not the padding.
#[inline]
pub(crate) fn chunk_header(kind: u8, flags: u8, length: usize) -> [u8; 4] {
    let [high, low] = length_field(length);
    [kind, flags, high, low]
}

/// Header of a parameter or cause (RFC 9260 §3.2.1). `length` includes the header, but not the
/// padding.
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
