//! Fragments to messages, by runs of TSNs, and to parts of messages (RFC 9260 §6.9).

use std::collections::VecDeque;

use anabranch_wire::chunk::Data;
use anabranch_wire::{Ssn, Tsn};
use bytes::Bytes;

use super::message::{MessageBytes, ReceivedMessage, ReceivedPart};

/// What became of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fragmented {
    /// It waits for others; what it holds stays in the receive buffer.
    Held,
    /// It was the last one missing of this message, which begins with that TSN.
    Complete(Tsn, ReceivedMessage),
    /// Its message is being delivered in parts, and this is the next: it, and what waited behind it.
    Part(ReceivedPart),
    /// It contradicts its neighbours: a beginning inside a message, or another stream's number. Nothing was kept of it.
    Contradiction,
}

/// The beginning of a message that is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The TSN of its first fragment.
    pub first: Tsn,
    pub stream: u16,
    pub unordered: bool,
    pub ssn: Ssn,
    /// User data without a hole from the beginning on, bytes.
    pub bytes: usize,
    /// It is being delivered in parts.
    pub open: bool,
}

/// A run of fragments of one message, without holes.
#[derive(Debug)]
struct Run {
    first: Tsn,
    last: Tsn,
    beginning: bool,
    ending: bool,
    stream: u16,
    ssn: Ssn,
    ppid: u32,
    unordered: bool,
    /// Bytes of all fragments, delivered or not.
    bytes: usize,
    /// Its beginning was delivered, and what follows it without a hole is delivered as it comes.
    open: bool,
    /// Fragments not delivered.
    parts: Vec<Bytes>,
}

impl Run {
    fn belongs(&self, data: &Data) -> bool {
        self.stream == data.stream_id
            && self.unordered == data.unordered
            && (self.unordered || self.ssn == data.ssn)
            && (self.ppid == data.ppid || !self.beginning)
    }

    fn head(&self) -> Option<Head> {
        self.beginning.then_some(Head {
            first: self.first,
            stream: self.stream,
            unordered: self.unordered,
            ssn: self.ssn,
            bytes: self.bytes,
            open: self.open,
        })
    }

    /// What is not delivered.
    fn take_part(&mut self, begins: bool) -> ReceivedPart {
        ReceivedPart {
            stream: self.stream,
            ppid: self.ppid,
            unordered: self.unordered,
            ssn: self.ssn,
            begins,
            ends: self.ending,
            payload: match &mut self.parts[..] {
                [one] => {
                    let one = std::mem::take(one);
                    self.parts.clear();
                    MessageBytes::One(one)
                }
                _ => MessageBytes::Many(std::mem::take(&mut self.parts)),
            },
        }
    }

    fn into_message(self) -> ReceivedMessage {
        ReceivedMessage {
            stream: self.stream,
            ppid: self.ppid,
            unordered: self.unordered,
            ssn: self.ssn,
            payload: MessageBytes::Many(self.parts),
        }
    }
}

/// Fragments that wait for the rest of their messages, as runs in the order of their TSNs.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    runs: VecDeque<Run>,
    /// How many of them are open.
    open: usize,
}

impl Reassembly {
    /// Fragments held.
    #[cfg(test)]
    fn chunks(&self) -> usize {
        self.runs.iter().map(|run| run.parts.len()).sum()
    }

    /// Takes a fragment whose TSN is new.
    pub fn insert(&mut self, data: Data) -> Fragmented {
        let position = self.runs.partition_point(|run| run.first.lt(data.tsn));
        let follows = position > 0 && self.runs[position - 1].last.next() == data.tsn;
        let precedes = self
            .runs
            .get(position)
            .is_some_and(|run| data.tsn.next() == run.first);
        // The neighbours' flags say whether they are of the same message.
        let joins_before = follows && !self.runs[position - 1].ending;
        let joins_after = precedes && !self.runs[position].beginning;
        let contradiction = (joins_before
            && (data.beginning || !self.runs[position - 1].belongs(&data)))
            || (joins_after && (data.ending || !self.runs[position].belongs(&data)))
            || (follows && !joins_before && !data.beginning)
            || (precedes && !joins_after && !data.ending);
        if contradiction {
            return Fragmented::Contradiction;
        }
        let at = match (joins_before, joins_after) {
            (true, _) => {
                self.append(position - 1, data);
                position - 1
            }
            (false, true) => {
                self.prepend(position, data);
                position
            }
            (false, false) => {
                self.runs.insert(position, start(data));
                position
            }
        };
        if joins_before && joins_after {
            self.join(at);
        }
        if self.runs[at].open {
            let part = self.runs[at].take_part(false);
            if part.ends {
                self.runs.remove(at);
                self.open -= 1;
            }
            return Fragmented::Part(part);
        }
        self.take_if_whole(at)
    }

    /// The message that the fragment `tsn`, which is held, belongs to, if its beginning has come.
    pub fn head_of(&self, tsn: Tsn) -> Option<Head> {
        let after = self.runs.partition_point(|run| run.first.le(tsn));
        self.runs.get(after.checked_sub(1)?)?.head()
    }

    /// The message that the next fragment in order would go on with, where `cumulative` is the last TSN before a hole.
    pub fn at_cumulative(&self, cumulative: Tsn) -> Option<Head> {
        let first = self.runs.front().filter(|run| run.last == cumulative)?;
        first.head()
    }

    /// Whether what is held contradicts that every TSN up to `cumulative` has come: a message that has no beginning, or
    /// after which another began. Fragments of a message have TSNs in a row (RFC 9260 §6.9), so a peer that begins
    /// messages and does not end them is found out here.
    pub fn contradicts(&self, cumulative: Tsn) -> bool {
        self.runs.front().is_some_and(|run| {
            run.last.lt(cumulative) || (run.first.le(cumulative) && !run.beginning)
        })
    }

    /// Begins to deliver in parts the message whose first fragment is `first`; gives what there is of it.
    pub fn open(&mut self, first: Tsn) -> Option<ReceivedPart> {
        let at = self.runs.partition_point(|run| run.first.lt(first));
        let run = self.runs.get_mut(at)?;
        if run.first != first || !run.beginning || run.open {
            return None;
        }
        run.open = true;
        self.open += 1;
        Some(run.take_part(true))
    }

    /// How many messages are being delivered in parts.
    pub fn opened_count(&self) -> usize {
        self.open
    }

    /// Messages that are being delivered in parts.
    pub fn opened(&self) -> impl Iterator<Item = Head> + '_ {
        self.runs.iter().filter_map(Run::head).filter(|it| it.open)
    }

    fn append(&mut self, at: usize, data: Data) {
        let run = &mut self.runs[at];
        run.last = data.tsn;
        run.ending = data.ending;
        run.bytes += data.user_data.len();
        run.parts.push(data.user_data);
    }

    fn prepend(&mut self, at: usize, data: Data) {
        let run = &mut self.runs[at];
        run.first = data.tsn;
        run.beginning = data.beginning;
        run.ppid = data.ppid;
        run.bytes += data.user_data.len();
        run.parts.insert(0, data.user_data);
    }

    /// Joins the run at `at` with the one after it.
    fn join(&mut self, at: usize) {
        if let Some(mut after) = self.runs.remove(at + 1) {
            let run = &mut self.runs[at];
            run.last = after.last;
            run.ending = after.ending;
            run.bytes += after.bytes;
            run.parts.append(&mut after.parts);
        }
    }

    fn take_if_whole(&mut self, at: usize) -> Fragmented {
        if !(self.runs[at].beginning && self.runs[at].ending) {
            return Fragmented::Held;
        }
        match self.runs.remove(at) {
            Some(run) => Fragmented::Complete(run.first, run.into_message()),
            None => Fragmented::Held,
        }
    }
}

fn start(data: Data) -> Run {
    Run {
        first: data.tsn,
        last: data.tsn,
        beginning: data.beginning,
        ending: data.ending,
        stream: data.stream_id,
        ssn: data.ssn,
        ppid: data.ppid,
        unordered: data.unordered,
        bytes: data.user_data.len(),
        open: false,
        parts: vec![data.user_data],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(tsn: u32, beginning: bool, ending: bool) -> Data {
        Data {
            tsn: Tsn(tsn),
            stream_id: 1,
            ssn: Ssn(5),
            ppid: 9,
            unordered: false,
            beginning,
            ending,
            immediate: false,
            user_data: Bytes::from(vec![tsn as u8; 3]),
        }
    }

    /// Every order of five fragments, around the wrap.
    #[test]
    fn any_order_gives_the_message_at_the_last_fragment() {
        let tsns = [u32::MAX - 1, u32::MAX, 0, 1, 2];
        for order in permutations(5) {
            let mut reassembly = Reassembly::default();
            for (turn, index) in order.iter().enumerate() {
                let result = reassembly.insert(fragment(tsns[*index], *index == 0, *index == 4));
                if turn < 4 {
                    assert_eq!(result, Fragmented::Held, "{order:?}");
                } else {
                    let Fragmented::Complete(_, message) = result else {
                        panic!("{order:?}: {result:?}")
                    };
                    let expected: Vec<u8> = tsns.iter().flat_map(|tsn| [*tsn as u8; 3]).collect();
                    assert_eq!(message.payload.into_bytes().to_vec(), expected, "{order:?}");
                }
            }
            assert_eq!(reassembly.chunks(), 0);
        }
    }

    fn permutations(n: usize) -> Vec<Vec<usize>> {
        if n == 0 {
            return vec![vec![]];
        }
        let shorter = permutations(n - 1);
        shorter
            .iter()
            .flat_map(|order| {
                (0..n).map(move |at| {
                    let mut longer = order.clone();
                    longer.insert(at, n - 1);
                    longer
                })
            })
            .collect()
    }

    #[test]
    fn two_messages_side_by_side_stay_apart() {
        let mut reassembly = Reassembly::default();
        assert_eq!(
            reassembly.insert(fragment(11, false, true)),
            Fragmented::Held
        );
        let mut second = fragment(12, true, false);
        second.ssn = Ssn(6);
        assert_eq!(reassembly.insert(second), Fragmented::Held);
        assert!(matches!(
            reassembly.insert(fragment(10, true, false)),
            Fragmented::Complete(..)
        ));
        assert_eq!(reassembly.chunks(), 1);
    }

    #[test]
    fn contradictions_are_refused() {
        let mut reassembly = Reassembly::default();
        reassembly.insert(fragment(10, true, false));
        assert_eq!(
            reassembly.insert(fragment(11, true, false)),
            Fragmented::Contradiction,
            "begins inside"
        );
        let other = Data {
            stream_id: 2,
            ..fragment(11, false, true)
        };
        assert_eq!(
            reassembly.insert(other),
            Fragmented::Contradiction,
            "another stream"
        );
        assert_eq!(
            reassembly.insert(fragment(9, true, false)),
            Fragmented::Contradiction,
            "unended before a beginning"
        );
        assert!(matches!(
            reassembly.insert(fragment(11, false, true)),
            Fragmented::Complete(..)
        ));
    }
}
