//! Meters: quantities over a time window of a run, accumulated during the run.

use super::aggregation::{Aggregation, Weighting};
use anabranch_scenario::quantity::{TimeSpan, Window};
use anabranch_transport::{Nanos, Probe, Sample};

use super::flow_stats::end_of;
use super::observer::{End, Observer};

/// Meter of one quantity over one window, for one metric.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Time window in which the quantity is measured.
    window: Window,
    /// Measured quantity.
    kind: MeterKind,
    /// Accumulated sum: payload bytes, segments, or values weighted by time or by samples. For
    /// `least` and `most`, the extreme value.
    pub sum: f64,
    /// Accumulated weight: segment bytes, nanoseconds, or number of samples. 0 if there was no
    /// input.
    pub weight: f64,
    /// Current value, and the time since which it is valid.
    standing: Option<(f64, Nanos)>,
    /// For [`MeterKind::Blocked`]: the current receive window of the peer, flight size and cwnd,
    /// bytes.
    windows: [f64; 3],
}

/// Quantity that a meter measures.
#[derive(Clone, Debug, PartialEq)]
pub enum MeterKind {
    /// Delivered payload (`sum`) and segment bytes (`weight`).
    Delivered,
    /// Data segments sent, including retransmissions.
    Segments {
        /// If set, only segments sent on this path count.
        path: Option<u16>,
    },
    /// Longest silence, that is, time without a delivery (`weight`, nanoseconds), and the end of
    /// the failure that caused it (`sum`, nanoseconds from the start of the window). The failure
    /// ends with the longest silence. A later silence extends the failure if it is at least half as
    /// long, and if it starts at most the length of the longest silence after the previous end of
    /// the failure. `sum` is infinite if the last of these silences did not end, and 0 if no
    /// silence was longer than those before the window.
    Silence,
    /// Mean relative error of the samples of a probe: |sample - truth| / truth.
    Error {
        /// Probe whose samples are compared.
        probe: Probe,
        /// If set, only samples of this path count.
        index: Option<u16>,
        /// True values in the unit of the probe, each with the time from which it is valid.
        truth: Vec<(Nanos, f64)>,
        /// Weight of a sample in the mean.
        weighting: Weighting,
    },
    /// A statistic of the samples of a probe.
    Probe {
        /// Probe that is measured.
        probe: Probe,
        /// If set, only samples of this path or stream count.
        index: Option<u16>,
        /// Statistic that is computed.
        take: Aggregation,
        /// Threshold of [`Aggregation::Below`], in the unit of the probe.
        threshold: f64,
    },
    /// Time for which the receive window limits the sender: the peer's window is below the
    /// threshold, and the flight size is below cwnd.
    Blocked {
        /// Threshold of the peer's window, bytes.
        threshold: f64,
    },
}

const SENT: [Probe; 2] = [Probe::Sent, Probe::Retransmitted];
const WINDOWS: [Probe; 3] = [Probe::PeerRwnd, Probe::FlightSize, Probe::Cwnd];

impl MeterKind {
    /// Mean of cwnd over time.
    pub const CWND_BY_TIME: Self = Self::cwnd(Aggregation::Mean);
    /// Mean of the samples of cwnd, all with the same weight.
    pub const CWND_BY_SAMPLES: Self = Self::cwnd(Aggregation::SampleMean);

    const fn cwnd(take: Aggregation) -> Self {
        Self::Probe {
            probe: Probe::Cwnd,
            index: None,
            take,
            threshold: 0.0,
        }
    }
}

impl Meter {
    /// Creates a meter without input.
    pub fn new(kind: MeterKind, window: Window) -> Self {
        Self {
            window,
            kind,
            sum: 0.0,
            weight: 0.0,
            standing: None,
            // With these values the sender does not count as blocked until all three are known.
            windows: [f64::INFINITY, f64::INFINITY, 0.0],
        }
    }

    /// Shifts the window, so that its times count from `start`.
    pub fn starting(mut self, start: Nanos) -> Self {
        self.window = Window(self.window.0.map(|at| TimeSpan(at.0.saturating_add(start))));
        self
    }

    /// Whether the meter measures only samples of this probe.
    fn is_of(&self, wanted: Probe) -> bool {
        matches!(self.kind, MeterKind::Probe { probe, .. } if probe == wanted)
    }

    /// Records a silence: no data was delivered from the last delivery, or the start of the window,
    /// until `at`. At `at` there was a delivery (`delivered`), or the run ended.
    fn silent_until(&mut self, at: Nanos, delivered: bool) {
        let [begin, end] = self.window.0.map(|span| span.0);
        // Silences up to the longest one before the window count as normal, because a small
        // congestion window, for example, causes a silence in each round trip.
        let (usual, last) = self.standing.unwrap_or((0.0, begin.min(at)));
        if at < begin {
            let silence = at.saturating_sub(last) as f64;
            self.standing = Some((silence.max(usual), at));
            return;
        }
        let since = last.max(begin);
        let silence = at.min(end).saturating_sub(since) as f64;
        // If data was delivered for longer than the longest silence, the earlier failure has ended.
        let follows = since.saturating_sub(begin) as f64 <= self.sum + self.weight;
        let counts = silence > self.weight || follows && silence >= self.weight / 2.0;
        self.weight = self.weight.max(silence);
        if counts && silence > usual {
            self.sum = if delivered && at < end {
                (at - begin) as f64
            } else {
                f64::INFINITY
            };
        }
        self.standing = Some((usual, at));
    }

    /// Length of the window, nanoseconds.
    pub fn length(&self) -> Nanos {
        self.window.length()
    }

    fn count(&mut self, at: Nanos, value: f64) {
        if self.window.contains(at) {
            self.sum += value;
            self.weight += 1.0;
        }
    }

    /// Adds the time since the previous sample, if both samples are in the window.
    fn gap(&mut self, at: Nanos) {
        if !self.window.contains(at) {
            return;
        }
        if let Some((_, before)) = self.standing.replace((0.0, at)) {
            self.sum += (at - before) as f64 / 1e9;
            self.weight += 1.0;
        }
    }

    fn stands(&mut self, at: Nanos, value: f64) {
        if let Some((before, since)) = self.standing.replace((value, at)) {
            self.stood(since, at, before);
        }
    }

    /// Adds a value that was valid from `from` to `to`, nanoseconds.
    fn stood(&mut self, from: Nanos, to: Nanos, value: f64) {
        let [begin, end] = self.window.0;
        let (from, to) = (from.max(begin.0), to.min(end.0));
        if from >= to {
            return;
        }
        if let MeterKind::Error { truth, .. } = &self.kind {
            let until = truth.iter().skip(1).map(|(from, _)| *from);
            let steps = truth.iter().zip(until.chain([Nanos::MAX]));
            // Time before the first step has no true value, so it counts neither as error nor as
            // weight.
            for (&(since, truth), until) in steps {
                let stood = to.min(until).saturating_sub(from.max(since)) as f64;
                self.sum += (value - truth).abs() / truth * stood;
                self.weight += stood;
            }
            return;
        }
        let span = (to - from) as f64;
        let first = self.weight == 0.0;
        self.weight += span;
        match &self.kind {
            MeterKind::Probe {
                take: Aggregation::Below,
                threshold,
                ..
            } => {
                self.sum += if value < *threshold { span } else { 0.0 };
            }
            MeterKind::Probe {
                take: Aggregation::Least,
                ..
            } => self.sum = if first { value } else { self.sum.min(value) },
            MeterKind::Probe {
                take: Aggregation::Most,
                ..
            } => self.sum = if first { value } else { self.sum.max(value) },
            _ => self.sum += value * span,
        }
    }
}

impl Observer for Meter {
    fn end(&self) -> End {
        match self.kind {
            MeterKind::Delivered | MeterKind::Silence => End::Receiver,
            _ => end_of(self.probes()),
        }
    }

    fn probes(&self) -> &[Probe] {
        match &self.kind {
            MeterKind::Delivered => &[],
            MeterKind::Silence => &[],
            MeterKind::Segments { .. } => &SENT,
            MeterKind::Probe { probe, .. } | MeterKind::Error { probe, .. } => {
                std::slice::from_ref(probe)
            }
            MeterKind::Blocked { .. } => &WINDOWS,
        }
    }

    fn sample(&mut self, sample: &Sample) {
        let of_path = |path: Option<u16>| path.is_none_or(|path| path == sample.index);
        match self.kind {
            MeterKind::Segments { path } if SENT.contains(&sample.probe) && of_path(path) => {
                self.count(sample.at, 1.0);
            }
            MeterKind::Error {
                probe,
                index,
                weighting: Weighting::Time,
                ..
            } if probe == sample.probe && of_path(index) => self.stands(sample.at, sample.value),
            MeterKind::Error {
                probe,
                index,
                ref truth,
                ..
            } if probe == sample.probe && of_path(index) => {
                let begun = truth.partition_point(|(from, _)| *from <= sample.at);
                if let Some((_, truth)) = begun.checked_sub(1).and_then(|last| truth.get(last)) {
                    let error = (sample.value - truth).abs() / truth;
                    self.count(sample.at, error);
                }
            }
            MeterKind::Probe {
                probe, index, take, ..
            } if probe == sample.probe && of_path(index) => match take {
                Aggregation::FirstTime if self.weight == 0.0 => {
                    self.count(sample.at, sample.at as f64 / 1e9);
                }
                Aggregation::FirstTime => {}
                Aggregation::MeanGap => self.gap(sample.at),
                Aggregation::SampleMean | Aggregation::Count | Aggregation::Sum => {
                    self.count(sample.at, sample.value)
                }
                Aggregation::Mean | Aggregation::Below | Aggregation::Least | Aggregation::Most => {
                    self.stands(sample.at, sample.value)
                }
            },
            MeterKind::Blocked { threshold } => {
                let Some(which) = WINDOWS.iter().position(|probe| *probe == sample.probe) else {
                    return;
                };
                self.windows[which] = sample.value;
                let [rwnd, flight, cwnd] = self.windows;
                let blocked = rwnd < threshold && flight < cwnd;
                self.stands(sample.at, f64::from(u8::from(blocked)));
            }
            _ => {}
        }
    }

    fn deliver(&mut self, at: Nanos, bytes: u64, headers: u64) {
        if self.kind == MeterKind::Delivered && self.window.contains(at) {
            self.sum += bytes as f64;
            self.weight += (bytes + headers) as f64;
        }
        if self.kind == MeterKind::Silence {
            self.silent_until(at, true);
        }
    }

    fn first_window(&mut self, sample: &Sample) {
        // Other statistics of cwnd ignore the initial window, because they start with the first
        // sample.
        if self.is_of(sample.probe) {
            self.sample(sample);
        }
    }

    fn close(&mut self, end: Nanos) {
        if self.kind == MeterKind::Silence {
            self.silent_until(end, false);
            return;
        }
        if let MeterKind::Probe {
            take: Aggregation::MeanGap,
            ..
        } = self.kind
        {
            return; // no sample ends the last gap
        }
        if let Some((value, since)) = self.standing.take() {
            self.stood(since, end, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    fn of(take: Aggregation) -> Meter {
        let kind = MeterKind::Probe {
            probe: Probe::PeerRwnd,
            index: None,
            take,
            threshold: 1500.0,
        };
        Meter::new(kind, Window([TimeSpan(SECOND), TimeSpan(5 * SECOND)]))
    }

    fn sample(second: Nanos, probe: Probe, value: f64) -> Sample {
        Sample {
            at: second * SECOND,
            probe,
            index: 0,
            value,
        }
    }

    /// A meter that has received 9000 at 0 s, 1000 at 2 s and 1500 at 3 s, until the end at 10 s;
    /// its window is 1 to 5 s.
    fn seen(take: Aggregation) -> Meter {
        let mut meter = of(take);
        for (second, value) in [(0, 9000.0), (2, 1000.0), (3, 1500.0)] {
            meter.sample(&sample(second, Probe::PeerRwnd, value));
        }
        meter.close(10 * SECOND);
        meter
    }

    #[test]
    fn values_count_by_the_time_they_stood_in_the_window() {
        for (take, expected) in [
            (Aggregation::Mean, (9000.0 + 1000.0 + 2.0 * 1500.0) / 4.0),
            (Aggregation::Below, 0.25),
        ] {
            let meter = seen(take);
            assert_eq!(meter.sum / meter.weight, expected, "{take:?}");
        }
        assert_eq!(
            (seen(Aggregation::Least).sum, seen(Aggregation::Most).sum),
            (1000.0, 9000.0)
        );
    }

    #[test]
    fn samples_count_alike_inside_the_window_only() {
        let meter = seen(Aggregation::SampleMean);
        assert_eq!((meter.sum, meter.weight), (2500.0, 2.0));
        assert_eq!(seen(Aggregation::Count).weight, 2.0);
    }

    #[test]
    fn a_gap_lies_between_two_samples_of_the_window() {
        let mut meter = of(Aggregation::MeanGap);
        for second in [0, 1, 2, 4, 9] {
            meter.sample(&sample(second, Probe::PeerRwnd, 0.0));
        }
        meter.close(10 * SECOND);
        assert_eq!((meter.sum, meter.weight), (3.0, 2.0), "1 to 2 and 2 to 4 s");
    }

    #[test]
    fn a_window_can_count_from_the_flows_start() {
        let mut meter = of(Aggregation::Count).starting(2 * SECOND);
        for second in [1, 2, 3, 6, 7] {
            meter.sample(&sample(second, Probe::PeerRwnd, 0.0));
        }
        assert_eq!(meter.weight, 2.0, "3 and 6 s lie from 1 to 5 s after 2 s");
    }

    #[test]
    fn the_last_long_silence_ends_with_the_delivery_that_breaks_it() {
        let window = || Window([TimeSpan(2 * SECOND), TimeSpan(20 * SECOND)]);
        let heard = |seconds: &[Nanos], end: Nanos| {
            let mut meter = Meter::new(MeterKind::Silence, window());
            for second in seconds {
                meter.deliver(second * SECOND, 1000, 16);
            }
            meter.close(end * SECOND);
            (meter.weight / 1e9, meter.sum / 1e9)
        };
        // The longest silence before the window was 1 s. In the window there are silences of 1, 5,
        // 1 and 2 s, the last one until the end.
        let ends = [1, 3, 4, 9, 10, 12, 14, 16, 18];
        assert_eq!(heard(&ends, 20), (5.0, 7.0));
        // The deliveries end silences of 1, 2, 2 and 2 s, as timeouts with a maximum of 2 s cause
        // them. The end of the last silence should count.
        assert_eq!(heard(&[3, 5, 7, 9], 9), (2.0, 7.0));
        // Two silences of 4 s end at 6 and 10 s. Data is then delivered every second for 5 s, which
        // is longer than 4 s. The following silence of 3 s should therefore count as another
        // failure.
        assert_eq!(heard(&[6, 10, 11, 12, 13, 14, 15, 18], 18), (4.0, 8.0));
        // There was also a silence of 1 s before the window, so silences of 1 s should count as
        // normal.
        assert_eq!(heard(&[0, 1, 2, 3, 4, 5], 5), (1.0, 0.0));
        // A delivery after the end of the window should not end the silence.
        assert_eq!(heard(&[3, 25], 30), (17.0, f64::INFINITY));
        assert_eq!(heard(&[], 30), (18.0, f64::INFINITY));
    }

    #[test]
    fn an_error_is_relative_to_the_truth_of_its_time() {
        let kind = MeterKind::Error {
            probe: Probe::RateEstimate,
            index: Some(0),
            truth: vec![(SECOND, 100.0), (3 * SECOND, 50.0)],
            weighting: Weighting::Samples,
        };
        let mut meter = Meter::new(kind, Window([TimeSpan(0), TimeSpan(10 * SECOND)]));
        // The samples are: one before the first true value, one equal to the true value of 100, one
        // 20 above it, and one 25 below the true value of 50.
        for (second, value) in [(0, 7.0), (1, 100.0), (2, 120.0), (3, 25.0)] {
            meter.sample(&sample(second, Probe::RateEstimate, value));
        }
        let elsewhere = Sample {
            index: 1,
            ..sample(4, Probe::RateEstimate, 999.0)
        };
        meter.sample(&elsewhere);
        assert_eq!(meter.weight, 3.0);
        assert!((meter.sum - 0.7).abs() < 1e-12, "{}", meter.sum);
    }

    #[test]
    fn an_error_by_time_counts_from_step_to_step() {
        let kind = MeterKind::Error {
            probe: Probe::RateEstimate,
            index: None,
            truth: vec![(0, 100.0), (4 * SECOND, 50.0)],
            weighting: Weighting::Time,
        };
        let mut meter = Meter::new(kind, Window([TimeSpan(0), TimeSpan(10 * SECOND)]));
        // The estimate is correct from 2 s on for 2 s, then twice the true value for 1 s, and then
        // correct again.
        for (second, value) in [(2, 100.0), (5, 50.0)] {
            meter.sample(&sample(second, Probe::RateEstimate, value));
        }
        meter.close(10 * SECOND);
        assert!((meter.sum / meter.weight - 1.0 / 8.0).abs() < 1e-12);
    }

    /// An estimate of twice the true value has an error of 1, no matter how long it was valid
    /// before the first true value.
    #[test]
    fn time_before_the_first_true_value_has_no_weight() {
        let kind = MeterKind::Error {
            probe: Probe::RateEstimate,
            index: None,
            truth: vec![(6 * SECOND, 50.0)],
            weighting: Weighting::Time,
        };
        let mut meter = Meter::new(kind, Window([TimeSpan(0), TimeSpan(10 * SECOND)]));
        meter.sample(&sample(2, Probe::RateEstimate, 100.0));
        meter.close(10 * SECOND);
        assert_eq!(meter.sum / meter.weight, 1.0);
    }

    #[test]
    fn the_first_time_is_that_of_the_first_sample_in_the_window() {
        let mut meter = of(Aggregation::FirstTime);
        for second in [0, 3, 4] {
            meter.sample(&sample(second, Probe::PeerRwnd, 9.0));
        }
        assert_eq!((meter.sum, meter.weight), (3.0, 1.0));
    }

    #[test]
    fn blocked_is_a_closed_window_with_space_in_cwnd() {
        let window = Window([TimeSpan(0), TimeSpan(10 * SECOND)]);
        let mut meter = Meter::new(MeterKind::Blocked { threshold: 1500.0 }, window);
        for (second, probe, value) in [
            (0, Probe::Cwnd, 4000.0),
            (1, Probe::PeerRwnd, 1000.0),
            (2, Probe::FlightSize, 3000.0), // blocked
            (5, Probe::FlightSize, 4000.0), // cwnd is full
            (6, Probe::Cwnd, 6000.0),       // blocked
            (7, Probe::PeerRwnd, 1500.0),   // open
        ] {
            meter.sample(&sample(second, probe, value));
        }
        meter.close(10 * SECOND);
        assert_eq!(meter.sum / meter.weight, 0.4);
    }
}
