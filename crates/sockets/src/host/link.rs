//! One association of a socket.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use anabranch_net::{AbandonPolicy, Association, CloseReason, Event, PathState, Status};
use bytes::Bytes;
use tokio::sync::{Notify, watch};

use super::jobs::Jobs;
use super::socket::{Socket, of_reason};
use crate::frame::Frame;
use crate::options::{I_WANT_MAPPED_V4_ADDR, Options};

/// How far an association is.
#[derive(Clone, Debug)]
pub enum Progress {
    /// It was begun.
    Begun,
    /// It is up, or was.
    Up(Association),
    /// It could not be made, or has ended.
    Over,
}

/// Whose an association is.
#[derive(Clone)]
enum Owner {
    Socket(Weak<Socket>),
    /// It was taken off a socket and no other has it yet.
    Between,
    Nobody,
}

/// An address as a program is given it: at a socket of AF_INET6 one of IPv4 as a mapped one, but where SCTP_I_WANT_MAPPED_V4_ADDR is off (RFC 6458
/// §8.1.15).
pub fn shown(address: SocketAddr, v6: bool, options: &Options) -> SocketAddr {
    match address {
        SocketAddr::V4(it) if v6 && options.word(I_WANT_MAPPED_V4_ADDR, 0) != 0 => {
            SocketAddr::new(it.ip().to_ipv6_mapped().into(), it.port())
        }
        address => address,
    }
}

/// Messages that were given up: by stream and policy, those of which nothing was sent and the others.
pub type GivenUp = BTreeMap<(u16, u16), [u64; 2]>;

/// One association of a socket.
pub struct Link {
    /// Its name for programs; no other has it at this host.
    pub number: u32,
    /// Its socket is one of AF_INET6.
    v6: bool,
    /// Where the peer was called, while it is not up.
    called: Vec<SocketAddr>,
    progress: watch::Sender<Progress>,
    owner: watch::Sender<Owner>,
    options: Mutex<Options>,
    /// What waits for it, where its socket has many.
    pub jobs: Jobs,
    /// Something was sent or came.
    pub activity: Notify,
    /// Something was sent, or the program wants to know when all has arrived.
    pub sent: Notify,
    given_up: Mutex<GivenUp>,
    failed: Mutex<Failed>,
    /// Keys that were deactivated, of which the program is told once nothing is signed by them any more.
    freed: Mutex<Vec<u16>>,
    /// Messages that it did not take any more, whose program wants them back: no more than waited in the descriptor and in `jobs`.
    refused: Mutex<Vec<(Frame, Bytes)>>,
    /// What it was about while it was up, for notifications.
    peer: OnceLock<SocketAddr>,
    error: OnceLock<i32>,
    ended: Mutex<Ended>,
}

/// How an association ended that was up.
#[derive(Default)]
struct Ended {
    /// By this `errno`; 0: it was shut down.
    by: Option<i32>,
    reason: Option<CloseReason>,
    /// The socket whose it is knows.
    known: bool,
}

/// Addresses that are forgotten all at once when there are more: a peer can add and remove as many as it likes.
const MOST_FAILED: usize = 256;

/// Addresses of the peer's that have been unreachable, or nearly, since they were added.
#[derive(Default)]
struct Failed(BTreeSet<IpAddr>);

impl Failed {
    fn confirms(&mut self, event: &Event) -> bool {
        match event {
            Event::PathChanged {
                address,
                state: PathState::Inactive | PathState::PotentiallyFailed,
                ..
            } => {
                if self.0.len() == MOST_FAILED {
                    self.0.clear();
                }
                self.0.insert(*address);
                false
            }
            Event::PeerAddressRemoved { address, .. } => {
                self.0.remove(address);
                false
            }
            Event::PathChanged {
                address,
                state: PathState::Active,
                ..
            } => !self.0.contains(address),
            _ => false,
        }
    }
}

impl Link {
    /// One that is begun to a peer with these addresses, or that a peer began.
    pub fn new(number: u32, v6: bool, called: Vec<SocketAddr>, options: Options) -> Self {
        Self {
            number,
            v6,
            called,
            progress: watch::Sender::new(Progress::Begun),
            owner: watch::Sender::new(Owner::Between),
            options: Mutex::new(options),
            jobs: Jobs::new(),
            activity: Notify::new(),
            sent: Notify::new(),
            given_up: Mutex::default(),
            failed: Mutex::default(),
            freed: Mutex::default(),
            refused: Mutex::default(),
            peer: OnceLock::new(),
            error: OnceLock::new(),
            ended: Mutex::default(),
        }
    }

    /// What the program has set of it.
    pub fn options(&self) -> MutexGuard<'_, Options> {
        self.options.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// Counts of messages that were given up.
    pub fn given_up(&self) -> MutexGuard<'_, GivenUp> {
        self.given_up.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// Whether the event is that an address of the peer's was confirmed: it is up, and had not failed before.
    pub fn confirms(&self, event: &Event) -> bool {
        let mut failed = self.failed.lock().unwrap_or_else(|it| it.into_inner());
        failed.confirms(event)
    }

    /// Keys that were deactivated and of which the program was not told yet.
    pub fn freed(&self) -> MutexGuard<'_, Vec<u16>> {
        self.freed.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// Messages that it did not take any more, to be given back.
    pub fn refused(&self) -> MutexGuard<'_, Vec<(Frame, Bytes)>> {
        self.refused.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// A message was given up.
    pub fn count_given_up(&self, stream: u16, policy: AbandonPolicy, sent: bool) {
        let policy = match policy {
            AbandonPolicy::Lifetime => 0x10,
            AbandonPolicy::Retransmissions => 0x20,
            _ => 0x30,
        };
        let mut all = self.given_up();
        // A peer grants 65,535 streams at most, so that this is bounded.
        let counts = all.entry((stream, policy)).or_default();
        counts[usize::from(sent)] += 1;
    }

    /// It is up.
    pub fn rise(&self, association: Association) {
        if let Some(status) = association.status() {
            let _ = self
                .peer
                .set(SocketAddr::new(status.primary.address, status.peer_port));
        }
        self.progress.send_replace(Progress::Up(association));
    }

    /// It could not be made, for that reason.
    pub fn fail(&self, error: i32) {
        let _ = self.error.set(error);
        self.end();
    }

    /// Why it could not be made.
    pub fn error(&self) -> i32 {
        self.error.get().copied().unwrap_or(libc::ECONNREFUSED)
    }

    /// It is over.
    pub fn end(&self) {
        self.progress.send_replace(Progress::Over);
        self.owner.send_replace(Owner::Nobody);
        self.jobs.end();
    }

    /// The association, while it is up.
    pub fn association(&self) -> Option<Association> {
        match &*self.progress.borrow() {
            Progress::Up(association) => Some(association.clone()),
            _ => None,
        }
    }

    /// Does something with the association, while it is up, without a handle of its own: to take one and give it back locks the endpoint twice.
    pub fn with_association<T>(&self, act: impl FnOnce(&Association) -> T) -> Option<T> {
        match &*self.progress.borrow() {
            Progress::Up(association) => Some(act(association)),
            _ => None,
        }
    }

    /// The association's figures, while it is up.
    pub fn status(&self) -> Option<Status> {
        self.association()?.status()
    }

    /// Where the peer was when it came up, or was called.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer.get().or(self.called.first()).copied()
    }

    /// As [`Self::peer`], for programs.
    pub fn name(&self) -> Option<SocketAddr> {
        self.peer().map(|it| self.shown(it))
    }

    /// An address as its programs are given it.
    pub fn shown(&self, address: SocketAddr) -> SocketAddr {
        shown(address, self.v6, &self.options())
    }

    /// Whether the program named this address of the peer's to begin the association.
    pub fn was_called_at(&self, address: IpAddr) -> bool {
        self.called
            .iter()
            .any(|it| it.ip().to_canonical() == address)
    }

    /// The peer's addresses, the primary first.
    pub fn peers(&self) -> Vec<SocketAddr> {
        let Some(status) = self.status() else {
            return self.called.clone();
        };
        let mut all = vec![SocketAddr::new(status.primary.address, status.peer_port)];
        for path in &status.paths {
            let address = SocketAddr::new(path.address, status.peer_port);
            if !all.contains(&address) {
                all.push(address);
            }
        }
        all
    }

    /// Whether it is with the peer at this address.
    pub fn is_with(&self, address: SocketAddr) -> bool {
        let same = |it: &SocketAddr| (it.ip(), it.port()) == (address.ip(), address.port());
        self.called.iter().any(same) || self.peers().iter().any(same)
    }

    /// Waits until it is up; `None`: it never will be, or has ended.
    pub async fn up(&self) -> Option<Association> {
        let mut progress = self.progress.subscribe();
        let settled = progress.wait_for(|it| !matches!(it, Progress::Begun)).await;
        match &*settled.ok()? {
            Progress::Up(association) => Some(association.clone()),
            _ => None,
        }
    }

    /// The socket has it from now on.
    pub fn belong(&self, socket: &Arc<Socket>) {
        self.owner
            .send_replace(Owner::Socket(Arc::downgrade(socket)));
        self.settle_end();
    }

    /// It has ended, which its socket knows from now on, or as soon as it has one: before the program has read what came before.
    pub fn note_end(&self, reason: &CloseReason) {
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

    /// Why it ended, once that is known.
    pub fn reason(&self) -> Option<CloseReason> {
        self.ended().reason.clone()
    }

    fn ended(&self) -> MutexGuard<'_, Ended> {
        self.ended.lock().unwrap_or_else(|it| it.into_inner())
    }

    fn settle_end(&self) {
        let Some(socket) = self.current_owner() else {
            return;
        };
        let mut ended = self.ended();
        if let (Some(by), false) = (ended.by, ended.known) {
            ended.known = true;
            if !socket.form.is_one_to_many() {
                socket.note_end(by);
            }
            socket.advance();
        }
    }

    /// What the program remembers of its socket holds no more.
    pub fn advance(&self) {
        if let Some(socket) = self.current_owner() {
            socket.advance();
        }
    }

    /// The socket that has it now.
    pub fn current_owner(&self) -> Option<Arc<Socket>> {
        match &*self.owner.borrow() {
            Owner::Socket(socket) => socket.upgrade(),
            _ => None,
        }
    }

    /// No socket has it until another takes it.
    pub fn take_off(&self) {
        self.owner.send_replace(Owner::Between);
    }

    /// The socket that has it, as soon as one does; `None`: none ever will.
    pub async fn owner(&self) -> Option<Arc<Socket>> {
        if let Owner::Socket(socket) = &*self.owner.borrow() {
            return socket.upgrade();
        }
        let mut owner = self.owner.subscribe();
        let settled = owner.wait_for(|it| !matches!(it, Owner::Between)).await;
        match &*settled.ok()? {
            Owner::Socket(socket) => socket.upgrade(),
            _ => None,
        }
    }

    /// Whether that socket has it.
    pub fn is_of(&self, socket: &Arc<Socket>) -> bool {
        let owner = self.owner.borrow();
        matches!(&*owner, Owner::Socket(it) if it.ptr_eq(&Arc::downgrade(socket)))
    }

    /// Gives its socket frames, nobody else's between them.
    pub async fn give(&self, frames: &[(Frame, &[u8])]) -> std::io::Result<()> {
        loop {
            let gone = || std::io::Error::from(std::io::ErrorKind::NotConnected);
            let socket = self.owner().await.ok_or_else(gone)?;
            let _turn = socket.turn.lock().await;
            // It may have gone to another socket meanwhile.
            if !self.is_of(&socket) {
                continue;
            }
            for (frame, payload) in frames {
                socket.give(frame, payload).await?;
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_confirmed_unless_it_has_failed_since_it_was_added() {
        let mut failed = Failed::default();
        let address = |last| IpAddr::from([192, 0, 2, last]);
        let path = anabranch_net::sctp::PathId(1);
        let changed = |address, state| Event::PathChanged {
            path,
            address,
            state,
        };
        let up = |last| changed(address(last), PathState::Active);
        assert!(failed.confirms(&up(1)));
        // Programs may not be told that a path is potentially failed; it is not confirmed anew for that.
        assert!(!failed.confirms(&changed(address(1), PathState::PotentiallyFailed)));
        assert!(!failed.confirms(&up(1)));
        assert!(failed.confirms(&up(2)));
        let address = address(1);
        failed.confirms(&Event::PeerAddressRemoved { path, address });
        assert!(failed.confirms(&up(1)));
        for number in 0..2_000_u32 {
            let address = IpAddr::from(number.to_be_bytes());
            failed.confirms(&changed(address, PathState::Inactive));
            assert!(failed.0.len() <= MOST_FAILED);
        }
    }
}
