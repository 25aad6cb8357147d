//! Path MTU: probes go out and are answered, black holes are noticed, the network's word is taken (RFC 9260 §7.3, RFC 8899).

use std::net::IpAddr;

use anabranch_transport::{Nanos, Transmit};
use anabranch_wire::chunk::{Heartbeat, Pad, kind};
use anabranch_wire::packet::PacketBuilder;
use bytes::BytesMut;

use super::Association;
use super::heartbeat::own_info;
use crate::path::{PathEntry, PathId, PathState, mtu};

/// What was sent so often and is still not acknowledged may have vanished in a black hole.
const SENT_IN_VAIN: u32 = 3;

impl Association {
    /// The network says that nothing larger than `mtu` bytes, IP header included, reaches the peer's address `address` (an
    /// ICMP Packet Too Big, after its quoted packet was found to be ours; RFC 9260 §10, RFC 8899 §4.6). Packets to it are no
    /// larger from now on, and what was too large is sent again, for IP to fragment. Less than 576 over IPv4 and 1,280 over
    /// IPv6 is not believed. With [`Config::path_mtu_discovery`](crate::Config::path_mtu_discovery) a larger size is tried
    /// again after ten minutes.
    ///
    /// Returns whether packets are smaller now; not so where there is no such address.
    pub fn lower_pmtu(&mut self, now: Nanos, address: IpAddr, mtu: usize) -> bool {
        let Some(path) = self.paths.find(address) else {
            return false;
        };
        self.forget_probes();
        let lowered = self.paths.lower_mtu(now, path, mtu, &self.config);
        if lowered && let Some(tx) = self.tx.get_mut() {
            tx.mark_oversize(path, &mut self.paths);
        }
        lowered
    }

    /// Begins to look for the MTU of `path`, which is confirmed.
    pub(crate) fn start_discovery(&mut self, now: Nanos, path: PathId) {
        self.forget_probes();
        if let Some(discovery) = &mut self.paths.get_mut(path).discovery {
            discovery.start(now);
        }
    }

    /// The earliest time that a probe goes, or is taken for lost.
    pub(crate) fn pmtu_deadline(&self) -> Option<Nanos> {
        if !self.state.probes_paths() || self.is_mute() {
            return None;
        }
        let deadlines = self.paths.iter().filter_map(|(_, entry)| {
            let discovery = entry.discovery.as_ref()?;
            discovery.deadline(answers(entry))
        });
        deadlines.min()
    }

    pub(crate) fn handle_pmtu_timeout(&mut self, now: Nanos) {
        for (_, entry) in self.paths.iter_mut() {
            let troubled = !answers(entry);
            if let Some(discovery) = &mut entry.discovery {
                discovery.handle_timeout(now, troubled);
            }
        }
    }

    /// A path that must be probed, and the size of the packet with its IP header.
    pub(crate) fn pmtu_probe_due(&self, now: Nanos) -> Option<(PathId, usize)> {
        if !self.state.probes_paths() {
            return None;
        }
        self.paths
            .iter()
            .filter(|(_, entry)| answers(entry))
            .find_map(|(path, entry)| Some((path, entry.discovery.as_ref()?.due(now)?)))
    }

    /// A probe: HEARTBEAT, and PAD up to the size (RFC 8899 §6.2.1). It is no error of the path if it is lost.
    pub(crate) fn write_pmtu_probe(
        &mut self,
        now: Nanos,
        (path, size): (PathId, usize),
        out: &mut BytesMut,
    ) -> Transmit {
        self.forget_probes();
        let nonce = self.random.next_u64();
        let header = self.header_to_peer();
        let encapsulation = self.config.encapsulation;
        let entry = self.paths.get_mut(path);
        let limit = mtu::max_packet(size, entry.path.remote, encapsulation);
        let rto = entry.rto.rto();
        if let Some(discovery) = &mut entry.discovery {
            discovery.sent(now, nonce, size, rto);
        }
        let info = own_info(path, nonce);
        let signature = self.auth_len_for(&[kind::HEARTBEAT, kind::PAD]);
        let mut packet = PacketBuilder::new(out, header, limit - signature);
        // The smallest probe is larger than the two.
        let _ = packet.push(&Heartbeat { info });
        let _ = packet.push(&Pad::of_size(packet.room()));
        let len = self.seal(packet, self.sums.wanted(false));
        debug_assert_eq!(len, limit, "the probe has its size");
        self.control.seldom().pmtu_probes += 1;
        self.transmit(path, len)
    }

    /// An answer to a probe, if it is one: the path carries packets of that size. When it was sent.
    pub(crate) fn on_pmtu_answer(&mut self, now: Nanos, path: PathId, nonce: u64) -> Option<Nanos> {
        let entry = self.paths.get_mut(path);
        let discovery = entry.discovery.as_mut()?;
        let before = discovery.pmtu();
        let sent = discovery.answered(now, nonce)?;
        let after = discovery.pmtu();
        if after != before {
            entry.set_mtu(&self.config, after);
        }
        Some(sent)
    }

    /// T3-rtx of `path` expired, and what it waits for had been sent `times_sent` times: large packets may vanish there
    /// (RFC 8899 §4.3).
    pub(crate) fn look_for_black_hole(&mut self, now: Nanos, path: PathId, times_sent: u32) {
        let entry = self.paths.get_mut(path);
        let Some(discovery) = &mut entry.discovery else {
            return;
        };
        let in_vain = times_sent >= SENT_IN_VAIN;
        if discovery.timed_out(now, entry.error_count, in_vain) {
            let mtu = discovery.pmtu();
            entry.set_mtu(&self.config, mtu);
        }
    }
}

/// Whether the path is in order, so that a lost probe was lost for its size.
fn answers(entry: &PathEntry) -> bool {
    entry.state == PathState::Active && entry.error_count == 0
}
