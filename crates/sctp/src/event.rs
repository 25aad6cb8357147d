//! Events of an association for its user (RFC 9260 §11.2).

use std::fmt;
use std::net::IpAddr;

use anabranch_dtls::PeerIdentity;
use anabranch_wire::cause;
use anabranch_wire::serial::{Ssn, Tsn};

use crate::asconf::{AddressChange, AddressChangeOutcome};
use crate::association_state::AssociationState;
use crate::dtls_chunk::KeyAgreement;
use crate::path::{PathId, PathState};
use crate::pr_sctp::AbandonedMessage;
use crate::reconfig::{ReconfigOutcome, StreamDirection};
use crate::tx::{DeliveryStatus, Returned};
use bytes::Bytes;

/// Notification to the user of an association. The type is exhaustive, so that a new event causes a
/// compiler error in users that match all events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete (RFC 9260 §11.2 E). Occurs once, before any message.
    Established {
        /// Number of outbound streams.
        outbound_streams: u16,
        /// Number of inbound streams.
        inbound_streams: u16,
    },
    /// A path changed its state (RFC 9260 §11.2 C).
    PathChanged {
        /// Path number in this association.
        path: PathId,
        /// Address of the peer on this path.
        address: IpAddr,
        /// New state.
        state: PathState,
    },
    /// The primary path changed: by the user's choice
    /// ([`Association::set_primary`](crate::Association::set_primary)), because the loss rate of
    /// the old path was too high (RSCTP's `rsctp_path_switch`), or because of too many consecutive
    /// errors on the old path
    /// ([`Config::primary_switchover_max_retrans`](crate::Config::primary_switchover_max_retrans),
    /// RFC 7829 §5).
    PrimaryChanged {
        /// Path number in this association.
        path: PathId,
        /// Address of the peer on this path.
        address: IpAddr,
    },
    /// The peer lost its state and restarted the association (RFC 9260 §11.2 G, §5.2.4.1).
    /// Unacknowledged messages of this side are lost, and stream sequence numbers restart at 0.
    /// Received messages stay readable, up to the size of the receive buffer. They are discarded if
    /// the peer restarted from an unverified address (RFC 9260 §5.4), because that address may
    /// belong to another host.
    Restarted {
        /// Whether queued or unacknowledged messages of this side were lost.
        data_lost: bool,
    },
    /// The peer reported an error by an ERROR chunk; the association continues (RFC 9260 §11.2 F).
    PeerError {
        /// Code of the error cause (RFC 9260 §3.3.10).
        cause: u16,
    },
    /// The association is established, and the user must install keys
    /// ([`ProtectionMut::install_send_keys`]). To negotiate them, the user exchanges messages with
    /// the payload protocol identifier 4242. [`Event::Established`] follows when protection is
    /// required ([`ProtectionMut::require`]). Occurs only with the setting `security` and without a
    /// configured key management.
    ///
    /// [`ProtectionMut::install_send_keys`]: crate::ProtectionMut::install_send_keys
    /// [`ProtectionMut::require`]: crate::ProtectionMut::require
    KeysRequired(Box<KeyAgreement>),
    /// New restart keys must be stored
    /// ([`Protection::restart_keys`](crate::Protection::restart_keys)).
    RestartKeys,
    /// The peer has proved this identity by its certificate. Occurs before [`Event::Established`],
    /// and at each rekeying.
    PeerAuthenticated(Box<PeerIdentity>),
    /// A partially received message will not be completed, because it was abandoned, or because the
    /// association was closed or restarted (SCTP_PARTIAL_DELIVERY_EVENT, RFC 6458 §6.1.7). Precedes
    /// [`Event::Closed`] or [`Event::Restarted`].
    PartialDeliveryAborted {
        /// Stream of the message.
        stream: u16,
        /// Whether the message was unordered.
        unordered: bool,
        /// Stream sequence number; meaningless for unordered messages.
        ssn: Ssn,
        /// TSN of the first fragment, which identifies an unordered message within its stream.
        first_tsn: Tsn,
        /// Payload Protocol Identifier.
        ppid: u32,
    },
    /// Messages were dropped that had been queued before the association was established, on
    /// streams that the peer did not grant (RFC 9260 §11.2 B, §5.1.1).
    SendFailed {
        /// Number of dropped messages.
        messages: usize,
    },
    /// A message was abandoned because of its abandonment policy (RFC 3758 §3.4, RFC 7496;
    /// SCTP_SEND_FAILED_EVENT, RFC 6458 §6.1.11).
    MessageAbandoned(Box<AbandonedMessage>),
    /// A message was not acknowledged, and will not be sent any more (RFC 9260 §11.2 B;
    /// SCTP_SEND_FAILED_EVENT, RFC 6458 §6.1.11). Occurs for each such message, before
    /// [`Event::Closed`], [`Event::Restarted`] or [`Event::SendFailed`]. If the peer restarts again
    /// before the user has read all such events, only the number of further events is reported
    /// ([`Event::Missed`]).
    MessageUndelivered(Box<UndeliveredMessage>),
    /// Delivery status of a message for which the user requested it
    /// ([`SendOptions::receipt`](crate::SendOptions::receipt)). Such events are never dropped. A
    /// message whose receipt has not arrived before [`Event::Restarted`] or [`Event::Closed`] was
    /// not acknowledged.
    Receipt {
        /// Receipt number that the user gave with the message.
        number: u64,
        /// Delivery status.
        delivery: DeliveryStatus,
    },
    /// The stream sequence numbers of streams were reset to 0, or a requested reset failed
    /// (SCTP_STREAM_RESET_EVENT, RFC 6525 §6.1.1). Either the peer or this side
    /// ([`Association::reconfigure`](crate::Association::reconfigure)) requested the reset. When an
    /// inbound stream is reset, all earlier messages can already be read.
    StreamsReset {
        /// Direction of the streams.
        direction: StreamDirection,
        /// Numbers of the affected streams; empty: all streams.
        streams: Vec<u16>,
        /// Outcome of the request.
        outcome: ReconfigOutcome,
    },
    /// TSNs and stream sequence numbers of both sides were reset, or a requested reset failed
    /// (SCTP_ASSOC_RESET_EVENT, RFC 6525 §6.1.2).
    AssociationReset {
        /// Next TSN of this side.
        local_tsn: Tsn,
        /// Next TSN of the peer.
        remote_tsn: Tsn,
        /// Outcome of the request.
        outcome: ReconfigOutcome,
    },
    /// Streams were added, or a request to add streams failed (SCTP_STREAM_CHANGE_EVENT, RFC 6525
    /// §6.1.3).
    StreamsAdded {
        /// Current number of outbound streams.
        outbound_streams: u16,
        /// Current number of inbound streams.
        inbound_streams: u16,
        /// Outcome of the request.
        outcome: ReconfigOutcome,
    },
    /// The peer has sent an adaptation layer indication in the handshake
    /// (SCTP_ADAPTATION_INDICATION, RFC 6458 §6.1.6).
    AdaptationIndication {
        /// Value of the indication; the applications define its meaning.
        indication: u32,
    },
    /// The peer has added an address (SCTP_ADDR_ADDED, RFC 6458 §6.1.2), or an address became
    /// reachable again, because this side has a local address of its family again. The address is
    /// used once a HEARTBEAT has verified it.
    PeerAddressAdded {
        /// Path number in this association.
        path: PathId,
        /// Added address of the peer.
        address: IpAddr,
    },
    /// The peer has deleted an address (SCTP_ADDR_REMOVED, RFC 6458 §6.1.2), or this side no longer
    /// has a local address of its family. No further packets are sent to this address.
    PeerAddressRemoved {
        /// Path number in this association.
        path: PathId,
        /// Removed address of the peer.
        address: IpAddr,
    },
    /// A requested change of local addresses is complete
    /// ([`Association::change_addresses`](crate::Association::change_addresses)).
    AddressChanged {
        /// The requested change.
        change: AddressChange,
        /// Outcome of the change.
        outcome: AddressChangeOutcome,
    },
    /// The peer has started to authenticate with another key (SCTP_AUTHENTICATION_EVENT with
    /// SCTP_AUTH_NEW_KEY, RFC 6458 §6.1.8). The previous key can be deleted after all data
    /// authenticated with it has arrived.
    PeerAuthKey {
        /// Identifier of the new key.
        key_id: u16,
    },
    /// The adaptive stream allocation needs more streams than were negotiated, and now uses all of
    /// them. Occurs again only after fewer streams were in use.
    StreamLimitMet {
        /// Number of negotiated outbound streams.
        outbound_streams: u16,
    },
    /// The peer has requested a shutdown. No more messages can be queued; messages that are already
    /// queued are still sent (RFC 9260 §11.2 H).
    PeerShutdown,
    /// Events were dropped because the user did not read them. The oldest event is dropped if more
    /// than 256 are queued. The oldest event is also dropped if the abandoned messages, the lists
    /// of streams and the peer's names of all queued events exceed the size of the send buffer.
    /// [`Event::Established`], [`Event::Closed`], receipts and undelivered messages are not
    /// dropped, except undelivered messages of repeated restarts. This event precedes the events
    /// that are still queued.
    Missed {
        /// Number of dropped events.
        events: u64,
    },
    /// The association is closed. This is the last event. The association stays readable until it
    /// is [released](crate::Endpoint::release).
    Closed(CloseReason),
}

/// Why a message was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UndeliveredCause {
    /// The association was closed before the message was acknowledged.
    Closed(CloseReason),
    /// The peer lost its state and restarted the association.
    Restarted,
    /// The message was queued before the association was established, on a stream that the peer did
    /// not grant.
    NoSuchStream,
}

/// Message that was not acknowledged, as the user queued it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndeliveredMessage {
    /// Stream of the message; `None` if it was queued without a stream and its transmission never
    /// began.
    pub stream: Option<u16>,
    /// Payload Protocol Identifier of the message.
    pub ppid: u32,
    /// Whether the message was unordered.
    pub unordered: bool,
    /// Complete user data of the message.
    pub payload: Bytes,
    /// The user's context value ([`SendOptions::context`](crate::SendOptions::context)).
    pub context: u32,
    /// Why the message was not delivered.
    pub cause: UndeliveredCause,
    /// Whether any part of the message was sent. If `true`, the message may have reached the peer;
    /// if `false`, it has not.
    pub sent: bool,
}

impl UndeliveredMessage {
    /// Converts a message returned by the sender.
    pub(crate) fn of(returned: Returned, cause: UndeliveredCause) -> Self {
        Self {
            stream: returned.stream,
            ppid: returned.ppid,
            unordered: returned.unordered,
            payload: returned.payload,
            context: returned.context,
            cause,
            sent: returned.sent,
        }
    }
}

/// Why an association was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// Graceful shutdown by either side: all sent data was acknowledged.
    Shutdown,
    /// Aborted by the local user ([`Association::abort`](crate::Association::abort)).
    AbortedHere,
    /// Aborted by the peer.
    AbortedByPeer {
        /// Code of the first error cause, if any (RFC 9260 §3.3.10).
        cause: Option<u16>,
    },
    /// The peer violated the protocol. The ABORT that was sent contains the violation.
    PeerViolation(Violation),
    /// INIT was not answered after Max.Init.Retransmits retransmissions (RFC 9260 §5.1, T1-init).
    NoAnswer,
    /// INIT was answered, but COOKIE ECHO was not, after Max.Init.Retransmits retransmissions (RFC
    /// 9260 §5.1, T1-cookie).
    NoCookieAck,
    /// The peer reported stale cookies more than Max.Init.Retransmits times (RFC 9260 §5.2.6).
    StaleCookie,
    /// The receive buffer is full of data that cannot be delivered, although no TSN is missing,
    /// because the peer skipped stream sequence numbers. An ABORT with the cause Out of Resource
    /// was sent.
    ReceiveBufferExhausted,
    /// A message of the peer exceeds [`Config::max_message`](crate::Config::max_message), and the
    /// user reads complete messages. An ABORT with the cause Out of Resource was sent.
    MessageTooLong {
        /// Maximum length of a reassembled message in bytes.
        most: usize,
    },
    /// Another peer needed the slot of this association, because the maximum number of associations
    /// was reached and the peer's address had more than its share
    /// ([`Endpoint::set_max_associations`](crate::Endpoint::set_max_associations)). An ABORT with
    /// the cause Out of Resource was sent.
    Displaced,
    /// Association.Max.Retrans was exceeded (RFC 9260 §8.1).
    PeerUnreachable,
    /// An ICMP message reported that the peer's host does not support SCTP, or that its UDP port is
    /// closed (RFC 9260 §10, RFC 6951 §5.5).
    ProtocolUnreachable,
    /// The shutdown took longer than T5-shutdown-guard (RFC 9260 §9.2), than the user's timeout
    /// ([`Association::shutdown`](crate::Association::shutdown)), or than
    /// [`Config::drain_timeout`](crate::Config::drain_timeout).
    ShutdownTimeout,
}

impl CloseReason {
    /// Close reason of an association whose setup failed because no answer arrived in `state`.
    pub fn unanswered(state: AssociationState) -> Self {
        match state {
            AssociationState::CookieEchoed => CloseReason::NoCookieAck,
            _ => CloseReason::NoAnswer,
        }
    }

    /// Whether the association failed because the peer already has an association with the same
    /// address and SCTP port. That association uses another UDP port of the address (Restart of an
    /// Association with New Encapsulation Port, RFC 6951 §5.4) or other addresses (RFC 9260
    /// §3.3.10.11). Several hosts behind one NAT address may choose the same SCTP port, so an
    /// association from another port may succeed.
    pub fn is_port_collision(&self) -> bool {
        use cause::code::{RESTART_WITH_NEW_ADDRESSES, RESTART_WITH_NEW_UDP_PORT};
        let Self::AbortedByPeer { cause: Some(cause) } = self else {
            return false;
        };
        [RESTART_WITH_NEW_ADDRESSES, RESTART_WITH_NEW_UDP_PORT].contains(cause)
    }
}

/// Prints text that continues "the association ended: ".
impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CloseReason::Shutdown => "it was shut down",
            CloseReason::AbortedHere => "aborted here",
            CloseReason::AbortedByPeer { cause: None } => "aborted by the peer",
            CloseReason::AbortedByPeer { cause: Some(code) } => {
                write!(f, "aborted by the peer, cause {code}")?;
                return match cause::name(*code) {
                    Some(name) => write!(f, " ({name})"),
                    None => Ok(()),
                };
            }
            CloseReason::PeerViolation(violation) => {
                return write!(f, "the peer broke the protocol: {violation}");
            }
            CloseReason::NoAnswer => "the peer does not answer",
            CloseReason::NoCookieAck => "the peer answers INIT, but not COOKIE ECHO",
            CloseReason::StaleCookie => "the peer finds every cookie stale",
            CloseReason::ReceiveBufferExhausted => {
                "the peer filled the receive buffer with what cannot be delivered"
            }
            CloseReason::Displaced => "its place was needed for another peer",
            CloseReason::MessageTooLong { most } => {
                return write!(f, "a message of the peer's is larger than {most} bytes");
            }
            CloseReason::PeerUnreachable => "the peer cannot be reached any more",
            CloseReason::ProtocolUnreachable => {
                "the peer's address or UDP port takes no SCTP (ICMP: unreachable)"
            }
            CloseReason::ShutdownTimeout => "the shutdown took too long",
        })
    }
}

/// Protocol violation by the peer, because of which the association was aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// An INIT ACK without State Cookie (RFC 9260 §3.3.3).
    MissingCookie,
    /// An INIT ACK with Initiate Tag 0, no stream, or an a_rwnd below 1,500 bytes (RFC 9260
    /// §3.3.3).
    BadInitAck,
    /// An address given as a host name (RFC 9260 §3.3.2).
    HostName,
    /// DATA without user data, with this TSN (RFC 9260 §6.2).
    NoUserData(Tsn),
    /// An INIT ACK without AUTH (RFC 4895), which this end
    /// [requires](crate::Authentication::Required).
    NoAuth,
    /// Description of any other violation: an acknowledgment of unsent data, contradictory
    /// fragments (RFC 9260 §3.3.10.13), or an INIT ACK without the DTLS chunk, which this end
    /// requires.
    Protocol(&'static str),
}

/// Prints a description of the violation.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Violation::MissingCookie => "an INIT ACK without a cookie",
            Violation::BadInitAck => {
                "an INIT ACK with tag 0, no stream, or a window below 1500 bytes"
            }
            Violation::HostName => "an address given as a host name",
            Violation::NoUserData(tsn) => {
                return write!(f, "DATA without user data, TSN {}", tsn.0);
            }
            Violation::NoAuth => "an INIT ACK without AUTH (RFC 4895), which is required here",
            Violation::Protocol(what) => what,
        })
    }
}
