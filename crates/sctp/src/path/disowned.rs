//! Addresses that turn out not to be the peer's.

use std::net::IpAddr;

use super::{Heartbeat, PathEntry, PathId, PathState, Paths};

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

    /// Takes all paths out of use but those to `addresses`, which are what the peer says it has, if one of these is verified:
    /// those out of use, oldest first.
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
