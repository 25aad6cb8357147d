//! Incremental downsampling for line charts. Each time bucket contributes its first, smallest,
//! largest and last sample, so that the picture does not change.

use anabranch_scenario::records::SeriesSample;

/// Number of buckets in the displayed time window: about one per two pixels.
const BUCKETS: f64 = 400.0;

/// Maximum number of marks per bucket, for samples that are drawn as marks.
const MAX_MARKS: usize = 3;

/// Drawing style of a probe's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawStyle {
    /// A line between consecutive samples.
    Line,
    /// A mark for each sample.
    Marks,
}

/// Downsampler of the samples of one line.
#[derive(Debug)]
pub struct Downsampler {
    drawn: DrawStyle,
    from: f64,
    to: f64,
    /// Index of the current bucket.
    bucket: f64,
    open: Vec<(f64, f64)>,
    /// Value of the last sample before the window, with which a line starts.
    before: Option<f64>,
    ready: Vec<(f64, f64)>,
}

impl Downsampler {
    /// Creates a downsampler for samples between `from` and `to`, seconds.
    pub fn new(drawn: DrawStyle, from: f64, to: f64) -> Self {
        Self {
            drawn,
            from,
            to,
            bucket: f64::NEG_INFINITY,
            open: Vec::with_capacity(5),
            before: None,
            ready: Vec::new(),
        }
    }

    /// Adds the next sample.
    pub fn push(&mut self, sample: &SeriesSample) {
        let SeriesSample { time, value, .. } = *sample;
        if !value.is_finite() || time > self.to {
            return;
        }
        if time < self.from {
            self.before = Some(value);
            return;
        }
        if let Some(value) = self.before.take().filter(|_| self.drawn == DrawStyle::Line) {
            self.add(self.from, value);
        }
        self.add(time, value);
    }

    fn add(&mut self, time: f64, value: f64) {
        let bucket = ((time - self.from) / (self.to - self.from) * BUCKETS).floor();
        if bucket > self.bucket {
            self.ready.append(&mut self.open);
            self.bucket = bucket;
        }
        self.open.push((time, value));
        match self.drawn {
            DrawStyle::Marks => self.open.truncate(MAX_MARKS),
            DrawStyle::Line if self.open.len() > 4 => self.keep_outline(),
            DrawStyle::Line => {}
        }
    }

    /// Reduces five samples to the first, smallest, largest and last.
    fn keep_outline(&mut self) {
        let inner = 1..self.open.len() - 1;
        let by_value = |a: &usize, b: &usize| self.open[*a].1.total_cmp(&self.open[*b].1);
        let least = inner.clone().min_by(by_value).unwrap_or(1);
        let greatest = inner.clone().max_by(by_value).unwrap_or(1);
        // If all samples are equal, any of the inner ones can be removed.
        if let Some(spare) = inner.into_iter().find(|at| *at != least && *at != greatest) {
            self.open.remove(spare);
        }
    }

    /// Returns the samples that can be drawn; at the `end`, including those of the current bucket.
    pub fn take(&mut self, end: bool) -> Vec<(f64, f64)> {
        if end {
            // A line without samples in the window keeps its previous value.
            if let Some(value) = self.before.take().filter(|_| self.drawn == DrawStyle::Line) {
                self.ready.push((self.from, value));
            }
            self.ready.append(&mut self.open);
        }
        std::mem::take(&mut self.ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thinned(drawn: DrawStyle, window: (f64, f64), samples: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let mut downsampler = Downsampler::new(drawn, window.0, window.1);
        let mut kept = Vec::new();
        for &(time, value) in samples {
            downsampler.push(&SeriesSample {
                index: 0,
                time,
                value,
            });
            kept.extend(downsampler.take(false));
        }
        kept.extend(downsampler.take(true));
        kept
    }

    #[test]
    fn few_samples_stay_as_they_are() {
        let samples = [(0.0, 3.0), (1.0, 5.0), (399.0, 1.0)];
        assert_eq!(thinned(DrawStyle::Line, (0.0, 400.0), &samples), samples);
    }

    #[test]
    fn of_many_the_outline_is_kept_in_order() {
        let wave = |i: u32| f64::from(i * 7919 % 1000);
        let samples: Vec<(f64, f64)> = (0..100_000)
            .map(|i| (f64::from(i) / 1e3, wave(i)))
            .collect();
        let kept = thinned(DrawStyle::Line, (0.0, 100.0), &samples);
        assert!(kept.len() <= 4 * 401, "{}", kept.len());
        assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(kept.iter().all(|at| samples.contains(at)));
        // A peak of a single sample in a bucket must be preserved.
        let mut peaked = samples.clone();
        peaked[50_111].1 = 1e6;
        assert!(thinned(DrawStyle::Line, (0.0, 100.0), &peaked).contains(&peaked[50_111]));
    }

    #[test]
    fn of_a_window_a_line_begins_with_the_value_that_held() {
        let samples = [(1.0, 7.0), (5.0, 8.0), (20.0, 9.0)];
        let line = thinned(DrawStyle::Line, (3.0, 10.0), &samples);
        assert_eq!(line, [(3.0, 7.0), (5.0, 8.0)]);
        assert_eq!(
            thinned(DrawStyle::Line, (6.0, 10.0), &samples),
            [(6.0, 8.0)]
        );
        assert_eq!(
            thinned(DrawStyle::Marks, (3.0, 10.0), &samples),
            [(5.0, 8.0)]
        );
    }

    #[test]
    fn marks_are_bounded_too() {
        let samples: Vec<(f64, f64)> = (0..10_000).map(|i| (f64::from(i) / 1e3, 1.0)).collect();
        let kept = thinned(DrawStyle::Marks, (0.0, 10.0), &samples);
        assert!(
            kept.len() <= MAX_MARKS * 401 && kept.len() > 400,
            "{}",
            kept.len()
        );
    }
}
