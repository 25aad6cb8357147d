//! What an association tells its user (RFC 9260 §11.2).

use std::fmt;
use std::net::IpAddr;

use anabranch_wire::cause;
use anabranch_wire::serial::{Ssn, Tsn};

use crate::address_changes::{AddressChange, AddressChangeOutcome};
use crate::dtls_chunk::KeyAgreement;
use crate::partial::AbandonedMessage;
use crate::path::{PathId, PathState};
use crate::reconfig::{ReconfigOutcome, StreamDirection};
use crate::state_name::StateName;
use crate::tx::{Delivery, Returned};
use bytes::Bytes;

/// A notification to the user of an association. Exhaustive: a user that does not know an event fails to compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is done (RFC 9260 §11.2 E). Comes once, before any message.
    Established {
        /// Streams this side may send on.
        outbound_streams: u16,
        /// Streams the peer may send on.
        inbound_streams: u16,
    },
    /// A path went up or down (RFC 9260 §11.2 C).
    PathChanged {
        /// Its number in this association.
        path: PathId,
        /// The peer's address.
        address: IpAddr,
        /// What it is now.
        state: PathState,
    },
    /// Another path is the primary from now on: by the user's choice
    /// ([`Association::set_primary`](crate::Association::set_primary)), or since the old one lost too much (RSCTP's
    /// `rsctp_path_switch`) or did not answer for too long
    /// ([`Config::primary_switch_max_retrans`](crate::Config::primary_switch_max_retrans), RFC 7829 §5).
    PrimaryChanged {
        /// Its number in this association.
        path: PathId,
        /// The peer's address.
        address: IpAddr,
    },
    /// The peer lost its state and set the association up anew (RFC 9260 §11.2 G, §5.2.4.1). What was unacknowledged is
    /// not delivered any more; streams start again from 0. What was received and not read stays readable, up to the
    /// size of the receive buffer; but not where it came back from an address that was not verified (RFC 9260 §5.4): whoever is
    /// there need not be the one who spoke before.
    Restarted {
        /// Messages of ours, queued or unacknowledged, were given up.
        data_lost: bool,
    },
    /// The peer reported an error and goes on (RFC 9260 §11.2 F).
    PeerError {
        /// The cause's code (RFC 9260 §3.3.10).
        cause: u16,
    },
    /// The association is up, and its keys are to be installed by the user ([`Association::install_send_keys`]), which exchanges messages with
    /// payload protocol identifier 4242. [`Event::Established`] follows when protection is required
    /// ([`Association::require_protection`]). Only with the setting `security`, where no key management is configured.
    ///
    /// [`Association::install_send_keys`]: crate::Association::install_send_keys
    /// [`Association::require_protection`]: crate::Association::require_protection
    KeysRequired(Box<KeyAgreement>),
    /// There are new restart keys to be stored ([`Association::restart_keys`](crate::Association::restart_keys)).
    RestartKeys,
    /// A message of which a part was delivered, or could be, will not be delivered to its end: the association ends or begins
    /// again (SCTP_PARTIAL_DELIVERY_EVENT, RFC 6458 §6.1.7). It comes before [`Event::Closed`] or [`Event::Restarted`].
    PartialDeliveryAborted {
        /// The message's stream.
        stream: u16,
        /// It was unordered.
        unordered: bool,
        /// Its number in the stream; meaningless if unordered.
        ssn: Ssn,
        /// The TSN of its first fragment, which tells unordered messages of a stream apart.
        first_tsn: Tsn,
        /// Its Payload Protocol Identifier.
        ppid: u32,
    },
    /// Messages given before the association was up were on streams that the peer then did not grant; they are forgotten
    /// (RFC 9260 §11.2 B, §5.1.1).
    SendFailed {
        /// How many.
        messages: usize,
    },
    /// A message was given up by the policy it was sent with (RFC 3758 §3.4, RFC 7496; SCTP_SEND_FAILED_EVENT, RFC 6458 §6.1.11).
    MessageAbandoned(Box<AbandonedMessage>),
    /// A message was not acknowledged, and will not be sent any more (RFC 9260 §11.2 B; SCTP_SEND_FAILED_EVENT, RFC 6458 §6.1.11). There is one for
    /// each such message, before [`Event::Closed`], [`Event::Restarted`] or [`Event::SendFailed`].
    MessageUndelivered(Box<UndeliveredMessage>),
    /// What became of a message whose user asked ([`SendOptions::receipt`](crate::SendOptions::receipt)). None is missed.
    /// Messages for which none came before [`Event::Restarted`] or [`Event::Closed`] were not acknowledged.
    Receipt {
        /// The number that was given with the message.
        number: u64,
        /// What became of it.
        delivery: Delivery,
    },
    /// Streams begin anew with number 0, or do not although that was wished (SCTP_STREAM_RESET_EVENT, RFC 6525 §6.1.1), by
    /// [`Association::reconfigure`](crate::Association::reconfigure), or since the peer wished it. When a stream that comes from the
    /// peer begins anew, all messages before it can be read.
    StreamsReset {
        /// Which way they go.
        direction: StreamDirection,
        /// Which streams; none: all.
        streams: Vec<u16>,
        /// What became of it.
        outcome: ReconfigOutcome,
    },
    /// All numbers begin anew, or do not although that was wished (SCTP_ASSOC_RESET_EVENT, RFC 6525 §6.1.2).
    AssociationReset {
        /// The TSN of the next chunk of this side.
        local_tsn: Tsn,
        /// The TSN of the peer's next chunk.
        remote_tsn: Tsn,
        /// What became of it.
        outcome: ReconfigOutcome,
    },
    /// Streams were added, or were not although that was wished (SCTP_STREAM_CHANGE_EVENT, RFC 6525 §6.1.3).
    StreamsAdded {
        /// Streams this side may send on now.
        outbound_streams: u16,
        /// Streams the peer may send on now.
        inbound_streams: u16,
        /// What became of it.
        outcome: ReconfigOutcome,
    },
    /// The peer has said in the handshake what the layer above it is (SCTP_ADAPTATION_INDICATION, RFC 6458 §6.1.6).
    AdaptationIndication {
        /// The number that it gave, which means what the two applications have agreed on.
        indication: u32,
    },
    /// The peer has added an address (SCTP_ADDR_ADDED, RFC 6458 §6.1.2), or one of its addresses can be reached again: it is used once
    /// a HEARTBEAT has verified it.
    PeerAddressAdded {
        /// Its number in this association.
        path: PathId,
        /// The address.
        address: IpAddr,
    },
    /// The peer has deleted an address (SCTP_ADDR_REMOVED, RFC 6458 §6.1.2), or this side has none left of its family: nothing goes
    /// there any more.
    PeerAddressRemoved {
        /// Its number in this association.
        path: PathId,
        /// The address.
        address: IpAddr,
    },
    /// A change of this side's addresses is settled ([`Association::change_addresses`](crate::Association::change_addresses)).
    AddressChanged {
        /// What was wished.
        change: AddressChange,
        /// What became of it.
        outcome: AddressChangeOutcome,
    },
    /// The peer authenticates with another key from now on (SCTP_AUTHENTICATION_EVENT with SCTP_AUTH_NEW_KEY, RFC 6458 §6.1.8):
    /// the one before can be deleted once what was sent with it has come.
    PeerAuthKey {
        /// The key's identifier.
        key_id: u16,
    },
    /// The stream allocation wants more streams than the handshake settled and stays at these. Comes again only after
    /// fewer were in use.
    StreamLimitMet {
        /// Streams negotiated outwards.
        outbound_streams: u16,
    },
    /// The peer wants to close: nothing more can be sent, what is queued still goes out (RFC 9260 §11.2 H).
    PeerShutdown,
    /// Events were dropped because the user did not take them: the oldest, where more than 256 wait, or abandoned messages of more than one
    /// send buffer. It comes before those that wait.
    Missed {
        /// How many.
        events: u64,
    },
    /// The association is over; the last event. It stays readable until it is
    /// [released](crate::Endpoint::release).
    Closed(CloseReason),
}

/// Why a message was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UndeliveredCause {
    /// The association ended before it was acknowledged.
    Closed(CloseReason),
    /// The peer lost its state and began the association again.
    Restarted,
    /// It was given before the association was up, on a stream that the peer then did not grant.
    NoSuchStream,
}

/// A message that was not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndeliveredMessage {
    /// Its stream; `None` for one that was given without a stream and never begun.
    pub stream: Option<u16>,
    /// Its Payload Protocol Identifier.
    pub ppid: u32,
    /// It was unordered.
    pub unordered: bool,
    /// The user data, whole.
    pub payload: Bytes,
    /// The user's own name for it ([`SendOptions::context`](crate::SendOptions::context)).
    pub context: u32,
    /// Why.
    pub cause: UndeliveredCause,
    /// Some of it was sent. If that was all of it, it may have reached the peer all the same. Else it certainly did not.
    pub sent: bool,
}

impl UndeliveredMessage {
    /// What the sender gave back, for that cause.
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

/// Why an association ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// By SHUTDOWN, from either side: everything sent was acknowledged.
    Shutdown,
    /// By [`Association::abort`](crate::Association::abort).
    AbortedHere,
    /// By the peer's ABORT.
    AbortedByPeer {
        /// Code of the first cause it gave, if any (RFC 9260 §3.3.10).
        cause: Option<u16>,
    },
    /// The peer broke a rule that cannot be mended; it was told so in an ABORT.
    PeerViolation(Violation),
    /// No answer to INIT after Max.Init.Retransmits (RFC 9260 §5.1, rule in T1-init).
    NoAnswer,
    /// INIT was answered, but COOKIE ECHO was not after Max.Init.Retransmits (RFC 9260 §5.1, rule in T1-cookie).
    NoCookieAck,
    /// The peer found our cookies stale more often than Max.Init.Retransmits (RFC 9260 §5.2.6).
    StaleCookie,
    /// The receive buffer is full of what cannot be delivered, though no TSN is missing: the peer left out stream sequence
    /// numbers. It was told so in an ABORT with Out of Resource.
    ReceiveBufferExhausted,
    /// A message of the peer's is longer than [`Config::max_message`](crate::Config::max_message), and the user wanted it
    /// whole. The peer was told so in an ABORT with Out of Resource.
    MessageTooLong {
        /// The longest that is put together, bytes.
        most: usize,
    },
    /// There were as many associations as there may be, the peer's address had more than its share, and another peer needed the place
    /// ([`Endpoint::set_max_associations`](crate::Endpoint::set_max_associations)). It was told so in an ABORT with Out of Resource.
    Displaced,
    /// Association.Max.Retrans was exceeded (RFC 9260 §8.1).
    PeerUnreachable,
    /// An ICMP message said that nobody speaks SCTP at the peer's address, or nobody listens at its UDP port any more
    /// (RFC 9260 §10, RFC 6951 §5.5).
    ProtocolUnreachable,
    /// The shutdown took longer than T5-shutdown-guard (RFC 9260 §9.2), than the user's limit
    /// ([`Association::shutdown`](crate::Association::shutdown)), or than [`Config::drain_timeout`](crate::Config::drain_timeout).
    ShutdownTimeout,
}

impl CloseReason {
    /// Why an association was not set up that waited in this state for an answer, and in vain.
    pub fn unanswered(state: StateName) -> Self {
        match state {
            StateName::CookieEchoed => CloseReason::NoCookieAck,
            _ => CloseReason::NoAnswer,
        }
    }

    /// Whether the peer has an association with the same address and SCTP port already, that began at another UDP port of the address (Restart of an
    /// Association with New Encapsulation Port, RFC 6951 §5.4) or with other addresses (RFC 9260 §3.3.10.11). Hosts that share an address draw their SCTP
    /// ports without knowing of each other: an association from another port can be made.
    pub fn is_port_collision(&self) -> bool {
        use cause::code::{RESTART_WITH_NEW_ADDRESSES, RESTART_WITH_NEW_UDP_PORT};
        let Self::AbortedByPeer { cause: Some(cause) } = self else {
            return false;
        };
        [RESTART_WITH_NEW_ADDRESSES, RESTART_WITH_NEW_UDP_PORT].contains(cause)
    }
}

/// Why, in words that follow "the association ended: ".
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

/// What a peer did that ends an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// An INIT ACK without State Cookie (RFC 9260 §3.3.3).
    MissingCookie,
    /// An INIT ACK with tag 0, no stream, or a window below 1,500 bytes (RFC 9260 §3.3.3).
    BadInitAck,
    /// An address given as a host name (RFC 9260 §3.3.2).
    HostName,
    /// DATA without user data, with this TSN (RFC 9260 §6.2).
    NoUserData(Tsn),
    /// What no other cause tells, in the words that the peer was told it in: an acknowledgement of something never sent, or
    /// contradictory fragments (RFC 9260 §3.3.10.13).
    Protocol(&'static str),
}

/// What it did, in words.
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
            Violation::Protocol(what) => what,
        })
    }
}
