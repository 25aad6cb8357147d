//! The names that calls have in programs which are compiled with `_FORTIFY_SOURCE`: libc's own do not come by the usual ones.

use std::ffi::{c_int, c_void};

use libc::{size_t, sockaddr, socklen_t, ssize_t};

use super::{read, recv, recvfrom};
use crate::descriptor::is_ours;
use crate::next::next;

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __read_chk(
    fd: c_int,
    at: *mut c_void,
    length: size_t,
    room: size_t,
) -> ssize_t {
    if length > room || !is_ours(fd) {
        // One that asks for more than there is room for is ended there.
        let next = next!(__read_chk(c_int, *mut c_void, size_t, size_t) -> ssize_t);
        // SAFETY: as the caller promises.
        return unsafe { next(fd, at, length, room) };
    }
    // SAFETY: as the caller promises.
    unsafe { read(fd, at, length) }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __recv_chk(
    fd: c_int,
    at: *mut c_void,
    length: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    if length > room || !is_ours(fd) {
        let next = next!(__recv_chk(c_int, *mut c_void, size_t, size_t, c_int) -> ssize_t);
        // SAFETY: as the caller promises.
        return unsafe { next(fd, at, length, room, flags) };
    }
    // SAFETY: as the caller promises.
    unsafe { recv(fd, at, length, flags) }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __recvfrom_chk(
    fd: c_int,
    at: *mut c_void,
    length: size_t,
    room: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> ssize_t {
    if length > room || !is_ours(fd) {
        let next = next!(
            __recvfrom_chk(
                c_int,
                *mut c_void,
                size_t,
                size_t,
                c_int,
                *mut sockaddr,
                *mut socklen_t,
            ) -> ssize_t
        );
        // SAFETY: as the caller promises.
        return unsafe { next(fd, at, length, room, flags, from, from_length) };
    }
    // SAFETY: as the caller promises.
    unsafe { recvfrom(fd, at, length, flags, from, from_length) }
}
