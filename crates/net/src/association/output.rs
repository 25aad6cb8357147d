//! Reading messages and events of an association in one common order, or events alone.

use anabranch_sctp::{self as sctp, Association as Protocol, Event, Interest};

use super::Association;
use crate::endpoint_state::Phase;
use crate::error::AssociationError;
use crate::message::MessagePart;

/// An output of an association: message data or an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A message, or a part of one.
    Part(MessagePart),
    /// An event.
    Event(Event),
}

/// Events that are returned to users. Establishment and the end of the association are reported by
/// other methods, and receipts by their futures.
const EVENTS: Interest = Interest::EVENTS.without(Interest::RECEIPTS);

impl Association {
    /// The next message or part ([`Association::recv_part`]) or event
    /// ([`Association::next_event`]), in the order of delivery: an event follows the messages that
    /// could be read before it occurred, and precedes the messages that could be read later. `None`
    /// if the association was shut down gracefully and everything was read.
    ///
    /// With a `stream`: returns only messages of that stream, events that abort one of its
    /// messages, and events without unread messages before them.
    ///
    /// If several tasks wait, each message or event is returned to only one of them.
    ///
    /// Cancel-safe: if the future is dropped, nothing is lost.
    ///
    /// # Errors
    /// The association was aborted or has failed. Everything that was queued before is returned
    /// first.
    pub async fn next_output(
        &self,
        stream: Option<u16>,
    ) -> Result<Option<Output>, AssociationError> {
        let outputs = Interest::PARTS.and(EVENTS);
        let outputs = stream.map_or(outputs, |stream| outputs.on(stream));
        self.next_read(|it, state| it.poll_read(state, |protocol| next_of(protocol, outputs)))
            .await
    }

    /// The next event, even if messages wait before it; `None` if the association is closed and
    /// every event was read. At most 256 events are queued, not counting undelivered messages. If
    /// more occur, the oldest are dropped, and [`Event::Missed`] reports their number.
    ///
    /// Cancel-safe: if the future is dropped, no event is lost.
    pub async fn next_event(&self) -> Option<Event> {
        loop {
            let mut notified = std::pin::pin!(self.signals.event.notified());
            notified.as_mut().enable();
            if let Some(known) = self.poll_event() {
                return known;
            }
            notified.await;
        }
    }

    /// The next event: `Some(None)` if there will be no more events, `None` if there is none at
    /// present.
    fn poll_event(&self) -> Option<Option<Event>> {
        let mut state = self.shared.lock();
        let association = state.endpoint.association_mut(self.id);
        if let Some(Output::Event(event)) = association.and_then(|it| next_of(it, EVENTS)) {
            return Some(Some(event));
        }
        match state.entries.get(&self.id).map(|entry| &entry.phase) {
            Some(Phase::Opening | Phase::Up) => None,
            Some(Phase::Closed(_)) | None => Some(None),
        }
    }
}

/// The next output among `outputs`, converted to the type for users.
fn next_of(protocol: &mut Protocol, outputs: Interest) -> Option<Output> {
    loop {
        let part = match protocol.poll_output(outputs)? {
            sctp::Output::Event(Event::Established { .. } | Event::Closed(_)) => continue,
            sctp::Output::Event(event) => return Some(Output::Event(event)),
            sctp::Output::Message(message) => message.into(),
            sctp::Output::MessagePart(part) => part,
            // `outputs` does not request these.
            sctp::Output::Writable | sctp::Output::Sent { .. } => continue,
        };
        let cumulative = protocol.cumulative_tsn();
        return Some(Output::Part(MessagePart::new(part, cumulative)));
    }
}

impl Association {
    /// The next message or part of `stream`.
    pub(super) fn poll_part_on(protocol: &mut Protocol, stream: u16) -> Option<MessagePart> {
        match next_of(protocol, Interest::PARTS.on(stream))? {
            Output::Part(part) => Some(part),
            Output::Event(_) => None,
        }
    }
}
