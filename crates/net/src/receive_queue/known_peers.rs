//! Known peers: senders from which an existing association has accepted a packet.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of associations that have recorded each sender. A sender is removed with the last of
/// these associations, so the size of the map is proportional to the number of associations.
#[derive(Debug, Default)]
pub(super) struct KnownPeers(BTreeMap<SocketAddr, u32>);

impl KnownPeers {
    pub(super) fn contains(&self, sender: &SocketAddr) -> bool {
        self.0.contains_key(sender)
    }

    /// Counts one more association that has recorded the sender.
    pub(super) fn insert(&mut self, sender: SocketAddr) {
        *self.0.entry(sender).or_default() += 1;
    }

    /// Counts one association less; removes the sender if it was the last.
    pub(super) fn remove(&mut self, sender: &SocketAddr) {
        if let Some(count) = self.0.get_mut(sender) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(sender);
            }
        }
    }
}

/// Known peers of one shard, shared with the shards that receive packets for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedKnownPeers(Arc<Mutex<KnownPeers>>);

impl SharedKnownPeers {
    fn lock(&self) -> MutexGuard<'_, KnownPeers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn contains(&self, sender: &SocketAddr) -> bool {
        self.lock().contains(sender)
    }

    pub(super) fn insert(&self, sender: SocketAddr) {
        self.lock().insert(sender);
    }

    pub(super) fn remove(&self, sender: &SocketAddr) {
        self.lock().remove(sender);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_is_known_while_one_association_knows_of_it() {
        let mut known = KnownPeers::default();
        let sender = |number: u32| SocketAddr::from((number.to_be_bytes(), 9_899));
        (0..70_000).for_each(|number| known.insert(sender(number)));
        assert!((0..70_000).all(|number| known.contains(&sender(number))));
        known.insert(sender(0));
        (0..70_000).for_each(|number| known.remove(&sender(number)));
        assert!(known.contains(&sender(0)) && known.0.len() == 1);
        known.remove(&sender(0));
        known.remove(&sender(0));
        assert!(known.0.is_empty());
    }
}
