//! Data of a descriptor: forwards a program's messages to associations, from the first frame to the
//! end of the descriptor.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use socket2::Socket as Unix;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::acceptor::Caller;
use super::deliver::to_program;
use super::endpoint::apply_options;
use super::send::{send, send_at_once};
use super::send_queue::QueuedOperation;
use super::socket::SocketAssociation;
use super::socket::{Phase, Socket};
use super::{HostState, PendingTransfer, one_to_many};
use crate::frame::{self, HEADER, HostFrameHeader, HostFrameKind};
use crate::{MAX_PIECE, SocketStyle, SocketType};

/// Serves a descriptor until its last copy is closed.
pub(super) async fn serve(
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
    // Waits for a delivery in progress, because the task that delivers may be the one that detects
    // unread messages.
    drop(socket.turn.lock().await);
    leave(&host, &socket);
}

/// Moves an association to this socket, after it was accepted or peeled off.
async fn take_over(host: &Arc<HostState>, socket: &Arc<Socket>, number: u32) -> bool {
    let (PendingTransfer { assoc, waiting, .. }, from) = {
        let mut table = host.table();
        let Some(pending) = table.incoming.remove(&number) else {
            return false;
        };
        // The options of the other socket are copied.
        let from = table.sockets.get(&pending.from).cloned();
        (pending, from)
    };
    if let Some(from) = from {
        let (options, dtls, bound, port) = {
            let state = from.state();
            let dtls = state.dtls.inherited();
            (state.options.clone(), dtls, state.bound.clone(), state.port)
        };
        let mut state = socket.state();
        state.dtls = dtls;
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
        // This does not block, because the messages fitted the buffer of the other socket.
        let _ = socket.give(frame, payload).await;
    }
    assoc.set_owner(socket);
    // A peeled-off association needs no new task, because its tasks are already running.
    if socket.socket_type.style == SocketStyle::OneToOne
        && let Some(association) = assoc.association()
    {
        tokio::spawn(to_program(assoc, association));
    }
    true
}

/// Cleans up after the last copy of the descriptor was closed.
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
        let decided = place
            .sockets
            .first()
            .is_some_and(|it| it.name == socket.name);
        place.sockets.retain(|it| it.name != socket.name);
        place.set_backlog();
        if decided && let Some(next) = place.sockets.first() {
            // If this fails, the error is logged, and the former options remain.
            let _ = apply_options(host, &place.endpoint, next);
        }
    }
    drop(table);
    for assoc in orphans {
        // Like in Linux, the association is aborted, because no socket can accept it any more.
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
        // Like in Linux, associations with unread messages are aborted, so that the peer is
        // informed.
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
                // Closes after the queued messages are sent.
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

/// Maximum number of unfinished messages of a descriptor, one for each thread that sends a message
/// in several parts. If there are more, the message that got no part for the longest time is lost.
const MAX_UNFINISHED: usize = 64;

/// Messages of which some parts were read, by the sending thread. The message that got a part last
/// is at the end.
#[derive(Default)]
struct UnfinishedMessages(Vec<(u32, Vec<u8>)>);

impl UnfinishedMessages {
    /// Adds a part. At most `most + 1` bytes of a message are buffered. If it is the last part,
    /// returns the message.
    fn add(&mut self, frame: &HostFrameHeader, piece: &[u8], most: usize) -> Option<Bytes> {
        let is_first = frame.ssn == 0;
        let is_last = frame.flags & frame::MORE == 0;
        if is_first && is_last {
            return Some(Bytes::copy_from_slice(piece));
        }
        let known = self.0.iter().position(|it| it.0 == frame.tsn);
        let begun = known.map(|index| self.0.remove(index).1);
        let mut whole = match is_first {
            // An unfinished message of this thread is dropped, because its last part will never
            // arrive.
            true => Vec::new(),
            false => begun?,
        };
        whole.extend_from_slice(piece);
        whole.truncate(most + 1);
        if is_last {
            return Some(whole.into());
        }
        if self.0.len() == MAX_UNFINISHED {
            self.0.remove(0);
        }
        self.0.push((frame.tsn, whole));
        None
    }
}

/// Forwards the program's messages to their associations. A message of more than `most` bytes is
/// not buffered further, and the association refuses it.
async fn to_peer(host: &Arc<HostState>, socket: &Arc<Socket>, buffer: &mut [u8], most: usize) {
    let mut unfinished = UnfinishedMessages::default();
    loop {
        let length = match socket.take(buffer).await {
            Ok(length @ 1..) => length,
            Ok(0) | Err(_) => return,
        };
        let Some(frame) = HostFrameHeader::decode(&buffer[..length]) else {
            continue;
        };
        let one = match socket.socket_type.style {
            SocketStyle::OneToMany => None,
            // A listening socket sends no messages.
            _ if socket.state().phase == Phase::Listening => return socket.left().await,
            _ => match socket.connected().await {
                Some(assoc) => Some(assoc),
                // The message is lost. The program was notified of the error before.
                None => continue,
            },
        };
        if frame.kind != HostFrameKind::Data {
            continue;
        }
        let piece = &buffer[HEADER..length];
        let Some(bytes) = unfinished.add(&frame, piece, most) else {
            continue;
        };
        match one {
            Some(assoc) => {
                // Messages that were queued before the association was peeled off are sent first.
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

/// Sends a message immediately if the queue is empty and the association accepts it; otherwise
/// queues it, so that other associations are not blocked. SCTP_ABORT is processed immediately, and
/// discards queued messages.
fn send_or_wait(assoc: &SocketAssociation, frame: &HostFrameHeader, bytes: Bytes) {
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
/// the error.
pub(super) async fn fail(socket: &Socket, error: i32) {
    // `turn` is held until the error frame is sent and the phase is set, so that a request of a
    // program that has read the frame finds both the error and the phase.
    let _turn = socket.turn.lock().await;
    socket.state().error = error;
    let frame = HostFrameHeader {
        kind: HostFrameKind::Error,
        error,
        ..HostFrameHeader::default()
    };
    let _ = socket.give(&frame, &[]).await;
    socket.enter(Phase::Failed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frame of a part of a message.
    fn piece_of(thread: u32, number: u32, is_last: bool) -> HostFrameHeader {
        HostFrameHeader {
            flags: if is_last { 0 } else { frame::MORE },
            tsn: thread,
            ssn: number,
            ..HostFrameHeader::default()
        }
    }

    #[test]
    fn pieces_of_several_threads_are_kept_apart() {
        let mut unfinished = UnfinishedMessages::default();
        let mut add = |thread, number, is_last, text: &str| {
            let frame = piece_of(thread, number, is_last);
            let whole = unfinished.add(&frame, text.as_bytes(), 8);
            whole.map(|it| String::from_utf8_lossy(&it).into_owned())
        };
        assert_eq!(add(7, 0, false, "one"), None);
        assert_eq!(add(9, 0, false, "two"), None);
        assert_eq!(add(0, 0, true, "single"), Some("single".into()));
        assert_eq!(add(7, 1, true, " end"), Some("one end".into()));
        assert_eq!(add(9, 1, false, " longer than eight"), None);
        assert_eq!(add(9, 2, true, "end"), Some("two longe".into()));
        // Two messages are lost: one whose thread begins another message before the last part, and
        // one without its first part.
        assert_eq!(add(7, 0, false, "lost"), None);
        assert_eq!(add(7, 0, false, "new"), None);
        assert_eq!(add(7, 1, true, "er"), Some("newer".into()));
        assert_eq!(add(8, 1, true, "end"), None);
    }

    #[test]
    fn unfinished_messages_are_bounded() {
        let mut unfinished = UnfinishedMessages::default();
        let last = 10 * MAX_UNFINISHED as u32;
        for thread in 1..=last {
            let whole = unfinished.add(&piece_of(thread, 0, false), b"piece", 8);
            assert_eq!(whole, None);
        }
        assert_eq!(unfinished.0.len(), MAX_UNFINISHED);
        // Unfinished messages of threads that ended do not affect later messages.
        let whole = unfinished.add(&piece_of(last, 1, true), b"end", 8);
        assert_eq!(whole.as_deref(), Some(&b"pieceend"[..]));
        assert_eq!(unfinished.add(&piece_of(1, 1, true), b"end", 8), None);
    }
}
