//! Record of sent and received messages. A new epoch begins when a host has lost its state.
//! Messages of earlier epochs may be lost; later messages must arrive.

use std::collections::BTreeMap;

use anabranch_sctp::{ReceivedPart, SendOptions};
use bytes::{BufMut, Bytes, BytesMut};

use super::Random;

/// Number of bytes of a message that identify it.
const HEADER: usize = 5;

struct Sent {
    epoch: u32,
    stream: u16,
    unordered: bool,
    reliable: bool,
    read: u32,
    given_up: u32,
}

/// Messages that one host has sent and the other has read.
#[derive(Default)]
pub struct Ledger {
    sent: Vec<Sent>,
    /// Current epoch, for messages that are sent.
    pub epoch: u32,
    /// First epoch whose messages the reader must receive.
    pub reader_since: u32,
    /// Number of the last ordered message that was read on each stream.
    last: BTreeMap<u16, u32>,
    /// Parts of incomplete messages, by stream, unordered flag and number.
    begun: BTreeMap<(u16, bool, u32), BytesMut>,
}

impl Ledger {
    /// Payload of the next message, of at least `len` bytes.
    pub fn write(&self, len: usize) -> Bytes {
        let number = self.sent.len() as u32;
        let mut message = BytesMut::new();
        message.put_u32(number);
        message.resize(len.max(HEADER), number as u8);
        message.freeze()
    }

    /// Records that the last payload was accepted for sending.
    pub fn accepted(&mut self, stream: u16, options: &SendOptions) {
        let policies = [
            options.lifetime().is_some(),
            options.max_retransmits().is_some(),
            options.priority().is_some(),
        ];
        self.sent.push(Sent {
            epoch: self.epoch,
            stream,
            unordered: options.unordered,
            reliable: !policies.contains(&true),
            read: 0,
            given_up: 0,
        });
    }

    fn entry(&mut self, payload: &[u8]) -> (u32, &mut Sent) {
        let header = payload.first_chunk().expect("a number");
        let number = u32::from_be_bytes(*header);
        let rest = payload[4..].iter();
        assert!(
            rest.clone().all(|it| *it == number as u8),
            "{number}: altered"
        );
        (number, &mut self.sent[number as usize])
    }

    /// Records that the sender was notified of an abandoned message.
    pub fn give_up(&mut self, payload: &[u8]) {
        let (number, sent) = self.entry(payload);
        sent.given_up += 1;
        assert!(!sent.reliable, "{number} was reliable");
        assert_eq!(sent.given_up, 1, "{number} was given up twice");
    }

    /// Checks and records a part that the reader has read.
    pub fn read(&mut self, part: ReceivedPart, parts_of: impl Fn(&ReceivedPart) -> u32) {
        let key = (part.stream, part.unordered, parts_of(&part));
        if part.begins {
            self.begun.insert(key, BytesMut::new());
        }
        let whole = self.begun.get_mut(&key).expect("it began");
        for slice in part.payload.parts() {
            whole.extend_from_slice(slice);
        }
        if part.ends {
            let whole = self.begun.remove(&key).expect("it is there");
            self.read_whole(part.stream, part.unordered, &whole);
        }
    }

    fn read_whole(&mut self, stream: u16, unordered: bool, payload: &[u8]) {
        let since = self.reader_since;
        let (number, sent) = self.entry(payload);
        sent.read += 1;
        assert_eq!(sent.read, 1, "{number} was read twice");
        assert!(sent.epoch >= since, "{number} is of a former life");
        assert_eq!(
            (sent.stream, sent.unordered),
            (stream, unordered),
            "{number}"
        );
        if !unordered {
            let last = self.last.insert(stream, number);
            assert!(
                last.is_none_or(|it| it < number),
                "{number} behind {last:?}"
            );
        }
    }

    /// Drops incomplete messages.
    pub fn break_off(&mut self) {
        self.begun.clear();
    }

    /// Checks that all messages of this epoch were read, except abandoned ones that are not
    /// reliable.
    pub fn check(&self, epoch: u32) {
        for (number, sent) in self.sent.iter().enumerate() {
            let settled = sent.read == 1 || sent.given_up == 1;
            let lost = sent.epoch == epoch && !settled;
            assert!(!lost, "message {number} of stream {} is lost", sent.stream);
        }
    }

    /// Number of ordered messages sent on `stream`.
    pub fn count_ordered(&self, stream: u16) -> usize {
        let of_stream = |it: &&Sent| it.stream == stream && !it.unordered;
        self.sent.iter().filter(of_stream).count()
    }

    /// Number of messages read.
    pub fn count_read(&self) -> u64 {
        self.sent.iter().map(|it| u64::from(it.read)).sum()
    }
}

/// Random stream, options and length of a message.
pub fn draw(random: &mut Random, may_be_lost: bool) -> (SendOptions, usize) {
    let mut options = SendOptions::new()
        .with_unordered(random.once_in(3))
        .with_immediate(random.once_in(8));
    if may_be_lost {
        options = match random.below(6) {
            0 => options.with_max_retransmits(Some(random.below(3) as u32)),
            1 => options.with_lifetime(Some((20 + random.below(900)) * 1_000_000)),
            2 => options.with_priority(Some(random.below(4) as u32)),
            _ => options,
        };
    }
    let length = [5, 10, 500, 1_400, 3_000, 9_000][random.below(6) as usize];
    (options, length)
}
