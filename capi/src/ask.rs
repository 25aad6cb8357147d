//! Requests to the host.

use std::ffi::c_int;
use std::net::SocketAddr;

use anabranch_sockets::control::{Answer, Call, LONGEST, Request, decode, encode};
use anabranch_sockets::frame::hello;
use anabranch_sockets::{Form, control_address};

use crate::descriptor::{host, remember};
use crate::system;

/// A new socket of this form, which takes over the association `incoming` if that is not 0; `flags` of SOCK_CLOEXEC and SOCK_NONBLOCK.
pub fn open(form: Form, incoming: u32, flags: c_int) -> Result<c_int, c_int> {
    let host = host().ok_or(libc::EPROTONOSUPPORT)?;
    let fd = system::unix_socket(flags & libc::SOCK_CLOEXEC)?;
    let address = anabranch_sockets::address(host, form);
    let opened = system::bind_anywhere(fd)
        .and_then(|_| system::connect(fd, &address))
        // The host is gone: as a kernel without SCTP.
        .map_err(|_| libc::EPROTONOSUPPORT)
        .and_then(|_| system::send(fd, &[&hello(incoming)], libc::MSG_NOSIGNAL));
    if let Err(error) = opened {
        system::close(fd);
        return Err(error);
    }
    remember(fd, form);
    if flags & libc::SOCK_NONBLOCK != 0 {
        let flags = (libc::O_RDWR | libc::O_NONBLOCK) as usize;
        // SAFETY: no pointers.
        let _ = unsafe {
            system::call(
                libc::SYS_fcntl,
                [fd as usize, libc::F_SETFL as usize, flags, 0, 0, 0],
            )
        };
    }
    Ok(fd)
}

/// Asks the host about a socket, and waits for its answer.
pub fn ask(fd: c_int, request: Request) -> Result<Answer, c_int> {
    finish(begin(fd, request)?)
}

/// Asks the host about a socket: its answer comes over the descriptor that this gives, for [`finish`].
pub fn begin(fd: c_int, request: Request) -> Result<c_int, c_int> {
    begin_with(Some(fd), request, None)
}

/// `sctp_peeloff`: what waits in the descriptor of the association goes with it, so that the host gets a copy of it.
pub fn peel_off(fd: c_int, association: u32) -> Result<Answer, c_int> {
    let read = system::int_option(fd, libc::SOL_SOCKET, libc::SO_PEEK_OFF)?.max(0) as usize;
    let request = Request::PeelOff { association, read };
    let answer = finish(begin_with(Some(fd), request, Some(fd))?)?;
    if read > 0 {
        // The host has put the rest of what was read in part before all else, as a message of its own.
        system::set_int_option(fd, libc::SOL_SOCKET, libc::SO_PEEK_OFF, -1)?;
    }
    Ok(answer)
}

/// Tells the host who hears of calls past this library, or why nobody does.
pub fn watch(listener: Result<c_int, c_int>) {
    let request = Request::Watch(listener.err().unwrap_or(0));
    if let Ok(line) = begin_with(None, request, listener.ok()) {
        system::close(line);
    }
}

/// As [`begin`]; `passed` goes with it.
fn begin_with(fd: Option<c_int>, request: Request, passed: Option<c_int>) -> Result<c_int, c_int> {
    let host = host().ok_or(libc::ENOTCONN)?;
    let socket = match fd {
        Some(fd) => {
            let name = system::name(libc::SYS_getsockname, fd).ok_or(libc::EBADF)?;
            name.get(1..).unwrap_or_default().to_vec()
        }
        None => Vec::new(),
    };
    let line = system::unix_socket(libc::SOCK_CLOEXEC)?;
    let call = encode(&Call { socket, request });
    let sent = system::connect(line, &control_address(host))
        .map_err(|_| libc::ENOTCONN)
        .and_then(|_| match passed {
            Some(passed) => system::send_with(line, &call, passed),
            None => system::send(line, &[&call], libc::MSG_NOSIGNAL),
        });
    match sent {
        Ok(_) => Ok(line),
        Err(error) => {
            system::close(line);
            Err(error)
        }
    }
}

/// The answer to what was asked by [`begin`].
pub fn finish(line: c_int) -> Result<Answer, c_int> {
    let mut buffer = vec![0_u8; LONGEST];
    let mut parts = [libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    }];
    let received = system::receive(line, &mut parts, 0);
    system::close(line);
    let (length, _) = received?;
    match decode(&buffer[..length]).ok_or(libc::EIO)? {
        Answer::Failed(error) => Err(error),
        answer => Ok(answer),
    }
}

/// As [`ask`], where the answer says no more than that it is done.
pub fn tell(fd: c_int, request: Request) -> Result<(), c_int> {
    ask(fd, request).map(drop)
}

/// As [`ask`], where the answer is addresses.
pub fn addresses(fd: c_int, request: Request) -> Result<Vec<SocketAddr>, c_int> {
    match ask(fd, request)? {
        Answer::Addresses(all) => Ok(all),
        _ => Err(libc::EIO),
    }
}

/// The association that an answer names.
pub fn association(answer: Answer) -> Result<u32, c_int> {
    match answer {
        Answer::Association(number) => Ok(number),
        _ => Err(libc::EIO),
    }
}

/// An option of the host's; `given` is what the program has in its buffer.
pub fn option(fd: c_int, level: c_int, option: c_int, given: &[u8]) -> Result<Vec<u8>, c_int> {
    let request = Request::Get {
        level,
        option,
        value: given[..given.len().min(4096)].to_vec(),
    };
    match ask(fd, request)? {
        Answer::Value(value) => Ok(value),
        _ => Err(libc::EIO),
    }
}
