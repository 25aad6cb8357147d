//! Restart of a host that has ended.
//!
//! The process that started the program sets the command that starts a host ([`COMMAND_VARIABLE`]).
//! The host is not a visible child of the program: it causes no SIGCHLD and inherits none of the
//! program's descriptors. If several processes start a host at the same time, one of these hosts
//! gets the name and all processes find it.

use std::ffi::{CString, c_char, c_int};

use anabranch_sockets::COMMAND_VARIABLE;

use crate::system;

/// Interval between checks for the host in nanoseconds, and maximum number of checks.
const POLL_INTERVAL: i64 = 10_000_000;
const MAX_POLLS: u32 = 500;

/// Starts a host, and connects to it as soon as it listens; otherwise ECONNREFUSED.
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

/// The program and its arguments.
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

/// Runs the command in its own session, detached from this process.
fn begin(command: &[CString]) -> Result<(), c_int> {
    let mut words: Vec<*const c_char> = command.iter().map(|it| it.as_ptr()).collect();
    words.push(std::ptr::null());
    // The current `environ`, except the variable that loads this library, which must not be loaded
    // into the host.
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
    // SAFETY: like `fork`, except that its exit sends no signal (the lowest byte is 0). The child
    // of a multithreaded process may only make system calls until `execve`; all data for these was
    // prepared before.
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
                        // `dup3` rejects equal descriptors.
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
        // The process has ended or is about to end; the program's own `wait` does not see it
        // (`__WALL`).
        let wait = [child as usize, 0, libc::__WALL as usize, 0, 0, 0];
        while system::call(libc::SYS_wait4, wait) == Err(libc::EINTR) {}
    }
    Ok(())
}

/// `clone` without flags: a copy of the process.
const SYS_FORK: libc::c_long = libc::SYS_clone;
const FORK: [usize; 6] = [0; 6];
