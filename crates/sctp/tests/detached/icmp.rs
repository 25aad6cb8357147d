//! ICMP messages about packets of detached associations.

use std::net::IpAddr;

use anabranch_sctp::{DiscardReason, Icmp};

use super::Net;

#[test]
fn an_icmp_message_about_a_packet_is_forwarded() {
    let mut net = Net::new();
    net.up(2, 1);
    let (remote, packet) = net.last.clone();
    let IpAddr::V4(remote) = remote else {
        panic!("{remote}")
    };
    let mut quoted = vec![0; 20];
    (quoted[0], quoted[9]) = (0x45, 132);
    quoted[16..20].copy_from_slice(&remote.octets());
    quoted.extend_from_slice(&packet);
    // ICMP message "protocol unreachable".
    let icmp = |quoted| Icmp {
        v6: false,
        kind: 3,
        code: 2,
        mtu: 0,
        quoted,
    };
    let mut forged = quoted.clone();
    forged[24] ^= 1;
    net.server.handle_icmp(net.now, &icmp(&forged));
    net.drain();
    assert_eq!(net.only_worker().discarded, [(DiscardReason::IcmpTag, 1)]);
    net.server.handle_icmp(net.now, &icmp(&quoted));
    net.drain();
    assert_eq!(net.only_worker().output, ["closed ProtocolUnreachable"]);
    assert!(net.only_worker().is_closed);
}
