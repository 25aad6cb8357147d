//! What an association tells beside its messages.

use std::net::IpAddr;

use anabranch_sctp::{
    AbandonPolicy, AddressChange, AddressChangeOutcome, Event, PathState, ReconfigOutcome,
    StreamDirection, UndeliveredCause,
};
use bytes::Bytes;
use tracing::Span;

/// A notification (RFC 9260 §11.2; RFC 6458 §6 has the same under other names).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AssociationEvent {
    /// The peer's address answers: it was confirmed, or came back (SCTP_ADDR_CONFIRMED, SCTP_ADDR_AVAILABLE).
    PathUp(IpAddr),
    /// The peer's address does not answer any more (SCTP_ADDR_UNREACHABLE).
    PathDown(IpAddr),
    /// The peer's address missed so many answers that new data goes elsewhere while it is asked on (RFC 7829 §4).
    PathPotentiallyFailed(IpAddr),
    /// New data goes to this address from now on (SCTP_ADDR_MADE_PRIM).
    PrimaryChanged(IpAddr),
    /// The peer lost its state and set the association up anew (SCTP_RESTART). What it had not acknowledged is lost.
    Restarted {
        /// Messages of ours, queued or unacknowledged, were given up.
        data_lost: bool,
    },
    /// The peer reported an error and goes on (SCTP_REMOTE_ERROR).
    PeerError {
        /// The cause's code (RFC 9260 §3.3.10).
        cause: u16,
    },
    /// A message of the peer's, of which a part was delivered or could be, will not come to its end
    /// (SCTP_PARTIAL_DELIVERY_EVENT): the association ended or began again.
    PartialDeliveryAborted {
        /// The message's stream.
        stream: u16,
        /// It was unordered.
        unordered: bool,
        /// Its number in the stream; meaningless if unordered.
        ssn: u16,
        /// The TSN of its first fragment, which tells unordered messages of a stream apart.
        first_tsn: u32,
        /// Its Payload Protocol Identifier.
        ppid: u32,
    },
    /// A message was given up by the policy it was sent with (SCTP_SEND_FAILED_EVENT): see
    /// [`SendOptions`](crate::SendOptions).
    MessageAbandoned {
        /// Its stream; `None` for one that was given without a stream and never begun.
        stream: Option<u16>,
        /// Its Payload Protocol Identifier.
        ppid: u32,
        /// It was unordered.
        unordered: bool,
        /// The user data, whole.
        bytes: Bytes,
        /// The user's own name for it ([`SendOptions::context`](crate::SendOptions::context)).
        context: u32,
        /// The policy by which it was given up.
        policy: AbandonPolicy,
        /// Some of it was sent. If that was all of it, it may have reached the peer all the same.
        sent: bool,
    },
    /// A message was not acknowledged and will not be sent any more, since the association has ended or the peer began it again
    /// (SCTP_SEND_FAILED_EVENT). There is one for each such message, before the end is told.
    MessageUndelivered {
        /// Its stream; `None` for one that was given without a stream and never begun.
        stream: Option<u16>,
        /// Its Payload Protocol Identifier.
        ppid: u32,
        /// It was unordered.
        unordered: bool,
        /// The user data, whole.
        bytes: Bytes,
        /// The user's own name for it ([`SendOptions::context`](crate::SendOptions::context)).
        context: u32,
        /// Why.
        cause: UndeliveredCause,
        /// Some of it was sent. If that was all of it, it may have reached the peer all the same.
        sent: bool,
    },
    /// Streams begin anew with number 0, or do not although that was wished (SCTP_STREAM_RESET_EVENT). When a stream that comes from the
    /// peer begins anew, all messages before it can be read.
    StreamsReset {
        /// Which way they go.
        direction: StreamDirection,
        /// Which streams; none: all.
        streams: Vec<u16>,
        /// What became of it.
        outcome: ReconfigOutcome,
    },
    /// All numbers begin anew, or do not although that was wished (SCTP_ASSOC_RESET_EVENT).
    AssociationReset {
        /// The TSN of the next chunk of this side.
        local_tsn: u32,
        /// The TSN of the peer's next chunk.
        remote_tsn: u32,
        /// What became of it.
        outcome: ReconfigOutcome,
    },
    /// Streams were added, or were not although that was wished (SCTP_STREAM_CHANGE_EVENT).
    StreamsAdded {
        /// Streams this side may send on now.
        outbound_streams: u16,
        /// Streams the peer may send on now.
        inbound_streams: u16,
        /// What became of it.
        outcome: ReconfigOutcome,
    },
    /// The peer has said in the handshake what the layer above it is, in the applications' own numbers (SCTP_ADAPTATION_INDICATION;
    /// `sctp.adaptation_layer`).
    AdaptationIndication(u32),
    /// The peer has added an address (SCTP_ADDR_ADDED); [`AssociationEvent::PathUp`] tells when it answers.
    PeerAddressAdded(IpAddr),
    /// The peer has deleted an address (SCTP_ADDR_REMOVED).
    PeerAddressRemoved(IpAddr),
    /// A change of this host's addresses is settled ([`Association::change_addresses`](crate::Association::change_addresses)).
    AddressChanged {
        /// What was wished.
        change: AddressChange,
        /// What became of it.
        outcome: AddressChangeOutcome,
    },
    /// The peer authenticates with another key from now on (SCTP_AUTHENTICATION_EVENT).
    PeerAuthKey {
        /// The key's identifier.
        key_id: u16,
    },
    /// Messages given before the association was up were on streams that the peer did not grant; they are lost.
    SendFailed {
        /// How many.
        messages: usize,
    },
    /// The peer wants to close: nothing more can be sent, what is queued still goes out (SCTP_SHUTDOWN_EVENT).
    PeerShutdown,
    /// The stream allocation wants more streams than were negotiated.
    StreamLimitMet {
        /// Streams negotiated outwards.
        outbound_streams: u16,
    },
    /// So many events were dropped here, since nobody took them.
    Missed(u64),
}

/// Logs an event, without the user data that it may hold.
pub(crate) fn log(span: &Span, event: &AssociationEvent) {
    match event {
        AssociationEvent::MessageAbandoned { stream, policy, .. } => {
            tracing::debug!(parent: span, ?stream, ?policy, "message given up");
        }
        AssociationEvent::MessageUndelivered {
            stream,
            cause,
            sent,
            ..
        } => tracing::debug!(parent: span, ?stream, ?cause, sent, "message not delivered"),
        event => tracing::debug!(parent: span, ?event, "association event"),
    }
}

/// The event as users see it; `None` for what they learn in another way.
pub(crate) fn translate(event: Event) -> Option<AssociationEvent> {
    Some(match event {
        Event::PathChanged { address, state, .. } => match state {
            PathState::Active => AssociationEvent::PathUp(address),
            PathState::Inactive => AssociationEvent::PathDown(address),
            PathState::PotentiallyFailed => AssociationEvent::PathPotentiallyFailed(address),
            PathState::Unconfirmed => return None,
        },
        Event::PrimaryChanged { address, .. } => AssociationEvent::PrimaryChanged(address),
        Event::Restarted { data_lost } => AssociationEvent::Restarted { data_lost },
        Event::PartialDeliveryAborted {
            stream,
            unordered,
            ssn,
            first_tsn,
            ppid,
        } => AssociationEvent::PartialDeliveryAborted {
            stream,
            unordered,
            ssn: ssn.0,
            first_tsn: first_tsn.0,
            ppid,
        },
        Event::MessageAbandoned(message) => AssociationEvent::MessageAbandoned {
            stream: message.stream,
            ppid: message.ppid,
            unordered: message.unordered,
            bytes: message.payload,
            context: message.context,
            policy: message.policy,
            sent: message.sent,
        },
        Event::MessageUndelivered(message) => AssociationEvent::MessageUndelivered {
            stream: message.stream,
            ppid: message.ppid,
            unordered: message.unordered,
            bytes: message.payload,
            context: message.context,
            cause: message.cause,
            sent: message.sent,
        },
        Event::StreamsReset {
            direction,
            streams,
            outcome,
        } => AssociationEvent::StreamsReset {
            direction,
            streams,
            outcome,
        },
        Event::AssociationReset {
            local_tsn,
            remote_tsn,
            outcome,
        } => AssociationEvent::AssociationReset {
            local_tsn: local_tsn.0,
            remote_tsn: remote_tsn.0,
            outcome,
        },
        Event::StreamsAdded {
            outbound_streams,
            inbound_streams,
            outcome,
        } => AssociationEvent::StreamsAdded {
            outbound_streams,
            inbound_streams,
            outcome,
        },
        Event::PeerAddressAdded { address, .. } => AssociationEvent::PeerAddressAdded(address),
        Event::AddressChanged { change, outcome } => {
            AssociationEvent::AddressChanged { change, outcome }
        }
        Event::PeerAddressRemoved { address, .. } => AssociationEvent::PeerAddressRemoved(address),
        Event::AdaptationIndication { indication } => {
            AssociationEvent::AdaptationIndication(indication)
        }
        Event::PeerAuthKey { key_id } => AssociationEvent::PeerAuthKey { key_id },
        Event::PeerError { cause } => AssociationEvent::PeerError { cause },
        Event::SendFailed { messages } => AssociationEvent::SendFailed { messages },
        Event::StreamLimitMet { outbound_streams } => {
            AssociationEvent::StreamLimitMet { outbound_streams }
        }
        Event::PeerShutdown => AssociationEvent::PeerShutdown,
        Event::Missed { events } => AssociationEvent::Missed(events),
        Event::Established { .. } | Event::Readable | Event::Closed(_) => return None,
        // One that was added to the protocol, and not yet to `AssociationEvent`.
        _ => return None,
    })
}
