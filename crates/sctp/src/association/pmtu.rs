//! Path MTU: the network's word is taken (RFC 9260 §7.3, §10 ICMP7).

use std::net::IpAddr;

use anabranch_transport::Nanos;

use super::Association;

impl Association {
    /// The network says that nothing larger than `mtu` bytes, IP header included, reaches the peer's address `address`.
    /// Packets to it are no larger from now on, but for chunks cut before, which IP must fragment (RFC 9260 §6.9). Less than
    /// 576 over IPv4 and 1,280 over IPv6 is not believed.
    ///
    /// Returns whether packets are smaller now; not so where there is no such address.
    pub fn lower_pmtu(&mut self, now: Nanos, address: IpAddr, mtu: usize) -> bool {
        let _ = now;
        match self.paths.find(address) {
            Some(path) => self.paths.lower_mtu(path, mtu, &self.config),
            None => false,
        }
    }
}
