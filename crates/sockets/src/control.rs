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
    /// What a program of another user than the host's says.
    #[serde(default)]
    pub secret: String,
}

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// `bind`.
    Bind(Vec<SocketAddr>),
    /// `sctp_bindx`.
    BindMore(Vec<SocketAddr>),
    /// `sctp_bindx` with SCTP_BINDX_REM_ADDR.
    Unbind(Vec<SocketAddr>),
    /// `listen`; 0: listen no more.
    Listen(i32),
    /// `connect`, `sctp_connectx`: to a peer with these addresses; answered when the association is up, or at once.
    Connect {
        /// The peer's.
        addresses: Vec<SocketAddr>,
        /// Answer when it is up.
        wait: bool,
    },
    /// What a message is about to be sent to: [`Answer::Route`], after an association was begun for it where that is needed.
    Route {
        /// The association, as the program names it; 0 where it names an address.
        association: u32,
        /// The peer's addresses, where the program names some.
        addresses: Vec<SocketAddr>,
        /// Begin one where there is none.
        begin: bool,
        /// Answer when an association that was begun is up, and when there is room for a message.
        wait: bool,
        /// There is a message, for which an association of a socket with many has to have room: EAGAIN where it has none, and nobody waits.
        room: bool,
        /// The key that the message is to be signed by.
        key: Option<u16>,
    },
    /// A message is about to be sent to all associations (SCTP_SENDALL): [`Answer::Done`] where each has room for it.
    Room {
        /// Answer when they have; else EAGAIN.
        wait: bool,
    },
    /// `sctp_peeloff`: [`Answer::Association`] can be taken over by a new socket. With the request comes a copy of the descriptor: what waits there
    /// of the association goes with it.
    PeelOff {
        /// Which.
        association: u32,
        /// Bytes of the first frame that were read already.
        read: usize,
    },
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
    /// `getsockname`: of an association, or of the socket (0).
    Local(u32),
    /// `sctp_getladdrs`: the same, with the addresses of the system where a socket is bound to all of them.
    LocalAll(u32),
    /// `sctp_getpaddrs`.
    Peer(u32),
    /// `getpeername`.
    PeerName,
    /// Of no socket: [`Answer::Done`], at once. Whoever gets no answer has no host any more.
    Alive,
    /// A program is about to receive: [`Answer::Awaited`] where something may come; else the `errno` that `recv` gives.
    Await {
        /// It would wait.
        wait: bool,
    },
    /// `shutdown` of a one-to-one socket.
    ShutDown {
        /// SHUT_RD, SHUT_RDWR.
        reading: bool,
        /// SHUT_WR, SHUT_RDWR.
        writing: bool,
    },
    /// A program has ended an association (SCTP_EOF): [`Answer::Done`] once it is over, if the peer is
    /// on this machine, else at once.
    Ended(u32),
    /// A program found the end of its descriptor: [`Answer::Done`] where the peer has shut the association down; else the `errno` that `recv` gives.
    End,
    /// Of no socket: [`Answer::Done`], with a descriptor of the memory that has the [`Generation`]s of the host's sockets.
    Generations,
    /// Of no socket, and not answered: with it comes the descriptor that tells of SCTP sockets that a program asks the kernel for, past the
    /// library (`SECCOMP_RET_USER_NOTIF`); without one, an `errno` says why there is none.
    Watch(i32),
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It is done.
    Done,
    /// The number of an association.
    Association(u32),
    /// Where a message goes.
    Route {
        /// The association's number.
        association: u32,
        /// Streams that messages may go out on.
        streams: u16,
        /// Bytes of the largest message.
        most: usize,
        /// It may be remembered while the socket has this generation: the association is up.
        settled: Option<Generation>,
    },
    /// Messages may come, or the end, which will be seen: this may be remembered while the socket has this generation.
    Awaited(Generation),
    /// The bytes of an option.
    Value(Vec<u8>),
    /// Addresses.
    Addresses(Vec<SocketAddr>),
    /// An `errno`.
    Failed(i32),
}

/// What a program remembers of a socket holds while the number at this place is the same (`host::generations`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Where the number is, of [`PLACES`].
    pub place: u32,
    /// The number.
    pub number: u32,
}

/// Generations that a host has memory for; each is a `u32`.
pub const PLACES: usize = 16_384;

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
