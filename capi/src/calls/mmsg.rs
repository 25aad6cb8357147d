//! Calls that send or receive several messages: `sendmmsg` and `recvmmsg`.

use std::ffi::c_int;

use libc::mmsghdr;

use super::messages::{recvmsg, sendmsg};
use crate::descriptor::is_ours;
use crate::libc_next::next;
use crate::{memory, system};

/// Whether the array of messages lies outside the address space of any process.
fn are_out_of_reach(messages: *const mmsghdr, count: u32) -> bool {
    count > 0 && memory::is_out_of_reach(messages, count as usize * size_of::<mmsghdr>())
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: u32,
    flags: c_int,
) -> c_int {
    if !is_ours(fd) {
        let next = next!(sendmmsg(c_int, *mut mmsghdr, u32, c_int) -> c_int);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, messages, count, flags) };
    }
    if are_out_of_reach(messages, count) {
        return system::answer(Err(libc::EFAULT)) as c_int;
    }
    for place in 0..count {
        // SAFETY: guaranteed by the caller.
        let sent = unsafe {
            let message = &mut *messages.add(place as usize);
            let sent = sendmsg(fd, &raw const message.msg_hdr, flags);
            message.msg_len = sent.max(0) as u32;
            sent
        };
        if sent < 0 {
            return if place == 0 { -1 } else { place as c_int };
        }
    }
    count as c_int
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: u32,
    flags: c_int,
    timeout: *mut libc::timespec,
) -> c_int {
    if !is_ours(fd) {
        let next = next!(recvmmsg(c_int, *mut mmsghdr, u32, c_int, *mut libc::timespec) -> c_int);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, messages, count, flags, timeout) };
    }
    if are_out_of_reach(messages, count) {
        return system::answer(Err(libc::EFAULT)) as c_int;
    }
    let one_by_one = flags & !libc::MSG_WAITFORONE;
    for place in 0..count {
        // After the first message, only available messages are received, as with MSG_WAITFORONE,
        // even before the timeout expires.
        let flags = match place {
            0 => one_by_one,
            _ if flags & libc::MSG_WAITFORONE != 0 || !timeout.is_null() => {
                one_by_one | libc::MSG_DONTWAIT
            }
            _ => one_by_one,
        };
        // SAFETY: guaranteed by the caller.
        let received = unsafe {
            let message = &mut *messages.add(place as usize);
            let received = recvmsg(fd, &raw mut message.msg_hdr, flags);
            message.msg_len = received.max(0) as u32;
            received
        };
        match (received, place) {
            (..0, 0) => return -1,
            (..0, _) => return place as c_int,
            // A message without bytes is the end of the data.
            (0, _) => return place as c_int + 1,
            _ => (),
        }
    }
    count as c_int
}
