//! Joining a host process: commands whose programs need the same UDP port at the same addresses
//! share one host process, as programs share a kernel.
//!
//! The host listens at an abstract address that encodes the port and the addresses; a command
//! connects to this address before it opens its own sockets. Both ends check the user of the other
//! process, because another user may have taken the address.

use std::fmt::{self, Write};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anabranch_net::sctp::Authentication;
use anabranch_net::{Carrier, Config};
use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket as Unix, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::acceptor::{self, Caller};
use super::{HostState, address_of};
use crate::control::{MAX_CONTROL_MESSAGE, decode, encode};

/// Timeout for the host's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Name and secret with which programs find and use a host.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostAccess {
    /// Name of the host.
    pub name: String,
    /// Secret for programs of other users, for example those that have dropped root privileges.
    /// They get it from the process that starts them.
    pub secret: Option<String>,
}

/// Omits the secret.
impl fmt::Debug for HostAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl HostAccess {
    /// Access to the host with this name, without a secret.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            secret: None,
        }
    }

    /// Creates an unpredictable name and secret.
    ///
    /// # Errors
    /// The system provides no random bits.
    pub fn random() -> io::Result<Self> {
        Ok(Self {
            name: acceptor::random()?,
            secret: Some(acceptor::random()?),
        })
    }
}

/// Membership of a command in the host of another command. The host serves this command's programs
/// until the membership is dropped.
#[derive(Debug)]
pub struct Membership {
    /// Access data for the programs.
    pub access: HostAccess,
    line: Unix,
}

impl Membership {
    /// Waits until the host ends.
    ///
    /// # Errors
    /// The error of the system.
    pub async fn host_ended(self) -> io::Result<()> {
        self.line.set_nonblocking(true)?;
        let line = super::watched_by(self.line)?;
        let mut nothing = [0; 1];
        let read = |mut unix: &Unix| io::Read::read(&mut unix, &mut nothing);
        line.async_io(Interest::READABLE, read).await.map(drop)
    }
}

/// Result of a request to join.
#[derive(Debug)]
pub enum JoinResult {
    /// No host uses the port.
    NoHost,
    /// The host at the port has accepted this command.
    Member(Membership),
    /// The port is in use by a process with which it cannot be shared; the text is the reason.
    Refused(String),
}

/// Requirements of a command for the host, in addition to port and addresses.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct JoinRequirements {
    version: String,
    peer_udp_port: Option<u16>,
    auth: bool,
    /// Options of the protection by the DTLS chunk; empty without it.
    protection: String,
}

impl JoinRequirements {
    fn of(config: &Config, protection: &str) -> Self {
        let peer_udp_port = match config.carrier {
            Carrier::Encapsulated { peer_port, .. } | Carrier::Udp { peer_port, .. } => {
                Some(peer_port)
            }
            _ => None,
        };
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            peer_udp_port,
            auth: config.sctp.authentication != Authentication::Off,
            protection: protection.to_owned(),
        }
    }

    /// Why a command with the requirements `wanted` cannot use a host with these requirements; both
    /// have the same version.
    fn difference(&self, wanted: &Self) -> String {
        if self.auth != wanted.auth {
            let [own, wanted] =
                [self.auth, wanted.auth].map(|it| if it { "with" } else { "without" });
            return format!("its host is {own} AUTH, and this command {wanted}");
        }
        if self.protection != wanted.protection {
            let [own, wanted] = [self, wanted].map(|it| match &it.protection[..] {
                "" => "no protection",
                options => options,
            });
            return format!("its host has {own}, and this command {wanted}");
        }
        let shown = |port: Option<u16>| match port {
            Some(0) | None => "that of the host itself".to_owned(),
            Some(port) => port.to_string(),
        };
        format!(
            "its host has the UDP port of peers {}, and this command {}",
            shown(self.peer_udp_port),
            shown(wanted.peer_udp_port)
        )
    }
}

#[derive(Serialize, Deserialize)]
enum Reply {
    Welcome(HostAccess),
    Differs(String),
}

/// Abstract address of the host with this port at these addresses; `None` if any port may be used,
/// because such a port is not shared.
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
        // Writing to a string cannot fail.
        let _ = write!(text, "{address},");
    }
    let mut place = format!("\0anabranch-port:{port}:").into_bytes();
    match text.len() {
        // Long lists are replaced by a digest, because the size of an abstract address is limited.
        0..=64 => place.extend(text.as_bytes()),
        _ => place.extend(format!("{:016x}", digest(text.as_bytes())).as_bytes()),
    }
    Some(place)
}

/// FNV-1a hash of 64 bits. Two lists of addresses with the same hash would be assigned to one host,
/// which is too unlikely to be handled.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Asks the host with the port and addresses of `config` to accept this command as a member.
/// `protection`: like for [`Host::start_shared`](super::Host::start_shared).
///
/// # Errors
/// An error of the system, for example if the process at the port does not answer in time.
pub fn join(config: &Config, protection: &str) -> io::Result<JoinResult> {
    let Some(place) = place(config) else {
        return Ok(JoinResult::NoHost);
    };
    let line = Unix::new(Domain::UNIX, Type::SEQPACKET, None)?;
    match line.connect(&address_of(&place)?) {
        Ok(()) => (),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Ok(JoinResult::NoHost);
        }
        Err(error) => return Err(error),
    }
    if !acceptor::is_trusted(&line) {
        let why = "a process of another user has it".to_owned();
        return Ok(JoinResult::Refused(why));
    }
    line.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    line.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    line.send(&encode(&JoinRequirements::of(config, protection)))?;
    let mut buffer = vec![0; MAX_CONTROL_MESSAGE];
    let read = io::Read::read(&mut &line, &mut buffer)?;
    Ok(match decode(&buffer[..read]) {
        Some(Reply::Welcome(access)) => JoinResult::Member(Membership { access, line }),
        Some(Reply::Differs(why)) => JoinResult::Refused(why),
        // The host has just ended, or has another version of this protocol.
        None => JoinResult::Refused("the process that has it does not answer".to_owned()),
    })
}

/// Answers a request to join, and counts the command as a member until it disconnects.
pub(super) async fn admit_member(known: Arc<HostState>, mut caller: Caller, unix: AsyncFd<Unix>) {
    let mut buffer = vec![0; MAX_CONTROL_MESSAGE];
    let read = |mut unix: &Unix| io::Read::read(&mut unix, &mut buffer);
    let Ok(length) = caller
        .receive_first(unix.async_io(Interest::READABLE, read))
        .await
    else {
        return;
    };
    // A process that would need the secret cannot join, because it should use the host of the
    // process that started it.
    if !caller.authenticate(&known, &[]) {
        return;
    }
    let own = JoinRequirements::of(&known.config, &known.protection);
    let reply = match decode::<JoinRequirements>(&buffer[..length]) {
        Some(wanted) if wanted == own => Reply::Welcome(known.access()),
        Some(wanted) if wanted.version != own.version => Reply::Differs(format!(
            "its host is of version {}, and this command of {}",
            own.version, wanted.version
        )),
        Some(wanted) => Reply::Differs(own.difference(&wanted)),
        None => Reply::Differs("its host is of another version".to_owned()),
    };
    let admit_member = matches!(reply, Reply::Welcome(_));
    let _member = admit_member.then(|| known.add_member());
    let reply = encode(&reply);
    let write = |mut unix: &Unix| io::Write::write(&mut unix, &reply);
    if unix.async_io(Interest::WRITABLE, write).await.is_ok() && admit_member {
        // A member sends no more data, so that readable means disconnected.
        let mut nothing = [0; 1];
        let read = |mut unix: &Unix| io::Read::read(&mut unix, &mut nothing);
        let _ = unix.async_io(Interest::READABLE, read).await;
    }
}

/// Registration of a member, until this value is dropped.
pub(super) struct Member(Arc<HostState>);

impl HostState {
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
    fn a_command_with_other_requirements_gets_the_reason() {
        let host = config(9899, &[]);
        let auth = host
            .clone()
            .with(|it| it.sctp.authentication = Authentication::On);
        let port = host.clone().with(|it| {
            it.carrier = Carrier::Encapsulated {
                port: 9899,
                peer_port: 9900,
            };
        });
        let secure = JoinRequirements::of(&host, "--secure --psk-file=/psk");
        let [host, auth, port] = [host, auth, port].map(|it| JoinRequirements::of(&it, ""));
        assert!(host != auth && host != port && host != secure);
        let reason = "its host has no protection, and this command --secure --psk-file=/psk";
        assert_eq!(host.difference(&secure), reason);
        let reason = "its host is without AUTH, and this command with";
        assert_eq!(host.difference(&auth), reason);
        let reason =
            "its host has the UDP port of peers that of the host itself, and this command 9900";
        assert_eq!(host.difference(&port), reason);
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
