//! RSCTP's active path switch: the primary path changes because of its loss ratio, before it fails
//! (ho2008 §3.3, §3.5).

use anabranch_congestion::Feedback;
use anabranch_congestion::estimator::PathEstimator;
use anabranch_congestion::rsctp::LossAttribution;
use anabranch_congestion::rsctp::receiver_estimate::ReceiverEstimate;
use anabranch_transport::{Nanos, Probe, Trace};

use super::{PathEntry, PathId, PathState, Paths};
use crate::config::Config;

impl PathEntry {
    /// Passes a report of the receiver to the congestion control.
    pub(crate) fn feed_back(
        &mut self,
        now: Nanos,
        id: PathId,
        feedback: &Feedback,
        trace: &mut Trace,
    ) {
        let before = (self.cc.cwnd(), self.cc.ssthresh());
        self.cc.on_feedback(now, feedback);
        let after = (self.cc.cwnd(), self.cc.ssthresh());
        if after.0 != before.0 {
            trace.record(now, Probe::Cwnd, id.0.into(), after.0 as f64);
        }
        if after.1 != before.1 {
            trace.record(now, Probe::Ssthresh, id.0.into(), after.1 as f64);
        }
    }

    /// Reports of the receiver about this path; created on first use.
    pub(crate) fn receiver_mut(&mut self, config: &Config) -> &mut ReceiverEstimate {
        let fresh = || Box::new(ReceiverEstimate::new(config.profile.rsctp_loss_gain.0));
        self.receiver.get_or_insert_with(fresh)
    }

    /// Bandwidth reported by the receiver, in bytes per second.
    fn rate_reported(&self) -> Option<f64> {
        self.receiver.as_ref()?.rate()
    }

    /// Attributes a loss on this path to congestion or to the radio. Must be called before cwnd is
    /// reduced.
    pub(crate) fn verdict(&self) -> Option<LossAttribution> {
        LossAttribution::of(self.cc.cwnd_exact(), self.rto.srtt(), self.rate_reported())
    }

    /// Records the attribution of a loss in the trace, before cwnd is reduced. The attribution is
    /// that of the congestion control if it has one, else that of the path switch rules.
    pub(crate) fn trace_verdict(&self, now: Nanos, id: PathId, speaks: bool, trace: &mut Trace) {
        let verdict = match self.cc.loss_verdict() {
            Some(verdict) => verdict,
            None if speaks => self.verdict(),
            None => return,
        };
        trace.record(
            now,
            Probe::LossVerdict,
            id.0.into(),
            LossAttribution::code(verdict),
        );
    }
}

impl Paths {
    /// Switches the primary path after a loss on `id` if its loss ratio exceeds MPLR. After a
    /// congestion loss the new path must have more bandwidth; after a wireless loss any active path
    /// is allowed, and the one with the highest bandwidth is chosen. Must be called before cwnd is
    /// reduced.
    pub(crate) fn switch_if_lossy(&mut self, now: Nanos, id: PathId, trace: &mut Trace) {
        self.get(id)
            .trace_verdict(now, id, self.switch_rules.is_some(), trace);
        let Some(rules) = self.switch_rules else {
            return;
        };
        let entry = self.get(id);
        let lossy = entry
            .receiver
            .as_ref()
            .and_then(|it| it.loss_rate())
            .is_some_and(|rate| rate > rules.max_loss_rate);
        if id != self.primary() || !lossy {
            return;
        }
        let more_bandwidth = match entry.verdict() {
            Some(LossAttribution::Wireless) => rules.wireless_needs_bandwidth,
            Some(LossAttribution::Congestion) => true,
            None => return,
        };
        if let Some(other) = self.best_other(id, more_bandwidth) {
            self.set_primary(other);
        }
    }

    /// Active path with the highest bandwidth, other than `id`. `more_bandwidth`: the path must
    /// have more bandwidth than `id`.
    fn best_other(&self, id: PathId, more_bandwidth: bool) -> Option<PathId> {
        let bandwidth = |entry: &PathEntry| entry.rate_reported().unwrap_or(0.0);
        let here = bandwidth(self.get(id));
        let mut best: Option<(PathId, f64)> = None;
        for (other, entry) in self.iter() {
            let there = bandwidth(entry);
            let eligible = other != id
                && entry.state == PathState::Active
                && (!more_bandwidth || there > here);
            if eligible && best.is_none_or(|(_, most)| there > most) {
                best = Some((other, there));
            }
        }
        best.map(|(other, _)| other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::path::PathState;
    use crate::path::SwitchRules;
    use crate::profile::Profile;
    use anabranch_transport::Path;
    use anabranch_transport::time::MILLISECOND;

    /// Three active paths with the reported bandwidths and loss rates, an RTT of 100 ms, and a cwnd
    /// of 4,404 bytes. The rate cwnd / RTT is therefore 44,040 bytes/s.
    fn paths(change: impl Fn(&mut Profile), reports: [(f64, f64); 3]) -> Paths {
        let mut config = Config::default();
        change(&mut config.profile);
        let path = |last: u8| Path::new([10, 0, 0, 1].into(), [10, 0, last, 2].into());
        let mut paths = Paths::new(&config, path(0), PathState::Active);
        for last in 1..3 {
            paths.add(&config, path(last), PathState::Active);
        }
        paths.switch_rules = SwitchRules::of(&config.profile);
        for (index, (bandwidth, loss)) in reports.into_iter().enumerate() {
            let entry = paths.get_mut(PathId(index as u8));
            entry.rto.measure(100 * MILLISECOND);
            let feedback = Feedback {
                available_bandwidth: Some(bandwidth),
                loss_rate: Some(loss),
                srtt: None,
                carries_data: true,
                peer_window: 0,
            };
            entry.receiver_mut(&config).on_feedback(0, &feedback);
        }
        paths
    }

    fn after_loss(change: impl Fn(&mut Profile), reports: [(f64, f64); 3]) -> u8 {
        let mut paths = paths(change, reports);
        paths.switch_if_lossy(0, PathId(0), &mut Trace::default());
        paths.primary().0
    }

    /// The two conditions of Fig. 3-7. A loss is due to congestion if cwnd / RTT (44,040 bytes/s)
    /// exceeds the reported bandwidth, as with 40,000 bytes/s, and to the radio if not, as with
    /// 50,000 bytes/s.
    #[test]
    fn the_two_conditions_of_the_pseudo_code() {
        let as_is = |_: &mut Profile| {};
        let others = [(60_000.0, 0.0), (90_000.0, 0.0)];
        let at = |bandwidth, loss, others: [(f64, f64); 2]| {
            after_loss(as_is, [(bandwidth, loss), others[0], others[1]])
        };
        assert_eq!(at(40_000.0, 0.051, others), 2, "congestion, more there");
        assert_eq!(at(40_000.0, 0.05, others), 0, "not over MPLR");
        let poor = [(39_000.0, 0.0), (40_000.0, 0.0)];
        assert_eq!(at(40_000.0, 0.2, poor), 0, "congestion, not more there");
        assert_eq!(at(50_000.0, 0.2, poor), 2, "wireless: the better of them");
        let strict = |profile: &mut Profile| profile.rsctp_wireless_switch_needs_bandwidth = true;
        let reports = [(50_000.0, 0.2), poor[0], poor[1]];
        assert_eq!(after_loss(strict, reports), 0, "by the sentence of §3.5.1");
        let off = |profile: &mut Profile| profile.rsctp_path_switch = false;
        assert_eq!(after_loss(off, reports), 0);
    }

    #[test]
    fn only_an_active_path_takes_over_and_only_the_primary_gives_up() {
        let reports = [(50_000.0, 0.2), (9.0, 0.9), (10.0, 0.9)];
        let mut paths = paths(|_| {}, reports);
        paths.switch_if_lossy(0, PathId(1), &mut Trace::default());
        assert_eq!(paths.primary(), PathId(0));
        paths.get_mut(PathId(2)).state = PathState::Unconfirmed;
        paths.switch_if_lossy(0, PathId(0), &mut Trace::default());
        assert_eq!(paths.primary(), PathId(1));
        paths.get_mut(PathId(0)).state = PathState::Inactive;
        paths.switch_if_lossy(0, PathId(1), &mut Trace::default());
        assert_eq!(paths.primary(), PathId(1), "nobody to take over");
    }
}
