//! A program's socket, on the side of the host.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anabranch_net::{CloseReason, ConnectError, Endpoint, SharedKeys};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::Socket as Unix;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use super::HostState;
use super::association::{OwnedAssociation, shown};
use super::generations::Generations;
use crate::control::Generation;
use crate::frame::{Frame, Kind};
use crate::options::{Options, REUSE_PORT};
use crate::{SocketType, Style};

/// Retry interval for conditions without a wakeup.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// Timeout for the port of a previous socket whose association is still closing.
pub(super) const PORT_TIMEOUT: Duration = Duration::from_secs(5);

/// A socket: the host's end of the descriptor, and its state.
pub(super) struct Socket {
    /// Address of the program's end.
    pub name: Vec<u8>,
    /// The host's end.
    pub unix: AsyncFd<Unix>,
    /// Type of the socket.
    pub socket_type: SocketType,
    /// Unique at the host until the counter wraps after billions of sockets.
    number: u32,
    generations: Arc<Generations>,
    state: Mutex<State>,
    /// Notified when `state.phase` changes.
    pub changed: Notify,
    /// Locked while a sequence of frames is delivered.
    pub turn: tokio::sync::Mutex<()>,
    /// The last frame delivered to the program is a message, or a part of one.
    message_last: AtomicBool,
    /// A frame of the program was read and is not processed yet.
    busy: AtomicBool,
}

/// Lifecycle of a socket. A one-to-many socket is fresh, or listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Created, and perhaps bound.
    #[default]
    Fresh,
    /// Listening.
    Listening,
    /// Connecting.
    Connecting,
    /// The association of the socket is established, or was.
    Connected,
    /// Association failed, or could not be set up.
    Failed,
}

/// `shutdown` of a one-to-one socket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shut {
    /// Receiving is shut down.
    pub reading: bool,
    /// Sending is shut down.
    pub writing: bool,
}

/// Mutable state of a socket.
#[derive(Default)]
pub(super) struct State {
    /// Options for future associations.
    pub options: Options,
    /// AUTH keys for future associations.
    pub keys: SharedKeys,
    /// Chunk types that peers must authenticate.
    pub authenticated: Vec<u8>,
    /// Addresses that the program bound it to, all with the socket's port.
    pub bound: Vec<SocketAddr>,
    /// Maximum number of associations that wait to be accepted.
    pub backlog: usize,
    /// The port, once allocated.
    pub port: Option<u16>,
    /// The host selected the port, because the program did not.
    pub port_is_drawn: bool,
    /// Lifecycle phase.
    pub phase: Phase,
    /// SO_ERROR.
    pub error: i32,
    /// The directions that the program has shut down.
    pub shut: Shut,
    /// End of its single association: an `errno`, or 0 after a shutdown.
    pub ended: Option<i32>,
    /// The peer of its association, also after the end.
    pub peer: Option<SocketAddr>,
    /// Associations by number.
    pub assocs: BTreeMap<u32, Arc<SocketAssociation>>,
    /// The endpoint of a one-to-many socket, once in use.
    pub endpoint: Option<Endpoint>,
    /// Created by `accept`, with the port of the listening socket.
    pub accepted: bool,
    /// The last descriptor is closed.
    pub closed: bool,
    /// The program left messages unread when it closed the socket.
    pub unread: bool,
}

impl State {
    /// SCTP_REUSE_PORT.
    pub(super) fn shares_port(&self) -> bool {
        self.options.word(REUSE_PORT, 0) != 0
    }

    /// The addresses that it is bound to; empty: all.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        let all: Vec<_> = self.bound.iter().map(SocketAddr::ip).collect();
        match all.iter().any(IpAddr::is_unspecified) {
            true => Vec::new(),
            false => all,
        }
    }
}

impl Socket {
    /// Creates the host's next socket.
    pub(super) fn new(
        host: &HostState,
        name: Vec<u8>,
        unix: AsyncFd<Unix>,
        socket_type: SocketType,
    ) -> Self {
        Self {
            name,
            unix,
            socket_type,
            number: host.opened.fetch_add(1, Ordering::Relaxed),
            generations: Arc::clone(&host.generations),
            state: Mutex::default(),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::default(),
            message_last: AtomicBool::new(false),
            busy: AtomicBool::new(false),
        }
    }

    /// Mutable state.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// The association with the program's `number`. A socket with a single association ignores the
    /// number.
    pub(super) fn assoc(&self, number: u32) -> Option<Arc<SocketAssociation>> {
        let state = self.state();
        match self.socket_type.style {
            Style::OneToMany => state.assocs.get(&number).cloned(),
            Style::OneToOne | Style::PeeledOff => state.assocs.values().next().cloned(),
        }
    }

    /// The association with the peer at this address.
    pub(super) fn assoc_with(&self, address: SocketAddr) -> Option<Arc<SocketAssociation>> {
        let assocs: Vec<_> = self.state().assocs.values().cloned().collect();
        assocs.into_iter().find(|assoc| assoc.is_with(address))
    }

    /// Waits until its association is established; `None`: it never will be.
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

    /// The association, or the fact that there will be none; `None`: not known yet.
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

    /// Generation for cached state; must be read before the state that is cached.
    pub(super) fn generation(&self) -> Generation {
        self.generations.current(self.number)
    }

    /// Invalidates cached state; should be called after the change.
    pub(super) fn advance(&self) {
        self.generations.advance(self.number);
    }

    /// Records the end of its single association: an `errno`, or 0 after a shutdown.
    pub(super) fn record_end(&self, error: i32) {
        let mut state = self.state();
        (state.ended, state.error) = (Some(error), error);
    }

    /// Takes the pending error, which is reported once.
    pub(super) fn take_error(&self) -> Option<i32> {
        let error = std::mem::take(&mut self.state().error);
        (error != 0).then_some(error)
    }

    /// Like [`Self::may_come`], after pending sends and deliveries have been processed.
    pub(super) async fn await_message(&self, wait: bool) -> Result<Generation, i32> {
        let may_come = self.may_come(wait);
        if may_come.is_ok() || self.socket_type.style != Style::OneToMany {
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

    /// Like [`Self::all_taken`], with a timeout; returns immediately if the program has closed the
    /// socket.
    pub(super) async fn all_taken_within(&self, limit: Duration) {
        if !self.is_hung_up() {
            let _ = tokio::time::timeout(limit, self.all_taken()).await;
        }
    }

    /// Whether a receiving program may get data, or should get an error immediately.
    fn may_come(&self, wait: bool) -> Result<Generation, i32> {
        let generation = self.generation();
        let mut state = self.state();
        let none = match (self.socket_type.style, state.phase) {
            (Style::OneToMany, phase) => phase != Phase::Listening && state.assocs.is_empty(),
            (_, Phase::Listening) => return Err(libc::ENOTCONN),
            (_, Phase::Connecting | Phase::Connected) => false,
            (_, Phase::Fresh | Phase::Failed) => true,
        };
        match (none, std::mem::take(&mut state.error)) {
            (true, 0) if wait => Err(libc::ENOTCONN),
            (true, 0) => Err(libc::EAGAIN),
            (true, error) => Err(error),
            (false, error) => {
                // The error is reported after the data that precedes it.
                state.error = error;
                Ok(generation)
            }
        }
    }

    /// Result for a program that has read all data and reached the end of its descriptor; an
    /// `errno` if that is an error.
    pub(super) fn end_of_messages(&self) -> Result<(), i32> {
        if let Some(error) = self.take_error() {
            return Err(error);
        }
        let state = self.state();
        match state.ended {
            // The end is reported after a shutdown by the peer, and to a program that has shut down
            // receiving.
            None | Some(0) if state.shut.writing && !state.shut.reading => Err(libc::ENOTCONN),
            None | Some(0) => Ok(()),
            // The error itself was already reported.
            Some(_) => Err(libc::ENOTCONN),
        }
    }

    /// Delivers a frame to the program; waits while its descriptor is full.
    pub(super) async fn give(&self, frame: &Frame, payload: &[u8]) -> io::Result<()> {
        let header = frame.encode();
        let parts = [IoSlice::new(&header), IoSlice::new(payload)];
        let is_message = frame.kind == Kind::Data;
        // Set first, because the program may close the descriptor before this call returns.
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

    /// Whether the program closed its last descriptor with unread data. The kernel reports this
    /// only once, to the first call. The unread data is the last that was delivered, so a
    /// notification after a message hides the message.
    fn detect_unread(&self, done: &io::Result<usize>) -> bool {
        let error = done.as_ref().err().map(io::Error::kind);
        let unread = error == Some(io::ErrorKind::ConnectionReset);
        if unread {
            self.state().unread = self.message_last.load(Ordering::Relaxed);
        }
        unread
    }

    /// Reads a frame of the program with its payload into `buffer`; 0 bytes: the program closed its
    /// last descriptor, or shut it down.
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
            // The program's data must still be read.
            if !self.detect_unread(&taken) {
                return taken;
            }
        }
    }

    /// Whether the descriptor is ready for these events.
    fn is_polled(&self, events: PollFlags) -> bool {
        use std::os::fd::AsFd;
        let unix = self.unix.get_ref();
        let mut watched = [PollFd::new(unix.as_fd(), events)];
        let ready = poll(&mut watched, PollTimeout::ZERO);
        let seen = watched[0].revents().unwrap_or(PollFlags::empty());
        ready.is_ok() && seen.intersects(events)
    }

    /// Whether the last descriptor is closed or shut down, even if the host has not been notified
    /// yet.
    pub(super) fn is_hung_up(&self) -> bool {
        self.is_polled(PollFlags::POLLHUP)
    }

    /// Waits until the last descriptor of a listening socket is closed. The data that makes the
    /// descriptor unwritable ([`Kind::Nothing`]) stays in the descriptor, so no frame may be read
    /// after this call.
    pub(super) async fn left(&self) {
        while let Ok(mut ready) = self.unix.readable().await {
            if ready.ready().is_read_closed() {
                return;
            }
            ready.clear_ready();
        }
    }

    /// Whether the socket accepts only IPv6 or only IPv4; `None`: both.
    pub(super) fn only_family(&self, state: &State) -> Option<bool> {
        match self.socket_type.v6 {
            false => Some(false),
            true if state.options.is_v6_only() => Some(true),
            true => None,
        }
    }

    /// An address as shown to the program.
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

/// An association of a socket.
pub(super) type SocketAssociation = OwnedAssociation<Socket>;

impl SocketAssociation {
    /// Makes the socket the owner of the association.
    pub(super) fn set_owner(&self, socket: &Arc<Socket>) {
        self.assign(socket);
        self.settle_end();
    }

    /// Records its end and reports it to the owning socket, now or when it gets one, before the
    /// program has read all data.
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

    /// Delivers frames to its socket without other frames between them.
    pub(super) async fn give(&self, frames: &[(Frame, &[u8])]) -> std::io::Result<()> {
        loop {
            let gone = || std::io::Error::from(std::io::ErrorKind::NotConnected);
            let socket = self.owner().await.ok_or_else(gone)?;
            let _turn = socket.turn.lock().await;
            // Another socket may have become the owner of the association meanwhile.
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

/// The `errno` for an association that ended.
pub(super) fn of_reason(reason: &CloseReason, was_up: bool) -> i32 {
    match reason {
        CloseReason::AbortedHere => libc::ECONNABORTED,
        CloseReason::AbortedByPeer { .. } if !was_up => libc::ECONNREFUSED,
        CloseReason::NoAnswer
        | CloseReason::NoCookieAck
        | CloseReason::PeerUnreachable
        | CloseReason::ShutdownTimeout => libc::ETIMEDOUT,
        CloseReason::ProtocolUnreachable if !was_up => libc::ECONNREFUSED,
        _ => libc::ECONNRESET,
    }
}

/// The `errno` for an association that could not be set up.
pub(super) fn of_connect(error: &ConnectError) -> i32 {
    match error {
        ConnectError::Association(lost) => of_reason(&lost.0, false),
        ConnectError::Family(_) => libc::ENETUNREACH,
        _ => libc::EINVAL,
    }
}
