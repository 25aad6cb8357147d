//! BBR's state machine: Startup, Drain, the bandwidth probing cycle, and ProbeRTT.

use anabranch_transport::{Nanos, time};

use super::{Bbr, BbrParameters, Sample, WindowControl};

/// Number of contiguous ranges of lost data in a round trip at which Startup ends
/// (BBRStartupFullLossCnt).
const STARTUP_RUNS: u32 = 6;
/// Number of rounds after which Drain ends at the latest.
const DRAIN_ROUNDS: u64 = 3;
/// Maximum number of round trips between two probes. With a smaller window it is the number of
/// segments in the window, because a Reno flow grows by one segment per round trip.
const MAX_RENO_ROUNDS: f64 = 63.0;
/// ProbeRTTDuration.
const PROBE_RTT_SPAN: Nanos = 200 * time::MILLISECOND;

/// BBR.state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Startup,
    Drain,
    ProbeDown,
    ProbeCruise,
    ProbeRefill,
    ProbeUp,
    ProbeRtt,
}

impl State {
    /// BBR.pacing_gain.
    pub(super) fn pacing_gain(self, parameters: &BbrParameters) -> f64 {
        match self {
            Self::Startup => parameters.startup_gain,
            Self::Drain => 0.5,
            Self::ProbeDown => 0.9,
            Self::ProbeCruise | Self::ProbeRefill | Self::ProbeRtt => 1.0,
            Self::ProbeUp => parameters.probe_gain,
        }
    }

    /// BBR.cwnd_gain.
    pub(super) fn cwnd_gain(self, parameters: &BbrParameters) -> f64 {
        match self {
            Self::ProbeUp => 2.25,
            Self::ProbeRtt => 0.5,
            _ => parameters.cwnd_gain,
        }
    }

    /// IsInAProbeBWState.
    pub(super) fn probes_bandwidth(self) -> bool {
        matches!(
            self,
            Self::ProbeDown | Self::ProbeCruise | Self::ProbeRefill | Self::ProbeUp
        )
    }
}

/// Phase of the acknowledgements of a probe (BBR.ack_phase).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Acks {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// State of the bandwidth probing cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cycle {
    acks: Acks,
    drain_round: u64,
    /// Start of the current phase, and time from then until the next probe, nanoseconds.
    stamp: Nanos,
    wait: Nanos,
    pub rounds_since_probe_up: u64,
    up_rounds: u32,
    up_acked: f64,
    up_acked_per_increase: f64,
    prev_probe_precautionary: bool,
    /// Whether a loss has ended the probe, so that the next acknowledgement enters DOWN.
    pub go_down: bool,
}

/// State of ProbeRTT.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    done_at: Option<Nanos>,
    round_done: bool,
}

/// Pseudo-random number below `range`, computed from `from` by splitmix64. Callers pass the number
/// of bytes delivered so far, so that a run can be repeated.
fn drawn(from: u64, range: u64) -> u64 {
    let mut mixed = from.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ (mixed >> 31)) % range
}

impl<Base: WindowControl> Bbr<Base> {
    /// CheckStartupDone.
    pub(super) fn check_startup_done(&mut self, sample: &Sample) {
        if self.state != State::Startup {
            return;
        }
        self.check_startup_loss(sample);
        if self.full_bw.reached {
            self.state = State::Drain;
            self.cycle.drain_round = self.round_count;
        }
    }

    /// CheckStartupHighLoss.
    fn check_startup_loss(&mut self, sample: &Sample) {
        let rs = &sample.rs;
        let a_round = self.short.loss_round_start && self.recovery.is_some();
        let high = self.parameters.too_high(rs.lost, rs.tx_in_flight);
        if a_round && high && self.short.runs >= STARTUP_RUNS {
            self.long.undo_state = Some(State::Startup);
            (self.full_bw.reached, self.full_bw.now) = (true, true);
            let bdp = self.bdp(self.max_bw.get(), 1.0);
            self.long.inflight = bdp.max(self.short.inflight_latest);
        }
        if self.short.loss_round_start {
            (self.short.loss_in_round, self.short.runs) = (false, 0);
        }
    }

    /// CheckDrainDone.
    pub(super) fn check_drain_done(&mut self, sample: &Sample) {
        let drained = sample.inflight <= self.with_budget(self.bdp(self.bw, 1.0));
        let late = self.round_count > self.cycle.drain_round + DRAIN_ROUNDS;
        if self.state == State::Drain && (drained || late) {
            self.start_down(sample.now);
        }
    }

    /// StartProbeBW_DOWN.
    fn start_down(&mut self, now: Nanos) {
        self.short.reset_signals();
        self.cycle.up_acked_per_increase = f64::INFINITY;
        self.cycle.go_down = false;
        // PickProbeWait.
        self.cycle.rounds_since_probe_up = drawn(self.delivered, 2);
        self.cycle.wait = 2 * time::SECOND + drawn(self.delivered ^ 1, time::SECOND);
        self.cycle.stamp = now;
        self.cycle.acks = Acks::ProbeStopping;
        self.start_round();
        self.state = State::ProbeDown;
    }

    /// StartProbeBW_REFILL.
    fn start_refill(&mut self) {
        self.short.reset_model();
        (self.cycle.up_rounds, self.cycle.up_acked) = (0, 0.0);
        self.cycle.prev_probe_precautionary = false;
        self.cycle.acks = Acks::Refilling;
        self.start_round();
        self.state = State::ProbeRefill;
    }

    /// StartProbeBW_UP.
    fn start_up(&mut self, sample: &Sample) {
        self.cycle.acks = Acks::ProbeStarting;
        self.start_round();
        self.full_bw.reset();
        self.full_bw.baseline = sample.rs.rate;
        self.state = State::ProbeUp;
        self.raise_slope();
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_cycle(&mut self, sample: &Sample) {
        if !self.full_bw.reached || self.adapt_long_term(sample) {
            return;
        }
        if self.cycle.go_down && self.state == State::ProbeUp {
            return self.start_down(sample.now);
        }
        if self.state == State::ProbeUp && self.is_time_to_go_down(sample) {
            self.long.prev_probe_too_high = false;
            return self.start_down(sample.now);
        }
        match self.state {
            State::ProbeDown | State::ProbeCruise if self.is_time_to_probe(sample) => {
                self.start_refill();
            }
            State::ProbeDown if self.is_time_to_cruise(sample) => {
                self.state = State::ProbeCruise;
            }
            // REFILL ends after one round.
            State::ProbeRefill if self.round_start => {
                self.long.probe_sample = true;
                self.start_up(sample);
            }
            _ => {}
        }
    }

    /// IsTimeToProbeBW.
    fn is_time_to_probe(&self, sample: &Sample) -> bool {
        let elapsed = sample.now > self.cycle.stamp.saturating_add(self.cycle.wait);
        let reno = (self.target_inflight() / self.segment()).min(MAX_RENO_ROUNDS);
        elapsed || self.cycle.rounds_since_probe_up as f64 >= reno
    }

    /// IsTimeToCruise.
    fn is_time_to_cruise(&self, sample: &Sample) -> bool {
        let estimated = self.with_budget(self.bdp(self.max_bw.get(), 1.0));
        sample.inflight <= self.inflight_with_headroom() && sample.inflight <= estimated
    }

    /// IsTimeToGoDown.
    fn is_time_to_go_down(&mut self, sample: &Sample) -> bool {
        if self.long.prev_probe_too_high && sample.inflight >= self.long.inflight {
            self.cycle.prev_probe_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && self.cwnd >= self.long.inflight {
            self.full_bw.reset(); // the bound limits the bandwidth
            self.full_bw.baseline = sample.rs.rate;
            return false;
        }
        self.full_bw.now
    }

    /// RaiseInflightLongtermSlope.
    fn raise_slope(&mut self) {
        let growth = f64::from(1_u32 << self.cycle.up_rounds);
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
        self.cycle.up_acked_per_increase = (self.cwnd / growth).max(self.segment());
    }

    /// ProbeInflightLongtermUpward.
    fn probe_upward(&mut self, sample: &Sample) {
        if !self.is_cwnd_limited() || self.cwnd < self.long.inflight {
            return;
        }
        self.cycle.up_acked += sample.rs.newly_acked as f64;
        if self.cycle.up_acked >= self.cycle.up_acked_per_increase {
            let steps = (self.cycle.up_acked / self.cycle.up_acked_per_increase).trunc();
            self.cycle.up_acked -= steps * self.cycle.up_acked_per_increase;
            self.long.inflight += steps * self.segment();
        }
        if self.round_start {
            self.raise_slope();
        }
    }

    /// AdaptLongTermModel. Returns whether the state has changed.
    fn adapt_long_term(&mut self, sample: &Sample) -> bool {
        if self.cycle.acks == Acks::ProbeStarting && self.round_start {
            self.cycle.acks = Acks::ProbeFeedback;
        }
        if self.cycle.acks == Acks::ProbeStopping && self.round_start {
            self.long.probe_sample = false;
            self.cycle.acks = Acks::Init;
            if self.state.probes_bandwidth() && !sample.rs.app_limited {
                self.max_bw.advance();
            }
            let careful = self.cycle.prev_probe_precautionary && !self.long.prev_probe_too_high;
            if self.state.probes_bandwidth() && careful {
                self.start_refill();
                return true;
            }
        }
        let rs = &sample.rs;
        if self.parameters.too_high(rs.lost, rs.tx_in_flight) || self.long.inflight == f64::INFINITY
        {
            return false;
        }
        self.long.inflight = self.long.inflight.max(rs.tx_in_flight as f64);
        if self.state == State::ProbeUp {
            self.probe_upward(sample);
        }
        false
    }

    /// ProbeRTTCwnd.
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        let gain = State::ProbeRtt.cwnd_gain(&self.parameters);
        self.bdp(self.bw, gain).max(self.least_window())
    }

    /// CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, sample: &Sample) {
        if self.state != State::ProbeRtt && self.min_rtt.expired && !self.idle_restart {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.probe_rtt = ProbeRtt::default();
            self.cycle.acks = Acks::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(sample);
        }
        if sample.rs.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// HandleProbeRTT.
    fn handle_probe_rtt(&mut self, sample: &Sample) {
        if self.probe_rtt.done_at.is_some() {
            self.probe_rtt.round_done |= self.round_start;
            if self.probe_rtt.round_done {
                self.check_probe_rtt_done(sample.now);
            }
        } else if sample.inflight <= self.probe_rtt_cwnd() {
            self.probe_rtt.done_at = Some(sample.now + PROBE_RTT_SPAN);
            self.start_round();
        }
    }

    /// CheckProbeRTTDone, and ExitProbeRTT.
    fn check_probe_rtt_done(&mut self, now: Nanos) {
        if self.probe_rtt.done_at.is_none_or(|at| now <= at) {
            return;
        }
        self.min_rtt.probed(now);
        self.restore_cwnd();
        self.short.reset_model();
        if self.full_bw.reached {
            self.start_down(now);
            self.state = State::ProbeCruise;
        } else {
            self.state = State::Startup;
        }
    }

    /// HandleRestartFromIdle.
    pub(super) fn restart_from_idle(&mut self, now: Nanos) {
        self.idle_restart = true;
        self.extra_acked.since = now;
        if self.state.probes_bandwidth() {
            self.set_pacing_rate(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }

    /// Resumes the probe, because the loss that ended it was spurious.
    pub(super) fn return_to_probing(&mut self) {
        match self.long.undo_state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw.reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::ProbeUp)
                if self.state != State::ProbeUp && self.state != State::ProbeRtt =>
            {
                self.start_refill();
            }
            _ => {}
        }
    }
}
