//! One-to-many sockets (RFC 6458 §3).

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use anabranch_net::{ConnectError, Endpoint};

use super::deliver::attach;
use super::endpoint::{self, peer};
use super::listener::POLL_INTERVAL;
use super::notification::{self, AssocChange, change};
use super::notify::{in_pieces, return_queued, send_notification};
use super::port_selection::{another, from_any_port};
use super::socket::SocketAssociation;
use super::socket::{Phase, Socket, of_connect};
use super::{HostState, PendingTransfer, scm_rights};
use crate::SocketStyle;
use crate::frame::{self, HostFrameHeader, HostFrameKind};

/// The socket's endpoint. It is created at its first use, with the options that are set by then.
pub(super) fn endpoint(host: &HostState, socket: &Socket) -> Result<Endpoint, i32> {
    if let Some(endpoint) = &socket.state().endpoint {
        return Ok(endpoint.clone());
    }
    let endpoint = endpoint::endpoint(host, socket, None)?;
    let mut state = socket.state();
    Ok(state.endpoint.get_or_insert(endpoint).clone())
}

/// Starts or stops accepting associations from peers.
pub(super) fn listen(
    host: &Arc<HostState>,
    socket: &Arc<Socket>,
    backlog: usize,
) -> Result<(), i32> {
    let endpoint = endpoint(host, socket)?;
    endpoint.listen(backlog > 0);
    let phase = match backlog {
        0 => Phase::Fresh,
        _ => Phase::Listening,
    };
    let before = std::mem::replace(&mut socket.state().phase, phase);
    socket.advance();
    if backlog > 0 && before != Phase::Listening {
        tokio::spawn(accept(Arc::clone(host), Arc::downgrade(socket), endpoint));
    }
    Ok(())
}

/// Accepts all associations that peers start, while the socket listens.
async fn accept(host: Arc<HostState>, socket: Weak<Socket>, endpoint: Endpoint) {
    loop {
        let accepted = tokio::time::timeout(POLL_INTERVAL, endpoint.accept()).await;
        let Some(socket) = socket.upgrade() else {
            return;
        };
        host.record_refused(&endpoint, &mut socket.state().refused);
        if socket.state().closed {
            return;
        }
        match accepted {
            Ok(Ok(association)) => {
                let options = socket.state().options.clone();
                let v6 = socket.socket_type.v6;
                let assoc = Arc::new(SocketAssociation::new(
                    host.number(),
                    v6,
                    Vec::new(),
                    options,
                ));
                attach(&host, &socket, &assoc, association);
            }
            // The socket has stopped listening.
            Ok(Err(_)) => return,
            Err(_) => (),
        }
    }
}

/// Starts an association with a peer at these addresses.
pub(super) fn begin(
    host: &Arc<HostState>,
    socket: &Arc<Socket>,
    addresses: Vec<SocketAddr>,
) -> Result<Arc<SocketAssociation>, i32> {
    let endpoint = endpoint(host, socket)?;
    if is_peeled_off(host, socket, &addresses) {
        return Err(libc::EADDRNOTAVAIL);
    }
    let options = socket.state().options.clone();
    let v6 = socket.socket_type.v6;
    let assoc = Arc::new(SocketAssociation::new(
        host.number(),
        v6,
        addresses.clone(),
        options,
    ));
    let peer = peer(host, socket, &addresses)?;
    assoc.set_owner(socket);
    socket
        .state()
        .assocs
        .insert(assoc.number, Arc::clone(&assoc));
    let (host, socket, begun) = (Arc::clone(host), Arc::downgrade(socket), Arc::clone(&assoc));
    tokio::spawn(async move {
        let mut connected = endpoint.connect(peer.clone()).await;
        let Some(socket) = socket.upgrade() else {
            return;
        };
        if connected
            .as_ref()
            .is_err_and(ConnectError::is_port_collision)
            && let Some(another) = another(&host, &socket)
        {
            connected = from_any_port(&host, &socket, another, peer, None).await;
        }
        match connected {
            Ok(association) => attach(&host, &socket, &begun, association),
            Err(error) => {
                host.record_failure(begun.peer(), &error);
                return_queued(&begun).await;
                let told = change(AssocChange::NotMade, 0, [0; 2], begun.number);
                let _ = send_notification(&begun, told).await;
                socket.state().assocs.remove(&begun.number);
                begun.fail(of_connect(&error));
            }
        }
    });
    Ok(assoc)
}

/// Whether an association with one of these addresses was peeled off the socket.
fn is_peeled_off(host: &HostState, socket: &Socket, addresses: &[SocketAddr]) -> bool {
    let port = socket.state().port;
    let all: Vec<_> = host.table().sockets.values().cloned().collect();
    all.iter().any(|it| {
        it.socket_type.style == SocketStyle::PeeledOff
            && it.state().port == port
            && addresses
                .iter()
                .any(|&it_is| it.assoc_with(it_is).is_some())
    })
}

/// The associations to which the program has addressed the frame.
pub(super) fn of_frame(
    host: &Arc<HostState>,
    socket: &Arc<Socket>,
    frame: &HostFrameHeader,
) -> Vec<Arc<SocketAssociation>> {
    if frame.flags & frame::ALL != 0 {
        return socket.state().assocs.values().cloned().collect();
    }
    let named = socket.assoc(frame.association);
    if frame.association != 0 {
        return named.into_iter().collect();
    }
    let with = || socket.assoc_with(frame.address?);
    let new = || begin(host, socket, vec![frame.address?]).ok();
    with().or_else(new).into_iter().collect()
}

/// Checks that each association has buffer space for a message to all (SCTP_SENDALL). If not, waits
/// for space if `wait` is true, and otherwise fails with EAGAIN.
pub(super) async fn room_for_all(socket: &Socket, wait: bool) -> Result<(), i32> {
    let assocs: Vec<_> = socket.state().assocs.values().cloned().collect();
    for assoc in assocs {
        room(&assoc, wait).await?;
    }
    Ok(())
}

/// Checks that an association has buffer space for a message. If not, waits for space if `wait` is
/// true, and otherwise fails with EAGAIN.
pub(super) async fn room(assoc: &SocketAssociation, wait: bool) -> Result<(), i32> {
    match wait || assoc.send_queue.have_room() {
        true => assoc.send_queue.room().await,
        false => return Err(libc::EAGAIN),
    }
    Ok(())
}

/// Returns a message to the program, because its association could not be set up, or ended before
/// the message was sent.
pub(super) async fn lost(socket: &Socket, frame: &HostFrameHeader, bytes: &[u8]) {
    for (kind, told) in notification::not_sent(frame, bytes, 0) {
        if !socket.state().options.wants(kind) {
            continue;
        }
        let header = HostFrameHeader {
            kind: HostFrameKind::Notification,
            association: frame.association,
            address: frame.address.map(|it| socket.shown(it)),
            ..HostFrameHeader::default()
        };
        let _turn = socket.turn.lock().await;
        for (frame, piece) in in_pieces(header, &told) {
            // Fails if the program has ended.
            let _ = socket.give(&frame, piece).await;
        }
    }
}

/// Removes an association from its socket, so that a new socket can take it over. `descriptor` is
/// the program's end of the old socket, of whose first frame `read` bytes were already read. Like
/// in Linux, unread data of the association moves with it.
pub(super) async fn peel_off(
    host: &HostState,
    socket: &Socket,
    number: u32,
    descriptor: Option<(OwnedFd, usize)>,
) -> Result<(), i32> {
    if !socket.socket_type.is_one_to_many() {
        return Err(libc::EINVAL);
    }
    // Locked, so that no data is delivered to the old socket meanwhile.
    let _turn = socket.turn.lock().await;
    let assoc = {
        let mut state = socket.state();
        let assoc = state.assocs.get(&number).cloned().ok_or(libc::EINVAL)?;
        if assoc.association().is_none() {
            return Err(libc::EINVAL);
        }
        state.assocs.remove(&number);
        assoc
    };
    assoc.clear_owner();
    socket.advance();
    let all = descriptor.map_or_else(Vec::new, |(it, read)| scm_rights::empty(&it, read));
    let (waiting, others): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|(frame, _)| frame.association == number);
    for (frame, payload) in &others {
        // This does not block, because the frames were just read from this descriptor, so its
        // buffer has space for them.
        let _ = socket.give(frame, payload).await;
    }
    let from = socket.name.clone();
    let pending = PendingTransfer {
        assoc,
        from,
        waiting,
        _permit: None,
    };
    host.table().incoming.insert(number, pending);
    Ok(())
}
