//! Fragments to messages, by runs of TSNs (RFC 9260 §6.9).

use std::collections::VecDeque;

use anabranch_wire::chunk::Data;
use anabranch_wire::{Ssn, Tsn};
use bytes::Bytes;

use super::message::{MessageBytes, ReceivedMessage};

/// What became of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fragmented {
    /// It waits for others; what it holds stays in the receive buffer.
    Held,
    /// It was the last one missing of this message.
    Complete(ReceivedMessage),
    /// It contradicts its neighbours: a beginning inside a message, or another stream's number. Nothing was kept of it.
    Contradiction,
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
    parts: Vec<Bytes>,
}

impl Run {
    fn belongs(&self, data: &Data) -> bool {
        self.stream == data.stream_id
            && self.unordered == data.unordered
            && (self.unordered || self.ssn == data.ssn)
            && (self.ppid == data.ppid || !self.beginning)
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
        self.take_if_whole(at)
    }

    fn append(&mut self, at: usize, data: Data) {
        let run = &mut self.runs[at];
        run.last = data.tsn;
        run.ending = data.ending;
        run.parts.push(data.user_data);
    }

    fn prepend(&mut self, at: usize, data: Data) {
        let run = &mut self.runs[at];
        run.first = data.tsn;
        run.beginning = data.beginning;
        run.ppid = data.ppid;
        run.parts.insert(0, data.user_data);
    }

    /// Joins the run at `at` with the one after it.
    fn join(&mut self, at: usize) {
        if let Some(mut after) = self.runs.remove(at + 1) {
            let run = &mut self.runs[at];
            run.last = after.last;
            run.ending = after.ending;
            run.parts.append(&mut after.parts);
        }
    }

    fn take_if_whole(&mut self, at: usize) -> Fragmented {
        if !(self.runs[at].beginning && self.runs[at].ending) {
            return Fragmented::Held;
        }
        match self.runs.remove(at) {
            Some(run) => Fragmented::Complete(run.into_message()),
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
                    let Fragmented::Complete(message) = result else {
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
            Fragmented::Complete(_)
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
            Fragmented::Complete(_)
        ));
    }
}
