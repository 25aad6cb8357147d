//! Options, identifiers and payloads of channels.

use bytes::Bytes;

/// Limit on the retransmission of a channel's messages (RFC 8831 §6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reliability {
    /// A message is retransmitted until it arrives.
    #[default]
    Reliable,
    /// A message is retransmitted at most this number of times.
    MaxRetransmits(u32),
    /// A message is retransmitted for at most this time, milliseconds.
    MaxLifetime(u32),
}

/// Options of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelOptions {
    /// Name of the channel, at most 65,535 bytes.
    pub label: String,
    /// Protocol used on the channel, at most 65,535 bytes; may be empty.
    pub protocol: String,
    /// Whether messages are delivered in order.
    pub ordered: bool,
    /// Limit on the retransmission of messages.
    pub reliability: Reliability,
    /// Priority relative to other channels: 128 is below normal, 256 normal, 512 high, 1,024 extra
    /// high (RFC 8831 §6.4).
    pub priority: u16,
    /// Stream of a channel that both ends have negotiated by other means, without DCEP (RFC 8831
    /// §6.6).
    pub negotiated: Option<u16>,
}

impl ChannelOptions {
    /// An ordered, reliable channel of normal priority.
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            protocol: String::new(),
            ordered: true,
            reliability: Reliability::Reliable,
            priority: 256,
            negotiated: None,
        }
    }

    /// Sets the protocol.
    #[must_use]
    pub fn with_protocol(mut self, protocol: impl Into<String>) -> Self {
        self.protocol = protocol.into();
        self
    }

    /// Sets whether messages are delivered in order.
    #[must_use]
    pub const fn with_ordered(mut self, ordered: bool) -> Self {
        self.ordered = ordered;
        self
    }

    /// Sets the limit on the retransmission of messages.
    #[must_use]
    pub const fn with_reliability(mut self, reliability: Reliability) -> Self {
        self.reliability = reliability;
        self
    }

    /// Sets the priority.
    #[must_use]
    pub const fn with_priority(mut self, priority: u16) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the stream that both ends have negotiated by other means.
    #[must_use]
    pub const fn with_negotiated(mut self, stream: Option<u16>) -> Self {
        self.negotiated = stream;
        self
    }
}

/// Identifier of a channel within a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId {
    pub(crate) stream: u16,
    /// Number of channels that used the stream before.
    pub(crate) generation: u32,
}

impl ChannelId {
    /// The stream that carries the channel in both directions: the `id` of the W3C's
    /// `RTCDataChannel`.
    pub fn stream(self) -> u16 {
        self.stream
    }
}

/// A message of a channel: text or binary data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Payload {
    /// Text.
    Text(String),
    /// Binary data.
    Binary(Bytes),
}

/// Payload Protocol Identifiers (RFC 8831 §8).
pub(crate) mod ppid {
    pub(crate) const DCEP: u32 = 50;
    pub(crate) const STRING: u32 = 51;
    pub(crate) const BINARY: u32 = 53;
    pub(crate) const STRING_EMPTY: u32 = 56;
    pub(crate) const BINARY_EMPTY: u32 = 57;
}

impl Payload {
    /// Length in bytes, as counted by `bufferedAmount`.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }

    /// Whether the message is empty. An empty message is delivered like any other.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Converts the message to PPID and user data. SCTP carries no empty messages, so an empty
    /// message is sent as a single byte that the receiver ignores (RFC 8831 §6.6).
    pub(crate) fn into_wire(self) -> (u32, Bytes) {
        match self {
            Self::Text(text) if text.is_empty() => (ppid::STRING_EMPTY, Bytes::from_static(&[0])),
            Self::Binary(bytes) if bytes.is_empty() => {
                (ppid::BINARY_EMPTY, Bytes::from_static(&[0]))
            }
            Self::Text(text) => (ppid::STRING, text.into()),
            Self::Binary(bytes) => (ppid::BINARY, bytes),
        }
    }

    /// Decodes PPID and user data; `None` if the PPID is not for data or a text is not UTF-8.
    pub(crate) fn from_wire(ppid: u32, bytes: Bytes) -> Option<Self> {
        match ppid {
            ppid::STRING => {
                let text = std::str::from_utf8(&bytes).ok()?;
                Some(Self::Text(text.to_owned()))
            }
            ppid::BINARY => Some(Self::Binary(bytes)),
            ppid::STRING_EMPTY => Some(Self::Text(String::new())),
            ppid::BINARY_EMPTY => Some(Self::Binary(Bytes::new())),
            _ => None,
        }
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self::Binary(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_payload_has_its_ppid_and_comes_back() {
        for (payload, ppid, bytes) in [
            (Payload::from("text"), 51, &b"text"[..]),
            (Payload::from(""), 56, &[0]),
            (Payload::from(Bytes::from_static(b"\xFF")), 53, b"\xFF"),
            (Payload::from(Bytes::new()), 57, &[0]),
        ] {
            let (as_ppid, wire) = payload.clone().into_wire();
            assert_eq!((as_ppid, &wire[..]), (ppid, bytes));
            assert_eq!(Payload::from_wire(ppid, wire), Some(payload));
        }
        // The byte of an empty message is ignored; a text must be UTF-8.
        let some = Bytes::from_static(b"\xFF\xFF");
        assert_eq!(
            Payload::from_wire(56, some.clone()),
            Some(Payload::from(""))
        );
        assert_eq!(Payload::from_wire(51, some.clone()), None);
        for other in [0, 49, 50, 52, 54, 55, 58] {
            assert_eq!(Payload::from_wire(other, some.clone()), None);
        }
    }
}
