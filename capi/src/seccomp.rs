//! Detection of system calls that bypass this library. A program may request an SCTP socket from
//! the kernel itself, if it is static or its runtime makes system calls without libc. The library
//! cannot serve such a program, but the user should be informed.
//!
//! If the host requests it ([`WATCH_VARIABLE`]), the kernel suspends such calls of this process and
//! its descendants and notifies the host (seccomp, `SECCOMP_RET_USER_NOTIF`). The host reports the
//! calls and lets them fail. All other calls are unaffected. Only one process of a tree can install
//! the filter; in its children the kernel returns EBUSY.

use std::ffi::c_int;

use anabranch_sockets::WATCH_VARIABLE;

use crate::{descriptor, host_client, system};

// SAFETY: the loader calls the functions in this section, with arguments that this function
// ignores.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// Installs the filter; the loader calls this function before `main`.
extern "C" fn begin() {
    if std::env::var_os(WATCH_VARIABLE).is_none() || descriptor::host().is_none() {
        return;
    }
    match listen() {
        Err(libc::EBUSY) => (),
        listener => {
            host_client::watch(listener);
            if let Ok(listener) = listener {
                system::close(listener);
            }
        }
    }
}

// Offsets in struct seccomp_data of the call number, the architecture, and the lower halves of the
// arguments.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const fn argument(place: u32) -> u32 {
    16 + 8 * place + if cfg!(target_endian = "big") { 4 } else { 0 }
}

/// AUDIT_ARCH_* of this machine. Calls of other architectures (32 bits) are allowed without a
/// check.
#[cfg(target_arch = "x86_64")]
const OWN_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OWN_ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const OWN_ARCHITECTURE: u32 = 0;

const SECCOMP_SET_MODE_FILTER: usize = 1;
const SECCOMP_FILTER_FLAG_NEW_LISTENER: usize = 8;
const SECCOMP_RET_USER_NOTIF: u32 = 0x7fc0_0000;
const SECCOMP_RET_ALLOW: u32 = 0x7fff_0000;

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
const EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K

const fn step(code: u16, yes: u8, no: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code,
        jt: yes,
        jf: no,
        k,
    }
}

/// Filter that reports `socket(AF_INET or AF_INET6, SOCK_STREAM or SOCK_SEQPACKET, IPPROTO_SCTP)`,
/// and SOCK_SEQPACKET with protocol 0, which is SCTP too. It allows all other calls. Jumps are
/// relative to the next step.
const FILTER: [libc::sock_filter; 16] = [
    step(LOAD, 0, 0, ARCHITECTURE),
    step(EQUAL, 0, 13, OWN_ARCHITECTURE),
    step(LOAD, 0, 0, NUMBER),
    step(EQUAL, 0, 11, libc::SYS_socket as u32),
    step(LOAD, 0, 0, argument(0)),
    step(EQUAL, 1, 0, libc::AF_INET as u32),
    step(EQUAL, 0, 8, libc::AF_INET6 as u32),
    step(LOAD, 0, 0, argument(1)),
    step(AND, 0, 0, 0xf),
    step(EQUAL, 1, 0, libc::SOCK_SEQPACKET as u32),
    step(EQUAL, 2, 4, libc::SOCK_STREAM as u32),
    step(LOAD, 0, 0, argument(2)),
    step(EQUAL, 3, 1, 0),
    step(LOAD, 0, 0, argument(2)),
    step(EQUAL, 1, 0, libc::IPPROTO_SCTP as u32),
    step(RETURN, 0, 0, SECCOMP_RET_ALLOW),
];

/// Installs the filter and returns its notification descriptor. Without CAP_SYS_ADMIN, the kernel
/// requires that the process can no longer gain privileges by `exec`.
fn listen() -> Result<c_int, c_int> {
    let mut filter = [step(RETURN, 0, 0, SECCOMP_RET_USER_NOTIF); FILTER.len() + 1];
    filter[..FILTER.len()].copy_from_slice(&FILTER);
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    let ask = || {
        let at = &raw const program as usize;
        let arguments = [
            SECCOMP_SET_MODE_FILTER,
            SECCOMP_FILTER_FLAG_NEW_LISTENER,
            at,
            0,
            0,
            0,
        ];
        // SAFETY: the kernel reads the filter program, which exists, and changes only the set of
        // allowed calls.
        unsafe { system::call(libc::SYS_seccomp, arguments) }.map(|it| it as c_int)
    };
    match ask() {
        Err(libc::EACCES | libc::EPERM) => {
            let arguments = [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0, 0];
            // SAFETY: the call has no pointer arguments.
            unsafe { system::call(libc::SYS_prctl, arguments) }?;
            ask()
        }
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evaluates the filter in the same way as the kernel.
    fn run(call: u32, arguments: [u32; 3]) -> u32 {
        let word = |at: u32| match at {
            NUMBER => call,
            ARCHITECTURE => OWN_ARCHITECTURE,
            at => arguments[((at - argument(0)) / 8) as usize],
        };
        let mut steps = FILTER.to_vec();
        steps.push(step(RETURN, 0, 0, SECCOMP_RET_USER_NOTIF));
        let (mut at, mut value) = (0, 0);
        loop {
            let it = steps[at];
            at += 1;
            match it.code {
                LOAD => value = word(it.k),
                AND => value &= it.k,
                EQUAL => at += usize::from(if value == it.k { it.jt } else { it.jf }),
                _ => return it.k,
            }
        }
    }

    #[test]
    fn only_sctp_sockets_are_reported() {
        let socket = libc::SYS_socket as u32;
        let [v4, v6, unix] = [libc::AF_INET, libc::AF_INET6, libc::AF_UNIX].map(|it| it as u32);
        let [stream, packets, raw] =
            [libc::SOCK_STREAM, libc::SOCK_SEQPACKET, libc::SOCK_RAW].map(|it| it as u32);
        let flags = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u32;
        for family in [v4, v6] {
            for kind in [stream, packets, stream | flags, packets | flags] {
                assert_eq!(run(socket, [family, kind, 132]), SECCOMP_RET_USER_NOTIF);
            }
            for kind in [packets, packets | flags] {
                assert_eq!(run(socket, [family, kind, 0]), SECCOMP_RET_USER_NOTIF);
            }
            for (kind, protocol) in [(raw, 132), (stream, 6), (stream, 0), (packets, 6)] {
                assert_eq!(run(socket, [family, kind, protocol]), SECCOMP_RET_ALLOW);
            }
        }
        assert_eq!(run(socket, [unix, packets, 0]), SECCOMP_RET_ALLOW);
        assert_eq!(run(socket, [unix, packets, 132]), SECCOMP_RET_ALLOW);
        assert_eq!(run(socket + 1, [v4, stream, 132]), SECCOMP_RET_ALLOW);
    }
}
