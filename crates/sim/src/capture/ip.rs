//! Generates the IP header of a simulated packet, for captures. Simulated links carry only
//! payloads, and add the size of the header to the size of the packet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::frame::CapturedPacket;
use crate::ip::{IPV4_HEADER, sum};

/// Appends the header of `packet`.
pub(super) fn write_header(packet: &CapturedPacket<'_>, out: &mut Vec<u8>) {
    match (packet.source, packet.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            write_v4(packet, source, destination, out);
        }
        (source, destination) => write_v6(packet, v6(source), v6(destination), out),
    }
}

/// Returns `address` as an IPv6 address. A world does not mix address families; if it did, the
/// capture would show IPv4-mapped addresses.
fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// Writes an IPv4 header (RFC 791 §3.1) without options, with "don't fragment" set.
fn write_v4(
    packet: &CapturedPacket<'_>,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    out: &mut Vec<u8>,
) {
    let total = u16::try_from(IPV4_HEADER + packet.payload.len()).unwrap_or(u16::MAX);
    let mut header = [0u8; IPV4_HEADER];
    header[0] = 0x45;
    header[1] = packet.ecn.bits();
    header[2..4].copy_from_slice(&total.to_be_bytes());
    header[4..6].copy_from_slice(&(packet.id).to_be_bytes());
    header[6] = 0x40;
    header[8] = packet.hops_left;
    header[9] = packet.protocol;
    header[12..16].copy_from_slice(&source.octets());
    header[16..20].copy_from_slice(&destination.octets());
    let checksum = !sum(&header, 0);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    out.extend_from_slice(&header);
}

/// Writes an IPv6 header (RFC 8200 §3).
fn write_v6(
    packet: &CapturedPacket<'_>,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    out: &mut Vec<u8>,
) {
    let length = u16::try_from(packet.payload.len()).unwrap_or(u16::MAX);
    // The traffic class is between the version and the flow label.
    out.extend_from_slice(&[0x60, packet.ecn.bits() << 4, 0, 0]);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&[packet.protocol, packet.hops_left]);
    out.extend_from_slice(&source.octets());
    out.extend_from_slice(&destination.octets());
}

#[cfg(test)]
mod tests {
    use anabranch_transport::Ecn;

    use super::super::frame::Way;
    use super::*;

    #[test]
    fn the_header_checksum_of_a_known_header() {
        // An example header whose checksum was computed by hand.
        let packet = CapturedPacket {
            at: 0,
            interface: 0,
            way: Way::Out,
            payload: &[0; 95],
            id: 0,
            ecn: Ecn::NotEct,
            source: IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1)),
            destination: IpAddr::V4(Ipv4Addr::new(192, 168, 0, 199)),
            protocol: 17,
            hops_left: 64,
        };
        let mut out = Vec::new();
        write_header(&packet, &mut out);
        // The words of the header, 4500+0073+0000+4000+4011+c0a8+0001+c0a8+00c7, have the sum
        // 2479c, which is 479e after the carry is added. The checksum is the complement, b861.
        assert_eq!(out[2..4], [0x00, 0x73]);
        assert_eq!(out[10..12], [0xb8, 0x61]);
        assert_eq!(sum(&out, 0), 0xffff);
    }

    #[test]
    fn the_ecn_field_stands_in_tos_and_in_the_traffic_class() {
        let mut packet = CapturedPacket {
            at: 0,
            interface: 0,
            way: Way::Out,
            payload: &[],
            id: 0,
            ecn: Ecn::Ce,
            source: IpAddr::V4(Ipv4Addr::LOCALHOST),
            destination: IpAddr::V4(Ipv4Addr::LOCALHOST),
            protocol: 132,
            hops_left: 64,
        };
        let mut out = Vec::new();
        write_header(&packet, &mut out);
        assert_eq!(out[1], 0b11);
        assert_eq!(sum(&out, 0), 0xffff);
        packet.ecn = Ecn::Ect0;
        (packet.source, packet.destination) =
            (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
        out.clear();
        write_header(&packet, &mut out);
        assert_eq!(out[..4], [0x60, 0x20, 0, 0]);
    }
}
