//! Start of a new host process (the process that runs SCTP for the programs) after the previous one
//! has ended.
//!
//! An environment variable contains the command that starts a host ([`COMMAND_VARIABLE`]); it was
//! set by the process that started the program. The new host is not a visible child of the program:
//! it causes no SIGCHLD and inherits no descriptors. If several processes start a host at the same
//! time, one of the hosts gets the name and all processes connect to it.

use std::ffi::{CString, c_char, c_int};

use anabranch_sockets::COMMAND_VARIABLE;

use crate::system;

/// Interval in nanoseconds between attempts to connect to the new host, and maximum number of
/// attempts.
const POLL_INTERVAL: i64 = 10_000_000;
const MAX_POLLS: u32 = 500;

/// Starts a host, and connects to it as soon as it listens. Returns ECONNREFUSED if it does not
/// listen in time.
pub fn host(connect: impl Fn() -> Result<(), c_int>) -> Result<(), c_int> {
    let command = command().ok_or(libc::ECONNREFUSED)?;
    begin(&command)?;
    for _ in 0..MAX_POLLS {
        match connect() {
            Err(libc::ECONNREFUSED) => pause(),
            other => return other,
        }
    }
    Err(libc::ECONNREFUSED)
}

/// The command that starts a host: program and arguments.
fn command() -> Option<Vec<CString>> {
    let command = std::env::var_os(COMMAND_VARIABLE)?.into_encoded_bytes();
    let words = command.split(|byte| *byte == b'\n');
    let words: Option<Vec<_>> = words.map(|it| CString::new(it).ok()).collect();
    words.filter(|it| it.first().is_some_and(|it| !it.is_empty()))
}

fn pause() {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: POLL_INTERVAL,
    };
    let at = &raw const time as usize;
    // SAFETY: the kernel reads a `timespec`; the remaining time is not requested.
    let _ = unsafe { system::call(libc::SYS_nanosleep, [at, 0, 0, 0, 0, 0]) };
}

/// Runs the command in a new session, detached from this process.
fn begin(command: &[CString]) -> Result<(), c_int> {
    let mut words: Vec<*const c_char> = command.iter().map(|it| it.as_ptr()).collect();
    words.push(std::ptr::null());
    // The environment of the host is the current one without LD_PRELOAD, because this library must
    // not be loaded into the host.
    let variables: Vec<CString> = std::env::vars_os()
        .filter(|(name, _)| name != "LD_PRELOAD")
        .filter_map(|(name, value)| {
            let (mut line, value) = (name.into_encoded_bytes(), value.into_encoded_bytes());
            line.push(b'=');
            line.extend(value);
            CString::new(line).ok()
        })
        .collect();
    let mut environment: Vec<*const c_char> = variables.iter().map(|it| it.as_ptr()).collect();
    environment.push(std::ptr::null());
    let nothing = c"/dev/null";
    // SAFETY: the call is like `fork`, except that the child's exit sends no signal (the lowest
    // byte of the flags is 0). The child of a multithreaded process may make only system calls
    // until `execve`; all data for these was prepared before.
    unsafe {
        let child = system::call(SYS_FORK, FORK)?;
        if child == 0 {
            if system::call(SYS_FORK, FORK) == Ok(0) {
                let _ = system::call(libc::SYS_setsid, [0; 6]);
                let path = nothing.as_ptr() as usize;
                let flags = libc::O_RDWR as usize;
                let opened = [libc::AT_FDCWD as usize, path, flags, 0, 0, 0];
                if let Ok(fd) = system::call(libc::SYS_openat, opened) {
                    for standard in 0..3 {
                        // If the numbers are equal, `dup3` fails and the descriptor is already in
                        // place.
                        let _ = system::call(libc::SYS_dup3, [fd as usize, standard, 0, 0, 0, 0]);
                    }
                }
                let all = [3, u32::MAX as usize, 0, 0, 0, 0];
                let _ = system::call(libc::SYS_close_range, all);
                let program = words[0] as usize;
                let (words, environment) = (words.as_ptr() as usize, environment.as_ptr() as usize);
                let _ = system::call(libc::SYS_execve, [program, words, environment, 0, 0, 0]);
            }
            let _ = system::call(libc::SYS_exit_group, [0; 6]);
        }
        // The intermediate process has ended or is about to end. It is waited for with `__WALL`,
        // because the program's own `wait` does not see it.
        let wait = [child as usize, 0, libc::__WALL as usize, 0, 0, 0];
        while system::call(libc::SYS_wait4, wait) == Err(libc::EINTR) {}
    }
    Ok(())
}

/// System call and arguments of `clone` without flags, which copies the process like `fork`.
const SYS_FORK: libc::c_long = libc::SYS_clone;
const FORK: [usize; 6] = [0; 6];
