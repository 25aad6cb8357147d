//! When the sending half wants to be woken.

use anabranch_transport::Nanos;

use super::Sender;
use crate::path::{PathId, Paths};

impl Sender {
    /// When the earliest timer expires that says what is lost, or a closed window is to be probed.
    pub fn next_deadline(&self, paths: &Paths) -> Option<Nanos> {
        if self.watch.is_some() {
            return self.timed_deadline(paths);
        }
        self.untimed_deadline(paths)
    }

    /// When the earliest T3-rtx expires, or a closed window is to be probed.
    pub(super) fn untimed_deadline(&self, paths: &Paths) -> Option<Nanos> {
        let t3 = paths.next_t3();
        // Asked after every packet; while anything is in flight T3-rtx runs, and nothing is probed.
        if self.queue.is_empty() || self.in_flight_for_window() > 0 {
            return t3;
        }
        t3.into_iter()
            .chain(self.window_probe_deadline(paths))
            .min()
    }

    /// When a closed window is to be probed. It asks for all that [`Sender::wants_to_send`] asks for then, because a deadline at which
    /// nothing may go would be due again at once.
    fn window_probe_deadline(&self, paths: &Paths) -> Option<Nanos> {
        let waits = self.profile.window_probe_waits
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

    /// When pacing lets the next packet go, while there is something to send.
    pub fn pacing_deadline(&self, paths: &Paths) -> Option<Nanos> {
        if self.queue.is_empty() && self.outstanding.first_marked().is_none() {
            return None;
        }
        let alarms = paths
            .iter()
            .filter_map(|(_, entry)| entry.pacer.as_ref()?.deadline());
        alarms.min()
    }

    /// From when on a closed window may be probed over `path`.
    pub(super) fn probe_from(&self, path: PathId, paths: &Paths) -> Nanos {
        if self.profile.window_probe_waits {
            self.quiet_since.saturating_add(paths.get(path).rto.rto())
        } else {
            0
        }
    }

    /// The earliest of all deadlines of this half, [`Nanos::MAX`] if there is none, where T3-rtx and the allocation of streams alone
    /// have any: nothing is paced or watched, and no closed window waits to be probed. Asked after every packet.
    #[inline]
    pub(crate) fn plain_deadline(&self, paths: &Paths) -> Option<Nanos> {
        let probes_no_window = self.queue.is_empty() || self.in_flight_for_window() > 0;
        // An algorithm may compute a rate where the settings ask for none.
        let paced = paths
            .iter()
            .any(|(_, it)| it.pacer.as_ref().is_some_and(|it| it.deadline().is_some()));
        if self.watch.is_some() || !probes_no_window || paced {
            return None;
        }
        let streams = self.in_use.deadline().unwrap_or(Nanos::MAX);
        Some(paths.earliest_t3().min(streams))
    }
}
