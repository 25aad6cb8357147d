//! PR-SCTP state of a sender: messages in flight with an abandonment policy, and the advanced peer
//! ack point.

use std::collections::{BTreeMap, VecDeque};

use anabranch_transport::Nanos;
use anabranch_wire::extension::{
    Extension, ForwardTsn, IForwardTsn, SkippedMessage, SkippedStream,
};
use anabranch_wire::serial::Mid;
use anabranch_wire::{Ssn, Tsn};
use bytes::Bytes;

use super::counters::Counters;
use super::{AbandonPolicy, AbandonedCount, AbandonedMessage, PrPolicy};
use crate::path::PathId;

/// Maximum delay of a repeated FORWARD TSN in nanoseconds (RFC 3758 §3.5 F3).
const MAX_DELAY: Nanos = 200_000_000;

/// Identifies a partly sent message: its stream, whether it is unordered, and its number among the
/// ordered or the unordered messages of the stream.
pub(crate) type MessageId = (u16, bool, u32);

/// Chunk that notifies the peer of abandoned messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForwardTsnKind {
    /// FORWARD TSN (RFC 3758 §3.2), which lists ordered messages by their stream sequence numbers.
    BySsn,
    /// I-FORWARD-TSN (RFC 8260 §2.3.1), which lists ordered and unordered messages by their message
    /// identifiers.
    ByMid,
}

/// Partly sent message with an abandonment policy.
#[derive(Debug)]
pub(crate) struct TrackedMessage {
    /// TSNs of the chunks sent so far; not empty.
    pub(crate) tsns: Vec<Tsn>,
    /// Whether the message is complete: all its chunks were sent, or no further chunk will be sent.
    pub(crate) ended: bool,
    pub(crate) abandoned: bool,
    pub(crate) message: MessageId,
    pub(crate) ssn: Ssn,
    pub(crate) ppid: u32,
    pub(crate) payload: Bytes,
    pub(crate) context: u32,
    pub(crate) terms: PrPolicy,
}

impl TrackedMessage {
    fn first(&self) -> Option<Tsn> {
        self.tsns.first().copied()
    }

    fn last(&self) -> Option<Tsn> {
        self.tsns.last().copied()
    }
}

/// Last abandoned message of a stream, as reported to the peer: its record number and sequence
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ListedStream {
    place: u64,
    ssn: Ssn,
    mid: u32,
}

/// Sequence numbers in a FORWARD TSN, by stream and unordered flag.
type Skips = BTreeMap<(u16, bool), (Ssn, u32)>;

/// Last abandoned messages, by stream and unordered flag.
type Streams = BTreeMap<(u16, bool), ListedStream>;

/// Sender state of partial reliability.
#[derive(Debug)]
pub(crate) struct PrSctpSender {
    /// Records in the order of their first TSNs. `None`: an acknowledged message that follows an
    /// unacknowledged one.
    records: VecDeque<Option<TrackedMessage>>,
    /// Number of records that were removed from the front.
    gone: u64,
    /// Record number of each message, counted from the first record ever added.
    places: BTreeMap<MessageId, u64>,
    /// Last TSNs of complete messages, with their messages.
    ends: VecDeque<(Tsn, MessageId)>,
    /// Advanced.Peer.Ack.Point (RFC 3758 §3.5 A1).
    point: Tsn,
    /// For each stream, the last abandoned message that starts at or before the point and is
    /// unacknowledged. The list is cached, because a peer can cause one more abandoned message with
    /// each SACK, and building the FORWARD TSN should not scan all records.
    listed: Streams,
    /// Number of ordered messages in `listed`.
    ordered: usize,
    /// Number of the first record that starts after the point.
    unlisted: u64,
    /// Point in the last FORWARD TSN, with its time and path.
    told: Option<(Tsn, Nanos, PathId)>,
    counters: Counters,
    /// Abandoned messages that the user was not notified of.
    news: VecDeque<AbandonedMessage>,
}

impl PrSctpSender {
    /// State before any message is sent; `cumulative` is the TSN before the first TSN.
    pub(crate) fn new(cumulative: Tsn) -> Self {
        Self {
            records: VecDeque::new(),
            gone: 0,
            places: BTreeMap::new(),
            ends: VecDeque::new(),
            point: cumulative,
            listed: Streams::new(),
            ordered: 0,
            unlisted: 0,
            told: None,
            counters: Counters::default(),
            news: VecDeque::new(),
        }
    }

    /// Resets the state for new TSNs after `cumulative`, while no data is in flight.
    pub(crate) fn begin_anew(&mut self, cumulative: Tsn) {
        self.records.clear();
        self.places.clear();
        self.ends.clear();
        self.listed.clear();
        self.ordered = 0;
        self.unlisted = self.gone;
        self.point = cumulative;
        self.told = None;
    }

    /// Records that the first chunk of a message with a policy is sent.
    pub(crate) fn begin(&mut self, record: TrackedMessage) {
        if let (true, Some(last)) = (record.ended, record.last()) {
            self.ends.push_back((last, record.message));
        }
        let place = self.gone + self.records.len() as u64;
        self.places.insert(record.message, place);
        self.records.push_back(Some(record));
    }

    /// Records that a further chunk of a message is sent. Has no effect if the message has no
    /// policy.
    pub(crate) fn go_on(&mut self, message: MessageId, tsn: Tsn, ended: bool) {
        let Some(record) = self.find_mut(message).filter(|it| !it.ended) else {
            return;
        };
        record.tsns.push(tsn);
        record.ended = ended;
        if ended {
            self.ends.push_back((tsn, message));
        }
    }

    /// Record of an unacknowledged message with a policy.
    pub(crate) fn find(&self, message: MessageId) -> Option<&TrackedMessage> {
        let place = self.places.get(&message)?.checked_sub(self.gone)?;
        self.records.get(place as usize)?.as_ref()
    }

    /// Mutable version of [`Self::find`].
    pub(crate) fn find_mut(&mut self, message: MessageId) -> Option<&mut TrackedMessage> {
        let place = self.places.get(&message)?.checked_sub(self.gone)?;
        self.records.get_mut(place as usize)?.as_mut()
    }

    /// Removes the records of messages that the cumulative TSN `cumulative` acknowledges (RFC 3758
    /// §3.5 C1).
    pub(crate) fn acknowledged(&mut self, cumulative: Tsn) {
        while let Some((last, message)) = self.ends.front().copied()
            && last.le(cumulative)
        {
            self.ends.pop_front();
            if let Some(place) = self.places.remove(&message)
                && let Some(at) = place.checked_sub(self.gone)
                && let Some(record) = self.records.get_mut(at as usize)
            {
                *record = None;
                self.list_no_more(message, place);
            }
        }
        while self.records.front().is_some_and(Option::is_none) {
            self.records.pop_front();
            self.gone += 1;
        }
        if self.point.lt(cumulative) {
            self.point = cumulative;
            self.list_passed();
        }
    }

    /// Records that the message was abandoned, including its sent chunks.
    pub(crate) fn given_up(&mut self, message: MessageId) {
        if let Some(&place) = self.places.get(&message)
            && place < self.unlisted
        {
            self.list(place);
        }
    }

    /// Updates the list of abandoned messages after the point has advanced.
    fn list_passed(&mut self) {
        self.unlisted = self.unlisted.max(self.gone);
        while let Some(record) = self.records.get((self.unlisted - self.gone) as usize) {
            let first = record.as_ref().and_then(TrackedMessage::first);
            if first.is_some_and(|it| it.gt(self.point)) {
                return;
            }
            self.list(self.unlisted);
            self.unlisted += 1;
        }
    }

    /// Adds the record with number `place` to `listed`, if its message was abandoned.
    fn list(&mut self, place: u64) {
        let record = self.records.get(place.wrapping_sub(self.gone) as usize);
        let Some(record) = record.and_then(Option::as_ref).filter(|it| it.abandoned) else {
            return;
        };
        let (stream, unordered, mid) = record.message;
        let ssn = record.ssn;
        let listed = ListedStream { place, ssn, mid };
        let before = self.listed.get(&(stream, unordered));
        if before.is_none_or(|it| it.place < place) {
            self.ordered += usize::from(before.is_none() && !unordered);
            self.listed.insert((stream, unordered), listed);
        }
    }

    fn list_no_more(&mut self, (stream, unordered, _): MessageId, place: u64) {
        let key = (stream, unordered);
        if self.listed.get(&key).is_some_and(|it| it.place == place) {
            self.listed.remove(&key);
            self.ordered -= usize::from(!unordered);
        }
    }

    /// Number of records: messages with a policy that are unacknowledged or follow an
    /// unacknowledged one.
    pub(crate) fn messages(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn point(&self) -> Tsn {
        self.point
    }

    /// Advances the point past an abandoned chunk (RFC 3758 §3.5 C2).
    pub(crate) fn advance(&mut self) {
        self.point = self.point.next();
        self.list_passed();
    }

    /// Whether a FORWARD TSN must be sent now: the point has advanced, or the last FORWARD TSN has
    /// been unacknowledged for so long that it must have been lost.
    pub(crate) fn must_be_sent(&self, now: Nanos, round_trip: Nanos) -> bool {
        self.told.is_none_or(|(point, at, _)| {
            point != self.point || now >= at.saturating_add(round_trip.min(MAX_DELAY))
        })
    }

    /// Path of the last FORWARD TSN, if it is still unacknowledged.
    pub(crate) fn sent_on(&self, cumulative: Tsn) -> Option<PathId> {
        let (_, _, path) = self.told?;
        self.point.gt(cumulative).then_some(path)
    }

    /// Builds a FORWARD TSN or I-FORWARD-TSN of at most `room` bytes; returns its new cumulative
    /// TSN and the chunk. If not all streams fit, the new cumulative TSN is lower than the point
    /// (RFC 3758 §3.5 C4). `None` if not even the first message fits.
    pub(crate) fn forward(
        &self,
        form: ForwardTsnKind,
        cumulative: Tsn,
        room: usize,
    ) -> Option<(Tsn, Extension)> {
        if room < ForwardTsn::HEADER {
            return None;
        }
        let most = match form {
            ForwardTsnKind::BySsn => ForwardTsn::skipped_within(room),
            ForwardTsnKind::ByMid => IForwardTsn::skipped_within(room),
        };
        let count = match form {
            ForwardTsnKind::BySsn => self.ordered,
            ForwardTsnKind::ByMid => self.listed.len(),
        };
        let (point, skipped) = match count > most {
            true => self.first_of(form, cumulative, most),
            false => {
                let meant =
                    |it: &(&(u16, bool), &ListedStream)| form == ForwardTsnKind::ByMid || !it.0.1;
                let all = self.listed.iter().filter(meant);
                let all = all.map(|(of, it)| (*of, (it.ssn, it.mid)));
                (self.point, all.collect())
            }
        };
        let skipped = skipped.into_iter();
        let chunk = match form {
            ForwardTsnKind::BySsn => {
                let skipped =
                    skipped.map(|((stream_id, _), (ssn, _))| SkippedStream { stream_id, ssn });
                Extension::ForwardTsn(ForwardTsn::new(point, &skipped.collect::<Vec<_>>()))
            }
            ForwardTsnKind::ByMid => {
                let skipped = skipped.map(|((stream_id, unordered), (_, mid))| SkippedMessage {
                    stream_id,
                    unordered,
                    mid: Mid(mid),
                });
                Extension::IForwardTsn(IForwardTsn::new(point, skipped))
            }
        };
        point.gt(cumulative).then_some((point, chunk))
    }

    /// Abandoned messages of the first `most` streams, and the highest TSN up to which this list is
    /// complete.
    fn first_of(&self, form: ForwardTsnKind, cumulative: Tsn, most: usize) -> (Tsn, Skips) {
        let mut skipped = Skips::new();
        for record in self.records.iter().flatten() {
            let (Some(first), Some(last)) = (record.first(), record.last()) else {
                continue;
            };
            if first.gt(self.point) {
                break;
            }
            let (stream, unordered, mid) = record.message;
            let listed = record.abandoned && (form == ForwardTsnKind::ByMid || !unordered);
            if !listed || last.le(cumulative) {
                continue;
            }
            if skipped.len() == most && !skipped.contains_key(&(stream, unordered)) {
                return (first.prev(), skipped);
            }
            skipped.insert((stream, unordered), (record.ssn, mid));
        }
        (self.point, skipped)
    }

    /// Records that a FORWARD TSN with `point` is sent on `path`.
    pub(crate) fn tell(&mut self, now: Nanos, point: Tsn, path: PathId) {
        self.told = Some((point, now, path));
    }

    /// Counts an abandoned message, and queues it for the user.
    pub(crate) fn note(&mut self, message: AbandonedMessage) {
        let AbandonedMessage {
            stream,
            policy,
            sent,
            ..
        } = message;
        self.counters.count(stream, policy, sent);
        self.news.push_back(message);
    }

    /// Next abandoned message to report to the user.
    pub(crate) fn next_news(&mut self) -> Option<AbandonedMessage> {
        self.news.pop_front()
    }

    /// Number of messages abandoned by `policy`.
    pub(crate) fn count(&self, policy: AbandonPolicy) -> AbandonedCount {
        self.counters.of(policy)
    }

    /// Number of messages of `stream` abandoned by `policy`.
    pub(crate) fn count_on(&self, stream: u16, policy: AbandonPolicy) -> AbandonedCount {
        self.counters.on(stream, policy)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::test_rng::test_rng;

    /// Compares the cached list with a scan of all records, for random interleaved messages that
    /// are abandoned and acknowledged.
    #[test]
    fn the_list_of_abandoned_messages_equals_a_walk_of_all_records() {
        let mut listed = 0;
        for seed in 1..=300 {
            let mut random = test_rng(seed);
            let origin = Tsn(u32::MAX - random(200));
            let mut abandoning = PrSctpSender::new(origin);
            let (mut cumulative, mut next) = (origin, origin.next());
            // Incomplete message of each stream and unordered flag.
            let mut open: BTreeMap<(u16, bool), u32> = BTreeMap::new();
            let mut mids: BTreeMap<(u16, bool), u32> = BTreeMap::new();
            let mut gone = BTreeSet::new();
            let streams = 1 + random(12);
            for turn in 0..300 {
                let key = (random(streams) as u16, random(3) == 0);
                match random(10) {
                    0..6 => {
                        let ended = random(3) > 0;
                        if let Some(mid) = open.get(&key).copied() {
                            abandoning.go_on((key.0, key.1, mid), next, ended);
                        } else {
                            let mid = mids.entry(key).or_default();
                            *mid += 1;
                            open.insert(key, *mid);
                            abandoning.begin(TrackedMessage {
                                tsns: vec![next],
                                ended,
                                abandoned: false,
                                message: (key.0, key.1, *mid),
                                ssn: Ssn(*mid as u16),
                                ppid: 0,
                                payload: Bytes::new(),
                                context: 0,
                                terms: PrPolicy::default(),
                            });
                        }
                        if ended {
                            open.remove(&key);
                        }
                        next = next.next();
                    }
                    6..9 => {
                        let all = abandoning.records.iter().flatten();
                        let alive: Vec<_> = all.filter(|it| !it.abandoned).collect();
                        if alive.is_empty() {
                            continue;
                        }
                        let message = alive[random(alive.len() as u32) as usize].message;
                        let record = abandoning.find_mut(message).expect("it was there");
                        record.abandoned = true;
                        gone.extend(record.tsns.iter().map(|it| it.0));
                        if !record.ended {
                            abandoning.go_on(message, next, true);
                            gone.insert(next.0);
                            next = next.next();
                            open.remove(&(message.0, message.1));
                        }
                        abandoning.given_up(message);
                    }
                    _ => {
                        let outstanding = next.prev().distance_from(cumulative);
                        cumulative = cumulative.add(random(outstanding.min(20) + 1));
                        abandoning.acknowledged(cumulative);
                    }
                }
                while gone.contains(&abandoning.point().next().0) {
                    abandoning.advance();
                }
                for form in [ForwardTsnKind::BySsn, ForwardTsnKind::ByMid] {
                    let (point, all) = abandoning.first_of(form, cumulative, usize::MAX);
                    let told = abandoning.forward(form, cumulative, 1_000);
                    let walked = (point.gt(cumulative)).then(|| match form {
                        ForwardTsnKind::BySsn => {
                            let each =
                                all.iter()
                                    .map(|(&(stream_id, _), &(ssn, _))| SkippedStream {
                                        stream_id,
                                        ssn,
                                    });
                            Extension::ForwardTsn(ForwardTsn::new(point, &each.collect::<Vec<_>>()))
                        }
                        ForwardTsnKind::ByMid => {
                            let each = all.iter().map(|(&(stream_id, unordered), &(_, mid))| {
                                SkippedMessage {
                                    stream_id,
                                    unordered,
                                    mid: Mid(mid),
                                }
                            });
                            Extension::IForwardTsn(IForwardTsn::new(point, each))
                        }
                    });
                    listed += all.len();
                    assert_eq!(told, walked.map(|it| (point, it)), "seed {seed}, {turn}");
                    assert_eq!(
                        abandoning.ordered,
                        abandoning.listed.keys().filter(|it| !it.1).count()
                    );
                }
            }
        }
        assert!(listed > 10_000, "{listed}");
    }
}
