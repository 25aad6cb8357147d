//! A descriptor: its program's messages to associations, from its first frame to its end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use socket2::Socket as Unix;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::acceptor::Caller;
use super::association::SocketAssociation;
use super::deliver::to_program;
use super::send::{send, send_at_once};
use super::send_queue::QueuedOperation;
use super::socket::{Phase, Socket};
use super::{HostState, PendingTransfer, one_to_many};
use crate::frame::{self, Frame, HEADER, Kind};
use crate::{MAX_PIECE, SocketType, Style};

/// Serves a descriptor until its last copy is closed.
pub async fn serve(
    host: Arc<HostState>,
    mut caller: Caller,
    unix: AsyncFd<Unix>,
    name: Vec<u8>,
    socket_type: SocketType,
) {
    let mut buffer = vec![0; HEADER + MAX_PIECE];
    let first = unix.async_io(Interest::READABLE, |mut unix: &Unix| {
        io::Read::read(&mut unix, &mut buffer)
    });
    let Ok(length) = caller.receive_first(first).await else {
        return;
    };
    let Some(incoming) = frame::of_hello(&buffer[..length]) else {
        tracing::warn!("a connection that said no hello");
        return;
    };
    if !caller.authenticate(&host, &buffer[HEADER..length]) {
        return;
    }
    if !caller.has_room {
        host.refuse(name, incoming);
        return;
    }
    let socket = Arc::new(Socket::new(&host, name.clone(), unix, socket_type));
    if incoming != 0 && !take_over(&host, &socket, incoming).await {
        return;
    }
    host.table()
        .sockets
        .insert(name.clone(), Arc::clone(&socket));
    host.appeared.notify_waiters();
    to_peer(&host, &socket, &mut buffer, host.config.max_message_size).await;
    // A task that is delivering data may be the one that learns of unread messages.
    drop(socket.turn.lock().await);
    leave(&host, &socket);
}

/// Moves an association that waits to be accepted or was peeled off to this socket.
async fn take_over(host: &Arc<HostState>, socket: &Arc<Socket>, number: u32) -> bool {
    let (PendingTransfer { assoc, waiting, .. }, from) = {
        let mut table = host.table();
        let Some(pending) = table.incoming.remove(&number) else {
            return false;
        };
        // Options of the other socket apply to the new one.
        let from = table.sockets.get(&pending.from).cloned();
        (pending, from)
    };
    if let Some(from) = from {
        let (options, bound, port) = {
            let state = from.state();
            (state.options.clone(), state.bound.clone(), state.port)
        };
        let mut state = socket.state();
        (state.options, state.bound, state.port) = (options, bound, port);
        state.accepted = true;
        drop(state);
        if let Some(port) = port {
            host.share_port(port);
        }
    }
    {
        let mut state = socket.state();
        state.assocs.insert(number, Arc::clone(&assoc));
        state.phase = Phase::Connected;
        state.peer = assoc.peer();
    }
    for (frame, payload) in &waiting {
        // They fitted into the other socket.
        let _ = socket.give(frame, payload).await;
    }
    assoc.set_owner(socket);
    // A peeled-off association is served already.
    if socket.socket_type.style == Style::OneToOne
        && let Some(association) = assoc.association()
    {
        tokio::spawn(to_program(assoc, association));
    }
    true
}

/// Cleans up after the last descriptor was closed.
fn leave(host: &HostState, socket: &Socket) {
    let mut table = host.table();
    table.sockets.remove(&socket.name);
    let mut orphans = Vec::new();
    table.incoming.retain(|_, pending| {
        let stays = pending.from != socket.name;
        if !stays {
            orphans.push(Arc::clone(&pending.assoc));
        }
        stays
    });
    for place in &mut table.listener_sets {
        place.sockets.retain(|it| it.name != socket.name);
        place.set_backlog();
    }
    drop(table);
    for assoc in orphans {
        // No socket can accept it any more, so its peer gets an ABORT, as with Linux.
        if let Some(association) = assoc.association() {
            association.abort("");
        }
        assoc.end();
    }
    let (assocs, linger, port) = {
        let mut state = socket.state();
        state.closed = true;
        state.phase = Phase::Failed;
        state.endpoint = None;
        let assocs = std::mem::take(&mut state.assocs);
        // Like Linux, aborts to inform the peer that its messages were not read.
        let linger = match state.unread {
            true => Some(0),
            false => state.options.linger(),
        };
        (assocs, linger, state.port.take())
    };
    for assoc in assocs.into_values() {
        match (linger, assoc.association()) {
            // RFC 6458 §8.1.4: a linger time of 0 aborts.
            (Some(0), Some(association)) => association.abort(""),
            (_, _) if socket.socket_type.is_one_to_many() => {
                // After the queued messages.
                assoc.send_queue.ask(QueuedOperation::Close);
            }
            (linger, Some(association)) => {
                let within = linger.map(|it| Duration::from_secs(u64::from(it)));
                association.start_shutdown(Some(within.unwrap_or(host.config.linger)));
            }
            (_, None) => assoc.end(),
        }
    }
    if let Some(port) = port {
        host.give_port_back(port);
    }
    host.ended.notify_waiters();
}

/// Forwards the program's messages to their associations. A message of more than `most` bytes is
/// refused by the association, and the rest of it is not buffered.
async fn to_peer(host: &Arc<HostState>, socket: &Arc<Socket>, buffer: &mut [u8], most: usize) {
    let mut whole = Vec::new();
    loop {
        let length = match socket.take(buffer).await {
            Ok(length @ 1..) => length,
            Ok(0) | Err(_) => return,
        };
        let Some(frame) = Frame::decode(&buffer[..length]) else {
            continue;
        };
        let one = match socket.socket_type.style {
            Style::OneToMany => None,
            // A listening socket stays one.
            _ if socket.state().phase == Phase::Listening => return socket.left().await,
            _ => match socket.connected().await {
                Some(assoc) => Some(assoc),
                // The messages are lost, and the program has already got the error.
                None => continue,
            },
        };
        if frame.kind != Kind::Data {
            continue;
        }
        let piece = &buffer[HEADER..length];
        if frame.flags & frame::MORE != 0 || !whole.is_empty() {
            whole.extend_from_slice(piece);
            whole.truncate(most + 1);
            if frame.flags & frame::MORE != 0 {
                continue;
            }
        }
        let bytes = match whole.is_empty() {
            true => bytes::Bytes::copy_from_slice(piece),
            false => std::mem::take(&mut whole).into(),
        };
        match one {
            Some(assoc) => {
                // Messages that were queued when it was peeled off are sent first.
                assoc.send_queue.all_done().await;
                if let Some(bytes) = send_at_once(&assoc, &frame, bytes)
                    && let Some(association) = assoc.up().await
                {
                    send(&assoc, &association, &frame, bytes).await;
                }
            }
            None => {
                let assocs = one_to_many::of_frame(host, socket, &frame);
                if assocs.is_empty() {
                    one_to_many::lost(socket, &frame, &bytes).await;
                }
                for assoc in assocs {
                    send_or_wait(&assoc, &frame, bytes.clone());
                    assoc.send_queue.bounded(most).await;
                }
            }
        }
    }
}

/// Sends a message at once if the queue is empty and the association accepts it; otherwise queues
/// it, without blocking the other associations. SCTP_ABORT is processed immediately, and the queued
/// messages are lost.
fn send_or_wait(assoc: &SocketAssociation, frame: &Frame, bytes: bytes::Bytes) {
    if frame.flags & frame::ABORT != 0
        && let Some(association) = assoc.association()
    {
        association.abort(bytes);
        return;
    }
    let left = match assoc.send_queue.are_done() {
        true => send_at_once(assoc, frame, bytes),
        false => Some(bytes),
    };
    if let Some(bytes) = left {
        assoc
            .send_queue
            .ask(QueuedOperation::Message(*frame, bytes));
    }
}

/// Makes the descriptor readable for a program that waits for a connection with `poll`, and reports
/// the reason.
pub async fn fail(socket: &Socket, error: i32) {
    // The error is set before the phase, because a program that learns of either and tries again
    // must find both set.
    let _turn = socket.turn.lock().await;
    socket.state().error = error;
    let frame = Frame {
        kind: Kind::Error,
        error,
        ..Frame::default()
    };
    let _ = socket.give(&frame, &[]).await;
    socket.enter(Phase::Failed);
}
