//! Reassembly of fragments to messages and parts of messages, by runs of TSNs (RFC 9260 §6.9).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anabranch_wire::chunk::Data;
use anabranch_wire::{Ssn, Tsn};

use super::fragments::FragmentList;
use super::message::{MessageBytes, ReceivedMessage, ReceivedPart};
use super::sort_keys::TsnKey;
use super::tsn_tracker::Neighbours;

/// Outcome for a received fragment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fragmented {
    /// It waits for others, and its data stays in the receive buffer.
    Held,
    /// It completes this message, which has these first and last TSNs.
    Complete(Tsn, Tsn, ReceivedMessage),
    /// It continues a message in partial delivery: the fragment and the ones that waited for it.
    Part(ReceivedPart),
    /// It contradicts its neighbours: a first fragment inside a message, or another stream's
    /// number. It was discarded.
    Contradiction,
}

/// First fragment of an incomplete message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// TSN of its first fragment.
    pub first: Tsn,
    pub stream: u16,
    pub unordered: bool,
    pub ssn: Ssn,
    pub ppid: u32,
    /// Bytes of contiguous user data from the first fragment on.
    pub bytes: usize,
    /// It is in partial delivery.
    pub open: bool,
}

/// A contiguous run of fragments of one message.
#[derive(Debug)]
pub(super) struct FragmentRun {
    last: Tsn,
    ppid: u32,
    stream: u16,
    ssn: Ssn,
    unordered: bool,
    beginning: bool,
    ending: bool,
    /// In partial delivery: the beginning was delivered, and contiguous data follows as it arrives.
    open: bool,
    /// Bytes of all fragments, delivered or not; saturates.
    bytes: u32,
    /// Undelivered fragments.
    parts: FragmentList,
}

impl FragmentRun {
    fn start(data: Data) -> Self {
        Self {
            last: data.tsn,
            ppid: data.ppid,
            stream: data.stream_id,
            ssn: data.ssn,
            unordered: data.unordered,
            beginning: data.beginning,
            ending: data.ending,
            open: false,
            bytes: data.user_data.len() as u32,
            parts: FragmentList::One(data.user_data),
        }
    }

    #[inline]
    fn belongs<B>(&self, data: &Data<B>) -> bool {
        self.stream == data.stream_id
            && self.unordered == data.unordered
            && (self.unordered || self.ssn == data.ssn)
            && (self.ppid == data.ppid || !self.beginning)
    }

    fn head(&self, first: Tsn) -> Option<Head> {
        self.beginning.then_some(Head {
            first,
            stream: self.stream,
            unordered: self.unordered,
            ssn: self.ssn,
            ppid: self.ppid,
            bytes: self.bytes as usize,
            open: self.open,
        })
    }

    /// Appends the next fragment.
    #[inline]
    pub fn append(&mut self, data: Data) {
        self.last = data.tsn;
        self.ending = data.ending;
        self.bytes = self.bytes.saturating_add(data.user_data.len() as u32);
        self.parts.push_back(data.user_data);
    }

    fn prepend(&mut self, data: Data) {
        self.beginning = data.beginning;
        self.ppid = data.ppid;
        self.bytes = self.bytes.saturating_add(data.user_data.len() as u32);
        self.parts.push_front(data.user_data);
    }

    fn join(&mut self, after: Self) {
        self.last = after.last;
        self.ending = after.ending;
        self.bytes = self.bytes.saturating_add(after.bytes);
        self.parts.join(after.parts);
    }

    /// TSN of the first undelivered fragment. The fragments of a message have consecutive TSNs.
    fn first_held(&self) -> Tsn {
        let others = self.parts.len().saturating_sub(1) as u32;
        Tsn(self.last.0.wrapping_sub(others))
    }

    /// Takes the undelivered data.
    fn take_part(&mut self, begins: bool) -> ReceivedPart {
        ReceivedPart {
            tsn: self.first_held(),
            stream: self.stream,
            ppid: self.ppid,
            unordered: self.unordered,
            ssn: self.ssn,
            begins,
            ends: self.ending,
            payload: self.parts.take(),
        }
    }

    fn into_message(self) -> ReceivedMessage {
        ReceivedMessage {
            tsn: self.first_held(),
            stream: self.stream,
            ppid: self.ppid,
            unordered: self.unordered,
            ssn: self.ssn,
            payload: self.parts.into_message(),
        }
    }
}

/// A buffered fragment that is dropped.
#[derive(Debug)]
pub(super) struct Dropped {
    pub stream: u16,
    pub bytes: usize,
    /// The message, if the run is empty now and held its beginning.
    pub head: Option<Head>,
}

/// A message that will not be completed.
#[derive(Debug)]
pub(super) struct AbandonedMessage {
    pub stream: u16,
    /// Its stream sequence number if it is ordered.
    pub number: Option<Ssn>,
    /// Its beginning, if received.
    pub head: Option<Head>,
    /// Its buffered data.
    pub payload: MessageBytes,
}

/// Fragments of incomplete messages, as runs by their first TSNs.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    runs: BTreeMap<TsnKey, FragmentRun>,
    /// Number of runs in partial delivery.
    open: usize,
    /// The peer may abandon messages and leave out their ends.
    gives_up: bool,
}

impl Reassembly {
    /// Number of buffered fragments.
    #[cfg(test)]
    fn chunks(&self) -> usize {
        self.runs.values().map(|run| run.parts.len()).sum()
    }

    /// Takes a fragment with a new TSN. Runs are looked up only if adjacent TSNs have arrived.
    pub fn insert(&mut self, data: Data, beside: Neighbours) -> Fragmented {
        let at = TsnKey(data.tsn);
        let after = match beside
            .after
            .then(|| self.runs.entry(TsnKey(data.tsn.next())))
        {
            Some(Entry::Occupied(entry)) => {
                let run = entry.get();
                // The flags of the neighbours show whether they belong to the same message.
                let unended = self.gives_up && run.beginning;
                let fits = data.ending == run.beginning || unended;
                if !fits || !(run.beginning || run.belongs(&data)) {
                    return Fragmented::Contradiction;
                }
                if run.beginning {
                    None
                } else {
                    Some(entry.remove())
                }
            }
            _ => None,
        };
        let gives_up = self.gives_up;
        let Some((first, run)) = self.before(data.tsn, beside) else {
            return self.place(at, after, data);
        };
        let unended = gives_up && data.beginning;
        let fits = data.beginning == run.ending || unended;
        if !fits || !(run.ending || unended || run.belongs(&data)) {
            // The following run is unchanged.
            if let Some(after) = after {
                self.runs.insert(TsnKey(data.tsn.next()), after);
            }
            return Fragmented::Contradiction;
        }
        if data.beginning {
            return self.place(at, after, data);
        }
        run.append(data);
        if let Some(after) = after {
            run.join(after);
        }
        if run.open || (run.beginning && run.ending) {
            return self.grown(first);
        }
        Fragmented::Held
    }

    /// Whether no message is incomplete.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The only incomplete message, if `data`, which is not the end of a message, continues it.
    #[inline(always)]
    pub fn only(&mut self, data: &Data<&[u8]>) -> Option<&mut FragmentRun> {
        if self.runs.len() != 1 {
            return None;
        }
        let run = self.runs.first_entry()?.into_mut();
        let goes_on = run.last.next() == data.tsn
            && run.beginning
            && !run.ending
            && !run.open
            && run.belongs(data);
        goes_on.then_some(run)
    }

    /// The run that ends right before `tsn`, and its first TSN.
    #[inline]
    fn before(&mut self, tsn: Tsn, beside: Neighbours) -> Option<(Tsn, &mut FragmentRun)> {
        if !beside.before {
            return None;
        }
        // It is usually the last run.
        let last = self.runs.last_key_value().map(|(_, run)| run.last);
        let (first, run) = if last.is_some_and(|last| last.lt(tsn)) {
            self.runs.iter_mut().next_back()?
        } else {
            self.runs.range_mut(..TsnKey(tsn)).next_back()?
        };
        (run.last.next() == tsn).then_some((first.0, run))
    }

    /// Inserts a fragment that continues no run before the run `after`, and joins them if that
    /// continues it.
    fn place(&mut self, at: TsnKey, after: Option<FragmentRun>, data: Data) -> Fragmented {
        let Some(mut run) = after else {
            self.runs.insert(at, FragmentRun::start(data));
            return Fragmented::Held;
        };
        run.prepend(data);
        if run.beginning && run.ending {
            return Fragmented::Complete(at.0, run.last, run.into_message());
        }
        self.runs.insert(at, run);
        Fragmented::Held
    }

    /// Outcome for the run that begins with `first`.
    fn grown(&mut self, first: Tsn) -> Fragmented {
        let Some(run) = self.runs.get_mut(&TsnKey(first)) else {
            return Fragmented::Held;
        };
        if run.open {
            let part = run.take_part(false);
            if part.ends {
                self.runs.remove(&TsnKey(first));
                self.open -= 1;
            }
            return Fragmented::Part(part);
        }
        if !(run.beginning && run.ending) {
            return Fragmented::Held;
        }
        match self.runs.remove(&TsnKey(first)) {
            Some(run) => Fragmented::Complete(first, run.last, run.into_message()),
            None => Fragmented::Held,
        }
    }

    /// The message of the buffered fragment `tsn`, if its beginning was received.
    pub fn head_of(&self, tsn: Tsn) -> Option<Head> {
        let (first, run) = self.runs.range(..=TsnKey(tsn)).next_back()?;
        run.head(first.0)
    }

    /// The message that the next fragment in order would continue, if `cumulative` is the last TSN
    /// before a hole.
    pub fn at_cumulative(&self, cumulative: Tsn) -> Option<Head> {
        let (first, run) = self.runs.first_key_value()?;
        run.head(first.0).filter(|_| run.last == cumulative)
    }

    /// Whether the buffered data contradicts that every TSN up to `cumulative` has arrived: a
    /// message has no first or no last fragment. The fragments of a message have consecutive TSNs
    /// (RFC 9260 §6.9), so this detects a peer that never completes its messages.
    #[inline]
    pub fn is_broken(&self, cumulative: Tsn) -> bool {
        if self.runs.is_empty() {
            return false;
        }
        self.runs.first_key_value().is_some_and(|(first, run)| {
            run.last.lt(cumulative) || (first.0.le(cumulative) && !run.beginning)
        })
    }

    /// Whether the peer may abandon messages. Broken messages are no protocol violation then.
    pub fn gives_up(&self) -> bool {
        self.gives_up
    }

    /// Drops the first message if it [is broken](Self::is_broken).
    pub fn drop_broken(&mut self, cumulative: Tsn) -> Option<AbandonedMessage> {
        let broken = self.is_broken(cumulative);
        let first = *self.runs.first_key_value().filter(|_| broken)?.0;
        self.take_run(first)
    }

    /// Starts partial delivery of the message with first fragment `first`. Returns the data so far.
    pub fn open(&mut self, first: Tsn) -> Option<ReceivedPart> {
        let run = self.runs.get_mut(&TsnKey(first))?;
        if !run.beginning || run.open {
            return None;
        }
        run.open = true;
        self.open += 1;
        Some(run.take_part(true))
    }

    /// Records whether the peer may abandon messages. A missing end is no contradiction then.
    pub fn expect_abandoned(&mut self, expected: bool) {
        self.gives_up = expected;
    }

    /// Drops the first message that cannot be completed because all its TSNs up to `to` are
    /// abandoned (RFC 3758 §3.6).
    pub fn drop_abandoned(&mut self, to: Tsn) -> Option<AbandonedMessage> {
        let lost = |(first, run): &(&TsnKey, &FragmentRun)| {
            first.0.le(to) && (run.last.le(to) || !run.beginning)
        };
        let first = *self
            .runs
            .iter()
            .take_while(|(first, _)| first.0.le(to))
            .find(lost)?
            .0;
        self.take_run(first)
    }

    /// Drops the first message.
    pub fn drop_first(&mut self) -> Option<AbandonedMessage> {
        let first = *self.runs.first_key_value()?.0;
        self.take_run(first)
    }

    fn take_run(&mut self, first: TsnKey) -> Option<AbandonedMessage> {
        let mut run = self.runs.remove(&first)?;
        self.open -= usize::from(run.open);
        Some(AbandonedMessage {
            stream: run.stream,
            number: (!run.unordered).then_some(run.ssn),
            head: run.head(first.0),
            payload: run.parts.take(),
        })
    }

    /// Streams of incomplete messages that begin no later than `to`.
    pub fn unfinished(&self, to: Tsn) -> impl Iterator<Item = u16> + '_ {
        let begun = self
            .runs
            .iter()
            .take_while(move |(first, _)| first.0.le(to));
        begun.map(|(_, run)| run.stream)
    }

    /// Number of messages in partial delivery.
    pub fn opened_count(&self) -> usize {
        self.open
    }

    /// Messages in partial delivery.
    pub fn opened(&self) -> impl Iterator<Item = Head> + '_ {
        let heads = self
            .runs
            .iter()
            .filter_map(|(first, run)| run.head(first.0));
        heads.filter(|it| it.open)
    }

    /// The highest buffered TSN. Runs in partial delivery buffer nothing.
    pub fn highest(&self) -> Option<Tsn> {
        let (_, run) = self.runs.iter().rev().find(|(_, run)| !run.open)?;
        Some(run.last)
    }

    /// Drops the fragment with the highest buffered TSN.
    pub fn drop_highest(&mut self) -> Option<Dropped> {
        let (&first, run) = self.runs.iter_mut().rev().find(|(_, run)| !run.open)?;
        let part = run.parts.pop_back()?;
        run.last = run.last.prev();
        run.ending = false;
        run.bytes = run.bytes.saturating_sub(part.len() as u32);
        let mut dropped = Dropped {
            stream: run.stream,
            bytes: part.len(),
            head: None,
        };
        if run.parts.len() == 0 {
            dropped.head = run.head(first.0);
            self.runs.remove(&first);
        }
        Some(dropped)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// As if all adjacent TSNs had arrived: a missing run is not found.
    const BESIDE: Neighbours = Neighbours {
        before: true,
        after: true,
    };

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

    /// Every order of five fragments, across the wrap.
    #[test]
    fn any_order_gives_the_message_at_the_last_fragment() {
        let tsns = [u32::MAX - 1, u32::MAX, 0, 1, 2];
        for order in permutations(5) {
            let mut reassembly = Reassembly::default();
            for (turn, index) in order.iter().enumerate() {
                let result =
                    reassembly.insert(fragment(tsns[*index], *index == 0, *index == 4), BESIDE);
                if turn < 4 {
                    assert_eq!(result, Fragmented::Held, "{order:?}");
                } else {
                    let Fragmented::Complete(_, _, message) = result else {
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
            reassembly.insert(fragment(11, false, true), BESIDE),
            Fragmented::Held
        );
        let mut second = fragment(12, true, false);
        second.ssn = Ssn(6);
        assert_eq!(reassembly.insert(second, BESIDE), Fragmented::Held);
        assert!(matches!(
            reassembly.insert(fragment(10, true, false), BESIDE),
            Fragmented::Complete(..)
        ));
        assert_eq!(reassembly.chunks(), 1);
    }

    #[test]
    fn contradictions_are_refused() {
        let mut reassembly = Reassembly::default();
        reassembly.insert(fragment(10, true, false), BESIDE);
        assert_eq!(
            reassembly.insert(fragment(11, true, false), BESIDE),
            Fragmented::Contradiction,
            "begins inside"
        );
        let other = Data {
            stream_id: 2,
            ..fragment(11, false, true)
        };
        assert_eq!(
            reassembly.insert(other, BESIDE),
            Fragmented::Contradiction,
            "another stream"
        );
        assert_eq!(
            reassembly.insert(fragment(9, true, false), BESIDE),
            Fragmented::Contradiction,
            "unended before a beginning"
        );
        assert!(matches!(
            reassembly.insert(fragment(11, false, true), BESIDE),
            Fragmented::Complete(..)
        ));
    }
}
