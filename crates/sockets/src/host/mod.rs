//! The host process, which runs SCTP for programs and holds the other end of their descriptors.

mod acceptor;
mod association;
mod bind;
mod data;
mod deliver;
mod dtls;
mod dtls_options;
mod endpoint;
mod events;
mod generations;
mod getsockopt;
mod join;
mod listener;
mod local_peers;
mod notification;
mod notify;
mod one_to_many;
mod port_selection;
mod refusals;
mod requests;
mod scm_rights;
mod seccomp;
mod send;
mod send_queue;
mod send_worker;
mod setsockopt;
mod settings;
mod socket;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anabranch_net::{Association, BacklogPermit, BindError, Config, SharedSockets, dynamic_port};
use socket2::{Domain, SockAddr, Socket as Unix, Type};
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use crate::SocketType;
use crate::frame::HostFrameHeader;
pub use acceptor::Shortage;
use acceptor::accept_all;
use generations::Generations;
pub use join::{HostAccess, JoinResult, Membership, join};
use listener::ListenerSet;
pub use refusals::Refusals;
pub use seccomp::BypassStatus;
use socket::Socket;
use socket::SocketAssociation;

/// Time for which a request waits until the host has registered its socket, because a program may
/// send a request immediately after it has created the socket.
const NEW_SOCKET_TIMEOUT: Duration = Duration::from_secs(5);
/// Backlog of the host's Unix listeners.
const BACKLOG: i32 = 1024;
/// Maximum association number; `sctp_assoc_t` is signed.
const MAX_ASSOCIATION_NUMBER: u32 = i32::MAX as u32;
/// Maximum number of refused sockets whose names are remembered.
const MAX_REFUSED: usize = 4096;

/// Shared state of the host.
pub(crate) struct HostState {
    sockets: SharedSockets,
    config: Config,
    /// Options of the protection by the DTLS chunk; empty without it.
    protection: String,
    table: Mutex<Table>,
    appeared: Notify,
    /// Number of associations that have not ended, and a notification when the last one ends.
    alive: AtomicUsize,
    ended: Notify,
    /// Status of system calls that bypass the library.
    bypass_status: watch::Sender<BypassStatus>,
    name: String,
    secret: Option<String>,
    /// Permits for programs of other users that have not presented the secret yet.
    unauthenticated: Arc<Semaphore>,
    shortage: watch::Sender<Shortage>,
    refusals: watch::Sender<Refusals>,
    /// Number of other commands whose programs use this host.
    members: watch::Sender<usize>,
    generations: Arc<Generations>,
    /// Number of sockets opened so far.
    opened: AtomicU32,
}

/// An association that a new socket should take over.
struct PendingTransfer {
    assoc: Arc<SocketAssociation>,
    /// Name of the socket from which the association was peeled off.
    from: Vec<u8>,
    /// Unread frames of the association from that socket.
    waiting: Vec<(HostFrameHeader, Vec<u8>)>,
    /// Backlog permit, if the association waits to be accepted.
    _permit: Option<BacklogPermit>,
}

#[derive(Default)]
struct Table {
    /// Sockets by the abstract address of their descriptor without its first byte.
    sockets: BTreeMap<Vec<u8>, Arc<Socket>>,
    /// Associations that were announced or peeled off, and that no new socket has taken over yet.
    incoming: BTreeMap<u32, PendingTransfer>,
    last_number: u32,
    /// SCTP ports in use, with the number of sockets at each.
    ports: BTreeMap<u16, u32>,
    /// Listening addresses of one-to-one sockets; those with the same port have disjoint addresses.
    /// A listening address may have associations but no socket; another socket can then start to
    /// listen at it.
    listener_sets: Vec<ListenerSet>,
    /// Names of refused sockets; the newest is the last.
    refused: VecDeque<Vec<u8>>,
    /// Number of associations that were announced to listening sockets.
    announced: usize,
}

impl HostState {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// A new number for an association. Numbers 0 to 2 are not used, because they mean future
    /// associations, current associations, and all.
    fn number(&self) -> u32 {
        let mut table = self.table();
        table.last_number = match table.last_number {
            0..=2 | MAX_ASSOCIATION_NUMBER.. => 3,
            last => last + 1,
        };
        table.last_number
    }

    /// Counts an association until it has ended, and notifies its socket of the end immediately,
    /// even if earlier data is unread.
    fn watch(self: &Arc<Self>, assoc: &Arc<SocketAssociation>, association: Association) {
        self.alive.fetch_add(1, Ordering::AcqRel);
        let known = Arc::clone(self);
        let assoc = Arc::clone(assoc);
        tokio::spawn(async move {
            let reason = association.closed().await;
            assoc.record_end(&reason);
            known.alive.fetch_sub(1, Ordering::AcqRel);
            known.ended.notify_waiters();
        });
    }

    /// The socket with this name. Waits for a socket that is not registered yet.
    async fn socket(&self, name: &[u8]) -> Result<Arc<Socket>, i32> {
        let look = async {
            loop {
                let appeared = self.appeared.notified();
                tokio::pin!(appeared);
                appeared.as_mut().enable();
                {
                    let table = self.table();
                    if let Some(socket) = table.sockets.get(name) {
                        return Ok(Arc::clone(socket));
                    }
                    if table.refused.iter().any(|it| it == name) {
                        return Err(libc::ENFILE);
                    }
                }
                appeared.await;
            }
        };
        let found = tokio::time::timeout(NEW_SOCKET_TIMEOUT, look).await;
        found.unwrap_or(Err(libc::ENOTCONN))
    }

    /// Refuses a socket because few descriptors are left. The program gets the error with its next
    /// request, and an association that the socket should have taken over is aborted.
    fn refuse(&self, name: Vec<u8>, incoming: u32) {
        let pending = {
            let mut table = self.table();
            if table.refused.len() == MAX_REFUSED {
                table.refused.pop_front();
            }
            table.refused.push_back(name);
            table.incoming.remove(&incoming)
        };
        if let Some(PendingTransfer { assoc, .. }) = pending {
            assoc.with_association(|it| it.abort(""));
            assoc.end();
        }
        self.appeared.notify_waiters();
        self.count_refused();
    }

    /// Allocates the port `wanted` for a socket, or any port if it is 0. A port in use can be
    /// shared if `can_share` returns true.
    fn take_port(&self, wanted: u16, can_share: impl Fn(&Table) -> bool) -> Option<u16> {
        let mut table = self.table();
        let port = match wanted {
            0 => dynamic_port(|it| !table.ports.contains_key(&it)).ok()??,
            wanted if table.ports.contains_key(&wanted) && !can_share(&table) => return None,
            wanted => wanted,
        };
        *table.ports.entry(port).or_default() += 1;
        Some(port)
    }

    /// Access data for programs.
    fn access(&self) -> HostAccess {
        HostAccess {
            name: self.name.clone(),
            secret: self.secret.clone(),
        }
    }

    /// Releases a port for one socket, which was bound to it or accepted at it.
    fn give_port_back(&self, port: u16) {
        let mut table = self.table();
        if let Some(count) = table.ports.get_mut(&port) {
            *count -= 1;
            if *count == 0 {
                table.ports.remove(&port);
            }
        }
    }

    /// Counts another socket at a port.
    fn share_port(&self, port: u16) {
        *self.table().ports.entry(port).or_default() += 1;
    }
}

/// A host process, which runs SCTP for programs over the carrier and addresses of a [`Config`].
pub struct Host {
    known: Arc<HostState>,
    descriptors: Vec<(SocketType, AsyncFd<Unix>)>,
    control: AsyncFd<Unix>,
    /// Listener for other commands that want to join.
    place: Option<AsyncFd<Unix>>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

impl Host {
    /// Opens the sockets on the current tokio runtime; programs find the host by `name`. If the
    /// carrier has no UDP port of peers, the host's own port is used.
    ///
    /// # Errors
    /// The sockets cannot be opened, or the name is in use.
    pub fn start(name: &str, config: Config) -> io::Result<Self> {
        Self::open(&HostAccess::named(name), config, "", None)
    }

    /// Like [`Host::start`], for programs with `access`. Commands of this user and of root that
    /// need the same UDP port at the same addresses can [`join`] this host. `protection`: a text
    /// that describes how the DTLS chunk is used, or empty; a command joins only a host with the
    /// same text, because associations have the keys of the host.
    ///
    /// # Errors
    /// The errors of [`Host::start`]. If the port is in use, the kind is
    /// [`io::ErrorKind::AddrInUse`].
    pub fn start_shared(access: &HostAccess, config: Config, protection: &str) -> io::Result<Self> {
        let place = match join::place(&config) {
            None => None,
            Some(place) => match listener(&place) {
                Ok(place) => Some(place),
                // A process of another user may use the abstract address although the port is free.
                // Other commands then cannot join this host.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    tracing::warn!("further commands cannot join this host");
                    None
                }
                Err(error) => return Err(error),
            },
        };
        Self::open(access, config, protection, place)
    }

    fn open(
        access: &HostAccess,
        config: Config,
        protection: &str,
        place: Option<AsyncFd<Unix>>,
    ) -> io::Result<Self> {
        let name = &access.name;
        let sockets = SharedSockets::open(&config).map_err(|error| match error {
            BindError::Socket { source, .. } => source,
            other => io::Error::other(other.to_string()),
        })?;
        // These listeners are opened last, because a program that can connect to them expects a
        // working host.
        let control = listener(&crate::control_address(name))?;
        let descriptors = SocketType::ALL
            .into_iter()
            .map(|socket_type| Ok((socket_type, listener(&crate::address(name, socket_type))?)))
            .collect::<io::Result<_>>()?;
        let known = Arc::new(HostState {
            sockets,
            config,
            protection: protection.to_owned(),
            table: Mutex::default(),
            appeared: Notify::new(),
            alive: AtomicUsize::new(0),
            ended: Notify::new(),
            bypass_status: watch::Sender::new(BypassStatus::Nothing),
            name: name.clone(),
            secret: access.secret.clone(),
            unauthenticated: Arc::new(Semaphore::new(acceptor::MAX_UNAUTHENTICATED)),
            shortage: watch::Sender::new(Shortage::default()),
            refusals: watch::Sender::default(),
            members: watch::Sender::new(0),
            generations: Arc::new(Generations::new()?),
            opened: AtomicU32::new(0),
        });
        Ok(Self {
            known,
            descriptors,
            control,
            place,
        })
    }

    /// The UDP port; 0 over raw IP.
    pub fn udp_port(&self) -> u16 {
        self.known.sockets.udp_port()
    }

    /// Completes when no program has a socket, every association has ended, and no other command is
    /// a member. Messages that programs sent before they closed their sockets are still delivered,
    /// as with SCTP in a kernel.
    pub fn idle(&self) -> impl Future<Output = ()> + use<> {
        let use_of = self.use_of();
        async move { use_of.none().await }
    }

    /// Handle that reports whether the host is in use, and that can wait until it is unused.
    pub fn use_of(&self) -> Use {
        Use(Arc::clone(&self.known))
    }

    /// Reports whether system calls have bypassed the library, or that they cannot be detected.
    pub fn bypass_status(&self) -> watch::Receiver<BypassStatus> {
        self.known.bypass_status.subscribe()
    }

    /// Reports shortages of system resources, mostly of descriptors. The host continues.
    pub fn shortage(&self) -> watch::Receiver<Shortage> {
        self.known.shortage()
    }

    /// Reports associations that were refused because of the DTLS chunk, by either end. There are
    /// none unless the host's configuration requires it.
    pub fn refusals(&self) -> watch::Receiver<Refusals> {
        self.known.refusals.subscribe()
    }

    /// Number of other commands whose programs use this host.
    pub fn members(&self) -> watch::Receiver<usize> {
        self.known.members.subscribe()
    }

    /// Serves programs until the future is dropped.
    ///
    /// # Errors
    /// The listener of the host has failed. After transient errors the host continues
    /// ([`Host::shortage`]).
    pub async fn serve(self) -> io::Result<()> {
        let mut opened = JoinSet::new();
        for (socket_type, listener) in self.descriptors {
            let known = Arc::clone(&self.known);
            opened.spawn(async move {
                let each = |caller, unix, name| {
                    let known = Arc::clone(&known);
                    tokio::spawn(data::serve(known, caller, unix, name, socket_type));
                };
                accept_all(&known, &listener, each).await
            });
        }
        let asked = accept_all(&self.known, &self.control, |caller, unix, _| {
            tokio::spawn(requests::answer(Arc::clone(&self.known), caller, unix));
        });
        let joined = async {
            match &self.place {
                None => std::future::pending().await,
                Some(place) => {
                    accept_all(&self.known, place, |caller, unix, _| {
                        tokio::spawn(join::admit_member(Arc::clone(&self.known), caller, unix));
                    })
                    .await
                }
            }
        };
        tokio::select! {
            Some(ended) = opened.join_next() => match ended {
                Ok(ended) => ended,
                Err(error) => Err(io::Error::other(error.to_string())),
            },
            ended = asked => ended,
            ended = joined => ended,
        }
    }
}

/// Usage of a host by sockets, associations and member commands.
pub struct Use(Arc<HostState>);

impl fmt::Debug for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Use").finish_non_exhaustive()
    }
}

impl Use {
    /// Like [`Host::idle`], but can be awaited repeatedly.
    pub async fn none(&self) {
        loop {
            let ended = self.0.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.is_none() {
                return;
            }
            ended.await;
        }
    }

    /// Whether the host is unused.
    pub fn is_none(&self) -> bool {
        let none = self.0.table().sockets.is_empty() && *self.0.members.borrow() == 0;
        none && self.0.alive.load(Ordering::Acquire) == 0
    }
}

/// Name of a socket: its abstract address without the first byte, which is 0.
fn name_of(address: &SockAddr) -> Vec<u8> {
    address.as_abstract_namespace().unwrap_or_default().to_vec()
}

/// A Unix address; abstract if its first byte is 0.
fn address_of(bytes: &[u8]) -> io::Result<SockAddr> {
    use std::os::unix::ffi::OsStrExt;
    SockAddr::unix(std::ffi::OsStr::from_bytes(bytes))
}

fn listener(address: &[u8]) -> io::Result<AsyncFd<Unix>> {
    let unix = Unix::new(Domain::UNIX, Type::SEQPACKET, None)?;
    unix.bind(&address_of(address)?)?;
    unix.listen(BACKLOG)?;
    unix.set_nonblocking(true)?;
    watched_by(unix)
}

/// Registers a socket with the reactor.
// This function is deprecated in favour of an `unsafe` one, because the descriptor of some types
// changes while it is registered. The descriptor of a socket does not change.
#[allow(deprecated)]
fn watched_by(unix: Unix) -> io::Result<AsyncFd<Unix>> {
    AsyncFd::new(unix)
}
