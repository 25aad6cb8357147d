//! Slab of numbered slots. The first slot is stored inline without an allocation, because a client
//! endpoint usually has one association.

use super::intrusive_queue::SlotStorage;

/// Slots, numbered from 0.
#[derive(Debug)]
pub(super) struct Slab<S> {
    first: S,
    others: Vec<S>,
    len: u32,
}

impl<S: Default> Default for Slab<S> {
    fn default() -> Self {
        Self {
            first: S::default(),
            others: Vec::new(),
            len: 0,
        }
    }
}

impl<S: Default> Slab<S> {
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Adds a slot and returns its number.
    pub(super) fn add(&mut self) -> u32 {
        if self.len > 0 {
            self.others.push(S::default());
        }
        self.len += 1;
        self.len - 1
    }

    /// Slot with this number, if it exists. Slot 0 always exists.
    #[inline(always)]
    pub(super) fn get(&self, slot: u32) -> Option<&S> {
        match slot {
            0 => Some(&self.first),
            _ => self.others.get(slot as usize - 1),
        }
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut S> {
        match slot {
            0 => Some(&mut self.first),
            _ => self.others.get_mut(slot as usize - 1),
        }
    }

    /// Like [`Self::get`], for a slot that exists.
    #[inline(always)]
    pub(super) fn of(&self, slot: u32) -> &S {
        match slot {
            0 => &self.first,
            _ => &self.others[slot as usize - 1],
        }
    }

    #[inline(always)]
    pub(super) fn of_mut(&mut self, slot: u32) -> &mut S {
        match slot {
            0 => &mut self.first,
            _ => &mut self.others[slot as usize - 1],
        }
    }
}

impl<S: Default> SlotStorage<S> for Slab<S> {
    #[inline(always)]
    fn at(&mut self, slot: u32) -> Option<&mut S> {
        self.get_mut(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_numbered_as_they_are_added() {
        let mut slots: Slab<u32> = Slab::default();
        assert_eq!(
            (slots.len(), slots.get(0), slots.get(1)),
            (0, Some(&0), None)
        );
        for number in 0..5 {
            assert_eq!(slots.add(), number);
            *slots.of_mut(number) = number + 10;
        }
        assert_eq!(slots.len(), 5);
        for number in 0..5 {
            assert_eq!(slots.get(number), Some(&(number + 10)));
            assert_eq!(*slots.of(number), number + 10);
            assert_eq!(slots.at(number), Some(&mut (number + 10)));
        }
        assert_eq!(slots.get(5), None);
        assert_eq!(slots.get_mut(u32::MAX), None);
    }
}
