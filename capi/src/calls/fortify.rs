//! Functions that programs compiled with `_FORTIFY_SOURCE` call instead of libc's usual ones.

use std::ffi::{c_int, c_void};

use libc::{size_t, sockaddr, socklen_t, ssize_t};

use super::{read, recv, recvfrom};
use crate::descriptor::is_ours;
use crate::libc_next::next;

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __read_chk(
    fd: c_int,
    at: *mut c_void,
    length: size_t,
    room: size_t,
) -> ssize_t {
    if length > room || !is_ours(fd) {
        // libc ends a program that requests more bytes than its buffer can hold.
        let next = next!(__read_chk(c_int, *mut c_void, size_t, size_t) -> ssize_t);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, at, length, room) };
    }
    // SAFETY: guaranteed by the caller.
    unsafe { read(fd, at, length) }
}

/// # Safety
/// The requirements are those of libc's function with this name.
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
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, at, length, room, flags) };
    }
    // SAFETY: guaranteed by the caller.
    unsafe { recv(fd, at, length, flags) }
}

/// # Safety
/// The requirements are those of libc's function with this name.
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
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, at, length, room, flags, from, from_length) };
    }
    // SAFETY: guaranteed by the caller.
    unsafe { recvfrom(fd, at, length, flags, from, from_length) }
}
