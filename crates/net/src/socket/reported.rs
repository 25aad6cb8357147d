//! ICMP messages about datagrams of UDP sockets (RFC 6951 §5.5), from the error queue of the
//! socket.
//!
//! With the option IP_RECVERR a socket has a queue of such messages, each with the quoted part of
//! the datagram. The next send or receive call returns the error instead of its result, has no
//! other effect, and must be repeated.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use anabranch_sctp::Icmp;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};

/// Values of `ee_origin` for messages from ICMP.
const ICMP: u8 = 2;
const ICMP_V6: u8 = 3;
/// Size of the headers before a quoted SCTP packet (IP and UDP), bytes. The system reports their
/// contents separately.
const HEADERS: usize = 40 + 8;
const HEADERS_V4: usize = 20 + 8;
const UDP: u8 = 17;
/// Maximum number of bytes of a quoted packet that are examined.
const QUOTED: usize = 1_500;
/// Space for further control messages, such as the address and ECN field of datagrams, bytes. If
/// one message is truncated, none is read.
const OTHERS: usize = 512;

/// Enables the queue for a socket that is bound to `local`. Returns true if the system supports it.
pub(super) fn enable(socket: &impl AsFd, local: IpAddr) -> bool {
    let with_receipt = match local {
        IpAddr::V4(_) => setsockopt(socket, sockopt::Ipv4RecvErr, &true),
        IpAddr::V6(_) => setsockopt(socket, sockopt::Ipv6RecvErr, &true),
    };
    with_receipt.is_ok()
}

/// Returns true if the error of a call may belong to an earlier datagram, and is reported only
/// once.
pub(super) fn may_be(error: &io::Error) -> bool {
    let all = [
        Errno::ECONNREFUSED,
        Errno::EHOSTUNREACH,
        Errno::ENETUNREACH,
        Errno::EMSGSIZE,
        Errno::EHOSTDOWN,
        Errno::ENONET,
        Errno::ENOPROTOOPT,
        Errno::EOPNOTSUPP,
        Errno::EPROTO,
        Errno::EACCES,
    ];
    let code = error.raw_os_error().map(Errno::from_raw);
    code.is_some_and(|it| all.contains(&it))
}

/// A message from the queue, with the headers of the quoted packet reconstructed.
#[derive(Debug)]
pub(crate) struct Reported {
    v6: bool,
    kind: u8,
    code: u8,
    mtu: u32,
    bytes: [u8; HEADERS + QUOTED],
    quoted: std::ops::Range<usize>,
}

impl Reported {
    /// The message as the protocol core expects it.
    pub(crate) fn icmp(&self) -> Icmp<'_> {
        Icmp {
            v6: self.v6,
            kind: self.kind,
            code: self.code,
            mtu: self.mtu,
            quoted: &self.bytes[self.quoted.clone()],
        }
    }

    /// The next ICMP message of a socket; `None` if there is none. Other entries of the queue, such
    /// as local errors, are skipped.
    pub(crate) fn next(socket: &impl AsFd) -> Option<Self> {
        let mut bytes = [0; HEADERS + QUOTED];
        let mut space = cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6, [u8; OTHERS]);
        loop {
            let mut parts = [IoSliceMut::new(&mut bytes[HEADERS..])];
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let fd = socket.as_fd().as_raw_fd();
            let came = match recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut space), flags) {
                Ok(came) => came,
                Err(Errno::EINTR) => continue,
                Err(_) => return None,
            };
            let error = came.cmsgs().ok().and_then(|mut all| {
                all.find_map(|it| match it {
                    ControlMessageOwned::Ipv4RecvErr(error, _)
                    | ControlMessageOwned::Ipv6RecvErr(error, _) => Some(error),
                    _ => None,
                })
            });
            let to = came.address.and_then(address);
            let (Some(error), Some(to), length) = (error, to, came.bytes) else {
                continue;
            };
            let v6 = match error.ee_origin {
                ICMP => false,
                ICMP_V6 => true,
                _ => continue,
            };
            let begin = put_headers(&mut bytes, to);
            return Some(Self {
                v6,
                kind: error.ee_type,
                code: error.ee_code,
                mtu: error.ee_info,
                bytes,
                quoted: begin..HEADERS + length,
            });
        }
    }
}

fn address(from: SockaddrStorage) -> Option<SocketAddr> {
    match (from.as_sockaddr_in(), from.as_sockaddr_in6()) {
        (Some(v4), _) => Some(SocketAddr::new(v4.ip().into(), v4.port())),
        (_, Some(v6)) => Some(SocketAddr::new(v6.ip().into(), v6.port())),
        _ => None,
    }
}

/// Writes the headers in front of a quoted packet that was sent to `to`; returns their start.
/// Fields that the protocol does not read stay 0.
fn put_headers(bytes: &mut [u8; HEADERS + QUOTED], to: SocketAddr) -> usize {
    let begin = match to.ip() {
        IpAddr::V4(ip) => {
            let begin = HEADERS - HEADERS_V4;
            bytes[begin] = 0x45;
            bytes[begin + 9] = UDP;
            bytes[begin + 16..begin + 20].copy_from_slice(&ip.octets());
            begin
        }
        IpAddr::V6(ip) => {
            bytes[0] = 0x60;
            bytes[6] = UDP;
            bytes[24..40].copy_from_slice(&ip.octets());
            0
        }
    };
    bytes[HEADERS - 6..HEADERS - 4].copy_from_slice(&to.port().to_be_bytes());
    begin
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;

    /// The test sends to an unused port, for which the system sends Port Unreachable.
    #[test]
    fn a_message_reports_which_packet_it_is_about() {
        for local in ["127.0.0.1", "::1"] {
            let local: IpAddr = local.parse().expect("an address");
            let Ok(socket) = UdpSocket::bind((local, 0)) else {
                continue;
            };
            assert!(enable(&socket, local));
            assert!(Reported::next(&socket).is_none());
            let nobody = UdpSocket::bind((local, 0)).and_then(|it| it.local_addr());
            let nobody = nobody.expect("a port");
            // A common header with the SCTP ports 7 and 9, and a verification tag.
            let packet = [0, 7, 0, 9, 1, 2, 3, 4, 0, 0, 0, 0];
            socket.send_to(&packet, nobody).expect("it is sent");
            let mut looks = 0;
            let reported = loop {
                match Reported::next(&socket) {
                    Some(reported) => break reported,
                    None if looks < 1_000 => std::thread::sleep(Duration::from_millis(1)),
                    None => {
                        eprintln!("left out: this network gives no ICMP");
                        return;
                    }
                }
                looks += 1;
            };
            let icmp = reported.icmp();
            let unreachable = if local.is_ipv4() { (3, 3) } else { (1, 4) };
            assert_eq!((icmp.kind, icmp.code), unreachable);
            assert_eq!(icmp.source_port(), Some(7));
            assert!(icmp.quoted.ends_with(&packet));
            let again = socket.send_to(&packet, nobody);
            assert!(again.is_ok_and(|it| it == 12) || Reported::next(&socket).is_none());
        }
    }
}
