//! What a sender that may give messages up keeps: the messages with terms that are in flight, and how far the peer is to be
//! moved.

use std::collections::{BTreeMap, VecDeque};

use anabranch_transport::Nanos;
use anabranch_wire::extension::{Extension, ForwardTsn, IForwardTsn, Skipped, SkippedMessage};
use anabranch_wire::serial::Mid;
use anabranch_wire::{Ssn, Tsn};
use bytes::Bytes;

use super::counters::Counters;
use super::{AbandonPolicy, AbandonedCount, AbandonedMessage, Terms};
use crate::path::PathId;

/// A FORWARD TSN is not delayed longer for being a duplicate (RFC 3758 §3.5 F3).
const MOST_DELAY: Nanos = 200_000_000;

/// A message of which something was sent: its stream, whether it is unordered, and its number among those.
pub(crate) type MessageId = (u16, bool, u32);

/// How the peer is told which messages are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// By FORWARD TSN (RFC 3758 §3.2): ordered ones, by their stream sequence numbers.
    BySsn,
    /// By I-FORWARD-TSN (RFC 8260 §2.3.1): both kinds, by their message identifiers.
    ByMid,
}

/// A message with terms of which something was sent.
#[derive(Debug)]
pub(crate) struct Record {
    /// Of what was sent so far; not empty.
    pub(crate) tsns: Vec<Tsn>,
    /// All of it was sent, or nothing more will be.
    pub(crate) ended: bool,
    pub(crate) abandoned: bool,
    pub(crate) message: MessageId,
    pub(crate) ssn: Ssn,
    pub(crate) ppid: u32,
    pub(crate) payload: Bytes,
    pub(crate) terms: Terms,
}

impl Record {
    fn first(&self) -> Option<Tsn> {
        self.tsns.first().copied()
    }

    fn last(&self) -> Option<Tsn> {
        self.tsns.last().copied()
    }
}

/// The sender's half of partial reliability.
#[derive(Debug)]
pub(crate) struct Abandoning {
    /// By the first of their TSNs; `None`: it is acknowledged, and one before it is not.
    records: VecDeque<Option<Record>>,
    /// Records that are no more before the first.
    gone: u64,
    /// Which of all records is of which message.
    places: BTreeMap<MessageId, u64>,
    /// The last TSNs of messages that ended, and which those are.
    ends: VecDeque<(Tsn, MessageId)>,
    /// Advanced.Peer.Ack.Point (RFC 3758 §3.5 A1).
    point: Tsn,
    /// The point that was told last, when, and over which path.
    told: Option<(Tsn, Nanos, PathId)>,
    counters: Counters,
    /// What the user is to be told.
    news: VecDeque<AbandonedMessage>,
}

impl Abandoning {
    /// `cumulative`: the TSN before the first.
    pub(crate) fn new(cumulative: Tsn) -> Self {
        Self {
            records: VecDeque::new(),
            gone: 0,
            places: BTreeMap::new(),
            ends: VecDeque::new(),
            point: cumulative,
            told: None,
            counters: Counters::default(),
            news: VecDeque::new(),
        }
    }

    /// Nothing is in flight, and TSNs begin anew after `cumulative`.
    pub(crate) fn begin_anew(&mut self, cumulative: Tsn) {
        self.records.clear();
        self.places.clear();
        self.ends.clear();
        self.point = cumulative;
        self.told = None;
    }

    /// The first chunk of a message with terms goes out.
    pub(crate) fn begin(&mut self, record: Record) {
        if let (true, Some(last)) = (record.ended, record.last()) {
            self.ends.push_back((last, record.message));
        }
        let place = self.gone + self.records.len() as u64;
        self.places.insert(record.message, place);
        self.records.push_back(Some(record));
    }

    /// A further chunk of a message goes out, if that has terms.
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

    /// A message, if it has terms and is not acknowledged.
    pub(crate) fn find(&self, message: MessageId) -> Option<&Record> {
        let place = self.places.get(&message)?.checked_sub(self.gone)?;
        self.records.get(place as usize)?.as_ref()
    }

    /// As [`Self::find`], to change it.
    pub(crate) fn find_mut(&mut self, message: MessageId) -> Option<&mut Record> {
        let place = self.places.get(&message)?.checked_sub(self.gone)?;
        self.records.get_mut(place as usize)?.as_mut()
    }

    /// The peer has acknowledged all up to `cumulative` (RFC 3758 §3.5 C1).
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
            }
        }
        while self.records.front().is_some_and(Option::is_none) {
            self.records.pop_front();
            self.gone += 1;
        }
        if self.point.lt(cumulative) {
            self.point = cumulative;
        }
    }

    /// Messages with terms that are not acknowledged, or follow one that is not.
    pub(crate) fn messages(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn point(&self) -> Tsn {
        self.point
    }

    /// The chunk after the point is given up, too (RFC 3758 §3.5 C2).
    pub(crate) fn advance(&mut self) {
        self.point = self.point.next();
    }

    /// Whether the peer is to be told of the point now: it was not yet, or so long ago that the FORWARD TSN was lost.
    pub(crate) fn is_worth_telling(&self, now: Nanos, round_trip: Nanos) -> bool {
        self.told.is_none_or(|(point, at, _)| {
            point != self.point || now >= at.saturating_add(round_trip.min(MOST_DELAY))
        })
    }

    /// The path over which the peer was told of what is still not acknowledged.
    pub(crate) fn told_over(&self, cumulative: Tsn) -> Option<PathId> {
        let (_, _, path) = self.told?;
        self.point.gt(cumulative).then_some(path)
    }

    /// What tells the peer in this form, in `room` bytes, and up to where: what does not fit lowers the point (RFC 3758 §3.5 C4).
    /// `None` if not even the first message fits.
    pub(crate) fn forward(
        &self,
        form: Form,
        cumulative: Tsn,
        room: usize,
    ) -> Option<(Tsn, Extension)> {
        if room < ForwardTsn::HEADER {
            return None;
        }
        let most = match form {
            Form::BySsn => ForwardTsn::skipped_within(room),
            Form::ByMid => IForwardTsn::skipped_within(room),
        };
        let mut skipped: BTreeMap<(u16, bool), (Ssn, u32)> = BTreeMap::new();
        let mut point = self.point;
        let listed = |it: &&Record| it.abandoned && (form == Form::ByMid || !it.message.1);
        for record in self.records.iter().flatten().filter(listed) {
            let (Some(first), Some(last)) = (record.first(), record.last()) else {
                continue;
            };
            if first.gt(point) {
                break;
            }
            if last.le(cumulative) {
                continue;
            }
            let (stream, unordered, mid) = record.message;
            if skipped.len() == most && !skipped.contains_key(&(stream, unordered)) {
                point = first.prev();
                break;
            }
            skipped.insert((stream, unordered), (record.ssn, mid));
        }
        let skipped = skipped.into_iter();
        let chunk = match form {
            Form::BySsn => {
                let skipped = skipped.map(|((stream_id, _), (ssn, _))| Skipped { stream_id, ssn });
                Extension::ForwardTsn(ForwardTsn::new(point, &skipped.collect::<Vec<_>>()))
            }
            Form::ByMid => {
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

    /// The peer is told now of `point`, over `path`.
    pub(crate) fn tell(&mut self, now: Nanos, point: Tsn, path: PathId) {
        self.told = Some((point, now, path));
    }

    /// A message was given up.
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

    /// The next message that the user is to be told of.
    pub(crate) fn next_news(&mut self) -> Option<AbandonedMessage> {
        self.news.pop_front()
    }

    /// Messages given up by `policy`.
    pub(crate) fn count(&self, policy: AbandonPolicy) -> AbandonedCount {
        self.counters.of(policy)
    }

    /// Messages of `stream` given up by `policy`.
    pub(crate) fn count_on(&self, stream: u16, policy: AbandonPolicy) -> AbandonedCount {
        self.counters.on(stream, policy)
    }
}
