//! One socket of a program, as the host has it.

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

use super::Known;
use super::generations::Generations;
use super::link::{Link, shown};
use crate::control::Generation;
use crate::frame::{Frame, Kind};
use crate::options::{Options, REUSE_PORT};
use crate::{Form, Style};

/// Time between two tries of what cannot be waited for.
pub const AGAIN: Duration = Duration::from_millis(5);

/// A socket: the host's end of the descriptor, and what became of it.
pub struct Socket {
    /// The address of the program's end.
    pub name: Vec<u8>,
    /// The host's end.
    pub unix: AsyncFd<Unix>,
    /// What socket it is.
    pub form: Form,
    /// No other of the host has it, but for one of many billions.
    number: u32,
    generations: Arc<Generations>,
    state: Mutex<State>,
    /// `state.phase` is another.
    pub changed: Notify,
    /// Held by whoever gives frames that belong together.
    pub turn: tokio::sync::Mutex<()>,
    /// The last frame that the program was given is a message, or a part of one.
    message_last: AtomicBool,
    /// A frame of the program's was taken, and is not settled.
    busy: AtomicBool,
}

/// How far a socket is. One with many associations is fresh, or listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It was made, and perhaps bound.
    #[default]
    Fresh,
    /// It listens.
    Listening,
    /// It is being connected.
    Connecting,
    /// It has its association, or had it.
    Connected,
    /// Its association ended by an error, or could not be made.
    Failed,
}

/// `shutdown` of a one-to-one socket.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shut {
    /// Its messages in.
    pub reading: bool,
    /// Its messages out.
    pub writing: bool,
}

/// What can change of a socket.
#[derive(Default)]
pub struct State {
    /// What the program has set, for associations to come.
    pub options: Options,
    /// Keys for AUTH, for associations to come.
    pub keys: SharedKeys,
    /// Chunk types that peers must authenticate.
    pub authenticated: Vec<u8>,
    /// Addresses that the program bound it to; the port of each is that of the socket.
    pub bound: Vec<SocketAddr>,
    /// Associations that may wait to be accepted.
    pub backlog: usize,
    /// The port, once there is one.
    pub port: Option<u16>,
    /// The host drew it: the program did not ask for it.
    pub port_is_drawn: bool,
    /// How far it is.
    pub phase: Phase,
    /// SO_ERROR.
    pub error: i32,
    /// The halves that the program has shut down.
    pub shut: Shut,
    /// How its one association ended: an `errno`, or 0 where that was shut down.
    pub ended: Option<i32>,
    /// The peer that its association is with, or was.
    pub peer: Option<SocketAddr>,
    /// Its associations, by their numbers.
    pub links: BTreeMap<u32, Arc<Link>>,
    /// The endpoint of a socket with many associations, once it is in use.
    pub endpoint: Option<Endpoint>,
    /// It came from `accept`, and has the port of the socket that listened.
    pub accepted: bool,
    /// The last descriptor is closed.
    pub closed: bool,
    /// The program left a message unread when it closed it.
    pub unread: bool,
}

impl State {
    /// SCTP_REUSE_PORT.
    pub fn shares_port(&self) -> bool {
        self.options.word(REUSE_PORT, 0) != 0
    }

    /// The addresses that it is bound to; none: all.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let all: Vec<_> = self.bound.iter().map(SocketAddr::ip).collect();
        match all.iter().any(IpAddr::is_unspecified) {
            true => Vec::new(),
            false => all,
        }
    }
}

impl Socket {
    /// One that was just made, the host's next.
    pub fn new(host: &Known, name: Vec<u8>, unix: AsyncFd<Unix>, form: Form) -> Self {
        Self {
            name,
            unix,
            form,
            number: host.opened.fetch_add(1, Ordering::Relaxed),
            generations: Arc::clone(&host.generations),
            state: Mutex::default(),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::default(),
            message_last: AtomicBool::new(false),
            busy: AtomicBool::new(false),
        }
    }

    /// What can change of it.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// The association that a program names by `number`. One that is not one-to-many has one, by whichever number.
    pub fn link(&self, number: u32) -> Option<Arc<Link>> {
        let state = self.state();
        match self.form.style {
            Style::OneToMany => state.links.get(&number).cloned(),
            Style::OneToOne | Style::PeeledOff => state.links.values().next().cloned(),
        }
    }

    /// The association with the peer at this address.
    pub fn link_with(&self, address: SocketAddr) -> Option<Arc<Link>> {
        let links: Vec<_> = self.state().links.values().cloned().collect();
        links.into_iter().find(|link| link.is_with(address))
    }

    /// Waits until it has its association; `None`: it never will.
    pub async fn connected(&self) -> Option<Arc<Link>> {
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

    /// Its association, or that there is none; `None`: that is not known yet.
    fn settled(&self) -> Option<Option<Arc<Link>>> {
        let state = self.state();
        match state.phase {
            Phase::Connected => Some(state.links.values().next().cloned()),
            Phase::Failed => Some(None),
            Phase::Fresh | Phase::Listening | Phase::Connecting => None,
        }
    }

    /// Goes on to another phase.
    pub fn enter(&self, phase: Phase) {
        self.state().phase = phase;
        self.advance();
        self.changed.notify_waiters();
    }

    /// What programs may remember of it, if it was asked before what they are answered.
    pub fn generation(&self) -> Generation {
        self.generations.current(self.number)
    }

    /// What programs remember of it holds no more: to be called behind the change.
    pub fn advance(&self) {
        self.generations.advance(self.number);
    }

    /// Its one association has ended by that `errno`; 0: it was shut down.
    pub fn note_end(&self, error: i32) {
        let mut state = self.state();
        (state.ended, state.error) = (Some(error), error);
    }

    /// The error that waits to be told, which is told once.
    pub fn take_error(&self) -> Option<i32> {
        let error = std::mem::take(&mut self.state().error);
        (error != 0).then_some(error)
    }

    /// As [`Self::may_come`]; what the program has sent before, and what is being given, is settled first.
    pub async fn await_message(&self, wait: bool) -> Result<Generation, i32> {
        let may_come = self.may_come(wait);
        if may_come.is_ok() || self.form.style != Style::OneToMany {
            return may_come;
        }
        self.all_taken().await;
        drop(self.turn.lock().await);
        self.may_come(wait)
    }

    /// Waits until all that the program has sent is with its associations, or lost.
    pub async fn all_taken(&self) {
        while self.busy.load(Ordering::Acquire) || self.is_polled(PollFlags::POLLIN) {
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// As [`Self::all_taken`], for so long at most; at once where the program has closed it.
    pub async fn all_taken_within(&self, limit: Duration) {
        if !self.is_hung_up() {
            let _ = tokio::time::timeout(limit, self.all_taken()).await;
        }
    }

    /// Whether something may come to a program that receives, or is it to be told an error at once?
    fn may_come(&self, wait: bool) -> Result<Generation, i32> {
        let generation = self.generation();
        let mut state = self.state();
        let none = match (self.form.style, state.phase) {
            (Style::OneToMany, phase) => phase != Phase::Listening && state.links.is_empty(),
            (_, Phase::Listening) => return Err(libc::ENOTCONN),
            (_, Phase::Connecting | Phase::Connected) => false,
            (_, Phase::Fresh | Phase::Failed) => true,
        };
        match (none, std::mem::take(&mut state.error)) {
            (true, 0) if wait => Err(libc::ENOTCONN),
            (true, 0) => Err(libc::EAGAIN),
            (true, error) => Err(error),
            (false, error) => {
                // It is told behind what came before it.
                state.error = error;
                Ok(generation)
            }
        }
    }

    /// What a program gets that has read all, and finds the end of its descriptor; an `errno` where that is an error.
    pub fn end_of_messages(&self) -> Result<(), i32> {
        if let Some(error) = self.take_error() {
            return Err(error);
        }
        let state = self.state();
        match state.ended {
            // The end is read after a shutdown by the peer, and by a program that reads no more.
            None | Some(0) if state.shut.writing && !state.shut.reading => Err(libc::ENOTCONN),
            None | Some(0) => Ok(()),
            // The error itself was told before.
            Some(_) => Err(libc::ENOTCONN),
        }
    }

    /// Gives the program a frame; waits while its descriptor is full.
    pub async fn give(&self, frame: &Frame, payload: &[u8]) -> io::Result<()> {
        let header = frame.encode();
        let parts = [IoSlice::new(&header), IoSlice::new(payload)];
        let is_message = frame.kind == Kind::Data;
        // The program may close it before this call returns.
        self.message_last.fetch_or(is_message, Ordering::Relaxed);
        let given = self
            .unix
            .async_io(Interest::WRITABLE, |unix| unix.send_vectored(&parts))
            .await;
        match given {
            Ok(_) => self.message_last.store(is_message, Ordering::Relaxed),
            Err(_) => drop(self.hear_of_unread(&given)),
        }
        given.map(drop)
    }

    /// Whether the program closed its last descriptor and left unread what it was given: the kernel tells so once, whoever asks it next. What
    /// is unread is what was given last: a notification behind a message hides that.
    fn hear_of_unread(&self, done: &io::Result<usize>) -> bool {
        let error = done.as_ref().err().map(io::Error::kind);
        let unread = error == Some(io::ErrorKind::ConnectionReset);
        if unread {
            self.state().unread = self.message_last.load(Ordering::Relaxed);
        }
        unread
    }

    /// Takes a frame of the program's, with what belongs to it, into `buffer`; 0 bytes: the program closed its last descriptor, or
    /// shut it down.
    pub async fn take(&self, buffer: &mut [u8]) -> io::Result<usize> {
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
            // What the program wrote is still to be read.
            if !self.hear_of_unread(&taken) {
                return taken;
            }
        }
    }

    /// Whether its descriptor is ready for these events.
    fn is_polled(&self, events: PollFlags) -> bool {
        use std::os::fd::AsFd;
        let unix = self.unix.get_ref();
        let mut watched = [PollFd::new(unix.as_fd(), events)];
        let ready = poll(&mut watched, PollTimeout::ZERO);
        let seen = watched[0].revents().unwrap_or(PollFlags::empty());
        ready.is_ok() && seen.intersects(events)
    }

    /// Whether its last descriptor is closed, or shut down, which the host may not have heard yet.
    pub fn is_hung_up(&self) -> bool {
        self.is_polled(PollFlags::POLLHUP)
    }

    /// Waits until the last descriptor of a socket that listens is closed. What fills it, so that it is not writable, stays there
    /// ([`Kind::Nothing`]): nothing can be taken after this was begun.
    pub async fn left(&self) {
        while let Ok(mut ready) = self.unix.readable().await {
            if ready.ready().is_read_closed() {
                return;
            }
            ready.clear_ready();
        }
    }

    /// Whether it is one of IPv6 alone, or of IPv4 alone; `None`: of both.
    pub fn only_family(&self, state: &State) -> Option<bool> {
        match self.form.v6 {
            false => Some(false),
            true if state.options.is_v6_only() => Some(true),
            true => None,
        }
    }

    /// An address as the program is given it.
    pub fn shown(&self, address: SocketAddr) -> SocketAddr {
        shown(address, self.form.v6, &self.state().options)
    }

    /// An address of the family that the program's socket has.
    pub fn unspecified(&self) -> IpAddr {
        match self.form.v6 {
            true => Ipv6Addr::UNSPECIFIED.into(),
            false => Ipv4Addr::UNSPECIFIED.into(),
        }
    }
}

/// The `errno` for an association that ended.
pub fn of_reason(reason: &CloseReason, was_up: bool) -> i32 {
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

/// The `errno` for an association that could not be made.
pub fn of_connect(error: &ConnectError) -> i32 {
    match error {
        ConnectError::Association(lost) => of_reason(&lost.0, false),
        ConnectError::Family(_) => libc::ENETUNREACH,
        _ => libc::EINVAL,
    }
}
