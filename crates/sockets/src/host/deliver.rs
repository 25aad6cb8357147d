//! Delivery of messages and events of an association to its program, from its establishment to its
//! end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anabranch_net::{Association, AssociationError, CloseReason, Event, MessagePart, Output};

use super::dtls::ProtectedMarks;
use super::notification::{self, AssocChange, AuthKeyEvent, cause_of_end};
use super::notify::{in_pieces, return_message, send_last_notification, send_notification};
use super::socket::SocketAssociation;
use super::socket::{Phase, Socket, of_reason};
use super::{HostState, events, send_worker};
use crate::SocketStyle;
use crate::frame::{self, HostFrameHeader, HostFrameKind};
use crate::options::{CONTEXT, FRAGMENT_INTERLEAVE};

/// Maximum time for which the end of an association is delayed, until the host has read all
/// messages that the program sent before.
const LAST_FRAMES_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval between two checks whether all sent data is acknowledged.
const DRY_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Makes the socket the owner of the association.
pub(super) fn attach(
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
        // Aborted, because the program has already closed the socket.
        association.abort("");
        return;
    }
    tokio::spawn(to_program(Arc::clone(assoc), association));
    match socket.socket_type.style {
        SocketStyle::OneToMany => send_worker::start(host, socket, assoc),
        _ => socket.enter(Phase::Connected),
    }
}

/// Passes events and messages of the association to the program that owns it.
pub(super) async fn to_program(assoc: Arc<SocketAssociation>, association: Association) {
    let status = association.status();
    let streams = status
        .as_ref()
        .map_or([0; 2], |it| [it.outstrms, it.instrms]);
    let port = status.map_or(0, |it| it.peer_port);
    let up = notification::begun(AssocChange::Up, &association, streams, assoc.number);
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

/// Passes messages and events of the association to the program in order. If the program has
/// disabled interleaving, only events are delivered between the parts of a message.
async fn deliver(
    assoc: &SocketAssociation,
    association: &Association,
    port: u16,
) -> Result<(), Option<AssociationError>> {
    // Stream of the message that was delivered in part, and whether it is unordered.
    let mut unfinished: Option<(u16, bool)> = None;
    let mut marks = ProtectedMarks::of(association);
    loop {
        let output = association.next_output(unfinished.map(|it| it.0)).await;
        let given = match output {
            Ok(Some(Output::Part(part))) => {
                assoc.activity.notify_one();
                let whole = assoc.options().word(FRAGMENT_INTERLEAVE, 0) == 0;
                unfinished = (whole && !part.ends).then_some((part.stream, part.unordered));
                let protected = marks.is_protected(association, &part);
                give(assoc, &part, protected).await
            }
            Ok(Some(Output::Event(event))) => {
                unfinished = unfinished.filter(|it| !events::cuts(&event, *it));
                if let Event::Restarted { .. } = event {
                    marks = ProtectedMarks::of(association);
                }
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

/// Reads and discards data after a program has shut down receiving. Otherwise the peer could not
/// complete its shutdown, because its messages would find no buffer space.
async fn discard_messages(association: &Association) -> Result<(), Option<AssociationError>> {
    loop {
        match association.recv_part().await {
            Ok(Some(_)) => (),
            Ok(None) => return Ok(()),
            Err(lost) => return Err(Some(lost)),
        }
    }
}

/// Notifies a program that has subscribed when all its data is acknowledged (RFC 6458 §6.1.9), and
/// when no more data is signed with a deactivated key (§6.1.8). The queues are polled, because the
/// association has no event for this.
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
        // Fails if the program has ended.
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
                // Only for an ABORT of the peer are the error causes of its chunk reported;
                // otherwise the notification contains just the number of the cause.
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
    // The end is recorded before the program is notified, because the next request of the program
    // must already find it.
    assoc.record_end(&association.closed().await);
    // Messages that the association did not accept are returned before its end is reported.
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
        let frame = HostFrameHeader {
            kind: HostFrameKind::Error,
            error,
            ..HostFrameHeader::default()
        };
        let _ = socket.give(&frame, &[]).await;
    }
    assoc.end();
    let _ = socket.unix.get_ref().shutdown(std::net::Shutdown::Write);
}

/// Delivers a message, or a part of one. `protected`: it arrived in protected packets only.
async fn give(assoc: &SocketAssociation, part: &MessagePart, protected: bool) -> io::Result<()> {
    let context = assoc.options().word(CONTEXT, 4);
    let flag = |on: bool, bit: u8| if on { bit } else { 0 };
    let frame = HostFrameHeader {
        kind: HostFrameKind::Data,
        flags: flag(part.unordered, frame::UNORDERED)
            | flag(!part.ends, frame::MORE)
            | flag(protected, frame::PROTECTED),
        stream: part.stream,
        ppid: part.ppid.to_be(),
        context,
        association: assoc.number,
        ssn: u32::from(part.ssn),
        tsn: part.tsn,
        cumulative_tsn: part.cumulative_tsn,
        address: assoc.name(),
        ..HostFrameHeader::default()
    };
    let frames = in_pieces(frame, &part.bytes);
    let given = assoc.give(&frames).await;
    tracing::trace!(stream = part.stream, ?given, "message given");
    given
}
