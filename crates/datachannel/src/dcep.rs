//! Messages of the Data Channel Establishment Protocol (RFC 8832 §5).

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;

use crate::channel::Reliability;

/// Message type of DATA_CHANNEL_ACK.
const ACK: u8 = 0x02;
/// Message type of DATA_CHANNEL_OPEN.
const OPEN: u8 = 0x03;
/// Size of a DATA_CHANNEL_OPEN before the label, bytes.
const OPEN_HEADER: usize = 12;
/// Bit of a channel type for unordered delivery.
const UNORDERED: u8 = 0x80;

/// A DCEP message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dcep {
    /// DATA_CHANNEL_OPEN: opens a channel on this stream (RFC 8832 §5.1).
    Open(Open),
    /// DATA_CHANNEL_ACK: acknowledges the channel (RFC 8832 §5.2).
    Ack,
}

/// Fields of a DATA_CHANNEL_OPEN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Whether messages are delivered in order.
    pub ordered: bool,
    /// Limit on the retransmission of messages.
    pub reliability: Reliability,
    /// Weight relative to other channels (RFC 8831 §6.4).
    pub priority: u16,
    /// Name of the channel.
    pub label: String,
    /// Protocol used on the channel, a name from IANA's registry of WebSocket subprotocols; may be
    /// empty.
    pub protocol: String,
}

/// Reasons for which a DCEP message cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DcepError {
    /// The message is empty.
    #[error("an empty DCEP message")]
    Empty,
    /// The message type is neither DATA_CHANNEL_OPEN nor DATA_CHANNEL_ACK.
    #[error("DCEP message type {0:#04x}; allowed: 0x02, 0x03")]
    MessageType(u8),
    /// The length does not match the message's fields.
    #[error("a DCEP message of {length} bytes that should have {needed}")]
    Length {
        /// Actual length, bytes.
        length: usize,
        /// Length required by its type and fields, bytes.
        needed: usize,
    },
    /// Unknown channel type (RFC 8832 §5.1).
    #[error("channel type {0:#04x}; allowed: 0x00, 0x01, 0x02, 0x80, 0x81, 0x82")]
    ChannelType(u8),
    /// A label or protocol is not UTF-8.
    #[error("the {0} is not UTF-8")]
    Utf8(&'static str),
}

/// Whether a message is a DATA_CHANNEL_OPEN, valid or not.
pub(crate) fn is_open(bytes: &[u8]) -> bool {
    bytes.first() == Some(&OPEN)
}

impl Dcep {
    /// Decodes a message.
    ///
    /// # Errors
    /// Describes the error in the message.
    pub fn decode(bytes: &[u8]) -> Result<Self, DcepError> {
        let length = bytes.len();
        match bytes.first() {
            None => Err(DcepError::Empty),
            Some(&ACK) if length == 1 => Ok(Self::Ack),
            Some(&ACK) => Err(DcepError::Length { length, needed: 1 }),
            Some(&OPEN) => Open::decode(bytes).map(Self::Open),
            Some(&other) => Err(DcepError::MessageType(other)),
        }
    }

    /// Encodes the message. Labels and protocols are truncated to 65,535 bytes.
    pub fn encode(&self) -> Bytes {
        match self {
            Self::Ack => Bytes::from_static(&[ACK]),
            Self::Open(open) => open.encode(),
        }
    }
}

impl Open {
    fn decode(bytes: &[u8]) -> Result<Self, DcepError> {
        let length = bytes.len();
        let Some((&header, names)) = bytes.split_first_chunk::<OPEN_HEADER>() else {
            let needed = OPEN_HEADER;
            return Err(DcepError::Length { length, needed });
        };
        let [_, kind, p0, p1, r0, r1, r2, r3, l0, l1, n0, n1] = header;
        let label = usize::from(u16::from_be_bytes([l0, l1]));
        let protocol = usize::from(u16::from_be_bytes([n0, n1]));
        if names.len() != label + protocol {
            let needed = OPEN_HEADER + label + protocol;
            return Err(DcepError::Length { length, needed });
        }
        let parameter = u32::from_be_bytes([r0, r1, r2, r3]);
        let (label, protocol) = names.split_at(label);
        let text = |bytes: &[u8], what| {
            let text = std::str::from_utf8(bytes).map_err(|_| DcepError::Utf8(what))?;
            Ok(text.to_owned())
        };
        Ok(Self {
            ordered: kind & UNORDERED == 0,
            reliability: match kind & !UNORDERED {
                // For reliable channels the reliability parameter is ignored (RFC 8832 §5.1).
                0 => Reliability::Reliable,
                1 => Reliability::MaxRetransmits(parameter),
                2 => Reliability::MaxLifetime(parameter),
                _ => return Err(DcepError::ChannelType(kind)),
            },
            priority: u16::from_be_bytes([p0, p1]),
            label: text(label, "label")?,
            protocol: text(protocol, "protocol")?,
        })
    }

    fn encode(&self) -> Bytes {
        let (kind, parameter) = match self.reliability {
            Reliability::Reliable => (0, 0),
            Reliability::MaxRetransmits(retransmits) => (1, retransmits),
            Reliability::MaxLifetime(milliseconds) => (2, milliseconds),
        };
        let label = first(&self.label);
        let protocol = first(&self.protocol);
        let mut out = BytesMut::with_capacity(OPEN_HEADER + label.len() + protocol.len());
        out.put_u8(OPEN);
        out.put_u8(if self.ordered { kind } else { kind | UNORDERED });
        out.put_u16(self.priority);
        out.put_u32(parameter);
        out.put_u16(label.len() as u16);
        out.put_u16(protocol.len() as u16);
        out.put_slice(label);
        out.put_slice(protocol);
        out.freeze()
    }
}

/// Truncates `text` to 65,535 bytes, the range of its length field.
fn first(text: &str) -> &[u8] {
    let mut end = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text.as_bytes()[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn open(ordered: bool, reliability: Reliability) -> Open {
        Open {
            ordered,
            reliability,
            priority: 0x0102,
            label: "näme".into(),
            protocol: "p".into(),
        }
    }

    /// The message in the figure of RFC 8832 §5.1, for each channel type.
    #[test]
    fn open_byte_for_byte() {
        let some = 0x0304_0506;
        for (kind, ordered, reliability, parameter) in [
            (0x00, true, Reliability::Reliable, [0; 4]),
            (0x80, false, Reliability::Reliable, [0; 4]),
            (0x01, true, Reliability::MaxRetransmits(some), [3, 4, 5, 6]),
            (0x81, false, Reliability::MaxRetransmits(some), [3, 4, 5, 6]),
            (0x02, true, Reliability::MaxLifetime(some), [3, 4, 5, 6]),
            (0x82, false, Reliability::MaxLifetime(some), [3, 4, 5, 6]),
        ] {
            let mut bytes = vec![3, kind, 1, 2];
            bytes.extend(parameter);
            bytes.extend(*b"\0\x05\0\x01n\xc3\xa4mep");
            let message = Dcep::Open(open(ordered, reliability));
            assert_eq!(message.encode()[..], bytes);
            assert_eq!(Dcep::decode(&bytes), Ok(message));
        }
        assert_eq!(Dcep::Ack.encode()[..], [2]);
        assert_eq!(Dcep::decode(&[2]), Ok(Dcep::Ack));
    }

    /// The parameter of a reliable channel is ignored.
    #[test]
    fn a_reliable_channel_has_no_parameter() {
        let bytes = [3, 0, 0, 0, 9, 9, 9, 9, 0, 0, 0, 0];
        let Ok(Dcep::Open(read)) = Dcep::decode(&bytes) else {
            panic!("sound")
        };
        assert_eq!(read.reliability, Reliability::Reliable);
    }

    #[test]
    fn malformed_dcep_messages_are_refused() {
        assert_eq!(Dcep::decode(&[]), Err(DcepError::Empty));
        for kind in [0, 1, 4, 0xFF] {
            assert_eq!(Dcep::decode(&[kind]), Err(DcepError::MessageType(kind)));
        }
        let wrong = |length, needed| Err(DcepError::Length { length, needed });
        assert_eq!(Dcep::decode(&[2, 0]), wrong(2, 1));
        let sound = Dcep::Open(open(true, Reliability::Reliable)).encode();
        for cut in 1..12 {
            assert_eq!(Dcep::decode(&sound[..cut]), wrong(cut, 12));
        }
        for cut in 12..sound.len() {
            assert_eq!(Dcep::decode(&sound[..cut]), wrong(cut, sound.len()));
        }
        let longer = [&sound[..], b"!"].concat();
        assert_eq!(Dcep::decode(&longer), wrong(sound.len() + 1, sound.len()));
        for kind in [0x03, 0x40, 0x7F, 0x83] {
            let mut bytes = sound.to_vec();
            bytes[1] = kind;
            assert_eq!(Dcep::decode(&bytes), Err(DcepError::ChannelType(kind)));
        }
        for (at, what) in [(13, "label"), (17, "protocol")] {
            let mut bytes = sound.to_vec();
            bytes[at] = 0xFF;
            assert_eq!(Dcep::decode(&bytes), Err(DcepError::Utf8(what)));
        }
    }

    #[test]
    fn names_that_no_field_can_tell_are_cut_between_characters() {
        let mut long = open(true, Reliability::Reliable);
        long.label = "ä".repeat(40_000);
        let Ok(Dcep::Open(read)) = Dcep::decode(&Dcep::Open(long).encode()) else {
            panic!("sound")
        };
        assert_eq!(read.label, "ä".repeat(32_767));
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(read) = Dcep::decode(&bytes) {
                prop_assert_eq!(Dcep::decode(&read.encode()), Ok(read));
            }
        }

        #[test]
        fn any_open(ordered: bool, priority: u16, kind in 0u8..3, parameter: u32, label: String, protocol: String) {
            let reliability = match kind {
                0 => Reliability::Reliable,
                1 => Reliability::MaxRetransmits(parameter),
                _ => Reliability::MaxLifetime(parameter),
            };
            let message = Dcep::Open(Open { ordered, reliability, priority, label, protocol });
            prop_assert_eq!(Dcep::decode(&message.encode()), Ok(message));
        }
    }
}
