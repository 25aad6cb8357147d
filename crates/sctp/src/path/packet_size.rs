//! Packet and chunk sizes of each path (RFC 9260 §6.9, §7.3).

use anabranch_transport::Nanos;

use super::{PathEntry, PathId, PathState, Paths, mtu, pmtu};
use crate::config::Config;

impl PathEntry {
    /// Maximum length in bytes of the user data of one DATA chunk on this path.
    pub fn max_user_data(&self) -> usize {
        mtu::max_user_data(self.max_packet)
    }

    /// Sets the path MTU in bytes, including the IP header.
    pub(crate) fn set_mtu(&mut self, config: &Config, mtu: usize) {
        let remote = self.path.remote;
        let max_packet = mtu::max_packet(mtu, remote, config.encapsulation);
        self.max_packet = mtu::less_reserved(max_packet, self.reserved);
        self.cc.on_mtu(config.window_unit(remote, mtu));
    }
}

impl Paths {
    /// Maximum length in bytes of the user data of one DATA chunk that fits every path, so that it
    /// can be retransmitted on any path (AMDCS minus the chunk header, RFC 9260 §6.9). With path
    /// MTU discovery only paths that may carry data count, because an address that never answered
    /// would keep all packets small.
    #[inline]
    pub fn max_user_data(&self) -> usize {
        if let Some(only) = self.entries.only() {
            return only.max_user_data();
        }
        self.max_user_data_of_all()
    }

    fn max_user_data_of_all(&self) -> usize {
        self.max_user_data.unwrap_or_else(|| {
            let chosen = self.get(self.choose_for_new_data()).max_user_data();
            let usable = |entry: &&PathEntry| {
                matches!(
                    entry.state,
                    PathState::Active | PathState::PotentiallyFailed
                )
            };
            let usable = self.entries.iter().filter(usable);
            usable
                .map(PathEntry::max_user_data)
                .fold(chosen, usize::min)
        })
    }

    /// Processes a report of the network that the MTU of path `id` is at most `mtu` bytes. Returns
    /// `true` if packets become smaller.
    pub(crate) fn lower_mtu(
        &mut self,
        now: Nanos,
        id: PathId,
        mtu: usize,
        config: &Config,
    ) -> bool {
        let entry = self.get_mut(id);
        let before = entry.max_packet;
        match &mut entry.discovery {
            Some(discovery) => {
                if discovery.too_big(now, mtu) {
                    let mtu = discovery.pmtu();
                    entry.set_mtu(config, mtu);
                }
            }
            None => {
                let remote = entry.path.remote;
                let believable = mtu >= pmtu::least(remote.is_ipv6());
                let most = mtu::max_packet(mtu, remote, config.encapsulation);
                if believable && mtu::less_reserved(most, entry.reserved) < before {
                    entry.set_mtu(config, mtu);
                }
            }
        }
        let (after, user_data) = (entry.max_packet, entry.max_user_data());
        if let Some(least) = &mut self.max_user_data {
            *least = user_data.min(*least);
        }
        after < before
    }

    /// Reserves `bytes` bytes of each packet for an AUTH chunk (RFC 4895 §6.2), and reduces
    /// `max_packet` of each path accordingly.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        if std::mem::replace(&mut self.reserved, bytes) == bytes {
            return;
        }
        for entry in self.entries.iter_mut() {
            let whole = entry.max_packet + std::mem::replace(&mut entry.reserved, bytes);
            entry.max_packet = mtu::less_reserved(whole, bytes);
        }
        if let Some(least) = &mut self.max_user_data {
            let all = self.entries.iter().map(PathEntry::max_user_data);
            *least = all.min().unwrap_or(*least);
        }
    }

    /// Replaces path `id` by the only path in `fresh`.
    pub(super) fn replace(&mut self, id: PathId, fresh: Paths) {
        let mut entry = fresh.entries.into_first();
        entry.udp_port = self.udp_port_to(entry.path.remote);
        *self.get_mut(id) = entry;
    }

    /// Number of bytes of each packet reserved for an AUTH chunk; `max_packet` does not include
    /// them.
    pub(crate) fn reserved(&self) -> usize {
        self.reserved
    }
}
