//! Setting of the ancillary data that a program requests with each received message: struct
//! sctp_sndrcvinfo (first byte of SCTP_EVENTS), struct sctp_rcvinfo (SCTP_RECVRCVINFO), struct
//! sctp_nxtinfo (SCTP_RECVNXTINFO).
//!
//! The setting applies when a message is read, not when it arrives, and in every process that has
//! the descriptor. The kernel therefore stores it with the descriptor, in SO_RCVLOWAT, which has no
//! effect on a Unix socket of this type.

use std::ffi::c_int;

use anabranch_sockets::options::{EVENT, EVENTS, RECVNXTINFO, RECVRCVINFO};

use crate::{host_client, system};

/// Bit for struct sctp_sndrcvinfo.
pub const SNDRCV: c_int = 1;
/// Bit for struct sctp_rcvinfo.
pub const RCVINFO: c_int = 2;

/// Bit for struct sctp_nxtinfo.
pub const NXTINFO: c_int = 4;

/// Ancillary data that the program has requested, as a combination of the bits above.
pub fn of(fd: c_int) -> c_int {
    // The option is the setting plus 1, because the kernel's default is 1 and it replaces 0 with 1.
    system::int_option(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT).map_or(0, |it| it - 1)
}

/// Copies the setting from the socket `from` to the socket `fd`.
pub fn copy(fd: c_int, from: c_int) {
    keep(fd, of(from));
}

/// Updates the setting after the program has set an SCTP option.
pub fn changed(fd: c_int, option: c_int) {
    if ![EVENT, EVENTS, RECVRCVINFO, RECVNXTINFO].contains(&option) {
        return;
    }
    let is_on = |option, room: usize| {
        let value = host_client::option(fd, libc::IPPROTO_SCTP, option, &vec![0; room]);
        value.is_ok_and(|it| it.first().is_some_and(|&byte| byte != 0))
    };
    let bit = |on: bool, bit| if on { bit } else { 0 };
    let wants = bit(is_on(EVENTS, 1), SNDRCV)
        | bit(is_on(RECVRCVINFO, 4), RCVINFO)
        | bit(is_on(RECVNXTINFO, 4), NXTINFO);
    keep(fd, wants);
}

fn keep(fd: c_int, wants: c_int) {
    // This cannot fail, because the kernel accepts any value.
    let _ = system::set_int_option(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, wants + 1);
}
