//! Sending with a DSCP. `quinn_udp` sets the whole TOS field in each call to send the ECN field, so
//! a socket option for the DSCP would have no effect.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use nix::libc;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use quinn_udp::Transmit;

/// Sends a run of packets by one call, with the DSCP `dscp` in the six bits above the ECN field
/// (RFC 2474 §3).
///
/// # Errors
/// The error of the system.
pub(super) fn send(socket: &impl AsFd, transmit: &Transmit<'_>, dscp: u8) -> io::Result<()> {
    let tos = dscp << 2 | transmit.ecn.map_or(0, |ecn| ecn as u8);
    let class = i32::from(tos);
    let segment = transmit.segment_size.map(|size| size as u16);
    let (v4, v6);
    let mut control = vec![match transmit.destination {
        SocketAddr::V4(_) => ControlMessage::Ipv4Tos(&tos),
        SocketAddr::V6(_) => ControlMessage::Ipv6TClass(&class),
    }];
    match transmit.src_ip {
        Some(IpAddr::V4(source)) => {
            v4 = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: libc::in_addr {
                    s_addr: u32::from_ne_bytes(source.octets()),
                },
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            control.push(ControlMessage::Ipv4PacketInfo(&v4));
        }
        Some(IpAddr::V6(source)) => {
            v6 = libc::in6_pktinfo {
                ipi6_addr: libc::in6_addr {
                    s6_addr: source.octets(),
                },
                ipi6_ifindex: 0,
            };
            control.push(ControlMessage::Ipv6PacketInfo(&v6));
        }
        None => {}
    }
    if let Some(segment) = &segment {
        control.push(ControlMessage::UdpGsoSegments(segment));
    }
    let to = SockaddrStorage::from(transmit.destination);
    let bytes = [IoSlice::new(transmit.contents)];
    sendmsg(
        socket.as_fd().as_raw_fd(),
        &bytes,
        &control,
        MsgFlags::empty(),
        Some(&to),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::IoSliceMut;
    use std::net::UdpSocket;

    use nix::sys::socket::{ControlMessageOwned, recvmsg};
    use quinn_udp::EcnCodepoint;
    use rustix::net::sockopt;

    use super::*;

    /// Sends one run, and returns the received TOS field (or traffic class) and length of each
    /// packet.
    fn sent(address: &str, source: bool, segment: Option<usize>) -> Vec<(u8, usize)> {
        let receiver = UdpSocket::bind((address, 0)).expect("loopback");
        let to = receiver.local_addr().expect("bound");
        match to {
            SocketAddr::V4(_) => sockopt::set_ip_recvtos(&receiver, true).expect("an option"),
            SocketAddr::V6(_) => sockopt::set_ipv6_recvtclass(&receiver, true).expect("an option"),
        }
        let sender = UdpSocket::bind((address, 0)).expect("loopback");
        let transmit = Transmit {
            destination: to,
            ecn: Some(EcnCodepoint::Ect0),
            contents: b"packets",
            segment_size: segment,
            src_ip: source.then(|| to.ip()),
        };
        send(&sender, &transmit, 46).expect("sent");
        let mut packets = Vec::new();
        while packets.iter().map(|&(_, len)| len).sum::<usize>() < 7 {
            let mut bytes = [0; 64];
            let mut buffers = [IoSliceMut::new(&mut bytes)];
            let mut space = nix::cmsg_space!(i32);
            let fd = receiver.as_raw_fd();
            let message =
                recvmsg::<SockaddrStorage>(fd, &mut buffers, Some(&mut space), MsgFlags::empty());
            let message = message.expect("a packet");
            let fields = message
                .cmsgs()
                .expect("whole")
                .filter_map(|field| match field {
                    ControlMessageOwned::Ipv4Tos(tos) => Some(tos),
                    ControlMessageOwned::Ipv6TClass(class) => u8::try_from(class).ok(),
                    _ => None,
                });
            let tos = fields.last().expect("a TOS field");
            packets.push((tos, message.bytes));
        }
        packets
    }

    #[test]
    fn expedited_forwarding_stands_above_the_ecn_field() {
        for address in ["127.0.0.1", "::1"] {
            assert_eq!(sent(address, false, None), [(0xba, 7)], "{address}");
            assert_eq!(sent(address, true, None), [(0xba, 7)], "{address}");
            let run = [(0xba, 3), (0xba, 3), (0xba, 1)];
            assert_eq!(sent(address, false, Some(3)), run, "{address}");
        }
    }
}
