//! How a message is sent, and when it is given up.

use std::net::IpAddr;

use anabranch_transport::Nanos;
use bytes::Bytes;

use crate::config::Config;

/// How one message is sent. The policies of RFC 7496 and RFC 3758 §4.1 have an effect only where both ends speak partial
/// reliability ([`Negotiated::partial_reliability`](crate::Negotiated::partial_reliability)); where several are given, the first
/// that is met gives the message up. Where none is, those of the
/// [defaults](crate::AssociationSettings::send_defaults) count, unless it is [reliable](Self::reliable).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendOptions {
    /// The stream, 0 by default. `None`: whichever of the streams in use has its turn when the message is begun; how many are in use is
    /// the business of [`Config::allocation`].
    pub stream: Option<u16>,
    /// Payload Protocol Identifier, handed through to the peer's user.
    pub ppid: u32,
    /// Delivered without regard to the order of the stream.
    pub unordered: bool,
    /// The peer is asked to acknowledge its end at once (RFC 9260 §6.1), for which it may else wait 200 ms.
    pub immediate: bool,
    /// It is given up when it is so old and not all of it was acknowledged, nanoseconds (RFC 3758 §4.1).
    pub lifetime: Option<Nanos>,
    /// It is given up when a chunk of it would be sent again more often (RFC 7496 §3.1).
    pub max_retransmits: Option<u32>,
    /// Where the send buffer is full, messages of a larger number that were not begun are given up for it, and it for those
    /// of a smaller one (RFC 7496 §3.2).
    pub priority: Option<u32>,
    /// It is never given up, whatever the defaults say.
    pub reliable: bool,
    /// It goes to this address of the peer's while that is active, and not to the primary path (SCTP_ADDR_OVER, RFC 6458 §5.3.4).
    /// What is sent again goes where the rules of retransmission say.
    pub address: Option<IpAddr>,
    /// The key that its chunks are signed by where the peer wants them authenticated (RFC 4895); `None`: the active one. A key that is deleted
    /// meanwhile gives way to the active one (RFC 6458 §5.3.8).
    pub key: Option<u16>,
    /// The user's own name for the message, which comes back with it where it cannot be delivered (sinfo_context, RFC 6458 §5.3.2).
    pub context: u32,
    /// The number, chosen by the user, under which [`Event::Receipt`](crate::Event::Receipt) reports the fate of the message: acknowledged
    /// (passed by the cumulative TSN, because what Gap Ack Blocks report may still be dropped, RFC 9260 §6.2), abandoned, or withdrawn. Each
    /// message has one such event, unless the association ends or is restarted before.
    pub receipt: Option<u64>,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// What the user says of a message's way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageRoute {
    /// The peer's address that it goes to.
    pub address: Option<IpAddr>,
    /// The key that it is signed by.
    pub key: Option<u16>,
}

impl SendOptions {
    /// On stream 0, in order, with PPID 0, and without any policy of its own.
    pub const fn new() -> Self {
        Self {
            stream: Some(0),
            ppid: 0,
            unordered: false,
            immediate: false,
            lifetime: None,
            max_retransmits: None,
            priority: None,
            reliable: false,
            address: None,
            key: None,
            context: 0,
            receipt: None,
        }
    }

    /// As [`Self::new`], on this stream.
    pub const fn on(stream: u16) -> Self {
        Self::new().with_stream(Some(stream))
    }

    /// What the settings say of messages that are sent without more ado.
    pub fn of(config: &Config) -> Self {
        Self {
            lifetime: config.lifetime,
            max_retransmits: config.max_retransmits,
            priority: config.priority,
            ..Self::new()
        }
    }

    /// On this stream, or on whichever has its turn.
    #[must_use]
    pub const fn with_stream(mut self, stream: Option<u16>) -> Self {
        self.stream = stream;
        self
    }

    /// With a receipt under this number, or without one.
    #[must_use]
    pub const fn with_receipt(mut self, number: Option<u64>) -> Self {
        self.receipt = number;
        self
    }

    /// With this Payload Protocol Identifier.
    #[must_use]
    pub const fn with_ppid(mut self, ppid: u32) -> Self {
        self.ppid = ppid;
        self
    }

    /// Delivered without regard to the order of the stream, or in order.
    #[must_use]
    pub const fn with_unordered(mut self, unordered: bool) -> Self {
        self.unordered = unordered;
        self
    }

    /// The peer is asked to acknowledge its end at once, or not.
    #[must_use]
    pub const fn with_immediate(mut self, immediate: bool) -> Self {
        self.immediate = immediate;
        self
    }

    /// Given up when it is so old, nanoseconds.
    #[must_use]
    pub const fn with_lifetime(mut self, lifetime: Option<Nanos>) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// As [`Self::with_lifetime`], with a duration: 1 ns to 584 years.
    #[must_use]
    pub fn with_time_to_live(self, time: std::time::Duration) -> Self {
        self.with_lifetime(Some(Nanos::try_from(time.as_nanos()).unwrap_or(Nanos::MAX)))
    }

    /// Given up when a chunk of it would be sent again more often.
    #[must_use]
    pub const fn with_max_retransmits(mut self, most: Option<u32>) -> Self {
        self.max_retransmits = most;
        self
    }

    /// With this priority in a full send buffer; smaller numbers come first.
    #[must_use]
    pub const fn with_priority(mut self, priority: Option<u32>) -> Self {
        self.priority = priority;
        self
    }

    /// To this address of the peer's, or over the primary path.
    #[must_use]
    pub const fn with_address(mut self, address: Option<IpAddr>) -> Self {
        self.address = address;
        self
    }

    /// Signed by this key, or by the active one.
    #[must_use]
    pub const fn with_key(mut self, key: Option<u16>) -> Self {
        self.key = key;
        self
    }

    /// With this name of the user's own.
    #[must_use]
    pub const fn with_context(mut self, context: u32) -> Self {
        self.context = context;
        self
    }

    /// Never given up, whatever the defaults and the policies say.
    #[must_use]
    pub const fn reliable(mut self) -> Self {
        self.reliable = true;
        self
    }

    /// The same, with what `change` changes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The stream of a message of which nothing is said but that, its PPID and its order: it is queued in fewer steps.
    #[inline(always)]
    pub(crate) fn plain_stream(&self) -> Option<u16> {
        let plain = !self.immediate
            && !self.has_policy()
            && self.address.is_none()
            && self.key.is_none()
            && self.context == 0
            && self.receipt.is_none();
        self.stream.filter(|_| plain)
    }

    /// Whether it says when the message is abandoned.
    #[inline(always)]
    pub(crate) const fn has_policy(&self) -> bool {
        self.lifetime.is_some() || self.max_retransmits.is_some() || self.priority.is_some()
    }

    /// The same, with the policies of `defaults` where it has none.
    pub(crate) fn or(self, defaults: &Self) -> Self {
        Self {
            lifetime: self.lifetime.or(defaults.lifetime),
            max_retransmits: self.max_retransmits.or(defaults.max_retransmits),
            priority: self.priority.or(defaults.priority),
            ..self
        }
    }

    /// Where it goes and how it is signed, if that is said.
    pub(crate) fn course(&self) -> Option<Box<MessageRoute>> {
        let course = MessageRoute {
            address: self.address,
            key: self.key,
        };
        (course != MessageRoute::default()).then(|| Box::new(course))
    }

    /// When a message that is given at `now` will be given up; `None` if never.
    pub(crate) fn terms(&self, now: Nanos) -> Option<PrPolicy> {
        if self.reliable {
            return None;
        }
        let terms = PrPolicy {
            deadline: self.lifetime.map(|span| now.saturating_add(span)),
            max_retransmits: self.max_retransmits,
            priority: self.priority,
            receipt: None,
        };
        terms.may_give_up().then_some(terms)
    }
}

/// Why a message was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AbandonPolicy {
    /// Its lifetime was over.
    Lifetime,
    /// It had been sent again as often as it was to be.
    Retransmissions,
    /// A message of higher priority needed its place.
    Priority,
}

impl AbandonPolicy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Lifetime, Self::Retransmissions, Self::Priority];
}

/// A message of ours that will not be sent, or not again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AbandonedMessage {
    /// Its stream; `None` for one that was given without a stream and never begun.
    pub stream: Option<u16>,
    /// Its Payload Protocol Identifier.
    pub ppid: u32,
    /// It was unordered.
    pub unordered: bool,
    /// The user data, whole.
    pub payload: Bytes,
    /// The user's own name for it ([`SendOptions::context`]).
    pub context: u32,
    /// The policy by which it was given up.
    pub policy: AbandonPolicy,
    /// Some of it was sent. If that was all of it, it may have reached the peer all the same: what was lost may have been
    /// the acknowledgement. Else it certainly did not.
    pub sent: bool,
}

/// When a message is given up, and who wants to know what becomes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrPolicy {
    pub(crate) deadline: Option<Nanos>,
    pub(crate) max_retransmits: Option<u32>,
    pub(crate) priority: Option<u32>,
    /// The number under which its user is told what becomes of it.
    pub(crate) receipt: Option<u64>,
}

impl PrPolicy {
    /// Whether it may be given up at all.
    pub(crate) fn may_give_up(&self) -> bool {
        let Self {
            deadline,
            max_retransmits,
            priority,
            receipt: _,
        } = self;
        deadline.is_some() || max_retransmits.is_some() || priority.is_some()
    }

    /// Whether its time is over at `now`.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Why a chunk that was sent so often is not sent again at `now`, if it is not.
    pub(crate) fn forbids(&self, now: Nanos, transmissions: u32) -> Option<AbandonPolicy> {
        if self.is_over(now) {
            return Some(AbandonPolicy::Lifetime);
        }
        let spent = self
            .max_retransmits
            .is_some_and(|most| transmissions > most);
        spent.then_some(AbandonPolicy::Retransmissions)
    }
}
