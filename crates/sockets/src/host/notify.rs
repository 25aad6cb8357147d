//! Sending of notifications to a program, and return of its unsent messages.

use std::io;
use std::sync::Arc;

use anabranch_net::SendOptions;

use super::notification::{self, Notification, cause_of_end};
use super::send_queue::QueuedOperation;
use super::socket::Socket;
use super::socket::SocketAssociation;
use crate::MAX_PIECE;
use crate::frame::{self, HostFrameHeader, HostFrameKind};
use crate::options::{DEFAULT_PRINFO, DEFAULT_SEND_PARAM};

/// Notifies the program of a message that the association did not accept.
pub(super) async fn return_message(
    assoc: &SocketAssociation,
    frame: &HostFrameHeader,
    bytes: &[u8],
) {
    let cause = assoc.reason().map_or(0, |it| cause_of_end(&it));
    let (stream, options, _) = send_parameters(assoc, frame);
    let message = HostFrameHeader {
        stream,
        flags: u8::from(options.unordered),
        ppid: options.ppid.to_be(),
        context: options.context(),
        association: assoc.number,
        ..HostFrameHeader::default()
    };
    for failed in notification::not_sent(&message, bytes, cause) {
        // Fails if the program has ended.
        let _ = send_notification(assoc, failed).await;
    }
}

/// Returns the stream, the send options, and whether the message should be returned to the program
/// if it cannot be sent.
pub(super) fn send_parameters(
    assoc: &SocketAssociation,
    frame: &HostFrameHeader,
) -> (u16, SendOptions, bool) {
    let (mut stream, mut unordered, mut ppid) = (
        frame.stream,
        frame.flags & frame::UNORDERED != 0,
        frame.ppid,
    );
    let mut context = frame.context;
    let (mut policy, mut value) = (frame.policy, frame.value);
    let defaults = assoc.options();
    if frame.flags & frame::DEFAULT != 0 {
        // struct sctp_sndrcvinfo: stream at 0, flags at 4, ppid at 8, context at 12.
        stream = defaults.short(DEFAULT_SEND_PARAM, 0);
        unordered = defaults.short(DEFAULT_SEND_PARAM, 4) & 1 != 0;
        ppid = defaults.word(DEFAULT_SEND_PARAM, 8);
        context = defaults.word(DEFAULT_SEND_PARAM, 12);
    }
    if frame.flags & frame::DEFAULT_POLICY != 0 {
        // struct sctp_default_prinfo: value at 4, policy at 8.
        policy = defaults.short(DEFAULT_PRINFO, 8);
        value = defaults.word(DEFAULT_PRINFO, 4);
    }
    let address = frame.address.filter(|_| frame.over);
    let mut options = SendOptions::default()
        .with_ppid(u32::from_be(ppid))
        .with_unordered(unordered)
        .with_address(address.map(|it| it.ip()))
        .with_key(frame.key)
        .with_context(context);
    match policy {
        // The API uses milliseconds, the protocol nanoseconds.
        0x10 if value > 0 => options = options.with_lifetime(Some(u64::from(value) * 1_000_000)),
        0x20 => options = options.with_max_retransmits(Some(value)),
        0x30 => options = options.with_priority(Some(value)),
        _ => (),
    }
    let wants_back = [notification::SEND_FAILED, notification::SEND_FAILED_EVENT];
    let wants_back = wants_back.iter().any(|&it| defaults.wants(it));
    (stream, options, wants_back)
}

/// Returns to the program the messages that were queued for an association whose setup failed.
pub(super) async fn return_queued(assoc: &SocketAssociation) {
    let Some(mut left) = assoc.send_queue.take() else {
        return;
    };
    while let Ok(job) = left.try_recv() {
        if let QueuedOperation::Message(frame, bytes) = job
            && !bytes.is_empty()
        {
            return_message(assoc, &frame, &bytes).await;
        }
    }
}

/// Sends the last notification of an association if the program has subscribed to it; returns the
/// socket that owns or owned the association. Requests after the notification must find the
/// association gone, and no receive request is answered in between.
pub(super) async fn send_last_notification(
    assoc: &SocketAssociation,
    (kind, bytes): Notification,
) -> Option<Arc<Socket>> {
    loop {
        let socket = assoc.owner().await?;
        let turn = socket.turn.lock().await;
        if !assoc.is_owned_by(&socket) {
            // The association was peeled off meanwhile, so its new owner is notified.
            continue;
        }
        socket.state().assocs.remove(&assoc.number);
        socket.advance();
        if assoc.options().wants(kind) {
            // Fails if the program has ended, or if the descriptor is full of unread data.
            for (frame, piece) in in_pieces(notification_header(assoc), &bytes) {
                let _ = socket.give(&frame, piece).await;
            }
        }
        drop(turn);
        return Some(socket);
    }
}

/// Frame header of a notification.
fn notification_header(assoc: &SocketAssociation) -> HostFrameHeader {
    HostFrameHeader {
        kind: HostFrameKind::Notification,
        association: assoc.number,
        address: assoc.name(),
        ..HostFrameHeader::default()
    }
}

/// Sends a notification if the program has subscribed to it.
pub(super) async fn send_notification(
    assoc: &SocketAssociation,
    (kind, bytes): Notification,
) -> io::Result<()> {
    if !assoc.options().wants(kind) {
        return Ok(());
    }
    assoc
        .give(&in_pieces(notification_header(assoc), &bytes))
        .await
}

/// Splits a message or a notification into frames, which all have the same header fields.
pub(super) fn in_pieces(frame: HostFrameHeader, bytes: &[u8]) -> Vec<(HostFrameHeader, &[u8])> {
    let mut pieces = bytes.chunks(MAX_PIECE).peekable();
    let mut frames = Vec::with_capacity(1);
    while let Some(piece) = pieces.next() {
        let mut frame = frame;
        if pieces.peek().is_some() {
            frame.flags |= frame::MORE | frame::FOLLOWS;
        }
        frames.push((frame, piece));
    }
    frames
}
