//! Reassembly of fragments to messages and parts of messages. The fragments of a message have
//! consecutive [places](Place): TSNs if it came as DATA (RFC 9260 §6.9), fragment sequence numbers
//! if it came as I-DATA (RFC 8260 §2.2.3). Contiguous fragments are stored as one run, so that
//! adding a fragment takes one lookup.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anabranch_wire::serial::Mid;
use anabranch_wire::{Ssn, Tsn};
use bytes::Bytes;

use super::chunk::{ChunkView, number_of};
use super::fragments::FragmentList;
use super::message::{MessageBytes, ReceivedMessage, ReceivedPart};
use super::sort_keys::{MessageKey, Place};
use super::tsn_tracker::Neighbours;
use crate::stream_set::StreamSet;
use crate::work_counter;

/// Outcome for a received fragment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fragmented {
    /// The fragment is buffered until other fragments arrive.
    Held,
    /// The fragment completes this message.
    Complete(Head, ReceivedMessage),
    /// The fragment continues a message in partial delivery. The part consists of this fragment and
    /// of buffered fragments that follow it.
    Part(ReceivedPart),
    /// The fragment contradicts its neighbours (a first fragment inside a message, or a different
    /// stream or number) and was discarded.
    Contradiction,
}

/// Properties of an incomplete message whose first fragment was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Position of the first fragment.
    pub(super) first: Place,
    /// TSN of the first fragment.
    pub tsn: Tsn,
    pub stream: u16,
    pub unordered: bool,
    pub ssn: Ssn,
    /// Number of the message in its stream, as [`Order`](super::ordering::Order) counts messages.
    pub number: Mid,
    pub ppid: u32,
    /// Number of bytes of contiguous user data from the first fragment on.
    pub bytes: usize,
    /// Whether the message is in partial delivery.
    pub open: bool,
}

/// Contiguous run of fragments of one message.
#[derive(Debug)]
pub(super) struct FragmentRun {
    /// Position of the last fragment: see [`Place::at`].
    last: Tsn,
    /// TSN of the first fragment.
    tsn: Tsn,
    ppid: u32,
    stream: u16,
    ssn: Ssn,
    unordered: bool,
    beginning: bool,
    ending: bool,
    /// Whether the message is in partial delivery: its beginning was delivered, and contiguous data
    /// is delivered as it arrives.
    open: bool,
    /// Number of bytes in all fragments, delivered or not; saturates at 2^32 - 1.
    bytes: u32,
    /// Undelivered fragments.
    parts: FragmentList,
}

impl FragmentRun {
    fn start(chunk: &ChunkView<'_>, user_data: Bytes) -> Self {
        Self {
            last: chunk.place.at,
            tsn: chunk.tsn,
            ppid: chunk.ppid,
            stream: chunk.stream,
            ssn: chunk.ssn,
            unordered: chunk.unordered,
            beginning: chunk.beginning,
            ending: chunk.ending,
            open: false,
            bytes: user_data.len() as u32,
            parts: FragmentList::One(user_data),
        }
    }

    #[inline]
    fn belongs(&self, chunk: &ChunkView<'_>) -> bool {
        chunk.is_interleaved
            || (self.stream == chunk.stream
                && self.unordered == chunk.unordered
                && (self.unordered || self.ssn == chunk.ssn)
                && (self.ppid == chunk.ppid || !self.beginning))
    }

    /// Properties of the message; `first` is the position of the run's first fragment.
    fn message(&self, first: Place, interleaved: bool) -> Head {
        Head {
            first,
            tsn: if interleaved { self.tsn } else { first.at },
            stream: self.stream,
            unordered: self.unordered,
            ssn: self.ssn,
            number: if interleaved {
                Mid(first.message.2)
            } else {
                number_of(self.ssn)
            },
            ppid: self.ppid,
            bytes: self.bytes as usize,
            open: self.open,
        }
    }

    /// Like [`Self::message`], if the run contains the first fragment of the message.
    fn head(&self, first: Place, interleaved: bool) -> Option<Head> {
        self.beginning.then(|| self.message(first, interleaved))
    }

    /// Appends the next fragment.
    #[inline]
    pub fn append(&mut self, last: Tsn, ending: bool, user_data: Bytes) {
        self.last = last;
        self.ending = ending;
        self.bytes = self.bytes.saturating_add(user_data.len() as u32);
        self.parts.push_back(user_data);
    }

    fn prepend(&mut self, chunk: &ChunkView<'_>, user_data: Bytes) {
        self.beginning = chunk.beginning;
        (self.tsn, self.ppid) = (chunk.tsn, chunk.ppid);
        self.bytes = self.bytes.saturating_add(user_data.len() as u32);
        self.parts.push_front(user_data);
    }

    fn join(&mut self, after: Self) {
        self.last = after.last;
        self.ending = after.ending;
        self.bytes = self.bytes.saturating_add(after.bytes);
        self.parts.join(after.parts);
    }

    /// Takes the undelivered data out of the run. For DATA, also advances the run's TSN to the next
    /// part.
    fn take_part(&mut self, begins: bool, interleaved: bool) -> ReceivedPart {
        let tsn = self.tsn;
        if !interleaved {
            self.tsn = self.last.next();
        }
        ReceivedPart {
            tsn,
            stream: self.stream,
            ppid: self.ppid,
            unordered: self.unordered,
            ssn: self.ssn,
            begins,
            ends: self.ending,
            payload: self.parts.take(),
        }
    }

    fn into_message(self, first: Place, interleaved: bool) -> Fragmented {
        let head = self.message(first, interleaved);
        let message = ReceivedMessage {
            tsn: self.tsn,
            stream: self.stream,
            ppid: self.ppid,
            unordered: self.unordered,
            ssn: self.ssn,
            payload: self.parts.into_message(),
        };
        Fragmented::Complete(head, message)
    }
}

/// Message that will not be completed.
#[derive(Debug)]
pub(super) struct AbandonedMessage {
    pub stream: u16,
    /// Number of the message, if it must be skipped.
    pub number: Option<Mid>,
    /// Properties of the message, if its first fragment was received.
    pub head: Option<Head>,
    /// Buffered data of the message.
    pub payload: MessageBytes,
}

/// Fragments of incomplete messages, as runs by the position of their first fragment.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    runs: BTreeMap<Place, FragmentRun>,
    /// Number of runs in partial delivery.
    open: usize,
    /// Whether the peer may abandon messages, so that the last fragment of a message may be
    /// missing.
    gives_up: bool,
    /// Whether the fragments are I-DATA.
    interleaved: bool,
    /// All streams with a run of I-DATA, and possibly streams that no longer have one; built at the
    /// first query.
    streams: Option<Box<StreamSet>>,
}

impl Reassembly {
    /// Sets whether fragments are received as I-DATA.
    pub fn expect_interleaved(&mut self, interleaved: bool) {
        self.interleaved = interleaved;
    }

    /// Whether the fragments are I-DATA.
    #[inline]
    pub fn is_interleaved(&self) -> bool {
        self.interleaved
    }

    /// Adds a fragment at a new position. Adjacent runs are looked up only if the caller knows that
    /// they may exist.
    pub fn insert(
        &mut self,
        chunk: &ChunkView<'_>,
        user_data: Bytes,
        beside: Neighbours,
    ) -> Fragmented {
        let (at, next) = (chunk.place, chunk.place.with(chunk.place.at.next()));
        let gives_up = self.gives_up;
        let after = match beside.after.then(|| self.runs.entry(next)) {
            Some(Entry::Occupied(entry)) => {
                let run = entry.get();
                // A message ends directly before the next one begins, unless the peer abandoned it.
                let unended = gives_up && run.beginning;
                let fits = chunk.ending == run.beginning || unended;
                if !fits || !(run.beginning || run.belongs(chunk)) {
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
        let Some((first, run)) = self.before(at, beside) else {
            return self.place(chunk, user_data, after);
        };
        let unended = gives_up && chunk.beginning;
        let fits = chunk.beginning == run.ending || unended;
        if !fits || !(run.ending || unended || run.belongs(chunk)) {
            // The following run belongs to another message and stays unchanged.
            if let Some(after) = after {
                self.runs.insert(next, after);
            }
            return Fragmented::Contradiction;
        }
        if chunk.beginning {
            return self.place(chunk, user_data, after);
        }
        run.append(at.at, chunk.ending, user_data);
        if let Some(after) = after {
            run.join(after);
        }
        if run.open || (run.beginning && run.ending) {
            return self.grown(first);
        }
        Fragmented::Held
    }

    /// Whether buffered fragments are adjacent to a new fragment of an interleaved message. `None`
    /// if the new fragment contradicts the buffered fragments: its position is occupied, or a
    /// fragment would follow the last fragment of the message.
    pub fn beside(&self, chunk: &ChunkView<'_>) -> Option<Neighbours> {
        let at = chunk.place;
        let up_to = |to: Place| {
            let run = self.runs.range(..=to).next_back();
            run.filter(|(first, _)| first.message == at.message)
        };
        let mut beside = Neighbours {
            before: false,
            after: false,
        };
        // The run before the new fragment is usually the last run of the message.
        let mut run = up_to(at.with(Tsn(u32::MAX / 2)));
        if run.is_some_and(|(first, _)| first.at.gt(at.at)) {
            if chunk.ending {
                return None;
            }
            beside.after = true;
            run = up_to(at);
        }
        if let Some((_, run)) = run {
            if run.ending || run.last.ge(at.at) {
                return None;
            }
            beside.before = run.last.next() == at.at;
        }
        Some(beside)
    }

    /// Whether no message is incomplete.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Run of the only incomplete message, if `chunk` continues it; `chunk` is not a last fragment.
    #[inline(always)]
    pub fn only(&mut self, chunk: &ChunkView<'_>) -> Option<&mut FragmentRun> {
        if self.runs.len() != 1 {
            return None;
        }
        let run = self.runs.first_entry()?.into_mut();
        let goes_on = run.last.next() == chunk.tsn
            && run.beginning
            && !run.ending
            && !run.open
            && run.belongs(chunk);
        goes_on.then_some(run)
    }

    /// Run that ends directly before `at`, and the position of its first fragment.
    #[inline]
    fn before(&mut self, at: Place, beside: Neighbours) -> Option<(Place, &mut FragmentRun)> {
        if !beside.before {
            return None;
        }
        // The run is usually the last one, so check that first.
        let last = self.runs.last_key_value().map(|(first, _)| *first);
        let (first, run) = if last.is_some_and(|last| last < at) {
            self.runs.iter_mut().next_back()?
        } else {
            self.runs.range_mut(..at).next_back()?
        };
        let ends_there = first.message == at.message && run.last.next() == at.at;
        ends_there.then_some((*first, run))
    }

    /// Inserts a fragment that does not continue an earlier run, and joins it with the run `after`
    /// if that follows.
    fn place(
        &mut self,
        chunk: &ChunkView<'_>,
        user_data: Bytes,
        after: Option<FragmentRun>,
    ) -> Fragmented {
        let Some(mut run) = after else {
            if let Some(streams) = &mut self.streams {
                streams.insert(chunk.stream);
            }
            self.runs
                .insert(chunk.place, FragmentRun::start(chunk, user_data));
            return Fragmented::Held;
        };
        run.prepend(chunk, user_data);
        if run.beginning && run.ending {
            return run.into_message(chunk.place, self.interleaved);
        }
        self.runs.insert(chunk.place, run);
        Fragmented::Held
    }

    /// Outcome for a fragment that extended the run at `first`.
    fn grown(&mut self, first: Place) -> Fragmented {
        let Entry::Occupied(mut entry) = self.runs.entry(first) else {
            return Fragmented::Held;
        };
        if !entry.get().open {
            return entry.remove().into_message(first, self.interleaved);
        }
        let part = entry.get_mut().take_part(false, self.interleaved);
        if part.ends {
            entry.remove();
            self.open -= 1;
        }
        Fragmented::Part(part)
    }

    /// Properties of the message that contains the buffered fragment at `place`, if its first
    /// fragment was received.
    pub fn head_of(&self, place: Place) -> Option<Head> {
        let (first, run) = self.runs.range(..=place).next_back()?;
        run.head(*first, self.interleaved)
    }

    /// Message that the next TSN in order would continue, if fragments are DATA. `cumulative` is
    /// the cumulative TSN.
    pub fn at_cumulative(&self, cumulative: Tsn) -> Option<Head> {
        let (first, run) = self.runs.first_key_value().filter(|_| !self.interleaved)?;
        let head = run.head(*first, false);
        head.filter(|_| run.last == cumulative)
    }

    /// Whether a message has no first or no last fragment, although every TSN up to `cumulative`
    /// has arrived. The fragments of a message have consecutive TSNs (RFC 9260 §6.9), so this
    /// detects a peer that never completes its messages.
    #[inline]
    pub fn is_broken(&self, cumulative: Tsn) -> bool {
        if self.runs.is_empty() || self.interleaved {
            return false;
        }
        self.runs.first_key_value().is_some_and(|(first, run)| {
            run.last.lt(cumulative) || (first.at.le(cumulative) && !run.beginning)
        })
    }

    /// Whether the peer may abandon messages. Messages without an end are then no protocol
    /// violation.
    pub fn gives_up(&self) -> bool {
        self.gives_up
    }

    /// Drops the first message if it [is broken](Self::is_broken).
    pub fn drop_broken(&mut self, cumulative: Tsn) -> Option<AbandonedMessage> {
        let broken = self.is_broken(cumulative);
        let (first, run) = self.runs.first_key_value().filter(|_| broken)?;
        let number = (!run.unordered).then_some(number_of(run.ssn));
        let given_up = self.take_run(*first)?;
        Some(AbandonedMessage { number, ..given_up })
    }

    /// Starts partial delivery of the message whose first fragment is at `first`. Returns the data
    /// received so far.
    pub fn open(&mut self, first: Place) -> Option<ReceivedPart> {
        let run = self.runs.get_mut(&first)?;
        if !run.beginning || run.open {
            return None;
        }
        run.open = true;
        self.open += 1;
        Some(run.take_part(true, self.interleaved))
    }

    /// Sets whether the peer may abandon messages. A missing last fragment is then no
    /// contradiction.
    pub fn expect_abandoned(&mut self, expected: bool) {
        self.gives_up = expected;
    }

    /// Drops the first message that cannot be completed because all its TSNs up to `to` are
    /// abandoned (RFC 3758 §3.6).
    pub fn drop_abandoned(&mut self, to: Tsn) -> Option<AbandonedMessage> {
        let lost = |(first, run): &(&Place, &FragmentRun)| {
            first.at.le(to) && (run.last.le(to) || !run.beginning)
        };
        let first = *self
            .runs
            .iter()
            .take_while(|(first, _)| first.at.le(to))
            .find(lost)?
            .0;
        self.take_run(first)
    }

    /// Drops the first run of fragments.
    pub fn drop_first(&mut self) -> Option<AbandonedMessage> {
        let first = *self.runs.first_key_value()?.0;
        self.take_run(first)
    }

    /// Drops the first run of the interleaved messages (ordered or unordered) with numbers from
    /// `from` to `to`, which may wrap around.
    pub fn drop_span(
        &mut self,
        (stream, unordered): (u16, bool),
        from: u32,
        to: u32,
    ) -> Option<AbandonedMessage> {
        let place = |mid: u32, at: u32| Place {
            message: (stream, unordered, mid),
            at: Tsn(at),
        };
        let first = |from: u32, to: u32| {
            let span = place(from, 0)..=place(to, u32::MAX / 2);
            self.runs.range(span).next().map(|(first, _)| *first)
        };
        let first = if from <= to {
            first(from, to)
        } else {
            first(from, u32::MAX).or_else(|| first(0, to))
        };
        self.take_run(first?)
    }

    fn take_run(&mut self, first: Place) -> Option<AbandonedMessage> {
        let mut run = self.runs.remove(&first)?;
        self.open -= usize::from(run.open);
        let head = run.head(first, self.interleaved);
        Some(AbandonedMessage {
            stream: run.stream,
            number: None,
            head,
            payload: run.parts.take(),
        })
    }

    /// Whether a message of these streams (`None`: of any stream) is incomplete. A message received
    /// as DATA counts if its first TSN is at most `to`. A message received as I-DATA always counts,
    /// because no chunk after `to` was accepted.
    pub fn has_unfinished(&mut self, to: Tsn, streams: Option<&[u16]>) -> bool {
        if self.runs.is_empty() {
            self.streams = None;
            return false;
        }
        if !self.interleaved {
            let mut begun = self.runs.iter().take_while(|(first, _)| first.at.le(to));
            return begun
                .any(|(_, run)| streams.is_none_or(|it| it.binary_search(&run.stream).is_ok()));
        }
        streams.is_none_or(|streams| streams.iter().any(|it| self.has_unfinished_on(*it)))
    }

    /// Whether an interleaved message of the stream is incomplete. For most streams this is decided
    /// quickly, because a peer may list hundreds of streams in one packet.
    fn has_unfinished_on(&mut self, stream: u16) -> bool {
        let streams = self.streams.get_or_insert_with(|| {
            work_counter::count(self.runs.len());
            let mut streams = Box::<StreamSet>::default();
            self.runs.values().for_each(|it| streams.insert(it.stream));
            streams
        });
        work_counter::count(1);
        if !streams.contains(stream) {
            return false;
        }
        let from = Place {
            message: (stream, false, 0),
            at: Tsn(0),
        };
        let is_on_it = |(_, run): (_, &FragmentRun)| run.stream == stream;
        let found = self.runs.range(from..).next().is_some_and(is_on_it);
        if !found {
            streams.remove(stream);
        }
        found
    }

    /// Properties of the incomplete message with this key, if its first fragment was received.
    pub fn head_of_message(&self, message: MessageKey) -> Option<Head> {
        let first = Place {
            message,
            at: Tsn(0),
        };
        let run = self.runs.get(&first)?;
        run.head(first, true)
    }

    /// Whether the fragment at `place`, which is I-DATA, continues a message in partial delivery.
    pub fn continues_open(&self, place: Place) -> bool {
        let run = self.runs.get(&place.with(Tsn(0)));
        run.is_some_and(|run| run.open && run.last.next() == place.at)
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
            .filter_map(|(first, run)| run.head(*first, self.interleaved));
        heads.filter(|it| it.open)
    }

    /// Highest buffered TSN. Runs in partial delivery have no buffered data.
    pub fn highest(&self) -> Option<Tsn> {
        let (_, run) = self.runs.iter().rev().find(|(_, run)| !run.open)?;
        Some(run.last)
    }

    /// Drops the fragment with the highest buffered TSN. If this empties its run, the result also
    /// contains the head of the message, if its first fragment was received.
    pub fn drop_highest(&mut self) -> Option<AbandonedMessage> {
        let (&first, run) = self.runs.iter_mut().rev().find(|(_, run)| !run.open)?;
        if run.parts.len() == 1 {
            return self.take_run(first);
        }
        let part = run.parts.pop_back()?;
        run.last = run.last.prev();
        run.ending = false;
        run.bytes = run.bytes.saturating_sub(part.len() as u32);
        Some(AbandonedMessage {
            stream: run.stream,
            number: None,
            head: None,
            payload: MessageBytes::One(part),
        })
    }
}

#[cfg(test)]
mod tests;
