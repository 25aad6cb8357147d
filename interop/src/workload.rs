//! Messages that every peer sends and checks. A message with a given seed and `index` has the same
//! bytes in every language (`peers/common/workload.h`, `peers/pion/main.go`). Sizes have a
//! heavy-tailed distribution. The header of a message is sufficient to verify it:
//!
//! | offset | |
//! |---|---|
//! | 0 | u32 index: position in sending order; the payload protocol identifier is 65,536 more |
//! | 4 | u16 stream |
//! | 6 | u16 flags; bit 0: sent unordered |
//! | 8 | u32 ordinal: position among the ordered messages of its stream |
//! | 12 | u32 length of the whole message, in bytes |
//! | 16 | u64 hash: FNV-1a of the bytes after it |

use std::collections::BTreeMap;

use crate::extension::Extension;

/// Number of streams in each direction.
pub const STREAMS: u16 = 10;
/// Length of the header, and of the smallest message, bytes.
pub const HEADER: u32 = 24;
/// Length of the largest message, bytes.
pub const MAX_MESSAGE: u32 = 256 * 1024;
/// Payload protocol identifier of message 0. It is above the identifiers of WebRTC, because pion
/// always sends messages with some of those identifiers in order.
const PPID: u32 = 0x1_0000;

/// A message of the workload: its stream and parameters.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Position in sending order among all messages of the seed, from 0.
    pub index: u32,
    /// Position among the ordered messages of its stream, from 0; 0 if unordered.
    pub ordinal: u32,
    /// Length of the whole message, bytes.
    pub length: u32,
    /// Stream, less than [`STREAMS`].
    pub stream: u16,
    /// Whether the message is sent unordered.
    pub unordered: bool,
    state: u64,
}

/// SplitMix64 random number generator.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = *state;
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn drawn_length(index: u32, kind: u64, r: u64) -> u32 {
    let (low, span) = match (index, kind % 100) {
        (0, _) => return MAX_MESSAGE,
        (1, _) => return HEADER,
        // Messages 2 to 401 have all lengths close to the size of a packet.
        (2..402, _) => return 1100 + index,
        (_, ..60) => (HEADER, 177),
        (_, ..90) => (200, 1801),
        (_, ..99) => (2000, 18_001),
        _ => (20_000, 242_145),
    };
    low + (r % span) as u32
}

/// The messages of a seed, in sending order.
#[derive(Clone, Debug)]
pub struct Plan {
    seed: u64,
    next: u32,
    count: u32,
    ordinals: [u32; STREAMS as usize],
}

impl Plan {
    /// Creates the plan of the first `count` messages of `seed`.
    pub fn new(seed: u64, count: u32) -> Self {
        Self {
            seed,
            next: 0,
            count,
            ordinals: [0; STREAMS as usize],
        }
    }
}

impl Iterator for Plan {
    type Item = Message;

    fn next(&mut self) -> Option<Message> {
        if self.next == self.count {
            return None;
        }
        let index = self.next;
        self.next += 1;
        let mut state = self.seed ^ (u64::from(index) + 1).wrapping_mul(0xd1b5_4a32_d192_ed03);
        let (kind, r, place) = (draw(&mut state), draw(&mut state), draw(&mut state));
        let stream = (place % u64::from(STREAMS)) as u16;
        let unordered = (place >> 32) % 4 == 0;
        let ordinal = &mut self.ordinals[usize::from(stream)];
        let message = Message {
            index,
            ordinal: if unordered { 0 } else { *ordinal },
            length: drawn_length(index, kind, r),
            stream,
            unordered,
            state,
        };
        *ordinal += u32::from(!unordered);
        Some(message)
    }
}

fn hash(body: &[u8]) -> u64 {
    body.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

impl Message {
    /// Payload protocol identifier: the index plus a constant.
    pub fn ppid(&self) -> u32 {
        self.index + PPID
    }

    /// Whether the message may be abandoned in cases with partial reliability, because it is never
    /// retransmitted. These are the messages of streams with odd numbers.
    pub fn is_expendable(&self) -> bool {
        self.stream % 2 == 1
    }

    /// Builds the message: header, hash and payload.
    pub fn compose(mut self) -> Vec<u8> {
        let mut out = vec![0; self.length as usize];
        let (header, body) = out.split_at_mut(HEADER as usize);
        for piece in body.chunks_mut(8) {
            piece.copy_from_slice(&draw(&mut self.state).to_le_bytes()[..piece.len()]);
        }
        header[..4].copy_from_slice(&self.index.to_be_bytes());
        header[4..6].copy_from_slice(&self.stream.to_be_bytes());
        header[6..8].copy_from_slice(&u16::from(self.unordered).to_be_bytes());
        header[8..12].copy_from_slice(&self.ordinal.to_be_bytes());
        header[12..16].copy_from_slice(&self.length.to_be_bytes());
        header[16..].copy_from_slice(&hash(body).to_be_bytes());
        out
    }
}

/// Checks received messages: each must arrive once, unchanged and in the order of its stream.
#[derive(Debug)]
pub struct Checker {
    seen: Vec<bool>,
    next: [u32; STREAMS as usize],
    count: u32,
    bytes: u64,
    /// Number of messages that must arrive, and number of those that have arrived; used only with
    /// partial reliability.
    reliable: Option<u32>,
    reliable_count: u32,
}

/// A complete message as delivered by a stack.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Stream on which the message arrived.
    pub stream: u16,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// Whether the message was sent unordered; `None` if the stack does not report this.
    pub unordered: Option<bool>,
    /// Contents of the message.
    pub data: &'a [u8],
}

impl Checker {
    /// Creates a checker that expects `count` messages.
    pub fn new(count: u32) -> Self {
        Self {
            seen: vec![false; count as usize],
            next: [0; STREAMS as usize],
            count: 0,
            bytes: 0,
            reliable: None,
            reliable_count: 0,
        }
    }

    /// Creates a checker for partial reliability. Of `count` messages, the `reliable` messages that
    /// are not [expendable](Message::is_expendable) must arrive; others may.
    pub fn partial(count: u32, reliable: u32) -> Self {
        Self {
            reliable: Some(reliable),
            ..Self::new(count)
        }
    }

    /// Creates the checker that the command line arguments describe.
    ///
    /// # Errors
    ///
    /// An argument has an invalid value.
    pub fn of(arguments: &Arguments) -> Result<Self, String> {
        let count = arguments.number("messages")?;
        match arguments.extension()? {
            Extension::Partial => Ok(Self::partial(count, arguments.number("expects")?)),
            _ => Ok(Self::new(count)),
        }
    }

    /// Prints the received messages at the end of a case with partial reliability.
    pub fn conclude(&self) {
        let (count, bytes, reliable) = (self.count, self.bytes, self.reliable_count);
        if self.reliable.is_some() {
            println!("received messages={count} bytes={bytes} reliable={reliable}");
        }
    }

    /// Number of received messages, and number of bytes in them.
    pub fn total(&self) -> (u32, u64) {
        (self.count, self.bytes)
    }

    /// Whether all required messages have arrived.
    pub fn complete(&self) -> bool {
        match self.reliable {
            Some(reliable) => self.reliable_count == reliable,
            None => self.count as usize == self.seen.len(),
        }
    }

    /// Checks one message. Prints a line when a quarter of the messages, and when all of them, have
    /// arrived.
    ///
    /// # Errors
    ///
    /// Description of the defect in the message.
    pub fn check(&mut self, message: Received<'_>) -> Result<(), String> {
        let data = message.data;
        if data.len() < HEADER as usize {
            return Err(format!(
                "message of {} bytes, shorter than its header",
                data.len()
            ));
        }
        let word = |at: usize| u32::from_be_bytes(data[at..at + 4].try_into().expect("four bytes"));
        let (index, ordinal, length) = (word(0), word(8), word(12));
        let (stream, unordered) = ((word(4) >> 16) as u16, word(4) & 1 != 0);
        let sent_hash = u64::from(word(16)) << 32 | u64::from(word(20));
        let wrong = |what: String| Err(format!("message {index}: {what}"));
        let Some(seen) = self.seen.get_mut(index as usize) else {
            return wrong(format!("there are {}", self.seen.len()));
        };
        if length as usize != data.len() {
            return wrong(format!("{} bytes, sent {length}", data.len()));
        }
        if stream != message.stream || stream >= STREAMS {
            return wrong(format!("on stream {}, sent on {stream}", message.stream));
        }
        if message.ppid != index + PPID {
            return wrong(format!("payload protocol identifier {}", message.ppid));
        }
        if message.unordered.is_some_and(|flag| flag != unordered) {
            return wrong(format!(
                "sent with unordered {unordered}, came with the other"
            ));
        }
        if sent_hash != hash(&data[HEADER as usize..]) {
            return wrong("another hash".into());
        }
        if std::mem::replace(seen, true) {
            return wrong("twice".into());
        }
        let next = &mut self.next[usize::from(stream)];
        let passes_over = self.reliable.is_some() && stream % 2 == 1 && ordinal > *next;
        if !unordered {
            if ordinal != *next && !passes_over {
                return wrong(format!(
                    "ordinal {ordinal} on stream {stream}, expected {next}"
                ));
            }
            *next = ordinal + 1;
        }
        self.reliable_count += u32::from(stream % 2 == 0);
        self.count += 1;
        self.bytes += u64::from(length);
        if self.count as usize == self.seen.len() / 4 {
            println!("quarter");
        }
        if self.reliable.is_none() && self.complete() {
            println!("received messages={} bytes={}", self.count, self.bytes);
        }
        Ok(())
    }
}

/// Parsed command line of a peer: `connect` or `accept`, then `key=value` pairs.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// Whether this peer sends the INIT.
    pub connects: bool,
    values: BTreeMap<String, String>,
}

impl Arguments {
    /// Keys of all peers with their default values. Only the peer with this stack uses
    /// `minimal-init`, `hold` and `at-once`.
    const DEFAULTS: [(&str, &str); 20] = [
        ("local", "127.0.0.1"),
        ("remote", "127.0.0.1"),
        ("transport", "plain"),
        ("local-udp", "9899"),
        ("remote-udp", "9899"),
        ("port", "5000"),
        ("messages", "10000"),
        ("rto-min", "0"),
        ("max-retrans", "0"),
        ("seed", "1"),
        ("minimal-init", "0"),
        ("hold", "0"),
        ("speaks", "none"),
        ("moves-to", ""),
        ("at-once", "0"),
        ("leaves-late", "0"),
        ("names-streams", "0"),
        ("expects", "0"),
        ("size", "0"),
        ("seconds", "3"),
    ];

    /// Parses the command line of this process.
    ///
    /// # Errors
    ///
    /// An argument is unknown.
    pub fn from_command_line() -> Result<Self, String> {
        let mut connects = false;
        let mut values: BTreeMap<_, _> = Self::DEFAULTS
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        for given in std::env::args().skip(1) {
            match given.split_once('=') {
                None if given == "connect" || given == "accept" => connects = given == "connect",
                Some((key, value)) if values.contains_key(key) => {
                    values.insert(key.to_owned(), value.to_owned());
                }
                _ => return Err(format!("unknown argument: {given}")),
            }
        }
        Ok(Self { connects, values })
    }

    /// The SCTP extension that both peers offer.
    ///
    /// # Errors
    ///
    /// The name is unknown.
    pub fn extension(&self) -> Result<Extension, String> {
        Extension::by_name(self.text("speaks"))
    }

    /// Value of this key as text.
    pub fn text(&self, key: &str) -> &str {
        &self.values[key]
    }

    /// Value of this key as a number.
    ///
    /// # Errors
    ///
    /// The value is not a number, or too large for the type.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Result<T, String> {
        self.text(key)
            .parse()
            .map_err(|_| format!("{key}: not a number here: {}", self.text(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The peers in C and Go contain the same generator. A case between two languages fails if they
    /// produce other numbers.
    #[test]
    fn a_seed_is_always_the_same_messages() {
        let bytes = |seed| {
            Plan::new(seed, 10_000)
                .map(|m| u64::from(m.length))
                .sum::<u64>()
        };
        assert_eq!((bytes(1), bytes(2)), (27_745_960, 29_946_329));
        let mut lengths = Plan::new(1, 402).map(|m| m.length);
        assert_eq!(lengths.next(), Some(MAX_MESSAGE));
        assert_eq!(lengths.next(), Some(HEADER));
        assert!(lengths.eq(1102..1502));
        let unordered = Plan::new(1, 10_000).filter(|m| m.unordered).count();
        assert!((2400..2600).contains(&unordered), "{unordered}");
    }

    #[test]
    fn wrong_messages_are_detected() {
        let messages: Vec<_> = Plan::new(7, 500).collect();
        let mut checker = Checker::new(500);
        let mut take = |m: &Message, change: &dyn Fn(&mut Received<'_>, &mut Vec<u8>)| {
            let mut bytes = m.compose();
            let mut received = Received {
                stream: m.stream,
                ppid: m.ppid(),
                unordered: Some(m.unordered),
                data: &[],
            };
            change(&mut received, &mut bytes);
            checker.check(Received {
                data: &bytes,
                ..received
            })
        };
        let m = &messages[5];
        let wrong = [
            take(m, &|_, bytes| bytes.truncate(10)),
            take(m, &|_, bytes| bytes.truncate(100)),
            take(m, &|_, bytes| bytes[500] ^= 1),
            take(m, &|_, bytes| bytes[3] = 200),
            take(m, &|received, _| received.stream ^= 1),
            take(m, &|received, _| received.ppid += 1),
            take(m, &|received, _| received.unordered = Some(!m.unordered)),
        ];
        assert!(wrong.iter().all(Result::is_err), "{wrong:?}");
        let late = messages.iter().find(|m| m.ordinal == 1).unwrap();
        assert!(take(late, &|_, _| ()).unwrap_err().contains("expected 0"));
        let free = messages.iter().find(|m| m.unordered).unwrap();
        assert!(take(free, &|_, _| ()).is_ok());
        assert!(take(free, &|_, _| ()).unwrap_err().contains("twice"));
    }
}
