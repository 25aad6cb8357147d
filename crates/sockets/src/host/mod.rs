//! The process that runs SCTP for programs: it holds the other end of their descriptors.

mod bind;
mod call;
mod doors;
mod drawn;
mod effects;
mod events;
mod generations;
mod jobs;
mod join;
mod link;
mod listen;
mod many;
mod nearby;
mod notification;
mod passed;
mod query;
mod settings;
mod socket;
mod tell;
mod traffic;
mod watched;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anabranch_net::{Association, BacklogPermit, BindError, Config, SharedSockets, dynamic_port};
use socket2::{Domain, SockAddr, Socket as Unix, Type};
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use crate::Form;
use crate::frame::Frame;
pub use doors::Shortage;
use doors::accept_all;
use generations::Generations;
pub use join::{Access, Joined, Membership, join};
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
/// Names of sockets that found no place, of which it is remembered.
const MAX_REFUSED: usize = 4096;

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
    name: String,
    secret: Option<String>,
    /// Programs of other users that did not say the secret yet.
    strangers: Arc<Semaphore>,
    shortage: watch::Sender<Shortage>,
    /// Further commands whose programs use this host.
    members: watch::Sender<usize>,
    generations: Arc<Generations>,
    /// Sockets that there have been.
    opened: AtomicU32,
}

/// An association between two sockets.
struct Coming {
    link: Arc<Link>,
    /// The socket that it came from.
    from: Vec<u8>,
    /// What waited there of it.
    waiting: Vec<(Frame, Vec<u8>)>,
    /// It waits to be accepted.
    _place: Option<BacklogPermit>,
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
    /// Sockets that found no place, the newest last.
    refused: VecDeque<Vec<u8>>,
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

    /// Counts an association until it has ended, and has its socket know of the end at once: what came before may wait to be read.
    fn watch(self: &Arc<Self>, link: &Arc<Link>, association: Association) {
        self.alive.fetch_add(1, Ordering::AcqRel);
        let known = Arc::clone(self);
        let link = Arc::clone(link);
        tokio::spawn(async move {
            let reason = association.closed().await;
            link.note_end(&reason);
            known.alive.fetch_sub(1, Ordering::AcqRel);
            known.ended.notify_waiters();
        });
    }

    /// The socket of a descriptor; waits for one that is not known yet.
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
        let found = tokio::time::timeout(ACQUAINTANCE, look).await;
        found.unwrap_or(Err(libc::ENOTCONN))
    }

    /// A socket finds no place: few descriptors are left. Its program is told when it asks, and an association that it was to take over is aborted.
    fn refuse(&self, name: Vec<u8>, incoming: u32) {
        let coming = {
            let mut table = self.table();
            if table.refused.len() == MAX_REFUSED {
                table.refused.pop_front();
            }
            table.refused.push_back(name);
            table.incoming.remove(&incoming)
        };
        if let Some(Coming { link, .. }) = coming {
            link.with_association(|it| it.abort(""));
            link.end();
        }
        self.appeared.notify_waiters();
        self.count_refused();
    }

    /// Takes a port for a socket: `wanted`, or any if that is 0. One that another socket has is shared with it where `beside` says so.
    fn take_port(&self, wanted: u16, beside: impl Fn(&Table) -> bool) -> Option<u16> {
        let mut table = self.table();
        let port = match wanted {
            0 => dynamic_port(|it| !table.ports.contains_key(&it)).ok()??,
            wanted if table.ports.contains_key(&wanted) && !beside(&table) => return None,
            wanted => wanted,
        };
        *table.ports.entry(port).or_default() += 1;
        Some(port)
    }

    /// How programs find the host.
    fn access(&self) -> Access {
        Access {
            name: self.name.clone(),
            secret: self.secret.clone(),
        }
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
    /// Where further commands ask to join.
    place: Option<AsyncFd<Unix>>,
}

impl Host {
    /// Opens the sockets, on the current tokio runtime; programs find the host by `name`. Where the carrier names no UDP port of peers, it
    /// is the host's own.
    ///
    /// # Errors
    /// The sockets cannot be opened, or the name is taken.
    pub fn start(name: &str, config: Config) -> io::Result<Self> {
        Self::open(&Access::named(name), config, None)
    }

    /// As [`Host::start`], found by `access`. Other commands of this user, and of root, that want the same UDP port at the same addresses can [`join`].
    ///
    /// # Errors
    /// As [`Host::start`]. Where the port is taken, the kind is [`io::ErrorKind::AddrInUse`].
    pub fn start_shared(access: &Access, config: Config) -> io::Result<Self> {
        let place = match join::place(&config) {
            None => None,
            Some(place) => match listener(&place) {
                Ok(place) => Some(place),
                // Another user's process may have it, and not the port: this one is alone then.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    tracing::warn!("further commands cannot join this host");
                    None
                }
                Err(error) => return Err(error),
            },
        };
        Self::open(access, config, place)
    }

    fn open(access: &Access, config: Config, place: Option<AsyncFd<Unix>>) -> io::Result<Self> {
        let name = &access.name;
        let sockets = SharedSockets::open(&config).map_err(|error| match error {
            BindError::Socket { source, .. } => source,
            other => io::Error::other(other.to_string()),
        })?;
        // Last, since programs that find them take the host for one that lives.
        let control = listener(&crate::control_address(name))?;
        let descriptors = Form::ALL
            .into_iter()
            .map(|form| Ok((form, listener(&crate::address(name, form))?)))
            .collect::<io::Result<_>>()?;
        let known = Arc::new(Known {
            sockets,
            config,
            table: Mutex::default(),
            appeared: Notify::new(),
            alive: AtomicUsize::new(0),
            ended: Notify::new(),
            missed: watch::Sender::new(Missed::Nothing),
            name: name.clone(),
            secret: access.secret.clone(),
            strangers: Arc::new(Semaphore::new(doors::MAX_STRANGERS)),
            shortage: watch::Sender::new(Shortage::default()),
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

    /// Gives when no program has a socket any more, every association has ended and no further command has joined: what programs sent before they
    /// closed their sockets still arrives, as with a kernel's SCTP.
    pub fn idle(&self) -> impl Future<Output = ()> + use<> {
        let use_of = self.use_of();
        async move { use_of.none().await }
    }

    /// What uses the host.
    pub fn use_of(&self) -> Use {
        Use(Arc::clone(&self.known))
    }

    /// Gives once a program's calls passed the library, or cannot be seen if they do; each such time what is known then.
    pub fn missed(&self) -> watch::Receiver<Missed> {
        self.known.missed.subscribe()
    }

    /// What the system did not give, each time that there is more: descriptors, mostly. The host goes on.
    pub fn shortage(&self) -> watch::Receiver<Shortage> {
        self.known.shortage()
    }

    /// Further commands whose programs use this host.
    pub fn members(&self) -> watch::Receiver<usize> {
        self.known.members.subscribe()
    }

    /// Serves programs until the future is dropped.
    ///
    /// # Errors
    /// The system takes no connections any more. An error that passes is not the end ([`Host::shortage`]).
    pub async fn serve(self) -> io::Result<()> {
        let mut opened = JoinSet::new();
        for (form, listener) in self.descriptors {
            let known = Arc::clone(&self.known);
            opened.spawn(async move {
                let each = |caller, unix, name| {
                    let known = Arc::clone(&known);
                    tokio::spawn(traffic::serve(known, caller, unix, name, form));
                };
                accept_all(&known, &listener, each).await
            });
        }
        let asked = accept_all(&self.known, &self.control, |caller, unix, _| {
            tokio::spawn(call::answer(Arc::clone(&self.known), caller, unix));
        });
        let joined = async {
            match &self.place {
                None => std::future::pending().await,
                Some(place) => {
                    accept_all(&self.known, place, |caller, unix, _| {
                        tokio::spawn(join::welcome(Arc::clone(&self.known), caller, unix));
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

/// What uses a host: sockets, associations, further commands.
pub struct Use(Arc<Known>);

impl Use {
    /// As [`Host::idle`], to be waited for as often as is wanted.
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

    /// Whether nothing does.
    pub fn is_none(&self) -> bool {
        let none = self.0.table().sockets.is_empty() && *self.0.members.borrow() == 0;
        none && self.0.alive.load(Ordering::Acquire) == 0
    }
}

/// An abstract address without its first byte, which is 0.
fn name_of(address: &SockAddr) -> Vec<u8> {
    address.as_abstract_namespace().unwrap_or_default().to_vec()
}

/// A Unix address; abstract where its first byte is 0.
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

/// Waits for a socket from now on.
// What took its place is `unsafe`, since there are types whose descriptor changes while it is watched; a socket's does not.
#[allow(deprecated)]
fn watched_by(unix: Unix) -> io::Result<AsyncFd<Unix>> {
    AsyncFd::new(unix)
}
