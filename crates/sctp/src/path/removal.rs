//! Removal of paths to addresses that do not belong to the peer.

use std::net::IpAddr;

use anabranch_transport::Path;

use super::{Heartbeat, PathEntry, PathId, PathState, Paths};
use crate::config::Config;

impl PathEntry {
    /// Disables the path: no packets are sent to it, and lookups ignore it. The path keeps its
    /// number, in state inactive.
    fn deactivate(&mut self) {
        self.disowned = true;
        self.verified = false;
        self.state = PathState::Inactive;
        self.heartbeat = Heartbeat::default();
        self.discovery = None;
    }
}

impl Paths {
    /// Disables the unverified path to `remote`, because the address belongs to another peer.
    /// Returns `None` if there is no such path.
    pub(crate) fn remove_unverified(&mut self, remote: IpAddr) -> Option<PathId> {
        let id = self.find(remote).filter(|&id| !self.get(id).verified)?;
        self.get_mut(id).deactivate();
        self.appoint_primary();
        Some(id)
    }

    /// Like [`Paths::remove_unverified`], but also for a verified path.
    pub(crate) fn remove(&mut self, remote: IpAddr) -> Option<PathId> {
        let id = self.find(remote)?;
        self.deactivate(id);
        Some(id)
    }

    /// Whether any address of the peer is verified.
    pub(crate) fn has_verified(&self) -> bool {
        self.iter().any(|(_, entry)| entry.verified)
    }

    /// Whether all paths are confirmed or failed, so that none waits for verification.
    #[inline(never)]
    pub(crate) fn are_confirmed(&self) -> bool {
        let mut entries = self.entries.iter();
        entries.all(|entry| entry.state != PathState::Unconfirmed)
    }

    /// Disables a path because the peer has deleted its address.
    pub(crate) fn deactivate(&mut self, id: PathId) {
        self.get_mut(id).deactivate();
        self.appoint_primary();
    }

    /// Like [`Paths::add`]. If there are too many paths, the new path replaces a disabled path
    /// without data in flight.
    pub(crate) fn add_or_replace(
        &mut self,
        config: &Config,
        path: Path,
        state: PathState,
    ) -> Option<PathId> {
        if self.len() < Paths::MAX {
            return self.add(config, path, state);
        }
        let idle =
            |entry: &PathEntry| entry.disowned && entry.flightsize == 0 && entry.marked_bytes == 0;
        let (id, _) = self.iter().find(|(_, entry)| idle(entry))?;
        let mut fresh = Paths::new(config, path, state);
        fresh.reserve(self.reserved());
        self.replace(id, fresh);
        Some(id)
    }

    /// Whether the only enabled path leads to the only address in `addresses`, which is the usual
    /// case.
    #[inline]
    pub(crate) fn are_to(&self, addresses: &[IpAddr]) -> bool {
        match (self.entries.only(), addresses) {
            (Some(entry), [address]) => entry.path.remote == *address && !entry.disowned,
            _ => false,
        }
    }

    /// Disables all paths except those to `addresses`, the list in the peer's INIT ACK. Has no
    /// effect if none of `addresses` is verified. Returns the disabled paths, oldest first.
    #[inline(never)]
    pub(crate) fn keep_only(&mut self, addresses: &[IpAddr]) -> Vec<PathId> {
        let kept = |entry: &PathEntry| entry.disowned || addresses.contains(&entry.path.remote);
        let some_verified = self
            .iter()
            .any(|(_, entry)| kept(entry) && entry.is_verified());
        if !some_verified {
            return Vec::new();
        }
        let gone: Vec<_> = self
            .iter_mut()
            .filter(|(_, entry)| !kept(entry))
            .map(|(id, entry)| {
                entry.deactivate();
                id
            })
            .collect();
        self.appoint_primary();
        gone
    }

    /// If the primary path is disabled, makes the path for new data the primary.
    fn appoint_primary(&mut self) {
        if self.get(self.primary()).disowned {
            self.set_primary(self.choose_for_new_data());
        }
    }
}
