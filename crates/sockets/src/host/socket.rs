//! A program's socket, as the host sees it.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anabranch_net::sctp::Authentication;
use anabranch_net::{CloseReason, ConnectError, Endpoint, SharedKeys};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::Socket as Unix;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use super::HostState;
use super::association::{OwnedAssociation, shown};
use super::dtls::DtlsSettings;
use super::generations::Generations;
use crate::control::Generation;
use crate::frame::{HostFrameHeader, HostFrameKind};
use crate::options::{REUSE_PORT, SocketOptions};
use crate::{SocketStyle, SocketType};

/// Interval at which conditions without a wakeup are checked.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// Time for which a request waits for the port of a previous socket whose association is still
/// closing.
pub(super) const PORT_TIMEOUT: Duration = Duration::from_secs(5);

/// A socket: the host's end of the descriptor, and its state.
pub(super) struct Socket {
    /// Abstract address of the program's end, without its first byte.
    pub name: Vec<u8>,
    /// The host's end of the descriptor.
    pub unix: AsyncFd<Unix>,
    /// Type of the socket.
    pub socket_type: SocketType,
    /// Number of the socket, unique at the host until the counter wraps after billions of sockets.
    number: u32,
    generations: Arc<Generations>,
    state: Mutex<State>,
    /// Locked while an option is stored and applied to the endpoint.
    setting: Mutex<()>,
    /// Notified when `state.phase` changes.
    pub changed: Notify,
    /// Locked while a sequence of frames is delivered.
    pub turn: tokio::sync::Mutex<()>,
    /// True if the last frame that was delivered to the program contains a message or a part of
    /// one.
    message_last: AtomicBool,
    /// True if a frame of the program was read and is still being processed.
    busy: AtomicBool,
}

/// Lifecycle of a socket. A one-to-many socket is only `Fresh` or `Listening`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Created, and possibly bound.
    #[default]
    Fresh,
    /// Listening.
    Listening,
    /// Connecting.
    Connecting,
    /// The association of the socket is established, or was.
    Connected,
    /// The association has failed, or could not be set up.
    Failed,
}

/// Directions in which the program has shut down a one-to-one socket (`shutdown`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shut {
    /// True if receiving is shut down.
    pub reading: bool,
    /// True if sending is shut down.
    pub writing: bool,
}

/// Mutable state of a socket.
#[derive(Default)]
pub(super) struct State {
    /// Options for future associations.
    pub options: SocketOptions,
    /// Settings of the DTLS chunk for future associations.
    pub dtls: DtlsSettings,
    /// AUTH keys for future associations.
    pub keys: SharedKeys,
    /// Chunk types that peers must authenticate.
    pub authenticated: Vec<u8>,
    /// Addresses to which the program has bound the socket, all with its port.
    pub bound: Vec<SocketAddr>,
    /// Maximum number of associations that wait to be accepted.
    pub backlog: usize,
    /// The SCTP port, once allocated.
    pub port: Option<u16>,
    /// True if the host has selected the port, because the program did not.
    pub port_is_drawn: bool,
    /// Lifecycle phase.
    pub phase: Phase,
    /// Pending error (SO_ERROR), an `errno`; 0: none.
    pub error: i32,
    /// The directions that the program has shut down.
    pub shut: Shut,
    /// End of the only association of a one-to-one socket: an `errno`, or 0 after a shutdown;
    /// `None` before the end.
    pub ended: Option<i32>,
    /// Address of the peer of the only association, which remains after the end.
    pub peer: Option<SocketAddr>,
    /// Associations by number.
    pub assocs: BTreeMap<u32, Arc<SocketAssociation>>,
    /// The endpoint of a one-to-many socket, once created.
    pub endpoint: Option<Endpoint>,
    /// Number of refused peers of this endpoint that were
    /// [recorded](HostState::record_refused).
    pub refused: u64,
    /// True if the socket was created by `accept`, with the port of the listening socket.
    pub accepted: bool,
    /// True after the last copy of the descriptor was closed.
    pub closed: bool,
    /// True if messages were unread when the program closed the socket.
    pub unread: bool,
}

/// The part of [`State`] that determines the settings of future associations.
pub(super) struct AssociationSettings {
    options: SocketOptions,
    dtls: DtlsSettings,
    keys: SharedKeys,
    authenticated: Vec<u8>,
}

impl State {
    /// A copy of the settings of future associations, for [`Self::restore`].
    pub(super) fn association_settings(&self) -> AssociationSettings {
        AssociationSettings {
            options: self.options.clone(),
            dtls: self.dtls.clone(),
            keys: self.keys.clone(),
            authenticated: self.authenticated.clone(),
        }
    }

    /// Restores the settings of future associations.
    pub(super) fn restore(&mut self, settings: AssociationSettings) {
        let AssociationSettings {
            options,
            dtls,
            keys,
            authenticated,
        } = settings;
        self.options = options;
        self.dtls = dtls;
        self.keys = keys;
        self.authenticated = authenticated;
    }

    /// Whether the option SCTP_REUSE_PORT is set.
    pub(super) fn shares_port(&self) -> bool {
        self.options.word(REUSE_PORT, 0) != 0
    }

    /// The IP addresses to which the socket is bound; empty: all.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        let all: Vec<_> = self.bound.iter().map(SocketAddr::ip).collect();
        match all.iter().any(IpAddr::is_unspecified) {
            true => Vec::new(),
            false => all,
        }
    }
}

impl Socket {
    /// Creates a socket with the next number of the host.
    pub(super) fn new(
        host: &HostState,
        name: Vec<u8>,
        unix: AsyncFd<Unix>,
        socket_type: SocketType,
    ) -> Self {
        let state = State {
            options: match host.config.sctp.authentication {
                Authentication::Off => SocketOptions::default(),
                _ => SocketOptions::with_auth(),
            },
            dtls: DtlsSettings::of(&host.config.sctp),
            ..State::default()
        };
        Self {
            name,
            unix,
            socket_type,
            number: host.opened.fetch_add(1, Ordering::Relaxed),
            generations: Arc::clone(&host.generations),
            state: Mutex::new(state),
            setting: Mutex::default(),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::default(),
            message_last: AtomicBool::new(false),
            busy: AtomicBool::new(false),
        }
    }

    /// Locks the mutable state.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// Waits until no other request sets an option, and keeps others from it.
    pub(super) fn setting(&self) -> MutexGuard<'_, ()> {
        self.setting.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// The association with this number. A socket with a single association ignores the number.
    pub(super) fn assoc(&self, number: u32) -> Option<Arc<SocketAssociation>> {
        let state = self.state();
        match self.socket_type.style {
            SocketStyle::OneToMany => state.assocs.get(&number).cloned(),
            SocketStyle::OneToOne | SocketStyle::PeeledOff => state.assocs.values().next().cloned(),
        }
    }

    /// The association with the peer that has this address.
    pub(super) fn assoc_with(&self, address: SocketAddr) -> Option<Arc<SocketAssociation>> {
        let assocs: Vec<_> = self.state().assocs.values().cloned().collect();
        assocs.into_iter().find(|assoc| assoc.is_with(address))
    }

    /// Waits until the only association is established; `None` if the setup has failed.
    pub(super) async fn connected(&self) -> Option<Arc<SocketAssociation>> {
        if let Some(settled) = self.settled() {
            return settled;
        }
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(settled) = self.settled() {
                return settled;
            }
            changed.await;
        }
    }

    /// The association, or `Some(None)` if there will be none; `None` if it is not known yet.
    fn settled(&self) -> Option<Option<Arc<SocketAssociation>>> {
        let state = self.state();
        match state.phase {
            Phase::Connected => Some(state.assocs.values().next().cloned()),
            Phase::Failed => Some(None),
            Phase::Fresh | Phase::Listening | Phase::Connecting => None,
        }
    }

    /// Enters another phase.
    pub(super) fn enter(&self, phase: Phase) {
        self.state().phase = phase;
        self.advance();
        self.changed.notify_waiters();
    }

    /// Generation for state that a program caches. It must be read before that state, so that a
    /// change between both reads invalidates the cached state.
    pub(super) fn generation(&self) -> Generation {
        self.generations.current(self.number)
    }

    /// Invalidates the state that programs have cached. It should be called after that state has
    /// changed.
    pub(super) fn advance(&self) {
        self.generations.advance(self.number);
    }

    /// Records the end of the only association: an `errno`, or 0 after a shutdown.
    pub(super) fn record_end(&self, error: i32) {
        let mut state = self.state();
        (state.ended, state.error) = (Some(error), error);
    }

    /// Removes and returns the pending error, which is reported once.
    pub(super) fn take_error(&self) -> Option<i32> {
        let error = std::mem::take(&mut self.state().error);
        (error != 0).then_some(error)
    }

    /// Like [`Self::may_come`], after pending messages of both directions were processed.
    pub(super) async fn await_message(&self, wait: bool) -> Result<Generation, i32> {
        let may_come = self.may_come(wait);
        if may_come.is_ok() || self.socket_type.style != SocketStyle::OneToMany {
            return may_come;
        }
        self.all_taken().await;
        drop(self.turn.lock().await);
        self.may_come(wait)
    }

    /// Waits until the associations have accepted or lost all messages that the program has sent.
    pub(super) async fn all_taken(&self) {
        while self.busy.load(Ordering::Acquire) || self.is_polled(PollFlags::POLLIN) {
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    /// Like [`Self::all_taken`], with a timeout. Returns immediately if the program has closed the
    /// socket.
    pub(super) async fn all_taken_within(&self, limit: Duration) {
        if !self.is_hung_up() {
            let _ = tokio::time::timeout(limit, self.all_taken()).await;
        }
    }

    /// Whether data may arrive for a receiving program; otherwise the error that it should get.
    fn may_come(&self, wait: bool) -> Result<Generation, i32> {
        let generation = self.generation();
        let mut state = self.state();
        let none = match (self.socket_type.style, state.phase) {
            (SocketStyle::OneToMany, phase) => phase != Phase::Listening && state.assocs.is_empty(),
            (_, Phase::Listening) => return Err(libc::ENOTCONN),
            (_, Phase::Connecting | Phase::Connected) => false,
            (_, Phase::Fresh | Phase::Failed) => true,
        };
        match (none, std::mem::take(&mut state.error)) {
            (true, 0) if wait => Err(libc::ENOTCONN),
            (true, 0) => Err(libc::EAGAIN),
            (true, error) => Err(error),
            (false, error) => {
                // The error is kept, because data that precedes it is reported first.
                state.error = error;
                Ok(generation)
            }
        }
    }

    /// Result of `recv` at the end of the descriptor, after all data was read.
    pub(super) fn end_of_messages(&self) -> Result<(), i32> {
        if let Some(error) = self.take_error() {
            return Err(error);
        }
        let state = self.state();
        match state.ended {
            // The end of data is reported after a shutdown by the peer, and to a program that has
            // shut down receiving.
            None | Some(0) if state.shut.writing && !state.shut.reading => Err(libc::ENOTCONN),
            None | Some(0) => Ok(()),
            // The error itself was reported before.
            Some(_) => Err(libc::ENOTCONN),
        }
    }

    /// Delivers a frame to the program; waits while its descriptor is full.
    pub(super) async fn give(&self, frame: &HostFrameHeader, payload: &[u8]) -> io::Result<()> {
        let header = frame.encode();
        let parts = [IoSlice::new(&header), IoSlice::new(payload)];
        let is_message = frame.kind == HostFrameKind::Data;
        // Set before the write, because the program may close the descriptor before the call
        // returns.
        self.message_last.fetch_or(is_message, Ordering::Relaxed);
        let given = self
            .unix
            .async_io(Interest::WRITABLE, |unix| unix.send_vectored(&parts))
            .await;
        match given {
            Ok(_) => self.message_last.store(is_message, Ordering::Relaxed),
            Err(_) => drop(self.detect_unread(&given)),
        }
        given.map(drop)
    }

    /// Whether the program has closed its last descriptor with unread data. The kernel reports this
    /// only to the first call. If a notification was delivered last, unread messages before it are
    /// not detected.
    fn detect_unread(&self, done: &io::Result<usize>) -> bool {
        let error = done.as_ref().err().map(io::Error::kind);
        let unread = error == Some(io::ErrorKind::ConnectionReset);
        if unread {
            self.state().unread = self.message_last.load(Ordering::Relaxed);
        }
        unread
    }

    /// Reads a frame of the program with its payload into `buffer`. Returns 0 if the program has
    /// closed its last descriptor or shut it down.
    pub(super) async fn take(&self, buffer: &mut [u8]) -> io::Result<usize> {
        use std::io::Read;
        loop {
            let take = |mut unix: &Unix| {
                self.busy.store(true, Ordering::Release);
                let taken = unix.read(buffer);
                if taken.is_err() {
                    self.busy.store(false, Ordering::Release);
                }
                taken
            };
            let taken = self.unix.async_io(Interest::READABLE, take).await;
            // Reads again, because data of the program may remain.
            if !self.detect_unread(&taken) {
                return taken;
            }
        }
    }

    /// Whether the descriptor is ready for one of these events.
    fn is_polled(&self, events: PollFlags) -> bool {
        use std::os::fd::AsFd;
        let unix = self.unix.get_ref();
        let mut watched = [PollFd::new(unix.as_fd(), events)];
        let ready = poll(&mut watched, PollTimeout::ZERO);
        let seen = watched[0].revents().unwrap_or(PollFlags::empty());
        ready.is_ok() && seen.intersects(events)
    }

    /// Whether the last descriptor is closed or shut down, even if this task was not notified yet.
    pub(super) fn is_hung_up(&self) -> bool {
        self.is_polled(PollFlags::POLLHUP)
    }

    /// Waits until the last descriptor of a listening socket is closed. No frame may be read after
    /// this call, because the data that makes the descriptor unwritable
    /// ([`HostFrameKind::Nothing`]) stays in it.
    pub(super) async fn left(&self) {
        while let Ok(mut ready) = self.unix.readable().await {
            if ready.ready().is_read_closed() {
                return;
            }
            ready.clear_ready();
        }
    }

    /// The only address family that the socket accepts: IPv6 (true) or IPv4 (false); `None`: both.
    pub(super) fn only_family(&self, state: &State) -> Option<bool> {
        match self.socket_type.v6 {
            false => Some(false),
            true if state.options.is_v6_only() => Some(true),
            true => None,
        }
    }

    /// An address in the form for the program.
    pub(super) fn shown(&self, address: SocketAddr) -> SocketAddr {
        shown(address, self.socket_type.v6, &self.state().options)
    }

    /// The unspecified address of the socket's family.
    pub(super) fn unspecified(&self) -> IpAddr {
        match self.socket_type.v6 {
            true => Ipv6Addr::UNSPECIFIED.into(),
            false => Ipv4Addr::UNSPECIFIED.into(),
        }
    }
}

/// An association that a [`Socket`] owns.
pub(super) type SocketAssociation = OwnedAssociation<Socket>;

impl SocketAssociation {
    /// Makes the socket the owner of the association.
    pub(super) fn set_owner(&self, socket: &Arc<Socket>) {
        self.assign(socket);
        self.settle_end();
    }

    /// Records the end of the association, and reports it to the socket that owns the association,
    /// or to its next owner if no socket owns it now. This does not wait until the program has read
    /// all data.
    pub(super) fn record_end(&self, reason: &CloseReason) {
        let by = match reason {
            CloseReason::Shutdown => 0,
            reason => of_reason(reason, true),
        };
        {
            let mut ended = self.ended();
            ended.by.get_or_insert(by);
            ended.reason.get_or_insert_with(|| reason.clone());
        }
        self.settle_end();
    }

    fn settle_end(&self) {
        let Some(socket) = self.current_owner() else {
            return;
        };
        let mut ended = self.ended();
        if let (Some(by), false) = (ended.by, ended.known) {
            ended.known = true;
            if !socket.socket_type.is_one_to_many() {
                socket.record_end(by);
            }
            socket.advance();
        }
    }

    /// Invalidates the state that the program has cached about its socket.
    pub(super) fn advance(&self) {
        if let Some(socket) = self.current_owner() {
            socket.advance();
        }
    }

    /// Delivers frames to the socket of the association, without other frames between them.
    pub(super) async fn give(&self, frames: &[(HostFrameHeader, &[u8])]) -> std::io::Result<()> {
        loop {
            let gone = || std::io::Error::from(std::io::ErrorKind::NotConnected);
            let socket = self.owner().await.ok_or_else(gone)?;
            let _turn = socket.turn.lock().await;
            // Tries again, because another socket has become the owner meanwhile.
            if !self.is_owned_by(&socket) {
                continue;
            }
            for (frame, payload) in frames {
                socket.give(frame, payload).await?;
            }
            return Ok(());
        }
    }
}

/// The `errno` that corresponds to the end of an association.
pub(super) fn of_reason(reason: &CloseReason, was_up: bool) -> i32 {
    match reason {
        CloseReason::AbortedHere => libc::ECONNABORTED,
        CloseReason::AbortedByPeer { .. } if !was_up => libc::ECONNREFUSED,
        CloseReason::NoAnswer
        | CloseReason::NoCookieAck
        | CloseReason::PeerUnreachable
        | CloseReason::ShutdownTimeout => libc::ETIMEDOUT,
        // Like in Linux, an invalid answer of the peer, or one without a required extension, is
        // a refusal.
        CloseReason::ProtocolUnreachable | CloseReason::PeerViolation(_) if !was_up => {
            libc::ECONNREFUSED
        }
        _ => libc::ECONNRESET,
    }
}

/// The `errno` that corresponds to a failed setup.
pub(super) fn of_connect(error: &ConnectError) -> i32 {
    match error {
        ConnectError::Association(lost) => of_reason(&lost.0, false),
        ConnectError::Family(_) => libc::ENETUNREACH,
        _ => libc::EINVAL,
    }
}
