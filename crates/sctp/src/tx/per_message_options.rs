//! Per-message options: a destination address or authentication key selected by the user
//! (SCTP_ADDR_OVER, SCTP_AUTHINFO; RFC 6458 §5.3.4, §5.3.8).

use std::collections::VecDeque;

use anabranch_wire::Tsn;

use super::Sender;
use crate::path::{PathId, PathState, Paths};
use crate::stream_scheduler::SchedulerKind;

/// Authentication keys of chunks. A packet has one AUTH chunk, so all its chunks have the same key.
#[derive(Debug, Default)]
pub(super) struct ChunkAuthKeys(Option<Box<SelectedKeys>>);

/// State that is allocated once the user has selected a key.
#[derive(Debug, Default)]
struct SelectedKeys {
    /// Key of the current packet; `None` for the active key.
    packet: Option<u16>,
    /// Keys of chunks in flight that do not use the active key, in the order of their TSNs.
    /// Retransmissions use the same keys.
    chunks: VecDeque<(Tsn, u16)>,
}

impl ChunkAuthKeys {
    /// Starts a new packet.
    pub fn begin_packet(&mut self) {
        if let Some(chosen) = &mut self.0 {
            chosen.packet = None;
        }
    }

    /// Whether a chunk with this key may be added to the packet. The first chunk of the packet
    /// (`first`) determines the key.
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

    /// Records the key of a new chunk that was added to the packet.
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

    /// Key of a chunk in flight.
    pub fn of(&self, tsn: Tsn) -> Option<u16> {
        let chunks = &self.0.as_ref()?.chunks;
        let at = chunks.partition_point(|(chunk, _)| chunk.lt(tsn));
        let found = chunks.get(at).filter(|(chunk, _)| *chunk == tsn);
        found.map(|(_, key)| *key)
    }
}

impl Sender {
    /// Key for the packet that was filled last; `None` for the active key.
    pub(crate) fn packet_key(&self) -> Option<u16> {
        self.keys.0.as_ref()?.packet
    }

    /// Replaces the scheduler, and sets its stream values.
    pub(crate) fn set_scheduler(
        &mut self,
        kind: SchedulerKind,
        values: impl Iterator<Item = (u16, u16)>,
    ) {
        self.queue.set_scheduler(kind, values);
    }

    /// Path for new data: the path requested for the next message if that is active, as on Linux,
    /// else the usual path.
    #[inline(always)]
    pub(super) fn path_for_new(&self, paths: &Paths) -> PathId {
        let wanted = self.queue.next_route().and_then(|it| it.address);
        let found = wanted.and_then(|address| paths.find(address));
        found
            .filter(|id| paths.get(*id).state == PathState::Active)
            .unwrap_or_else(|| paths.choose_for_new_data())
    }

    /// Whether the next message may be added to a packet for path `id`. `alone`: the packet has no
    /// data so far.
    #[cold]
    pub(super) fn joins(&mut self, id: PathId, alone: bool, paths: &Paths) -> bool {
        let route = self.queue.next_route().unwrap_or_default();
        let any_path = self.cmt.is_some() && route.address.is_none();
        let goes_here = alone || any_path || self.path_for_new(paths) == id;
        goes_here && self.keys.join(route.key, alone)
    }
}
