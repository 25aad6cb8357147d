//! Data on a descriptor: messages from the program to its associations, and back.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anabranch_net::{
    Association, AssociationError, CloseReason, MessagePart, Output, SendError, TrySendError,
};
use socket2::Socket as Unix;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::acceptor::Caller;
use super::association::SocketAssociation;
use super::events;
use super::notification::{self, AssocChange, AuthKeyEvent, cause_of_end};
use super::notify::{
    in_pieces, return_message, send_last_notification, send_notification, send_parameters,
};
use super::send_queue::QueuedOperation;
use super::socket::{Phase, Socket, of_reason};
use super::{HostState, PendingTransfer, one_to_many};
use crate::frame::{self, Frame, HEADER, Kind};
use crate::options::{CONTEXT, FRAGMENT_INTERLEAVE};
use crate::{MAX_PIECE, SocketType, Style};

/// Time that the end of an association waits for messages that its program sent before and the host
/// has not read.
const LAST_FRAMES_TIMEOUT: Duration = Duration::from_secs(1);
/// Poll interval for whether all sent data was acknowledged.
const DRY_POLL_INTERVAL: Duration = Duration::from_millis(10);

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

/// Makes the association the socket's.
pub fn attach(
    host: &Arc<HostState>,
    socket: &Arc<Socket>,
    assoc: &Arc<SocketAssociation>,
    association: Association,
) {
    host.watch(assoc, association.clone());
    assoc.set_established(association.clone());
    super::setsockopt::apply_all(assoc);
    let closed = {
        let mut state = socket.state();
        state.assocs.insert(assoc.number, Arc::clone(assoc));
        state.peer = assoc.peer();
        state.closed
    };
    assoc.set_owner(socket);
    if closed {
        // The program has already closed the socket.
        association.abort("");
        return;
    }
    tokio::spawn(to_program(Arc::clone(assoc), association));
    match socket.socket_type.style {
        Style::OneToMany => one_to_many::work(host, socket, assoc),
        _ => socket.enter(Phase::Connected),
    }
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

/// Sends a message with its frame's options if that needs neither waiting nor closing; otherwise
/// returns it.
fn send_at_once(
    assoc: &SocketAssociation,
    frame: &Frame,
    bytes: bytes::Bytes,
) -> Option<bytes::Bytes> {
    let more = frame::ABORT | frame::EOF | frame::IMMEDIATE;
    if frame.flags & more != 0 || bytes.is_empty() {
        return Some(bytes);
    }
    let (stream, options, wants_back) = send_parameters(assoc, frame);
    let copy = wants_back.then(|| bytes.clone());
    let mut left = Some(bytes);
    let sent = assoc.with_association(|it| {
        let bytes = left.take().unwrap_or_default();
        it.try_send(bytes, options.with_stream(Some(stream)))
    });
    match sent {
        None => return left,
        Some(Err(TrySendError::Full(bytes))) => return Some(bytes),
        Some(Err(error)) => {
            tracing::debug!(%error, "message not taken");
            // The program wants it back, which may need to wait ([`send`]).
            return copy;
        }
        Some(Ok(())) => {
            tracing::trace!(stream, "message taken");
            assoc.sent.notify_one();
        }
    }
    assoc.activity.notify_one();
    None
}

/// Sends a message with its frame's options.
pub async fn send(
    assoc: &SocketAssociation,
    association: &Association,
    frame: &Frame,
    bytes: bytes::Bytes,
) {
    assoc.activity.notify_one();
    if frame.flags & frame::ABORT != 0 {
        association.abort(bytes);
        return;
    }
    if !bytes.is_empty() {
        let (stream, options, wants_back) = send_parameters(assoc, frame);
        let copy = wants_back.then(|| bytes.clone());
        let sent = match frame.flags & frame::IMMEDIATE {
            0 => {
                association
                    .send(bytes, options.with_stream(Some(stream)))
                    .await
            }
            _ => {
                association
                    .send(
                        bytes,
                        options.with_stream(Some(stream)).with_immediate(true),
                    )
                    .await
            }
        };
        match sent {
            Ok(()) => {
                tracing::trace!(stream, "message taken");
                assoc.sent.notify_one();
            }
            Err(error) => {
                tracing::debug!(%error, "message not taken");
                match (copy, error) {
                    (None, _) => (),
                    // Messages that were accepted before must be reported first.
                    (Some(bytes), SendError::Closing) => assoc.refused().push((*frame, bytes)),
                    (Some(bytes), _) => return_message(assoc, frame, &bytes).await,
                }
            }
        }
    }
    if frame.flags & frame::EOF != 0 {
        association.start_shutdown(None);
        assoc.advance();
    }
}

/// Passes events and messages of the association to the program that owns it.
async fn to_program(assoc: Arc<SocketAssociation>, association: Association) {
    let status = association.status();
    let streams = status
        .as_ref()
        .map_or([0; 2], |it| [it.outstrms, it.instrms]);
    let port = status.map_or(0, |it| it.peer_port);
    let up = notification::change(AssocChange::Up, 0, streams, assoc.number);
    let mut told_up = send_notification(&assoc, up).await;
    if !association.negotiated().authentication {
        let no_keys = notification::auth_key_event(0, AuthKeyEvent::NoAuth, assoc.number);
        told_up = told_up.and(send_notification(&assoc, no_keys).await);
    }
    let ended = match told_up {
        Ok(()) => tokio::select! {
            outcome = deliver(&assoc, &association, port) => outcome,
            never = tell_dry(&assoc, &association) => match never {},
        },
        Err(_) => discard_messages(&association).await,
    };
    report_end(&assoc, &association, ended, streams).await;
}

/// Passes messages and events of the association to the program in order. If the program disabled
/// interleaving, only events are delivered between the parts of a message.
async fn deliver(
    assoc: &SocketAssociation,
    association: &Association,
    port: u16,
) -> Result<(), Option<AssociationError>> {
    // Stream of the partially delivered message, and whether it is unordered.
    let mut unfinished: Option<(u16, bool)> = None;
    loop {
        let output = association.next_output(unfinished.map(|it| it.0)).await;
        let given = match output {
            Ok(Some(Output::Part(part))) => {
                assoc.activity.notify_one();
                let whole = assoc.options().word(FRAGMENT_INTERLEAVE, 0) == 0;
                unfinished = (whole && !part.ends).then_some((part.stream, part.unordered));
                give(assoc, &part).await
            }
            Ok(Some(Output::Event(event))) => {
                unfinished = unfinished.filter(|it| !events::cuts(&event, *it));
                events::notify(assoc, &event, port).await
            }
            Ok(None) => return Ok(()),
            Err(lost) => return Err(Some(lost)),
        };
        if given.is_err() {
            return discard_messages(association).await;
        }
    }
}

/// Discards data for a program that has shut down receiving, until the association has ended,
/// because the peer could not complete its shutdown while its messages find no buffer space.
async fn discard_messages(association: &Association) -> Result<(), Option<AssociationError>> {
    loop {
        match association.recv_part().await {
            Ok(Some(_)) => (),
            Ok(None) => return Ok(()),
            Err(lost) => return Err(Some(lost)),
        }
    }
}

/// Notifies the program, if it subscribed, that all its data was acknowledged (RFC 6458 §6.1.9),
/// and that no more data is signed with a deactivated key (§6.1.8). Polls, because the protocol has
/// no event for that.
async fn tell_dry(
    assoc: &SocketAssociation,
    association: &Association,
) -> std::convert::Infallible {
    loop {
        assoc.sent.notified().await;
        let wanted = || assoc.options().wants(notification::SENDER_DRY);
        let waits = |it: anabranch_net::Status| it.unackdata > 0 || it.penddata > 0;
        let deactivated_keys = || !assoc.deactivated_keys().is_empty();
        while (wanted() || deactivated_keys()) && association.status().is_some_and(waits) {
            tokio::time::sleep(DRY_POLL_INTERVAL).await;
        }
        // The program may be gone.
        let keys = std::mem::take(&mut *assoc.deactivated_keys());
        for key in keys {
            let free = notification::auth_key_event(key, AuthKeyEvent::Free, assoc.number);
            let _ = send_notification(assoc, free).await;
        }
        let _ = send_notification(assoc, notification::sender_dry(assoc.number)).await;
    }
}

/// Notifies the program of the end of its association.
async fn report_end(
    assoc: &Arc<SocketAssociation>,
    association: &Association,
    ended: Result<(), Option<AssociationError>>,
    streams: [u16; 2],
) {
    let last = match &ended {
        Ok(()) => notification::change(AssocChange::Down, 0, streams, assoc.number),
        Err(lost) => {
            let reason = association.status().and_then(|it| it.abort_reason);
            let cause = lost.as_ref().map_or(0, |it| cause_of_end(&it.0));
            match (lost, reason) {
                // Other causes are reported by number only.
                (Some(AssociationError(CloseReason::AbortedByPeer { .. })), Some(reason)) => {
                    notification::aborted(cause, &reason, streams, assoc.number)
                }
                _ => notification::change(AssocChange::Lost, cause, streams, assoc.number),
            }
        }
    };
    let error = match &ended {
        Err(Some(lost)) => Some(of_reason(&lost.0, true)),
        _ => None,
    };
    // Recorded before the program is notified and sends requests.
    assoc.record_end(&association.closed().await);
    // Messages that it did not accept should be returned before its end is reported.
    let _ = tokio::time::timeout(LAST_FRAMES_TIMEOUT, assoc.send_queue.all_done()).await;
    if let Some(socket) = assoc.current_owner() {
        socket.all_taken_within(LAST_FRAMES_TIMEOUT).await;
    }
    let refused = std::mem::take(&mut *assoc.refused());
    for (frame, bytes) in refused {
        return_message(assoc, &frame, &bytes).await;
    }
    let Some(socket) = send_last_notification(assoc, last).await else {
        assoc.end();
        return;
    };
    if socket.socket_type.is_one_to_many() {
        assoc.end();
        return;
    }
    if let Some(error) = error {
        let frame = Frame {
            kind: Kind::Error,
            error,
            ..Frame::default()
        };
        let _ = socket.give(&frame, &[]).await;
    }
    assoc.end();
    let _ = socket.unix.get_ref().shutdown(std::net::Shutdown::Write);
}

/// Delivers a message, or a part of one.
async fn give(assoc: &SocketAssociation, part: &MessagePart) -> io::Result<()> {
    let context = assoc.options().word(CONTEXT, 4);
    let flag = |on: bool, bit: u8| if on { bit } else { 0 };
    let frame = Frame {
        kind: Kind::Data,
        flags: flag(part.unordered, frame::UNORDERED) | flag(!part.ends, frame::MORE),
        stream: part.stream,
        ppid: part.ppid.to_be(),
        context,
        association: assoc.number,
        ssn: u32::from(part.ssn),
        tsn: part.tsn,
        cumulative_tsn: part.cumulative_tsn,
        address: assoc.name(),
        ..Frame::default()
    };
    let frames = in_pieces(frame, &part.bytes);
    let given = assoc.give(&frames).await;
    tracing::trace!(stream = part.stream, ?given, "message given");
    given
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
