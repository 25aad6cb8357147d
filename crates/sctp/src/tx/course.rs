//! Messages that go to an address, or are signed by a key, that their user chose (SCTP_ADDR_OVER, SCTP_AUTHINFO; RFC 6458 §5.3.4, §5.3.8).

use std::collections::VecDeque;

use anabranch_wire::Tsn;

use super::Sender;
use crate::path::{PathId, PathState, Paths};
use crate::scheduling::SchedulerKind;

/// The keys of chunks: one packet has one AUTH, and so one key.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// Of the packet at hand; `None`: the active one.
    packet: Option<u16>,
    /// Of chunks in flight that were signed by another than the active one, in the order of their TSNs: they are when they go again, too.
    chosen: VecDeque<(Tsn, u16)>,
}

impl Keys {
    /// A packet begins.
    pub fn begin_packet(&mut self) {
        self.packet = None;
    }

    /// Whether a chunk with this key may go into the packet; its `first` decides.
    pub fn join(&mut self, key: Option<u16>, first: bool) -> bool {
        if first {
            self.packet = key;
        }
        self.packet == key
    }

    /// A new chunk went into the packet.
    #[inline]
    pub fn note(&mut self, tsn: Tsn, cumulative: Tsn) {
        let acknowledged = |it: &(Tsn, u16)| it.0.le(cumulative);
        while self.chosen.front().is_some_and(acknowledged) {
            self.chosen.pop_front();
        }
        if let Some(key) = self.packet {
            self.chosen.push_back((tsn, key));
        }
    }

    /// The key of a chunk in flight.
    pub fn of(&self, tsn: Tsn) -> Option<u16> {
        let at = self.chosen.partition_point(|(chunk, _)| chunk.lt(tsn));
        let found = self.chosen.get(at).filter(|(chunk, _)| *chunk == tsn);
        found.map(|(_, key)| *key)
    }
}

impl Sender {
    /// The key that the packet which was filled last is to be signed by; `None`: the active one.
    pub(crate) fn packet_key(&self) -> Option<u16> {
        self.keys.packet
    }

    /// Another scheduler decides from now on, with these values of streams.
    pub(crate) fn set_scheduler(
        &mut self,
        kind: SchedulerKind,
        values: impl Iterator<Item = (u16, u16)>,
    ) {
        self.queue.set_scheduler(kind, values);
    }

    /// Where new data goes: where the user of the next message wants it, while that path is active, as Linux does; else as ever.
    #[inline(always)]
    pub(super) fn path_for_new(&self, paths: &Paths) -> PathId {
        let wanted = self.queue.next_course().and_then(|it| it.address);
        let found = wanted.and_then(|address| paths.find(address));
        found
            .filter(|id| paths.get(*id).state == PathState::Active)
            .unwrap_or_else(|| paths.choose_for_new_data())
    }

    /// Whether the next message may go into the packet for `id`, which has no data yet where it is `alone`.
    #[cold]
    pub(super) fn joins(&mut self, id: PathId, alone: bool, paths: &Paths) -> bool {
        let course = self.queue.next_course().unwrap_or_default();
        let any_path = self.cmt.is_some() && course.address.is_none();
        let goes_here = alone || any_path || self.path_for_new(paths) == id;
        goes_here && self.keys.join(course.key, alone)
    }
}
