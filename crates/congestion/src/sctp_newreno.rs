//! SCTP's standard congestion control (RFC 9260 §7.2): slow start, congestion avoidance by
//! `partial_bytes_acked`, and halving at a loss. The differences between the RFCs of 2000, 2007 and
//! 2022 and the module of ns-2.35 can be selected by parameters.

use anabranch_settings::spelled;
use anabranch_transport::Nanos;

use crate::algorithm::{Algorithm, Protocol, Requirement};
use crate::{AckSample, CongestionControl, LossCause, WindowControl};

/// Declaration of the algorithm `sctp`.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "sctp",
    about: "slow start and congestion avoidance by bytes acknowledged (RFC 9260 §7.2)",
    only: Some(Protocol::Sctp),
    needs: Requirement::Nothing,
    properties: &[],
    make: &|base, _| base,
};

/// Treatment of `partial_bytes_acked` when the counter has reached cwnd while the window was not
/// fully used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfilledCredit {
    /// The counter continues to grow, and increases the window as soon as the window is fully used
    /// again (RFC 2960 §7.2.2, RFC 4960 §7.2.2).
    Keep,
    /// The counter is limited to cwnd, so that it suffices for one increase (RFC 9260 §7.2.2).
    Cap,
    /// The counter is not increased by an acknowledgement that arrives while the window is not full
    /// (the module of ns-2.35).
    Discard,
}
spelled!(UnfilledCredit: UnfilledCredit::Keep = "keep", UnfilledCredit::Cap = "cap",
    UnfilledCredit::Discard = "discard");

/// Parameters of [`SctpNewReno`]. All sizes are in bytes as the sender's profile counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SctpParameters {
    /// Unit of every increase, and of the window after a timeout: the MTU or PMDCS of the RFCs,
    /// bytes.
    pub unit: u64,
    /// Initial cwnd, bytes (RFC 9260 §7.2.1).
    pub initial_cwnd: u64,
    /// Initial ssthresh, bytes; may be arbitrarily high.
    pub initial_ssthresh: u64,
    /// Minimum of ssthresh in units: 2 in RFC 2960 §7.2.3, and 4 since RFC 4960. It is also the
    /// minimum of the window after idle decay.
    pub floor_units: u64,
    /// Whether cwnd == ssthresh still counts as slow start (RFC 9260 §7.2.1; for TCP the
    /// implementation may choose).
    pub slow_start_at_ssthresh: bool,
    /// Maximum growth of cwnd per acknowledgement in slow start, in units: L of RFC 9260 §7.2.1, at
    /// least 1. After a timeout the limit is 1 until slow start has ended (RFC 3465 §2.3).
    pub abc_limit: u64,
    /// Whether cwnd grows only if at least cwnd bytes were in flight before the acknowledgement
    /// (RFC 9260 §7.2.1, §7.2.2).
    pub growth_needs_full_cwnd: bool,
    /// Whether cwnd grows only if the cumulative TSN advanced (RFC 9260 §7.2.1).
    pub growth_needs_cumulative_advance: bool,
    /// Treatment of `partial_bytes_acked` while the window is not full.
    pub pba_when_underused: UnfilledCredit,
    /// Whether a timeout at a window of at most one unit leaves ssthresh unchanged (the module of
    /// ns-2.35). According to the RFCs it is set again.
    pub repeated_timeout_keeps_ssthresh: bool,
    /// Idle decay changes only windows above this number of units. If such a window is below the
    /// minimum, idle decay raises it to the minimum (the module of ns-2.35, 2 units). `None`: idle
    /// decay changes only windows above the minimum.
    pub idle_decay_above_units: Option<u64>,
    /// Whether ssthresh is set to cwnd before idle decay first reduces the window (RFC 9260
    /// §7.2.1).
    pub idle_decay_sets_ssthresh: bool,
}

impl Default for SctpParameters {
    /// Parameters of RFC 9260 over IPv4 with an MTU of 1500: PMDCS is 1468.
    fn default() -> Self {
        Self {
            unit: 1468,
            initial_cwnd: 4404,
            initial_ssthresh: 1 << 30,
            floor_units: 4,
            slow_start_at_ssthresh: true,
            abc_limit: 1,
            growth_needs_full_cwnd: true,
            growth_needs_cumulative_advance: false,
            pba_when_underused: UnfilledCredit::Cap,
            repeated_timeout_keeps_ssthresh: false,
            idle_decay_above_units: None,
            idle_decay_sets_ssthresh: true,
        }
    }
}

/// Controller of RFC 9260 §7.2 for one path.
#[derive(Clone, Debug)]
pub struct SctpNewReno {
    parameters: SctpParameters,
    cwnd: u64,
    ssthresh: u64,
    partial_bytes_acked: u64,
    /// Whether idle decay has reduced the window since data was last sent.
    decayed: bool,
    /// Whether the last loss was detected by a timeout, and slow start has not ended since.
    timed_out: bool,
}

impl SctpNewReno {
    /// Creates a controller for a new path.
    pub fn new(parameters: SctpParameters) -> Self {
        Self {
            parameters,
            cwnd: parameters.initial_cwnd,
            ssthresh: parameters.initial_ssthresh,
            partial_bytes_acked: 0,
            decayed: false,
            timed_out: false,
        }
    }

    /// Sets ssthresh before idle decay first reduces the window, if this is enabled.
    fn before_decay(&mut self) {
        let first = !std::mem::replace(&mut self.decayed, true);
        if first && self.parameters.idle_decay_sets_ssthresh {
            self.ssthresh = self.cwnd;
        }
    }

    fn floor(&self) -> u64 {
        self.parameters.floor_units * self.parameters.unit
    }

    /// Maximum growth of cwnd per acknowledgement in slow start, bytes.
    fn most_growth(&self) -> u64 {
        let limit = if self.timed_out {
            1
        } else {
            self.parameters.abc_limit
        };
        limit * self.parameters.unit
    }

    fn avoid_congestion(&mut self, ack: &AckSample, full: bool) {
        self.timed_out = false;
        let discard = self.parameters.pba_when_underused == UnfilledCredit::Discard;
        if full || !discard {
            self.partial_bytes_acked += ack.bytes_acked;
        }
        if ack.in_recovery || self.partial_bytes_acked < self.cwnd {
            return;
        }
        if full {
            self.partial_bytes_acked -= self.cwnd;
            self.cwnd += self.parameters.unit;
        } else if self.parameters.pba_when_underused == UnfilledCredit::Cap {
            self.partial_bytes_acked = self.cwnd;
        }
    }
}

impl CongestionControl for SctpNewReno {
    fn on_sent(&mut self, _now: Nanos, _bytes: u64, _flightsize: u64) {
        self.decayed = false;
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let advanced = ack.cumulative_advanced || !self.parameters.growth_needs_cumulative_advance;
        if ack.bytes_acked > 0 && advanced {
            let full =
                ack.flightsize_before >= self.cwnd || !self.parameters.growth_needs_full_cwnd;
            if !self.in_slow_start() {
                self.avoid_congestion(ack, full);
            } else if full && !ack.in_recovery {
                self.cwnd += ack.bytes_acked.min(self.most_growth());
            }
        }
        if ack.flightsize_after == 0 {
            self.partial_bytes_acked = 0; // RFC 9260 §7.2.2: all data acknowledged
        }
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        let before = self.cwnd_exact();
        self.on_loss(now, LossCause::FastRetransmit, flightsize);
        self.cap_cwnd(before);
    }

    fn on_loss(&mut self, _now: Nanos, cause: LossCause, _flightsize: u64) {
        self.timed_out = cause == LossCause::Timeout;
        let repeated =
            self.cwnd <= self.parameters.unit && self.parameters.repeated_timeout_keeps_ssthresh;
        if cause == LossCause::Timeout && repeated {
            return;
        }
        self.ssthresh = (self.cwnd / 2).max(self.floor());
        self.cwnd = match cause {
            LossCause::FastRetransmit => self.ssthresh,
            LossCause::Timeout => self.parameters.unit,
        };
        self.partial_bytes_acked = 0;
    }

    fn on_undo(&mut self, cwnd: f64, ssthresh: u64) {
        self.timed_out = false;
        self.cwnd = self.cwnd.max(cwnd as u64);
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    fn on_idle(&mut self, _now: Nanos, idle_for: Nanos, rto: Nanos) {
        let floor = self.floor();
        // 64 halvings reduce any window to its minimum, so more iterations have no effect.
        for _ in 0..(idle_for / rto.max(1)).min(64) {
            match self.parameters.idle_decay_above_units {
                Some(units) if self.cwnd > units * self.parameters.unit => {
                    self.cwnd = (self.cwnd / 2).max(floor)
                }
                Some(_) => return,
                None if self.cwnd <= floor => return,
                None => {
                    self.before_decay();
                    self.cwnd = (self.cwnd / 2).max(floor);
                }
            }
        }
    }

    fn on_mtu(&mut self, segment: u64) {
        self.parameters.unit = segment;
    }

    fn override_cwnd(&mut self, cwnd: f64) {
        self.set_cwnd(cwnd);
    }

    fn override_ssthresh(&mut self, ssthresh: f64) {
        self.set_ssthresh(ssthresh);
    }

    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    fn partial_bytes_acked(&self) -> u64 {
        self.partial_bytes_acked
    }

    fn name(&self) -> &'static str {
        "sctp"
    }
}

impl WindowControl for SctpNewReno {
    fn unit(&self) -> u64 {
        self.parameters.unit
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
            || (self.cwnd == self.ssthresh && self.parameters.slow_start_at_ssthresh)
    }

    fn least_ssthresh(&self) -> u64 {
        self.floor()
    }

    fn set_cwnd(&mut self, cwnd: f64) {
        self.cwnd = cwnd as u64;
        // Algorithms that replace congestion avoidance call this function.
        self.timed_out &= self.in_slow_start();
    }

    fn set_ssthresh(&mut self, ssthresh: f64) {
        self.ssthresh = ssthresh as u64;
    }
}

#[cfg(test)]
mod tests;
