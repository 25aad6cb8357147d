//! Calls for messages in several parts or with ancillary data.

use std::ffi::c_int;

use libc::{iovec, msghdr, ssize_t};

use super::receive_parts;
use crate::descriptor::{is_ours, socket_type};
use crate::libc_next::next;
use crate::receive::ReceivedPiece;
use crate::sctp::control_data;
use crate::send::{self, MessageParts, SendParameters};
use crate::{memory, system};

/// Checks that a message can have these parts: the pointer and the count are valid.
fn check_parts(parts: *const iovec, count: usize) -> Result<(), c_int> {
    if count > send::MAX_PARTS {
        return Err(libc::EMSGSIZE);
    }
    match count > 0 && memory::is_out_of_reach(parts, count * size_of::<iovec>()) {
        true => Err(libc::EFAULT),
        false => Ok(()),
    }
}

/// Converts the number of parts of `writev` and `readv`; `None` if it is negative or too large.
fn count_of(parts: c_int) -> Option<usize> {
    let count = usize::try_from(parts).ok();
    count.filter(|&it| it <= send::MAX_PARTS)
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    let Some(socket_type) = socket_type(fd) else {
        let next = next!(writev(c_int, *const iovec, c_int) -> ssize_t);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, parts, count) };
    };
    let Some(count) = count_of(count) else {
        return system::answer(Err(libc::EINVAL));
    };
    if let Err(error) = check_parts(parts, count) {
        return system::answer(Err(error));
    }
    // SAFETY: guaranteed by the caller.
    let parts = unsafe { MessageParts::new(parts, count) };
    if parts.length() == 0 {
        // As in Linux, an empty `writev` sends no message and succeeds, although an empty `write`
        // is an error.
        return 0;
    }
    send::answer(fd, socket_type, parts, 0, || Ok(SendParameters::plain(0)))
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmsg(
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    let Some(socket_type) = socket_type(fd) else {
        let next = next!(sendmsg(c_int, *const msghdr, c_int) -> ssize_t);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, message, flags) };
    };
    if memory::is_out_of_reach(message, size_of::<msghdr>()) {
        return system::answer(Err(libc::EFAULT));
    }
    // SAFETY: guaranteed by the caller.
    let (at, count) = unsafe { ((*message).msg_iov, (*message).msg_iovlen) };
    if let Err(error) = check_parts(at, count) {
        return system::answer(Err(error));
    }
    // SAFETY: guaranteed by the caller.
    let parts = unsafe { MessageParts::new(at, count) };
    // SAFETY: guaranteed by the caller.
    send::answer(fd, socket_type, parts, flags, || unsafe {
        control_data::sent(&*message, flags)
    })
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    if !is_ours(fd) {
        let next = next!(readv(c_int, *const iovec, c_int) -> ssize_t);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, parts, count) };
    }
    let received = match count_of(count) {
        None => Err(libc::EINVAL),
        Some(0) => Ok(ReceivedPiece::default()),
        Some(count) => check_parts(parts, count).and_then(|()| {
            // SAFETY: guaranteed by the caller.
            unsafe { receive_parts(fd, std::slice::from_raw_parts(parts, count), 0) }
        }),
    };
    system::answer(received.map(|it| it.length as isize))
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    if !is_ours(fd) {
        let next = next!(recvmsg(c_int, *mut msghdr, c_int) -> ssize_t);
        // SAFETY: guaranteed by the caller.
        let length = unsafe { next(fd, message, flags) };
        if length >= 0 {
            // SAFETY: libc has filled in the message.
            unsafe { control_data::forget_passed(&*message) };
        }
        return length;
    }
    if memory::is_out_of_reach(message, size_of::<msghdr>()) {
        return system::answer(Err(libc::EFAULT));
    }
    // SAFETY: guaranteed by the caller.
    let (at, count) = unsafe { ((*message).msg_iov, (*message).msg_iovlen) };
    if let Err(error) = check_parts(at, count) {
        return system::answer(Err(error));
    }
    // SAFETY: guaranteed by the caller.
    let received = unsafe {
        let message = &*message;
        let parts: &[iovec] = match message.msg_iovlen {
            0 => &[],
            count => std::slice::from_raw_parts(message.msg_iov, count),
        };
        receive_parts(fd, parts, flags)
    };
    let outcome = received.and_then(|received| {
        // SAFETY: guaranteed by the caller.
        unsafe { control_data::received(fd, &mut *message, &received) }?;
        Ok(received.length as isize)
    });
    system::answer(outcome)
}
