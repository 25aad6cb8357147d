//! SCTP sockets for programs that are written to the sockets API of RFC 6458.
//!
//! A program's SCTP socket is a descriptor of the kernel's: one end of a Unix socket (SOCK_SEQPACKET) whose other end is held by the
//! [`Host`](host::Host), a process that runs SCTP. So `poll`, `epoll`, `fork`, `exec`, `dup2`, SCM_RIGHTS, timeouts and signals are the
//! kernel's business, and an association ends when the last descriptor of its socket is closed.
//!
//! - [`frame`]: what passes over such a descriptor, a message or a notification in a datagram.
//! - [`control`]: what is asked about a socket beside it: options, addresses, `connect`.
//! - [`options`]: the socket options by their numbers and layouts (RFC 6458 §8, as Linux lays them out).
//! - [`host`]: the process behind the descriptors.
//!
//! The C side is the crate `anabranch-capi`.
#![forbid(unsafe_code)]

pub mod control;
mod form;
pub mod frame;
#[cfg(feature = "host")]
pub mod host;
pub mod options;

pub use form::{Form, Style};

/// The abstract Unix address of the host called `name` for sockets of this form, as `sun_path` has it: programs connect to it, and know
/// their SCTP sockets, and what they are, by the peer's address.
pub fn address(name: &str, form: Form) -> Vec<u8> {
    [PREFIX, &form.letters(), b":", name.as_bytes()].concat()
}

/// As [`address`], for requests.
pub fn control_address(name: &str) -> Vec<u8> {
    [b"\0anabranch-control:", name.as_bytes()].concat()
}

/// What the abstract addresses of hosts begin with.
pub const PREFIX: &[u8] = b"\0anabranch-sctp:";

/// The variable of the environment that names the host.
pub const HOST_VARIABLE: &str = "ANABRANCH_HOST";

/// The variable of the environment that has the host's secret, by which it knows programs of other users.
pub const SECRET_VARIABLE: &str = "ANABRANCH_HOST_SECRET";

/// The variable of the environment that says how a host is begun where there is none any more: a program and its arguments, a line each.
pub const COMMAND_VARIABLE: &str = "ANABRANCH_HOST_COMMAND";

/// The variable of the environment that says, where it is set, that the host wants to know of calls past the library.
pub const WATCH_VARIABLE: &str = "ANABRANCH_WATCH";

/// The largest message that passes in one frame, bytes; longer ones pass in several.
pub const LARGEST_PIECE: usize = 64 << 10;
