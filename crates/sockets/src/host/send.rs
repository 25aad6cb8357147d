//! Sending of a program's messages over an association.

use anabranch_net::{Association, SendError, TrySendError};

use super::notify::{return_message, send_parameters};
use super::socket::SocketAssociation;
use crate::frame::{self, HostFrameHeader};

/// Sends a message with the options of its frame, if that requires neither waiting nor closing the
/// association. Otherwise returns the message, which was not sent.
pub(super) fn send_at_once(
    assoc: &SocketAssociation,
    frame: &HostFrameHeader,
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
            // The program wants undelivered messages back, so the message is sent by [`send`],
            // which can wait.
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

/// Sends a message with the options of its frame.
pub(super) async fn send(
    assoc: &SocketAssociation,
    association: &Association,
    frame: &HostFrameHeader,
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
                    // Stored, because messages that were accepted before have to be reported first.
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
