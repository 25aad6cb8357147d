//! Isolated network of a test: a Linux network namespace that ends with its last process.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

use nix::sched::{CloneFlags, unshare};

/// Whether this process may create a namespace.
///
/// # Errors
///
/// The reason why it may not.
pub fn allowed() -> Result<(), String> {
    match nix::unistd::geteuid().is_root() {
        true => inside(|| Ok(())),
        false => Err("network namespaces and TAP interfaces need root".into()),
    }
}

/// Runs `body` on a thread in a new network namespace in which only the loopback interface is up.
/// Processes started and sockets opened by `body` are in it as well.
///
/// # Errors
///
/// Any error of `body`; the namespace cannot be created; `body` panics.
pub fn inside<R: Send>(body: impl FnOnce() -> Result<R, String> + Send) -> Result<R, String> {
    let enter = || {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|error| format!("network namespace: {error}"))?;
        // MTU of Ethernet, which every stack expects.
        ip(&["link", "set", "lo", "up", "mtu", "1500"])?;
        body()
    };
    std::thread::scope(|scope| match scope.spawn(enter).join() {
        Ok(outcome) => outcome,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Makes the loopback interface split segmented sends (GSO) into packets before they are captured,
/// as a real network would.
///
/// # Errors
///
/// Output of `ip` if it fails.
pub fn no_segmentation() -> Result<(), String> {
    ip(&["link", "set", "lo", "gso_max_segs", "1"])
}

/// Runs `ip` with these arguments in the namespace of this thread.
///
/// # Errors
///
/// Output of `ip` if it fails.
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

/// IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4, the default.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Address of the loopback interface.
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

/// Host part for this side of a TAP interface.
pub const HOST: u8 = 1;
/// Host part for the guest side.
pub const GUEST: u8 = 2;
/// Host parts of the relay's addresses that the connecting and the accepting peer use, on the side
/// of the host.
pub const RELAY: [u8; 2] = [3, 4];

/// Address on TAP interface `number`: 10.9.(number + 1).`host` with a prefix of 24 bits,
/// fd09:(number + 1)::`host` with 64.
pub fn address(family: Family, number: usize, host: u8) -> IpAddr {
    let network = number as u8 + 1;
    match family {
        Family::V4 => Ipv4Addr::new(10, 9, network, host).into(),
        Family::V6 => Ipv6Addr::new(0xfd09, network.into(), 0, 0, 0, 0, 0, host.into()).into(),
    }
}

/// Creates TAP interface `number` with the addresses of this side.
///
/// # Errors
///
/// Output of `ip` if it fails.
pub fn tap(number: usize, family: Family) -> Result<(), String> {
    let name = format!("tap{number}");
    ip(&["tuntap", "add", &name, "mode", "tap"])?;
    for host in [HOST, RELAY[0], RELAY[1]] {
        assign(&name, address(family, number, host))?;
    }
    ip(&["link", "set", &name, "up"])
}

/// Adds the addresses of interface 0, of both sides, to the loopback interface.
///
/// # Errors
///
/// Output of `ip` if it fails.
pub fn more_loopback(family: Family) -> Result<(), String> {
    let hosts = [HOST, GUEST, RELAY[0], RELAY[1]];
    hosts
        .into_iter()
        .try_for_each(|host| assign("lo", address(family, 0, host)))
}

fn assign(interface: &str, address: IpAddr) -> Result<(), String> {
    match address {
        IpAddr::V4(_) => ip(&["address", "add", &format!("{address}/24"), "dev", interface]),
        // Duplicate address detection is not needed, so the address is available immediately.
        IpAddr::V6(_) => {
            let address = format!("{address}/64");
            ip(&["address", "add", &address, "dev", interface, "nodad"])
        }
    }
}
