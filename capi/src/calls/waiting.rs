//! Waiting as libc waits.
//!
//! A thread that waits in a cancellation point can be cancelled (`pthread_cancel`): glibc then unwinds its stack, from within a function
//! of its own. So what waits here is libc's `recvmsg`, which heeds O_NONBLOCK, SO_RCVTIMEO and signals, too; nothing between it and the
//! program has anything to drop.

use std::cell::Cell;
use std::ffi::c_int;

use anabranch_sockets::control::Request;
use libc::{msghdr, ssize_t};

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
    // SAFETY: an empty msghdr is one of zeros; nothing is written but its own fields.
    let length = unsafe {
        let mut message: msghdr = std::mem::zeroed();
        recvmsg(fd, &raw mut message, libc::MSG_PEEK)
    };
    match length {
        ..0 => Err(system::errno()),
        _ => Ok(()),
    }
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
