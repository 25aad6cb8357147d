//! What a channel is, and what goes over it.

use bytes::Bytes;

/// How long a message is tried (RFC 8831 §6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reliability {
    /// Until it arrives.
    #[default]
    Reliable,
    /// For so many retransmissions.
    MaxRetransmits(u32),
    /// For so many milliseconds.
    MaxLifetime(u32),
}

/// What is asked of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelOptions {
    /// Its name, 65,535 bytes at most.
    pub label: String,
    /// The protocol that is spoken on it, 65,535 bytes at most; may be empty.
    pub protocol: String,
    /// Messages are delivered in order.
    pub ordered: bool,
    /// How long a message is tried.
    pub reliability: Reliability,
    /// Its share beside other channels: 128 is below normal, 256 normal, 512 high, 1,024 extra high (RFC 8831 §6.4).
    pub priority: u16,
    /// The stream, where both ends agreed on the channel by other means; no DCEP is spoken then (RFC 8831 §6.6).
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

    /// Of this protocol.
    #[must_use]
    pub fn with_protocol(mut self, protocol: impl Into<String>) -> Self {
        self.protocol = protocol.into();
        self
    }

    /// Delivered in order, or not.
    #[must_use]
    pub const fn with_ordered(mut self, ordered: bool) -> Self {
        self.ordered = ordered;
        self
    }

    /// Tried so long.
    #[must_use]
    pub const fn with_reliability(mut self, reliability: Reliability) -> Self {
        self.reliability = reliability;
        self
    }

    /// Of this priority.
    #[must_use]
    pub const fn with_priority(mut self, priority: u16) -> Self {
        self.priority = priority;
        self
    }

    /// On this stream, as both ends agreed by other means.
    #[must_use]
    pub const fn with_negotiated(mut self, stream: Option<u16>) -> Self {
        self.negotiated = stream;
        self
    }
}

/// Names a channel of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId {
    pub(crate) stream: u16,
    /// How many channels the stream carried before.
    pub(crate) turn: u32,
}

impl ChannelId {
    /// The stream that carries it either way: the `id` of the W3C's `RTCDataChannel`.
    pub fn stream(self) -> u16 {
        self.stream
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Payload {
    /// Text.
    Text(String),
    /// Bytes.
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
    /// Bytes of it, as `bufferedAmount` counts them.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }

    /// Whether it has no byte. Such a message is delivered like any other.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// PPID and user data. SCTP carries no empty message, so an empty one is a byte that does not count (RFC 8831 §6.6).
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

    /// What PPID and user data say; `None` where they say nothing: a PPID of no data, or a text that is not UTF-8.
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
        // Whatever the byte of an empty message is; a text must be one.
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
