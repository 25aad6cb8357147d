//! ICMP messages about packets that this host has sent over raw IP (RFC 9260 §10).
//!
//! Inside UDP the system has an error queue for each socket instead (Linux, module `reported`).
//! Other drivers of the protocol core can pass messages to
//! [`anabranch_sctp::Endpoint::handle_icmp`].

use std::io;
use std::task::{Context, Poll, ready};

use anabranch_sctp::Icmp;
use rustix::net::{RecvFlags, recv};
use socket2::{Domain, Protocol, Socket as RawSocket, Type};

use super::ip;
use crate::runtime::{AsyncSocket, Readiness, ReadinessHint, Runtime};

/// A raw socket that receives a copy of every ICMP message to this host.
#[derive(Debug)]
pub(crate) struct IcmpSocket {
    /// The raw socket, stored like a UDP socket because the system calls are the same.
    io: Box<dyn AsyncSocket>,
    v6: bool,
}

impl IcmpSocket {
    /// Opens a socket for ICMPv4 or ICMPv6.
    pub(crate) fn open(v6: bool, runtime: &dyn Runtime) -> io::Result<Self> {
        let (domain, protocol) = if v6 {
            (Domain::IPV6, Protocol::ICMPV6)
        } else {
            (Domain::IPV4, Protocol::ICMPV4)
        };
        let socket = RawSocket::new(domain, Type::RAW, Some(protocol))?;
        socket.set_nonblocking(true)?;
        let io = runtime.watch(socket.into())?;
        Ok(Self { io, v6 })
    }

    /// Receives the next message into `buffer`, now or when one arrives; `None` if the received
    /// data is no valid ICMP message.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn poll_receive<'b>(
        &self,
        cx: &mut Context<'_>,
        buffer: &'b mut [u8],
    ) -> Poll<io::Result<Option<Icmp<'b>>>> {
        let mut length = 0;
        let mut call = || {
            (_, length) = recv(&self.io, &mut *buffer, RecvFlags::empty())?;
            Ok(ReadinessHint::MayBeReady)
        };
        ready!(self.io.poll_io(cx, Readiness::Read, &mut call))?;
        let length = length.min(buffer.len());
        Poll::Ready(Ok(message_within(self.v6, &buffer[..length])))
    }
}

/// Extracts the ICMP message from the data of a raw socket. The system has verified the checksum of
/// ICMPv6, but not of ICMPv4.
fn message_within(v6: bool, received: &[u8]) -> Option<Icmp<'_>> {
    if v6 {
        return Icmp::read(true, received);
    }
    let message = received.get(ip::payload_of_v4(received)?)?;
    is_sound(message)
        .then(|| Icmp::read(false, message))
        .flatten()
}

/// Returns true if the checksum is correct: the ones' complement sum of all words, including the
/// checksum field, is zero (RFC 1071).
fn is_sound(message: &[u8]) -> bool {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    // No overflow, because there are at most 32,768 words of 16 bits.
    let sum: u32 = message.chunks(2).map(word).sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    (folded & 0xFFFF) + (folded >> 16) == 0xFFFF
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Port Unreachable message that quotes eight bytes, with a checksum computed by hand: the
    /// sum 0303 + 0102 + 0304 + 0506 + 0708 is 1317.
    const MESSAGE: [u8; 16] = [3, 3, 0xEC, 0xE8, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];

    #[test]
    fn a_message_is_taken_if_its_checksum_is_right() {
        assert!(is_sound(&MESSAGE));
        for byte in 0..MESSAGE.len() {
            let mut bent = MESSAGE;
            bent[byte] ^= 0x20;
            assert!(!is_sound(&bent), "byte {byte}");
        }
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet[3] = 36;
        packet.extend_from_slice(&MESSAGE);
        let icmp = message_within(false, &packet).expect("sound");
        assert_eq!((icmp.kind, icmp.code, icmp.quoted), (3, 3, &MESSAGE[8..]));
        assert_eq!(message_within(false, &packet[..35]), None, "cut short");
        assert!(message_within(true, &MESSAGE).is_some_and(|icmp| icmp.v6));
        assert_eq!(message_within(true, &MESSAGE[..7]), None);
    }
}
