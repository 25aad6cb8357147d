//! Path MTU: probes and their answers, detection of black holes, and ICMP Packet Too Big (RFC 9260
//! §7.3, RFC 8899).

use std::net::IpAddr;

use anabranch_transport::{Nanos, Transmit};
use anabranch_wire::chunk::{Heartbeat, Pad, kind};
use anabranch_wire::packet::PacketBuilder;
use bytes::BytesMut;

use super::Association;
use super::heartbeat::own_info;
use crate::path::{PathEntry, PathId, PathState, ProbeResult, ProbeSize, mtu};
use crate::tx::Sender;

/// Number of transmissions of a chunk without an acknowledgment after which a black hole is
/// suspected.
const SENT_IN_VAIN: u32 = 3;

impl Association {
    /// Reports that no packet larger than `mtu` bytes, including the IP header, reaches the peer's
    /// address `address` (an ICMP Packet Too Big whose quoted packet belongs to this association;
    /// RFC 9260 §10, RFC 8899 §4.6). From now on packets to `address` do not exceed this size.
    /// Larger chunks in flight are retransmitted in packets that IP may fragment. Values below 576
    /// over IPv4 and 1,280 over IPv6 are ignored. With
    /// [`Config::path_mtu_discovery`](crate::Config::path_mtu_discovery) larger sizes are probed
    /// again after ten minutes.
    ///
    /// Returns whether packets are now smaller than before; `false` if the address is unknown.
    pub(super) fn lower_pmtu(&mut self, now: Nanos, address: IpAddr, mtu: usize) -> bool {
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

    /// Starts the discovery of the MTU of `path`, whose address must be confirmed.
    pub(crate) fn start_discovery(&mut self, now: Nanos, path: PathId) {
        self.forget_probes();
        if let Some(discovery) = &mut self.paths.get_mut(path).discovery {
            discovery.start(now);
        }
    }

    /// Earliest time at which a probe is due, or is considered lost.
    pub(crate) fn pmtu_deadline(&self) -> Option<Nanos> {
        // Discovery is usually off.
        if !self.config.path_mtu_discovery || !self.state.probes_paths() || self.is_mute() {
            return None;
        }
        let mut earliest = Nanos::MAX;
        for (_, entry) in self.paths.iter() {
            if let Some(discovery) = &entry.discovery
                && let Some(at) = discovery.deadline(answers(entry))
            {
                earliest = earliest.min(at);
            }
        }
        (earliest != Nanos::MAX).then_some(earliest)
    }

    pub(crate) fn handle_pmtu_timeout(&mut self, now: Nanos) {
        for path in self.path_ids() {
            let entry = self.paths.get_mut(path);
            let (troubled, comparable) = (!answers(entry), is_comparable(entry));
            let losses = entry.losses.share(entry.carried.chunks);
            let Some(discovery) = &mut entry.discovery else {
                continue;
            };
            discovery.handle_timeout(now, troubled, losses);
            let arrived = self.tx.any_arrived(discovery.compared_data());
            if arrived || !comparable {
                discovery.arrives();
            }
            if discovery.compare(now) {
                self.leave_black_hole(now, path);
            }
        }
    }

    /// Path that must be probed, and the size of the packet including its IP header.
    pub(crate) fn pmtu_probe_due(&self, now: Nanos) -> Option<(PathId, ProbeSize)> {
        if !self.state.probes_paths() {
            return None;
        }
        self.paths
            .iter()
            .filter(|(_, entry)| is_comparable(entry))
            .find_map(|(path, entry)| {
                let discovery = entry.discovery.as_ref()?;
                Some((path, discovery.due(now, answers(entry))?))
            })
    }

    /// Writes a probe: a HEARTBEAT, and a PAD chunk that fills the packet up to the probed size
    /// (RFC 8899 §6.2.1). The loss of a probe does not count as an error of the path.
    pub(crate) fn write_pmtu_probe(
        &mut self,
        now: Nanos,
        (path, size): (PathId, ProbeSize),
        out: &mut BytesMut,
    ) -> Transmit {
        self.forget_probes();
        let nonce = self.random.next_u64();
        let header = self.header_to_peer();
        let encapsulation = self.config.encapsulation;
        let entry = self.paths.get_mut(path);
        let limit = match size {
            ProbeSize::Bytes(size) => mtu::max_packet(size, entry.path.remote, encapsulation),
            ProbeSize::Least => entry.max_packet,
        };
        let rto = entry.rto.rto();
        if let Some(discovery) = &mut entry.discovery {
            discovery.sent(now, nonce, size, rto);
        }
        let info = own_info(path, nonce);
        let signature = self.auth_len_for(&[kind::HEARTBEAT, kind::PAD]) + self.sealing_len();
        let mut packet = PacketBuilder::new(out, header, limit - signature);
        // Neither call can fail, because even the smallest probe has space for its chunks.
        let _ = packet.push(&Heartbeat { info });
        if size != ProbeSize::Least {
            let _ = packet.push(&Pad::of_size(packet.room()));
        }
        let len = self.seal(packet, self.checksum_mode.wanted(false));
        debug_assert!(
            size == ProbeSize::Least || len == limit,
            "the probe has its size"
        );
        self.control.rare().pmtu_probes += 1;
        self.transmit(path, len)
    }

    /// Processes the answer to a probe, which shows that the path carries packets of the probed
    /// size. Returns `None` if the answer matches no probe.
    pub(crate) fn on_pmtu_answer(
        &mut self,
        now: Nanos,
        path: PathId,
        nonce: u64,
    ) -> Option<ProbeResult> {
        self.forget_probes();
        let entry = self.paths.get_mut(path);
        let discovery = entry.discovery.as_mut()?;
        let before = discovery.pmtu();
        let answered = discovery.answered(now, nonce)?;
        let after = discovery.pmtu();
        if after != before {
            entry.set_mtu(&self.config, after);
        }
        Some(answered)
    }

    /// Checks for a black hole after T3-rtx has expired on `path`, or after a chunk was
    /// retransmitted repeatedly (RFC 8899 §4.3).
    pub(crate) fn look_for_black_hole(&mut self, now: Nanos, path: PathId) {
        self.forget_probes();
        let reserved = self.paths.reserved();
        let entry = self.paths.get_mut(path);
        let (remote, rto, most) = (
            entry.path.remote,
            entry.rto.measured(),
            entry.max_user_data(),
        );
        let outstanding = entry.flightsize + entry.marked_bytes;
        let encapsulation = self.config.encapsulation;
        let Some(discovery) = &mut entry.discovery else {
            return;
        };
        if self.tx.any_arrived(discovery.compared_data()) {
            discovery.arrives();
        }
        let Some(lower) = discovery.lower() else {
            return;
        };
        let limit = mtu::max_packet(lower, remote, encapsulation);
        let fits = mtu::max_user_data(mtu::less_reserved(limit, reserved));
        // So little data is outstanding that it fits into a small packet, even together with other
        // chunks. The packet size therefore cannot have caused its loss.
        if 2 * outstanding <= fits as u64 {
            return;
        }
        let earliest = entry.earliest;
        let data = || self.tx.unacknowledged_on(path, earliest, fits + 1..=most);
        if discovery.timed_out(now, rto, data) {
            self.leave_black_hole(now, path);
        }
    }

    /// Reduces the packet size of `path`, because larger packets are lost. Larger chunks in flight
    /// are retransmitted in packets that IP may fragment. Then checks whether packets of the new
    /// size are lost as well.
    fn leave_black_hole(&mut self, now: Nanos, path: PathId) {
        let entry = self.paths.get_mut(path);
        if let Some(discovery) = &entry.discovery {
            let mtu = discovery.pmtu();
            entry.set_mtu(&self.config, mtu);
        }
        if let Some(tx) = self.tx.get_mut() {
            tx.mark_oversize(path, &mut self.paths);
        }
        self.look_for_black_hole(now, path);
    }

    /// After losses, looks for a black hole on paths with a chunk that was transmitted repeatedly,
    /// without waiting for T3-rtx.
    pub(crate) fn look_for_what_is_in_vain(&mut self, now: Nanos) {
        for path in self.path_ids() {
            let discovers = self.paths.get(path).discovery.is_some();
            let times = |tx: &Sender| tx.times_sent(path, &self.paths);
            if discovers && self.tx.get().map_or(0, times) >= SENT_IN_VAIN {
                self.look_for_black_hole(now, path);
            }
        }
    }
}

/// Whether MTU probes may be sent on the path, so that their loss can be compared with the loss of
/// data. True even for a path whose data is not being acknowledged.
fn is_comparable(entry: &PathEntry) -> bool {
    entry.is_verified() && !entry.disowned
}

/// Whether the path works, so that the loss of a probe must be due to its size.
fn answers(entry: &PathEntry) -> bool {
    entry.state == PathState::Active && entry.error_count == 0
}
