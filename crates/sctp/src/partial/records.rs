//! What a sender that may give messages up keeps: the messages with terms that are in flight, and how far the peer is to be
//! moved.

use std::collections::{BTreeMap, VecDeque};

use anabranch_transport::Nanos;
use anabranch_wire::extension::{ForwardTsn, Skipped};
use anabranch_wire::{Ssn, Tsn};
use bytes::Bytes;

use super::counters::Counters;
use super::{AbandonPolicy, AbandonedCount, AbandonedMessage, Terms};
use crate::path::PathId;

/// A FORWARD TSN is not delayed longer for being a duplicate (RFC 3758 §3.5 F3).
const MOST_DELAY: Nanos = 200_000_000;

/// A message with terms of which something was sent.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) first: Tsn,
    /// Of what was sent so far.
    pub(crate) last: Tsn,
    /// All of it was sent, or nothing more will be.
    pub(crate) ended: bool,
    pub(crate) abandoned: bool,
    pub(crate) stream: u16,
    pub(crate) ssn: Ssn,
    pub(crate) unordered: bool,
    pub(crate) ppid: u32,
    pub(crate) payload: Bytes,
    pub(crate) terms: Terms,
}

/// The sender's half of partial reliability.
#[derive(Debug)]
pub(crate) struct Abandoning {
    /// By their TSNs.
    records: VecDeque<Record>,
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
            point: cumulative,
            told: None,
            counters: Counters::default(),
            news: VecDeque::new(),
        }
    }

    /// Nothing is in flight, and TSNs begin anew after `cumulative`.
    pub(crate) fn begin_anew(&mut self, cumulative: Tsn) {
        self.records.clear();
        self.point = cumulative;
        self.told = None;
    }

    /// The first chunk of a message with terms goes out.
    pub(crate) fn begin(&mut self, record: Record) {
        self.records.push_back(record);
    }

    /// A further chunk of the message that was begun last, which has not ended, goes out.
    pub(crate) fn go_on(&mut self, tsn: Tsn, ended: bool) {
        if let Some(record) = self.records.back_mut().filter(|it| !it.ended) {
            (record.last, record.ended) = (tsn, ended);
        }
    }

    /// The message that the chunk `tsn` belongs to, if it has terms.
    pub(crate) fn find(&self, tsn: Tsn) -> Option<&Record> {
        self.records.get(self.place(tsn)?)
    }

    /// As [`Self::find`], to change it.
    pub(crate) fn find_mut(&mut self, tsn: Tsn) -> Option<&mut Record> {
        let place = self.place(tsn)?;
        self.records.get_mut(place)
    }

    fn place(&self, tsn: Tsn) -> Option<usize> {
        let after = self.records.partition_point(|it| it.first.le(tsn));
        let place = after.checked_sub(1)?;
        tsn.le(self.records[place].last).then_some(place)
    }

    /// The peer has acknowledged all up to `cumulative` (RFC 3758 §3.5 C1).
    pub(crate) fn acknowledged(&mut self, cumulative: Tsn) {
        let done = |it: &Record| it.ended && it.last.le(cumulative);
        while self.records.front().is_some_and(done) {
            self.records.pop_front();
        }
        if self.point.lt(cumulative) {
            self.point = cumulative;
        }
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

    /// What tells the peer, in `room` bytes: streams that do not fit lower the point (RFC 3758 §3.5 C4). `None` if not even
    /// the first message fits.
    pub(crate) fn forward(&self, cumulative: Tsn, room: usize) -> Option<ForwardTsn> {
        if room < ForwardTsn::HEADER {
            return None;
        }
        let most = ForwardTsn::skipped_within(room);
        let mut skipped: BTreeMap<u16, Ssn> = BTreeMap::new();
        let mut point = self.point;
        for record in self
            .records
            .iter()
            .filter(|it| it.abandoned && !it.unordered)
        {
            if record.first.gt(point) {
                break;
            }
            if record.last.le(cumulative) {
                continue;
            }
            if skipped.len() == most && !skipped.contains_key(&record.stream) {
                point = record.first.prev();
                break;
            }
            skipped.insert(record.stream, record.ssn);
        }
        let skipped: Vec<_> = skipped
            .into_iter()
            .map(|(stream_id, ssn)| Skipped { stream_id, ssn })
            .collect();
        point
            .gt(cumulative)
            .then(|| ForwardTsn::new(point, &skipped))
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
