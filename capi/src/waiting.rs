//! Blocking, as in libc.
//!
//! A thread that blocks in a cancellation point can be cancelled (`pthread_cancel`): glibc then
//! unwinds its stack, from within one of its functions. Blocking therefore happens in libc's
//! `recvmsg`, which also handles O_NONBLOCK, SO_RCVTIMEO and signals; no value between it and the
//! program needs to be dropped.

use std::cell::Cell;
use std::ffi::c_int;

use anabranch_sockets::control::{Answer, Request};
use anabranch_sockets::frame::{Frame, HEADER, Kind};
use libc::{iovec, msghdr, ssize_t};

use crate::libc_next::next;
use crate::{host_client, system};

// Constants of glibc.
const DEFERRED: c_int = 0;

unsafe extern "C-unwind" {
    /// Cancellation type of a thread: at cancellation points, or anywhere.
    fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int;
}

/// A descriptor owned by the thread, because a cancelled call cannot close it.
struct Line(Cell<c_int>);

impl Drop for Line {
    fn drop(&mut self) {
        if self.0.get() >= 0 {
            system::close(self.0.get());
        }
    }
}

thread_local! {
    static LINE: Line = const { Line(Cell::new(-1)) };
}

/// Waits until the descriptor is readable, or at its end.
pub fn for_message(fd: c_int) -> Result<(), c_int> {
    let before = system::errno();
    // SAFETY: an all-zero msghdr is valid and empty; only its fields are written.
    let length = unsafe {
        let mut message: msghdr = std::mem::zeroed();
        recvmsg(fd, &raw mut message, libc::MSG_PEEK)
    };
    match length {
        ..0 => Err(system::take_errno(before)),
        _ => Ok(()),
    }
}

/// Waits until the descriptor is writable, like `sendmsg` (SO_SNDTIMEO, signals), by sending an
/// empty frame.
pub fn for_room(fd: c_int) -> Result<(), c_int> {
    let nothing = Frame {
        kind: Kind::Nothing,
        ..Frame::default()
    };
    let mut nothing = nothing.encode();
    let part = iovec {
        iov_base: nothing.as_mut_ptr().cast(),
        iov_len: HEADER,
    };
    // SAFETY: the header exists.
    unsafe { send(fd, &[part], libc::MSG_NOSIGNAL) }
}

/// Calls libc's `sendmsg` with these parts.
///
/// # Safety
/// The parts, and the memory that they name, must be readable.
pub unsafe fn send(fd: c_int, parts: &[iovec], flags: c_int) -> Result<(), c_int> {
    let before = system::errno();
    // SAFETY: an all-zero msghdr is valid and empty; the caller guarantees the other conditions.
    let sent = unsafe {
        let mut message: msghdr = std::mem::zeroed();
        message.msg_iov = parts.as_ptr().cast_mut();
        message.msg_iovlen = parts.len() as _;
        sendmsg(fd, &raw const message, flags)
    };
    match sent {
        ..0 => Err(system::take_errno(before)),
        _ => Ok(()),
    }
}

/// The answer is pending: wait with [`for_answer`] and repeat the request. No `errno` has this
/// value.
pub const PENDING: c_int = -1;

/// Sends a request to the host. A request that may block (`wait`) must be repeated after
/// [`PENDING`] and [`for_answer`], so that no value needs to be dropped while the call blocks.
pub fn asked(fd: c_int, request: Request, wait: bool) -> Result<Answer, c_int> {
    let line = LINE.with(|it| it.0.replace(-1));
    if line >= 0 {
        return host_client::finish(line);
    }
    if !wait {
        return host_client::ask(fd, request);
    }
    let line = host_client::begin(fd, request)?;
    // If this fails, the thread waits without a timeout.
    let _ = system::wait_as_writing(fd, line);
    LINE.with(|it| it.0.set(line));
    Err(PENDING)
}

/// Waits for the answer to the request. May be unwound, because the thread keeps the descriptor.
pub fn for_answer() -> Result<(), c_int> {
    let waited = for_message(LINE.with(|it| it.0.get()));
    if waited.is_err() {
        let line = LINE.with(|it| it.0.replace(-1));
        system::close(line);
    }
    waited
}

/// libc's function.
///
/// # Safety
/// Same as libc's function.
unsafe fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    let next = next!(sendmsg(c_int, *const msghdr, c_int) -> ssize_t);
    // SAFETY: guaranteed by the caller.
    unsafe { next(fd, message, flags) }
}

/// libc's function.
///
/// # Safety
/// Same as libc's function.
unsafe fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    let next = next!(recvmsg(c_int, *mut msghdr, c_int) -> ssize_t);
    // SAFETY: guaranteed by the caller.
    unsafe { next(fd, message, flags) }
}

/// Requests an association from the host and waits until it is set up. Even with asynchronous
/// cancellation, a thread is only cancelled while it waits.
pub fn for_association(fd: c_int, request: Request) -> Result<u32, c_int> {
    let mut before = DEFERRED;
    // SAFETY: an int is written.
    unsafe { pthread_setcanceltype(DEFERRED, &raw mut before) };
    let line = host_client::begin(fd, request);
    let waited = line.and_then(|line| {
        LINE.with(|it| it.0.set(line));
        let waited = for_message(line);
        LINE.with(|it| it.0.set(-1));
        if waited.is_err() {
            system::close(line);
        }
        waited.map(|()| line)
    });
    let number = waited.and_then(|line| host_client::association(host_client::finish(line)?));
    // SAFETY: the old value is not requested. A deferred cancellation takes effect in this call.
    unsafe { pthread_setcanceltype(before, std::ptr::null_mut()) };
    number
}
