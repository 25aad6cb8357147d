//! Two network namespaces for a test, connected by two links.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Barrier, OnceLock};

use anabranch_interop::namespace::{allowed, inside, ip};

/// IP address of side 0 or 1 on link 1 or 2.
pub fn address(side: usize, link: usize) -> IpAddr {
    Ipv4Addr::new(10, 7, link as u8, side as u8 + 1).into()
}

/// Name of the network interface of a side on a link.
pub fn interface(side: usize, link: usize) -> String {
    format!("side{side}-{link}")
}

/// Runs `body` for sides 0 and 1, each in a network namespace with two addresses. Returns `None`
/// with a message if namespaces cannot be created here.
pub fn joined<R: Send>(body: impl Fn(usize) -> R + Sync) -> Option<[R; 2]> {
    if let Err(reason) = allowed() {
        eprintln!("left out: {reason}");
        return None;
    }
    let met = Barrier::new(2);
    let other: OnceLock<String> = OnceLock::new();
    let run = |side: usize| {
        inside(|| {
            if side == 1 {
                let _ = other.set(thread());
            }
            met.wait();
            let made = if side == 0 {
                join(other.get().map_or("", String::as_str))
            } else {
                Ok(())
            };
            met.wait();
            made?;
            for link in [1, 2] {
                let name = interface(side, link);
                let with_length = format!("{}/24", address(side, link));
                ip(&["address", "add", &with_length, "dev", &name])?;
                ip(&["link", "set", &name, "up"])?;
            }
            // Both ends of the links must exist before a side sends.
            met.wait();
            Ok(body(side))
        })
    };
    let [first, second] = std::thread::scope(|scope| {
        let one = scope.spawn(|| run(0));
        let two = scope.spawn(|| run(1));
        [one, two].map(|it| it.join().expect("no panic").expect("a network"))
    });
    Some([first, second])
}

/// Creates two links between this namespace and that of the thread `thread`.
fn join(thread: &str) -> Result<(), String> {
    for link in [1, 2] {
        let [own, peer] = [interface(0, link), interface(1, link)];
        ip(&[
            "link", "add", &own, "type", "veth", "peer", "name", &peer, "netns", thread,
        ])?;
    }
    Ok(())
}

/// The thread ID of this thread.
fn thread() -> String {
    let own = std::fs::read_link("/proc/thread-self").expect("/proc is there");
    let name = own.file_name().expect("PROCESS/task/THREAD");
    name.to_string_lossy().into_owned()
}
