//! Buffer splitting: no path may fill the buffers alone, because a slow path would block all other
//! paths (T. Dreibholz, M. Becke, E. Rathgeb and M. Tüxen, "On the Use of Concurrent Multipath
//! Transfer over Asymmetric Paths", GLOBECOM 2010; H. Adhari et al., "Evaluation of Concurrent
//! Multipath Transfer over Dissimilar Paths", WAINA 2011).

use super::Cmt;
use crate::config::BufferSplit;
use crate::path::{PathId, PathState, Paths};
use crate::tx::Sender;

impl Sender {
    /// Whether `id` uses less than its share of the buffers.
    pub(super) fn has_share(&self, cmt: &Cmt, id: PathId, paths: &Paths) -> bool {
        if cmt.buffers == BufferSplit::Off {
            return true;
        }
        let active = |it: &&crate::path::PathEntry| it.state == PathState::Active;
        let count = paths.iter().map(|(_, entry)| entry).filter(active).count();
        let share = |whole: u64| whole / count.max(1) as u64;
        let entry = paths.get(id);
        let held = entry.flightsize + entry.marked_bytes + cmt.each[usize::from(id.0)].gap_acked;
        let sends = matches!(cmt.buffers, BufferSplit::Sender | BufferSplit::Both);
        let receives = matches!(cmt.buffers, BufferSplit::Receiver | BufferSplit::Both);
        // Without data in flight the path may still probe a closed window.
        let in_flight = entry.flightsize;
        (!sends || held < share(cmt.send_buffer))
            && (!receives
                || in_flight == 0
                || in_flight < share(self.peer_rwnd + self.rwnd_in_flight))
    }

    /// Records that a Gap Ack Block reported a chunk with `length` bytes of user data that was last
    /// sent on `id`.
    pub(in crate::tx) fn note_gap_acked(&mut self, id: PathId, length: usize) {
        if let Some(cmt) = &mut self.cmt {
            cmt.each[usize::from(id.0)].gap_acked += self.profile.cwnd_counts.bytes(length);
        }
    }

    /// Reverts [`Self::note_gap_acked`], because the chunk is cumulatively acknowledged, in flight
    /// again, or abandoned.
    pub(in crate::tx) fn forget_gap_acked(&mut self, id: PathId, length: usize) {
        if let Some(cmt) = &mut self.cmt {
            let bytes = self.profile.cwnd_counts.bytes(length);
            let held = &mut cmt.each[usize::from(id.0)].gap_acked;
            debug_assert!(*held >= bytes, "it was counted");
            *held = held.saturating_sub(bytes);
        }
    }
}
