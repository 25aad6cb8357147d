//! The control protocol between `perf` and `serve`: short texts, which are sent as separate
//! messages among the data.
//!
//! Format of a text: `anabranch WORD 1 key=value ...`, in which 1 is the version. Unknown keys are
//! ignored.

/// Payload protocol identifier of control messages, which is not registered.
pub const PPID: u32 = 0x616e_6172;

/// Maximum length of a text, bytes. All texts are shorter; the limit bounds the time to parse a
/// message.
const MAX_TEXT: usize = 512;

/// Parameters of data that a source should send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceParameters {
    /// Size of a message, bytes.
    pub message: u64,
    /// Total bytes to send; `None`: until the peer closes.
    pub bytes: Option<u64>,
    /// Whether messages are sent unordered.
    pub unordered: bool,
    /// Target rate, bit/s; `None`: no limit.
    pub rate: Option<u64>,
}

/// Receive statistics: messages, bytes, and duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounts {
    pub messages: u64,
    pub bytes: u64,
    /// Time from the first byte to the last.
    pub nanoseconds: u64,
}

/// Transmit statistics, and the final state of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    pub messages: u64,
    pub bytes: u64,
    /// Number of retransmitted chunks.
    pub retransmitted: u64,
    /// Number of expiries of T3-rtx.
    pub timeouts: u64,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Smoothed round-trip time, nanoseconds; `None`: not measured.
    pub srtt: Option<u64>,
}

/// A control message between `perf` and `serve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlMessage {
    /// First message of a client: requests that the server sends data.
    Source(SourceParameters),
    /// From the client to a source: requests that it stops sending, and reports its statistics.
    Stop,
    /// From the client to a sink, after its data: the number of messages that were sent. When they
    /// have arrived, the sink should report its statistics.
    Count {
        /// Number of messages.
        messages: u64,
    },
    /// Answer of a sink: its statistics.
    Received(ReceiverCounts),
    /// Last message of a source: its statistics.
    Sent(Sent),
}

impl ControlMessage {
    /// Formats the message as text.
    pub fn write(self) -> String {
        match self {
            ControlMessage::Source(job) => format!(
                "anabranch source 1 message={} bytes={} unordered={} rate={}",
                job.message,
                job.bytes.unwrap_or(0),
                u8::from(job.unordered),
                job.rate.unwrap_or(0)
            ),
            ControlMessage::Stop => "anabranch stop 1".to_owned(),
            ControlMessage::Count { messages } => format!("anabranch count 1 messages={messages}"),
            ControlMessage::Received(it) => format!(
                "anabranch received 1 messages={} bytes={} nanoseconds={}",
                it.messages, it.bytes, it.nanoseconds
            ),
            ControlMessage::Sent(it) => format!(
                "anabranch sent 1 messages={} bytes={} retransmitted={} timeouts={} cwnd={} srtt={}",
                it.messages,
                it.bytes,
                it.retransmitted,
                it.timeouts,
                it.cwnd,
                it.srtt.unwrap_or(0)
            ),
        }
    }

    /// Parses a message; `None` if it is not a control message.
    pub fn read(text: &[u8]) -> Option<Self> {
        // The prefix is checked first, because most arriving messages are data and may be large.
        let text = text.strip_prefix(b"anabranch ")?;
        if text.len() > MAX_TEXT {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        let mut words = text.split(' ');
        let (word, version) = (words.next()?, words.next()?);
        if version != "1" {
            return None;
        }
        let value = |key: &str| {
            let mut pairs = words.clone().filter_map(|pair| pair.split_once('='));
            pairs.find(|(name, _)| *name == key)?.1.parse::<u64>().ok()
        };
        Some(match word {
            "source" => {
                let message = value("message")?;
                if !(1..=super::MAX_MESSAGE).contains(&message) {
                    return None;
                }
                ControlMessage::Source(SourceParameters {
                    message,
                    bytes: value("bytes").filter(|&bytes| bytes > 0),
                    unordered: value("unordered")? == 1,
                    rate: value("rate").filter(|&rate| rate > 0),
                })
            }
            "stop" => ControlMessage::Stop,
            "count" => ControlMessage::Count {
                messages: value("messages")?,
            },
            "received" => ControlMessage::Received(ReceiverCounts {
                messages: value("messages")?,
                bytes: value("bytes")?,
                nanoseconds: value("nanoseconds")?,
            }),
            "sent" => ControlMessage::Sent(Sent {
                messages: value("messages")?,
                bytes: value("bytes")?,
                retransmitted: value("retransmitted")?,
                timeouts: value("timeouts")?,
                cwnd: value("cwnd")?,
                srtt: value("srtt").filter(|&srtt| srtt > 0),
            }),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_it_was_meant_and_nothing_else_is() {
        let sent = Sent {
            messages: 1,
            bytes: 2,
            retransmitted: 3,
            timeouts: 4,
            cwnd: 5,
            srtt: Some(6),
        };
        for text in [
            ControlMessage::Source(SourceParameters {
                message: 1,
                bytes: None,
                unordered: true,
                rate: Some(2_000_000),
            }),
            ControlMessage::Source(SourceParameters {
                message: 1 << 20,
                bytes: Some(5),
                unordered: false,
                rate: None,
            }),
            ControlMessage::Stop,
            ControlMessage::Count { messages: 7 },
            ControlMessage::Received(ReceiverCounts {
                messages: 1,
                bytes: 2,
                nanoseconds: 3,
            }),
            ControlMessage::Sent(sent),
            ControlMessage::Sent(Sent { srtt: None, ..sent }),
        ] {
            assert_eq!(ControlMessage::read(text.write().as_bytes()), Some(text));
        }
        for wrong in [
            "",
            "anabranch",
            "anabranch source 2 message=1 bytes=0 unordered=0",
            "anabranch source 1 message=0 bytes=0 unordered=0",
            "anabranch source 1 message=99999999 bytes=0 unordered=0",
            "anabranch source 1 bytes=0 unordered=0",
            "anabranch count 1 messages=-1",
            "anabranch stop",
        ] {
            assert_eq!(ControlMessage::read(wrong.as_bytes()), None, "{wrong}");
        }
        let long = format!("anabranch count 1{} messages=7", " x".repeat(300));
        assert_eq!(ControlMessage::read(long.as_bytes()), None);
        let later = b"anabranch count 1 colour=red messages=7";
        assert_eq!(
            ControlMessage::read(later),
            Some(ControlMessage::Count { messages: 7 })
        );
    }
}
