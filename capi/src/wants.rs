//! What a program wants beside messages: struct sctp_sndrcvinfo (SCTP_EVENTS, its first byte), struct sctp_rcvinfo (SCTP_RECVRCVINFO),
//! struct sctp_nxtinfo (SCTP_RECVNXTINFO).
//!
//! It counts when a message is read, not when it came, and in every process that has the descriptor. So it is kept by the kernel, with the
//! descriptor: SO_RCVLOWAT, of which a Unix socket of this kind makes no use.

use std::ffi::c_int;

use anabranch_sockets::options::{EVENT, EVENTS, RECVNXTINFO, RECVRCVINFO};

use crate::{ask, system};

/// struct sctp_sndrcvinfo.
pub const SNDRCV: c_int = 1;
/// struct sctp_rcvinfo.
pub const RCVINFO: c_int = 2;

/// struct sctp_nxtinfo.
pub const NXTINFO: c_int = 4;

/// What is wanted, of the bits above.
pub fn of(fd: c_int) -> c_int {
    // The kernel begins with 1, and makes 0 that.
    system::int_option(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT).map_or(0, |it| it - 1)
}

/// Wants for a socket what another wants.
pub fn copy(fd: c_int, from: c_int) {
    keep(fd, of(from));
}

/// The option of SCTP's was set.
pub fn changed(fd: c_int, option: c_int) {
    if ![EVENT, EVENTS, RECVRCVINFO, RECVNXTINFO].contains(&option) {
        return;
    }
    let is_on = |option, room: usize| {
        let value = ask::option(fd, libc::IPPROTO_SCTP, option, &vec![0; room]);
        value.is_ok_and(|it| it.first().is_some_and(|&byte| byte != 0))
    };
    let bit = |on: bool, bit| if on { bit } else { 0 };
    let wants = bit(is_on(EVENTS, 1), SNDRCV)
        | bit(is_on(RECVRCVINFO, 4), RCVINFO)
        | bit(is_on(RECVNXTINFO, 4), NXTINFO);
    keep(fd, wants);
}

fn keep(fd: c_int, wants: c_int) {
    // The kernel refuses no value.
    let _ = system::set_int_option(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, wants + 1);
}
