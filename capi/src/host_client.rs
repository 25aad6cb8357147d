//! Requests from this library to the host.

use std::ffi::c_int;
use std::net::SocketAddr;

use anabranch_sockets::control::{
    Call, HostReply, HostRequest, MAX_CONTROL_MESSAGE, decode, encode,
};
use anabranch_sockets::frame::hello;
use anabranch_sockets::{SocketType, control_address};

use crate::descriptor::{host, remember, secret};
use crate::{host_restart, system};

/// Creates an SCTP socket of this type. If `incoming` is not 0, the socket takes over that
/// association. `flags` may contain SOCK_CLOEXEC and SOCK_NONBLOCK.
pub fn open(socket_type: SocketType, incoming: u32, flags: c_int) -> Result<c_int, c_int> {
    let host = host().ok_or(libc::EPROTONOSUPPORT)?;
    let fd = system::unix_socket(flags & libc::SOCK_CLOEXEC)?;
    let address = anabranch_sockets::address(host, socket_type);
    let connect = || reach(fd, &address);
    let opened = system::bind_anywhere(fd)
        .and_then(|_| match connect() {
            // A new host is started only for a new socket, because an association to be taken over
            // has ended with its host.
            Err(libc::ECONNREFUSED) if incoming == 0 => host_restart::host(connect),
            other => other,
        })
        .map_err(|error| match error {
            // Without a host, the error is that of a kernel without SCTP.
            libc::ECONNREFUSED | libc::EACCES => libc::EPROTONOSUPPORT,
            error => error,
        })
        .and_then(|()| {
            let hello = hello(incoming);
            system::send(fd, &[&hello, secret().as_bytes()], libc::MSG_NOSIGNAL)
        });
    if let Err(error) = opened {
        system::close(fd);
        return Err(error);
    }
    remember(fd, socket_type);
    if flags & libc::SOCK_NONBLOCK != 0 {
        let flags = (libc::O_RDWR | libc::O_NONBLOCK) as usize;
        // SAFETY: the call has no pointer arguments.
        let _ = unsafe {
            system::call(
                libc::SYS_fcntl,
                [fd as usize, libc::F_SETFL as usize, flags, 0, 0, 0],
            )
        };
    }
    Ok(fd)
}

/// Connects to the host if its process belongs to this user or root. The owner is checked, because
/// without a host another user's process could take its name.
fn reach(fd: c_int, address: &[u8]) -> Result<(), c_int> {
    system::connect(fd, address)?;
    match system::is_trusted(system::peer(fd)?.uid) {
        true => Ok(()),
        false => Err(libc::EACCES),
    }
}

/// Whether the host of a socket, and with it each association, has ended. Without this query, the
/// program would see a graceful end by the peer after the data that was already delivered.
pub fn is_lost(fd: c_int) -> bool {
    let before = system::errno();
    let answer = loop {
        match ask(fd, HostRequest::Alive) {
            Err(libc::EINTR) => (),
            answer => break answer,
        }
    };
    // The request must not change the program's `errno`.
    system::answer(Err(before));
    answer.is_err_and(|error| !is_of_this_call(error))
}

/// Whether an error concerns only this call: a signal, or a lack of descriptors or memory. Such an
/// error does not mean that the host has ended.
fn is_of_this_call(error: c_int) -> bool {
    matches!(
        error,
        libc::EINTR | libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS
    )
}

/// Sends a request about a socket and waits for the answer.
pub fn ask(fd: c_int, request: HostRequest) -> Result<HostReply, c_int> {
    finish(begin(fd, request)?)
}

/// Sends a request about a socket. The answer arrives on the returned descriptor, which must be
/// passed to [`finish`].
pub fn begin(fd: c_int, request: HostRequest) -> Result<c_int, c_int> {
    begin_with(Some(fd), request, None)
}

/// Requests `sctp_peeloff`. The host gets a copy of the descriptor, because it moves unread data of
/// the association from this descriptor to the new one.
pub fn peel_off(fd: c_int, association: u32) -> Result<HostReply, c_int> {
    let read = system::int_option(fd, libc::SOL_SOCKET, libc::SO_PEEK_OFF)?.max(0) as usize;
    let request = HostRequest::PeelOff { association, read };
    let answer = finish(begin_with(Some(fd), request, Some(fd))?)?;
    if read > 0 {
        // The host has replaced the partially read message by its unread part, as a separate
        // message in front of all others, so reading continues at its start.
        system::set_int_option(fd, libc::SOL_SOCKET, libc::SO_PEEK_OFF, -1)?;
    }
    Ok(answer)
}

/// Passes to the host the seccomp descriptor that reports calls bypassing this library, or the
/// error that prevented it.
pub fn watch(listener: Result<c_int, c_int>) {
    let request = HostRequest::Watch(listener.err().unwrap_or(0));
    if let Ok(line) = begin_with(None, request, listener.ok()) {
        system::close(line);
    }
}

/// The descriptor of the host's shared memory with generations.
pub fn generations() -> Result<c_int, c_int> {
    let line = begin_with(None, HostRequest::Generations, None)?;
    let mut answer = [0_u8; 64];
    let received = system::receive_with(line, &mut answer);
    system::close(line);
    match received? {
        (_, Some(memory)) => Ok(memory),
        _ => Err(libc::EIO),
    }
}

/// Like [`begin`], but can also pass the descriptor `passed`, and allows requests that are not
/// about a socket.
fn begin_with(
    fd: Option<c_int>,
    request: HostRequest,
    passed: Option<c_int>,
) -> Result<c_int, c_int> {
    let host = host().ok_or(libc::ENOTCONN)?;
    let socket = match fd {
        Some(fd) => {
            let name = system::name(libc::SYS_getsockname, fd).ok_or(libc::EBADF)?;
            name.get(1..).unwrap_or_default().to_vec()
        }
        None => Vec::new(),
    };
    let line = system::unix_socket(libc::SOCK_CLOEXEC)?;
    let secret = secret().to_owned();
    let call = encode(&Call {
        socket,
        request,
        secret,
    });
    let gone = fd.map_or(libc::ENOTCONN, |_| libc::ECONNRESET);
    let sent = reach(line, &control_address(host))
        .map_err(|error| match is_of_this_call(error) {
            true => error,
            false => gone,
        })
        // Fails if another host has replaced that of the socket, because the new host does not know
        // the socket.
        .and_then(|()| match fd {
            Some(fd) if system::peer(fd)?.pid != system::peer(line)?.pid => Err(gone),
            _ => Ok(()),
        })
        .and_then(|()| match passed {
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

/// Waits for the answer to a request of [`begin`].
pub fn finish(line: c_int) -> Result<HostReply, c_int> {
    let mut buffer = vec![0_u8; MAX_CONTROL_MESSAGE];
    let mut parts = [libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    }];
    let received = system::receive(line, &mut parts, 0);
    system::close(line);
    let (length, _) = received?;
    if length == 0 {
        // The host ended before it answered.
        return Err(libc::ECONNRESET);
    }
    match decode(&buffer[..length]).ok_or(libc::EIO)? {
        HostReply::Failed(error) => Err(error),
        answer => Ok(answer),
    }
}

/// Like [`ask`], for a request without a result.
pub fn tell(fd: c_int, request: HostRequest) -> Result<(), c_int> {
    ask(fd, request).map(drop)
}

/// Like [`ask`], for a request that returns addresses.
pub fn addresses(fd: c_int, request: HostRequest) -> Result<Vec<SocketAddr>, c_int> {
    match ask(fd, request)? {
        HostReply::Addresses(all) => Ok(all),
        _ => Err(libc::EIO),
    }
}

/// The association number in an answer; EIO if it contains none.
pub fn association(answer: HostReply) -> Result<u32, c_int> {
    match answer {
        HostReply::Association(number) => Ok(number),
        _ => Err(libc::EIO),
    }
}

/// Reads a socket option from the host; `given` is the contents of the program's buffer.
pub fn option(fd: c_int, level: c_int, option: c_int, given: &[u8]) -> Result<Vec<u8>, c_int> {
    let request = HostRequest::Get {
        level,
        option,
        value: given[..given.len().min(4096)].to_vec(),
    };
    match ask(fd, request)? {
        HostReply::Value(value) => Ok(value),
        _ => Err(libc::EIO),
    }
}
