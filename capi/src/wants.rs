//! What a program wants beside messages: struct sctp_sndrcvinfo (SCTP_EVENTS, its first byte), struct sctp_rcvinfo (SCTP_RECVRCVINFO).
//!
//! It counts when a message is read, not when it came, and in every process that has the descriptor. So it is kept by the kernel, with the
//! descriptor: a Unix socket has no other use for SO_PRIORITY, of which anybody may set 0 to 6.

use std::ffi::c_int;

use anabranch_sockets::options::{EVENT, EVENTS, RECVRCVINFO};

use crate::{ask, system};

/// struct sctp_sndrcvinfo.
pub const SNDRCV: c_int = 1;
/// struct sctp_rcvinfo.
pub const RCVINFO: c_int = 2;

/// What is wanted, of the bits above.
pub fn of(fd: c_int) -> c_int {
    system::int_option(fd, libc::SOL_SOCKET, libc::SO_PRIORITY).unwrap_or(0)
}

/// Wants for a socket what another wants.
pub fn copy(fd: c_int, from: c_int) {
    keep(fd, of(from));
}

/// The option of SCTP's was set.
pub fn changed(fd: c_int, option: c_int) {
    if ![EVENT, EVENTS, RECVRCVINFO].contains(&option) {
        return;
    }
    let is_on = |option, room| {
        let value = ask::option(fd, libc::IPPROTO_SCTP, option, room);
        value.is_ok_and(|it| it.first().is_some_and(|&byte| byte != 0))
    };
    let bit = |on: bool, bit| if on { bit } else { 0 };
    keep(
        fd,
        bit(is_on(EVENTS, 1), SNDRCV) | bit(is_on(RECVRCVINFO, 4), RCVINFO),
    );
}

fn keep(fd: c_int, wants: c_int) {
    // The kernel refuses no value that small.
    let _ = system::set_int_option(fd, libc::SOL_SOCKET, libc::SO_PRIORITY, wants);
}
