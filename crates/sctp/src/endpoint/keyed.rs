//! What finds an association by something that a packet tells, in the same time however many there are.

#![expect(
    clippy::disallowed_types,
    reason = "its order is not ambient, since its hasher is seeded by the endpoint; and nobody asks for it: there is no way to walk it"
)]

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use siphasher::sip::SipHasher13;

/// Numbers of associations by `K`.
///
/// Peers choose much of what they are found by, their ports and addresses; a table whose places they could foretell would be slow whenever
/// they wished. So the hash is SipHash-1-3 under a key that only the endpoint has. The same seed gives the same key.
#[derive(Debug)]
pub(super) struct Keyed<K>(HashMap<K, u32, Key>);

/// The hash's key.
#[derive(Clone, Copy)]
struct Key([u8; 16]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl BuildHasher for Key {
    type Hasher = SipHasher13;

    #[inline]
    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_key(&self.0)
    }
}

impl<K: Hash + Eq> Keyed<K> {
    pub(super) fn new(key: [u8; 16]) -> Self {
        Self(HashMap::with_hasher(Key(key)))
    }

    #[inline]
    pub(super) fn get(&self, by: &K) -> Option<u32> {
        self.0.get(by).copied()
    }

    pub(super) fn insert(&mut self, by: K, slot: u32) {
        self.0.insert(by, slot);
    }

    pub(super) fn remove(&mut self, by: &K) {
        self.0.remove(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_until_it_is_removed() {
        let mut keyed = Keyed::new([1; 16]);
        (0..1_000_u32).for_each(|by| keyed.insert(by, by + 1));
        (0..1_000).step_by(2).for_each(|by| keyed.remove(&by));
        for by in 0..1_000 {
            let expected = (by % 2 == 1).then_some(by + 1);
            assert_eq!(keyed.get(&by), expected, "{by}");
        }
        keyed.insert(1, 9);
        assert_eq!(keyed.get(&1), Some(9));
    }

    /// Where things stand cannot be foretold without the key, and is the same under the same one.
    #[test]
    fn the_key_decides_where_things_stand() {
        let hashes = |key| (0..100_u32).map(move |by| Key([key; 16]).hash_one(by));
        assert!(hashes(1).eq(hashes(1)));
        let alike = hashes(1).zip(hashes(2)).filter(|(one, two)| one == two);
        assert_eq!(alike.count(), 0);
    }
}
