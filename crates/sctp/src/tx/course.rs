//! Messages that go to an address, or are signed by a key, that their user chose (SCTP_ADDR_OVER, SCTP_AUTHINFO; RFC 6458 §5.3.4, §5.3.8).

use std::collections::VecDeque;

use anabranch_wire::Tsn;

use super::Sender;
use crate::path::{PathId, PathState, Paths};
use crate::scheduling::SchedulerKind;

/// The keys of chunks: one packet has one AUTH, and so one key.
#[derive(Debug, Default)]
pub(super) struct Keys(Option<Box<Chosen>>);

/// Once a user has chosen a key.
#[derive(Debug, Default)]
struct Chosen {
    /// Of the packet at hand; `None`: the active one.
    packet: Option<u16>,
    /// Of chunks in flight that were signed by another than the active one, in the order of their TSNs: they are when they go again, too.
    chunks: VecDeque<(Tsn, u16)>,
}

impl Keys {
    /// A packet begins.
    pub fn begin_packet(&mut self) {
        if let Some(chosen) = &mut self.0 {
            chosen.packet = None;
        }
    }

    /// Whether a chunk with this key may go into the packet; its `first` decides.
    pub fn join(&mut self, key: Option<u16>, first: bool) -> bool {
        if self.0.is_none() && key.is_none() {
            return true;
        }
        let chosen = self.0.get_or_insert_default();
        if first {
            chosen.packet = key;
        }
        chosen.packet == key
    }

    /// A new chunk went into the packet.
    #[inline]
    pub fn note(&mut self, tsn: Tsn, cumulative: Tsn) {
        let Some(chosen) = &mut self.0 else {
            return;
        };
        let acknowledged = |it: &(Tsn, u16)| it.0.le(cumulative);
        while chosen.chunks.front().is_some_and(acknowledged) {
            chosen.chunks.pop_front();
        }
        if let Some(key) = chosen.packet {
            chosen.chunks.push_back((tsn, key));
        }
    }

    /// The key of a chunk in flight.
    pub fn of(&self, tsn: Tsn) -> Option<u16> {
        let chunks = &self.0.as_ref()?.chunks;
        let at = chunks.partition_point(|(chunk, _)| chunk.lt(tsn));
        let found = chunks.get(at).filter(|(chunk, _)| *chunk == tsn);
        found.map(|(_, key)| *key)
    }
}

impl Sender {
    /// The key that the packet which was filled last is to be signed by; `None`: the active one.
    pub(crate) fn packet_key(&self) -> Option<u16> {
        self.keys.0.as_ref()?.packet
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
