//! A network of a test's own: a namespace of Linux, which ends with the last process in it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
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

/// Which IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4, which goes without saying.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The loopback interface's address.
    pub fn loopback(self) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::LOCALHOST.into(),
            Self::V6 => Ipv6Addr::LOCALHOST.into(),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "",
            Self::V6 => "6",
        })
    }
}

/// This side of a TAP interface.
pub const HOST: u8 = 1;
/// The guest's side.
pub const GUEST: u8 = 2;
/// What the connecting and the accepting peer see of a relay, on this side.
pub const RELAY: [u8; 2] = [3, 4];

/// An address at TAP interface `number`: 10.9.(number + 1).`host` of 24 bits, fd09:(number + 1)::`host` of 64.
pub fn address(family: Family, number: usize, host: u8) -> IpAddr {
    let network = number as u8 + 1;
    match family {
        Family::V4 => Ipv4Addr::new(10, 9, network, host).into(),
        Family::V6 => Ipv6Addr::new(0xfd09, network.into(), 0, 0, 0, 0, 0, host.into()).into(),
    }
}

/// Makes TAP interface `number` with this side's addresses.
///
/// # Errors
///
/// What `ip` says when it fails.
pub fn tap(number: usize, family: Family) -> Result<(), String> {
    let name = format!("tap{number}");
    ip(&["tuntap", "add", &name, "mode", "tap"])?;
    for host in [HOST, RELAY[0], RELAY[1]] {
        assign(&name, address(family, number, host))?;
    }
    ip(&["link", "set", &name, "up"])
}

/// Gives the loopback interface the addresses of interface 0, this side's and the other's.
///
/// # Errors
///
/// What `ip` says when it fails.
pub fn more_loopback(family: Family) -> Result<(), String> {
    let hosts = [HOST, GUEST, RELAY[0], RELAY[1]];
    hosts
        .into_iter()
        .try_for_each(|host| assign("lo", address(family, 0, host)))
}

fn assign(interface: &str, address: IpAddr) -> Result<(), String> {
    match address {
        IpAddr::V4(_) => ip(&["address", "add", &format!("{address}/24"), "dev", interface]),
        // Nobody else has it: it is there at once.
        IpAddr::V6(_) => {
            let address = format!("{address}/64");
            ip(&["address", "add", &address, "dev", interface, "nodad"])
        }
    }
}
