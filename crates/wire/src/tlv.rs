//! Lists of type, length, value: parameters (RFC 9260 §3.2.1) and error causes (§3.3.10) share one form, and so one walker
//! and one writer.

use std::marker::PhantomData;

use bytes::{Buf, Bytes, BytesMut};

use crate::encode::{Encode, Full, padded, put_padding, tlv_header};

/// Length of the type and length fields.
pub const HEADER: usize = 4;

/// The most bytes that a list may have: an INIT's fixed part and the common header leave this much of 65,535.
pub const MAX_LIST: usize = 65_535 - 20 - 12;

/// One entry as it lies in the packet, its value not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tlv {
    /// The type.
    pub kind: u16,
    whole: Bytes,
}

impl Tlv {
    /// Builds an entry.
    ///
    /// # Errors
    /// [`Full`] where `value` is longer than a list may be.
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

    /// The value, without header and padding.
    pub fn value(&self) -> &[u8] {
        &self.whole[HEADER..]
    }

    /// The value, without header and padding, as a slice of the datagram.
    pub fn into_value(mut self) -> Bytes {
        self.whole.advance(HEADER);
        self.whole
    }

    /// As [`Tlv::whole`], as a slice of the datagram.
    pub fn into_whole(self) -> Bytes {
        self.whole
    }

    /// The entry with its header and without padding, as it is echoed when it is not recognised.
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

/// Writes the header of an entry of type `kind` over the first bytes of `entry`, behind which its value stands already.
///
/// # Errors
/// [`Full`] where there is no place for it, or the entry is longer than a list may be.
pub fn put_header(kind: u16, entry: &mut [u8]) -> Result<(), Full> {
    let length = entry.len();
    if !(HEADER..=MAX_LIST).contains(&length) {
        return Err(Full);
    }
    entry[..HEADER].copy_from_slice(&tlv_header(kind, length));
    Ok(())
}

/// What is wrong with an entry of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlvError {
    /// Fewer bytes are left than a header has. The walk ends.
    #[error("{remaining} bytes left where an entry's header needs 4")]
    Truncated {
        /// Bytes left.
        remaining: usize,
    },
    /// The length field does not even count the header. The walk ends.
    #[error("entry of type {kind:#06x} says its length is {length}, less than its header")]
    LengthTooSmall {
        /// The entry's type.
        kind: u16,
        /// Its length field.
        length: u16,
    },
    /// The entry reaches past the end of what holds it. The walk ends.
    #[error(
        "entry of type {kind:#06x} says its length is {length}, but {remaining} bytes are left"
    )]
    PastEnd {
        /// The entry's type.
        kind: u16,
        /// Its length field.
        length: u16,
        /// Bytes left, header included.
        remaining: usize,
    },
    /// The frame is sound, but a value of this length cannot be what the type says. The walk goes on.
    #[error("entry of type {kind:#06x} cannot have a length of {length}")]
    BadLength {
        /// The entry's type.
        kind: u16,
        /// Its length, header included.
        length: usize,
    },
    /// The entry should hold an address parameter, and holds something else. The walk goes on.
    #[error("entry of type {kind:#06x} holds no address")]
    NoAddress {
        /// The entry's type.
        kind: u16,
    },
}

impl TlvError {
    /// Whether the frame itself is broken, so that nothing after this entry can be found.
    pub const fn ends_walk(self) -> bool {
        !matches!(
            self,
            TlvError::BadLength { .. } | TlvError::NoAddress { .. }
        )
    }
}

/// An entry with its meaning.
pub trait TlvItem: Encode + Sized {
    /// Reads the value. Types that are not known are kept as they are.
    ///
    /// # Errors
    /// [`TlvError::BadLength`] where the value cannot be what its type says.
    fn decode(tlv: Tlv) -> Result<Self, TlvError>;
}

/// A list as it lies in the packet: a view, read only when walked.
#[derive(Clone, PartialEq, Eq)]
pub struct TlvList<T> {
    bytes: Bytes,
    items: PhantomData<fn() -> T>,
}

impl<T: TlvItem> TlvList<T> {
    /// The list with no entry.
    pub const fn empty() -> Self {
        Self::from_bytes(Bytes::new())
    }

    /// The list that `bytes` holds, whatever they are: errors come to light when it is walked. Padding of the last entry
    /// may be there or not (RFC 9260 §3.2).
    pub const fn from_bytes(bytes: Bytes) -> Self {
        Self {
            bytes,
            items: PhantomData,
        }
    }

    /// The list of `items`, less those that [`MAX_LIST`] has no room for.
    pub fn of(items: &[T]) -> Self {
        Self::fitting(items, MAX_LIST)
    }

    /// The list of `items`, less those that would make it longer than `limit` bytes.
    pub fn fitting(items: &[T], limit: usize) -> Self {
        let mut writer = TlvWriter::new(limit);
        for item in items {
            // An entry left out is what the caller asked for; a later, smaller one may still fit.
            let _ = writer.push(item);
        }
        writer.finish()
    }

    /// Walks the entries. After an error that breaks the frame ([`TlvError::ends_walk`]) there is no further item.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter {
            raw: self.raw(),
            items: PhantomData,
        }
    }

    /// Walks the entries without reading their values.
    pub fn raw(&self) -> Walk<'_> {
        Walk {
            bytes: &self.bytes,
            at: 0,
        }
    }

    /// Whether there is not a byte in it.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes of the list; the last entry's padding may be missing.
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

/// Walks a list, see [`TlvList::iter`].
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

/// Walks a list without reading the values, see [`TlvList::raw`].
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

/// Type and length of the entry that `rest` begins with; the length is at least a header and at most what is left.
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

/// Writes a list that cannot grow past a limit, whatever the peer has sent to be echoed in it.
#[derive(Debug)]
pub struct TlvWriter {
    bytes: BytesMut,
    last: usize,
    limit: usize,
}

impl TlvWriter {
    /// A writer of at most `limit` bytes, or [`MAX_LIST`] if that is less.
    pub fn new(limit: usize) -> Self {
        Self {
            bytes: BytesMut::new(),
            last: 0,
            limit: limit.min(MAX_LIST),
        }
    }

    /// As [`TlvWriter::new`], to go on behind a first entry of type `kind`, which is there but for its header: its value stands in
    /// `entry` behind [`HEADER`] bytes. So a long value is put where it stays.
    ///
    /// # Errors
    /// [`Full`] where it does not fit, or there is no place for its header.
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

    /// Bytes that may still be written, padding included.
    pub fn room(&self) -> usize {
        self.limit - self.bytes.len()
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// [`Full`] where it does not fit; nothing is written then.
    pub fn push(&mut self, item: &impl TlvItem) -> Result<(), Full> {
        if item.encoded_len() > self.room() {
            return Err(Full);
        }
        self.last = self.bytes.len();
        item.encode(&mut self.bytes);
        Ok(())
    }

    /// Adds an entry of type `kind` with that value.
    ///
    /// # Errors
    /// [`Full`] where it does not fit; nothing is written then.
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

    /// The list. The last entry's padding is not part of it: the chunk that holds it pads it and does not count it
    /// (RFC 9260 §3.2).
    pub fn finish<T: TlvItem>(mut self) -> TlvList<T> {
        if let Ok((_, length)) = frame(&self.bytes[self.last..]) {
            self.bytes.truncate(self.last + length);
        }
        TlvList::from_bytes(self.bytes.freeze())
    }
}

/// A list of 16-bit numbers, read in place.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct U16List(Bytes);

impl U16List {
    /// The list of `numbers`.
    pub fn of(numbers: &[u16]) -> Self {
        Self(
            numbers
                .iter()
                .flat_map(|number| number.to_be_bytes())
                .collect(),
        )
    }

    /// The list that `bytes` holds; `None` where their count is odd.
    pub fn from_bytes(bytes: Bytes) -> Option<Self> {
        bytes.len().is_multiple_of(2).then_some(Self(bytes))
    }

    /// The numbers in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u16> + '_ {
        self.0
            .chunks_exact(2)
            .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len() / 2
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The numbers' bytes in network order.
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

    /// A list that was begun by an entry in its place is the one that the same entries are pushed to, with the same limit.
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
