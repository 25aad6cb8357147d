//! Control requests about a socket: one request and its answer, one datagram each, on a connection
//! separate from the socket's descriptor.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A request about the socket whose descriptor has the abstract Unix address `socket`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The descriptor's own address without its first byte, which is 0.
    pub socket: Vec<u8>,
    /// The request.
    pub request: Request,
    /// The host's secret, which programs of other users must present.
    #[serde(default)]
    pub secret: String,
}

/// Kinds of requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// `bind`.
    Bind(Vec<SocketAddr>),
    /// `sctp_bindx`.
    BindMore(Vec<SocketAddr>),
    /// `sctp_bindx` with SCTP_BINDX_REM_ADDR.
    Unbind(Vec<SocketAddr>),
    /// `listen`; 0: stop listening.
    Listen(i32),
    /// `connect`, `sctp_connectx`: to a peer with these addresses. Answered when the association is
    /// established, or immediately.
    Connect {
        /// The peer's addresses.
        addresses: Vec<SocketAddr>,
        /// Answer only when it is established.
        wait: bool,
    },
    /// Route lookup before a message is sent: [`Answer::Route`], after starting an association for
    /// it if necessary.
    Route {
        /// The association by the program's number; 0: the program names an address.
        association: u32,
        /// The peer's addresses, if the program names any.
        addresses: Vec<SocketAddr>,
        /// Start an association if there is none.
        begin: bool,
        /// Answer only when a started association is established and buffer space for a message is
        /// available.
        wait: bool,
        /// A message is about to be sent, for which an association of a one-to-many socket must
        /// have buffer space: EAGAIN if it has none and the program does not wait.
        room: bool,
        /// The key that should sign the message.
        key: Option<u16>,
    },
    /// A message is about to be sent to all associations (SCTP_SENDALL): [`Answer::Done`] if each
    /// has buffer space for it.
    Room {
        /// Answer only when each has buffer space; otherwise EAGAIN.
        wait: bool,
    },
    /// `sctp_peeloff`: after [`Answer::Association`] a new socket can take over the association.
    /// The request carries a copy of the descriptor, because unread data of the association moves
    /// to the new socket.
    PeelOff {
        /// The association.
        association: u32,
        /// Bytes of the first frame that were already read.
        read: usize,
    },
    /// `setsockopt`.
    Set {
        /// SOL_SOCKET or IPPROTO_SCTP.
        level: i32,
        /// Option number.
        option: i32,
        /// Option value.
        value: Vec<u8>,
    },
    /// `getsockopt`.
    Get {
        /// SOL_SOCKET or IPPROTO_SCTP.
        level: i32,
        /// Option number.
        option: i32,
        /// Bytes that the program passed; some options read part of them.
        value: Vec<u8>,
    },
    /// `getsockname`: of an association, or of the socket (0).
    Local(u32),
    /// `sctp_getladdrs`: the same, with the system's addresses if the socket is bound to all of
    /// them.
    LocalAll(u32),
    /// `sctp_getpaddrs`.
    Peer(u32),
    /// `getpeername`.
    PeerName,
    /// Not about a socket: [`Answer::Done`] at once. A program that gets no answer has lost its
    /// host.
    Alive,
    /// A program is about to receive: [`Answer::Awaited`] if data may arrive; otherwise the `errno`
    /// for `recv`.
    Await {
        /// The call would block.
        wait: bool,
    },
    /// `shutdown` of a one-to-one socket.
    ShutDown {
        /// SHUT_RD, SHUT_RDWR.
        reading: bool,
        /// SHUT_WR, SHUT_RDWR.
        writing: bool,
    },
    /// A program has ended an association (SCTP_EOF): [`Answer::Done`] when the association is
    /// closed if the peer is on this machine, otherwise immediately.
    Ended(u32),
    /// A program has reached the end of its descriptor: [`Answer::Done`] if the peer has shut down
    /// the association, otherwise the `errno` for `recv`.
    End,
    /// Not about a socket: [`Answer::Done`] with a descriptor of the shared memory that contains
    /// the [`Generation`]s of the host's sockets.
    Generations,
    /// Does not concern a socket, and is not answered. Carries the descriptor that reports SCTP
    /// sockets requested from the kernel, bypassing the library (`SECCOMP_RET_USER_NOTIF`); without
    /// one, an `errno` with the reason.
    Watch(i32),
}

/// Answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Success.
    Done,
    /// Number of an association.
    Association(u32),
    /// Route of a message.
    Route {
        /// Number of the association.
        association: u32,
        /// Number of outgoing streams.
        streams: u16,
        /// Largest message size, bytes.
        most: usize,
        /// The association is established, so the route may be cached while the socket has this
        /// generation.
        settled: Option<Generation>,
    },
    /// Messages or the end of the association may arrive, and the program will see them on its
    /// descriptor. May be cached while the socket has this generation.
    Awaited(Generation),
    /// Value of an option.
    Value(Vec<u8>),
    /// Addresses.
    Addresses(Vec<SocketAddr>),
    /// An `errno`.
    Failed(i32),
}

/// Version of a socket's cached state: a program's cached answers are valid while the number in
/// this slot is unchanged (`host::generations`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Slot index, below [`GENERATION_SLOTS`].
    pub slot: u32,
    /// The number.
    pub number: u32,
}

/// Number of generation slots of a host; each is a `u32`.
pub const GENERATION_SLOTS: usize = 16_384;

/// Maximum size of a request or an answer, bytes.
pub const MAX_CONTROL_MESSAGE: usize = 64 << 10;

/// Serializes a request or an answer.
pub fn encode(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}

/// Deserializes a request or an answer.
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}
