//! An association of a socket.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use anabranch_net::{AbandonPolicy, Association, CloseReason, Event, PathState, Status};
use bytes::Bytes;
use tokio::sync::{Notify, watch};

use super::send_queue::SendQueue;
use crate::frame::HostFrameHeader;
use crate::options::{I_WANT_MAPPED_V4_ADDR, SocketOptions};

/// Setup state of an association.
#[derive(Clone, Debug)]
pub(super) enum SetupState {
    /// The setup has started.
    Connecting,
    /// The association was established.
    Established(Association),
    /// The setup has failed, or the association has ended.
    Ended,
}

/// Owner of an association: the socket to which it belongs.
enum Owner<S> {
    Socket(Weak<S>),
    /// The association was removed from a socket, and no other socket owns it yet.
    InTransfer,
    None,
}

/// An address in the form for programs. An AF_INET6 socket gets an IPv4 address as a mapped
/// address, unless SCTP_I_WANT_MAPPED_V4_ADDR is off (RFC 6458 §8.1.15).
pub(super) fn shown(address: SocketAddr, v6: bool, options: &SocketOptions) -> SocketAddr {
    match address {
        SocketAddr::V4(it) if v6 && options.word(I_WANT_MAPPED_V4_ADDR, 0) != 0 => {
            SocketAddr::new(it.ip().to_ipv6_mapped().into(), it.port())
        }
        address => address,
    }
}

/// Numbers of abandoned messages by stream and policy: first the number of messages of which no
/// chunk was sent, then that of all other messages.
pub(super) type AbandonedCounts = BTreeMap<(u16, u16), [u64; 2]>;

/// An association that a socket owns. The socket type is a parameter, because the socket in turn
/// contains its associations.
pub(super) struct OwnedAssociation<S> {
    /// Number for programs, unique at this host.
    pub number: u32,
    /// True if the socket is AF_INET6.
    v6: bool,
    /// Addresses to which the setup was started; empty after it is established.
    connect_addresses: Vec<SocketAddr>,
    progress: watch::Sender<SetupState>,
    owner: watch::Sender<Owner<S>>,
    options: Mutex<SocketOptions>,
    /// Send queue; used if the socket is one-to-many.
    pub send_queue: SendQueue,
    /// Notified when a message is sent or received.
    pub activity: Notify,
    /// Notified when a message is sent, or the program subscribes to SENDER_DRY.
    pub sent: Notify,
    abandoned: Mutex<AbandonedCounts>,
    failed: Mutex<Failed>,
    /// Deactivated keys. The program is notified when no more data is signed with them.
    deactivated_keys: Mutex<Vec<u16>>,
    /// Messages that the association did not accept, to be returned to the program. Limited by the
    /// size of the descriptor's buffer and of `send_queue`.
    refused: Mutex<Vec<(HostFrameHeader, Bytes)>>,
    /// The peer's primary address and port, recorded when the association is established.
    peer: OnceLock<SocketAddr>,
    error: OnceLock<i32>,
    ended: Mutex<Ended>,
}

/// How an established association ended, and whether its socket knows this.
#[derive(Default)]
pub(super) struct Ended {
    /// The `errno`, or 0 after a graceful shutdown; `None` before the end.
    pub by: Option<i32>,
    pub reason: Option<CloseReason>,
    /// True if the owning socket was notified of the end.
    pub known: bool,
}

/// Maximum number of addresses that are remembered. If there are more, all are forgotten, because a
/// peer can add and remove any number of addresses.
const MAX_FAILED: usize = 256;

/// Addresses of the peer that were unreachable or potentially failed at some time since they were
/// added.
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
                if self.0.len() == MAX_FAILED {
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

impl<S> OwnedAssociation<S> {
    /// Creates an association in setup, either to a peer with these addresses or started by a peer.
    pub(super) fn new(
        number: u32,
        v6: bool,
        connect_addresses: Vec<SocketAddr>,
        options: SocketOptions,
    ) -> Self {
        Self {
            number,
            v6,
            connect_addresses,
            progress: watch::Sender::new(SetupState::Connecting),
            owner: watch::Sender::new(Owner::InTransfer),
            options: Mutex::new(options),
            send_queue: SendQueue::new(),
            activity: Notify::new(),
            sent: Notify::new(),
            abandoned: Mutex::default(),
            failed: Mutex::default(),
            deactivated_keys: Mutex::default(),
            refused: Mutex::default(),
            peer: OnceLock::new(),
            error: OnceLock::new(),
            ended: Mutex::default(),
        }
    }

    /// Options that the program has set for the association.
    pub(super) fn options(&self) -> MutexGuard<'_, SocketOptions> {
        self.options.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// Counts of abandoned messages.
    pub(super) fn abandoned(&self) -> MutexGuard<'_, AbandonedCounts> {
        self.abandoned.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// Whether the event confirms an address of the peer: the address is reachable and has not
    /// failed before.
    pub(super) fn confirms(&self, event: &Event) -> bool {
        let mut failed = self.failed.lock().unwrap_or_else(|it| it.into_inner());
        failed.confirms(event)
    }

    /// Deactivated keys of which the program was not notified yet.
    pub(super) fn deactivated_keys(&self) -> MutexGuard<'_, Vec<u16>> {
        self.deactivated_keys
            .lock()
            .unwrap_or_else(|it| it.into_inner())
    }

    /// Messages that the association did not accept, to be returned to the program.
    pub(super) fn refused(&self) -> MutexGuard<'_, Vec<(HostFrameHeader, Bytes)>> {
        self.refused.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// Counts an abandoned message.
    pub(super) fn count_abandoned(&self, stream: u16, policy: AbandonPolicy, sent: bool) {
        let policy = match policy {
            AbandonPolicy::Lifetime => 0x10,
            AbandonPolicy::Retransmissions => 0x20,
            _ => 0x30,
        };
        let mut all = self.abandoned();
        // The size of the map is limited, because a peer can have at most 65,535 streams.
        let counts = all.entry((stream, policy)).or_default();
        counts[usize::from(sent)] += 1;
    }

    /// Records that the association is established.
    pub(super) fn set_established(&self, association: Association) {
        if let Some(status) = association.status() {
            let _ = self
                .peer
                .set(SocketAddr::new(status.primary.address, status.peer_port));
        }
        self.progress
            .send_replace(SetupState::Established(association));
    }

    /// Records that the setup has failed.
    pub(super) fn fail(&self, error: i32) {
        let _ = self.error.set(error);
        self.end();
    }

    /// The `errno` of a failed setup.
    pub(super) fn error(&self) -> i32 {
        self.error.get().copied().unwrap_or(libc::ECONNREFUSED)
    }

    /// Records that the association has ended.
    pub(super) fn end(&self) {
        self.progress.send_replace(SetupState::Ended);
        self.owner.send_replace(Owner::None);
        self.send_queue.end();
    }

    /// Waits until [`Self::end`] was called, which happens after the end was reported to the
    /// program.
    pub(super) async fn end_reported(&self) {
        let mut progress = self.progress.subscribe();
        // Cannot fail, because `self` contains the sender.
        let _ = progress
            .wait_for(|it| matches!(it, SetupState::Ended))
            .await;
    }

    /// The association, while it is established.
    pub(super) fn association(&self) -> Option<Association> {
        match &*self.progress.borrow() {
            SetupState::Established(association) => Some(association.clone()),
            _ => None,
        }
    }

    /// Calls `act` with the association while it is established. The handle is not cloned, because
    /// a clone and its drop would lock the endpoint twice.
    pub(super) fn with_association<T>(&self, act: impl FnOnce(&Association) -> T) -> Option<T> {
        match &*self.progress.borrow() {
            SetupState::Established(association) => Some(act(association)),
            _ => None,
        }
    }

    /// Status of the association, while it is established.
    pub(super) fn status(&self) -> Option<Status> {
        self.association()?.status()
    }

    /// Address of the peer at establishment, or the address to which the setup was started.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.peer.get().or(self.connect_addresses.first()).copied()
    }

    /// Like [`Self::peer`], in the form for programs.
    pub(super) fn name(&self) -> Option<SocketAddr> {
        self.peer().map(|it| self.shown(it))
    }

    /// An address in the form for programs of this socket.
    pub(super) fn shown(&self, address: SocketAddr) -> SocketAddr {
        shown(address, self.v6, &self.options())
    }

    /// Whether the program has passed this address of the peer when it started the association.
    pub(super) fn was_connected_to(&self, address: IpAddr) -> bool {
        self.connect_addresses
            .iter()
            .any(|it| it.ip().to_canonical() == address)
    }

    /// The peer's addresses; the primary is the first.
    pub(super) fn peers(&self) -> Vec<SocketAddr> {
        let Some(status) = self.status() else {
            return self.connect_addresses.clone();
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

    /// Whether the peer of the association has this address and port.
    pub(super) fn is_with(&self, address: SocketAddr) -> bool {
        let same = |it: &SocketAddr| (it.ip(), it.port()) == (address.ip(), address.port());
        self.connect_addresses.iter().any(same) || self.peers().iter().any(same)
    }

    /// Waits until the association is established; `None` if the setup has failed or the
    /// association has ended.
    pub(super) async fn up(&self) -> Option<Association> {
        let mut progress = self.progress.subscribe();
        let settled = progress
            .wait_for(|it| !matches!(it, SetupState::Connecting))
            .await;
        match &*settled.ok()? {
            SetupState::Established(association) => Some(association.clone()),
            _ => None,
        }
    }

    /// Why the association has ended; `None` before its end.
    pub(super) fn reason(&self) -> Option<CloseReason> {
        self.ended().reason.clone()
    }

    /// How the association ended, if it has ended.
    pub(super) fn ended(&self) -> MutexGuard<'_, Ended> {
        self.ended.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// The socket that owns the association, if any.
    pub(super) fn current_owner(&self) -> Option<Arc<S>> {
        match &*self.owner.borrow() {
            Owner::Socket(socket) => socket.upgrade(),
            _ => None,
        }
    }

    /// Makes the socket the owner of the association, without a notification of its end.
    pub(super) fn assign(&self, socket: &Arc<S>) {
        self.owner
            .send_replace(Owner::Socket(Arc::downgrade(socket)));
    }

    /// Removes the association from its owner, until another socket takes it over.
    pub(super) fn clear_owner(&self) {
        self.owner.send_replace(Owner::InTransfer);
    }

    /// Waits until the association has an owner; `None` if it will never have one.
    pub(super) async fn owner(&self) -> Option<Arc<S>> {
        if let Owner::Socket(socket) = &*self.owner.borrow() {
            return socket.upgrade();
        }
        let mut owner = self.owner.subscribe();
        let settled = owner.wait_for(|it| !matches!(it, Owner::InTransfer)).await;
        match &*settled.ok()? {
            Owner::Socket(socket) => socket.upgrade(),
            _ => None,
        }
    }

    /// Whether this socket owns the association.
    pub(super) fn is_owned_by(&self, socket: &Arc<S>) -> bool {
        let owner = self.owner.borrow();
        matches!(&*owner, Owner::Socket(it) if it.ptr_eq(&Arc::downgrade(socket)))
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
        // A potentially failed path that becomes active is not confirmed again, because the program
        // may not have been notified of its failure.
        assert!(!failed.confirms(&changed(address(1), PathState::PotentiallyFailed)));
        assert!(!failed.confirms(&up(1)));
        assert!(failed.confirms(&up(2)));
        let address = address(1);
        failed.confirms(&Event::PeerAddressRemoved { path, address });
        assert!(failed.confirms(&up(1)));
        for number in 0..2_000_u32 {
            let address = IpAddr::from(number.to_be_bytes());
            failed.confirms(&changed(address, PathState::Inactive));
            assert!(failed.0.len() <= MAX_FAILED);
        }
    }
}
