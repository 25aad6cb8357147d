//! Sampling methods, which compute rate samples from acknowledgements.

use std::collections::VecDeque;

use anabranch_transport::{Nanos, time};

use crate::AckSample;

/// Interval `T` of [`Sampling::Rate`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SamplingInterval {
    /// Constant interval, nanoseconds; at least 1.
    Fixed(Nanos),
    /// Multiple of the smoothed round-trip time. ISCC 2002 does not specify `T`; with one round
    /// trip, the bytes of one window are counted.
    RoundTrips(f64),
    /// `T_k = RTT (VE - RE) / VE`, but at least `least`, with `VE = flightsize / RTTmin`, and `RE`
    /// is the present estimate of the rate. The interval is longer with more congestion (ABSE; at
    /// least 50 ms). The bytes in flight are used in place of cwnd, because a small receive buffer
    /// may prevent full use of the window.
    Adaptive {
        /// Minimum interval, nanoseconds.
        least: Nanos,
    },
}

/// Method that computes a sample `s_k` at acknowledgement `k`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampling {
    /// Achieved rate (RE, ISCC 2002): `s_k = (sum of d_j with t_k - T < t_j <= t_k) / T`.
    Rate {
        /// Interval `T`.
        interval: SamplingInterval,
    },
    /// Rate at which packets leave the bottleneck (BE, Mobicom 2001): `s_k = d_k / (t_k -
    /// t_(k-1))`. Bytes acknowledged at an instant that already has a sample are added to the next
    /// sample.
    Bandwidth,
    /// Rate per round trip (Westwood+, CCR 2004): `s_k = (bytes acknowledged since the last sample)
    /// / (time since it)`, at least a round trip after the last sample.
    PerRoundTrip {
        /// Minimum time between samples, nanoseconds.
        least: Nanos,
    },
}

/// State of a [`Sampling`] method: the acknowledgements of at most one interval.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    sampling: Sampling,
    /// Acknowledgements in the interval, oldest first, and the sum of their bytes.
    recent: VecDeque<(Nanos, u64)>,
    sum: u64,
    /// Interval of the last sample, nanoseconds.
    interval: Nanos,
    rtt_min: Option<Nanos>,
    /// Start time and number of bytes of the current sample, for methods that measure between
    /// consecutive samples.
    since: Option<Nanos>,
    bytes: u64,
}

impl Sampler {
    pub(super) fn new(sampling: Sampling) -> Self {
        Self {
            sampling,
            recent: VecDeque::new(),
            sum: 0,
            interval: 0,
            rtt_min: None,
            since: None,
            bytes: 0,
        }
    }

    /// Sample at the acknowledgement `ack` in bytes per second, if there is one. `estimate` is the
    /// current output of the filter.
    pub(super) fn take(&mut self, ack: &AckSample, estimate: Option<f64>) -> Option<f64> {
        if let Some(rtt) = ack.rtt {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
        }
        match self.sampling {
            Sampling::Rate { interval } => {
                self.recent.push_back((ack.now, ack.bytes_acked));
                self.sum += ack.bytes_acked;
                self.interval = self.interval(interval, ack, estimate)?.max(1);
                Some(self.over_interval(ack.now))
            }
            Sampling::Bandwidth => {
                self.bytes += ack.bytes_acked;
                self.over_time_since(ack.now, 1)
            }
            Sampling::PerRoundTrip { least } => {
                self.bytes += ack.bytes_acked;
                self.over_time_since(ack.now, ack.srtt?.max(least))
            }
        }
    }

    fn interval(
        &self,
        interval: SamplingInterval,
        ack: &AckSample,
        estimate: Option<f64>,
    ) -> Option<Nanos> {
        Some(match interval {
            SamplingInterval::Fixed(interval) => interval,
            SamplingInterval::RoundTrips(count) => (ack.srtt? as f64 * count) as Nanos,
            SamplingInterval::Adaptive { least } => {
                let expected = ack.flightsize_before as f64 / time::seconds(self.rtt_min?.max(1));
                let excess = expected - estimate.unwrap_or(0.0);
                if excess > 0.0 {
                    ((ack.srtt? as f64 * (excess / expected)) as Nanos).max(least)
                } else {
                    least
                }
            }
        })
    }

    /// Number of bytes acknowledged in the interval that ends at `now`, divided by its length.
    fn over_interval(&mut self, now: Nanos) -> f64 {
        while let Some(&(at, bytes)) = self.recent.front() {
            if at.saturating_add(self.interval) > now {
                break;
            }
            self.sum -= bytes;
            self.recent.pop_front();
        }
        self.sum as f64 / time::seconds(self.interval)
    }

    /// Number of bytes acknowledged since the last sample, divided by the time since then. `None`
    /// if this time is shorter than `least`. The first acknowledgement only starts the measurement.
    fn over_time_since(&mut self, now: Nanos, least: Nanos) -> Option<f64> {
        let Some(since) = self.since else {
            self.since = Some(now);
            self.bytes = 0;
            return None;
        };
        let span = now.saturating_sub(since);
        if span < least {
            return None;
        }
        self.since = Some(now);
        Some(std::mem::take(&mut self.bytes) as f64 / time::seconds(span))
    }

    /// Sample at a time without an acknowledgement.
    pub(super) fn idle_sample(&mut self, at: Nanos) -> f64 {
        match self.sampling {
            Sampling::Rate { .. } if self.interval > 0 => self.over_interval(at),
            _ => 0.0,
        }
    }
}
