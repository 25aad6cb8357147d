//! Concurrent multipath transfer (CMT): new data uses all active paths at the same time (J.
//! Iyengar, P. Amer and R. Stewart, "Concurrent Multipath Transfer Using SCTP Multihoming Over
//! Independent End-to-End Paths", IEEE/ACM Transactions on Networking, 2006). Each part that can be
//! switched off has a separate file. The state exists only with the setting `cmt`.

mod buffer_splitting;
mod coupling;
mod cwnd_update;
mod delayed_ack;
mod split_fast_retransmit;

use anabranch_transport::Nanos;
use anabranch_wire::Tsn;

pub(crate) use delayed_ack::flags as sack_flags;

use super::Sender;
use crate::config::{BufferSplit, Config};
use crate::path::{PathId, PathState, Paths};

/// State of a sender that uses several paths at the same time.
#[derive(Debug)]
pub(super) struct Cmt {
    split_fast_retransmit: bool,
    cwnd_update: bool,
    delayed_ack: bool,
    buffers: BufferSplit,
    pub(super) send_buffer: u64,
    /// Number of packets that the flags of the current SACK report (DAC); 0 if not reported.
    reported: u8,
    each: Vec<Each>,
}

/// State of concurrent multipath transfer for each path.
#[derive(Clone, Copy, Debug, Default)]
struct Each {
    /// Exit point of the path's fast recovery, which lasts until all TSNs of the path up to the
    /// exit point are acknowledged or sent on another path.
    recovery_until: Option<Tsn>,
    /// Lower bound of the unacknowledged TSNs that were sent once, on this path.
    fresh_from: Option<Tsn>,
    /// Lowest unacknowledged TSN that was sent once, on this path, before the current SACK was
    /// processed.
    fresh_before: Option<Tsn>,
    /// Number of bytes last sent on this path that only Gap Ack Blocks have reported, so that the
    /// receiver may still buffer them.
    gap_acked: u64,
}

impl Cmt {
    /// State for `config`; `None` if the setting `cmt` is off.
    pub(super) fn of(config: &Config) -> Option<Box<Self>> {
        config.cmt.then(|| {
            Box::new(Self {
                split_fast_retransmit: config.cmt_split_fast_retransmit,
                cwnd_update: config.cmt_cwnd_update,
                delayed_ack: config.cmt_delayed_ack,
                buffers: config.cmt_buffer_split,
                send_buffer: config.send_buffer as u64,
                reported: 0,
                each: vec![Each::default(); Paths::MAX],
            })
        })
    }
}

impl Sender {
    /// Like [`Sender::wants_to_send`], if chunks wait for retransmission and several paths are in
    /// use. A path whose cwnd is full does not block other paths, and each path sends
    /// retransmissions before new data.
    #[cold]
    pub(super) fn wants_concurrently(&self, now: Nanos, paths: &Paths) -> Option<PathId> {
        if let Some(path) = self.sends_again_on(now, paths) {
            return Some(path);
        }
        let new = !self.gate_closed;
        new.then(|| self.new_concurrently(now, paths)).flatten()
    }

    /// Path of the next retransmission: that of the lowest marked chunk whose path may send now.
    fn sends_again_on(&self, now: Nanos, paths: &Paths) -> Option<PathId> {
        let allowed = |&(_, to): &(u32, PathId)| {
            self.one_packet || (!self.gate_closed && paths.get(to).may_go(now))
        };
        let waiting = self.waiting_to_go_again(paths).filter(allowed);
        waiting.min().map(|(_, to)| to)
    }

    /// Whether all paths are used at the same time (setting `cmt`).
    pub(super) fn uses_paths_at_once(&self) -> bool {
        self.cmt.is_some()
    }

    /// Lowest marked chunk of each path.
    pub(super) fn next_on_each(&self, paths: &Paths) -> impl Iterator<Item = Tsn> {
        let first = self.outstanding.cumulative_point().next();
        let lowest = move |(id, _)| self.outstanding.next_marked_on(id, first);
        paths.iter().filter_map(lowest)
    }

    /// The chunks of [`Self::next_on_each`], as distance from the first outstanding chunk, with
    /// their destination paths.
    fn waiting_to_go_again(&self, paths: &Paths) -> impl Iterator<Item = (u32, PathId)> {
        let first = self.outstanding.cumulative_point().next();
        self.next_on_each(paths).filter_map(move |tsn| {
            let to = self.retransmission_path(tsn, paths)?;
            Some((tsn.distance_from(first), to))
        })
    }

    /// Chunk to be retransmitted next on `id`. Marked chunks for other paths are skipped.
    pub(super) fn first_to_go_again(&self, id: PathId, paths: &Paths) -> Option<Tsn> {
        if !self.uses_paths_at_once() {
            return self.outstanding.first_marked();
        }
        let first = self.outstanding.cumulative_point().next();
        let waiting = self.waiting_to_go_again(paths);
        let lowest = waiting.filter(|(_, to)| *to == id).min();
        lowest.map(|(distance, _)| first.add(distance))
    }

    /// Whether several paths are in use and no retransmission is due on `id`.
    #[cold]
    pub(super) fn nothing_goes_again_on(&self, id: PathId, paths: &Paths) -> bool {
        self.cmt.is_some() && self.waiting_to_go_again(paths).all(|(_, to)| to != id)
    }

    /// Path for new data, if data may be sent: the next path with space in its cwnd, after the path
    /// that was last used for new data.
    pub(super) fn new_concurrently(&self, now: Nanos, paths: &Paths) -> Option<PathId> {
        let newest = self.outstanding.get(self.outstanding.next_tsn().prev());
        let last = newest.map_or(0, |chunk| usize::from(chunk.path.0) + 1);
        let count = paths.len();
        if self.queue.is_empty() {
            return None;
        }
        let in_turn = (0..count).map(|step| PathId(((last + step) % count) as u8));
        in_turn
            .filter(|&id| self.takes_new(id, paths))
            .find(|&id| self.may_send_new(now, id, paths))
    }

    /// Resets the state because all TSNs were reset; no data is outstanding.
    pub(super) fn restart_concurrently(&mut self) {
        if let Some(cmt) = &mut self.cmt {
            cmt.each.fill(Each::default());
            self.outstanding.use_paths_at_once();
        }
    }

    /// Whether new data may be sent on `id`. With several paths in use, every active path may send
    /// within its share of the buffers.
    pub(super) fn takes_new(&self, id: PathId, paths: &Paths) -> bool {
        let active = |id: PathId| paths.get(id).state == PathState::Active;
        match &self.cmt {
            Some(cmt) if active(id) => self.has_share(cmt, id, paths),
            _ => self.path_for_new(paths) == id,
        }
    }
}
