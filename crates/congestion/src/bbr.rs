//! BBR version 3 (draft-ietf-ccwg-bbr-06, July 2026): window and pacing rate follow a model of the
//! path, that is, its bandwidth and its minimum round-trip time, and not only losses.
//!
//! Names are those of the draft. The algorithm needs selective acknowledgements, and a rate sample
//! with each acknowledgement. The draft chooses the time of the next probe at random. Here it is
//! derived from the bytes delivered so far, so that a run can be repeated. The offload budget is
//! one send quantum, as for a sender without segmentation offload. The draft does not specify a
//! response to ECN marks. Here a mark bounds the model like a loss in the same round trip.
//!
//! `phases` contains the state machine, `model` the model of the path.

mod model;
mod phases;

use anabranch_transport::{Nanos, time};

use crate::algorithm::{Algorithm, Property, Requirement};
use crate::rate_sample::{LostPacket, RateSample};
use crate::{AckSample, CongestionControl, LossCause, WindowControl};
use model::{ExtraAcked, FullBandwidth, LongTerm, MaxBandwidth, MinRtt, ShortTerm};
use phases::{Cycle, ProbeRtt, State};

/// Declaration of the algorithm `bbr`.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "bbr",
    about: "BBRv3: cwnd and pace by a model of bandwidth and least round-trip time (draft-ietf-ccwg-bbr-06)",
    only: None,
    needs: Requirement::Nothing,
    properties: &[
        Property::PacesItself,
        Property::NeedsRateSamples,
        Property::OwnWindow,
        Property::AbsoluteScale,
    ],
    make: &|base, numbers| Box::new(Bbr::new(base, numbers.get())),
};

/// Fraction of the estimated bandwidth that the pacing rate leaves unused (PacingMarginPercent).
const PACING_MARGIN: f64 = 0.01;
/// Maximum send quantum, bytes.
const MAX_QUANTUM: f64 = 65_536.0;
/// Assumed round-trip time before the first measurement, nanoseconds.
const NOMINAL_RTT: Nanos = time::MILLISECOND;
/// MinPipeCwnd, segments.
const MIN_WINDOW: f64 = 4.0;

/// Gains of BBR version 3, and the loss rate that it tolerates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BbrParameters {
    /// StartupPacingGain.
    pub startup_gain: f64,
    /// DefaultCwndGain: the cwnd gain of all states except ProbeBW_UP and ProbeRTT.
    pub cwnd_gain: f64,
    /// Pacing gain of ProbeBW_UP.
    pub probe_gain: f64,
    /// LossThresh: tolerated loss rate while probing, as a fraction of the bytes in flight (0 to
    /// 1).
    pub loss_threshold: f64,
}

impl Default for BbrParameters {
    fn default() -> Self {
        Self::DRAFT
    }
}

impl BbrParameters {
    /// The values of the draft.
    pub const DRAFT: Self = Self {
        startup_gain: 2.77,
        cwnd_gain: 2.0,
        probe_gain: 1.25,
        loss_threshold: 0.02,
    };

    /// IsInflightTooHigh.
    fn too_high(&self, lost: u64, tx_in_flight: u64) -> bool {
        lost as f64 > tx_in_flight as f64 * self.loss_threshold
    }
}

/// Rate sample (RS) of the current acknowledgement, and the state of the flow (C).
#[derive(Clone, Copy, Debug)]
struct Sample {
    now: Nanos,
    rs: RateSample,
    /// Bytes in flight after the acknowledgement.
    inflight: f64,
}

/// Controller of BBR version 3. The model determines the window; only the segment size and the
/// initial window are those of `Base`.
#[derive(Clone, Debug)]
pub struct Bbr<Base> {
    base: Base,
    parameters: BbrParameters,
    initial_cwnd: f64,
    cwnd: f64,
    prior_cwnd: f64,
    pacing_rate: f64,
    state: State,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    max_bw: MaxBandwidth,
    min_rtt: MinRtt,
    full_bw: FullBandwidth,
    extra_acked: ExtraAcked,
    short: ShortTerm,
    long: LongTerm,
    /// Bandwidth that the flow should use (BBR.bw), bytes per second.
    bw: f64,
    /// State of packet-timed round trips.
    next_round_delivered: u64,
    round_start: bool,
    round_count: u64,
    delivered: u64,
    /// Whether the window was fully used in the current round, and in the previous one.
    cwnd_limited: [bool; 2],
    /// Number of the round in which the current loss recovery began, if there is one.
    recovery: Option<u64>,
    app_limited: bool,
    idle_restart: bool,
}

impl<Base: WindowControl> Bbr<Base> {
    /// Creates a controller for a new path.
    pub fn new(base: Base, parameters: BbrParameters) -> Self {
        let initial_cwnd = base.cwnd_exact();
        let state = State::Startup;
        Self {
            base,
            parameters,
            initial_cwnd,
            cwnd: initial_cwnd,
            prior_cwnd: 0.0,
            pacing_rate: state.pacing_gain(&parameters) * initial_cwnd / time::seconds(NOMINAL_RTT),
            state,
            cycle: Cycle::default(),
            probe_rtt: ProbeRtt::default(),
            max_bw: MaxBandwidth::default(),
            min_rtt: MinRtt::default(),
            full_bw: FullBandwidth::default(),
            extra_acked: ExtraAcked::default(),
            short: ShortTerm::default(),
            long: LongTerm::default(),
            bw: 0.0,
            next_round_delivered: 0,
            round_start: false,
            round_count: 0,
            delivered: 0,
            cwnd_limited: [false; 2],
            recovery: None,
            app_limited: false,
            idle_restart: false,
        }
    }

    /// SMSS, in bytes as the sender counts them.
    fn segment(&self) -> f64 {
        self.base.unit().max(1) as f64
    }

    fn least_window(&self) -> f64 {
        MIN_WINDOW * self.segment()
    }

    /// C.is_cwnd_limited.
    fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited[0] || self.cwnd_limited[1]
    }

    /// StartRound.
    fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }

    /// UpdateRound.
    fn update_round(&mut self, rs: &RateSample) {
        self.round_start = rs.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.start_round();
            self.round_count += 1;
            self.cycle.rounds_since_probe_up += 1;
            self.cwnd_limited = [false, self.cwnd_limited[0]];
        }
    }

    /// UpdateModelAndState.
    fn update_model(&mut self, sample: &Sample) {
        self.update_round(&sample.rs);
        self.short.update_latest(&sample.rs);
        self.max_bw.update(&sample.rs);
        self.adapt_lower_bounds();
        let (bw, cwnd) = (self.bw, self.cwnd);
        let reached = self.full_bw.reached;
        self.extra_acked
            .update(sample.now, &sample.rs, bw, cwnd, reached, self.round_count);
        self.full_bw.check(&sample.rs, self.round_start);
        self.check_startup_done(sample);
        self.check_drain_done(sample);
        self.update_cycle(sample);
        self.min_rtt.expire(sample.now);
        self.check_probe_rtt(sample);
        self.short.advance_latest(&sample.rs);
        self.bw = self.max_bw.get().min(self.short.bw);
    }

    /// BDPMultiple: `gain` times the bandwidth-delay product at the bandwidth `bw`, bytes.
    fn bdp(&self, bw: f64, gain: f64) -> f64 {
        match self.min_rtt.get() {
            Some(least) => gain * bw * time::seconds(least),
            None => self.initial_cwnd,
        }
    }

    /// QuantizationBudget.
    fn with_budget(&self, cap: f64) -> f64 {
        let cap = cap.max(self.quantum()).max(self.least_window());
        match self.state {
            State::ProbeUp => cap + 2.0 * self.segment(),
            _ => cap,
        }
    }

    /// SetSendQuantum.
    fn quantum(&self) -> f64 {
        let quantum = self.pacing_rate * time::seconds(time::MILLISECOND);
        quantum.min(MAX_QUANTUM).max(2.0 * self.segment())
    }

    /// SetPacingRateWithGain.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bw * (1.0 - PACING_MARGIN);
        if rate > 0.0 && (self.full_bw.reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// SetCwnd.
    fn set_cwnd(&mut self, rs: &RateSample) {
        let cap =
            self.bdp(self.bw, self.state.cwnd_gain(&self.parameters)) + self.extra_acked.get();
        let most = self.with_budget(cap);
        let grown = self.cwnd + rs.newly_acked as f64;
        if self.full_bw.reached {
            self.cwnd = grown.min(most);
        } else if self.cwnd < most || (self.delivered as f64) < self.initial_cwnd {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(self.least_window());
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd();
    }

    /// BoundCwndForModel.
    fn bound_cwnd(&mut self) {
        let cap = match self.state {
            State::ProbeDown | State::ProbeRefill | State::ProbeUp => self.long.inflight,
            State::ProbeRtt | State::ProbeCruise => self.inflight_with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        let cap = cap.min(self.short.inflight).max(self.least_window());
        self.cwnd = self.cwnd.min(cap);
    }

    /// SaveCwnd.
    fn save_cwnd(&mut self) {
        if self.recovery.is_none() && self.state != State::ProbeRtt {
            self.prior_cwnd = self.cwnd;
        } else {
            self.prior_cwnd = self.prior_cwnd.max(self.cwnd);
        }
    }

    /// RestoreCwnd.
    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// Ends the recovery when the sender has been out of recovery for one round trip.
    fn leave_recovery(&mut self, in_recovery: bool) {
        match self.recovery {
            Some(_) if in_recovery => self.recovery = Some(self.round_count),
            Some(round) if self.round_count > round => {
                self.recovery = None;
                self.restore_cwnd();
            }
            _ => {}
        }
    }
}

impl<Base: WindowControl> CongestionControl for Bbr<Base> {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        if flightsize <= bytes && self.app_limited {
            self.restart_from_idle(now);
        }
        self.cwnd_limited[0] |= flightsize as f64 + self.segment() > self.cwnd;
        self.app_limited = false;
    }

    fn on_app_limited(&mut self, _now: Nanos) {
        self.app_limited = true;
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let Some(rs) = ack.rate else { return };
        self.delivered = rs.total_delivered;
        let sample = Sample {
            now: ack.now,
            rs,
            inflight: ack.flightsize_after as f64,
        };
        if let Some(rtt) = ack.latest_rtt.or(ack.rtt) {
            self.min_rtt.measure(ack.now, rtt);
        }
        self.update_model(&sample);
        self.leave_recovery(ack.in_recovery);
        self.set_pacing_rate(self.state.pacing_gain(&self.parameters));
        self.set_cwnd(&rs);
    }

    fn on_ecn(&mut self, _now: Nanos, _flightsize: u64) {
        self.note_loss(self.delivered);
    }

    fn on_loss(&mut self, _now: Nanos, cause: LossCause, _flightsize: u64) {
        self.save_cwnd();
        self.save_model();
        self.recovery = Some(self.round_count);
        if cause == LossCause::Timeout {
            self.cwnd = self.segment();
        }
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.handle_lost(lost);
    }

    fn on_undo(&mut self, _cwnd: f64, _ssthresh: u64) {
        self.recovery = None;
        self.restore_cwnd();
        self.restore_model();
    }

    fn on_mtu(&mut self, segment: u64) {
        self.base.on_mtu(segment);
    }

    /// Sets the window only in Startup, because the window is not derived from the model there. In
    /// all other states the model determines the window.
    fn override_cwnd(&mut self, cwnd: f64) {
        if self.state == State::Startup {
            self.cwnd = cwnd.max(self.least_window());
        }
    }

    fn wants_latest_rtt(&self) -> bool {
        true
    }

    fn wants_rate_samples(&self) -> bool {
        true
    }

    fn limits_itself(&self) -> bool {
        self.state == State::ProbeRtt
    }

    fn cwnd(&self) -> u64 {
        self.cwnd as u64
    }

    fn cwnd_exact(&self) -> f64 {
        self.cwnd
    }

    fn ssthresh(&self) -> u64 {
        u64::MAX
    }

    fn pacing_rate(&self) -> Option<f64> {
        Some(self.pacing_rate)
    }

    fn name(&self) -> &'static str {
        ALGORITHM.name
    }
}

#[cfg(test)]
mod tests;
