//! TCP's standard congestion control (RFC 5681): slow start, congestion avoidance and halving, with
//! options for the differences between implementations.
//!
//! The window is stored as a fractional number of segments. TCP's congestion avoidance adds `1 /
//! cwnd` segment per acknowledgement, and papers print these fractions (4, 4.25, 4.485, 4.708,
//! ...). A switch determines whether a sender may use a fraction of a segment. The sender detects
//! losses, and inflates the window during NewReno recovery (RFC 6582).

use anabranch_settings::spelled;
use anabranch_transport::Nanos;

use crate::algorithm::{Algorithm, Protocol, Requirement};
use crate::{AckSample, CongestionControl, LossCause, WindowControl};

/// Declaration of the algorithm `newreno`.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "newreno",
    about: "slow start, congestion avoidance and halving (RFC 5681)",
    only: Some(Protocol::Tcp),
    needs: Requirement::Nothing,
    properties: &[],
    make: &|base, _| base,
};

/// Rule for the growth of the window (RFC 5681 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Each acknowledgement of new data adds one segment in slow start, and `1 / cwnd` segment
    /// afterwards (equation 3).
    PerAck,
    /// Byte counting: slow start adds the acknowledged bytes, at most one segment (equation 2).
    /// Congestion avoidance adds a segment whenever `cwnd` bytes have been acknowledged.
    PerByte,
}
spelled!(Growth: Growth::PerAck = "per_ack", Growth::PerByte = "per_byte");

/// Quantity that is halved when a loss is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalvingBasis {
    /// Outstanding bytes, as in RFC 5681 §3.1 (equation 4).
    FlightSize,
    /// Window: the minimum of `cwnd` and the peer's window, whatever the number of outstanding
    /// bytes. The caller of [`CongestionControl::on_loss`] must then pass the peer's window in
    /// place of the flight size. BSD and ns-2 use this quantity.
    Window,
}
spelled!(HalvingBasis: HalvingBasis::FlightSize = "flightsize", HalvingBasis::Window = "window");

/// Options of [`TcpNewReno`]. Windows are in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpNewRenoConfig {
    /// Sender maximum segment size (SMSS), bytes; at least 1.
    pub segment: u64,
    /// Initial window (RFC 5681 §3.1, RFC 6928), at least 1.
    pub initial_window: f64,
    /// Initial slow-start threshold; infinity for "arbitrarily high".
    pub initial_ssthresh: f64,
    /// Window after an idle time of more than one retransmission timeout (RFC 5681 §4.1); `None`:
    /// the window does not change.
    pub restart_window: Option<f64>,
    /// Rule for the growth of the window.
    pub growth: Growth,
    /// Quantity that a loss halves.
    pub halving_basis: HalvingBasis,
    /// Whether windows are halved to whole segments, rounded down: 9 becomes 4.
    pub integer_halving: bool,
    /// Whether `cwnd` after a fast retransmit is at least `ssthresh`, and therefore at least two
    /// segments (RFC 5681 §3.2, RFC 6675 §5). If not set, it is half the window even if that is
    /// less.
    pub cwnd_floor: bool,
    /// Whether only whole segments of the window count, so that `cwnd()` is rounded down to a
    /// multiple of the segment.
    pub whole_segments: bool,
}

/// TCP's standard congestion control (RFC 5681), which Reno, NewReno and SACK share.
#[derive(Clone, Debug)]
pub struct TcpNewReno {
    config: TcpNewRenoConfig,
    /// Window, segments.
    window: f64,
    /// Slow-start threshold, segments; an integer or infinity if `integer_halving` or
    /// `whole_segments` is set.
    threshold: f64,
    partial_bytes_acked: u64,
}

/// Minimum of `ssthresh`, segments (RFC 5681 §3.1, equation 4).
const MIN_THRESHOLD: f64 = 2.0;
/// Loss window, segments (RFC 5681 §3.1).
const LOSS_WINDOW: f64 = 1.0;

impl TcpNewReno {
    /// Creates a controller for a new connection.
    pub fn new(config: TcpNewRenoConfig) -> Self {
        let window = config.initial_window.max(LOSS_WINDOW);
        Self {
            config,
            window,
            threshold: config.initial_ssthresh,
            partial_bytes_acked: 0,
        }
    }

    fn segment(&self) -> f64 {
        self.config.segment as f64
    }

    fn grow(&mut self, bytes_acked: u64) {
        match self.config.growth {
            Growth::PerAck if self.window < self.threshold => self.window += 1.0,
            Growth::PerAck => self.window += 1.0 / self.window,
            Growth::PerByte if self.window < self.threshold => {
                self.window += bytes_acked.min(self.config.segment) as f64 / self.segment();
            }
            Growth::PerByte => {
                self.partial_bytes_acked += bytes_acked;
                let cwnd = self.cwnd();
                if self.partial_bytes_acked >= cwnd {
                    self.partial_bytes_acked -= cwnd;
                    self.window += 1.0;
                }
            }
        }
    }

    /// Half of the quantity that a loss halves, segments.
    fn half(&self, flightsize: u64) -> f64 {
        let flight = flightsize as f64 / self.segment();
        let basis = match self.config.halving_basis {
            HalvingBasis::FlightSize => flight,
            HalvingBasis::Window => self.window.min(flight),
        };
        if self.config.integer_halving {
            (basis.floor() / 2.0).floor()
        } else {
            basis / 2.0
        }
    }
}

impl CongestionControl for TcpNewReno {
    fn on_ack(&mut self, ack: &AckSample) {
        if ack.cumulative_advanced && !ack.in_recovery {
            self.grow(ack.bytes_acked);
        }
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        let before = self.cwnd_exact();
        self.on_loss(now, LossCause::FastRetransmit, flightsize);
        self.cap_cwnd(before);
    }

    fn on_loss(&mut self, _now: Nanos, cause: LossCause, flightsize: u64) {
        let half = self.half(flightsize);
        let threshold = half.max(MIN_THRESHOLD);
        self.threshold = if self.config.whole_segments {
            threshold.floor()
        } else {
            threshold
        };
        self.partial_bytes_acked = 0;
        self.window = match cause {
            LossCause::Timeout => LOSS_WINDOW,
            LossCause::FastRetransmit if self.config.cwnd_floor => self.threshold,
            LossCause::FastRetransmit => half.max(LOSS_WINDOW),
        };
    }

    fn on_undo(&mut self, cwnd: f64, ssthresh: u64) {
        self.window = self.window.max(cwnd / self.segment());
        if ssthresh > self.ssthresh() {
            self.set_ssthresh(ssthresh as f64);
        }
    }

    fn on_idle(&mut self, _now: Nanos, idle_for: Nanos, rto: Nanos) {
        if let Some(restart) = self.config.restart_window
            && idle_for > rto
        {
            self.window = self.window.min(restart);
            self.partial_bytes_acked = 0;
        }
    }

    fn on_mtu(&mut self, segment: u64) {
        self.config.segment = segment.max(1);
    }

    fn override_cwnd(&mut self, cwnd: f64) {
        self.set_cwnd(cwnd);
    }

    fn override_ssthresh(&mut self, ssthresh: f64) {
        self.set_ssthresh(ssthresh);
    }

    fn cwnd(&self) -> u64 {
        if self.config.whole_segments {
            self.window as u64 * self.config.segment
        } else {
            self.cwnd_exact() as u64
        }
    }

    fn cwnd_exact(&self) -> f64 {
        self.window * self.segment()
    }

    fn ssthresh(&self) -> u64 {
        (self.threshold * self.segment()) as u64
    }

    fn partial_bytes_acked(&self) -> u64 {
        self.partial_bytes_acked
    }

    fn name(&self) -> &'static str {
        "newreno"
    }
}

impl WindowControl for TcpNewReno {
    fn unit(&self) -> u64 {
        self.config.segment
    }

    fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    fn least_ssthresh(&self) -> u64 {
        MIN_THRESHOLD as u64 * self.config.segment
    }

    fn set_cwnd(&mut self, cwnd: f64) {
        self.window = cwnd / self.segment();
    }

    fn set_ssthresh(&mut self, ssthresh: f64) {
        let threshold = ssthresh / self.segment();
        self.threshold = if self.config.whole_segments {
            threshold.floor()
        } else {
            threshold
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1448;

    fn config() -> TcpNewRenoConfig {
        TcpNewRenoConfig {
            segment: SEGMENT,
            initial_window: 2.0,
            initial_ssthresh: f64::INFINITY,
            restart_window: Some(1.0),
            growth: Growth::PerAck,
            halving_basis: HalvingBasis::Window,
            integer_halving: true,
            cwnd_floor: false,
            whole_segments: true,
        }
    }

    fn ack(bytes: u64, in_recovery: bool) -> AckSample {
        AckSample {
            now: 0,
            bytes_acked: bytes,
            segments_acked: bytes.div_ceil(SEGMENT) as u32,
            cumulative_advanced: bytes > 0,
            marked: false,
            bytes_marked: 0,
            flightsize_before: 10 * SEGMENT,
            flightsize_after: 9 * SEGMENT,
            in_recovery,
            rtt: None,
            latest_rtt: None,
            srtt: None,
            delivery: None,
            rate: None,
        }
    }

    fn segments(control: &TcpNewReno) -> f64 {
        control.cwnd_exact() / SEGMENT as f64
    }

    /// Section V-B of Alamgir, Atiquzzaman and Ivancic (2002): the window falls from 9 to 4, and
    /// then grows to 4.25, 4.485, 4.708, 4.921 and 5.124.
    #[test]
    fn the_papers_window_after_the_loss_of_segment_8() {
        let mut control = TcpNewReno::new(config());
        for _ in 0..7 {
            control.on_ack(&ack(SEGMENT, false));
        }
        assert_eq!(segments(&control), 9.0);
        control.on_loss(0, LossCause::FastRetransmit, 45 * SEGMENT);
        assert_eq!((segments(&control), control.ssthresh()), (4.0, 4 * SEGMENT));
        control.on_ack(&ack(8 * SEGMENT, true));
        assert_eq!(
            segments(&control),
            4.0,
            "no growth by the acknowledgement that ends recovery"
        );
        for printed in [4.25, 4.485, 4.708, 4.921, 5.124] {
            control.on_ack(&ack(SEGMENT, false));
            assert!(
                (segments(&control) - printed).abs() < 0.0005,
                "{} is not {printed}",
                segments(&control)
            );
            assert_eq!(
                control.cwnd(),
                printed as u64 * SEGMENT,
                "only whole segments may fly"
            );
        }
    }

    #[test]
    fn halving_of_the_window_knows_the_peers_window_and_fractions() {
        let mut control = TcpNewReno::new(TcpNewRenoConfig {
            initial_window: 9.0,
            integer_halving: false,
            ..config()
        });
        control.on_loss(0, LossCause::FastRetransmit, 7 * SEGMENT);
        assert_eq!((segments(&control), control.ssthresh()), (3.5, 3 * SEGMENT));
        let mut small = TcpNewReno::new(TcpNewRenoConfig {
            initial_window: 3.0,
            ..config()
        });
        small.on_loss(0, LossCause::FastRetransmit, 45 * SEGMENT);
        assert_eq!((segments(&small), small.ssthresh()), (1.0, 2 * SEGMENT));
    }

    #[test]
    fn rfc5681_halves_the_flight_and_never_below_two_segments() {
        let rfc = TcpNewRenoConfig {
            growth: Growth::PerByte,
            halving_basis: HalvingBasis::FlightSize,
            integer_halving: false,
            cwnd_floor: true,
            whole_segments: false,
            ..config()
        };
        let mut control = TcpNewReno::new(TcpNewRenoConfig {
            initial_window: 10.0,
            ..rfc
        });
        control.on_loss(0, LossCause::FastRetransmit, 7 * SEGMENT);
        assert_eq!((control.cwnd(), control.ssthresh()), (5068, 5068));
        control.on_loss(0, LossCause::FastRetransmit, SEGMENT);
        assert_eq!(
            (control.cwnd(), control.ssthresh()),
            (2 * SEGMENT, 2 * SEGMENT)
        );
        control.on_loss(0, LossCause::Timeout, 8 * SEGMENT);
        assert_eq!((control.cwnd(), control.ssthresh()), (SEGMENT, 4 * SEGMENT));
    }

    #[test]
    fn bytes_counted_grow_one_segment_a_window() {
        let mut control = TcpNewReno::new(TcpNewRenoConfig {
            growth: Growth::PerByte,
            initial_window: 4.0,
            initial_ssthresh: 4.0,
            ..config()
        });
        control.on_ack(&ack(2 * SEGMENT, false));
        assert_eq!(
            (segments(&control), control.partial_bytes_acked()),
            (4.0, 2 * SEGMENT)
        );
        control.on_ack(&ack(3 * SEGMENT, false));
        assert_eq!(
            (segments(&control), control.partial_bytes_acked()),
            (5.0, SEGMENT)
        );
        let mut starting = TcpNewReno::new(TcpNewRenoConfig {
            growth: Growth::PerByte,
            ..config()
        });
        starting.on_ack(&ack(2 * SEGMENT, false));
        assert_eq!(
            segments(&starting),
            3.0,
            "slow start: one segment for an acknowledgement of two"
        );
        starting.on_ack(&ack(SEGMENT / 2, false));
        assert_eq!(segments(&starting), 3.5);
    }

    #[test]
    fn an_idle_timeout_restarts_a_larger_window_only() {
        let mut control = TcpNewReno::new(TcpNewRenoConfig {
            initial_window: 8.0,
            restart_window: Some(3.0),
            ..config()
        });
        control.on_idle(0, 1_000, 1_000);
        assert_eq!(segments(&control), 8.0, "not longer than one timeout");
        control.on_idle(0, 1_001, 1_000);
        assert_eq!(segments(&control), 3.0);
        control.on_loss(0, LossCause::Timeout, 45 * SEGMENT);
        control.on_idle(0, 9_000, 1_000);
        assert_eq!(segments(&control), 1.0);
    }
}
