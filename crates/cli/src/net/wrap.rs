//! `anabranch wrap`: runs a program whose SCTP sockets are implemented by this stack.

mod security;
mod serving;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anabranch_net::sctp::Authentication;
use anabranch_net::{Carrier, Config};
use anabranch_sockets::WATCH_VARIABLE;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use super::Interrupts;
use super::wrap_arguments::Wrap;
use crate::failure::Failure;
use crate::renamed;
use crate::stderr::note;
use security::Protection;
use serving::{Serving, raise_limit};

/// File name of the library that the dynamic linker loads before libc.
const LIBRARY: &str = "libanabranch_preload.so";
/// File name of the replacement of Linux's libsctp, in the same directory.
const LIBSCTP: &str = "libsctp.so.1";
/// Environment variable with the path of the library.
const LIBRARY_VARIABLE: &str = "ANABRANCH_PRELOAD";

/// Runs the program, and an SCTP host until the program ends.
pub async fn wrap(arguments: Wrap) -> Result<(), Failure> {
    let port = arguments.udp_port.or(arguments.peer_udp_port);
    if let (true, Some(port)) = (arguments.is_ip(), port) {
        return Err(Failure::Usage(format!(
            "--carrier ip: found with the UDP port {port}, which it does not use"
        )));
    }
    let protection = Protection::of(&arguments);
    let config = config(&arguments)?;
    if arguments.again {
        return serving::again(config, &protection).await;
    }
    if arguments.host {
        return serving::alone(&config, &protection).await;
    }
    let [program, rest @ ..] = &arguments.command[..] else {
        return Err(Failure::Usage(
            "found no command; write one behind --".to_owned(),
        ));
    };
    // An unknown option was parsed as the program.
    if let Some(hint) = renamed::flag("wrap", &program.to_string_lossy()) {
        return Err(Failure::Usage(hint));
    }
    let library = library()?;
    check(program)?;
    let mut serving = Serving::begin(&config, &protection)?;
    let mut command = Command::new(program);
    command.args(rest).env("LD_PRELOAD", preload(library));
    serving.configure_child(&mut command, &arguments, &protection);
    match arguments.no_seccomp {
        true => command.env_remove(WATCH_VARIABLE),
        false => command.env(WATCH_VARIABLE, "1"),
    };
    // Created before the program starts, because a signal may arrive immediately afterwards.
    let mut interrupts = Interrupts::new();
    let mut child = command
        .spawn()
        .map_err(|error| Failure::Usage(format!("cannot run {}: {error}", program.display())))?;
    raise_limit();
    let mut failed = None;
    // Serves until the program ends, because its sockets are in the host.
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            signal = interrupts.next_signal() => pass_on(&child, signal),
            why = serving.failed(), if failed.is_none() => {
                let why = format!("the host of the program's SCTP sockets ended: {why}");
                note(format_args!("anabranch: {why}"));
                failed = Some(why);
            }
        }
    };
    // Waits, because the last messages of the program may still be in flight.
    serving.finish(&mut interrupts).await;
    let status = status.map_err(|error| Failure::Net(format!("cannot wait: {error}")))?;
    ended_as(status)?;
    failed.map_or(Ok(()), |why| Err(Failure::Net(why)))
}

fn config(arguments: &Wrap) -> Result<Config, Failure> {
    let mut config = Config::default().with(|it| {
        it.carrier = match arguments.is_ip() {
            true => Carrier::Ip,
            false => {
                let [port, peer_port] = arguments.udp_ports();
                Carrier::Encapsulated { port, peer_port }
            }
        };
        it.addresses.clone_from(&arguments.local);
        if arguments.auth {
            it.sctp.authentication = Authentication::On;
        }
    });
    security::secure(arguments, &mut config.sctp)?;
    Ok(config)
}

/// The exit status of this command: that of the program, or 128 plus the number of the signal that
/// ended it, as in shells.
fn ended_as(status: ExitStatus) -> Result<(), Failure> {
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    match u8::try_from(code) {
        Ok(0) => Ok(()),
        Ok(code) => Err(Failure::Program(code)),
        Err(_) => Err(Failure::Program(u8::MAX)),
    }
}

/// The value of `LD_PRELOAD` for the program.
fn preload(library: PathBuf) -> OsString {
    let libsctp = library.with_file_name(LIBSCTP);
    let mut preload = library.into_os_string();
    // A program that uses libsctp then loads the replacement. If the replacement is missing, the
    // program loads the library of the system.
    if libsctp.is_file() {
        preload.push(":");
        preload.push(libsctp);
    }
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|it| !it.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    preload
}

/// Passes a signal on to the program, unless it is an interrupt that the terminal has sent to both.
fn pass_on(child: &Child, signal: Signal) {
    if signal == Signal::SIGINT && io::stdin().is_terminal() {
        return;
    }
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(id) = id {
        // Fails if the process has just ended.
        let _ = kill(Pid::from_raw(id), signal);
    }
}

/// Finds the library: in the environment variable, in the directory of this program, in `lib` next
/// to that directory (packages), or in `lib` in that directory (archives).
fn library() -> Result<PathBuf, Failure> {
    if let Some(path) = std::env::var_os(LIBRARY_VARIABLE) {
        let path = PathBuf::from(path);
        return match path.is_file() {
            true => Ok(path),
            false => Err(Failure::Usage(format!(
                "{LIBRARY_VARIABLE}: found {}, which is no file; it names {LIBRARY}",
                path.display()
            ))),
        };
    }
    let program = std::env::current_exe().unwrap_or_default();
    let folder = program.parent().unwrap_or(Path::new("."));
    let places = [
        folder.to_owned(),
        folder.join("../lib"),
        folder.join("../lib/anabranch"),
        folder.join("lib/anabranch"),
    ];
    let found = places
        .iter()
        .map(|it| it.join(LIBRARY))
        .find(|it| it.is_file());
    found.ok_or_else(|| {
        Failure::Usage(format!(
            "cannot find {LIBRARY} next to {} or in ../lib/anabranch; set {LIBRARY_VARIABLE} to its path",
            program.display()
        ))
    })
}

/// Refuses a statically linked program, because its calls cannot be intercepted.
fn check(program: &OsStr) -> Result<(), Failure> {
    let Some(path) = find(program) else {
        // A program that is not found is reported by `spawn`.
        return Ok(());
    };
    let Ok(bytes) = fs::read(&path) else {
        return Ok(());
    };
    match is_dynamic(&bytes) {
        Some(false) => Err(Failure::Usage(format!(
            "{} is linked statically; only calls of programs that load the C library can be caught",
            path.display()
        ))),
        // A script (`None`) is accepted without a check of its interpreter, because most
        // interpreters are dynamically linked.
        Some(true) | None => Ok(()),
    }
}

/// Searches the file of a program.
fn find(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return Some(path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|it| it.join(path))
        .find(|it| it.is_file())
}

/// Returns true if a 64-bit ELF file has an interpreter (PT_INTERP), which loads libraries; `None`
/// if it is no such file.
fn is_dynamic(bytes: &[u8]) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    if bytes.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let short = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let headers = u64::from_le_bytes(bytes.get(32..40)?.try_into().ok()?);
    let (size, count) = (usize::from(short(54)?), usize::from(short(56)?));
    let headers = usize::try_from(headers).ok()?;
    let kind = |place: usize| {
        let at = headers.checked_add(place * size)?;
        let bytes = bytes.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    Some((0..count).any(|place| kind(place) == Some(PT_INTERP)))
}

#[cfg(test)]
mod tests {
    use super::is_dynamic;

    /// An ELF file with one program header of the type `kind`.
    fn elf(kind: u32) -> Vec<u8> {
        let mut out = vec![0; 64 + 56];
        out[..6].copy_from_slice(b"\x7fELF\x02\x01");
        out[32] = 64;
        out[54] = 56;
        out[56] = 1;
        out[64..68].copy_from_slice(&kind.to_le_bytes());
        out
    }

    #[test]
    fn a_program_without_an_interpreter_is_static() {
        assert_eq!(is_dynamic(&elf(3)), Some(true));
        assert_eq!(is_dynamic(&elf(1)), Some(false));
        assert_eq!(is_dynamic(b"#!/bin/sh\n"), None);
        assert_eq!(is_dynamic(&elf(3)[..70]), Some(true));
        assert_eq!(is_dynamic(&elf(3)[..60]), Some(false));
        assert_eq!(is_dynamic(b"\x7fELF\x02\x01"), None);
    }
}
