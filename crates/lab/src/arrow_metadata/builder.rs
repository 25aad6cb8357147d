//! Writer of flatbuffers. It writes from the end to the start of the buffer: an offset is positive,
//! so its target must be written before the offset.

/// Value of a field of a table.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    Byte(u8),
    Short(u16),
    Word(u32),
    /// Offset to the data at this position.
    Offset(u32),
}

/// A buffer. Positions are distances from its end.
#[derive(Debug, Default)]
pub(super) struct Builder {
    /// The bytes in reverse order.
    reversed: Vec<u8>,
    /// Vtables with their positions; tables with equal vtables share one.
    vtables: Vec<(Vec<u8>, u32)>,
}

/// Alignment of offsets and lengths, which no field here exceeds.
const WORD: usize = 4;

impl Builder {
    fn position(&self) -> u32 {
        u32::try_from(self.reversed.len()).unwrap_or(u32::MAX)
    }

    /// Pads, so that the buffer is aligned after `length` more bytes.
    fn align(&mut self, length: usize, alignment: usize) {
        let end = (self.reversed.len() + length).next_multiple_of(alignment);
        self.reversed.resize(end - length, 0);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.reversed.extend(bytes.iter().rev());
    }

    fn scalar(&mut self, bytes: &[u8]) -> u32 {
        self.align(bytes.len(), bytes.len());
        self.bytes(bytes);
        self.position()
    }

    fn word(&mut self, word: u32) -> u32 {
        self.scalar(&word.to_le_bytes())
    }

    fn offset(&mut self, target: u32) -> u32 {
        self.align(WORD, WORD);
        let offset = self.position() + WORD as u32 - target;
        self.word(offset)
    }

    /// Writes a string.
    pub(super) fn text(&mut self, text: &str) -> u32 {
        self.align(text.len() + 1, WORD);
        self.bytes(&[0]);
        self.bytes(text.as_bytes());
        self.word(u32::try_from(text.len()).unwrap_or(u32::MAX))
    }

    /// Writes a vector of tables.
    pub(super) fn vector(&mut self, tables: &[u32]) -> u32 {
        self.align(WORD, WORD);
        for &table in tables.iter().rev() {
            self.offset(table);
        }
        self.word(u32::try_from(tables.len()).unwrap_or(u32::MAX))
    }

    /// Writes a table of these fields, each with its index in the schema.
    pub(super) fn table(&mut self, slots: &[(usize, Slot)]) -> u32 {
        let end = self.position();
        let mut written = Vec::new();
        for &(index, slot) in slots {
            let position = match slot {
                Slot::Byte(byte) => self.scalar(&[byte]),
                Slot::Short(short) => self.scalar(&short.to_le_bytes()),
                Slot::Word(word) => self.word(word),
                Slot::Offset(target) => self.offset(target),
            };
            written.push((index, position));
        }
        // Reserves space for the offset to the vtable.
        let table = self.word(0);
        let count = written.iter().map(|(index, _)| index + 1).max();
        let mut vtable = vec![0_u16; 2 + count.unwrap_or_default()];
        vtable[0] = 2 * vtable.len() as u16;
        vtable[1] = (table - end) as u16;
        for (index, position) in written {
            vtable[2 + index] = (table - position) as u16;
        }
        let vtable: Vec<u8> = vtable.iter().flat_map(|it| it.to_le_bytes()).collect();
        let known = self.vtables.iter().find(|(bytes, _)| *bytes == vtable);
        let at = match known {
            Some((_, at)) => *at,
            None => {
                self.bytes(&vtable);
                let at = self.position();
                self.vtables.push((vtable, at));
                at
            }
        };
        // The offset is negative if the vtable is shared, because the vtable then follows the
        // table.
        let offset = at.wrapping_sub(table).to_be_bytes();
        let place = table as usize;
        self.reversed[place - WORD..place].copy_from_slice(&offset);
        table
    }

    /// The bytes of the buffer with this table as its root.
    pub(super) fn finish(mut self, root: u32) -> Vec<u8> {
        self.offset(root);
        self.reversed.reverse();
        self.reversed
    }
}
