//! Listening one-to-one sockets.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anabranch_net::{Association, BacklogPermit, Endpoint};

use super::socket::Socket;
use super::socket::SocketAssociation;
use super::{HostState, PendingTransfer, Table};
use crate::frame::{HostFrameHeader, HostFrameKind};

/// Interval between two checks whether a socket still listens.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A listening address of one-to-one sockets: its endpoint, and the sockets that accept
/// associations round robin. There may be a single socket, one per address family, or several that
/// share the port (SCTP_REUSE_PORT). The list is empty if no socket listens any more but
/// associations remain.
pub(super) struct ListenerSet {
    pub endpoint: Endpoint,
    pub sockets: Vec<Arc<Socket>>,
    /// Unique number of the listening address.
    pub number: u32,
    /// Number of refused peers of the endpoint that were [recorded](HostState::record_refused).
    pub refused: u64,
}

impl ListenerSet {
    /// Sets the endpoint's backlog to the sum of the sockets' backlogs, plus one for each socket,
    /// like Linux.
    pub(super) fn set_backlog(&self) {
        let most = self.sockets.iter().map(|it| it.state().backlog + 1).sum();
        if most > 0 {
            self.endpoint.set_backlog(most);
        }
    }
}

impl Table {
    /// The listening address that has this port and one of these addresses. A new socket must share
    /// it, because only one endpoint can listen at an address and port.
    pub(super) fn listener_set_for(
        &mut self,
        port: u16,
        addresses: &[IpAddr],
    ) -> Option<&mut ListenerSet> {
        let fits = |it: &&mut ListenerSet| {
            let own = it.endpoint.addresses();
            let all = own.is_empty() || addresses.is_empty();
            it.endpoint.port() == port && (all || own.iter().any(|it| addresses.contains(it)))
        };
        self.listener_sets.iter_mut().find(fits)
    }

    /// The endpoint at which this socket listens.
    pub(super) fn endpoint_of(&self, socket: &Socket) -> Option<Endpoint> {
        let is_it = |it: &Arc<Socket>| it.name == socket.name;
        let mut listener_sets = self.listener_sets.iter();
        let place = listener_sets.find(|place| place.sockets.iter().any(is_it));
        place.map(|it| it.endpoint.clone())
    }

    /// The endpoint at which this socket listens, if it is the first of the sockets that listen
    /// there. New associations get the options of the first socket.
    pub(super) fn decided_endpoint(&self, socket: &Socket) -> Option<Endpoint> {
        let decides =
            |it: &&ListenerSet| it.sockets.first().is_some_and(|it| it.name == socket.name);
        let place = self.listener_sets.iter().find(decides);
        place.map(|it| it.endpoint.clone())
    }

    /// Adds a listening address with this endpoint and socket; returns its number.
    pub(super) fn add_listener_set(&mut self, endpoint: Endpoint, socket: Arc<Socket>) -> u32 {
        let number = self.listener_sets.iter().map(|it| it.number + 1).max();
        let number = number.unwrap_or_default();
        self.listener_sets.push(ListenerSet {
            endpoint,
            sockets: vec![socket],
            number,
            refused: 0,
        });
        number
    }

    fn listener_set(&mut self, number: u32) -> Option<&mut ListenerSet> {
        self.listener_sets.iter_mut().find(|it| it.number == number)
    }

    fn sockets_at(&self, number: u32) -> &[Arc<Socket>] {
        let place = self.listener_sets.iter().find(|it| it.number == number);
        place.map_or(&[], |it| &it.sockets)
    }
}

/// Announces each association that arrives at the endpoint to a listening program, until no socket
/// listens. The endpoint remains until its associations have ended, so that a restarted server can
/// listen at its port.
pub(super) async fn listen(host: Arc<HostState>, endpoint: Endpoint, place: u32) {
    loop {
        // Uses a timeout, because closing a listening socket causes no packet that would wake this
        // task.
        let accepted = tokio::time::timeout(POLL_INTERVAL, endpoint.accept_with_permit()).await;
        if let Some(set) = host.table().listener_set(place) {
            host.record_refused(&endpoint, &mut set.refused);
        }
        if has_no_listener(&host, place, &endpoint) {
            if let Ok(Ok((association, _))) = accepted {
                association.abort("");
            }
            break;
        }
        match accepted {
            Ok(Ok(accepted)) => announce(&host, place, accepted).await,
            Ok(Err(_)) => break,
            Err(_) => (),
        }
    }
    endpoint.wait_idle().await;
    let mut table = host.table();
    if table.sockets_at(place).is_empty() {
        table.listener_sets.retain(|it| it.number != place);
    }
}

/// Whether no socket listens any more; if so, the endpoint refuses peers from now on. Checked under
/// the lock, because another socket may start to listen.
fn has_no_listener(host: &HostState, place: u32, endpoint: &Endpoint) -> bool {
    let table = host.table();
    let nobody = table.sockets_at(place).is_empty();
    if nobody {
        endpoint.refuse();
    }
    nobody
}

/// Announces an association to a program whose socket has the peer's address family.
async fn announce(
    host: &Arc<HostState>,
    place: u32,
    (association, backlog): (Association, BacklogPermit),
) {
    let number = host.number();
    let status = association.status();
    let v6 = status.is_some_and(|it| it.primary.address.is_ipv6());
    let (socket, assoc) = {
        let mut table = host.table();
        let all = table.sockets_at(place);
        let fits = |it: &&Arc<Socket>| it.only_family(&it.state()).is_none_or(|only| only == v6);
        let fitting: Vec<_> = all.iter().filter(fits).cloned().collect();
        // Round robin among sockets that share the port (SCTP_REUSE_PORT).
        let turn = table.announced % fitting.len().max(1);
        table.announced = table.announced.wrapping_add(1);
        let Some(socket) = fitting.into_iter().nth(turn) else {
            association.abort("");
            return;
        };
        let options = socket.state().options.clone();
        let assoc = Arc::new(SocketAssociation::new(
            number,
            socket.socket_type.v6,
            Vec::new(),
            options,
        ));
        host.watch(&assoc, association.clone());
        assoc.set_established(association);
        let pending = PendingTransfer {
            assoc: Arc::clone(&assoc),
            from: socket.name.clone(),
            waiting: Vec::new(),
            _permit: Some(backlog),
        };
        table.incoming.insert(number, pending);
        (socket, assoc)
    };
    super::setsockopt::apply_all(&assoc);
    let frame = HostFrameHeader {
        kind: HostFrameKind::Incoming,
        association: number,
        address: assoc.name(),
        ..HostFrameHeader::default()
    };
    if socket.give(&frame, &[]).await.is_err() {
        host.table().incoming.remove(&number);
        if let Some(association) = assoc.association() {
            association.abort("");
        }
        assoc.end();
    }
}
