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

use super::doors::Caller;
use super::events;
use super::jobs::Job;
use super::link::Link;
use super::notification::{self, Change, KeyNews, cause_of_end};
use super::socket::{Phase, Socket, of_reason};
use super::tell::{give_back, in_pieces, tell, tell_last, terms};
use super::{Coming, Known, many};
use crate::frame::{self, Frame, HEADER, Kind};
use crate::options::{CONTEXT, FRAGMENT_INTERLEAVE};
use crate::{Form, LARGEST_PIECE, Style};

/// Time that the end of an association waits for messages that its program sent before and the host
/// has not read.
const LAST_FRAMES: Duration = Duration::from_secs(1);
/// Poll interval for whether all sent data was acknowledged.
const DRY_LOOK: Duration = Duration::from_millis(10);

/// Serves a descriptor until its last copy is closed.
pub async fn serve(
    host: Arc<Known>,
    mut caller: Caller,
    unix: AsyncFd<Unix>,
    name: Vec<u8>,
    form: Form,
) {
    let mut buffer = vec![0; HEADER + LARGEST_PIECE];
    let first = unix.async_io(Interest::READABLE, |mut unix: &Unix| {
        io::Read::read(&mut unix, &mut buffer)
    });
    let Ok(length) = caller.hear(first).await else {
        return;
    };
    let Some(incoming) = frame::of_hello(&buffer[..length]) else {
        tracing::warn!("a connection that said no hello");
        return;
    };
    if !caller.is_welcome(&host, &buffer[HEADER..length]) {
        return;
    }
    if !caller.has_room {
        host.refuse(name, incoming);
        return;
    }
    let socket = Arc::new(Socket::new(&host, name.clone(), unix, form));
    if incoming != 0 && !adopt(&host, &socket, incoming).await {
        return;
    }
    host.table()
        .sockets
        .insert(name.clone(), Arc::clone(&socket));
    host.appeared.notify_waiters();
    outwards(&host, &socket, &mut buffer, host.config.max_message_size).await;
    // A task that is delivering data may be the one that learns of unread messages.
    drop(socket.turn.lock().await);
    leave(&host, &socket);
}

/// Moves an association that waits to be accepted or was peeled off to this socket.
async fn adopt(host: &Arc<Known>, socket: &Arc<Socket>, number: u32) -> bool {
    let (Coming { link, waiting, .. }, from) = {
        let mut table = host.table();
        let Some(coming) = table.incoming.remove(&number) else {
            return false;
        };
        // Options of the other socket apply to the new one.
        let from = table.sockets.get(&coming.from).cloned();
        (coming, from)
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
        state.links.insert(number, Arc::clone(&link));
        state.phase = Phase::Connected;
        state.peer = link.peer();
    }
    for (frame, payload) in &waiting {
        // They fitted into the other socket.
        let _ = socket.give(frame, payload).await;
    }
    link.belong(socket);
    // A peeled-off association is served already.
    if socket.form.style == Style::OneToOne
        && let Some(association) = link.association()
    {
        tokio::spawn(inwards(link, association));
    }
    true
}

/// Makes the association the socket's.
pub fn attach(host: &Arc<Known>, socket: &Arc<Socket>, link: &Arc<Link>, association: Association) {
    host.watch(link, association.clone());
    link.rise(association.clone());
    super::effects::apply_all(link);
    let closed = {
        let mut state = socket.state();
        state.links.insert(link.number, Arc::clone(link));
        state.peer = link.peer();
        state.closed
    };
    link.belong(socket);
    if closed {
        // The program has already closed the socket.
        association.abort("");
        return;
    }
    tokio::spawn(inwards(Arc::clone(link), association));
    match socket.form.style {
        Style::OneToMany => many::work(host, socket, link),
        _ => socket.enter(Phase::Connected),
    }
}

/// Cleans up after the last descriptor was closed.
fn leave(host: &Known, socket: &Socket) {
    let mut table = host.table();
    table.sockets.remove(&socket.name);
    let mut orphans = Vec::new();
    table.incoming.retain(|_, coming| {
        let stays = coming.from != socket.name;
        if !stays {
            orphans.push(Arc::clone(&coming.link));
        }
        stays
    });
    for place in &mut table.places {
        place.sockets.retain(|it| it.name != socket.name);
        place.set_backlog();
    }
    drop(table);
    for link in orphans {
        // No socket can accept it any more, so its peer gets an ABORT, as with Linux.
        if let Some(association) = link.association() {
            association.abort("");
        }
        link.end();
    }
    let (links, linger, port) = {
        let mut state = socket.state();
        state.closed = true;
        state.phase = Phase::Failed;
        state.endpoint = None;
        let links = std::mem::take(&mut state.links);
        // Like Linux, aborts to inform the peer that its messages were not read.
        let linger = match state.unread {
            true => Some(0),
            false => state.options.linger(),
        };
        (links, linger, state.port.take())
    };
    for link in links.into_values() {
        match (linger, link.association()) {
            // RFC 6458 §8.1.4: a linger time of 0 aborts.
            (Some(0), Some(association)) => association.abort(""),
            (_, _) if socket.form.is_one_to_many() => {
                // After the queued messages.
                link.jobs.ask(Job::Close);
            }
            (linger, Some(association)) => {
                let within = linger.map(|it| Duration::from_secs(u64::from(it)));
                association.start_shutdown(Some(within.unwrap_or(host.config.linger)));
            }
            (_, None) => link.end(),
        }
    }
    if let Some(port) = port {
        host.give_port_back(port);
    }
    host.ended.notify_waiters();
}

/// Forwards the program's messages to their associations. A message of more than `most` bytes is
/// refused by the association, and the rest of it is not buffered.
async fn outwards(host: &Arc<Known>, socket: &Arc<Socket>, buffer: &mut [u8], most: usize) {
    let mut whole = Vec::new();
    loop {
        let length = match socket.take(buffer).await {
            Ok(length @ 1..) => length,
            Ok(0) | Err(_) => return,
        };
        let Some(frame) = Frame::decode(&buffer[..length]) else {
            continue;
        };
        let one = match socket.form.style {
            Style::OneToMany => None,
            // A listening socket stays one.
            _ if socket.state().phase == Phase::Listening => return socket.left().await,
            _ => match socket.connected().await {
                Some(link) => Some(link),
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
            Some(link) => {
                // Messages that were queued when it was peeled off are sent first.
                link.jobs.all_done().await;
                if let Some(bytes) = send_at_once(&link, &frame, bytes)
                    && let Some(association) = link.up().await
                {
                    send(&link, &association, &frame, bytes).await;
                }
            }
            None => {
                let links = many::of_frame(host, socket, &frame);
                if links.is_empty() {
                    many::lost(socket, &frame, &bytes).await;
                }
                for link in links {
                    send_or_wait(&link, &frame, bytes.clone());
                    link.jobs.bounded(most).await;
                }
            }
        }
    }
}

/// Sends a message at once if the queue is empty and the association accepts it; otherwise queues
/// it, without blocking the other associations. SCTP_ABORT is processed immediately, and the queued
/// messages are lost.
fn send_or_wait(link: &Link, frame: &Frame, bytes: bytes::Bytes) {
    if frame.flags & frame::ABORT != 0
        && let Some(association) = link.association()
    {
        association.abort(bytes);
        return;
    }
    let left = match link.jobs.are_done() {
        true => send_at_once(link, frame, bytes),
        false => Some(bytes),
    };
    if let Some(bytes) = left {
        link.jobs.ask(Job::Message(*frame, bytes));
    }
}

/// Sends a message with its frame's options if that needs neither waiting nor closing; otherwise
/// returns it.
fn send_at_once(link: &Link, frame: &Frame, bytes: bytes::Bytes) -> Option<bytes::Bytes> {
    let more = frame::ABORT | frame::EOF | frame::IMMEDIATE;
    if frame.flags & more != 0 || bytes.is_empty() {
        return Some(bytes);
    }
    let (stream, options, wants_back) = terms(link, frame);
    let copy = wants_back.then(|| bytes.clone());
    let mut left = Some(bytes);
    let sent = link.with_association(|it| {
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
            link.sent.notify_one();
        }
    }
    link.activity.notify_one();
    None
}

/// Sends a message with its frame's options.
pub async fn send(link: &Link, association: &Association, frame: &Frame, bytes: bytes::Bytes) {
    link.activity.notify_one();
    if frame.flags & frame::ABORT != 0 {
        association.abort(bytes);
        return;
    }
    if !bytes.is_empty() {
        let (stream, options, wants_back) = terms(link, frame);
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
                link.sent.notify_one();
            }
            Err(error) => {
                tracing::debug!(%error, "message not taken");
                match (copy, error) {
                    (None, _) => (),
                    // Messages that were accepted before must be reported first.
                    (Some(bytes), SendError::Closing) => link.refused().push((*frame, bytes)),
                    (Some(bytes), _) => give_back(link, frame, &bytes).await,
                }
            }
        }
    }
    if frame.flags & frame::EOF != 0 {
        association.start_shutdown(None);
        link.advance();
    }
}

/// Passes events and messages of the association to the program that owns it.
async fn inwards(link: Arc<Link>, association: Association) {
    let status = association.status();
    let streams = status
        .as_ref()
        .map_or([0; 2], |it| [it.outstrms, it.instrms]);
    let port = status.map_or(0, |it| it.peer_port);
    let up = notification::change(Change::Up, 0, streams, link.number);
    let mut told_up = tell(&link, up).await;
    if !association.negotiated().authentication {
        let no_keys = notification::of_key(0, KeyNews::NoAuth, link.number);
        told_up = told_up.and(tell(&link, no_keys).await);
    }
    let ended = match told_up {
        Ok(()) => tokio::select! {
            outcome = pass_on(&link, &association, port) => outcome,
            never = tell_dry(&link, &association) => match never {},
        },
        Err(_) => throw_away(&association).await,
    };
    conclude(&link, &association, ended, streams).await;
}

/// Passes messages and events of the association to the program in order. If the program disabled
/// interleaving, only events are delivered between the parts of a message.
async fn pass_on(
    link: &Link,
    association: &Association,
    port: u16,
) -> Result<(), Option<AssociationError>> {
    // Stream of the partially delivered message, and whether it is unordered.
    let mut unfinished: Option<(u16, bool)> = None;
    loop {
        let output = association.next_output(unfinished.map(|it| it.0)).await;
        let given = match output {
            Ok(Some(Output::Part(part))) => {
                link.activity.notify_one();
                let whole = link.options().word(FRAGMENT_INTERLEAVE, 0) == 0;
                unfinished = (whole && !part.ends).then_some((part.stream, part.unordered));
                give(link, &part).await
            }
            Ok(Some(Output::Event(event))) => {
                unfinished = unfinished.filter(|it| !events::cuts(&event, *it));
                events::notify(link, &event, port).await
            }
            Ok(None) => return Ok(()),
            Err(lost) => return Err(Some(lost)),
        };
        if given.is_err() {
            return throw_away(association).await;
        }
    }
}

/// Discards data for a program that has shut down receiving, until the association has ended,
/// because the peer could not complete its shutdown while its messages find no buffer space.
async fn throw_away(association: &Association) -> Result<(), Option<AssociationError>> {
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
async fn tell_dry(link: &Link, association: &Association) -> std::convert::Infallible {
    loop {
        link.sent.notified().await;
        let wanted = || link.options().wants(notification::SENDER_DRY);
        let waits = |it: anabranch_net::Status| it.unackdata > 0 || it.penddata > 0;
        let freed = || !link.freed().is_empty();
        while (wanted() || freed()) && association.status().is_some_and(waits) {
            tokio::time::sleep(DRY_LOOK).await;
        }
        // The program may be gone.
        let keys = std::mem::take(&mut *link.freed());
        for key in keys {
            let free = notification::of_key(key, KeyNews::Free, link.number);
            let _ = tell(link, free).await;
        }
        let _ = tell(link, notification::dry(link.number)).await;
    }
}

/// Notifies the program of the end of its association.
async fn conclude(
    link: &Arc<Link>,
    association: &Association,
    ended: Result<(), Option<AssociationError>>,
    streams: [u16; 2],
) {
    let last = match &ended {
        Ok(()) => notification::change(Change::Down, 0, streams, link.number),
        Err(lost) => {
            let reason = association.status().and_then(|it| it.abort_reason);
            let cause = lost.as_ref().map_or(0, |it| cause_of_end(&it.0));
            match (lost, reason) {
                // Other causes are reported by number only.
                (Some(AssociationError(CloseReason::AbortedByPeer { .. })), Some(reason)) => {
                    notification::aborted(cause, &reason, streams, link.number)
                }
                _ => notification::change(Change::Lost, cause, streams, link.number),
            }
        }
    };
    let error = match &ended {
        Err(Some(lost)) => Some(of_reason(&lost.0, true)),
        _ => None,
    };
    // Recorded before the program is notified and sends requests.
    link.note_end(&association.closed().await);
    // Messages that it did not accept should be returned before its end is reported.
    let _ = tokio::time::timeout(LAST_FRAMES, link.jobs.all_done()).await;
    if let Some(socket) = link.current_owner() {
        socket.all_taken_within(LAST_FRAMES).await;
    }
    let refused = std::mem::take(&mut *link.refused());
    for (frame, bytes) in refused {
        give_back(link, &frame, &bytes).await;
    }
    let Some(socket) = tell_last(link, last).await else {
        link.end();
        return;
    };
    if socket.form.is_one_to_many() {
        link.end();
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
    link.end();
    let _ = socket.unix.get_ref().shutdown(std::net::Shutdown::Write);
}

/// Delivers a message, or a part of one.
async fn give(link: &Link, part: &MessagePart) -> io::Result<()> {
    let context = link.options().word(CONTEXT, 4);
    let flag = |on: bool, bit: u8| if on { bit } else { 0 };
    let frame = Frame {
        kind: Kind::Data,
        flags: flag(part.unordered, frame::UNORDERED) | flag(!part.ends, frame::MORE),
        stream: part.stream,
        ppid: part.ppid.to_be(),
        context,
        association: link.number,
        ssn: u32::from(part.ssn),
        tsn: part.tsn,
        cumulative_tsn: part.cumulative_tsn,
        address: link.name(),
        ..Frame::default()
    };
    let frames = in_pieces(frame, &part.bytes);
    let given = link.give(&frames).await;
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
