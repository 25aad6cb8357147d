//! Addresses that turn out not to be the peer's.

use std::net::IpAddr;

use anabranch_transport::Path;

use super::{Heartbeat, PathEntry, PathId, PathState, Paths};
use crate::config::Config;

impl PathEntry {
    /// Nothing goes here any more, and nothing finds it. Its number stays, as that of an inactive path.
    fn disown(&mut self) {
        self.disowned = true;
        self.verified = false;
        self.state = PathState::Inactive;
        self.heartbeat = Heartbeat::default();
        self.discovery = None;
    }
}

impl Paths {
    /// Takes the path to `remote` out of use, which was never verified: the address is another peer's. `None` if there is none
    /// to take.
    pub(crate) fn disown(&mut self, remote: IpAddr) -> Option<PathId> {
        let id = self.find(remote).filter(|&id| !self.get(id).verified)?;
        self.get_mut(id).disown();
        self.appoint_primary();
        Some(id)
    }

    /// As [`Paths::disown`], of a path that was verified lately.
    pub(crate) fn lose(&mut self, remote: IpAddr) -> Option<PathId> {
        let id = self.find(remote)?;
        self.give_up(id);
        Some(id)
    }

    /// Whether the peer has shown that one of its addresses is its own.
    pub(crate) fn has_verified(&self) -> bool {
        self.iter().any(|(_, entry)| entry.verified)
    }

    /// Whether no path waits to be verified.
    #[inline(never)]
    pub(crate) fn are_confirmed(&self) -> bool {
        let mut entries = self.entries.iter();
        entries.all(|entry| entry.state != PathState::Unconfirmed)
    }

    /// Takes a path out of use: the peer has deleted its address.
    pub(crate) fn give_up(&mut self, id: PathId) {
        self.get_mut(id).disown();
        self.appoint_primary();
    }

    /// As [`Paths::add`]; where there are too many, in place of one that is out of use and has nothing in flight.
    pub(crate) fn add_or_replace(
        &mut self,
        config: &Config,
        path: Path,
        state: PathState,
    ) -> Option<PathId> {
        if self.len() < Paths::MOST {
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

    /// Whether there is one path, in use, and it goes to the only one of `addresses`: so with most peers.
    #[inline]
    pub(crate) fn are_to(&self, addresses: &[IpAddr]) -> bool {
        match (self.entries.only(), addresses) {
            (Some(entry), [address]) => entry.path.remote == *address && !entry.disowned,
            _ => false,
        }
    }

    /// Takes all paths out of use but those to `addresses`, which are what the peer says it has, if one of these is verified:
    /// those out of use, oldest first.
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
                entry.disown();
                id
            })
            .collect();
        self.appoint_primary();
        gone
    }

    /// Where the primary is out of use it is the path that data takes.
    fn appoint_primary(&mut self) {
        if self.get(self.primary()).disowned {
            self.set_primary(self.choose_for_new_data());
        }
    }
}
