//! A network of a test's own: a namespace of Linux, which ends with the last process in it.

use std::process::Command;

use nix::sched::{CloneFlags, unshare};

/// Whether this process may make a namespace.
///
/// # Errors
///
/// Why not.
pub fn allowed() -> Result<(), String> {
    match nix::unistd::geteuid().is_root() {
        true => inside(|| Ok(())),
        false => Err("network namespaces and TAP interfaces need root".into()),
    }
}

/// Runs `body` on a thread whose network is a new namespace with only its loopback interface up. Processes that `body`
/// starts and sockets that it opens are in there too.
///
/// # Errors
///
/// What `body` returns; a refused namespace; a panic of `body`.
pub fn inside<R: Send>(body: impl FnOnce() -> Result<R, String> + Send) -> Result<R, String> {
    let enter = || {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|error| format!("network namespace: {error}"))?;
        // An Ethernet's, as every stack expects.
        ip(&["link", "set", "lo", "up", "mtu", "1500"])?;
        body()
    };
    std::thread::scope(|scope| match scope.spawn(enter).join() {
        Ok(outcome) => outcome,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Makes the loopback interface cut what is sent in one call into packets before a capture sees it, as a network would.
///
/// # Errors
///
/// What `ip` says when it fails.
pub fn no_segmentation() -> Result<(), String> {
    ip(&["link", "set", "lo", "gso_max_segs", "1"])
}

/// Runs `ip` with these arguments in the namespace of this thread.
///
/// # Errors
///
/// What it says when it fails.
pub fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .map_err(|error| format!("ip: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "ip {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// Makes TAP interface `number` with address 10.9.(number + 1).1 of 24 bits.
///
/// # Errors
///
/// What `ip` says when it fails.
pub fn tap(number: usize) -> Result<(), String> {
    let (name, address) = (format!("tap{number}"), format!("10.9.{}.1/24", number + 1));
    ip(&["tuntap", "add", &name, "mode", "tap"])?;
    ip(&["address", "add", &address, "dev", &name])?;
    ip(&["link", "set", &name, "up"])
}
