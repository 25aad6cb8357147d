//! Source addresses of packets (RFC 5061 §5.3).

use std::net::IpAddr;
use std::sync::Arc;

use anabranch_transport::{Nanos, Path};

use super::super::{Association, ControlTask, Reply};
use crate::config::nearest;
use crate::event::Event;
use crate::path::{PathEntry, PathId, PathState};

impl Association {
    /// Local addresses known to the peer, oldest first: the announced addresses, or the source
    /// addresses of packets if none were announced. Empty if the operating system chooses the
    /// address.
    pub fn local_addresses(&self) -> Vec<IpAddr> {
        if let Some(changes) = self.address_changes().filter(|it| it.sender.has_begun()) {
            return changes.sender.own().to_vec();
        }
        if !self.config.addresses.is_empty() {
            return self.config.addresses.clone();
        }
        let mut known = Vec::new();
        for (_, entry) in self.paths.iter() {
            let local = entry.path.local;
            if !local.is_unspecified() && !known.contains(&local) {
                known.push(local);
            }
        }
        known
    }

    /// Whether the peer has an address of the family of one of `addresses`.
    pub(super) fn reaches_peer(&self, addresses: &[IpAddr]) -> bool {
        let mut remotes = self.paths.addresses();
        remotes.any(|remote| addresses.iter().any(|it| it.is_ipv4() == remote.is_ipv4()))
    }

    /// Records the local addresses that were announced to the peer.
    pub(in crate::association) fn take_addresses(&mut self, own: &[IpAddr]) {
        if self.config.addresses != own {
            let mut config = (*self.config).clone();
            config.addresses = own.to_vec();
            self.config = Arc::new(config);
        }
    }

    /// Whether only ASCONFs may be sent, because this side has no source address left that the peer
    /// has accepted.
    pub(in crate::association) fn is_mute(&self) -> bool {
        self.pending_control.has(ControlTask::NoSourceAddress)
    }

    /// Whether sending of data and SACKs is suspended, because there is no usable source or
    /// destination address.
    pub(in crate::association) fn is_held(&self) -> bool {
        self.is_mute() || self.pending_control.has(ControlTask::NoVerifiedPath)
    }

    /// Applies a requested or completed change of the local addresses. Each path uses the permitted
    /// source address that has the longest prefix in common with the destination; a path without a
    /// permitted source address is removed. If no path has such an address, only the ASCONF is sent
    /// until the peer has accepted another address.
    pub(super) fn settle_sources(&mut self, now: Nanos) {
        let Some(asking) = self.asking_mut().filter(|it| it.has_begun()) else {
            return;
        };
        let usable = asking.usable();
        let was_mute = self.is_mute();
        self.forget_probes();
        if !self.reaches_peer(&usable) {
            self.pending_control.set(ControlTask::NoSourceAddress);
            (self.replies).change(|it| it.retain(|reply| matches!(reply, Reply::AsconfAck { .. })));
            // Timeouts on the old route say nothing about the new route.
            let config = Arc::clone(&self.config);
            for (_, entry) in self.paths.iter_mut() {
                entry.forget_timeouts(&config);
            }
            return;
        }
        self.pending_control.clear(ControlTask::NoSourceAddress);
        self.take_addresses(&usable);
        let ours =
            |(id, entry): (PathId, &PathEntry)| (!entry.disowned).then_some((id, entry.path));
        let paths: Vec<_> = self.paths.iter().filter_map(ours).collect();
        for (id, Path { local, remote }) in paths {
            match nearest(
                &usable,
                remote,
                Some(local).filter(|it| usable.contains(it)),
            ) {
                Some(nearest) if nearest != local || was_mute => {
                    self.move_path(now, id, nearest, was_mute);
                }
                Some(_) => {}
                None => {
                    self.remove_path(now, id);
                    if let Some(asking) = self.asking_mut() {
                        asking.lose(remote);
                    }
                }
            }
        }
        self.regain_paths(&usable);
        self.advance_shutdown(now);
    }

    /// Changes the source address of packets to `id` to `local`. If only ASCONFs could be sent
    /// before (`was_mute`), data in flight is considered lost, because its SACKs may have been sent
    /// to an unusable address.
    fn move_path(&mut self, now: Nanos, id: PathId, local: IpAddr, was_mute: bool) {
        let config = Arc::clone(&self.config);
        if was_mute {
            self.tx.lose_path(now, id, &mut self.paths, &mut self.trace);
        }
        let entry = self.paths.get_mut(id);
        entry.change_local_address(&config, local);
        if entry.t3_deadline.is_some() {
            entry.start_t3(now);
        }
        let known = entry.state != PathState::Unconfirmed;
        self.heartbeat_mut(id).request();
        if known {
            self.start_discovery(now, id);
        }
        self.note_data_path(now);
    }

    /// Restores those removed addresses of the peer that the local addresses in `usable` can reach
    /// again. They were removed because no local address had their family. They must be verified
    /// again.
    fn regain_paths(&mut self, usable: &[IpAddr]) {
        let Some(asking) = self.asking_mut() else {
            return;
        };
        let back = asking.regain(|remote| nearest(usable, remote, None).is_some());
        let config = Arc::clone(&self.config);
        for remote in back {
            if let Some(local) = nearest(usable, remote, None)
                && let Some(id) = self.paths.add_or_replace(
                    &config,
                    Path::new(local, remote),
                    PathState::Unconfirmed,
                )
            {
                self.addresses_changed = true;
                self.heartbeat_mut(id).request();
                let address = remote;
                self.events
                    .push_back(Event::PeerAddressAdded { path: id, address });
            }
        }
    }

    /// Destination and source address of the outstanding ASCONF. The source alternates after each
    /// timeout between an existing address that the ASCONF does not remove and an address that it
    /// adds (RFC 5061 §5.3 F1, F6).
    pub(super) fn way_of_asconf(&self) -> Option<(PathId, Path)> {
        let asking = &self.address_changes()?.sender;
        let retry = asking.retry()?;
        let (usable, adding) = (asking.usable(), asking.adding());
        let bound: Vec<_> = asking.source().into_iter().collect();
        let mut sources = match bound[..] {
            [] => vec![&usable, &adding],
            _ => vec![&bound],
        };
        if retry.retransmissions % 2 == 1 {
            sources.reverse();
        }
        let first = self.paths.verified(retry.path);
        let all = || [first].into_iter().chain(self.path_ids());
        let ours = |id: &PathId| !self.paths.get(*id).disowned;
        let mut ways: Vec<_> = all().filter(ours).collect();
        // If the addresses of both ends have changed, perhaps no path is verified, because an end
        // that may send only ASCONFs cannot verify paths.
        if ways.iter().any(|&id| self.paths.get(id).is_verified()) {
            ways.retain(|&id| self.paths.get(id).is_verified());
        }
        sources.into_iter().find_map(|sources| {
            ways.iter().find_map(|&id| {
                let Path { local, remote } = self.paths.get(id).path;
                let preferred = Some(local).filter(|it| sources.contains(it));
                let source = nearest(sources, remote, preferred)?;
                Some((id, Path::new(source, remote)))
            })
        })
    }
}
