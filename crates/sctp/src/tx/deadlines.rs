//! Timer deadlines of the sender.

use anabranch_transport::Nanos;

use super::Sender;
use crate::path::{PathId, Paths};

impl Sender {
    /// Earliest deadline of loss detection and of the window probe.
    pub fn next_deadline(&self, paths: &Paths) -> Option<Nanos> {
        if self.optional_recovery.is_some() {
            return self.timed_deadline(paths);
        }
        self.untimed_deadline(paths)
    }

    /// Earliest deadline of T3-rtx and of the window probe.
    pub(super) fn untimed_deadline(&self, paths: &Paths) -> Option<Nanos> {
        let t3 = paths.next_t3();
        // Shortcut, because this is called after every packet: while data is in flight, T3-rtx is
        // running and no window probe is due.
        if self.queue.is_empty() || self.in_flight_for_window() > 0 {
            return t3;
        }
        t3.into_iter()
            .chain(self.window_probe_deadline(paths))
            .min()
    }

    /// Time at which a closed window must be probed. All conditions of [`Sender::wants_to_send`]
    /// are checked, because a deadline at which no data may be sent would immediately be due again.
    fn window_probe_deadline(&self, paths: &Paths) -> Option<Nanos> {
        let waits = self.profile.zero_window_probe_delay
            && self.outstanding.first_marked().is_none()
            && !self.fits_peer_window(paths)
            && self.may_keep_more();
        if !waits {
            return None;
        }
        let ids = paths.iter().map(|(id, _)| id);
        let allowed =
            ids.filter(|&id| self.takes_new(id, paths) && self.path_allows_new(id, paths));
        let from = |id| self.probe_from(id, paths).max(paths.get(id).paced_from());
        allowed.map(from).min()
    }

    /// Time at which pacing allows the next packet, if there is data to send.
    pub fn pacing_deadline(&self, paths: &Paths) -> Option<Nanos> {
        if self.queue.is_empty() && self.outstanding.first_marked().is_none() {
            return None;
        }
        let alarms = paths
            .iter()
            .filter_map(|(_, entry)| entry.pacer.as_ref()?.deadline());
        alarms.min()
    }

    /// Earliest time at which a closed window may be probed on `path`.
    pub(super) fn probe_from(&self, path: PathId, paths: &Paths) -> Nanos {
        if self.profile.zero_window_probe_delay {
            self.quiet_since.saturating_add(paths.get(path).rto.rto())
        } else {
            0
        }
    }

    /// Earliest deadline of the sender ([`Nanos::MAX`] for none), if only T3-rtx and the stream
    /// allocation can have deadlines. `None` with pacing, optional recovery algorithms, or a closed
    /// window to be probed. Called after every packet.
    #[inline]
    pub(crate) fn plain_deadline(&self, paths: &Paths) -> Option<Nanos> {
        let probes_no_window = self.queue.is_empty() || self.in_flight_for_window() > 0;
        // The congestion control may compute a rate even if the setting `pacing` is off.
        let paced = paths
            .iter()
            .any(|(_, it)| it.pacer.as_ref().is_some_and(|it| it.deadline().is_some()));
        if self.optional_recovery.is_some() || !probes_no_window || paced {
            return None;
        }
        let streams = self.in_use.deadline().unwrap_or(Nanos::MAX);
        Some(paths.earliest_t3().min(streams))
    }
}
