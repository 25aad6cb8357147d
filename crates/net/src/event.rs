//! Logging of events.

use anabranch_sctp::Event;
use tracing::Span;

/// Logs an event, but not the user data that it may contain.
pub(crate) fn log(span: &Span, event: &Event) {
    match event {
        Event::MessageAbandoned(it) => {
            let (stream, policy) = (it.stream, it.policy);
            tracing::debug!(parent: span, ?stream, ?policy, "message given up");
        }
        Event::MessageUndelivered(it) => {
            let (stream, cause, sent) = (it.stream, &it.cause, it.sent);
            tracing::debug!(parent: span, ?stream, ?cause, sent, "message not delivered");
        }
        event => tracing::debug!(parent: span, ?event, "association event"),
    }
}
