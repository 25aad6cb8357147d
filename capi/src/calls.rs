//! Interposed libc functions. Calls on SCTP sockets are handled by this library; all others are
//! forwarded to libc.
//!
//! Most of these functions are cancellation points: glibc ends a cancelled thread by unwinding its
//! stack from within a libc function ([`waiting`]). The functions may therefore be unwound
//! (`C-unwind`), and must not hold a value that needs to be dropped while they call libc.

use std::ffi::{c_int, c_void};

use anabranch_sockets::control::HostRequest;
use anabranch_sockets::{SocketStyle, SocketType};
use libc::{iovec, size_t, sockaddr, socklen_t, ssize_t};

use crate::associations::{connect_to, take_over};
use crate::descriptor::{forget, host, is_ours, socket_type};
use crate::libc_next::next;
use crate::receive::{self, ReceivedPiece};
use crate::sctp;
use crate::send::{self, MessageParts, SendParameters};
use crate::{address, host_client, system, waiting};

mod dup;
mod fortify;
mod messages;
mod mmsg;
mod sendfile;
mod syscall;

/// Largest valid socket type: SOCK_PACKET.
const MAX_KIND: c_int = 10;

/// Converts a result to C: the value, or -1 with `errno`.
fn int(outcome: Result<c_int, c_int>) -> c_int {
    system::answer(outcome.map(|it| it as isize)) as c_int
}

/// Converts a result without a value to C: 0, or -1 with `errno`.
fn done(outcome: Result<(), c_int>) -> c_int {
    int(outcome.map(|()| 0))
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let flags = kind & (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK);
    let style = kind & !flags;
    // Of the IP protocols, only SCTP has sockets of type SOCK_SEQPACKET.
    let by_kind = protocol == 0 && style == libc::SOCK_SEQPACKET;
    let ip = matches!(domain, libc::AF_INET | libc::AF_INET6);
    let sctp = ip && (protocol == libc::IPPROTO_SCTP || by_kind);
    if !sctp || host().is_none() {
        let next = next!(socket(c_int, c_int, c_int) -> c_int);
        // SAFETY: guaranteed by the caller.
        let fd = unsafe { next(domain, kind, protocol) };
        forget(fd);
        return fd;
    }
    let style = match style {
        libc::SOCK_STREAM => SocketStyle::OneToOne,
        libc::SOCK_SEQPACKET => SocketStyle::OneToMany,
        // The type has invalid bits, or is unknown (SOCK_MAX).
        style if !(0..=MAX_KIND).contains(&style) => return int(Err(libc::EINVAL)),
        libc::SOCK_RDM => return int(Err(libc::ESOCKTNOSUPPORT)),
        _ => return int(Err(libc::EPROTONOSUPPORT)),
    };
    int(host_client::open(
        SocketType::new(domain == libc::AF_INET6, style),
        0,
        flags,
    ))
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn bind(fd: c_int, at: *const sockaddr, length: socklen_t) -> c_int {
    if !is_ours(fd) {
        let next = next!(bind(c_int, *const sockaddr, socklen_t) -> c_int);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, at, length) };
    }
    // SAFETY: guaranteed by the caller.
    let own = unsafe { address::given(at.cast(), length) };
    done(own.and_then(|address| host_client::tell(fd, HostRequest::Bind(vec![address]))))
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn listen(fd: c_int, backlog: c_int) -> c_int {
    if !is_ours(fd) {
        let next = next!(listen(c_int, c_int) -> c_int);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, backlog) };
    }
    let listens = host_client::tell(fd, HostRequest::Listen(backlog));
    if listens.is_ok()
        && backlog > 0
        && socket_type(fd).is_some_and(|it| it.style == SocketStyle::OneToOne)
    {
        // As in Linux, `poll` should never report a listening socket as writable.
        send::fill(fd);
    }
    done(listens)
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn connect(
    fd: c_int,
    at: *const sockaddr,
    length: socklen_t,
) -> c_int {
    if !is_ours(fd) {
        let next = next!(connect(c_int, *const sockaddr, socklen_t) -> c_int);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, at, length) };
    }
    // SAFETY: guaranteed by the caller.
    let peer = unsafe { address::given(at.cast(), length) };
    match peer {
        Ok(address) => done(connect_to(fd, vec![address]).1),
        // AF_UNSPEC requests to disconnect, which SCTP does not support. SAFETY: its family was
        // just read.
        Err(libc::EAFNOSUPPORT) if unsafe { at.cast::<u16>().read_unaligned() } == 0 => {
            int(Err(libc::EOPNOTSUPP))
        }
        Err(libc::EAFNOSUPPORT) => int(Err(libc::EINVAL)),
        Err(error) => int(Err(error)),
    }
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept(
    fd: c_int,
    at: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    if !is_ours(fd) {
        let next = next!(accept(c_int, *mut sockaddr, *mut socklen_t) -> c_int);
        // SAFETY: guaranteed by the caller.
        let accepted = unsafe { next(fd, at, length) };
        forget(accepted);
        return accepted;
    }
    // SAFETY: guaranteed by the caller.
    int(unsafe { accept_one(fd, at, length, 0) })
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    at: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    if !is_ours(fd) {
        let next = next!(accept4(c_int, *mut sockaddr, *mut socklen_t, c_int) -> c_int);
        // SAFETY: guaranteed by the caller.
        let accepted = unsafe { next(fd, at, length, flags) };
        forget(accepted);
        return accepted;
    }
    // SAFETY: guaranteed by the caller.
    int(unsafe { accept_one(fd, at, length, flags) })
}

/// # Safety
/// Same as [`address::write`].
unsafe fn accept_one(
    fd: c_int,
    at: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> Result<c_int, c_int> {
    let socket_type = socket_type(fd).ok_or(libc::EBADF)?;
    if socket_type.style != SocketStyle::OneToOne {
        return Err(libc::EOPNOTSUPP);
    }
    if !is_listening(fd)? {
        return Err(libc::EINVAL);
    }
    let (incoming, address) = loop {
        match receive::incoming(fd) {
            Err(libc::EAGAIN) => waiting::for_message(fd)?,
            other => break other?,
        }
    };
    let accepted = take_over(fd, socket_type, incoming, flags)?;
    if let Some(address) = address.filter(|_| !at.is_null()) {
        // SAFETY: guaranteed by the caller.
        let written = unsafe { address::write(&address::bytes(address), at.cast(), length) };
        if let Err(error) = written {
            // As in Linux, the association is lost if its address cannot be written.
            forget(accepted);
            system::close(accepted);
            return Err(error);
        }
    }
    Ok(accepted)
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getsockname(
    fd: c_int,
    at: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    if !is_ours(fd) {
        let next = next!(getsockname(c_int, *mut sockaddr, *mut socklen_t) -> c_int);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, at, length) };
    }
    // SAFETY: guaranteed by the caller.
    done(unsafe { first_address(fd, HostRequest::Local(0), at, length) })
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getpeername(
    fd: c_int,
    at: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    if !is_ours(fd) {
        let next = next!(getpeername(c_int, *mut sockaddr, *mut socklen_t) -> c_int);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, at, length) };
    }
    // SAFETY: guaranteed by the caller.
    done(unsafe { first_address(fd, HostRequest::PeerName, at, length) })
}

/// # Safety
/// Same as [`address::write`].
unsafe fn first_address(
    fd: c_int,
    request: HostRequest,
    at: *mut sockaddr,
    length: *mut socklen_t,
) -> Result<(), c_int> {
    let all = host_client::addresses(fd, request)?;
    let first = *all.first().ok_or(libc::ENOTCONN)?;
    // SAFETY: guaranteed by the caller.
    unsafe { address::write(&address::bytes(first), at.cast(), length) }
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shutdown(fd: c_int, how: c_int) -> c_int {
    if !is_ours(fd) {
        let next = next!(shutdown(c_int, c_int) -> c_int);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, how) };
    }
    done(shut_down(fd, how))
}

fn shut_down(fd: c_int, how: c_int) -> Result<(), c_int> {
    if ![libc::SHUT_RD, libc::SHUT_WR, libc::SHUT_RDWR].contains(&how) {
        return Err(libc::EINVAL);
    }
    let socket_type = socket_type(fd).ok_or(libc::EBADF)?;
    let connected = host_client::addresses(fd, HostRequest::PeerName);
    if socket_type.is_one_to_many() || connected.is_err() {
        return match (is_listening(fd)? && !socket_type.is_one_to_many(), how) {
            (true, libc::SHUT_WR) => Ok(()),
            (true, _) => Err(libc::EOPNOTSUPP),
            (false, _) => Err(libc::ENOTCONN),
        };
    }
    let [reading, writing] = [how != libc::SHUT_WR, how != libc::SHUT_RD];
    if socket_type.style == SocketStyle::OneToOne {
        // The host must have this request before the end of the data can arrive.
        host_client::tell(fd, HostRequest::ShutDown { reading, writing })?;
    }
    if writing {
        send::end(fd)?;
    }
    if reading {
        // The program can still read the remaining data, followed by the end; waiting threads wake
        // up. The call has no other effect (RFC 6458 §4.1.7).
        system::end_of_reading(fd)?;
    }
    Ok(())
}

fn is_listening(fd: c_int) -> Result<bool, c_int> {
    host_client::option(fd, libc::SOL_SOCKET, libc::SO_ACCEPTCONN, &[0; 4]).map(|it| it != [0; 4])
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn setsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    if !is_ours(fd) {
        let next = next!(setsockopt(c_int, c_int, c_int, *const c_void, socklen_t) -> c_int);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, level, option, value, length) };
    }
    // SAFETY: guaranteed by the caller.
    int(unsafe { sctp::set_option(fd, level, option, value, length as usize) })
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    if !is_ours(fd) {
        let next = next!(getsockopt(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, level, option, value, length) };
    }
    // SAFETY: guaranteed by the caller.
    done(unsafe { sctp::get_option(fd, level, option, value, length) })
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn send(
    fd: c_int,
    at: *const c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    let Some(socket_type) = socket_type(fd) else {
        let next = next!(send(c_int, *const c_void, size_t, c_int) -> ssize_t);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, at, length, flags) };
    };
    let part = part(at, length);
    // SAFETY: guaranteed by the caller.
    let parts = unsafe { MessageParts::new(&raw const part, 1) };
    send::answer(fd, socket_type, parts, flags, || {
        Ok(SendParameters::plain(flags))
    })
}

/// Describes the memory of a message that has one part.
fn part(at: *const c_void, length: size_t) -> iovec {
    iovec {
        iov_base: at.cast_mut(),
        iov_len: length,
    }
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendto(
    fd: c_int,
    at: *const c_void,
    length: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_length: socklen_t,
) -> ssize_t {
    let Some(socket_type) = socket_type(fd) else {
        let next = next!(
            sendto(c_int, *const c_void, size_t, c_int, *const sockaddr, socklen_t) -> ssize_t
        );
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, at, length, flags, to, to_length) };
    };
    let part = part(at, length);
    // SAFETY: guaranteed by the caller.
    let parts = unsafe { MessageParts::new(&raw const part, 1) };
    send::answer(fd, socket_type, parts, flags, || {
        let mut parameters = SendParameters::plain(flags);
        if !to.is_null() {
            // SAFETY: guaranteed by the caller.
            let (address, _) = unsafe { address::read(to.cast(), to_length as usize) }?;
            parameters.to.push(address);
        }
        Ok(parameters)
    })
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn write(fd: c_int, at: *const c_void, length: size_t) -> ssize_t {
    if !is_ours(fd) {
        let next = next!(write(c_int, *const c_void, size_t) -> ssize_t);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, at, length) };
    }
    // SAFETY: guaranteed by the caller.
    unsafe { send(fd, at, length, 0) }
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recv(
    fd: c_int,
    at: *mut c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    if !is_ours(fd) {
        let next = next!(recv(c_int, *mut c_void, size_t, c_int) -> ssize_t);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, at, length, flags) };
    }
    // SAFETY: guaranteed by the caller.
    let received = unsafe { receive_into(fd, at, length, flags) };
    system::answer(received.map(|it| it.length as isize))
}

/// # Safety
/// `length` bytes must be writable at `at`.
pub unsafe fn receive_into(
    fd: c_int,
    at: *mut c_void,
    length: usize,
    flags: c_int,
) -> Result<ReceivedPiece, c_int> {
    let part = iovec {
        iov_base: at,
        iov_len: length,
    };
    // SAFETY: guaranteed by the caller.
    unsafe { receive_parts(fd, &[part], flags) }
}

/// Receives a message. If none is available and the descriptor is blocking, waits for one.
///
/// # Safety
/// The memory of the parts must be writable.
unsafe fn receive_parts(fd: c_int, parts: &[iovec], flags: c_int) -> Result<ReceivedPiece, c_int> {
    let wait = || flags & libc::MSG_DONTWAIT == 0 && !system::is_nonblocking(fd);
    receive::may_begin(fd, wait)?;
    loop {
        // SAFETY: guaranteed by the caller.
        match unsafe { receive::message(fd, parts, flags | libc::MSG_DONTWAIT) } {
            Err(libc::EAGAIN) if wait() => {
                // `may_wait` fails if no more data will arrive, but the last message may have
                // arrived since the attempt above.
                let Err(error) = receive::may_wait(fd) else {
                    waiting::for_message(fd)?;
                    continue;
                };
                // SAFETY: guaranteed by the caller.
                return match unsafe { receive::message(fd, parts, flags | libc::MSG_DONTWAIT) } {
                    Err(libc::EAGAIN) => Err(error),
                    other => other,
                };
            }
            other => return other,
        }
    }
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvfrom(
    fd: c_int,
    at: *mut c_void,
    length: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> ssize_t {
    if !is_ours(fd) {
        let next = next!(
            recvfrom(c_int, *mut c_void, size_t, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t
        );
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, at, length, flags, from, from_length) };
    }
    // SAFETY: guaranteed by the caller.
    let received = unsafe { receive_into(fd, at, length, flags) };
    let received = received.and_then(|received| {
        if let Some(address) = received.address() {
            let bytes = address::bytes(address);
            // SAFETY: guaranteed by the caller.
            unsafe { address::write_with_message(&bytes, from.cast(), from_length) }?;
        }
        Ok(received)
    });
    system::answer(received.map(|it| it.length as isize))
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn read(fd: c_int, at: *mut c_void, length: size_t) -> ssize_t {
    if !is_ours(fd) {
        let next = next!(read(c_int, *mut c_void, size_t) -> ssize_t);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, at, length) };
    }
    if length == 0 {
        return 0;
    }
    // SAFETY: guaranteed by the caller.
    unsafe { recv(fd, at, length, 0) }
}
