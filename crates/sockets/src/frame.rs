//! What passes over the descriptor of a socket: a datagram of a [`Frame`]'s header, [`HEADER`] bytes, and what belongs to it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Bytes of a header.
pub const HEADER: usize = 64;

/// What a frame is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// The first from a program: which association it takes over ([`hello`]).
    Hello,
    /// A message, or a piece of one.
    #[default]
    Data,
    /// To a program: a notification (RFC 6458 §6).
    Notification,
    /// To a program: the association ended by an error, `error`.
    Error,
    /// To a program that listens: an association can be accepted. `association` is its number.
    Incoming,
    /// From a program: nothing. What fills a descriptor that cannot be written yet.
    Nothing,
}

const KINDS: [Kind; 6] = [
    Kind::Hello,
    Kind::Data,
    Kind::Notification,
    Kind::Error,
    Kind::Incoming,
    Kind::Nothing,
];

/// The message is unordered.
pub const UNORDERED: u8 = 1;
/// The message goes on in the next frame.
pub const MORE: u8 = 2;
/// After this message the association is shut down (SCTP_EOF).
pub const EOF: u8 = 4;
/// The association is aborted (SCTP_ABORT); the message is the cause.
pub const ABORT: u8 = 8;
/// The message is to be acknowledged at once (SCTP_SACK_IMMEDIATELY).
pub const IMMEDIATE: u8 = 16;
/// To a program: the message goes on in the next frame, which comes at once.
pub const FOLLOWS: u8 = 16;
/// `stream`, `ppid` and the rest are those of the association's default (SCTP_DEFAULT_SEND_PARAM).
pub const DEFAULT: u8 = 32;
/// The message goes to all associations of the socket (SCTP_SENDALL).
pub const ALL: u8 = 64;
/// When the message is given up is as the association's default says (SCTP_DEFAULT_PRINFO).
pub const DEFAULT_POLICY: u8 = 128;

/// A header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: Kind,
    /// The bits above.
    pub flags: u8,
    /// The message's stream.
    pub stream: u16,
    /// Payload Protocol Identifier, as the program has it in memory.
    pub ppid: u32,
    /// The program's own name for the message.
    pub context: u32,
    /// The association's number at its socket.
    pub association: u32,
    /// The message's number in its stream.
    pub ssn: u32,
    /// The message's TSN, as far as it is known.
    pub tsn: u32,
    /// Milliseconds until the message is given up, retransmissions or priority, by `policy`; 0: none.
    pub value: u32,
    /// 0, or a policy of RFC 7496 by Linux's numbers.
    pub policy: u16,
    /// Of [`Kind::Error`]: an `errno`.
    pub error: i32,
    /// Where a message came from, or is to go.
    pub address: Option<SocketAddr>,
    /// From a program: it goes to that very address of the peer's (SCTP_ADDR_OVER).
    pub over: bool,
    /// From a program: the key that the message is signed by (SCTP_AUTHINFO).
    pub key: Option<u16>,
    /// To a program: the last TSN before which none was missing when the message was given.
    pub cumulative_tsn: u32,
}

impl Frame {
    /// Its bytes.
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

    /// The frame that these bytes begin with; `None` if they are too few, or of no kind.
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

/// What a program says first, before the secret where there is one: which association the socket takes over, of [`Kind::Incoming`] or one that was peeled off; 0: none.
pub fn hello(incoming: u32) -> [u8; HEADER] {
    let frame = Frame {
        kind: Kind::Hello,
        association: incoming,
        ..Frame::default()
    };
    frame.encode()
}

/// What [`hello`] says.
pub fn of_hello(bytes: &[u8]) -> Option<u32> {
    let frame = Frame::decode(bytes)?;
    (frame.kind == Kind::Hello).then_some(frame.association)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for address in ["192.0.2.1:7", "[2001:db8::1]:65535"] {
            let frame = Frame {
                kind: Kind::Incoming,
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
            assert_eq!(Frame::decode(&frame.encode()), Some(frame));
        }
        assert_eq!(of_hello(&hello(70_000)), Some(70_000));
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let good = Frame::default().encode();
        assert_eq!(Frame::decode(&good[..HEADER - 1]), None);
        let mut bad = good;
        bad[0] = 200;
        assert_eq!(Frame::decode(&bad), None);
        assert_eq!(of_hello(&good), None);
    }
}
