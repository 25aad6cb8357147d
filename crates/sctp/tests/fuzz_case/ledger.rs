//! Record of sent and received messages: each must arrive once, complete, and in the order of its
//! stream.
//!
//! A message may arrive once in each association of its receiver, because DATA may be bundled with
//! the COOKIE ECHO. If the receiver's association then fails, or its host loses its state, before
//! the sender gets the COOKIE ACK, the sender connects again and retransmits the unacknowledged
//! data. A second association of the receiver then gets the same messages.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_sctp::{AssociationId, CloseReason, Config, Event, ReceivedMessage};
use bytes::{BufMut, Bytes, BytesMut};

/// Minimum length of messages that contain their number, in bytes.
const HEADER: usize = 12;

/// Messages that one end has sent in one incarnation of an association.
#[derive(Debug)]
struct Sent {
    host: usize,
    id: AssociationId,
    /// Number of accepted messages, by stream and unordered flag.
    accepted: BTreeMap<(u16, bool), u32>,
    /// Whether no more messages are sent with this serial number.
    over: bool,
    closed: Option<CloseReason>,
    /// Whether an end has lost its state or discarded unread messages, so that messages may be
    /// lost.
    forgiven: bool,
}

/// Message numbers that a reader has received.
#[derive(Debug, Default)]
struct Order {
    /// Number of restarts of the peer so far.
    restarts: u32,
    /// Restart count and next message number of each stream.
    next: BTreeMap<u16, (u32, u16)>,
}

/// Association that reads the messages of one serial number.
#[derive(Debug)]
struct Reader {
    /// Identifier of the association, and number of times that its host had lost its state by then.
    who: (AssociationId, u32),
    /// Next number, by stream.
    next: BTreeMap<u16, u32>,
    unordered: BTreeSet<(u16, u32)>,
}

#[derive(Debug)]
pub(super) struct Ledger {
    /// Whether messages may be abandoned.
    gives_up: bool,
    /// Whether stream sequence numbers may restart, or change to message identifiers.
    renumbers: bool,
    /// Messages that their senders have abandoned, by serial number, stream and unordered flag.
    given_up: BTreeMap<(u32, u16, bool), BTreeSet<u32>>,
    sent: Vec<Sent>,
    /// Number of ordered messages received, by serial number and stream.
    came: BTreeMap<(u32, u16), u32>,
    came_unordered: BTreeMap<(u32, u16), BTreeSet<u32>>,
    /// Association that reads the messages of each serial number.
    readers: BTreeMap<u32, Reader>,
    /// Number of times that each host has lost its state.
    forgotten: [u32; 2],
    orders: BTreeMap<(usize, AssociationId), Order>,
}

impl Reader {
    fn new(who: (AssociationId, u32)) -> Self {
        Self {
            who,
            next: BTreeMap::new(),
            unordered: BTreeSet::new(),
        }
    }
}

impl Ledger {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            gives_up: config.partial_reliability,
            renumbers: config.reconfiguration || config.interleaving,
            given_up: BTreeMap::new(),
            sent: Vec::new(),
            came: BTreeMap::new(),
            came_unordered: BTreeMap::new(),
            readers: BTreeMap::new(),
            forgotten: [0; 2],
            orders: BTreeMap::new(),
        }
    }

    /// Records that `host` abandoned a message.
    fn give_up(&mut self, host: usize, payload: &[u8], tampered: bool) {
        assert!(self.gives_up, "nothing may be given up");
        let Some(label) = Label::read(payload) else {
            return;
        };
        let Label { serial, number, .. } = label;
        assert!(tampered || label.host == host, "another's message");
        let stream = (serial, label.stream, label.unordered);
        let is_new = self.given_up.entry(stream).or_default().insert(number);
        assert!(tampered || is_new, "message {number} was given up twice");
    }

    fn is_given_up(&self, stream: (u32, u16, bool), number: u32) -> bool {
        self.given_up
            .get(&stream)
            .is_some_and(|it| it.contains(&number))
    }

    /// Creates the payload of `len` bytes for the next message of an association. Returns it with
    /// the serial number of the association.
    pub(super) fn write(
        &mut self,
        host: usize,
        id: AssociationId,
        stream: u16,
        unordered: bool,
        len: usize,
    ) -> (u32, Bytes) {
        let ours = |it: &Sent| it.host == host && it.id == id && !it.over;
        let serial = self.sent.iter().rposition(ours).unwrap_or_else(|| {
            self.sent.push(Sent {
                host,
                id,
                accepted: BTreeMap::new(),
                over: false,
                closed: None,
                forgiven: false,
            });
            self.sent.len() - 1
        }) as u32;
        let counted = len >= HEADER;
        let number = self.number(serial, stream, unordered);
        let mut payload = BytesMut::with_capacity(len);
        if counted {
            payload.put_u32(serial);
            payload.put_u16(stream);
            payload.put_u8(unordered.into());
            payload.put_u8(host as u8);
            payload.put_u32(number);
        }
        payload.resize(len, fill(number));
        (if counted { serial } else { u32::MAX }, payload.freeze())
    }

    fn number(&self, serial: u32, stream: u16, unordered: bool) -> u32 {
        let sent = &self.sent[serial as usize];
        sent.accepted
            .get(&(stream, unordered))
            .copied()
            .unwrap_or(0)
    }

    /// Records that the last written message was accepted.
    pub(super) fn accepted(&mut self, serial: u32, stream: u16, unordered: bool) {
        if let Some(sent) = self.sent.get_mut(serial as usize) {
            *sent.accepted.entry((stream, unordered)).or_default() += 1;
        }
    }

    pub(super) fn hear(&mut self, host: usize, id: AssociationId, event: &Event, tampered: bool) {
        if let Event::MessageAbandoned(message) = event {
            return self.give_up(host, &message.payload, tampered);
        }
        let order = self.orders.entry((host, id)).or_default();
        let mine = self.sent.iter_mut().rev();
        let mine = mine.filter(|it| it.host == host && it.id == id && !it.over);
        match event {
            Event::Restarted { .. } => {
                order.restarts += 1;
                mine.for_each(|it| (it.over, it.forgiven) = (true, true));
            }
            Event::SendFailed { .. } => mine.for_each(|it| it.forgiven = true),
            Event::Closed(reason) => mine.for_each(|it| {
                (it.over, it.closed) = (true, Some(reason.clone()));
            }),
            _ => {}
        }
    }

    /// Records that `host` lost its state.
    pub(super) fn forget(&mut self, host: usize) {
        self.sent.iter_mut().for_each(|it| it.forgiven = true);
        self.sent
            .iter_mut()
            .filter(|it| it.host == host)
            .for_each(|it| it.over = true);
        self.orders.retain(|(of, _), _| *of != host);
        self.forgotten[host] += 1;
    }

    /// Records that `host` released an association, and thereby discarded its unread messages.
    pub(super) fn released(&mut self, host: usize, id: AssociationId) {
        self.orders.remove(&(host, id));
        let theirs = self.sent.iter_mut().filter(|it| it.host != host);
        theirs.for_each(|it| it.forgiven = true);
    }

    /// Records that `host` read a message. The SSN of an ordered message must follow the previous
    /// SSN of its stream, even if an attacker sent the message. If no attacker has interfered
    /// (`tampered`), the peer must have sent the message unaltered, and it must not have been read
    /// before.
    pub(super) fn take(
        &mut self,
        host: usize,
        id: AssociationId,
        message: ReceivedMessage,
        tampered: bool,
    ) {
        if !message.unordered && !self.renumbers {
            self.follow(host, id, message.stream, message.ssn.0);
        }
        let (stream, unordered) = (message.stream, message.unordered);
        let payload = message.payload.into_bytes();
        assert!(!payload.is_empty(), "a message of no bytes");
        let Some(label) = Label::read(&payload).filter(|_| !tampered) else {
            return;
        };
        let Label { serial, number, .. } = label;
        let header = (label.stream, label.unordered, label.host);
        assert_eq!(header, (stream, unordered, 1 - host), "another's message");
        let rest = payload[HEADER..].iter();
        assert!(
            rest.clone().all(|&byte| byte == fill(number)),
            "message {number} was altered"
        );
        assert!(
            number < self.number(serial, stream, unordered),
            "message {number} was never sent"
        );
        let who = (id, self.forgotten[host]);
        let reader = self
            .readers
            .entry(serial)
            .or_insert_with(|| Reader::new(who));
        if reader.who != who {
            *reader = Reader::new(who);
        }
        if unordered {
            let is_new = reader.unordered.insert((stream, number));
            assert!(is_new, "message {number} came twice");
            let came = self.came_unordered.entry((serial, stream)).or_default();
            came.insert(number);
        } else {
            // A new reader may start with the last message that the previous reader read, but may
            // not skip any.
            let came = self.came.entry((serial, stream)).or_default();
            let next = reader.next.entry(stream).or_insert(number.min(*came));
            let given_up = self.given_up.get(&(serial, stream, false));
            let passed = |it: u32| given_up.is_some_and(|given_up| given_up.contains(&it));
            let in_order = *next <= number && (*next..number).all(passed);
            assert!(
                in_order,
                "stream {stream} of {serial}: {number} and not {next}"
            );
            *next = number + 1;
            *came = (*came).max(*next);
        }
    }

    fn follow(&mut self, host: usize, id: AssociationId, stream: u16, ssn: u16) {
        let order = self.orders.entry((host, id)).or_default();
        let restarts = order.restarts;
        let (life, next) = order.next.entry(stream).or_default();
        if *life < restarts && ssn == 0 && *next != 0 {
            // Unread messages of several incarnations may be read together.
            (*life, *next) = (*life + 1, 0);
        }
        // Unread messages of an earlier incarnation may be lost, and numbers of abandoned messages
        // are skipped.
        let passed = self.gives_up && ssn.wrapping_sub(*next) < 0x8000;
        assert!(
            ssn == *next || *life < restarts || passed,
            "stream {stream}: {ssn} and not {next}"
        );
        *next = ssn.wrapping_add(1);
    }

    /// Maximum heap memory of this record in bytes.
    pub(super) fn held(&self) -> usize {
        let orders = self.orders.values().map(|it| it.next.len());
        let numbers = self.came_unordered.values().map(BTreeSet::len);
        let sent = self.sent.iter().map(|it| 4 + it.accepted.len());
        let readers = self.readers.values();
        let readers = readers.map(|it| 2 + it.next.len() + it.unordered.len());
        let given_up = self.given_up.values().map(|it| 2 + it.len());
        let all = orders
            .chain(numbers)
            .chain(given_up)
            .chain(sent)
            .chain(readers);
        let entries = all.sum::<usize>() + self.came.len();
        4_096 + 256 * self.orders.len() + 128 * entries
    }

    /// Checks at the end that all messages of gracefully closed associations were read.
    pub(super) fn check(&self) {
        for (serial, sent) in self.sent.iter().enumerate() {
            if sent.closed != Some(CloseReason::Shutdown) || sent.forgiven {
                continue;
            }
            let serial = serial as u32;
            for (&(stream, unordered), &accepted) in &sent.accepted {
                let came = self.came.get(&(serial, stream)).copied().unwrap_or(0);
                let one_by_one = self.came_unordered.get(&(serial, stream));
                let missing = (0..accepted).find(|number| {
                    let came = match one_by_one {
                        Some(came) if unordered => came.contains(number),
                        _ => !unordered && *number < came,
                    };
                    !came && !self.is_given_up((serial, stream, unordered), *number)
                });
                assert_eq!(
                    missing, None,
                    "stream {stream} of {serial}: closed in good order, and something is missing"
                );
            }
        }
    }
}

/// Label in a payload that identifies the message.
struct Label {
    serial: u32,
    stream: u16,
    unordered: bool,
    host: usize,
    number: u32,
}

impl Label {
    fn read(payload: &[u8]) -> Option<Self> {
        let header: [u8; HEADER] = *payload.first_chunk()?;
        let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four"));
        Some(Self {
            serial: word(0),
            stream: u16::from_be_bytes([header[4], header[5]]),
            unordered: header[6] != 0,
            host: usize::from(header[7]),
            number: word(8),
        })
    }
}

fn fill(number: u32) -> u8 {
    (number as u8).wrapping_mul(37) ^ 0x5A
}
