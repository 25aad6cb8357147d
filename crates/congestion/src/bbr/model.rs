//! BBR's model of the path: bandwidth, minimum round-trip time, ACK aggregation, and bounds on the
//! bytes in flight.

use anabranch_transport::{Nanos, time};

use super::phases::State;
use super::{Bbr, WindowControl};
use crate::rate_sample::{LostPacket, RateSample};

/// Factor of the short-term bounds after a round trip with a loss (Beta).
pub(super) const BETA: f64 = 0.7;
/// Fraction of the path that is left unused for other flows (Headroom).
const HEADROOM: f64 = 0.15;
/// MinRTTFilterLen.
const MIN_RTT_SPAN: Nanos = 10 * time::SECOND;
/// ProbeRTTInterval.
const PROBE_RTT_INTERVAL: Nanos = 5 * time::SECOND;
/// Half of ExtraAckedFilterLen, in rounds.
const EXTRA_ACKED_HALF: u64 = 5;
/// Growth of the bandwidth per round that shows that the path is not yet full.
const GROWTH: f64 = 1.25;
/// Number of rounds without such growth after which the path counts as full.
const FULL_ROUNDS: u32 = 3;

/// Maximum delivery rate of the previous and of the current probing cycle (BBR.max_bw).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    before: f64,
    current: f64,
}

impl MaxBandwidth {
    /// UpdateMaxBw.
    pub(super) fn update(&mut self, rs: &RateSample) {
        if rs.rate > 0.0 && (rs.rate >= self.get() || !rs.app_limited) {
            self.current = self.current.max(rs.rate);
        }
    }

    /// AdvanceMaxBwFilter.
    pub(super) fn advance(&mut self) {
        if self.current > 0.0 {
            self.before = std::mem::take(&mut self.current);
        }
    }

    pub(super) fn get(&self) -> f64 {
        self.before.max(self.current)
    }
}

/// Minimum round-trip time, and the time of its last measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    least: Option<(Nanos, Nanos)>,
    /// Minimum round-trip time of the last 5 s, and the time of its measurement.
    pub probe: Option<(Nanos, Nanos)>,
    pub expired: bool,
}

impl MinRtt {
    /// UpdateMinRTT, if a round-trip time was measured.
    pub(super) fn measure(&mut self, now: Nanos, rtt: Nanos) {
        let old = |at: Nanos| now > at.saturating_add(PROBE_RTT_INTERVAL);
        self.expired = self.probe.is_some_and(|(_, at)| old(at));
        if self.expired || self.probe.is_none_or(|(least, _)| rtt < least) {
            self.probe = Some((rtt, now));
        }
        let stale = |at: Nanos| now > at.saturating_add(MIN_RTT_SPAN);
        let probed = self.probe.unwrap_or((rtt, now));
        if self
            .least
            .is_none_or(|(least, at)| probed.0 < least || stale(at))
        {
            self.least = Some(probed);
        }
    }

    /// UpdateMinRTT, if none was measured.
    pub(super) fn expire(&mut self, now: Nanos) {
        let old = |at: Nanos| now > at.saturating_add(PROBE_RTT_INTERVAL);
        self.expired |= self.probe.is_some_and(|(_, at)| old(at));
    }

    pub(super) fn get(&self) -> Option<Nanos> {
        self.least.map(|(least, _)| least)
    }

    /// Records that the path was drained at `now`, so that the next probe is due after an interval.
    pub(super) fn probed(&mut self, now: Nanos) {
        self.expired = false;
        if let Some((_, at)) = &mut self.probe {
            *at = now;
        }
    }
}

/// Detection of a full path: the bandwidth no longer grows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullBandwidth {
    pub reached: bool,
    pub now: bool,
    pub baseline: f64,
    count: u32,
}

impl FullBandwidth {
    /// ResetFullBW.
    pub(super) fn reset(&mut self) {
        (self.baseline, self.count, self.now) = (0.0, 0, false);
    }

    /// CheckFullBWReached.
    pub(super) fn check(&mut self, rs: &RateSample, round_start: bool) {
        if self.now || !round_start || rs.app_limited {
            return;
        }
        if rs.rate >= self.baseline * GROWTH {
            self.reset();
            self.baseline = rs.rate;
            return;
        }
        self.count += 1;
        self.now = self.count >= FULL_ROUNDS;
        self.reached |= self.now;
    }
}

/// Maximum number of bytes acknowledged in a burst beyond the bandwidth (BBR.extra_acked).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExtraAcked {
    pub since: Nanos,
    delivered: f64,
    /// Maximum in the previous rounds and in the current rounds (up to [`EXTRA_ACKED_HALF`] rounds
    /// each), and the number of the first current round.
    before: f64,
    current: f64,
    round: u64,
}

impl ExtraAcked {
    /// UpdateACKAggregation.
    pub(super) fn update(
        &mut self,
        now: Nanos,
        rs: &RateSample,
        bw: f64,
        cwnd: f64,
        full: bool,
        round: u64,
    ) {
        let mut expected = bw * time::seconds(now.saturating_sub(self.since));
        if self.delivered <= expected {
            (self.delivered, self.since, expected) = (0.0, now, 0.0);
        }
        self.delivered += rs.newly_acked as f64;
        let extra = (self.delivered - expected).min(cwnd);
        let half = if full { EXTRA_ACKED_HALF } else { 1 };
        if round >= self.round + half {
            self.before = std::mem::take(&mut self.current);
            self.round = round;
        }
        self.current = self.current.max(extra);
    }

    pub(super) fn get(&self) -> f64 {
        self.before.max(self.current)
    }
}

/// Bounds that follow from losses since the last probe, and the bytes delivered in the current
/// round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortTerm {
    pub bw: f64,
    pub inflight: f64,
    bw_latest: f64,
    pub inflight_latest: f64,
    pub loss_in_round: bool,
    /// Number of contiguous ranges of lost data in the current round.
    pub runs: u32,
    pub loss_round_start: bool,
    loss_round_delivered: u64,
}

impl Default for ShortTerm {
    fn default() -> Self {
        Self {
            bw: f64::INFINITY,
            inflight: f64::INFINITY,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_in_round: false,
            runs: 0,
            loss_round_start: false,
            loss_round_delivered: 0,
        }
    }
}

impl ShortTerm {
    /// UpdateLatestDeliverySignals.
    pub(super) fn update_latest(&mut self, rs: &RateSample) {
        self.bw_latest = self.bw_latest.max(rs.rate);
        self.inflight_latest = self.inflight_latest.max(rs.delivered as f64);
        self.loss_round_start = rs.prior_delivered >= self.loss_round_delivered;
        if self.loss_round_start {
            self.loss_round_delivered = rs.total_delivered;
        }
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance_latest(&mut self, rs: &RateSample) {
        if self.loss_round_start {
            (self.bw_latest, self.inflight_latest) = (rs.rate, rs.delivered as f64);
        }
    }

    /// ResetCongestionSignals.
    pub(super) fn reset_signals(&mut self) {
        (self.loss_in_round, self.runs) = (false, 0);
        (self.bw_latest, self.inflight_latest) = (0.0, 0.0);
    }

    /// ResetShortTermModel.
    pub(super) fn reset_model(&mut self) {
        (self.bw, self.inflight) = (f64::INFINITY, f64::INFINITY);
    }

    /// InitLowerBounds and LossLowerBounds.
    fn lower(&mut self, max_bw: f64, cwnd: f64) {
        if self.bw == f64::INFINITY {
            self.bw = max_bw;
        }
        if self.inflight == f64::INFINITY {
            self.inflight = cwnd;
        }
        self.bw = self.bw_latest.max(BETA * self.bw);
        self.inflight = self.inflight_latest.max(BETA * self.inflight);
    }
}

/// Bound that probes have found, and the state that is restored after a spurious loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongTerm {
    pub inflight: f64,
    pub probe_sample: bool,
    pub prev_probe_too_high: bool,
    pub undo_state: Option<State>,
    undo: (f64, f64, f64),
}

impl Default for LongTerm {
    fn default() -> Self {
        Self {
            inflight: f64::INFINITY,
            probe_sample: false,
            prev_probe_too_high: false,
            undo_state: None,
            undo: (0.0, 0.0, 0.0),
        }
    }
}

/// InflightAtLoss: number of bytes in flight at which the losses exceeded the threshold.
fn inflight_at_loss(lost: &LostPacket, threshold: f64) -> f64 {
    let before = lost.tx_in_flight.saturating_sub(lost.size) as f64;
    let lost_before = lost.lost.saturating_sub(lost.size) as f64;
    before + (threshold * before - lost_before) / (1.0 - threshold)
}

impl<Base: WindowControl> Bbr<Base> {
    /// AdaptLowerBoundsFromCongestion, called once per round.
    pub(super) fn adapt_lower_bounds(&mut self) {
        if !self.short.loss_round_start {
            return;
        }
        let probing = matches!(
            self.state,
            State::Startup | State::ProbeRefill | State::ProbeUp
        );
        if !probing && self.short.loss_in_round {
            self.short.lower(self.max_bw.get(), self.cwnd);
        }
        if !probing || !self.short.loss_in_round {
            self.short.runs = 0;
        }
        self.short.loss_in_round &= self.state == State::Startup;
    }

    /// NoteLoss.
    pub(super) fn note_loss(&mut self, total_delivered: u64) {
        if !self.short.loss_in_round {
            self.short.loss_round_delivered = total_delivered;
            self.save_cwnd();
            self.save_model();
        }
        self.short.loss_in_round = true;
    }

    /// HandleLostPacket.
    pub(super) fn handle_lost(&mut self, lost: &LostPacket) {
        self.note_loss(lost.total_delivered);
        self.short.runs += u32::from(!lost.adjacent);
        let too_high = self.parameters.too_high(lost.lost, lost.tx_in_flight);
        if self.long.probe_sample && too_high {
            let at_loss = inflight_at_loss(lost, self.parameters.loss_threshold);
            self.handle_too_high(at_loss, lost.app_limited);
        }
    }

    /// HandleInflightTooHigh.
    fn handle_too_high(&mut self, at_loss: f64, app_limited: bool) {
        self.long.prev_probe_too_high = true;
        self.long.probe_sample = false;
        if !app_limited {
            self.long.inflight = at_loss.max(self.target_inflight() * BETA);
        }
        if self.state == State::ProbeUp {
            self.long.undo_state = Some(State::ProbeUp);
            self.cycle.go_down = true;
        }
    }

    /// TargetInflight.
    pub(super) fn target_inflight(&self) -> f64 {
        self.bdp(self.bw, 1.0).min(self.cwnd)
    }

    /// InflightWithHeadroom.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        if self.long.inflight == f64::INFINITY {
            return f64::INFINITY;
        }
        let headroom = (HEADROOM * self.long.inflight).max(self.segment());
        (self.long.inflight - headroom).max(self.least_window())
    }

    /// SaveStateUponLoss.
    pub(super) fn save_model(&mut self) {
        self.long.undo_state = None;
        self.long.undo = (self.short.bw, self.short.inflight, self.long.inflight);
    }

    /// HandleSpuriousLossDetection.
    pub(super) fn restore_model(&mut self) {
        self.short.loss_in_round = false;
        self.full_bw.reset();
        let (bw, short, long) = self.long.undo;
        self.short.bw = self.short.bw.max(bw);
        self.short.inflight = self.short.inflight.max(short);
        self.long.inflight = self.long.inflight.max(long);
        self.return_to_probing();
    }
}
