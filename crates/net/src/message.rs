//! What goes in and what comes out.

use std::time::Duration;

use bytes::Bytes;

/// A message as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Its stream.
    pub stream: u16,
    /// Payload Protocol Identifier, as the peer's user gave it.
    pub ppid: u32,
    /// It was sent to be delivered without regard to the order of its stream.
    pub unordered: bool,
    /// The user data: a slice of the datagram where the message came in one, otherwise put together from its fragments.
    pub bytes: Bytes,
}

/// A message, or the next part of one whose end has not come yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessagePart {
    /// The message's stream: until the part that `ends` the message, nothing else of this stream comes.
    pub stream: u16,
    /// Payload Protocol Identifier, as the peer's user gave it.
    pub ppid: u32,
    /// It was sent to be delivered without regard to the order of its stream.
    pub unordered: bool,
    /// The message's number in its stream; meaningless if unordered.
    pub ssn: u16,
    /// The message begins with this part.
    pub begins: bool,
    /// The message ends with this part. With `begins` it is a whole message.
    pub ends: bool,
    /// What has come of the user data since the part before.
    pub bytes: Bytes,
}

/// How a message is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendOptions {
    /// Payload Protocol Identifier, handed through to the peer's user.
    pub ppid: u32,
    /// Deliver without regard to the order of the stream.
    pub unordered: bool,
    /// Give it up when it is so old (RFC 3758 §4.1). Here and below `None` means what the settings of the same name say, or
    /// [`Association::set_send_defaults`](crate::Association::set_send_defaults) since; and all three have an effect only where both ends speak partial reliability.
    pub lifetime: Option<Duration>,
    /// Give it up when a chunk of it would be sent again more often (RFC 7496 §3.1).
    pub max_retransmits: Option<u32>,
    /// Where the send buffer is full, messages of a larger number that were not begun are given up for it (RFC 7496 §3.2).
    pub priority: Option<u32>,
}

impl SendOptions {
    /// As the default.
    pub const ORDERED: Self = Self {
        ppid: 0,
        unordered: false,
        lifetime: None,
        max_retransmits: None,
        priority: None,
    };
    /// As the default, but unordered.
    pub const UNORDERED: Self = Self {
        unordered: true,
        ..Self::ORDERED
    };

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

    /// Given up when it is so old.
    #[must_use]
    pub const fn with_lifetime(mut self, lifetime: Option<Duration>) -> Self {
        self.lifetime = lifetime;
        self
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

    /// What the core is told of it: what it says, and else `defaults`.
    pub(crate) fn policies(
        &self,
        defaults: anabranch_sctp::SendOptions,
        immediate: bool,
    ) -> anabranch_sctp::SendOptions {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        anabranch_sctp::SendOptions::new()
            .with_lifetime(self.lifetime.map(nanos).or(defaults.lifetime))
            .with_max_retransmits(self.max_retransmits.or(defaults.max_retransmits))
            .with_priority(self.priority.or(defaults.priority))
            .with_immediate(immediate)
    }
}
