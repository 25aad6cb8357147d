//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00, July 2017; Cardwell et al., ACM
//! Queue 14(5), 2016). Window and pacing rate follow the maximum delivery rate of the last ten
//! round trips and the minimum round-trip time of the last ten seconds. Losses do not bound the
//! model.
//!
//! Use it for comparisons with published results that used this version; [`bbr`](crate::bbr) is
//! version 3. Names are those of the draft. The draft chooses the first phase of ProbeBW at random.
//! Here it is derived from the bytes delivered so far, so that a run can be repeated. ECN marks
//! have no effect, as in the draft.

use std::collections::VecDeque;

use anabranch_transport::{Nanos, time};

use crate::algorithm::{Algorithm, Property, Requirement};
use crate::rate_sample::{LostPacket, RateSample};
use crate::{AckSample, CongestionControl, LossCause, WindowControl};

/// Declaration of the algorithm `bbr1`.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "bbr1",
    about: "BBRv1: cwnd and pace by the largest delivery rate and the least round-trip time, whatever is lost (draft-cardwell-iccrg-bbr-congestion-control-00)",
    only: None,
    needs: Requirement::Nothing,
    properties: &[
        Property::PacesItself,
        Property::NeedsRateSamples,
        Property::OwnWindow,
        Property::AbsoluteScale,
    ],
    make: &|base, numbers| Box::new(Bbr1::new(base, numbers.get())),
};

/// BtlBwFilterLen, round trips.
const BTL_BW_FILTER_LEN: u64 = 10;
/// RTpropFilterLen, which is also the time between two ProbeRTT states, nanoseconds.
const RT_PROP_FILTER_LEN: Nanos = 10 * time::SECOND;
/// ProbeRTTDuration.
const PROBE_RTT_DURATION: Nanos = 200 * time::MILLISECOND;
/// BBRMinPipeCwnd, segments.
const MIN_PIPE_CWND: f64 = 4.0;
/// Growth of the bandwidth per round trip that shows that the pipe is not yet full.
const FULL_BW_GROWTH: f64 = 1.25;
/// Number of round trips without such growth after which the pipe counts as full.
const FULL_BW_COUNT: u32 = 3;
/// Number of phases in the gain cycle of ProbeBW: one with a gain above 1, one with a gain below 1,
/// and six with the gain 1.
const CYCLE_LEN: usize = 8;
/// Pacing rates in bytes per second: below the first the send quantum is one segment, and below the
/// second it is two.
const QUANTUM_RATES: [f64; 2] = [1.2e6 / 8.0, 24e6 / 8.0];
/// Maximum send quantum, bytes.
const MAX_QUANTUM: f64 = 65_536.0;
/// Assumed round-trip time before the first measurement, nanoseconds.
const NOMINAL_RTT: Nanos = time::MILLISECOND;

/// Gains of BBR version 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bbr1Parameters {
    /// BBRHighGain: pacing gain and cwnd gain of Startup; the pacing gain of Drain is its inverse.
    pub high_gain: f64,
    /// cwnd_gain of ProbeBW.
    pub cwnd_gain: f64,
    /// Pacing gain of the phase that probes for bandwidth. The gain of the next phase is below 1 by
    /// the same difference.
    pub probe_gain: f64,
}

impl Default for Bbr1Parameters {
    fn default() -> Self {
        Self::DRAFT
    }
}

impl Bbr1Parameters {
    /// The values of the draft.
    pub const DRAFT: Self = Self {
        // 2 / ln 2
        high_gain: 2.885_390_081_777_927,
        cwnd_gain: 2.0,
        probe_gain: 1.25,
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// State of ProbeRTT.
#[derive(Clone, Copy, Debug, Default)]
struct ProbeRtt {
    /// Time at which ProbeRTT may end, nanoseconds; `None` until the pipe is drained.
    done_at: Option<Nanos>,
    round_done: bool,
}

/// Filter of the bottleneck bandwidth: maximum delivery rate of the last round trips
/// (BBR.BtlBwFilter).
#[derive(Clone, Debug, Default)]
struct MaxFilter {
    /// Rates that are not below any later rate, each with the number of its round trip.
    samples: VecDeque<(u64, f64)>,
}

impl MaxFilter {
    fn update(&mut self, round: u64, rate: f64) {
        while self.samples.back().is_some_and(|last| last.1 <= rate) {
            self.samples.pop_back();
        }
        self.samples.push_back((round, rate));
        while self
            .samples
            .front()
            .is_some_and(|first| first.0 + BTL_BW_FILTER_LEN <= round)
        {
            self.samples.pop_front();
        }
    }

    fn get(&self) -> f64 {
        self.samples.front().map_or(0.0, |first| first.1)
    }
}

/// Controller of BBR version 1. The model determines the window; only the segment size and the
/// initial window are those of `Base`.
#[derive(Clone, Debug)]
pub struct Bbr1<Base> {
    base: Base,
    parameters: Bbr1Parameters,
    initial_cwnd: f64,
    cwnd: f64,
    prior_cwnd: f64,
    pacing_rate: f64,
    state: State,
    pacing_gain: f64,
    cwnd_gain: f64,
    btl_bw: MaxFilter,
    /// RTprop, and the time of its measurement, nanoseconds.
    rt_prop: Option<(Nanos, Nanos)>,
    rt_prop_expired: bool,
    next_round_delivered: u64,
    round_start: bool,
    round_count: u64,
    filled_pipe: bool,
    full_bw: f64,
    full_bw_count: u32,
    cycle_index: usize,
    cycle_stamp: Nanos,
    probe_rtt: ProbeRtt,
    /// Bytes sent, including retransmissions, and bytes delivered.
    sent: u64,
    delivered: u64,
    /// Bytes lost, and the value before the last acknowledgement.
    lost: u64,
    prior_lost: u64,
    /// Whether the pacing rate is computed from a measured round-trip time and no longer from the
    /// nominal one.
    has_seen_rtt: bool,
    /// Number of the round trip in which the current loss recovery began, if there is one.
    recovery: Option<u64>,
    app_limited: bool,
    idle_restart: bool,
}

impl<Base: WindowControl> Bbr1<Base> {
    /// Creates a controller for a new path (BBRInit).
    pub fn new(base: Base, parameters: Bbr1Parameters) -> Self {
        let initial_cwnd = base.cwnd_exact();
        Self {
            base,
            parameters,
            initial_cwnd,
            cwnd: initial_cwnd,
            prior_cwnd: 0.0,
            pacing_rate: parameters.high_gain * initial_cwnd / time::seconds(NOMINAL_RTT),
            state: State::Startup,
            pacing_gain: parameters.high_gain,
            cwnd_gain: parameters.high_gain,
            btl_bw: MaxFilter::default(),
            rt_prop: None,
            rt_prop_expired: false,
            next_round_delivered: 0,
            round_start: false,
            round_count: 0,
            filled_pipe: false,
            full_bw: 0.0,
            full_bw_count: 0,
            cycle_index: 0,
            cycle_stamp: 0,
            probe_rtt: ProbeRtt::default(),
            sent: 0,
            delivered: 0,
            lost: 0,
            prior_lost: 0,
            has_seen_rtt: false,
            recovery: None,
            app_limited: false,
            idle_restart: false,
        }
    }

    fn segment(&self) -> f64 {
        self.base.unit().max(1) as f64
    }

    fn min_pipe_cwnd(&self) -> f64 {
        MIN_PIPE_CWND * self.segment()
    }

    /// Bytes in flight (packets_in_flight). TCP's FlightSize cannot be used, because it includes
    /// data that was received out of order.
    fn in_flight(&self) -> f64 {
        let settled = self.delivered.saturating_add(self.lost);
        self.sent.saturating_sub(settled) as f64
    }

    /// BBRInitPacingRate, called when the first round-trip time is known.
    fn init_pacing_rate(&mut self, rtt: Option<Nanos>) {
        if let Some(rtt) = rtt.filter(|_| !self.has_seen_rtt) {
            self.has_seen_rtt = true;
            let nominal = self.initial_cwnd / time::seconds(rtt.max(1));
            self.pacing_rate = self.parameters.high_gain * nominal;
        }
    }

    /// BBRUpdateRound.
    fn update_round(&mut self, rs: &RateSample) {
        self.round_start = rs.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.next_round_delivered = self.delivered;
            self.round_count += 1;
        }
    }

    /// BBRUpdateBtlBw.
    fn update_btl_bw(&mut self, rs: &RateSample) {
        self.update_round(rs);
        if rs.rate > 0.0 && (rs.rate >= self.btl_bw.get() || !rs.app_limited) {
            self.btl_bw.update(self.round_count, rs.rate);
        }
    }

    /// BBRInflight.
    fn inflight(&self, gain: f64) -> f64 {
        let Some((rt_prop, _)) = self.rt_prop else {
            return self.initial_cwnd;
        };
        let estimated_bdp = self.btl_bw.get() * time::seconds(rt_prop);
        gain * estimated_bdp + 3.0 * self.send_quantum()
    }

    /// BBRSetSendQuantum.
    fn send_quantum(&self) -> f64 {
        match self.pacing_rate {
            rate if rate < QUANTUM_RATES[0] => self.segment(),
            rate if rate < QUANTUM_RATES[1] => 2.0 * self.segment(),
            rate => (rate * time::seconds(time::MILLISECOND)).min(MAX_QUANTUM),
        }
    }

    /// BBRCheckFullPipe.
    fn check_full_pipe(&mut self, rs: &RateSample) {
        if self.filled_pipe || !self.round_start || rs.app_limited {
            return;
        }
        let bw = self.btl_bw.get();
        if bw >= self.full_bw * FULL_BW_GROWTH {
            (self.full_bw, self.full_bw_count) = (bw, 0);
            return;
        }
        self.full_bw_count += 1;
        self.filled_pipe = self.full_bw_count >= FULL_BW_COUNT;
    }

    /// BBRCheckDrain.
    fn check_drain(&mut self, now: Nanos, inflight: f64) {
        if self.state == State::Startup && self.filled_pipe {
            self.state = State::Drain;
            self.pacing_gain = 1.0 / self.parameters.high_gain;
            self.cwnd_gain = self.parameters.high_gain;
        }
        if self.state == State::Drain && inflight <= self.inflight(1.0) {
            self.enter_probe_bw(now);
        }
    }

    /// BBREnterProbeBW: the cycle may begin in any phase except the draining one.
    fn enter_probe_bw(&mut self, now: Nanos) {
        self.state = State::ProbeBw;
        self.cwnd_gain = self.parameters.cwnd_gain;
        let drawn = (self.delivered / self.base.unit().max(1)) as usize % (CYCLE_LEN - 1);
        self.cycle_index = CYCLE_LEN - 1 - drawn;
        self.advance_cycle(now);
    }

    /// BBRAdvanceCyclePhase.
    fn advance_cycle(&mut self, now: Nanos) {
        self.cycle_stamp = now;
        self.cycle_index = (self.cycle_index + 1) % CYCLE_LEN;
        self.pacing_gain = match self.cycle_index {
            0 => self.parameters.probe_gain,
            1 => 2.0 - self.parameters.probe_gain,
            _ => 1.0,
        };
    }

    /// BBRIsNextCyclePhase.
    fn is_next_phase(&self, now: Nanos, prior_inflight: f64) -> bool {
        let rt_prop = self.rt_prop.map_or(0, |(rtt, _)| rtt);
        let full_length = now.saturating_sub(self.cycle_stamp) > rt_prop;
        if self.pacing_gain > 1.0 {
            let probed = prior_inflight >= self.inflight(self.pacing_gain);
            full_length && (self.lost > self.prior_lost || probed)
        } else if self.pacing_gain < 1.0 {
            full_length || prior_inflight <= self.inflight(1.0)
        } else {
            full_length
        }
    }

    /// BBRUpdateRTprop.
    fn update_rt_prop(&mut self, now: Nanos, rtt: Option<Nanos>) {
        let old = |at: Nanos| now > at.saturating_add(RT_PROP_FILTER_LEN);
        self.rt_prop_expired = self.rt_prop.is_some_and(|(_, at)| old(at));
        if let Some(rtt) = rtt
            && (self.rt_prop_expired || self.rt_prop.is_none_or(|(least, _)| rtt <= least))
        {
            self.rt_prop = Some((rtt, now));
        }
    }

    /// BBRCheckProbeRTT.
    fn check_probe_rtt(&mut self, now: Nanos, inflight: f64) {
        if self.state != State::ProbeRtt && self.rt_prop_expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            (self.pacing_gain, self.cwnd_gain) = (1.0, 1.0);
            self.save_cwnd();
            self.probe_rtt = ProbeRtt::default();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(now, inflight);
        }
        self.idle_restart = false;
    }

    /// BBRHandleProbeRTT.
    fn handle_probe_rtt(&mut self, now: Nanos, inflight: f64) {
        match self.probe_rtt.done_at {
            None if inflight <= self.min_pipe_cwnd() => {
                self.probe_rtt.done_at = Some(now + PROBE_RTT_DURATION);
                self.next_round_delivered = self.delivered;
            }
            None => {}
            Some(done_at) => {
                self.probe_rtt.round_done |= self.round_start;
                if self.probe_rtt.round_done && now > done_at {
                    self.rt_prop = self.rt_prop.map(|(rtt, _)| (rtt, now));
                    self.restore_cwnd();
                    self.exit_probe_rtt(now);
                }
            }
        }
    }

    /// BBRExitProbeRTT.
    fn exit_probe_rtt(&mut self, now: Nanos) {
        if self.filled_pipe {
            self.enter_probe_bw(now);
        } else {
            self.state = State::Startup;
            self.pacing_gain = self.parameters.high_gain;
            self.cwnd_gain = self.parameters.high_gain;
        }
    }

    /// BBRSetPacingRate.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.btl_bw.get();
        if rate > 0.0 && (self.filled_pipe || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// BBRSaveCwnd.
    fn save_cwnd(&mut self) {
        self.prior_cwnd = match self.recovery.is_none() && self.state != State::ProbeRtt {
            true => self.cwnd,
            false => self.prior_cwnd.max(self.cwnd),
        };
    }

    /// BBRRestoreCwnd.
    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// BBRSetCwnd, with BBRModulateCwndForRecovery.
    fn set_cwnd(&mut self, rs: &RateSample, inflight: f64) {
        let target = self.inflight(self.cwnd_gain);
        let acked = rs.newly_acked as f64;
        let lost = (self.lost - self.prior_lost) as f64;
        if lost > 0.0 && self.recovery.is_some() {
            self.cwnd = (self.cwnd - lost).max(self.segment());
        }
        if self.recovery == Some(self.round_count) {
            // In the first round trip of a recovery packets are conserved: as many are sent as are
            // acknowledged.
            self.cwnd = self.cwnd.max(inflight + acked);
        } else {
            if self.filled_pipe {
                self.cwnd = (self.cwnd + acked).min(target);
            } else if self.cwnd < target || (self.delivered as f64) < self.initial_cwnd {
                self.cwnd += acked;
            }
            self.cwnd = self.cwnd.max(self.min_pipe_cwnd());
        }
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.min_pipe_cwnd());
        }
    }

    /// Ends the recovery of this controller, and restores the window, when the sender has left its
    /// recovery.
    fn leave_recovery(&mut self, in_recovery: bool) {
        if self.recovery.is_some() && !in_recovery {
            self.recovery = None;
            self.restore_cwnd();
        }
    }
}

impl<Base: WindowControl> CongestionControl for Bbr1<Base> {
    /// BBRHandleRestartFromIdle.
    fn on_sent(&mut self, _now: Nanos, bytes: u64, flightsize: u64) {
        self.sent += bytes;
        if flightsize <= bytes {
            // Only this packet is in flight, so `sent` is corrected to agree with the other
            // counters.
            self.sent = self.delivered + self.lost + bytes;
        }
        if flightsize <= bytes && self.app_limited {
            self.idle_restart = true;
            if self.state == State::ProbeBw {
                self.set_pacing_rate(1.0);
            }
        }
        self.app_limited = false;
    }

    fn on_app_limited(&mut self, _now: Nanos) {
        self.app_limited = true;
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let Some(rs) = ack.rate else { return };
        let rtt = ack.latest_rtt.or(ack.rtt);
        self.init_pacing_rate(rtt);
        self.delivered = rs.total_delivered;
        let inflight = self.in_flight().min(ack.flightsize_after as f64);
        let newly_lost = (self.lost - self.prior_lost) as f64;
        let prior_inflight = inflight + rs.newly_acked as f64 + newly_lost;
        self.update_btl_bw(&rs);
        if self.state == State::ProbeBw && self.is_next_phase(ack.now, prior_inflight) {
            self.advance_cycle(ack.now);
        }
        self.check_full_pipe(&rs);
        self.check_drain(ack.now, inflight);
        self.update_rt_prop(ack.now, rtt);
        self.check_probe_rtt(ack.now, inflight);
        self.leave_recovery(ack.in_recovery);
        self.set_pacing_rate(self.pacing_gain);
        self.set_cwnd(&rs, inflight);
        self.prior_lost = self.lost;
    }

    fn on_ecn(&mut self, _now: Nanos, _flightsize: u64) {}

    fn on_loss(&mut self, _now: Nanos, cause: LossCause, _flightsize: u64) {
        // A new loss event ends the recovery from the previous event.
        if self.recovery.take().is_some() {
            self.restore_cwnd();
        }
        self.save_cwnd();
        self.recovery = Some(self.round_count);
        self.next_round_delivered = self.delivered;
        self.cwnd = match cause {
            LossCause::Timeout => self.segment(),
            LossCause::FastRetransmit => self.in_flight().max(self.segment()),
        };
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.lost += lost.size;
    }

    fn on_undo(&mut self, _cwnd: f64, _ssthresh: u64) {
        self.recovery = None;
        self.restore_cwnd();
    }

    fn on_mtu(&mut self, segment: u64) {
        self.base.on_mtu(segment);
    }

    /// Sets the window only in Startup, because the window is not derived from the model there.
    fn override_cwnd(&mut self, cwnd: f64) {
        if self.state == State::Startup {
            self.cwnd = cwnd.max(self.min_pipe_cwnd());
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
