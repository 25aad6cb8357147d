//! Proportional rate reduction (RFC 6937): fast recovery sends data in proportion to delivered
//! data, instead of one burst at the end of the recovery.

use super::Sender;
use crate::compact_option::OptionalNanos;
use crate::path::{PathId, Paths};

impl Sender {
    /// Sets the limit of bytes in flight until the next SACK, on each path that is in a recovery
    /// with PRR. Called after a SACK was processed.
    pub(super) fn spread_reductions(&mut self, paths: &mut Paths) {
        let cumulative = self.outstanding.cumulative_point();
        for index in 0..paths.len() {
            let id = PathId(index as u8);
            if paths.get(id).prr.is_none() {
                continue;
            }
            let over = !self.recovers_on(id, cumulative, paths);
            let delivered = self.acks.get(index).map_or(0, |ack| ack.bytes);
            let entry = paths.get_mut(id);
            let segment = self.profile.cwnd_counts.bytes(entry.max_user_data());
            let (pipe, target) = (entry.flightsize, entry.cc.cwnd());
            let due = entry
                .prr
                .as_mut()
                .map_or(0, |prr| prr.on_ack(delivered, pipe, target, segment));
            if over {
                entry.prr = None;
                entry.most_in_flight = OptionalNanos::NONE;
            } else {
                entry.most_in_flight = OptionalNanos::some(pipe + due);
            }
        }
    }
}
