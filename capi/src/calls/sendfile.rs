//! Transfers between descriptors: `sendfile` and `splice`.
//!
//! In Linux's SCTP these calls transfer messages: the sender transmits each page of the file or
//! pipe as one message, and the receiver reads one message or the requested part of it.

use std::ffi::c_int;

use libc::{off64_t, size_t, ssize_t};

use super::{recv, send};
use crate::descriptor::is_ours;
use crate::libc_next::next;
use crate::system;

/// Page size, bytes.
const PAGE: usize = 4096;
/// Maximum number of bytes of one transfer step: the capacity of a pipe.
const MAX_TRANSFER: usize = 16 * PAGE;

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendfile(
    to: c_int,
    from: c_int,
    offset: *mut off64_t,
    count: size_t,
) -> ssize_t {
    if !is_ours(to) {
        let next = next!(sendfile(c_int, c_int, *mut off64_t, size_t) -> ssize_t);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(to, from, offset, count) };
    }
    // SAFETY: guaranteed by the caller.
    unsafe { send_file(to, from, offset, count) }
}

/// Same function as `sendfile` on 64-bit machines.
///
/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendfile64(
    to: c_int,
    from: c_int,
    offset: *mut off64_t,
    count: size_t,
) -> ssize_t {
    // SAFETY: guaranteed by the caller.
    unsafe { sendfile(to, from, offset, count) }
}

/// # Safety
/// `offset` must be null, or readable and writable.
unsafe fn send_file(to: c_int, from: c_int, offset: *mut off64_t, count: usize) -> ssize_t {
    let mut page = [0_u8; PAGE];
    let mut done = 0;
    // SAFETY: guaranteed by the caller.
    let own = unsafe { offset.as_ref() }.copied();
    // SAFETY: the call has no pointer arguments.
    let begin = own.unwrap_or_else(|| unsafe { libc::lseek64(from, 0, libc::SEEK_CUR) });
    if begin < 0 {
        return -1;
    }
    while done < count {
        let at = begin + done as off64_t;
        // Messages end at page boundaries of the file, so the first one may be shorter.
        let left = PAGE - at as usize % PAGE;
        let wanted = left.min(count - done);
        // SAFETY: `page` has that size.
        let read = unsafe { libc::pread64(from, page.as_mut_ptr().cast(), wanted, at) };
        if read <= 0 {
            if read < 0 && done == 0 {
                return -1;
            }
            break;
        }
        // SAFETY: these bytes were just read.
        let sent = unsafe { send(to, page.as_ptr().cast(), read as usize, 0) };
        if sent < 0 {
            if done == 0 {
                return -1;
            }
            break;
        }
        done += sent as usize;
    }
    let end = begin + done as off64_t;
    // SAFETY: guaranteed by the caller.
    match unsafe { offset.as_mut() } {
        Some(offset) => *offset = end,
        // SAFETY: the call has no pointer arguments.
        None => unsafe {
            libc::lseek64(from, end, libc::SEEK_SET);
        },
    }
    done as ssize_t
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn splice(
    from: c_int,
    from_at: *mut off64_t,
    to: c_int,
    to_at: *mut off64_t,
    count: size_t,
    flags: u32,
) -> ssize_t {
    let (out, into) = (is_ours(to), is_ours(from));
    if !out && !into {
        let next = next!(splice(c_int, *mut off64_t, c_int, *mut off64_t, size_t, u32) -> ssize_t);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(from, from_at, to, to_at, count, flags) };
    }
    // A socket has no offset, and one of the two descriptors must be a pipe.
    let (pipe, at_pipe, at_socket) = match out {
        true => (from, from_at, to_at),
        false => (to, to_at, from_at),
    };
    if (out && into) || !is_pipe(pipe) {
        return system::answer(Err(libc::EINVAL));
    }
    if !at_pipe.is_null() {
        return system::answer(Err(libc::ESPIPE));
    }
    if !at_socket.is_null() {
        return system::answer(Err(libc::EINVAL));
    }
    let quiet = if flags & libc::SPLICE_F_NONBLOCK != 0 {
        libc::MSG_DONTWAIT
    } else {
        0
    };
    if out {
        splice_out(from, to, count, quiet)
    } else {
        splice_in(from, to, count, quiet)
    }
}

fn is_pipe(fd: c_int) -> bool {
    // SAFETY: no pointers; every pipe answers with its size.
    unsafe { libc::fcntl(fd, libc::F_GETPIPE_SZ) > 0 }
}

/// Transfers data from a pipe to a socket, one message per page.
fn splice_out(pipe: c_int, to: c_int, count: usize, flags: c_int) -> ssize_t {
    let mut page = [0_u8; PAGE];
    let mut done = 0;
    while done < count {
        // After the first page, only data that is already in the pipe is sent.
        if done > 0 && !is_ready(pipe, libc::POLLIN) {
            break;
        }
        // The data is read from the pipe only if the socket has buffer space for it.
        let waits = flags & libc::MSG_DONTWAIT == 0 && !system::is_nonblocking(to);
        if !waits && !is_ready(to, libc::POLLOUT) {
            let full = system::answer(Err(libc::EAGAIN));
            return if done > 0 { done as ssize_t } else { full };
        }
        let wanted = PAGE.min(count - done);
        let read = first_of(pipe, &mut page[..wanted]);
        if read <= 0 {
            return if done > 0 { done as ssize_t } else { read };
        }
        // SAFETY: these bytes were just read.
        let sent = unsafe { send(to, page.as_ptr().cast(), read as usize, flags) };
        if sent < 0 {
            return if done > 0 { done as ssize_t } else { -1 };
        }
        // The sent data is removed from the pipe; unsent data stays there, as in Linux. SAFETY:
        // `page` has that size.
        unsafe { libc::read(pipe, page.as_mut_ptr().cast(), read as usize) };
        done += read as usize;
    }
    done as ssize_t
}

/// Copies the first bytes of a pipe without consuming them, and blocks like `read`. A second pipe
/// is needed, because the kernel offers no direct way.
fn first_of(pipe: c_int, page: &mut [u8]) -> ssize_t {
    let mut ends = [-1; 2];
    // SAFETY: the two descriptors are written.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return -1;
    }
    // SAFETY: no pointers; a new pipe has space for a page. The data of the pipe is read into
    // `page`, which has that size.
    let read = unsafe {
        match libc::tee(pipe, ends[1], page.len(), 0) {
            there @ 1.. => libc::read(ends[0], page.as_mut_ptr().cast(), there as usize),
            none => none,
        }
    };
    // A successful `close` does not change `errno`.
    ends.into_iter().for_each(system::close);
    read
}

/// Transfers a message, or its requested part, from a socket into a pipe.
fn splice_in(from: c_int, pipe: c_int, count: usize, flags: c_int) -> ssize_t {
    let mut bytes = [0_u8; MAX_TRANSFER];
    // SAFETY: `bytes` has that size.
    let received = unsafe {
        recv(
            from,
            bytes.as_mut_ptr().cast(),
            count.min(MAX_TRANSFER),
            flags,
        )
    };
    let mut written = 0;
    while written < received {
        let rest = &bytes[written as usize..received as usize];
        // SAFETY: these bytes were just received.
        let some = unsafe { libc::write(pipe, rest.as_ptr().cast(), rest.len()) };
        if some <= 0 {
            return if written > 0 { written } else { some };
        }
        written += some;
    }
    received
}

/// Whether the descriptor is ready for `events`: readable (POLLIN) or writable (POLLOUT).
fn is_ready(fd: c_int, events: i16) -> bool {
    let mut wanted = libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    // SAFETY: one pollfd is read and written.
    unsafe { libc::poll(&raw mut wanted, 1, 0) > 0 }
}
