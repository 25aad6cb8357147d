//! Messages out.

use std::ffi::c_int;
use std::net::SocketAddr;

use anabranch_sockets::LARGEST_PIECE;
use anabranch_sockets::control::{Answer, Request};
use anabranch_sockets::frame::{self, Frame};

use crate::descriptor::form;
use crate::{ask, routes, system};

/// Flags of struct sctp_sndrcvinfo and struct sctp_sndinfo, as Linux has them.
pub mod flags {
    pub const UNORDERED: u16 = 1;
    pub const ABORT: u16 = 4;
    pub const SACK_IMMEDIATELY: u16 = 8;
    pub const SENDALL: u16 = 64;
    pub const EOF: u16 = 0x200; // MSG_FIN
}

/// How a message is sent.
#[derive(Clone, Debug, Default)]
pub struct How {
    /// Of RFC 6458's structs; `None`: as SCTP_DEFAULT_SEND_PARAM says.
    pub info: Option<Info>,
    /// When it is given up, policy and value; `None`: as SCTP_DEFAULT_PRINFO says.
    pub policy: Option<(u16, u32)>,
    /// Of `sendmsg`.
    pub flags: c_int,
    /// The peer's addresses, where the program names some.
    pub to: Vec<SocketAddr>,
}

impl How {
    /// As the defaults say.
    pub fn plain(flags: c_int) -> Self {
        Self {
            flags,
            ..Self::default()
        }
    }
}

/// What the structs say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Info {
    pub stream: u16,
    pub flags: u16,
    pub ppid: u32,
    pub context: u32,
    pub association: u32,
}

/// As [`message`], for C: with SIGPIPE where there is nobody any more.
pub fn answer(fd: c_int, parts: &[&[u8]], how: How) -> isize {
    let quiet = how.flags & libc::MSG_NOSIGNAL != 0;
    let sent = message(fd, parts, how);
    if sent == Err(libc::EPIPE) && !quiet {
        // SAFETY: no pointers.
        unsafe { libc::raise(libc::SIGPIPE) };
    }
    system::answer(sent)
}

/// Sends one message; gives its length.
pub fn message(fd: c_int, parts: &[&[u8]], how: How) -> system::Outcome {
    let info = how.info.unwrap_or_default();
    let flag = |on: bool, bit: u8| if on { bit } else { 0 };
    let has = |bit: u16| info.flags & bit != 0;
    let (policy, value) = how.policy.unwrap_or_default();
    // The program's own flags of `sendmsg` mean the same (MSG_EOF).
    let ends = has(flags::EOF) || how.flags & c_int::from(flags::EOF) != 0;
    let mut header = Frame {
        stream: info.stream,
        ppid: info.ppid,
        context: info.context,
        value,
        policy,
        flags: flag(has(flags::UNORDERED), frame::UNORDERED)
            | flag(ends, frame::EOF)
            | flag(has(flags::ABORT), frame::ABORT)
            | flag(has(flags::SACK_IMMEDIATELY), frame::IMMEDIATE)
            | flag(has(flags::SENDALL), frame::ALL)
            | flag(how.info.is_none(), frame::DEFAULT)
            | flag(how.policy.is_none(), frame::DEFAULT_POLICY),
        ..Frame::default()
    };
    let length: usize = parts.iter().map(|part| part.len()).sum();
    if length == 0 && header.flags & (frame::EOF | frame::ABORT) == 0 {
        // RFC 6458 §3.1.3: SCTP has no empty messages.
        return Err(libc::EINVAL);
    }
    route(fd, &mut header, &how, length)?;
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
        // As with Linux, the cause of an abort does not count as sent.
        let counted = if header.flags & frame::ABORT != 0 {
            0
        } else {
            length
        };
        return system::send(fd, &all, kernel)
            .map_err(gone)
            .map(|_| counted as isize);
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
                Err(libc::EAGAIN) if !begins => system::wait(fd, libc::POLLOUT),
                Err(error) => return Err(gone(error)),
            }
        }
    }
    Ok(length as isize)
}

/// Finds out where the message goes, and whether it can.
fn route(fd: c_int, header: &mut Frame, how: &How, length: usize) -> Result<(), c_int> {
    let one_to_many = form(fd).is_some_and(|it| it.is_one_to_many());
    let (stream, ends) = (
        header.stream,
        header.flags & (frame::EOF | frame::ABORT) != 0,
    );
    if one_to_many && header.flags & frame::ALL != 0 {
        return Ok(());
    }
    if !one_to_many && how.to.is_empty() && routes::allows(fd, stream, length) {
        return Ok(());
    }
    let request = Request::Route {
        association: how.info.map_or(0, |it| it.association),
        addresses: how.to.clone(),
        // What ends an association begins none.
        begin: !ends,
        wait: !system::is_nonblocking(fd) && how.flags & libc::MSG_DONTWAIT == 0,
    };
    let Answer::Route {
        association,
        streams,
        most,
        settled,
    } = ask::ask(fd, request)?
    else {
        return Err(libc::EIO);
    };
    if stream >= streams {
        return Err(libc::EINVAL);
    }
    if length > most {
        return Err(libc::EMSGSIZE);
    }
    if one_to_many {
        header.association = association;
        header.address = how.to.first().copied();
    } else if settled {
        routes::remember(fd, streams, most);
    }
    Ok(())
}

/// Shuts the association down behind all that was sent before.
pub fn end(fd: c_int) -> Result<(), c_int> {
    let end = Frame {
        flags: frame::EOF,
        ..Frame::default()
    };
    let end = end.encode();
    routes::forget(fd);
    loop {
        match system::send(fd, &[&end], libc::MSG_NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(libc::EINTR) => (),
            Err(libc::EAGAIN) => system::wait(fd, libc::POLLOUT),
            Err(error) => return Err(error),
        }
    }
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
