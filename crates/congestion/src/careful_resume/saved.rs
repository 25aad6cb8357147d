//! Saved congestion control parameters, by remote endpoint.

use std::collections::BTreeMap;

use anabranch_transport::Nanos;

/// A set of saved congestion control parameters (RFC 9959, Observing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedParameters {
    /// `saved_cwnd`: bytes that the path delivered in `rtt`.
    pub cwnd: u64,
    /// `saved_rtt`: minimum round-trip time, nanoseconds.
    pub rtt: Nanos,
    /// End of the lifetime, nanoseconds in the driver's time.
    pub expires: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    parameters: SavedParameters,
    /// Whether a flow is using the parameters.
    in_use: bool,
}

/// Store of the saved parameters of a sender, with one set for each remote endpoint. The driver
/// owns the store, and chooses the key that identifies a path, for example a pair of addresses.
///
/// A flow should call [`take`](Self::take) when it begins and [`release`](Self::release) when it
/// has ended. Between these calls no other flow gets the set.
#[derive(Clone, Debug)]
pub struct SavedPaths<Key> {
    entries: BTreeMap<Key, Entry>,
    limit: usize,
}

impl<Key: Ord + Clone> SavedPaths<Key> {
    /// Creates an empty store for at most `limit` paths, but at least one.
    pub fn new(limit: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            limit: limit.max(1),
        }
    }

    /// Parameters for a new flow at `now`. `None` if there are none, if they have expired (then
    /// they are deleted), or if another flow is using them.
    pub fn take(&mut self, now: Nanos, key: &Key) -> Option<SavedParameters> {
        let entry = self.entries.get_mut(key)?;
        if now >= entry.parameters.expires {
            self.entries.remove(key);
            return None;
        }
        let free = !std::mem::replace(&mut entry.in_use, true);
        free.then_some(entry.parameters)
    }

    /// Releases the set that a flow has [taken](Self::take), because the flow has ended. If the
    /// flow found the set to be wrong (`refuted`), the set is deleted.
    pub fn release(&mut self, key: &Key, refuted: bool) {
        if refuted {
            self.entries.remove(key);
        } else if let Some(entry) = self.entries.get_mut(key) {
            entry.in_use = false;
        }
    }

    /// Saves the observations of a flow, which replace the previous set. If the store is full, the
    /// set that expires first is deleted.
    pub fn save(&mut self, key: Key, parameters: SavedParameters) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.parameters = parameters;
            return;
        }
        if self.entries.len() >= self.limit {
            let expiry = |(_, entry): &(&Key, &Entry)| entry.parameters.expires;
            let first = self.entries.iter().min_by_key(expiry);
            if let Some(key) = first.map(|(key, _)| key.clone()) {
                self.entries.remove(&key);
            }
        }
        let in_use = false;
        self.entries.insert(key, Entry { parameters, in_use });
    }

    /// Deletes all sets; to be called when the configuration of the host or of its network has
    /// changed.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// All sets with their keys, for storage.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &SavedParameters)> {
        self.entries.iter().map(|(key, it)| (key, &it.parameters))
    }
}
