//! Programs of several commands on one host: those that want the same UDP port at the same
//! addresses have one host process, as one kernel serves all programs.
//!
//! The host listens at an abstract address that names the port and the addresses; whoever wants
//! them asks there before it opens sockets of its own. Both ends look whose process is at the
//! other: a place that another user has taken is not used.

use std::fmt::Write;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anabranch_net::{Carrier, Config};
use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket as Unix, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::doors::{self, Caller};
use super::{Known, address_of};
use crate::control::{LONGEST, decode, encode};

/// How long a host may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How programs find a host, and show that they may use it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Its name.
    pub name: String,
    /// What programs of other users say, which have it from the one that began them: such as gave
    /// up root.
    pub secret: Option<String>,
}

impl Access {
    /// A host of this name alone.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            secret: None,
        }
    }

    /// A name and a secret that nobody can guess.
    ///
    /// # Errors
    /// The system gives no random bits.
    pub fn random() -> io::Result<Self> {
        Ok(Self {
            name: doors::random()?,
            secret: Some(doors::random()?),
        })
    }
}

/// A host of another command that serves the programs of this one, until this is dropped.
pub struct Membership {
    /// How programs find it.
    pub access: Access,
    line: Unix,
}

impl Membership {
    /// Waits until the host ends.
    ///
    /// # Errors
    /// What the system says.
    pub async fn host_ended(self) -> io::Result<()> {
        self.line.set_nonblocking(true)?;
        let line = super::watched_by(self.line)?;
        let mut nothing = [0; 1];
        let read = |mut unix: &Unix| io::Read::read(&mut unix, &mut nothing);
        line.async_io(Interest::READABLE, read).await.map(drop)
    }
}

/// What came of asking for a host.
pub enum Joined {
    /// Nobody has the port.
    Nobody,
    /// The host that has it.
    Member(Membership),
    /// It is taken, and cannot be shared, for that reason.
    Refused(String),
}

/// What programs of a command want of a host, beside its port and addresses.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Wanted {
    version: String,
    peer_udp_port: Option<u16>,
}

impl Wanted {
    fn of(config: &Config) -> Self {
        let peer_udp_port = match config.carrier {
            Carrier::Encapsulated { peer_port, .. } | Carrier::Udp { peer_port, .. } => {
                Some(peer_port)
            }
            _ => None,
        };
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            peer_udp_port,
        }
    }
}

#[derive(Serialize, Deserialize)]
enum Reply {
    Welcome(Access),
    Differs(String),
}

/// The abstract address of whoever has this port at these addresses; `None`: any port will do, and
/// nothing is shared.
pub(super) fn place(config: &Config) -> Option<Vec<u8>> {
    let port = match config.carrier {
        Carrier::Encapsulated { port: 0, .. } | Carrier::Udp { port: 0, .. } => return None,
        Carrier::Encapsulated { port, .. } | Carrier::Udp { port, .. } => port.to_string(),
        _ => "ip".to_owned(),
    };
    let mut addresses: Vec<IpAddr> = config.addresses.clone();
    addresses.sort();
    addresses.dedup();
    let mut text = String::new();
    for address in addresses {
        // Writing to a string does not fail.
        let _ = write!(text, "{address},");
    }
    let mut place = format!("\0anabranch-port:{port}:").into_bytes();
    match text.len() {
        // As much as an address of the system has room for.
        0..=64 => place.extend(text.as_bytes()),
        _ => place.extend(format!("{:016x}", digest(text.as_bytes())).as_bytes()),
    }
    Some(place)
}

/// FNV-1a: two lists of addresses that have the same one are told apart by the system, which gives
/// each address once.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Asks for the host that has the port of `config` at its addresses.
///
/// # Errors
/// The system's, or one that has it does not answer.
pub fn join(config: &Config) -> io::Result<Joined> {
    let Some(place) = place(config) else {
        return Ok(Joined::Nobody);
    };
    let line = Unix::new(Domain::UNIX, Type::SEQPACKET, None)?;
    match line.connect(&address_of(&place)?) {
        Ok(()) => (),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Ok(Joined::Nobody);
        }
        Err(error) => return Err(error),
    }
    if !doors::is_trusted(&line) {
        let why = "a process of another user has it".to_owned();
        return Ok(Joined::Refused(why));
    }
    line.set_read_timeout(Some(PATIENCE))?;
    line.set_write_timeout(Some(PATIENCE))?;
    line.send(&encode(&Wanted::of(config)))?;
    let mut buffer = vec![0; LONGEST];
    let read = io::Read::read(&mut &line, &mut buffer)?;
    Ok(match decode(&buffer[..read]) {
        Some(Reply::Welcome(access)) => Joined::Member(Membership { access, line }),
        Some(Reply::Differs(why)) => Joined::Refused(why),
        // The host ended in this moment, or speaks otherwise.
        None => Joined::Refused("the process that has it does not answer".to_owned()),
    })
}

/// Answers who wants to join, and counts them as members until they leave.
pub(super) async fn welcome(known: Arc<Known>, mut caller: Caller, unix: AsyncFd<Unix>) {
    let mut buffer = vec![0; LONGEST];
    let read = |mut unix: &Unix| io::Read::read(&mut unix, &mut buffer);
    let Ok(length) = caller.hear(unix.async_io(Interest::READABLE, read)).await else {
        return;
    };
    // Who knows the secret has its host already.
    if !caller.is_welcome(&known, &[]) {
        return;
    }
    let own = Wanted::of(&known.config);
    let reply = match decode::<Wanted>(&buffer[..length]) {
        Some(wanted) if wanted == own => Reply::Welcome(known.access()),
        Some(wanted) if wanted.version != own.version => Reply::Differs(format!(
            "its host is of version {}, and this command of {}",
            own.version, wanted.version
        )),
        Some(wanted) => {
            let shown = |port: Option<u16>| match port {
                Some(0) | None => "that of the host itself".to_owned(),
                Some(port) => port.to_string(),
            };
            Reply::Differs(format!(
                "its host has the UDP port of peers {}, and this command {}",
                shown(own.peer_udp_port),
                shown(wanted.peer_udp_port)
            ))
        }
        None => Reply::Differs("its host is of another version".to_owned()),
    };
    let welcome = matches!(reply, Reply::Welcome(_));
    let _member = welcome.then(|| known.add_member());
    let reply = encode(&reply);
    let write = |mut unix: &Unix| io::Write::write(&mut unix, &reply);
    if unix.async_io(Interest::WRITABLE, write).await.is_ok() && welcome {
        // It says nothing more, so that what can be read is the end.
        let mut nothing = [0; 1];
        let read = |mut unix: &Unix| io::Read::read(&mut unix, &mut nothing);
        let _ = unix.async_io(Interest::READABLE, read).await;
    }
}

/// One command more whose programs use the host, until this is dropped.
pub(super) struct Member(Arc<Known>);

impl Known {
    fn add_member(self: &Arc<Self>) -> Member {
        self.members.send_modify(|it| *it += 1);
        Member(Arc::clone(self))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.members.send_modify(|it| *it -= 1);
        self.0.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(port: u16, addresses: &[&str]) -> Config {
        Config::default().with(|it| {
            it.carrier = Carrier::Encapsulated { port, peer_port: 0 };
            it.addresses = addresses.iter().map(|it| it.parse().unwrap()).collect();
        })
    }

    #[test]
    fn a_place_is_a_port_and_addresses_in_any_order() {
        let place = |port, addresses: &[&str]| place(&config(port, addresses));
        assert_eq!(place(0, &[]), None);
        let one = place(9899, &["127.0.0.1", "::1"]);
        assert_eq!(one, place(9899, &["::1", "127.0.0.1", "::1"]));
        assert_ne!(one, place(9899, &["127.0.0.1"]));
        assert_ne!(one, place(9900, &["127.0.0.1", "::1"]));
        let many: Vec<String> = (0..100).map(|it| format!("2001:db8::{it:x}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let [all, less] = [&many[..], &many[1..]].map(|it| place(9899, it).expect("a place"));
        assert!(all.len() < 108 && all != less);
    }
}
