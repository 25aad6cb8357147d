//! Per-message send options, including PR-SCTP policies.

use std::net::IpAddr;

use anabranch_transport::Nanos;
use bytes::Bytes;

use crate::config::Config;

/// Options of one message. The policies of RFC 7496 and RFC 3758 §4.1 have an effect only if both
/// endpoints support partial reliability
/// ([`Negotiated::partial_reliability`](crate::Negotiated::partial_reliability)); the first policy
/// that applies abandons the message. A message without a policy uses the [default
/// policies](crate::AssociationSettings::send_defaults), unless it is [reliable](Self::reliable).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendOptions {
    /// Stream identifier; 0 by default. `None`: the next of the streams in use when transmission of
    /// the message starts; [`Config::stream_allocation`] determines the number of streams in use.
    pub stream: Option<u16>,
    /// Payload Protocol Identifier, passed to the peer's user.
    pub ppid: u32,
    /// Whether the message is delivered unordered.
    pub unordered: bool,
    /// Whether any of the following options except `reliable` is set, so that the message takes the
    /// slow path. The flag is stored, because otherwise each call of `send` would test all options.
    special: bool,
    /// Requests an immediate SACK when the message is complete (I bit, RFC 9260 §6.1). Without it,
    /// the peer may delay the SACK by 200 ms.
    immediate: bool,
    /// Age in nanoseconds at which the message is abandoned if it is not completely acknowledged
    /// (RFC 3758 §4.1).
    lifetime: Option<Nanos>,
    /// Maximum number of retransmissions of each chunk; if it would be exceeded, the message is
    /// abandoned (RFC 7496 §3.1).
    max_retransmits: Option<u32>,
    /// Priority; a smaller number is a higher priority. If the send buffer is full, unsent messages
    /// of lower priority are abandoned for messages of higher priority (RFC 7496 §3.2).
    priority: Option<u32>,
    /// Whether the message is never abandoned, even if the defaults contain a policy.
    reliable: bool,
    /// Peer address to which the message is sent instead of the primary path, while that address is
    /// active (SCTP_ADDR_OVER, RFC 6458 §5.3.4). Retransmissions use the usual path.
    address: Option<IpAddr>,
    /// Identifier of the key for the message's chunks, if the peer requires their authentication
    /// (RFC 4895). `None`: the active key, which is also used if the key has been deleted (RFC 6458
    /// §5.3.8).
    key: Option<u16>,
    /// The user's context value, which is returned with an undeliverable message (sinfo_context,
    /// RFC 6458 §5.3.2).
    context: u32,
    /// Number of the receipt, chosen by the user. [`Event::Receipt`](crate::Event::Receipt) reports
    /// the outcome of the message under this number: acknowledged, abandoned, or cancelled. A
    /// message counts as acknowledged only when the cumulative TSN has passed it, because the
    /// receiver may renege on data in Gap Ack Blocks (RFC 9260 §6.2). There is one such event per
    /// message, unless the association is closed or restarted first.
    receipt: Option<u64>,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Destination address and key of one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageRoute {
    /// Destination address.
    pub address: Option<IpAddr>,
    /// Authentication key identifier.
    pub key: Option<u16>,
}

impl SendOptions {
    /// Default options: stream 0, ordered, PPID 0, without a policy.
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

    /// Like [`Self::new`], for this stream.
    #[inline]
    pub const fn on(stream: u16) -> Self {
        Self::new().with_stream(Some(stream))
    }

    /// Options with the default policies of `config`.
    pub fn of(config: &Config) -> Self {
        Self::new()
            .with_lifetime(config.lifetime)
            .with_max_retransmits(config.max_retransmits)
            .with_priority(config.priority)
    }

    /// Selects a stream; `None`: the next of the streams in use.
    #[must_use]
    #[inline]
    pub const fn with_stream(mut self, stream: Option<u16>) -> Self {
        self.stream = stream;
        self
    }

    /// Requests a receipt with this number; `None`: no receipt.
    #[must_use]
    #[inline]
    pub const fn with_receipt(mut self, number: Option<u64>) -> Self {
        self.receipt = number;
        self.noted()
    }

    /// Sets the Payload Protocol Identifier.
    #[must_use]
    #[inline]
    pub const fn with_ppid(mut self, ppid: u32) -> Self {
        self.ppid = ppid;
        self
    }

    /// Selects unordered or ordered delivery.
    #[must_use]
    #[inline]
    pub const fn with_unordered(mut self, unordered: bool) -> Self {
        self.unordered = unordered;
        self
    }

    /// Sets whether an immediate SACK is requested.
    #[must_use]
    #[inline]
    pub const fn with_immediate(mut self, immediate: bool) -> Self {
        self.immediate = immediate;
        self.noted()
    }

    /// Sets the age in nanoseconds at which the message is abandoned.
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

    /// Sets the maximum number of retransmissions of each chunk, beyond which the message is
    /// abandoned.
    #[must_use]
    #[inline]
    pub const fn with_max_retransmits(mut self, most: Option<u32>) -> Self {
        self.max_retransmits = most;
        self.noted()
    }

    /// Sets the priority in a full send buffer; a smaller number is a higher priority.
    #[must_use]
    #[inline]
    pub const fn with_priority(mut self, priority: Option<u32>) -> Self {
        self.priority = priority;
        self.noted()
    }

    /// Selects a destination address of the peer; `None`: the primary path.
    #[must_use]
    #[inline]
    pub const fn with_address(mut self, address: Option<IpAddr>) -> Self {
        self.address = address;
        self.noted()
    }

    /// Selects the key for authentication; `None`: the active key.
    #[must_use]
    #[inline]
    pub const fn with_key(mut self, key: Option<u16>) -> Self {
        self.key = key;
        self.noted()
    }

    /// Sets the user's context value.
    #[must_use]
    #[inline]
    pub const fn with_context(mut self, context: u32) -> Self {
        self.context = context;
        self.noted()
    }

    /// Makes the message reliable: it is never abandoned, even if the defaults contain a policy.
    #[must_use]
    #[inline]
    pub const fn reliable(mut self) -> Self {
        self.reliable = true;
        self
    }

    /// Modifies the options by `change`.
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

    /// Adds each policy of `defaults` that is not set in these options.
    pub(crate) fn or(self, defaults: &Self) -> Self {
        self.with_lifetime(self.lifetime.or(defaults.lifetime))
            .with_max_retransmits(self.max_retransmits.or(defaults.max_retransmits))
            .with_priority(self.priority.or(defaults.priority))
    }

    /// Destination address and key, if at least one is set.
    pub(crate) fn route(&self) -> Option<Box<MessageRoute>> {
        let route = MessageRoute {
            address: self.address,
            key: self.key,
        };
        (route != MessageRoute::default()).then(|| Box::new(route))
    }

    /// Abandonment policy of a message queued at `now`, without its receipt number; `None` if the
    /// message has no policy or is reliable.
    pub(crate) fn pr_policy(&self, now: Nanos) -> Option<PrPolicy> {
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

/// Abandonment policy because of which a message was abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AbandonPolicy {
    /// The lifetime of the message expired.
    Lifetime,
    /// The limit of retransmissions was reached.
    Retransmissions,
    /// A message of higher priority needed its space in the send buffer.
    Priority,
}

impl AbandonPolicy {
    /// All abandonment policies.
    pub const ALL: [Self; 3] = [Self::Lifetime, Self::Retransmissions, Self::Priority];
}

/// Abandoned message of the local user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AbandonedMessage {
    /// Stream of the message; `None` for an unsent message that was queued without a stream.
    pub stream: Option<u16>,
    /// Payload Protocol Identifier.
    pub ppid: u32,
    /// Whether the message was unordered.
    pub unordered: bool,
    /// Complete user data of the message.
    pub payload: Bytes,
    /// The user's context value ([`SendOptions::context`]).
    pub context: u32,
    /// Policy because of which the message was abandoned.
    pub policy: AbandonPolicy,
    /// Whether at least one chunk of the message was sent. If so, the message may have reached the
    /// peer, because only its acknowledgment may have been lost.
    pub sent: bool,
}

/// Abandonment policy of a queued message, and the number of the delivery receipt that its user
/// requested.
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

    /// Whether the lifetime of the message has expired at `now`.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Policy that forbids another retransmission at `now` of a chunk that was transmitted
    /// `transmissions` times; `None` if it is allowed.
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
