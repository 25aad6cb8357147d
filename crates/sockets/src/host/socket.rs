//! One socket of a program, as the host has it.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard};

use anabranch_net::{Association, CloseReason, ConnectError};
use socket2::Socket as Unix;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use crate::frame::{Frame, Hello};
use crate::options::Options;

/// A socket: the host's end of the descriptor, and what became of it.
pub struct Socket {
    /// The address of the program's end.
    pub name: Vec<u8>,
    /// The host's end.
    pub unix: AsyncFd<Unix>,
    /// What socket it is.
    pub hello: Hello,
    state: Mutex<State>,
    /// `state.phase` is another.
    pub changed: Notify,
}

/// How far a socket is.
#[derive(Default)]
pub enum Phase {
    /// It was made, and perhaps bound.
    #[default]
    Fresh,
    /// It listens.
    Listening,
    /// It is being connected.
    Connecting,
    /// It has its association.
    Connected(Association),
    /// Its association ended by an error, or could not be made.
    Failed,
}

/// What can change of a socket.
#[derive(Default)]
pub struct State {
    /// What the program has set.
    pub options: Options,
    /// Addresses that the program bound it to; the port of each is that of the socket.
    pub bound: Vec<SocketAddr>,
    /// The port, once there is one.
    pub port: Option<u16>,
    /// How far it is.
    pub phase: Phase,
    /// SO_ERROR.
    pub error: i32,
}

impl Socket {
    /// One that was just made.
    pub fn new(name: Vec<u8>, unix: AsyncFd<Unix>, hello: Hello) -> Self {
        Self {
            name,
            unix,
            hello,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// What can change of it.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// Its association, if it has one.
    pub fn association(&self) -> Option<Association> {
        match &self.state().phase {
            Phase::Connected(association) => Some(association.clone()),
            _ => None,
        }
    }

    /// Waits until it has an association; `None`: it never will.
    pub async fn connected(&self) -> Option<Association> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match &self.state().phase {
                Phase::Connected(association) => return Some(association.clone()),
                Phase::Failed => return None,
                Phase::Fresh | Phase::Listening | Phase::Connecting => (),
            }
            changed.await;
        }
    }

    /// Goes on to another phase.
    pub fn enter(&self, phase: Phase) {
        self.state().phase = phase;
        self.changed.notify_waiters();
    }

    /// Gives the program a frame; waits while its descriptor is full.
    pub async fn give(&self, frame: &Frame, payload: &[u8]) -> io::Result<()> {
        let header = frame.encode();
        let parts = [IoSlice::new(&header), IoSlice::new(payload)];
        self.unix
            .async_io(Interest::WRITABLE, |unix| unix.send_vectored(&parts))
            .await
            .map(drop)
    }

    /// Takes a frame of the program's, with what belongs to it, into `buffer`; 0 bytes: the program closed its last descriptor, or
    /// shut it down.
    pub async fn take(&self, buffer: &mut [u8]) -> io::Result<usize> {
        use std::io::Read;
        self.unix
            .async_io(Interest::READABLE, |mut unix: &Unix| unix.read(buffer))
            .await
    }

    /// Whether it is one of IPv6 alone, or of IPv4 alone; `None`: of both.
    pub fn only_family(&self, state: &State) -> Option<bool> {
        match self.hello.v6 {
            false => Some(false),
            true if state.options.is_v6_only() => Some(true),
            true => None,
        }
    }

    /// An address of the family that the program's socket has.
    pub fn unspecified(&self) -> IpAddr {
        match self.hello.v6 {
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
        CloseReason::NoAnswer | CloseReason::PeerUnreachable | CloseReason::ShutdownTimeout => {
            libc::ETIMEDOUT
        }
        CloseReason::ProtocolUnreachable if !was_up => libc::ECONNREFUSED,
        CloseReason::ProtocolUnreachable => libc::EHOSTUNREACH,
        _ => libc::ECONNRESET,
    }
}

/// The `errno` for an association that could not be made.
pub fn of_connect(error: &ConnectError) -> i32 {
    match error {
        ConnectError::Lost(lost) => of_reason(&lost.0, false),
        ConnectError::Family(_) => libc::ENETUNREACH,
        _ => libc::EINVAL,
    }
}
