//! Goodput over time: what reached the application in each bin.

use anabranch_scenario::quantity::Window;
use anabranch_scenario::records::SeriesSample;
use anabranch_transport::{Nanos, time};

use super::tally::SampleBuffer;

/// A recorded series of goodput, bit/s for each bin from the run's begin on; a sample's time is the begin of its bin.
#[derive(Clone, Copy, Debug)]
pub struct Bins {
    width: Nanos,
    window: Option<Window>,
    /// Index of the series in the run's keys.
    key: u32,
    /// Number of the bin being filled, and the bytes in it.
    bin: u64,
    bytes: u64,
}

impl Bins {
    /// Empty bins of `width` (above 0); only those that begin in `window` are kept.
    pub fn new(width: Nanos, window: Option<Window>, key: u32) -> Self {
        Self {
            width,
            window,
            key,
            bin: 0,
            bytes: 0,
        }
    }

    /// So many bytes were delivered.
    pub fn deliver(&mut self, now: Nanos, bytes: u64, out: &SampleBuffer) {
        self.settle(now, out);
        self.bytes += bytes;
    }

    /// Tells the bins that are over at `now`.
    pub fn settle(&mut self, now: Nanos, out: &SampleBuffer) {
        while self.bin < now / self.width {
            let begin = self.bin * self.width;
            if self.window.is_none_or(|window| window.contains(begin)) {
                let sample = SeriesSample {
                    index: 0,
                    time: time::seconds(begin),
                    value: self.bytes as f64 * 8.0 / time::seconds(self.width),
                };
                out.borrow_mut().push((self.key, sample));
            }
            self.bin += 1;
            self.bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_scenario::quantity::Span;
    use anabranch_transport::time::SECOND;

    #[test]
    fn every_bin_is_told_the_empty_ones_too() {
        let out = SampleBuffer::default();
        let window = Window([Span(SECOND), Span(10 * SECOND)]);
        let mut bins = Bins::new(2 * SECOND, Some(window), 3);
        bins.deliver(SECOND, 1000, &out);
        bins.deliver(3 * SECOND, 250, &out);
        bins.deliver(4 * SECOND - 1, 250, &out);
        bins.deliver(8 * SECOND, 125, &out);
        bins.settle(12 * SECOND, &out);
        let told: Vec<(u32, f64, f64)> = out
            .borrow()
            .iter()
            .map(|(key, sample)| (*key, sample.time, sample.value))
            .collect();
        assert_eq!(
            told,
            [
                (3, 2.0, 2000.0),
                (3, 4.0, 0.0),
                (3, 6.0, 0.0),
                (3, 8.0, 500.0)
            ]
        );
    }
}
