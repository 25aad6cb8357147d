//! Isolated network of a test: a Linux network namespace, which exists until its last process ends.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

use nix::sched::{CloneFlags, unshare};

/// Checks that this process may create a network namespace.
///
/// # Errors
///
/// The reason why this process may not create one.
pub fn allowed() -> Result<(), String> {
    match nix::unistd::geteuid().is_root() {
        true => inside(|| Ok(())),
        false => Err("network namespaces and TAP interfaces need root".into()),
    }
}

/// Runs `body` on a thread in a new network namespace in which only the loopback interface is up.
/// Processes started and sockets opened by `body` belong to this namespace as well.
///
/// # Errors
///
/// The error of `body`; also if the namespace cannot be created or `body` panics.
pub fn inside<R: Send>(body: impl FnOnce() -> Result<R, String> + Send) -> Result<R, String> {
    let enter = || {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|error| format!("network namespace: {error}"))?;
        // The peers expect the MTU of Ethernet, and the default of the loopback interface is
        // larger.
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
/// Output of `ip` if the command fails.
pub fn no_segmentation() -> Result<(), String> {
    ip(&["link", "set", "lo", "gso_max_segs", "1"])
}

/// Runs `ip` with these arguments in the network namespace of this thread.
///
/// # Errors
///
/// Output of `ip` if the command fails.
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

/// Host part of the addresses on the host's side of a TAP interface.
pub const HOST: u8 = 1;
/// Host part of the addresses on the guest's side of a TAP interface.
pub const GUEST: u8 = 2;
/// Host parts of the relay's two addresses on the host's side: the first is used by the connecting
/// peer, the second by the accepting peer.
pub const RELAY: [u8; 2] = [3, 4];

/// Address on TAP interface `number`: 10.9.(number + 1).`host` with a 24-bit prefix, or
/// fd09:(number + 1)::`host` with a 64-bit prefix.
pub fn address(family: Family, number: usize, host: u8) -> IpAddr {
    let network = number as u8 + 1;
    match family {
        Family::V4 => Ipv4Addr::new(10, 9, network, host).into(),
        Family::V6 => Ipv6Addr::new(0xfd09, network.into(), 0, 0, 0, 0, 0, host.into()).into(),
    }
}

/// Creates TAP interface `number` with the addresses of the host's side.
///
/// # Errors
///
/// Output of `ip` if the command fails.
pub fn tap(number: usize, family: Family) -> Result<(), String> {
    let name = format!("tap{number}");
    ip(&["tuntap", "add", &name, "mode", "tap"])?;
    for host in [HOST, RELAY[0], RELAY[1]] {
        assign(&name, address(family, number, host))?;
    }
    ip(&["link", "set", &name, "up"])
}

/// Adds the addresses of TAP interface 0, those of the host and of the guest, to the loopback
/// interface.
///
/// # Errors
///
/// Output of `ip` if the command fails.
pub fn more_loopback(family: Family) -> Result<(), String> {
    let hosts = [HOST, GUEST, RELAY[0], RELAY[1]];
    hosts
        .into_iter()
        .try_for_each(|host| assign("lo", address(family, 0, host)))
}

fn assign(interface: &str, address: IpAddr) -> Result<(), String> {
    match address {
        IpAddr::V4(_) => ip(&["address", "add", &format!("{address}/24"), "dev", interface]),
        // The address is available immediately without duplicate address detection, which a
        // loopback interface does not need.
        IpAddr::V6(_) => {
            let address = format!("{address}/64");
            ip(&["address", "add", &address, "dev", interface, "nodad"])
        }
    }
}
