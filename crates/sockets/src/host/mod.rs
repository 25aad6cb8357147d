//! The process that runs SCTP for programs: it holds the other end of their descriptors.

mod behind;
mod bind;
mod call;
mod effects;
mod jobs;
mod link;
mod listen;
mod many;
mod notification;
mod passed;
mod query;
mod settings;
mod socket;
mod traffic;
mod watched;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anabranch_net::{Association, BacklogPlace, BindError, Config, SharedSockets};
use socket2::{Domain, SockAddr, Socket as Unix, Type};
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::Form;
use crate::frame::Frame;
use link::Link;
use listen::Place;
use socket::Socket;
pub use watched::Missed;

/// How long a request waits for the socket that it is about: a program asks about a socket right after it was made.
const ACQUAINTANCE: Duration = Duration::from_secs(5);
/// Connections to the host that wait to be taken.
const BACKLOG: i32 = 1024;
/// The largest number of an association: `sctp_assoc_t` is signed.
const FULL: u32 = i32::MAX as u32;

/// What a host knows.
pub(crate) struct Known {
    sockets: SharedSockets,
    config: Config,
    table: Mutex<Table>,
    appeared: Notify,
    /// Associations that have not ended, with a call for whoever waits for the last.
    alive: AtomicUsize,
    ended: Notify,
    /// Calls past the library.
    missed: watch::Sender<Missed>,
}

/// An association between two sockets.
struct Coming {
    link: Arc<Link>,
    /// The socket that it came from.
    from: Vec<u8>,
    /// What waited there of it.
    waiting: Vec<(Frame, Vec<u8>)>,
    /// It waits to be accepted.
    _place: Option<BacklogPlace>,
}

#[derive(Default)]
struct Table {
    /// By the address of the descriptor, without its first byte.
    sockets: BTreeMap<Vec<u8>, Arc<Socket>>,
    /// Associations that programs were told of or peeled off and have not taken yet.
    incoming: BTreeMap<u32, Coming>,
    last_number: u32,
    /// SCTP ports in use, with the sockets that have them.
    ports: BTreeMap<u16, u32>,
    /// Where one-to-one sockets listen, or did and have associations: another socket can listen there meanwhile. Several places with one
    /// port have addresses of their own each.
    places: Vec<Place>,
    last_port: u16,
    /// Associations that listening sockets were told of.
    announced: usize,
}

impl Known {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// A number for an association. The first three mean associations to come, those there are, and both.
    fn number(&self) -> u32 {
        let mut table = self.table();
        table.last_number = match table.last_number {
            0..=2 | FULL.. => 3,
            last => last + 1,
        };
        table.last_number
    }

    /// Counts an association until it has ended.
    fn watch(self: &Arc<Self>, association: Association) {
        self.alive.fetch_add(1, Ordering::AcqRel);
        let known = Arc::clone(self);
        tokio::spawn(async move {
            association.closed().await;
            known.alive.fetch_sub(1, Ordering::AcqRel);
            known.ended.notify_waiters();
        });
    }

    /// The socket of a descriptor; waits for one that is not known yet.
    async fn socket(&self, name: &[u8]) -> Option<Arc<Socket>> {
        let look = async {
            loop {
                let appeared = self.appeared.notified();
                tokio::pin!(appeared);
                appeared.as_mut().enable();
                if let Some(socket) = self.table().sockets.get(name) {
                    return Arc::clone(socket);
                }
                appeared.await;
            }
        };
        tokio::time::timeout(ACQUAINTANCE, look).await.ok()
    }

    /// Takes a port for a socket: `wanted`, or any if that is 0. One that another socket has is shared with it where `beside` says so.
    fn take_port(&self, wanted: u16, beside: impl Fn(&Table) -> bool) -> Option<u16> {
        let mut table = self.table();
        let port = match wanted {
            0 => {
                let from = table.last_port.max(49_151);
                let mut order = (from..u16::MAX).chain(49_151..from).map(|it| it + 1);
                order.find(|it| !table.ports.contains_key(it))?
            }
            wanted if table.ports.contains_key(&wanted) && !beside(&table) => return None,
            wanted => wanted,
        };
        if wanted == 0 {
            table.last_port = port;
        }
        *table.ports.entry(port).or_default() += 1;
        Some(port)
    }

    /// One socket less that has this port: the one that took it, or one that was accepted at it.
    fn give_port_back(&self, port: u16) {
        let mut table = self.table();
        if let Some(count) = table.ports.get_mut(&port) {
            *count -= 1;
            if *count == 0 {
                table.ports.remove(&port);
            }
        }
    }

    /// One socket more that has this port.
    fn share_port(&self, port: u16) {
        *self.table().ports.entry(port).or_default() += 1;
    }
}

/// A process that runs SCTP for programs, over the carrier and addresses of a [`Config`].
pub struct Host {
    known: Arc<Known>,
    descriptors: Vec<(Form, AsyncFd<Unix>)>,
    control: AsyncFd<Unix>,
}

impl Host {
    /// Opens the sockets, on the current tokio runtime; programs find the host by `name`. Where the carrier names no UDP port of peers, it
    /// is the host's own.
    ///
    /// # Errors
    /// The sockets cannot be opened, or the name is taken.
    pub fn start(name: &str, config: Config) -> io::Result<Self> {
        let descriptors = Form::ALL
            .into_iter()
            .map(|form| Ok((form, listener(&crate::address(name, form))?)))
            .collect::<io::Result<_>>()?;
        let control = listener(&crate::control_address(name))?;
        let sockets = SharedSockets::open(&config).map_err(|error| match error {
            BindError::Socket { source, .. } => source,
            other => io::Error::other(other.to_string()),
        })?;
        let known = Arc::new(Known {
            sockets,
            config,
            table: Mutex::default(),
            appeared: Notify::new(),
            alive: AtomicUsize::new(0),
            ended: Notify::new(),
            missed: watch::Sender::new(Missed::Nothing),
        });
        Ok(Self {
            known,
            descriptors,
            control,
        })
    }

    /// The UDP port; 0 over raw IP.
    pub fn udp_port(&self) -> u16 {
        self.known.sockets.udp_port()
    }

    /// Gives when no program has a socket any more and every association has ended: what programs sent before they closed their sockets
    /// still arrives, as with a kernel's SCTP.
    pub fn idle(&self) -> impl Future<Output = ()> + use<> {
        let known = Arc::clone(&self.known);
        async move {
            loop {
                let ended = known.ended.notified();
                tokio::pin!(ended);
                ended.as_mut().enable();
                let none = known.table().sockets.is_empty();
                if none && known.alive.load(Ordering::Acquire) == 0 {
                    return;
                }
                ended.await;
            }
        }
    }

    /// Gives once a program's calls passed the library, or cannot be seen if they do; each such time what is known then.
    pub fn missed(&self) -> watch::Receiver<Missed> {
        self.known.missed.subscribe()
    }

    /// Serves programs until the future is dropped.
    ///
    /// # Errors
    /// The system takes no more connections.
    pub async fn serve(self) -> io::Result<()> {
        let mut opened = JoinSet::new();
        for (form, listener) in self.descriptors {
            let known = Arc::clone(&self.known);
            opened.spawn(async move {
                let each = |unix, name| {
                    tokio::spawn(traffic::serve(Arc::clone(&known), unix, name, form));
                };
                accept_all(&listener, each).await
            });
        }
        let asked = accept_all(&self.control, |unix, _| {
            tokio::spawn(call::answer(Arc::clone(&self.known), unix));
        });
        tokio::select! {
            Some(ended) = opened.join_next() => ended.unwrap_or(Ok(())),
            ended = asked => ended,
        }
    }
}

/// Takes every connection; `each` gets it with the name of its other end.
async fn accept_all(
    listener: &AsyncFd<Unix>,
    each: impl Fn(AsyncFd<Unix>, Vec<u8>),
) -> io::Result<()> {
    loop {
        let (unix, from) = listener
            .async_io(tokio::io::Interest::READABLE, Unix::accept)
            .await?;
        if !may_ask(&unix) {
            tracing::warn!("a program of another user was refused");
            continue;
        }
        unix.set_nonblocking(true)?;
        each(watched_by(unix)?, name_of(&from));
    }
}

/// An abstract address has no permissions: only programs of this process's user, and of root, are served.
fn may_ask(unix: &Unix) -> bool {
    use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
    let peer = getsockopt(unix, PeerCredentials).map(|it| it.uid());
    peer.is_ok_and(|uid| uid == 0 || uid == nix::unistd::geteuid().as_raw())
}

/// An abstract address without its first byte, which is 0.
fn name_of(address: &SockAddr) -> Vec<u8> {
    address.as_abstract_namespace().unwrap_or_default().to_vec()
}

fn listener(address: &[u8]) -> io::Result<AsyncFd<Unix>> {
    use std::os::unix::ffi::OsStrExt;
    let unix = Unix::new(Domain::UNIX, Type::SEQPACKET, None)?;
    unix.bind(&SockAddr::unix(std::ffi::OsStr::from_bytes(address))?)?;
    unix.listen(BACKLOG)?;
    unix.set_nonblocking(true)?;
    watched_by(unix)
}

/// Waits for a socket from now on.
// What took its place is `unsafe`, since there are types whose descriptor changes while it is watched; a socket's does not.
#[allow(deprecated)]
fn watched_by(unix: Unix) -> io::Result<AsyncFd<Unix>> {
    AsyncFd::new(unix)
}
