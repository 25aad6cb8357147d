//! Frames on a socket's descriptor: each datagram is a [`HostFrameHeader`] header of [`HEADER`]
//! bytes, followed by the payload.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Size of a header, bytes.
pub const HEADER: usize = 64;

/// Kinds of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostFrameKind {
    /// First frame from a program: names the association that the socket takes over ([`hello`]).
    Hello,
    /// A message, or a part of one.
    #[default]
    Data,
    /// To a program: a notification (RFC 6458 §6).
    Notification,
    /// To a program: the association has failed with `error`.
    Error,
    /// To a program that listens: an association can be accepted; `association` is its number.
    Incoming,
    /// From a program: a frame without content, which fills the buffer of the descriptor, so that
    /// the descriptor is not writable yet.
    Nothing,
}

const KINDS: [HostFrameKind; 6] = [
    HostFrameKind::Hello,
    HostFrameKind::Data,
    HostFrameKind::Notification,
    HostFrameKind::Error,
    HostFrameKind::Incoming,
    HostFrameKind::Nothing,
];

/// The message is unordered.
pub const UNORDERED: u8 = 1;
/// The message continues in the next frame.
pub const MORE: u8 = 2;
/// Shut down the association after this message (SCTP_EOF).
pub const EOF: u8 = 4;
/// Abort the association (SCTP_ABORT); the payload is the reason.
pub const ABORT: u8 = 8;
/// The peer should acknowledge the message immediately (SCTP_SACK_IMMEDIATELY).
pub const IMMEDIATE: u8 = 16;
/// To a program: the message continues in the next frame, which follows immediately.
pub const FOLLOWS: u8 = 16;
/// Use the association's defaults for `stream`, `ppid` and the other parameters
/// (SCTP_DEFAULT_SEND_PARAM).
pub const DEFAULT: u8 = 32;
/// To a program: the message arrived in protected packets only (MSG_PROTECTED).
pub const PROTECTED: u8 = 32;
/// Send the message to all associations of the socket (SCTP_SENDALL).
pub const ALL: u8 = 64;
/// Use the association's default policy for abandoning the message (SCTP_DEFAULT_PRINFO).
pub const DEFAULT_POLICY: u8 = 128;

/// Header of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostFrameHeader {
    /// Kind of the frame.
    pub kind: HostFrameKind,
    /// Bitwise OR of the flags above.
    pub flags: u8,
    /// Stream of the message.
    pub stream: u16,
    /// Payload Protocol Identifier, in the program's byte order.
    pub ppid: u32,
    /// The program's identifier for the message.
    pub context: u32,
    /// Number of the association at its socket.
    pub association: u32,
    /// Number of the message within its stream. From a program: number of the part within the
    /// message, from 0.
    pub ssn: u32,
    /// TSN of the message, if known. From a program: identifier of the sending thread if the
    /// message has several parts, because parts from several threads and processes may alternate;
    /// otherwise 0.
    pub tsn: u32,
    /// Parameter of `policy`: lifetime in milliseconds, number of retransmissions, or priority; 0:
    /// none.
    pub value: u32,
    /// Policy of RFC 7496, with its number in Linux; 0: none.
    pub policy: u16,
    /// The `errno` of a [`HostFrameKind::Error`].
    pub error: i32,
    /// Source or destination of the message.
    pub address: Option<SocketAddr>,
    /// From a program: send only to `address` (SCTP_ADDR_OVER).
    pub over: bool,
    /// From a program: key that should sign the message (SCTP_AUTHINFO).
    pub key: Option<u16>,
    /// To a program: cumulative TSN when the message was delivered.
    pub cumulative_tsn: u32,
}

impl HostFrameHeader {
    /// Encodes the header.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let kind = KINDS.iter().position(|&kind| kind == self.kind);
        put(&[kind.unwrap_or_default() as u8, self.flags]);
        put(&self.stream.to_le_bytes());
        for value in [
            self.ppid,
            self.context,
            self.association,
            self.ssn,
            self.tsn,
            self.value,
        ] {
            put(&value.to_le_bytes());
        }
        put(&self.policy.to_le_bytes());
        let (family, ip, port) = match self.address {
            None => (0_u16, Ipv6Addr::UNSPECIFIED, 0),
            Some(SocketAddr::V4(it)) => (4, it.ip().to_ipv6_mapped(), it.port()),
            Some(SocketAddr::V6(it)) => (6, *it.ip(), it.port()),
        };
        put(&family.to_le_bytes());
        put(&self.error.to_le_bytes());
        put(&ip.octets());
        put(&port.to_le_bytes());
        put(&self.key.unwrap_or_default().to_le_bytes());
        put(&[u8::from(self.key.is_some()) | u8::from(self.over) << 1, 0]);
        put(&self.cumulative_tsn.to_le_bytes());
        out
    }

    /// Decodes the header at the start of `bytes`; `None` if they are too short, or the kind is
    /// unknown.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER] = bytes.get(..HEADER)?.try_into().ok()?;
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(short(at)) | u32::from(short(at + 2)) << 16;
        let mut ip = [0; 16];
        ip.copy_from_slice(&bytes[36..52]);
        let ip = Ipv6Addr::from(ip);
        let ip = match short(30) {
            4 => ip.to_ipv4_mapped().map(IpAddr::V4),
            6 => Some(IpAddr::V6(ip)),
            _ => None,
        };
        Some(Self {
            kind: *KINDS.get(usize::from(bytes[0]))?,
            flags: bytes[1],
            stream: short(2),
            ppid: word(4),
            context: word(8),
            association: word(12),
            ssn: word(16),
            tsn: word(20),
            value: word(24),
            policy: short(28),
            error: word(32) as i32,
            address: ip.map(|ip| SocketAddr::new(ip, short(52))),
            over: bytes[56] & 2 != 0,
            key: (bytes[56] & 1 != 0).then(|| short(54)),
            cumulative_tsn: word(58),
        })
    }
}

/// First frame of a program. It names the association that the socket takes over, which came from
/// [`HostFrameKind::Incoming`] or was peeled off; 0: none. If the program needs a secret, it
/// follows this frame.
pub fn hello(incoming: u32) -> [u8; HEADER] {
    let frame = HostFrameHeader {
        kind: HostFrameKind::Hello,
        association: incoming,
        ..HostFrameHeader::default()
    };
    frame.encode()
}

/// The association number in a [`hello`] frame.
pub fn of_hello(bytes: &[u8]) -> Option<u32> {
    let frame = HostFrameHeader::decode(bytes)?;
    (frame.kind == HostFrameKind::Hello).then_some(frame.association)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_written() {
        for address in ["192.0.2.1:7", "[2001:db8::1]:65535"] {
            let frame = HostFrameHeader {
                kind: HostFrameKind::Incoming,
                flags: UNORDERED | MORE,
                stream: 0x0102,
                ppid: 0x0304_0506,
                context: 7,
                association: 8,
                ssn: 9,
                tsn: 10,
                value: 11,
                policy: 12,
                error: -13,
                address: Some(address.parse().unwrap()),
                over: true,
                key: Some(0),
                cumulative_tsn: 0x0506_0708,
            };
            assert_eq!(HostFrameHeader::decode(&frame.encode()), Some(frame));
        }
        assert_eq!(of_hello(&hello(70_000)), Some(70_000));
    }

    #[test]
    fn invalid_frames_are_refused() {
        let good = HostFrameHeader::default().encode();
        assert_eq!(HostFrameHeader::decode(&good[..HEADER - 1]), None);
        let mut bad = good;
        bad[0] = 200;
        assert_eq!(HostFrameHeader::decode(&bad), None);
        assert_eq!(of_hello(&good), None);
    }
}
