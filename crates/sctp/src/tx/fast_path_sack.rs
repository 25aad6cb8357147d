//! SACK fast path: no gaps, the cumulative TSN advances, and all outstanding data is in flight on
//! the only path.
//!
//! Most checks are then not needed, because no chunk is missing, marked, abandoned or reneged, no
//! recovery is in progress, and tracing is disabled. The result must equal that of
//! [`Sender::handle_sack`], which handles all other cases.

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::chunk::Sack;

use super::Sender;
use super::ack::{PathAck, SackOutcome};
use crate::path::{PathId, Paths};
use crate::profile::{IdleDecay, Summed};

impl Sender {
    /// Like [`Sender::handle_sack`], if the fast path can be used.
    #[inline(never)]
    pub(crate) fn handle_fast_path_sack<B: AsRef<[u8]>>(
        &mut self,
        now: Nanos,
        sack: &Sack<B>,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> Option<SackOutcome> {
        let point = self.outstanding.cumulative_point();
        let count = sack.cumulative_tsn_ack.distance_from(point);
        if count == 0
            || count as usize > self.outstanding.len()
            || sack.has_gaps()
            || paths.len() > 1
            || !self.is_plain(trace)
            || !self.is_undisturbed()
        {
            return None;
        }
        self.statistics.sacks += 1;
        self.a_rwnd = sack.a_rwnd.into();
        if self.profile.idle_decay == IdleDecay::SinceLastSend {
            paths
                .get_mut(PathId(0))
                .decay(now, IdleDecay::SinceLastSend);
        }
        let ack = self.take_in_flight(now, count, paths);
        self.highest_newly_acked = Some(sack.cumulative_tsn_ack);
        let mut outcome = SackOutcome {
            cumulative_advanced: true,
            newly_acked_chunks: count,
            alive: true,
            ..SackOutcome::default()
        };
        let no_growth = std::mem::take(&mut self.echoed);
        let how = (true, no_growth);
        self.settle::<true>(now, PathId(0), &ack, how, &mut outcome, paths, trace);
        self.let_go_on(now, ack.packets);
        // No chunk is reported by Gap Ack Blocks or abandoned, so nothing is subtracted from the
        // limit of unacknowledged data.
        let window = self.a_rwnd.min(self.most_unacknowledged);
        self.note_peer_window(now, window, true);
        Some(outcome)
    }

    /// Whether the state of the sender permits the SACK fast path; [`Sender::is_plain`] is required
    /// in addition.
    #[inline(always)]
    fn is_undisturbed(&self) -> bool {
        self.gaps.is_empty()
            && self.outstanding.all_in_flight()
            && self.reneged_on.is_none()
            && self.recovery_until.is_none()
            && self.probe.is_none()
    }

    /// Removes the next `count` chunks, which are acknowledged. Returns the effects on the path.
    #[inline(always)]
    fn take_in_flight(&mut self, now: Nanos, count: u32, paths: &mut Paths) -> PathAck {
        let entry = paths.get_mut(PathId(0));
        let (first, next) = (
            self.outstanding.cumulative_point().next(),
            self.outstanding.next_tsn(),
        );
        entry.earliest = entry
            .earliest
            .map(|bound| if bound.lt(first) { first } else { bound })
            .filter(|earliest| earliest.lt(next));
        let mut ack = PathAck {
            chunks: count,
            alive: true,
            passed: self.profile.cumulative_restarts_t3,
            watched: entry.cc.wants_latest_rtt(),
            earliest_before: entry.earliest,
            flight_before: entry.flightsize,
            ..PathAck::default()
        };
        let (cwnd_counts, rwnd_counts) = (self.profile.cwnd_counts, self.profile.rwnd_counts);
        let each_measures = !self.profile.rtt_once_per_round_trip;
        let (mut chunks, mut resent) = (Summed::default(), false);
        self.outstanding.pop_in_flight(count, |tsn, chunk| {
            chunks.add(chunk.fragment.user_data.len());
            ack.packets += u32::from(chunk.begins_packet);
            resent |= chunk.fast_retransmitted;
            // Karn's rule: only a chunk that was sent once yields a measurement (RFC 9260 §6.3.1
            // C5).
            let timed = entry.timed == Some(tsn);
            if chunk.transmissions == 1 {
                if timed || each_measures {
                    ack.rtt = Some(now - chunk.sent_at);
                }
                if ack.watched {
                    ack.latest_sent = ack.latest_sent.max(Some(chunk.sent_at));
                }
            }
            if timed {
                entry.timed = None;
            }
        });
        ack.highest = self.outstanding.cumulative_point();
        ack.bytes = cwnd_counts.of_all(chunks);
        entry.flightsize -= ack.bytes;
        self.rwnd_in_flight -= rwnd_counts.of_all(chunks);
        self.statistics.bytes_acknowledged += chunks.user_data;
        // Limit the next burst, because the acknowledged retransmission may have released many
        // chunks (RFC 9260 §6.1 D).
        self.burst.armed |= resent;
        ack
    }
}
