//! SCTP sockets for programs that use the sockets API of RFC 6458.
//!
//! A program's SCTP socket is a kernel descriptor: one end of a Unix socket (SOCK_SEQPACKET). The
//! [`Host`](host::Host), a process that runs SCTP, holds the other end. The kernel therefore
//! handles `poll`, `epoll`, `fork`, `exec`, `dup2`, SCM_RIGHTS, timeouts and signals, and an
//! association ends when the last descriptor of its socket is closed.
//!
//! - [`frame`]: frames on such a descriptor, one message or notification per datagram.
//! - [`control`]: requests about a socket that are not messages: options, addresses, `connect`.
//! - [`options`]: socket options with their numbers and layouts (RFC 6458 §8, with Linux's
//!   layouts).
//! - [`host`]: the process at the other end of the descriptors.
//!
//! The C library is the crate `anabranch-capi`.
#![warn(missing_debug_implementations, unnameable_types, unreachable_pub)]
#![warn(clippy::use_self)]
#![forbid(unsafe_code)]

pub mod control;
pub mod frame;
#[cfg(feature = "host")]
pub mod host;
pub mod options;
mod socket_type;

pub use socket_type::{SocketStyle, SocketType};

/// Abstract Unix address (as in `sun_path`) at which the host `name` accepts sockets of this type.
/// Programs connect to it, and recognize SCTP sockets and their types by this peer address.
pub fn address(name: &str, socket_type: SocketType) -> Vec<u8> {
    [PREFIX, &socket_type.letters(), b":", name.as_bytes()].concat()
}

/// Like [`address`], for control requests.
pub fn control_address(name: &str) -> Vec<u8> {
    [b"\0anabranch-control:", name.as_bytes()].concat()
}

/// Prefix of the abstract addresses of hosts.
pub const PREFIX: &[u8] = b"\0anabranch-sctp:";

/// Environment variable with the name of the host.
pub const HOST_VARIABLE: &str = "ANABRANCH_HOST";

/// Environment variable with the host's secret, which programs of other users must present.
pub const SECRET_VARIABLE: &str = "ANABRANCH_HOST_SECRET";

/// Environment variable with the command that starts a host if none is running: a program and its
/// arguments, one per line.
pub const COMMAND_VARIABLE: &str = "ANABRANCH_HOST_COMMAND";

/// Environment variable that is set if programs should report requests to the kernel for SCTP
/// sockets, which bypass the library.
pub const WATCH_VARIABLE: &str = "ANABRANCH_WATCH";

/// Maximum size of a message in a single frame, bytes; longer messages are split.
pub const MAX_PIECE: usize = 64 << 10;
