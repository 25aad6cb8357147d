//! Bitmap of TSNs after the cumulative TSN.

/// Number of 64-bit words per page.
pub(super) const WORDS: usize = 64;

/// One page of the bitmap: 4,096 TSNs, one bit each.
#[derive(Debug)]
pub(super) struct TsnBitmap {
    pub words: [u64; WORDS],
    /// Bit masks of the words that have any bit set, and of the words that have all bits set.
    pub some: u64,
    pub full: u64,
}

impl Default for TsnBitmap {
    /// Page with all bits clear.
    fn default() -> Self {
        Self {
            words: [0; WORDS],
            some: 0,
            full: 0,
        }
    }
}

impl TsnBitmap {
    pub fn set(&mut self, word: usize, bit: u32) {
        self.words[word] |= 1 << bit;
        self.some |= 1 << word;
        if self.words[word] == u64::MAX {
            self.full |= 1 << word;
        }
    }

    /// Clears the bits in `mask`. Returns whether the page is now empty.
    pub fn clear(&mut self, word: usize, mask: u64) -> bool {
        self.words[word] &= !mask;
        self.full &= !(1 << word);
        if self.words[word] == 0 {
            self.some &= !(1 << word);
        }
        self.some == 0
    }
}
