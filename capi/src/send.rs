//! Messages out.

use std::ffi::c_int;

use anabranch_sockets::LARGEST_PIECE;
use anabranch_sockets::frame::{self, Frame};

use crate::system;

/// Flags of struct sctp_sndrcvinfo and struct sctp_sndinfo, as Linux has them.
pub mod flags {
    pub const UNORDERED: u16 = 1;
    pub const ABORT: u16 = 4;
    pub const SACK_IMMEDIATELY: u16 = 8;
    pub const EOF: u16 = 0x200; // MSG_FIN
}

/// How a message is sent.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Of RFC 6458's structs; `None`: as SCTP_DEFAULT_SEND_PARAM says.
    pub info: Option<Info>,
    /// Of `sendmsg`.
    pub flags: c_int,
}

/// What the structs say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Info {
    pub stream: u16,
    pub flags: u16,
    pub ppid: u32,
    pub context: u32,
    pub lifetime: u32,
}

/// Sends one message; gives its length.
pub fn message(fd: c_int, parts: &[&[u8]], how: How) -> system::Outcome {
    let info = how.info.unwrap_or_default();
    let flag = |on: bool, bit: u8| if on { bit } else { 0 };
    let has = |bit: u16| info.flags & bit != 0;
    let mut header = Frame {
        stream: info.stream,
        ppid: info.ppid,
        context: info.context,
        value: info.lifetime,
        flags: flag(has(flags::UNORDERED), frame::UNORDERED)
            | flag(has(flags::EOF), frame::EOF)
            | flag(has(flags::ABORT), frame::ABORT)
            | flag(has(flags::SACK_IMMEDIATELY), frame::IMMEDIATE)
            | flag(how.info.is_none(), frame::DEFAULT),
        ..Frame::default()
    };
    let length: usize = parts.iter().map(|part| part.len()).sum();
    if length == 0 && header.flags & (frame::EOF | frame::ABORT) == 0 {
        // RFC 6458 §3.1.3: SCTP has no empty messages.
        return Err(libc::EINVAL);
    }
    let kernel = how.flags & (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
    let gone = |error| match error {
        libc::ECONNREFUSED | libc::ECONNRESET | libc::ENOTCONN => libc::EPIPE,
        error => error,
    };
    if length <= LARGEST_PIECE {
        let bytes = header.encode();
        let all: Vec<&[u8]> = [&bytes[..]]
            .into_iter()
            .chain(parts.iter().copied())
            .collect();
        return system::send(fd, &all, kernel)
            .map_err(gone)
            .map(|_| length as isize);
    }
    // The first piece may find no room; the rest waits for it, since a message is sent whole or not at all.
    let whole = parts.concat();
    let mut pieces = whole.chunks(LARGEST_PIECE).peekable();
    let last = header.flags;
    while let Some(piece) = pieces.next() {
        header.flags = match pieces.peek() {
            Some(_) => frame::MORE,
            None => last,
        };
        let begins = piece.as_ptr() == whole.as_ptr();
        loop {
            match system::send(fd, &[&header.encode(), piece], kernel) {
                Ok(_) => break,
                Err(libc::EINTR) if !begins => (),
                Err(libc::EAGAIN) if !begins => wait_for_room(fd),
                Err(error) => return Err(gone(error)),
            }
        }
    }
    Ok(length as isize)
}

/// Waits until the descriptor can be written.
fn wait_for_room(fd: c_int) {
    let mut wanted = libc::pollfd {
        fd,
        events: libc::POLLOUT,
        revents: 0,
    };
    let at = &raw mut wanted as usize;
    // SAFETY: the kernel reads and writes one pollfd. No time limit: a null pointer.
    let _ = unsafe { system::call(libc::SYS_ppoll, [at, 1, 0, 0, 0, 0]) };
}

/// Fills the descriptor, so that it cannot be written until the host reads on, which it does when the association is up.
pub fn fill(fd: c_int) {
    let nothing = Frame {
        kind: frame::Kind::Nothing,
        ..Frame::default()
    };
    let nothing = nothing.encode();
    while system::send(fd, &[&nothing], libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL).is_ok() {}
}
