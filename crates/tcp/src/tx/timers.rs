//! Timers of the sender: retransmission, persist, loss recovery, and pacing.

use anabranch_congestion::LossCause;
use anabranch_transport::{Nanos, Probe, Trace};

use super::recovery::{Due, Moment, Outcome};
use super::{FIRST, Sender};
use crate::stats::Stats;
use crate::time::or_never;

impl Sender {
    /// Records that the SYN was sent or retransmitted.
    pub(crate) fn syn_sent(&mut self, now: Nanos) {
        if self.flow.max == 0 {
            (self.flow.nxt, self.flow.max) = (FIRST, FIRST);
            self.timing = Some((FIRST, now));
        } else {
            self.timing = None;
        }
        self.retransmit_at = Some(now + self.rto.rto());
    }

    /// Handles a timeout of the SYN. Returns whether the connection fails.
    pub(crate) fn syn_timeout(&mut self) -> bool {
        self.timeouts += 1;
        self.rto.back_off();
        self.retransmit_at = None;
        let limit = self.profile.syn_retransmission_limit.0;
        limit > 0 && self.timeouts > limit
    }

    /// Starts or stops the persist timer; called if no segment can be sent now. The timer runs if
    /// only the peer's window prevents sending, and no outstanding data will cause an
    /// acknowledgement that reports its opening (RFC 9293 §3.8.6.1).
    pub(crate) fn rest(&mut self, now: Nanos) {
        let stuck = self.flow.flightsize() == 0 && self.flow.nxt < self.flow.queued_to;
        if !stuck {
            self.persist_at = None;
        } else if self.persist_at.is_none() {
            let interval = self
                .rto
                .rto()
                .saturating_mul(1 << self.probes.min(16))
                .min(self.profile.rto_max.0);
            self.persist_at = Some(now + interval);
        }
    }

    /// Earliest deadline of all timers; [`Nanos::MAX`] if no timer runs.
    #[inline]
    pub(crate) fn deadline(&self) -> Nanos {
        let own = or_never(self.retransmit_at).min(or_never(self.persist_at));
        let own = own.min(or_never(self.recovery.deadline()));
        // The time at which pacing or an ECN pause ends counts only if a segment is waiting for it.
        match self.flow.pacer.deadline().max(self.flow.ecn.held_until()) {
            Some(gate) if self.plan().is_some() => own.min(gate),
            _ => own,
        }
    }

    /// Whether the retransmission timer has expired.
    pub(crate) fn retransmission_due(&self, now: Nanos) -> bool {
        self.retransmit_at.is_some_and(|at| at <= now)
    }

    /// Stops the retransmission and persist timers.
    pub(crate) fn stop(&mut self) {
        (self.retransmit_at, self.persist_at) = (None, None);
    }

    /// Handles expired timers. Returns whether the connection fails because the limit of
    /// consecutive timeouts was exceeded.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Nanos,
        stats: &mut Stats,
        trace: &mut Trace,
    ) -> bool {
        self.flow.pacer.handle_timeout(now);
        self.flow.ecn.release(now);
        if self.persist_at.is_some_and(|at| at <= now) {
            self.persist_at = None;
            self.probes += 1;
            self.probe_owed = true;
        }
        let timeout = self.retransmission_due(now);
        match self.recovery_timer(now, timeout, stats, trace) {
            Due::Nothing if timeout => self.retransmission_timeout(now, stats, trace),
            _ => false,
        }
    }

    /// Handles the timers of loss recovery if they have expired.
    fn recovery_timer(
        &mut self,
        now: Nanos,
        timeout: bool,
        stats: &mut Stats,
        trace: &mut Trace,
    ) -> Due {
        if !timeout && self.recovery.deadline().is_none_or(|at| at > now) {
            return Due::Nothing;
        }
        let moment = self.moment(now);
        let due = self.recovery.on_timer(&mut self.flow, &moment, timeout);
        match due {
            Due::Lost => {
                let outcome = Outcome {
                    entered: true,
                    ..Outcome::default()
                };
                self.after(now, &outcome, stats, trace);
                self.retransmit_at = Some(now + self.rto.rto());
                self.trace_windows(now, trace);
            }
            Due::Probe => {
                self.probing = true;
                self.retransmit_at = Some(now + self.rto.rto());
            }
            Due::Nothing => {}
        }
        due
    }

    pub(super) fn moment(&self, now: Nanos) -> Moment {
        let srtt = self.rto.srtt();
        Moment { now, srtt }
    }

    fn retransmission_timeout(&mut self, now: Nanos, stats: &mut Stats, trace: &mut Trace) -> bool {
        self.retransmit_at = None;
        if self.flow.flightsize() == 0 {
            return false;
        }
        stats.timeouts += 1;
        self.flow.ecn.release(Nanos::MAX);
        self.timeouts += 1;
        self.timing = None;
        trace.record(now, Probe::Timeout, 0, self.number(self.flow.una));
        if self.timeouts == 1 || !self.profile.repeated_timeout_keeps_ssthresh {
            self.flow.cut(now, LossCause::Timeout, 0);
        }
        self.rto.back_off();
        self.begin_forward();
        let moment = self.moment(now);
        self.recovery.on_timeout(&mut self.flow, &moment);
        if self.recovery.goes_back() {
            self.flow.nxt = self.flow.una;
        }
        self.retransmit_at = Some(now + self.rto.rto());
        self.trace_windows(now, trace);
        self.trace_rto(now, trace);
        let limit = self.profile.retransmission_limit.0;
        limit > 0 && self.timeouts > limit
    }
}
