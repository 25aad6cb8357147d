//! What is asked about a socket beside its descriptor: a request and its answer over a connection of their own, one datagram each.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A request about the socket whose descriptor has the abstract Unix address `socket`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The descriptor's own address, without its first byte, which is 0.
    pub socket: Vec<u8>,
    /// What is asked.
    pub request: Request,
}

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// `bind`, `sctp_bindx`.
    Bind(Vec<SocketAddr>),
    /// `listen`; 0: listen no more.
    Listen(i32),
    /// `connect`, `sctp_connectx`: to a peer with these addresses; answered when the association is up, or at once.
    Connect {
        /// The peer's.
        addresses: Vec<SocketAddr>,
        /// Answer when it is up.
        wait: bool,
    },
    /// `shutdown` (SHUT_WR, SHUT_RDWR).
    Shutdown,
    /// `setsockopt`.
    Set {
        /// SOL_SOCKET or IPPROTO_SCTP.
        level: i32,
        /// Which.
        option: i32,
        /// Its bytes.
        value: Vec<u8>,
    },
    /// `getsockopt`.
    Get {
        /// SOL_SOCKET or IPPROTO_SCTP.
        level: i32,
        /// Which.
        option: i32,
        /// The bytes that the program gave, of which an option reads some.
        value: Vec<u8>,
    },
    /// `getsockname`, `sctp_getladdrs`.
    Local,
    /// `getpeername`, `sctp_getpaddrs`.
    Peer,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It is done.
    Done,
    /// The number of an association.
    Association(u32),
    /// The bytes of an option.
    Value(Vec<u8>),
    /// Addresses.
    Addresses(Vec<SocketAddr>),
    /// An `errno`.
    Failed(i32),
}

/// The most bytes of a request or an answer.
pub const LONGEST: usize = 64 << 10;

/// The bytes of either.
pub fn encode(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}

/// Either, from its bytes.
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}
