//! Network namespaces for programs on emulated hosts.
//!
//! A namespace belongs to a thread of this process: programs started by the thread run inside it.
//! It has a loopback interface, a TUN device with the addresses of its node as the default route,
//! and an `/etc/hosts` with the names of all nodes. It has no name in the file system, and
//! disappears when its thread and programs have ended.

use std::fs;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Uid, getgid, getuid};
use thiserror::Error;

use crate::tun::Tun;

/// Name of the TUN device in every namespace.
pub const DEVICE: &str = "sim0";
/// Transmit queue length of the device, packets.
const QUEUE: u32 = 10_000;
/// Minimum MTU at which the system enables IPv6 on a device (RFC 8200 §5).
const MIN_MTU_V6: u16 = 1280;

/// Reason why a namespace could not be created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// The process lacks the permission.
    #[error(
        "this process may not make a network namespace ({0}); run the command as root, or let users make namespaces \
         (`sysctl kernel.unprivileged_userns_clone=1`, with AppArmor `sysctl kernel.apparmor_restrict_unprivileged_userns=0`); a container \
         needs `--cap-add SYS_ADMIN --cap-add NET_ADMIN --device /dev/net/tun`"
    )]
    NotAllowed(Errno),
    /// TUN devices are not available.
    #[error(
        "cannot make a TUN device: {0}; it needs /dev/net/tun (`modprobe tun`, in a container `--device /dev/net/tun`), which this user may read and write"
    )]
    Tun(io::Error),
    /// The program `ip` is missing.
    #[error("cannot run `ip`: {0}; install iproute2")]
    NoIp(io::Error),
    /// The program `ip` failed.
    #[error("`ip` failed in the namespace of {node}: {said}")]
    Ip {
        /// Name of the node to which the namespace belongs.
        node: String,
        /// Error output of the program.
        said: String,
    },
    /// `/etc/hosts` could not be replaced.
    #[error("cannot put the names of nodes into /etc/hosts: {0}")]
    Hosts(io::Error),
    /// The thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// Parameters for creating a namespace.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Name of its node.
    pub name: String,
    /// Addresses of its node. The first one of each IP version is the default source address.
    pub addresses: Vec<IpAddr>,
    /// Maximum size of packets on the links of the node, bytes including the IP header.
    pub mtu: u16,
    /// Lines to add to `/etc/hosts`.
    pub hosts: String,
}

type Order = Box<dyn FnOnce() + Send>;

/// A network namespace with its thread.
#[derive(Debug)]
pub struct Namespace {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

/// Prepares this process for creating namespaces. If it lacks the permission, it moves into a new
/// user namespace in which it is root. Must be called while the process has only one thread.
///
/// # Errors
/// [`NamespaceError::NotAllowed`].
pub fn prepare() -> Result<(), NamespaceError> {
    let may = || thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS));
    // A panic of the test thread counts as missing permission.
    if Uid::effective().is_root() && may().join().unwrap_or(Err(Errno::EPERM)).is_ok() {
        return Ok(());
    }
    let (user, group) = (getuid(), getgid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(NamespaceError::NotAllowed)?;
    let write = |file: &str, text: String| {
        let result = fs::write(Path::new("/proc/self").join(file), text);
        result.map_err(|error| {
            let errno = error.raw_os_error().map_or(Errno::EPERM, Errno::from_raw);
            NamespaceError::NotAllowed(errno)
        })
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("0 {user} 1"))?;
    write("gid_map", format!("0 {group} 1"))
}

impl Namespace {
    /// Creates a namespace, with the TUN device that connects it to the emulated network.
    ///
    /// # Errors
    /// [`NamespaceError`].
    pub fn new(setup: Setup) -> Result<(Self, Tun), NamespaceError> {
        let (orders, come) = channel::<Order>();
        let (made, is_made) = channel();
        let live = move || {
            // Fails only if the caller no longer waits.
            let _ = made.send(furnish(&setup));
            come.into_iter().for_each(|order| order());
        };
        let thread = thread::Builder::new()
            .name("namespace".to_owned())
            .spawn(live)
            .map_err(NamespaceError::Thread)?;
        let gone = || NamespaceError::Thread(io::Error::other("the thread ended"));
        let tun = is_made.recv().map_err(|_| gone())??;
        let namespace = Self {
            orders: Some(orders),
            thread: Some(thread),
        };
        Ok((namespace, tun))
    }

    /// Runs a function inside the namespace and waits for it, for example to start a process or to
    /// read `/proc/thread-self`.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn run<T: Send + 'static>(
        &self,
        act: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (sender, result) = channel();
        let order = Box::new(move || drop(sender.send(act())));
        let sent = self.orders.as_ref().map(|orders| orders.send(order));
        match (sent, result.recv()) {
            (Some(Ok(())), Ok(result)) => Ok(result),
            _ => Err(io::Error::other("the thread of the namespace ended")),
        }
    }

    /// Number of packets that the device dropped because the emulator did not read them in time.
    /// These drops are not part of the emulation.
    pub fn untaken(&self) -> u64 {
        let read = || fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
        self.run(read).map_or(0, |text| dropped(&text))
    }

    /// Whether a program in the namespace listens on a TCP or UDP port.
    pub fn listens(&self, port: u16) -> bool {
        let read = || {
            let tables = ["tcp", "tcp6", "udp", "udp6"];
            tables.map(|it| fs::read_to_string(format!("/proc/thread-self/net/{it}")))
        };
        let mut tables = self.run(read).into_iter().flatten().flatten();
        tables.any(|table| has_listener(&table, port))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic was printed by the thread already.
            let _ = thread.join();
        }
    }
}

/// Moves the calling thread into new namespaces and configures them.
fn furnish(setup: &Setup) -> Result<Tun, NamespaceError> {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)
        .map_err(NamespaceError::NotAllowed)?;
    let nothing: Option<&str> = None;
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(nothing, "/", nothing, flags, nothing).map_err(NamespaceError::NotAllowed)?;
    name_hosts(&setup.hosts).map_err(NamespaceError::Hosts)?;
    show_devices();
    let tun = Tun::make(DEVICE, setup.mtu).map_err(NamespaceError::Tun)?;
    configure(setup)?;
    Ok(tun)
}

/// Adds the names to `/etc/hosts` of this namespace, by mounting a new file over it. The file is on
/// a separate file system that only this namespace sees, because in a directory that other users
/// can write, they could replace it by a link.
fn name_hosts(names: &str) -> io::Result<()> {
    let there = fs::read_to_string("/etc/hosts").unwrap_or_default();
    let place = std::env::temp_dir();
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(
        Some("hosts"),
        &place,
        Some("tmpfs"),
        flags,
        Some("mode=0755"),
    )?;
    let put = put_over_hosts(&place.join("hosts"), &format!("{there}\n{names}"));
    // The file that is mounted over `/etc/hosts` remains accessible.
    let left = umount2(&place, MntFlags::MNT_DETACH);
    put.and(left.map_err(io::Error::from))
}

/// Creates a file that every user can read, and mounts it over `/etc/hosts`.
fn put_over_hosts(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::options()
        .write(true)
        .create_new(true)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(fs::Permissions::from_mode(0o644))?;
    let nothing: Option<&str> = None;
    Ok(mount(
        Some(path),
        "/etc/hosts",
        nothing,
        MsFlags::MS_BIND,
        nothing,
    )?)
}

/// Mounts `/sys` again, so that it shows the devices of this namespace. If this fails, the few
/// programs that read it see the devices of the host.
fn show_devices() {
    let nothing: Option<&str> = None;
    if mount(
        Some("sysfs"),
        "/sys",
        Some("sysfs"),
        MsFlags::empty(),
        nothing,
    )
    .is_err()
    {
        let _ = umount2("/sys", MntFlags::MNT_DETACH).and_then(|()| {
            mount(
                Some("sysfs"),
                "/sys",
                Some("sysfs"),
                MsFlags::empty(),
                nothing,
            )
        });
    }
}

/// Configures addresses and routes with the program `ip`.
fn configure(setup: &Setup) -> Result<(), NamespaceError> {
    let mut orders = vec![
        "link set lo up".to_owned(),
        format!("link set {DEVICE} addrgenmode none txqueuelen {QUEUE}"),
        format!("link set {DEVICE} up"),
    ];
    let v6 = setup.mtu >= MIN_MTU_V6 && Path::new("/proc/sys/net/ipv6").exists();
    for address in setup.addresses.iter().filter(|it| it.is_ipv4() || v6) {
        orders.push(match address {
            IpAddr::V4(it) => format!("addr add {it}/32 dev {DEVICE}"),
            IpAddr::V6(it) => format!("addr add {it}/128 dev {DEVICE} nodad"),
        });
    }
    orders.push(format!("route add 0.0.0.0/0 dev {DEVICE}"));
    if v6 {
        orders.push(format!("route add ::/0 dev {DEVICE}"));
    }
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(NamespaceError::NoIp)?;
    if let Some(mut input) = child.stdin.take() {
        // A write error is ignored: if the program has ended early, its output contains the reason.
        let _ = input.write_all((orders.join("\n") + "\n").as_bytes());
    }
    let output = child.wait_with_output().map_err(NamespaceError::NoIp)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(NamespaceError::Ip {
            node: setup.name.clone(),
            said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }),
    }
}

/// Number of packets that [`DEVICE`] dropped on transmission, from a text in the format of
/// `/proc/net/dev`. It is the 12th number of the device's line.
fn dropped(text: &str) -> u64 {
    let line = text.lines().find_map(|line| {
        let (name, numbers) = line.split_once(':')?;
        (name.trim() == DEVICE).then_some(numbers)
    });
    let number = line.and_then(|numbers| numbers.split_whitespace().nth(11));
    number.and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// Whether a table in the format of `/proc/net/tcp` contains a listener on `port`: an entry in
/// state 0A (or 07 for UDP) without a remote port.
fn has_listener(table: &str, port: u16) -> bool {
    let wanted = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let [local, remote, state] = [fields.next(), fields.next(), fields.next()];
        local.is_some_and(|it| it.ends_with(&wanted))
            && remote.is_some_and(|it| it.ends_with(":0000"))
            && matches!(state, Some("0A" | "07"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_and_drops_are_read_from_the_tables_of_the_system() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue
   0: 00000000:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000
   1: 0100007F:0050 0100007F:C350 01 00000000:00000000 00:00000000 00000000";
        assert!(has_listener(table, 5201));
        assert!(!has_listener(table, 80), "a connection is no listener");
        assert!(!has_listener("", 80));
        let table = "Inter-|   Receive |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    9    0     0       0          0
  sim0:    1000      10    0    1    0     0          0         0     2000      20    0    3    0     0       0          0";
        assert_eq!(dropped(table), 3);
        assert_eq!(dropped(""), 0);
    }
}
