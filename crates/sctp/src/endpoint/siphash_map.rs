//! Hash map with a secret hash key, so that peers cannot cause collisions.

#![expect(
    clippy::disallowed_types,
    reason = "its order is not ambient, since its hasher is seeded by the endpoint; and nothing observes it: there is no way to walk it"
)]

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash};

use siphasher::sip::SipHasher13;

/// Association numbers by `K`.
///
/// Peers choose their ports and addresses, which are part of the map's keys. A peer that could
/// predict the hashes could cause collisions and slow down all lookups. Therefore the hash is
/// SipHash-1-3 with a key that only the endpoint knows. The same seed yields the same key.
///
/// A single entry is found without hashing or allocation, because a client endpoint usually has one
/// association.
///
/// A table grows by rehashing all n entries into a table of twice the size, so about one of n
/// insertions takes n steps. The entries are verified addresses of associations, which
/// [`Endpoint::set_max_associations`](super::Endpoint::set_max_associations) limits for incoming
/// associations; each association has one address after its handshake, and at most
/// [`Paths::MAX`](crate::path::Paths::MAX). Memory is released as associations end: a table that is
/// less than an eighth full is rebuilt for the remaining entries, and an empty table is freed.
pub(super) struct SipHashMap<K> {
    few: Option<(K, u32)>,
    /// Hash table, present if there are several entries; `few` is then `None`.
    many: Option<Box<Many<K>>>,
}

/// Tables that never had more entries than this are not shrunk.
const KEPT: usize = 64;

struct Many<K> {
    table: HashMap<K, u32, HashKey>,
    /// Maximum number of entries for which the table was allocated. The capacity of the table
    /// itself is unreliable, because removed entries leave tombstones.
    most: usize,
}

/// Secret key of the hash function.
#[derive(Clone, Copy)]
pub(super) struct HashKey(pub(super) [u8; 16]);

impl std::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashKey")
    }
}

impl BuildHasher for HashKey {
    type Hasher = SipHasher13;

    #[inline]
    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_key(&self.0)
    }
}

impl<K: Hash + Eq> Many<K> {
    #[inline(never)]
    fn get(&self, by: &K) -> Option<u32> {
        self.table.get(by).copied()
    }
}

/// Prints only the length, because the order of the entries depends on the key.
impl<K> std::fmt::Debug for SipHashMap<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let few = usize::from(self.few.is_some());
        let len = self.many.as_ref().map_or(few, |it| it.table.len());
        (f.debug_struct("SipHashMap").field("len", &len)).finish_non_exhaustive()
    }
}

impl<K> Default for SipHashMap<K> {
    fn default() -> Self {
        Self {
            few: None,
            many: None,
        }
    }
}

impl<K: Hash + Eq> SipHashMap<K> {
    #[inline]
    pub(super) fn get(&self, by: &K) -> Option<u32> {
        match &self.many {
            Some(many) => many.get(by),
            None => {
                let (key, slot) = self.few.as_ref()?;
                (key == by).then_some(*slot)
            }
        }
    }

    /// Inserts an entry. `secret` must be the same in each call.
    pub(super) fn insert(&mut self, by: K, slot: u32, secret: HashKey) {
        if self.many.is_none() && self.few.as_ref().is_none_or(|(key, _)| *key == by) {
            self.few = Some((by, slot));
            return;
        }
        self.insert_among(by, slot, secret);
    }

    #[inline(never)]
    fn insert_among(&mut self, by: K, slot: u32, secret: HashKey) {
        let many = self.many.get_or_insert_with(|| {
            Box::new(Many {
                table: HashMap::with_hasher(secret),
                most: 0,
            })
        });
        many.table.extend(self.few.take());
        many.table.insert(by, slot);
        many.most = many.most.max(many.table.len());
    }

    /// Like [`Self::insert`], but if `by` is already in the map, leaves the entry unchanged and
    /// returns its value.
    pub(super) fn insert_new(&mut self, by: K, slot: u32, secret: HashKey) -> Option<u32> {
        let Some(many) = &mut self.many else {
            let known = self.get(&by);
            if known.is_none() {
                self.insert(by, slot, secret);
            }
            return known;
        };
        match many.table.entry(by) {
            Entry::Occupied(known) => return Some(*known.get()),
            Entry::Vacant(place) => place.insert(slot),
        };
        many.most = many.most.max(many.table.len());
        None
    }

    pub(super) fn remove(&mut self, by: &K) {
        let Some(many) = &mut self.many else {
            if self.get(by).is_some() {
                self.few = None;
            }
            return;
        };
        many.table.remove(by);
        let left = many.table.len();
        if left == 0 {
            self.many = None;
        } else if many.most > KEPT && left < many.most / 8 {
            // The table is shrunk to twice the number of entries, so that many insertions or
            // removals precede the next change of size.
            many.most = 2 * left;
            many.table.shrink_to(many.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: HashKey = HashKey([1; 16]);

    #[test]
    fn each_is_found_until_it_is_removed() {
        let mut keyed = SipHashMap::default();
        (0..1_000_u32).for_each(|by| keyed.insert(by, by + 1, SECRET));
        (0..1_000).step_by(2).for_each(|by| keyed.remove(&by));
        for by in 0..1_000 {
            let expected = (by % 2 == 1).then_some(by + 1);
            assert_eq!(keyed.get(&by), expected, "{by}");
        }
        assert_eq!(format!("{keyed:?}"), "SipHashMap { len: 500, .. }");
        keyed.insert(1, 9, SECRET);
        assert_eq!(keyed.get(&1), Some(9));
        assert_eq!(keyed.insert_new(1, 8, SECRET), Some(9));
        assert_eq!(keyed.insert_new(2, 8, SECRET), None);
        assert_eq!((keyed.get(&1), keyed.get(&2)), (Some(9), Some(8)));
    }

    #[test]
    fn one_alone_is_found_as_others_are() {
        let mut keyed = SipHashMap::default();
        keyed.remove(&1);
        keyed.insert(1, 5, SECRET);
        keyed.insert(1, 6, SECRET);
        keyed.remove(&2);
        assert_eq!((keyed.get(&1), keyed.get(&2)), (Some(6), None));
        assert_eq!(keyed.insert_new(1, 8, SECRET), Some(6));
        assert_eq!(keyed.insert_new(2, 7, SECRET), None);
        assert_eq!((keyed.get(&1), keyed.get(&2)), (Some(6), Some(7)));
        keyed.remove(&1);
        assert_eq!((keyed.get(&1), keyed.get(&2)), (None, Some(7)));
        keyed.remove(&2);
        assert!(keyed.many.is_none() && keyed.few.is_none());
    }

    /// The memory shrinks with the number of entries, but not at each removal.
    #[test]
    fn the_map_shrinks_as_entries_are_removed() {
        let mut keyed = SipHashMap::default();
        (0..100_000_u32).for_each(|by| keyed.insert(by, by, SECRET));
        let most = |keyed: &SipHashMap<u32>| keyed.many.as_ref().map_or(0, |it| it.most);
        let (mut remade, mut before) = (0, most(&keyed));
        assert_eq!(before, 100_000);
        for by in 0..100_000 {
            keyed.remove(&by);
            let left = 99_999 - by as usize;
            assert!(most(&keyed) <= (8 * left + 8).max(KEPT), "{left} left");
            if most(&keyed) != before {
                remade += 1;
                before = most(&keyed);
                let room = keyed.many.as_ref().map_or(0, |it| it.table.capacity());
                assert!(room <= 2 * before + 8, "room for {room}, {left} left");
            }
            assert_eq!(keyed.get(&99_999).is_some(), left > 0);
        }
        assert!((5..=10).contains(&remade), "{remade}");
    }

    /// Hashes are unpredictable without the key, and reproducible with it.
    #[test]
    fn the_key_decides_where_things_stand() {
        let hashes = |key| (0..100_u32).map(move |by| HashKey([key; 16]).hash_one(by));
        assert!(hashes(1).eq(hashes(1)));
        let alike = hashes(1).zip(hashes(2)).filter(|(one, two)| one == two);
        assert_eq!(alike.count(), 0);
    }
}
