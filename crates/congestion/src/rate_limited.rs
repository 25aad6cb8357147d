//! Rate-limited increase (draft-ietf-ccwg-ratelimited-increase, which updates RFC 5681, RFC 9260
//! and RFC 9438). If a sender does not fully use its window, the growth of the window is limited by
//! the maximum of the bytes in flight.

use anabranch_transport::Nanos;

use crate::careful_resume::CarefulResume;
use crate::{AckSample, CongestionControl, Feedback, LossCause};

/// Controller that limits the growth of another algorithm's window by `maxFS`: to twice this value
/// in slow start, and to one segment more in congestion avoidance.
///
/// The draft caps the window itself. Here only growth is limited. A window that was already larger
/// would otherwise decrease without congestion, which the draft leaves to RFC 7661.
#[derive(Debug)]
pub struct RateLimitedIncrease {
    inner: Box<dyn CongestionControl>,
    segment: u64,
    /// `maxFS`, bytes: maximum FlightSize since the window was last reduced, and initially the
    /// initial window.
    max_flightsize: u64,
}

impl RateLimitedIncrease {
    /// Wraps `inner`, a controller at the start of its path, with segments of `segment` bytes.
    pub fn new(inner: Box<dyn CongestionControl>, segment: u64) -> Self {
        Self {
            max_flightsize: inner.cwnd(),
            segment,
            inner,
        }
    }

    fn note_flight(&mut self, flightsize: u64) {
        self.max_flightsize = self.max_flightsize.max(flightsize);
    }

    /// Resets `maxFS` if the window has been reduced from `before`.
    fn note_reduction(&mut self, before: f64) {
        if self.inner.cwnd_exact() < before {
            self.max_flightsize = 0;
        }
    }
}

impl CongestionControl for RateLimitedIncrease {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.note_flight(flightsize);
        self.inner.on_sent(now, bytes, flightsize);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let before = self.inner.cwnd_exact();
        let slow_start = self.inner.cwnd() < self.inner.ssthresh();
        self.inner.on_ack(ack);
        self.note_reduction(before);
        self.note_flight(ack.flightsize_after);
        let limit = match slow_start {
            true => 2 * self.max_flightsize,
            false => self.max_flightsize + self.segment,
        };
        let most = before.max(limit as f64);
        if self.inner.cwnd_exact() > most {
            self.inner.override_cwnd(most);
        }
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        let before = self.inner.cwnd_exact();
        self.inner.on_ecn(now, flightsize);
        self.note_reduction(before);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        let before = self.inner.cwnd_exact();
        self.inner.on_loss(now, cause, flightsize);
        self.note_reduction(before);
    }

    fn on_undo(&mut self, cwnd: f64, ssthresh: u64) {
        self.inner.on_undo(cwnd, ssthresh);
    }

    fn on_heartbeat_lost(&mut self, now: Nanos) {
        let before = self.inner.cwnd_exact();
        self.inner.on_heartbeat_lost(now);
        self.note_reduction(before);
    }

    fn on_feedback(&mut self, now: Nanos, feedback: &Feedback) {
        let before = self.inner.cwnd_exact();
        self.inner.on_feedback(now, feedback);
        self.note_reduction(before);
    }

    fn on_idle(&mut self, now: Nanos, idle_for: Nanos, rto: Nanos) {
        let before = self.inner.cwnd_exact();
        self.inner.on_idle(now, idle_for, rto);
        self.note_reduction(before);
    }

    fn on_mtu(&mut self, segment: u64) {
        self.segment = segment;
        self.inner.on_mtu(segment);
    }

    fn override_cwnd(&mut self, cwnd: f64) {
        let before = self.inner.cwnd_exact();
        self.inner.override_cwnd(cwnd);
        self.note_reduction(before);
    }

    fn careful_resume(&self) -> Option<&CarefulResume> {
        self.inner.careful_resume()
    }

    fn careful_resume_mut(&mut self) -> Option<&mut CarefulResume> {
        self.inner.careful_resume_mut()
    }

    fn wants_latest_rtt(&self) -> bool {
        self.inner.wants_latest_rtt()
    }

    fn pacing_rate(&self) -> Option<f64> {
        self.inner.pacing_rate()
    }

    rest_of_inner!();
}

#[cfg(test)]
mod tests;
