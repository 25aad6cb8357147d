//! Blocking calls, which can be cancelled as in libc.
//!
//! A thread that blocks in a cancellation point can be cancelled (`pthread_cancel`): glibc then
//! unwinds its stack from within one of its functions. Therefore calls block in libc's `recvmsg`,
//! which also handles O_NONBLOCK, SO_RCVTIMEO and signals. Between `recvmsg` and the program, no
//! function may hold a value that needs to be dropped.

use std::cell::Cell;
use std::ffi::c_int;

use anabranch_sockets::control::{HostReply, HostRequest};
use anabranch_sockets::frame::{HEADER, HostFrameHeader, HostFrameKind};
use libc::{iovec, msghdr, ssize_t};

use crate::libc_next::next;
use crate::{host_client, system};

// Value of PTHREAD_CANCEL_DEFERRED in glibc.
const DEFERRED: c_int = 0;

unsafe extern "C-unwind" {
    /// Sets the cancellation type of a thread: cancelled only at cancellation points, or at any
    /// instruction.
    fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int;
}

/// Descriptor of a pending request. The thread owns it, because a cancelled call cannot close it.
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

/// Waits until the descriptor is readable or has reached the end of its data.
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

/// Waits until the descriptor is writable, by sending an empty frame. The wait is that of `sendmsg`
/// (SO_SNDTIMEO, signals).
pub fn for_room(fd: c_int) -> Result<(), c_int> {
    let nothing = HostFrameHeader {
        kind: HostFrameKind::Nothing,
        ..HostFrameHeader::default()
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
/// The parts, and the memory that they refer to, must be readable.
pub unsafe fn send(fd: c_int, parts: &[iovec], flags: c_int) -> Result<(), c_int> {
    let before = system::errno();
    // SAFETY: an all-zero msghdr is valid and empty; the caller guarantees the parts.
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

/// Error value that means: the answer is pending; wait with [`for_answer`] and repeat the request.
/// No `errno` has this value.
pub const PENDING: c_int = -1;

/// Sends a request to the host. If `wait` is true, the request may block: the first call returns
/// [`PENDING`], and the caller must repeat the request after [`for_answer`]. In this way, no value
/// needs to be dropped while a call blocks.
pub fn asked(fd: c_int, request: HostRequest, wait: bool) -> Result<HostReply, c_int> {
    let line = LINE.with(|it| it.0.replace(-1));
    if line >= 0 {
        return host_client::finish(line);
    }
    if !wait {
        return host_client::ask(fd, request);
    }
    let line = host_client::begin(fd, request)?;
    // If the timeout cannot be set, the thread waits without one.
    let _ = system::wait_as_writing(fd, line);
    LINE.with(|it| it.0.set(line));
    Err(PENDING)
}

/// Waits for the answer to the pending request. The thread may be unwound in this call, because its
/// descriptor is in `LINE`.
pub fn for_answer() -> Result<(), c_int> {
    let waited = for_message(LINE.with(|it| it.0.get()));
    if waited.is_err() {
        let line = LINE.with(|it| it.0.replace(-1));
        system::close(line);
    }
    waited
}

/// Calls libc's `sendmsg`.
///
/// # Safety
/// The requirements are those of libc's function with this name.
unsafe fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    let next = next!(sendmsg(c_int, *const msghdr, c_int) -> ssize_t);
    // SAFETY: guaranteed by the caller.
    unsafe { next(fd, message, flags) }
}

/// Calls libc's `recvmsg`.
///
/// # Safety
/// The requirements are those of libc's function with this name.
unsafe fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    let next = next!(recvmsg(c_int, *mut msghdr, c_int) -> ssize_t);
    // SAFETY: guaranteed by the caller.
    unsafe { next(fd, message, flags) }
}

/// Requests an association from the host and waits until it is established. Even if its
/// cancellation type is asynchronous, the thread is cancelled only while it waits.
pub fn for_association(fd: c_int, request: HostRequest) -> Result<u32, c_int> {
    let mut before = DEFERRED;
    // SAFETY: the function writes an int.
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
    // SAFETY: the function does not write the old value to a null pointer. A deferred cancellation
    // takes effect in this call.
    unsafe { pthread_setcanceltype(before, std::ptr::null_mut()) };
    number
}
