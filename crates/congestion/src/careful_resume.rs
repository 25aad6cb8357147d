//! Careful Resume (RFC 9959): a new flow starts from the capacity that an earlier flow measured on
//! the same path.
//!
//! [`CarefulResume`] wraps the controller of a path, and measures the path
//! ([`CarefulResume::observation`]). If the driver provides parameters that were saved for the same
//! remote endpoint, the window jumps to half of the saved window after the initial data has been
//! acknowledged. The jump is then validated, and the sender retreats if congestion is detected.
//! [`SavedPaths`] is the store of saved parameters; the driver owns it.
//!
//! The RFC uses packet numbers, and this module uses byte counts instead. The sum of all bytes
//! sent, minus the bytes in flight, shows how much is acknowledged, because nothing is lost before
//! the Safe Retreat Phase.

mod phase;
mod saved;

use anabranch_transport::{Nanos, time};

use crate::{AckSample, CongestionControl, Feedback, LossCause};
pub use phase::{Phase, Transition, Trigger};
pub use saved::{SavedParameters, SavedPaths};

/// Minimum capacity, in initial windows, at which parameters should be saved (RFC 9959, Observing).
const MIN_SAVED_WINDOWS: u64 = 4;
/// Maximum ratio of the RTT to the saved RTT; a larger RTT shows that the path has changed (RFC
/// 9959, Confirming the Path).
const MAX_RTT_RATIO: u64 = 10;

/// Parameters of Careful Resume.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResumeParameters {
    /// `max_jump`: maximum window after the jump, bytes.
    pub max_jump: u64,
    /// Beta: ssthresh after a retreat, as a fraction of PipeSize, 0.5 to 1.
    pub beta: f64,
}

impl Default for ResumeParameters {
    /// No limit of the jump, and the RFC's default for Beta.
    fn default() -> Self {
        Self {
            max_jump: u64::MAX,
            beta: 0.5,
        }
    }
}

/// State from the jump until the return to normal congestion control.
#[derive(Clone, Copy, Debug, Default)]
struct Jump {
    /// PipeSize: the validated capacity, bytes.
    pipe_size: u64,
    /// Start of the Unvalidated Phase, nanoseconds.
    began: Nanos,
    /// Window of the Unvalidated Phase, or maximum window in the Safe Retreat Phase, bytes.
    window: u64,
    /// Bytes sent before the first unvalidated packet.
    first: u64,
    /// Bytes sent up to the last unvalidated packet; known when the Unvalidated Phase has ended.
    last: u64,
}

/// Controller that adds Careful Resume to another controller.
#[derive(Debug)]
pub struct CarefulResume {
    inner: Box<dyn CongestionControl>,
    parameters: ResumeParameters,
    /// Size of the largest segment, bytes.
    segment: u64,
    /// Initial window, bytes.
    initial_window: u64,
    saved: Option<SavedParameters>,
    phase: Phase,
    transitions: Vec<Transition>,
    /// Bytes sent so far.
    sent: u64,
    /// Bytes sent before the first acknowledgement; `None` until it has arrived.
    initial_data: Option<u64>,
    /// Latest RTT, and minimum RTT, nanoseconds.
    rtt: Option<Nanos>,
    min_rtt: Option<Nanos>,
    jump: Jump,
    observed_window: u64,
    refuted: bool,
}

impl CarefulResume {
    /// Wraps `inner`, a controller at the start of its path, with segments of `segment` bytes. The
    /// path is only observed, unless [`Self::resume`] is called.
    pub fn new(
        inner: Box<dyn CongestionControl>,
        segment: u64,
        parameters: ResumeParameters,
    ) -> Self {
        Self {
            initial_window: inner.cwnd(),
            inner,
            parameters,
            segment: segment.max(1),
            saved: None,
            phase: Phase::Normal,
            transitions: Vec::new(),
            sent: 0,
            initial_data: None,
            rtt: None,
            min_rtt: None,
            jump: Jump::default(),
            observed_window: 0,
            refuted: false,
        }
    }

    /// Provides parameters that were saved for the same remote endpoint. Returns false and has no
    /// effect after data was sent, because the Reconnaissance Phase must start with the first data.
    pub fn resume(&mut self, saved: SavedParameters) -> bool {
        let fresh = self.sent == 0;
        if fresh {
            (self.saved, self.phase) = (Some(saved), Phase::Reconnaissance);
        }
        fresh
    }

    /// Current phase of the flow.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Phase changes so far, at most one for each phase.
    pub fn transitions(&self) -> &[Transition] {
        &self.transitions
    }

    /// Parameters to save for the next flow to the same remote endpoint, valid until `expires`.
    /// `None` if the measured capacity is too small.
    pub fn observation(&self, expires: Nanos) -> Option<SavedParameters> {
        let least = MIN_SAVED_WINDOWS * self.initial_window;
        let cwnd = Some(self.observed_window).filter(|&window| window >= least)?;
        Some(SavedParameters {
            cwnd,
            rtt: self.min_rtt?,
            expires,
        })
    }

    /// Whether the saved parameters turned out to be wrong, so that they must not be used again.
    pub fn is_refuted(&self) -> bool {
        self.refuted
    }

    /// PipeSize, bytes: capacity that acknowledgements have validated since the jump.
    pub fn pipe_size(&self) -> u64 {
        self.jump.pipe_size
    }

    /// Window after a jump, bytes: `min(max_jump, saved_cwnd / 2)`.
    fn jump_window(&self, saved: &SavedParameters) -> u64 {
        self.parameters.max_jump.min(saved.cwnd / 2)
    }

    fn enter(&mut self, now: Nanos, phase: Phase, trigger: Trigger) {
        self.transitions.push(Transition {
            at: now,
            from: self.phase,
            to: phase,
            trigger,
            cwnd: self.inner.cwnd(),
            pipe_size: self.jump.pipe_size,
        });
        self.phase = phase;
    }

    /// Number of bytes that are no longer in flight.
    fn settled(&self, flightsize: u64) -> u64 {
        self.sent.saturating_sub(flightsize)
    }

    fn measure(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.latest_rtt.or(ack.rtt).filter(|&rtt| rtt > 0) {
            self.rtt = Some(rtt);
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
    }

    /// Observing: updates the number of bytes that the path delivers in its minimum RTT. A round in
    /// which the sender was rate-limited does not show the capacity. Neither does a round that ends
    /// with a window that is not fully used, as at the end of a transfer. Such rounds can therefore
    /// only raise the value.
    fn observe(&mut self, ack: &AckSample) {
        let (Some(delivery), Some(rtt)) = (ack.delivery, self.min_rtt) else {
            return;
        };
        if self.phase != Phase::Normal {
            return;
        }
        let window = (delivery.rate * time::seconds(rtt)) as u64;
        let limited = ack.flightsize_before + self.segment <= self.inner.cwnd();
        self.observed_window = match delivery.app_limited || limited {
            true => self.observed_window.max(window),
            false => window,
        };
    }

    /// Processes an acknowledgement in the Reconnaissance Phase; `window` is the window before the
    /// acknowledgement, bytes.
    fn reconnoitre(&mut self, ack: &AckSample, window: u64) {
        let Some(saved) = self.saved else { return };
        let initial = *self.initial_data.get_or_insert(self.sent);
        let all_acknowledged = self.settled(ack.flightsize_after) >= initial;
        let limited_by_window = ack.flightsize_before + self.segment > window;
        let Some(min_rtt) = self.min_rtt else { return };
        if !all_acknowledged || !limited_by_window {
            return;
        }
        if ack.now >= saved.expires {
            self.discard(ack.now, Trigger::Expired);
        } else if min_rtt <= saved.rtt / 2 || min_rtt > saved.rtt.saturating_mul(MAX_RTT_RATIO) {
            self.enter(ack.now, Phase::Normal, Trigger::RttNotValidated);
        } else if self.jump_window(&saved) <= self.inner.cwnd() {
            self.enter(ack.now, Phase::Normal, Trigger::NoLargerWindow);
        } else {
            self.jump = Jump {
                pipe_size: ack.flightsize_after,
                began: ack.now,
                window: self.jump_window(&saved),
                first: self.sent,
                last: 0,
            };
            self.inner.override_cwnd(self.jump.window as f64);
            let trigger = Trigger::CongestionWindowLimited;
            self.enter(ack.now, Phase::Unvalidated, trigger);
        }
    }

    /// Ends the use of the saved parameters, and marks them as not to be used again.
    fn discard(&mut self, now: Nanos, trigger: Trigger) {
        self.saved = None;
        self.refuted = true;
        self.enter(now, Phase::Normal, trigger);
    }

    /// Reason why the Unvalidated Phase ends now; `None` if it continues.
    fn unvalidated_ends(&self, now: Nanos, flightsize: u64, acknowledged: bool) -> Option<Trigger> {
        let over = |rtt: Nanos| now.saturating_sub(self.jump.began) > rtt;
        if acknowledged && self.settled(flightsize) > self.jump.first {
            Some(Trigger::FirstUnvalidatedPacketAcknowledged)
        } else if flightsize + self.segment > self.jump.window {
            Some(Trigger::LastUnvalidatedPacketSent)
        } else {
            self.rtt.is_some_and(over).then_some(Trigger::RttExceeded)
        }
    }

    /// Ends the Unvalidated Phase (Check flight_size).
    fn check_flight(&mut self, now: Nanos, flightsize: u64, trigger: Trigger) {
        if flightsize < self.initial_window || flightsize <= self.jump.pipe_size {
            let window = self.jump.pipe_size.max(self.initial_window);
            self.inner
                .override_cwnd(window.min(self.jump.window) as f64);
            self.enter(now, Phase::Normal, Trigger::RateLimited);
        } else {
            self.inner.override_cwnd(flightsize as f64);
            self.jump.last = self.sent;
            self.enter(now, Phase::Validating, trigger);
        }
    }

    /// Handles congestion: ends the use of Careful Resume, or retreats if unvalidated packets are
    /// in flight.
    fn congested(&mut self, now: Nanos, trigger: Trigger) {
        match self.phase {
            Phase::Reconnaissance => self.enter(now, Phase::Normal, trigger),
            Phase::Unvalidated | Phase::Validating => self.retreat(now, trigger),
            Phase::SafeRetreat => self.hold_window(),
            Phase::Normal => {}
        }
    }

    /// Enters the Safe Retreat Phase, after the inner controller has responded to the loss.
    fn retreat(&mut self, now: Nanos, trigger: Trigger) {
        if self.phase == Phase::Unvalidated {
            self.jump.last = self.sent;
        }
        self.saved = None;
        self.refuted = true;
        // The window is at most half of PipeSize, but at least the minimum window (RFC 9002 §7.2:
        // two segments).
        self.jump.window = (self.jump.pipe_size / 2).max(2 * self.segment);
        self.hold_window();
        self.enter(now, Phase::SafeRetreat, trigger);
    }

    /// In the Safe Retreat Phase, keeps the window at or below its value at entry.
    fn hold_window(&mut self) {
        match self.inner.cwnd() {
            window if window > self.jump.window => {
                self.inner.override_cwnd(self.jump.window as f64);
            }
            window => self.jump.window = window,
        }
    }

    fn on_ack_after_jump(&mut self, ack: &AckSample) {
        self.jump.pipe_size += ack.bytes_acked;
        let settled = self.settled(ack.flightsize_after);
        match self.phase {
            Phase::Unvalidated => {
                self.inner.override_cwnd(self.jump.window as f64);
                if self.path_changed() {
                    self.retreat(ack.now, Trigger::PathChanged);
                } else if let Some(trigger) =
                    self.unvalidated_ends(ack.now, ack.flightsize_after, true)
                {
                    self.check_flight(ack.now, ack.flightsize_after, trigger);
                }
            }
            Phase::Validating if settled >= self.jump.last => {
                let trigger = Trigger::LastUnvalidatedPacketAcknowledged;
                self.enter(ack.now, Phase::Normal, trigger);
            }
            Phase::SafeRetreat => {
                self.hold_window();
                if settled >= self.jump.last && !ack.in_recovery {
                    let most = self.parameters.beta * self.jump.pipe_size as f64;
                    if self.inner.ssthresh() as f64 > most {
                        self.inner.override_ssthresh(most);
                    }
                    self.enter(ack.now, Phase::Normal, Trigger::ExitRecovery);
                }
            }
            Phase::Validating | Phase::Normal | Phase::Reconnaissance => {}
        }
    }

    /// In the Unvalidated Phase, whether the minimum RTT shows that the path has changed.
    fn path_changed(&self) -> bool {
        match (self.min_rtt, &self.saved) {
            (Some(rtt), Some(saved)) => rtt <= saved.rtt / 2,
            _ => false,
        }
    }
}

impl CongestionControl for CarefulResume {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.sent += bytes;
        self.inner.on_sent(now, bytes, flightsize);
        if self.phase == Phase::Unvalidated
            && let Some(trigger) = self.unvalidated_ends(now, flightsize, false)
        {
            self.check_flight(now, flightsize, trigger);
        }
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.measure(ack);
        self.observe(ack);
        let window = self.inner.cwnd();
        self.inner.on_ack(ack);
        match self.phase {
            Phase::Normal => {}
            Phase::Reconnaissance => self.reconnoitre(ack, window),
            Phase::Unvalidated | Phase::Validating | Phase::SafeRetreat => {
                self.on_ack_after_jump(ack);
            }
        }
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        self.inner.on_ecn(now, flightsize);
        self.congested(now, Trigger::EcnCe);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        self.inner.on_loss(now, cause, flightsize);
        match cause {
            LossCause::FastRetransmit => self.congested(now, Trigger::PacketLoss),
            LossCause::Timeout => match self.phase {
                Phase::Normal => {}
                Phase::Reconnaissance => {
                    self.enter(now, Phase::Normal, Trigger::PersistentCongestion);
                }
                _ => self.discard(now, Trigger::PersistentCongestion),
            },
        }
    }

    fn on_undo(&mut self, cwnd: f64, ssthresh: u64) {
        self.inner.on_undo(cwnd, ssthresh);
        if self.phase == Phase::SafeRetreat {
            self.hold_window();
        }
    }

    fn on_heartbeat_lost(&mut self, now: Nanos) {
        self.inner.on_heartbeat_lost(now);
    }

    fn on_feedback(&mut self, now: Nanos, feedback: &Feedback) {
        self.inner.on_feedback(now, feedback);
    }

    fn on_idle(&mut self, now: Nanos, idle_for: Nanos, rto: Nanos) {
        if self.phase == Phase::Unvalidated {
            self.check_flight(now, 0, Trigger::RateLimited);
        }
        self.inner.on_idle(now, idle_for, rto);
    }

    fn on_mtu(&mut self, segment: u64) {
        self.segment = segment.max(1);
        self.inner.on_mtu(segment);
    }

    fn override_cwnd(&mut self, cwnd: f64) {
        self.inner.override_cwnd(cwnd);
    }

    fn careful_resume(&self) -> Option<&CarefulResume> {
        Some(self)
    }

    fn careful_resume_mut(&mut self) -> Option<&mut CarefulResume> {
        Some(self)
    }

    fn wants_latest_rtt(&self) -> bool {
        let resuming = matches!(self.phase, Phase::Reconnaissance | Phase::Unvalidated);
        resuming || self.inner.wants_latest_rtt()
    }

    /// In the Unvalidated Phase, the window after the jump divided by the current RTT, or the rate
    /// of an inner controller that paces faster (RFC 9959, Notes for BBR).
    fn pacing_rate(&self) -> Option<f64> {
        let inner = self.inner.pacing_rate();
        if self.phase != Phase::Unvalidated {
            return inner;
        }
        let probing = self.jump.window as f64 / time::seconds(self.rtt?);
        Some(inner.map_or(probing, |rate| rate.max(probing)))
    }

    rest_of_inner!();
}

#[cfg(test)]
mod tests;
