//! Reader of flatbuffers. The bytes are part of an input file: every position is checked, and a
//! field outside of the buffer is missing.

/// A table of a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'b> {
    bytes: &'b [u8],
    at: usize,
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

/// The position to which the offset at a position leads.
fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    at.checked_add(usize::try_from(word(bytes, at)?).ok()?)
}

/// The root of a buffer.
pub(super) fn root(bytes: &[u8]) -> Option<Table<'_>> {
    let at = follow(bytes, 0)?;
    Some(Table { bytes, at })
}

impl<'b> Table<'b> {
    /// Position of the field with this index in the schema.
    fn field(&self, index: usize) -> Option<usize> {
        let back = i64::from(array(self.bytes, self.at).map(i32::from_le_bytes)?);
        let at = i64::try_from(self.at).ok()?;
        let vtable = usize::try_from(at - back).ok()?;
        let length = array(self.bytes, vtable).map(u16::from_le_bytes)?;
        let slot = 4 + 2 * index;
        if slot + 2 > usize::from(length) {
            return None;
        }
        match array(self.bytes, vtable + slot).map(u16::from_le_bytes)? {
            0 => None,
            offset => Some(self.at + usize::from(offset)),
        }
    }

    /// A field of 8 bits.
    pub(super) fn byte(&self, index: usize) -> Option<u8> {
        array(self.bytes, self.field(index)?).map(|[byte]| byte)
    }

    /// A field of 16 bits.
    pub(super) fn short(&self, index: usize) -> Option<u16> {
        array(self.bytes, self.field(index)?).map(u16::from_le_bytes)
    }

    /// A field of 32 bits.
    pub(super) fn word(&self, index: usize) -> Option<u32> {
        word(self.bytes, self.field(index)?)
    }

    /// A field that is a table.
    pub(super) fn table(&self, index: usize) -> Option<Self> {
        let at = follow(self.bytes, self.field(index)?)?;
        let bytes = self.bytes;
        Some(Table { bytes, at })
    }

    /// The bytes of a field that is a string.
    pub(super) fn text(&self, index: usize) -> Option<&'b [u8]> {
        let at = follow(self.bytes, self.field(index)?)?;
        let length = usize::try_from(word(self.bytes, at)?).ok()?;
        self.bytes.get(at + 4..)?.get(..length)
    }

    /// A field that is a vector of tables.
    pub(super) fn tables(
        &self,
        index: usize,
    ) -> Option<impl ExactSizeIterator<Item = Option<Table<'b>>>> {
        let bytes = self.bytes;
        let at = follow(bytes, self.field(index)?)?;
        let length = usize::try_from(word(bytes, at)?).ok()?;
        // Each element has an offset in the buffer.
        let offsets = bytes.get(at + 4..)?;
        if length > offsets.len() / 4 {
            return None;
        }
        Some((0..length).map(move |element| {
            let at = follow(bytes, at + 4 + 4 * element)?;
            Some(Table { bytes, at })
        }))
    }
}
