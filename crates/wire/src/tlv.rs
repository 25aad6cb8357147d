//! Type-length-value lists. Parameters (RFC 9260 §3.2.1) and error causes (§3.3.10) have the same
//! format. Therefore one iterator and one writer serve both.

use std::marker::PhantomData;

use bytes::{Buf, Bytes, BytesMut};

use crate::encode::{Encode, Full, padded, put_padding, tlv_header};

/// Length of the type and length fields, bytes.
pub const HEADER: usize = 4;

/// Maximum length of a list in bytes: 65,535 without the fixed part of an INIT and the common
/// header.
pub const MAX_LIST: usize = 65_535 - 20 - 12;

/// An encoded entry whose value is not yet decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tlv {
    /// Entry type.
    pub kind: u16,
    whole: Bytes,
}

impl Tlv {
    /// Creates an entry.
    ///
    /// # Errors
    /// [`Full`] if `value` exceeds the maximum length of a list.
    pub fn new(kind: u16, value: &[u8]) -> Result<Self, Full> {
        let length = HEADER + value.len();
        if length > MAX_LIST {
            return Err(Full);
        }
        let mut whole = BytesMut::with_capacity(length);
        whole.extend_from_slice(&tlv_header(kind, length));
        whole.extend_from_slice(value);
        Ok(Self {
            kind,
            whole: whole.freeze(),
        })
    }

    /// Value without header and padding.
    pub fn value(&self) -> &[u8] {
        &self.whole[HEADER..]
    }

    /// Value without header and padding, as a slice of the datagram.
    pub fn into_value(mut self) -> Bytes {
        self.whole.advance(HEADER);
        self.whole
    }

    /// Like [`Tlv::whole`], as a slice of the datagram.
    pub fn into_whole(self) -> Bytes {
        self.whole
    }

    /// The encoded entry without padding. If its type is not recognized, these bytes are returned
    /// to the sender.
    pub fn whole(&self) -> &Bytes {
        &self.whole
    }
}

impl Encode for Tlv {
    fn encoded_len(&self) -> usize {
        padded(self.whole.len())
    }

    fn encode(&self, out: &mut BytesMut) {
        out.extend_from_slice(&self.whole);
        put_padding(out, self.whole.len());
    }
}

/// Overwrites the first bytes of `entry` with the header of an entry of type `kind`. The value must
/// already be in `entry`, after space for the header.
///
/// # Errors
/// [`Full`] if `entry` is too short for the header, or longer than a list may be.
pub fn put_header(kind: u16, entry: &mut [u8]) -> Result<(), Full> {
    let length = entry.len();
    if !(HEADER..=MAX_LIST).contains(&length) {
        return Err(Full);
    }
    entry[..HEADER].copy_from_slice(&tlv_header(kind, length));
    Ok(())
}

/// Decoding error of a list entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlvError {
    /// Fewer bytes are left than the length of a header. The iteration ends.
    #[error("{remaining} bytes left where an entry's header needs 4")]
    Truncated {
        /// Number of bytes left.
        remaining: usize,
    },
    /// The length field is less than the length of the header. The iteration ends.
    #[error("entry of type {kind:#06x} says its length is {length}, less than its header")]
    LengthTooSmall {
        /// Type of the entry.
        kind: u16,
        /// Value of the length field.
        length: u16,
    },
    /// The entry is longer than the rest of its chunk or cause. The iteration ends.
    #[error(
        "entry of type {kind:#06x} says its length is {length}, but {remaining} bytes are left"
    )]
    PastEnd {
        /// Type of the entry.
        kind: u16,
        /// Value of the length field.
        length: u16,
        /// Number of bytes left, header included.
        remaining: usize,
    },
    /// The header is valid, but the length is invalid for the type. The iteration continues.
    #[error("entry of type {kind:#06x} cannot have a length of {length}")]
    BadLength {
        /// Type of the entry.
        kind: u16,
        /// Length, header included.
        length: usize,
    },
    /// The entry should be an address parameter, but has another type. The iteration continues.
    #[error("entry of type {kind:#06x} holds no address")]
    NoAddress {
        /// Type of the entry.
        kind: u16,
    },
}

impl TlvError {
    /// Whether entries after this error cannot be found, because the length of the entry is not
    /// known.
    pub const fn ends_walk(self) -> bool {
        !matches!(self, Self::BadLength { .. } | Self::NoAddress { .. })
    }
}

/// A decoded entry.
pub trait TlvItem: Encode + Sized {
    /// Decodes the value. An entry of unknown type is not changed.
    ///
    /// # Errors
    /// [`TlvError::BadLength`] if the value is invalid for its type.
    fn decode(tlv: Tlv) -> Result<Self, TlvError>;
}

/// An encoded list. It is decoded only during iteration.
#[derive(Clone, PartialEq, Eq)]
pub struct TlvList<T> {
    bytes: Bytes,
    items: PhantomData<fn() -> T>,
}

impl<T: TlvItem> TlvList<T> {
    /// An empty list.
    pub const fn empty() -> Self {
        Self::from_bytes(Bytes::new())
    }

    /// The list in `bytes`, which are not checked here, so errors are found only during iteration.
    /// The padding of the last entry is optional (RFC 9260 §3.2).
    pub const fn from_bytes(bytes: Bytes) -> Self {
        Self {
            bytes,
            items: PhantomData,
        }
    }

    /// A list of those `items` that fit into [`MAX_LIST`] bytes.
    pub fn of(items: &[T]) -> Self {
        Self::fitting(items, MAX_LIST)
    }

    /// A list of those `items` that fit into `limit` bytes.
    pub fn fitting(items: &[T], limit: usize) -> Self {
        let mut writer = TlvWriter::new(limit);
        for item in items {
            // An entry that does not fit is omitted, as documented. A later, shorter one may still
            // fit.
            let _ = writer.push(item);
        }
        writer.finish()
    }

    /// Iterates over the entries. The iterator ends after an error for which
    /// [`TlvError::ends_walk`] returns true.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter {
            raw: self.raw(),
            items: PhantomData,
        }
    }

    /// Iterates over the entries without decoding their values.
    pub fn raw(&self) -> Walk<'_> {
        Walk {
            bytes: &self.bytes,
            at: 0,
        }
    }

    /// Whether the list has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The encoded list. The padding of the last entry may be missing.
    pub fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl<T: TlvItem> Default for TlvList<T> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<T: TlvItem + std::fmt::Debug> std::fmt::Debug for TlvList<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: TlvItem> IntoIterator for &'a TlvList<T> {
    type Item = Result<T, TlvError>;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// Iterator over a list, see [`TlvList::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a, T> {
    raw: Walk<'a>,
    items: PhantomData<fn() -> T>,
}

impl<T: TlvItem> Iterator for Iter<'_, T> {
    type Item = Result<T, TlvError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.raw.next()?.and_then(T::decode))
    }
}

/// Iterator over a list that does not decode the values, see [`TlvList::raw`].
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    bytes: &'a Bytes,
    at: usize,
}

impl Iterator for Walk<'_> {
    type Item = Result<Tlv, TlvError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return None;
        }
        let entry = frame(rest);
        let item = entry.map(|(kind, length)| Tlv {
            kind,
            whole: self.bytes.slice(self.at..self.at + length),
        });
        self.at = match entry {
            Ok((_, length)) => self.bytes.len().min(self.at + padded(length)),
            Err(_) => self.bytes.len(),
        };
        Some(item)
    }
}

/// Type and length of the entry at the beginning of `rest`. The length includes the header and does
/// not exceed `rest`.
fn frame(rest: &[u8]) -> Result<(u16, usize), TlvError> {
    let remaining = rest.len();
    let Some(&[a, b, c, d]) = rest.first_chunk::<HEADER>() else {
        return Err(TlvError::Truncated { remaining });
    };
    let (kind, length) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    match usize::from(length) {
        ..HEADER => Err(TlvError::LengthTooSmall { kind, length }),
        needed if needed > remaining => Err(TlvError::PastEnd {
            kind,
            length,
            remaining,
        }),
        needed => Ok((kind, needed)),
    }
}

/// Writer of a list with a length limit. The limit holds even if the list repeats input of the
/// peer.
#[derive(Debug)]
pub struct TlvWriter {
    bytes: BytesMut,
    last: usize,
    limit: usize,
}

impl TlvWriter {
    /// Creates a writer of a list with at most `limit` bytes, and at most [`MAX_LIST`].
    pub fn new(limit: usize) -> Self {
        Self {
            bytes: BytesMut::new(),
            last: 0,
            limit: limit.min(MAX_LIST),
        }
    }

    /// Like [`TlvWriter::new`], but the list begins with an entry of type `kind`. Its value must
    /// already be in `entry`, after [`HEADER`] bytes of space for its header. A long value
    /// therefore need not be copied.
    ///
    /// # Errors
    /// [`Full`] if the entry does not fit, or has no space for its header.
    pub fn begun_by(kind: u16, mut entry: BytesMut, limit: usize) -> Result<Self, Full> {
        let limit = limit.min(MAX_LIST);
        let length = entry.len();
        if padded(length) > limit {
            return Err(Full);
        }
        put_header(kind, &mut entry)?;
        put_padding(&mut entry, length);
        Ok(Self {
            bytes: entry,
            last: 0,
            limit,
        })
    }

    /// Space left in bytes, including padding.
    pub fn room(&self) -> usize {
        self.limit - self.bytes.len()
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// [`Full`] if it does not fit; nothing is written then.
    pub fn push(&mut self, item: &impl TlvItem) -> Result<(), Full> {
        if item.encoded_len() > self.room() {
            return Err(Full);
        }
        self.last = self.bytes.len();
        item.encode(&mut self.bytes);
        Ok(())
    }

    /// Adds an entry of type `kind` with the given value.
    ///
    /// # Errors
    /// [`Full`] if it does not fit; nothing is written then.
    pub fn push_value(&mut self, kind: u16, value: &[u8]) -> Result<(), Full> {
        let length = HEADER + value.len();
        if padded(length) > self.room() {
            return Err(Full);
        }
        self.last = self.bytes.len();
        self.bytes.extend_from_slice(&tlv_header(kind, length));
        self.bytes.extend_from_slice(value);
        put_padding(&mut self.bytes, length);
        Ok(())
    }

    /// Completes the list. It does not include the padding of the last entry, because the chunk
    /// adds that padding and does not count it (RFC 9260 §3.2).
    pub fn finish<T: TlvItem>(mut self) -> TlvList<T> {
        if let Ok((_, length)) = frame(&self.bytes[self.last..]) {
            self.bytes.truncate(self.last + length);
        }
        TlvList::from_bytes(self.bytes.freeze())
    }
}

/// A list of 16-bit numbers that is decoded during iteration.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct U16List(Bytes);

impl U16List {
    /// A list of `numbers`.
    pub fn of(numbers: &[u16]) -> Self {
        Self(
            numbers
                .iter()
                .flat_map(|number| number.to_be_bytes())
                .collect(),
        )
    }

    /// The list in `bytes`; `None` if the number of bytes is odd.
    pub fn from_bytes(bytes: Bytes) -> Option<Self> {
        bytes.len().is_multiple_of(2).then_some(Self(bytes))
    }

    /// The numbers in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u16> + '_ {
        self.0
            .chunks_exact(2)
            .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.len() / 2
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The numbers in network byte order.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }
}

impl std::fmt::Debug for U16List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::{Parameter, Parameters, kind};

    /// A list created by `begun_by` should equal a list to which the same entries were added with
    /// the same limit.
    #[test]
    fn an_entry_in_its_place_is_one_that_was_pushed() {
        let second = Parameter::CookiePreservative(7);
        for length in 0..40 {
            let value = vec![0xab; length];
            let cookie = Parameter::StateCookie(Bytes::from(value.clone()));
            let mut entry = BytesMut::zeroed(HEADER);
            entry.extend_from_slice(&value);
            for limit in 0..60 {
                let mut pushed = TlvWriter::new(limit);
                let begun = TlvWriter::begun_by(kind::STATE_COOKIE, entry.clone(), limit);
                let first = pushed.push(&cookie);
                assert_eq!(first.is_ok(), begun.is_ok(), "{length} in {limit}");
                let Ok(mut begun) = begun else { continue };
                assert_eq!(begun.room(), pushed.room());
                assert_eq!(begun.push(&second), pushed.push(&second));
                let [begun, pushed]: [Parameters; 2] = [begun.finish(), pushed.finish()];
                assert_eq!(begun.as_bytes(), pushed.as_bytes());
            }
        }
        let short = BytesMut::zeroed(HEADER - 1);
        assert!(TlvWriter::begun_by(1, short, 100).is_err());
    }
}
