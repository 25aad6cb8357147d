//! Sparse table of values by stream number; unused streams need no memory.

/// Number of streams per page.
const PAGE: usize = 64;

/// Values by stream number, in pages of 64 values that are allocated on first use. An access takes
/// constant time.
#[derive(Debug)]
pub(crate) struct StreamTable<T> {
    pages: Vec<Option<Box<[T; PAGE]>>>,
}

impl<T> Default for StreamTable<T> {
    fn default() -> Self {
        Self { pages: Vec::new() }
    }
}

impl<T: Default> StreamTable<T> {
    /// Value of `stream`, if its page was ever used.
    #[inline]
    pub fn get(&self, stream: u16) -> Option<&T> {
        self.pages
            .get(usize::from(stream) / PAGE)?
            .as_ref()?
            .get(usize::from(stream) % PAGE)
    }

    /// Mutable version of [`Self::get`].
    #[inline(always)]
    pub fn get_mut(&mut self, stream: u16) -> Option<&mut T> {
        self.pages
            .get_mut(usize::from(stream) / PAGE)?
            .as_mut()?
            .get_mut(usize::from(stream) % PAGE)
    }

    /// Value of `stream`, created if it does not exist.
    #[inline(always)]
    pub fn entry(&mut self, stream: u16) -> &mut T {
        let (page, slot) = (usize::from(stream) / PAGE, usize::from(stream) % PAGE);
        let is_made = self.pages.get(page).is_some_and(Option::is_some);
        let values = match is_made {
            true => self.pages[page].get_or_insert_with(Self::fresh),
            false => self.make(page),
        };
        &mut values[slot]
    }

    #[cold]
    #[inline(never)]
    fn make(&mut self, page: usize) -> &mut [T; PAGE] {
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        self.pages[page].insert(Self::fresh())
    }

    #[cold]
    #[inline(never)]
    fn fresh() -> Box<[T; PAGE]> {
        Box::new(std::array::from_fn(|_| T::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_has_its_own_value_and_only_pages_touched_exist() {
        let mut table = StreamTable::<u32>::default();
        for stream in [0, 63, 64, 65_535] {
            *table.entry(stream) += u32::from(stream) + 1;
        }
        assert_eq!(
            [0, 63, 64, 65_535].map(|stream| *table.entry(stream)),
            [1, 64, 65, 65_536]
        );
        assert_eq!((table.get(1), table.get(200)), (Some(&0), None));
        assert_eq!(table.pages.iter().flatten().count(), 3);
    }
}
