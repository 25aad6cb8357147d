//! Notifications to a program, and return of its unsent messages.

use std::io;
use std::sync::Arc;

use anabranch_net::SendOptions;

use super::jobs::Job;
use super::link::Link;
use super::notification::{self, Notification, cause_of_end};
use super::socket::Socket;
use crate::LARGEST_PIECE;
use crate::frame::{self, Frame, Kind};
use crate::options::{DEFAULT_PRINFO, DEFAULT_SEND_PARAM};

/// Notifies the program of a message that the association did not accept.
pub async fn give_back(link: &Link, frame: &Frame, bytes: &[u8]) {
    let cause = link.reason().map_or(0, |it| cause_of_end(&it));
    let (stream, options, _) = terms(link, frame);
    let message = Frame {
        stream,
        flags: u8::from(options.unordered),
        ppid: options.ppid.to_be(),
        context: options.context,
        association: link.number,
        ..Frame::default()
    };
    for failed in notification::not_sent(&message, bytes, cause) {
        // The program may be gone.
        let _ = tell(link, failed).await;
    }
}

/// The stream, the send options, and whether the program wants the message back if it cannot be
/// sent.
pub fn terms(link: &Link, frame: &Frame) -> (u16, SendOptions, bool) {
    let (mut stream, mut unordered, mut ppid) = (
        frame.stream,
        frame.flags & frame::UNORDERED != 0,
        frame.ppid,
    );
    let mut context = frame.context;
    let (mut policy, mut value) = (frame.policy, frame.value);
    let defaults = link.options();
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
        // Milliseconds in the API, nanoseconds in the protocol.
        0x10 if value > 0 => options = options.with_lifetime(Some(u64::from(value) * 1_000_000)),
        0x20 => options.max_retransmits = Some(value),
        0x30 => options.priority = Some(value),
        _ => (),
    }
    let wants_back = [notification::SEND_FAILED, notification::SEND_FAILED_EVENT];
    let wants_back = wants_back.iter().any(|&it| defaults.wants(it));
    (stream, options, wants_back)
}

/// Returns to the program the messages that waited for an association that could not be set up.
pub async fn jobs_back(link: &Link) {
    let Some(mut left) = link.jobs.take() else {
        return;
    };
    while let Ok(job) = left.try_recv() {
        if let Job::Message(frame, bytes) = job
            && !bytes.is_empty()
        {
            give_back(link, &frame, &bytes).await;
        }
    }
}

/// Sends the last notification, if the program subscribed to it, and returns the socket that owns
/// or owned the association. Requests that the program sends after the notification should find the
/// association gone, and a waiting receive is not answered in between.
pub async fn tell_last(link: &Link, (kind, bytes): Notification) -> Option<Arc<Socket>> {
    loop {
        let socket = link.owner().await?;
        let turn = socket.turn.lock().await;
        if !link.is_of(&socket) {
            // It was peeled off meanwhile.
            continue;
        }
        socket.state().links.remove(&link.number);
        socket.advance();
        if link.options().wants(kind) {
            // The program may be gone, or the descriptor full of unread data.
            for (frame, piece) in in_pieces(notice(link), &bytes) {
                let _ = socket.give(&frame, piece).await;
            }
        }
        drop(turn);
        return Some(socket);
    }
}

/// Frame header of a notification.
fn notice(link: &Link) -> Frame {
    Frame {
        kind: Kind::Notification,
        association: link.number,
        address: link.name(),
        ..Frame::default()
    }
}

/// Sends a notification, if the program subscribed to it.
pub async fn tell(link: &Link, (kind, bytes): Notification) -> io::Result<()> {
    if !link.options().wants(kind) {
        return Ok(());
    }
    link.give(&in_pieces(notice(link), &bytes)).await
}

/// Splits a message or a notification into frames, which all have the same header fields.
pub fn in_pieces(frame: Frame, bytes: &[u8]) -> Vec<(Frame, &[u8])> {
    let mut pieces = bytes.chunks(LARGEST_PIECE).peekable();
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
