//! Waiting as libc waits.
//!
//! A thread that waits in a cancellation point can be cancelled (`pthread_cancel`): glibc then unwinds its stack, from within a function
//! of its own. So what waits here is libc's `recvmsg`, which heeds O_NONBLOCK, SO_RCVTIMEO and signals, too; nothing between it and the
//! program has anything to drop.

use std::cell::Cell;
use std::ffi::c_int;

use anabranch_sockets::control::{Answer, Request};
use anabranch_sockets::frame::{Frame, HEADER, Kind};
use libc::{iovec, msghdr, ssize_t};

use crate::next::next;
use crate::{ask, system};

// The constants are those of glibc.
const DEFERRED: c_int = 0;

unsafe extern "C-unwind" {
    /// When a thread is cancelled: at a cancellation point, or anywhere.
    fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int;
}

/// A descriptor that goes with the thread: one that is cancelled cannot close it.
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

/// Waits until there is something to read, or the end.
pub fn for_message(fd: c_int) -> Result<(), c_int> {
    let before = system::errno();
    // SAFETY: an empty msghdr is one of zeros; nothing is written but its own fields.
    let length = unsafe {
        let mut message: msghdr = std::mem::zeroed();
        recvmsg(fd, &raw mut message, libc::MSG_PEEK)
    };
    match length {
        ..0 => Err(system::take_errno(before)),
        _ => Ok(()),
    }
}

/// Waits until there is room to write, as `sendmsg` does (SO_SNDTIMEO, signals): by sending nothing.
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
    // SAFETY: the header is there.
    unsafe { send(fd, &[part], libc::MSG_NOSIGNAL) }
}

/// libc's own `sendmsg` of these parts.
///
/// # Safety
/// They can be read, and what they name.
pub unsafe fn send(fd: c_int, parts: &[iovec], flags: c_int) -> Result<(), c_int> {
    let before = system::errno();
    // SAFETY: an empty msghdr is one of zeros; the rest as the caller promises.
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

/// The answer to a request is waited for, by [`for_answer`]; then it is to be asked again. No `errno` has that number.
pub const PENDING: c_int = -1;

/// Asks the host. What may take long (`wait`) is answered when it is asked again, after [`PENDING`] and [`for_answer`]: by then nothing has to be
/// dropped.
pub fn asked(fd: c_int, request: Request, wait: bool) -> Result<Answer, c_int> {
    let line = LINE.with(|it| it.0.replace(-1));
    if line >= 0 {
        return ask::finish(line);
    }
    if !wait {
        return ask::ask(fd, request);
    }
    let line = ask::begin(fd, request)?;
    // Where it is refused, the thread waits for as long as it takes.
    let _ = system::wait_as_writing(fd, line);
    LINE.with(|it| it.0.set(line));
    Err(PENDING)
}

/// Waits for the answer to what was asked. May be unwound: the thread keeps the descriptor.
pub fn for_answer() -> Result<(), c_int> {
    let waited = for_message(LINE.with(|it| it.0.get()));
    if waited.is_err() {
        let line = LINE.with(|it| it.0.replace(-1));
        system::close(line);
    }
    waited
}

/// libc's own.
///
/// # Safety
/// As libc's.
unsafe fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    let next = next!(sendmsg(c_int, *const msghdr, c_int) -> ssize_t);
    // SAFETY: as the caller promises.
    unsafe { next(fd, message, flags) }
}

/// libc's own.
///
/// # Safety
/// As libc's.
unsafe fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    let next = next!(recvmsg(c_int, *mut msghdr, c_int) -> ssize_t);
    // SAFETY: as the caller promises.
    unsafe { next(fd, message, flags) }
}

/// Asks the host for an association, and waits until it is there. A thread that may be cancelled anywhere is cancelled while it waits.
pub fn for_association(fd: c_int, request: Request) -> Result<u32, c_int> {
    let mut before = DEFERRED;
    // SAFETY: an int is written.
    unsafe { pthread_setcanceltype(DEFERRED, &raw mut before) };
    let line = ask::begin(fd, request);
    let waited = line.and_then(|line| {
        LINE.with(|it| it.0.set(line));
        let waited = for_message(line);
        LINE.with(|it| it.0.set(-1));
        if waited.is_err() {
            system::close(line);
        }
        waited.map(|()| line)
    });
    let number = waited.and_then(|line| ask::association(ask::finish(line)?));
    // SAFETY: no old value is wanted. What was put off happens now.
    unsafe { pthread_setcanceltype(before, std::ptr::null_mut()) };
    number
}
