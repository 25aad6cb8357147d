//! Per-message send options, including PR-SCTP policies.

use std::net::IpAddr;

use anabranch_transport::Nanos;
use bytes::Bytes;

use crate::config::Config;

/// Options of one message. The policies of RFC 7496 and RFC 3758 §4.1 have an effect only if both
/// endpoints support partial reliability
/// ([`Negotiated::partial_reliability`](crate::Negotiated::partial_reliability)); the first policy
/// that applies abandons the message. Without a policy, the policies of the
/// [defaults](crate::AssociationSettings::send_defaults) apply, unless it is
/// [reliable](Self::reliable).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendOptions {
    /// Stream identifier, 0 by default. `None`: the next of the streams in use, when the message is
    /// started; [`Config::allocation`] determines their number.
    pub stream: Option<u16>,
    /// Payload Protocol Identifier, passed to the peer's user.
    pub ppid: u32,
    /// Unordered delivery.
    pub unordered: bool,
    /// Whether any of the following options, other than `reliable`, is set: such a message takes
    /// the slow path of sending. The flag is stored because sending would otherwise test each
    /// option.
    special: bool,
    /// Requests an immediate SACK of its end (RFC 9260 §6.1), which may otherwise be delayed by 200
    /// ms.
    immediate: bool,
    /// The message is abandoned at this age if it is not completely acknowledged, nanoseconds (RFC
    /// 3758 §4.1).
    lifetime: Option<Nanos>,
    /// The message is abandoned if a chunk would be retransmitted more often than this (RFC 7496
    /// §3.1).
    max_retransmits: Option<u32>,
    /// With a full send buffer, unsent messages with a larger number are abandoned in favour of
    /// this message, and this message in favour of messages with a smaller number (RFC 7496 §3.2).
    priority: Option<u32>,
    /// The message is never abandoned, regardless of the defaults.
    reliable: bool,
    /// Peer address to send it to instead of the primary path, while that address is active
    /// (SCTP_ADDR_OVER, RFC 6458 §5.3.4). Retransmissions follow the usual rules.
    address: Option<IpAddr>,
    /// Key identifier of its chunks if the peer requires authentication (RFC 4895); `None`: the
    /// active key. If the key is deleted meanwhile, the active key is used (RFC 6458 §5.3.8).
    key: Option<u16>,
    /// The user's context value, which is returned with an undeliverable message (sinfo_context,
    /// RFC 6458 §5.3.2).
    context: u32,
    /// Receipt number, chosen by the user, of the [`Event::Receipt`](crate::Event::Receipt) with
    /// the outcome of the message: acknowledged (passed by the cumulative TSN, because the receiver
    /// may renege on gap ack blocks, RFC 9260 §6.2), abandoned, or cancelled. Each message has one
    /// such event, unless the association ends or is restarted before.
    receipt: Option<u64>,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Per-message address and key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageRoute {
    /// Destination address.
    pub address: Option<IpAddr>,
    /// Authentication key identifier.
    pub key: Option<u16>,
}

impl SendOptions {
    /// Stream 0, ordered, PPID 0, without a policy.
    #[inline]
    pub const fn new() -> Self {
        Self {
            stream: Some(0),
            ppid: 0,
            unordered: false,
            special: false,
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

    /// Like [`Self::new`], on this stream.
    #[inline]
    pub const fn on(stream: u16) -> Self {
        Self::new().with_stream(Some(stream))
    }

    /// The defaults of the settings.
    pub fn of(config: &Config) -> Self {
        Self::new()
            .with_lifetime(config.lifetime)
            .with_max_retransmits(config.max_retransmits)
            .with_priority(config.priority)
    }

    /// Sends on this stream, or on the next stream in use.
    #[must_use]
    #[inline]
    pub const fn with_stream(mut self, stream: Option<u16>) -> Self {
        self.stream = stream;
        self
    }

    /// With a receipt of this number, or without one.
    #[must_use]
    #[inline]
    pub const fn with_receipt(mut self, number: Option<u64>) -> Self {
        self.receipt = number;
        self.noted()
    }

    /// With this Payload Protocol Identifier.
    #[must_use]
    #[inline]
    pub const fn with_ppid(mut self, ppid: u32) -> Self {
        self.ppid = ppid;
        self
    }

    /// Unordered or ordered delivery.
    #[must_use]
    #[inline]
    pub const fn with_unordered(mut self, unordered: bool) -> Self {
        self.unordered = unordered;
        self
    }

    /// With or without a request for an immediate SACK.
    #[must_use]
    #[inline]
    pub const fn with_immediate(mut self, immediate: bool) -> Self {
        self.immediate = immediate;
        self.noted()
    }

    /// Abandoned at this age, nanoseconds.
    #[must_use]
    #[inline]
    pub const fn with_lifetime(mut self, lifetime: Option<Nanos>) -> Self {
        self.lifetime = lifetime;
        self.noted()
    }

    /// Like [`Self::with_lifetime`], with a duration: 1 ns to 584 years.
    #[must_use]
    #[inline]
    pub fn with_time_to_live(self, time: std::time::Duration) -> Self {
        self.with_lifetime(Some(Nanos::try_from(time.as_nanos()).unwrap_or(Nanos::MAX)))
    }

    /// Abandoned if a chunk would be retransmitted more often.
    #[must_use]
    #[inline]
    pub const fn with_max_retransmits(mut self, most: Option<u32>) -> Self {
        self.max_retransmits = most;
        self.noted()
    }

    /// With this priority in a full send buffer; smaller numbers have precedence.
    #[must_use]
    #[inline]
    pub const fn with_priority(mut self, priority: Option<u32>) -> Self {
        self.priority = priority;
        self.noted()
    }

    /// To this address of the peer, or on the primary path.
    #[must_use]
    #[inline]
    pub const fn with_address(mut self, address: Option<IpAddr>) -> Self {
        self.address = address;
        self.noted()
    }

    /// Signs the message by this key, or by the active key.
    #[must_use]
    #[inline]
    pub const fn with_key(mut self, key: Option<u16>) -> Self {
        self.key = key;
        self.noted()
    }

    /// With this context value.
    #[must_use]
    #[inline]
    pub const fn with_context(mut self, context: u32) -> Self {
        self.context = context;
        self.noted()
    }

    /// The message is never abandoned, regardless of defaults and policies.
    #[must_use]
    #[inline]
    pub const fn reliable(mut self) -> Self {
        self.reliable = true;
        self
    }

    /// Applies `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Updates `special` after an option has changed.
    #[inline(always)]
    const fn noted(mut self) -> Self {
        self.special = self.immediate
            || self.has_policy()
            || self.address.is_some()
            || self.key.is_some()
            || self.context != 0
            || self.receipt.is_some();
        self
    }

    /// Whether no option is set except stream, PPID and order, so that the message takes the fast
    /// path.
    #[inline(always)]
    pub(crate) const fn is_plain(&self) -> bool {
        !self.special
    }

    /// Whether the message has an abandonment policy.
    #[inline(always)]
    pub(crate) const fn has_policy(&self) -> bool {
        self.lifetime.is_some() || self.max_retransmits.is_some() || self.priority.is_some()
    }

    /// See [`Self::with_immediate`].
    pub const fn is_immediate(&self) -> bool {
        self.immediate
    }

    /// See [`Self::with_lifetime`]; nanoseconds.
    pub const fn lifetime(&self) -> Option<Nanos> {
        self.lifetime
    }

    /// See [`Self::with_max_retransmits`].
    pub const fn max_retransmits(&self) -> Option<u32> {
        self.max_retransmits
    }

    /// See [`Self::with_priority`].
    pub const fn priority(&self) -> Option<u32> {
        self.priority
    }

    /// See [`Self::reliable`].
    pub const fn is_reliable(&self) -> bool {
        self.reliable
    }

    /// See [`Self::with_address`].
    pub const fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// See [`Self::with_key`].
    pub const fn key(&self) -> Option<u16> {
        self.key
    }

    /// See [`Self::with_context`].
    pub const fn context(&self) -> u32 {
        self.context
    }

    /// See [`Self::with_receipt`].
    pub const fn receipt(&self) -> Option<u64> {
        self.receipt
    }

    /// Adds the policies of `defaults` if it has none.
    pub(crate) fn or(self, defaults: &Self) -> Self {
        self.with_lifetime(self.lifetime.or(defaults.lifetime))
            .with_max_retransmits(self.max_retransmits.or(defaults.max_retransmits))
            .with_priority(self.priority.or(defaults.priority))
    }

    /// Address and key, if specified.
    pub(crate) fn course(&self) -> Option<Box<MessageRoute>> {
        let course = MessageRoute {
            address: self.address,
            key: self.key,
        };
        (course != MessageRoute::default()).then(|| Box::new(course))
    }

    /// The policy of a message queued at `now`; `None` if it is never abandoned.
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

/// Why a message was abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AbandonPolicy {
    /// The lifetime of the message expired.
    Lifetime,
    /// The limit of retransmissions was reached.
    Retransmissions,
    /// A message of higher priority needed its space.
    Priority,
}

impl AbandonPolicy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Lifetime, Self::Retransmissions, Self::Priority];
}

/// A local message that will not be sent, or not retransmitted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AbandonedMessage {
    /// Stream of the message; `None` for an unsent message that was queued without a stream.
    pub stream: Option<u16>,
    /// Payload Protocol Identifier.
    pub ppid: u32,
    /// The message was unordered.
    pub unordered: bool,
    /// The complete user data.
    pub payload: Bytes,
    /// The user's context value ([`SendOptions::context`]).
    pub context: u32,
    /// The policy that abandoned it.
    pub policy: AbandonPolicy,
    /// At least one chunk of the message was sent. If all of it was sent, it may have reached the
    /// peer, because possibly only the acknowledgement was lost. Otherwise it certainly did not.
    pub sent: bool,
}

/// Abandonment policy and receipt of a queued message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrPolicy {
    pub(crate) deadline: Option<Nanos>,
    pub(crate) max_retransmits: Option<u32>,
    pub(crate) priority: Option<u32>,
    /// The receipt number, if requested.
    pub(crate) receipt: Option<u64>,
}

impl PrPolicy {
    /// Whether the message may be abandoned.
    pub(crate) fn may_give_up(&self) -> bool {
        let Self {
            deadline,
            max_retransmits,
            priority,
            receipt: _,
        } = self;
        deadline.is_some() || max_retransmits.is_some() || priority.is_some()
    }

    /// Whether its lifetime is over at `now`.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// The policy that forbids a retransmission at `now` of a chunk with this number of
    /// transmissions, if any.
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn only_stream_ppid_and_order_keep_a_message_on_the_fast_path() {
        let plain = SendOptions::on(7).with_ppid(51).with_unordered(true);
        assert!(plain.is_plain() && plain.reliable().is_plain());
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        type Change = fn(SendOptions) -> SendOptions;
        let pairs: [(SendOptions, Change); 8] = [
            (plain.with_immediate(true), |it| it.with_immediate(false)),
            (plain.with_lifetime(Some(1)), |it| it.with_lifetime(None)),
            (plain.with_max_retransmits(Some(0)), |it| {
                it.with_max_retransmits(None)
            }),
            (plain.with_priority(Some(0)), |it| it.with_priority(None)),
            (plain.with_address(Some(address)), |it| {
                it.with_address(None)
            }),
            (plain.with_key(Some(0)), |it| it.with_key(None)),
            (plain.with_context(1), |it| it.with_context(0)),
            (plain.with_receipt(Some(0)), |it| it.with_receipt(None)),
        ];
        for (set, reset) in pairs {
            assert!(!set.is_plain(), "{set:?}");
            assert_eq!(reset(set), plain);
        }
        let both = plain.with_key(Some(1)).with_lifetime(Some(1));
        assert!(!both.with_key(None).is_plain());
    }
}
