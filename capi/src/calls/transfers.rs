//! Bytes from one descriptor to another: `sendfile` and `splice`. Linux's SCTP takes and gives them as it takes and gives messages: what is sent
//! goes a page of the file, or of the pipe, at a time, each a message; what is received is one message, or as much of it as is asked for.

use std::ffi::c_int;

use libc::{off64_t, size_t, ssize_t};

use super::{recv, send};
use crate::descriptor::is_ours;
use crate::next::next;
use crate::system;

/// Bytes of a page.
const PAGE: usize = 4096;
/// The most that goes at a time: what a pipe holds.
const MOST: usize = 16 * PAGE;

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendfile(
    to: c_int,
    from: c_int,
    offset: *mut off64_t,
    count: size_t,
) -> ssize_t {
    if !is_ours(to) {
        let next = next!(sendfile(c_int, c_int, *mut off64_t, size_t) -> ssize_t);
        // SAFETY: as the caller promises.
        return unsafe { next(to, from, offset, count) };
    }
    // SAFETY: as the caller promises.
    unsafe { send_file(to, from, offset, count) }
}

/// As `sendfile`, on machines of 64 bits.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendfile64(
    to: c_int,
    from: c_int,
    offset: *mut off64_t,
    count: size_t,
) -> ssize_t {
    // SAFETY: as the caller promises.
    unsafe { sendfile(to, from, offset, count) }
}

/// # Safety
/// `offset` is null, or can be read and written.
unsafe fn send_file(to: c_int, from: c_int, offset: *mut off64_t, count: usize) -> ssize_t {
    let mut page = [0_u8; PAGE];
    let mut done = 0;
    // SAFETY: as the caller promises.
    let own = unsafe { offset.as_ref() }.copied();
    // SAFETY: no pointers.
    let begin = own.unwrap_or_else(|| unsafe { libc::lseek64(from, 0, libc::SEEK_CUR) });
    if begin < 0 {
        return -1;
    }
    while done < count {
        let at = begin + done as off64_t;
        // Messages end where pages of the file do.
        let left = PAGE - at as usize % PAGE;
        let wanted = left.min(count - done);
        // SAFETY: `page` has so many bytes.
        let read = unsafe { libc::pread64(from, page.as_mut_ptr().cast(), wanted, at) };
        if read <= 0 {
            if read < 0 && done == 0 {
                return -1;
            }
            break;
        }
        // SAFETY: they were read just now.
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
    // SAFETY: as the caller promises.
    match unsafe { offset.as_mut() } {
        Some(offset) => *offset = end,
        // SAFETY: no pointers.
        None => unsafe {
            libc::lseek64(from, end, libc::SEEK_SET);
        },
    }
    done as ssize_t
}

/// # Safety
/// As libc's.
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
        // SAFETY: as the caller promises.
        return unsafe { next(from, from_at, to, to_at, count, flags) };
    }
    // Sockets have no places in them, and one of the two must be a pipe.
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

/// From a pipe, page by page, each a message.
fn splice_out(pipe: c_int, to: c_int, count: usize, flags: c_int) -> ssize_t {
    let mut page = [0_u8; PAGE];
    let mut done = 0;
    while done < count {
        // Behind the first page, only what is there.
        if done > 0 && !is_ready(pipe, libc::POLLIN) {
            break;
        }
        // What is read of the pipe must find room.
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
        // SAFETY: they were read just now.
        let sent = unsafe { send(to, page.as_ptr().cast(), read as usize, flags) };
        if sent < 0 {
            return if done > 0 { done as ssize_t } else { -1 };
        }
        // What was not sent stays in the pipe, as with Linux.
        // SAFETY: `page` has so many bytes.
        unsafe { libc::read(pipe, page.as_mut_ptr().cast(), read as usize) };
        done += read as usize;
    }
    done as ssize_t
}

/// The first bytes of a pipe, which stay there: by way of another pipe, since the kernel has no other for that. Waits as `read` does.
fn first_of(pipe: c_int, page: &mut [u8]) -> ssize_t {
    let mut ends = [-1; 2];
    // SAFETY: the two descriptors are written.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return -1;
    }
    // SAFETY: no pointers; a new pipe has room for a page. What it has is read into `page`, which has so many bytes.
    let read = unsafe {
        match libc::tee(pipe, ends[1], page.len(), 0) {
            there @ 1.. => libc::read(ends[0], page.as_mut_ptr().cast(), there as usize),
            none => none,
        }
    };
    // `close` leaves `errno` as it is where it fails at nothing.
    ends.into_iter().for_each(system::close);
    read
}

/// A message, or as much of it as is asked for, into a pipe.
fn splice_in(from: c_int, pipe: c_int, count: usize, flags: c_int) -> ssize_t {
    let mut bytes = [0_u8; MOST];
    // SAFETY: `bytes` has so many.
    let received = unsafe { recv(from, bytes.as_mut_ptr().cast(), count.min(MOST), flags) };
    let mut written = 0;
    while written < received {
        let rest = &bytes[written as usize..received as usize];
        // SAFETY: they were received just now.
        let some = unsafe { libc::write(pipe, rest.as_ptr().cast(), rest.len()) };
        if some <= 0 {
            return if written > 0 { written } else { some };
        }
        written += some;
    }
    received
}

/// Whether there is something to read (POLLIN), or room to write (POLLOUT).
fn is_ready(fd: c_int, events: i16) -> bool {
    let mut wanted = libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    // SAFETY: one pollfd is read and written.
    unsafe { libc::poll(&raw mut wanted, 1, 0) > 0 }
}
