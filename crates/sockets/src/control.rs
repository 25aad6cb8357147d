//! Control requests about a socket. Each request and its answer is one datagram on a connection
//! that is separate from the socket's descriptor.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A request about the socket whose descriptor has the abstract Unix address `socket`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The descriptor's own address without its first byte, which is 0.
    pub socket: Vec<u8>,
    /// The request.
    pub request: HostRequest,
    /// The host's secret, which programs of other users must present.
    #[serde(default)]
    pub secret: String,
}

/// Omits the secret.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("socket", &self.socket)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// Value of an option, which may contain keys.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionValue(pub Vec<u8>);

/// Only the size.
impl fmt::Debug for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// Kinds of requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostRequest {
    /// `bind` with these addresses.
    Bind(Vec<SocketAddr>),
    /// `sctp_bindx` that adds these addresses.
    BindMore(Vec<SocketAddr>),
    /// `sctp_bindx` with SCTP_BINDX_REM_ADDR, which removes these addresses.
    Unbind(Vec<SocketAddr>),
    /// `listen` with this backlog; 0 stops listening.
    Listen(i32),
    /// `connect` or `sctp_connectx` to a peer with these addresses.
    Connect {
        /// The peer's addresses.
        addresses: Vec<SocketAddr>,
        /// Whether the answer should wait until the association is established; otherwise it is
        /// immediate.
        wait: bool,
    },
    /// Query for the route of a message before it is sent, answered by [`HostReply::Route`]. If
    /// necessary, an association is started for the message.
    Route {
        /// The program's number of the association; 0 if the program has passed an address instead.
        association: u32,
        /// The peer's addresses, if the program has passed any.
        addresses: Vec<SocketAddr>,
        /// Whether to start an association if there is none.
        begin: bool,
        /// Whether the answer should wait until a started association is established, and until
        /// buffer space for a message is available.
        wait: bool,
        /// True if a message is to be sent, for which the association of a one-to-many socket needs
        /// buffer space. Without space the answer is EAGAIN, unless `wait` is true.
        room: bool,
        /// The key that should sign the message, if the program has selected one.
        key: Option<u16>,
    },
    /// Query for buffer space before a message is sent to all associations (SCTP_SENDALL):
    /// [`HostReply::Done`] if each of them has space.
    Room {
        /// Whether the answer should wait until each association has space; otherwise the answer is
        /// EAGAIN if an association has no space.
        wait: bool,
    },
    /// `sctp_peeloff`: removes an association from the socket. After [`HostReply::Association`] a
    /// new socket can take it over. The request carries a copy of the descriptor, because unread
    /// data of the association moves to the new socket.
    PeelOff {
        /// Number of the association.
        association: u32,
        /// Number of bytes of the first frame that the program has already read.
        read: usize,
    },
    /// `setsockopt`.
    Set {
        /// SOL_SOCKET or IPPROTO_SCTP.
        level: i32,
        /// Option number.
        option: i32,
        /// Option value.
        value: OptionValue,
    },
    /// `getsockopt`.
    Get {
        /// SOL_SOCKET or IPPROTO_SCTP.
        level: i32,
        /// Option number.
        option: i32,
        /// The buffer that the program has passed; for some options it contains input, such as an
        /// association number.
        value: Vec<u8>,
    },
    /// `getsockname`: the local addresses of an association, or of the socket if the number is 0.
    Local(u32),
    /// `sctp_getladdrs`: like [`HostRequest::Local`]. If the socket is bound to all addresses, the
    /// answer contains those of the system.
    LocalAll(u32),
    /// `sctp_getpaddrs`: the addresses of the peer of this association.
    Peer(u32),
    /// `getpeername`.
    PeerName,
    /// Check whether the host is running, which concerns no socket. The answer is
    /// [`HostReply::Done`]; if there is no answer, the host has ended.
    Alive,
    /// Query before a program receives: [`HostReply::Awaited`] if data may arrive; otherwise the
    /// `errno` for `recv`.
    Await {
        /// Whether the call of the program would block.
        wait: bool,
    },
    /// `shutdown` of a one-to-one socket.
    ShutDown {
        /// True for SHUT_RD and SHUT_RDWR.
        reading: bool,
        /// True for SHUT_WR and SHUT_RDWR.
        writing: bool,
    },
    /// The program has ended this association (SCTP_EOF). The answer is [`HostReply::Done`]: after
    /// the association is closed if the peer is on this machine, otherwise immediately.
    Ended(u32),
    /// The program has read to the end of its descriptor. The answer is [`HostReply::Done`] if the
    /// peer has shut down the association; otherwise the `errno` for `recv`.
    End,
    /// Query for the shared memory that contains the [`Generation`]s of the host's sockets; does
    /// not concern a single socket. The answer is [`HostReply::Done`] with a descriptor.
    Generations,
    /// Passes the descriptor that reports requests to the kernel for SCTP sockets, which bypass the
    /// library (`SECCOMP_RET_USER_NOTIF`). If there is no descriptor, the value is an `errno` with
    /// the reason. This request concerns no socket of the host, and is not answered.
    Watch(i32),
}

/// Answers of the host to requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostReply {
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
        /// Maximum size of a message, bytes.
        most: usize,
        /// Set if the association is established: the route may be cached as long as the socket has
        /// this generation.
        settled: Option<Generation>,
    },
    /// Data or the end of the association may arrive on the descriptor. The answer may be cached as
    /// long as the socket has this generation.
    Awaited(Generation),
    /// Value of an option.
    Value(Vec<u8>),
    /// Addresses.
    Addresses(Vec<SocketAddr>),
    /// An `errno`.
    Failed(i32),
}

/// Version of a socket's state: answers that a program has cached are valid as long as the number
/// in this slot is unchanged (`host::generations`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Slot index, below [`GENERATION_SLOTS`].
    pub slot: u32,
    /// The number in the slot.
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
