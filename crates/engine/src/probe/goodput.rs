//! Goodput over time: payload delivered to the application in each bin.

use std::collections::VecDeque;

use anabranch_transport::{Nanos, time};

use super::{ProbeEntry, RecordOptions};
use crate::agent::observer::{End, Observer};
use crate::agent::series::{SeriesProbe, SeriesValue};

/// Registry entry of the goodput probe.
pub(super) static ENTRY: ProbeEntry = ProbeEntry {
    name: "goodput",
    about: "Payload that reached the receiving application, bit/s in each bin; a sample's time is the beginning of its bin.",
    make: |RecordOptions { bin }| Box::new(Bins::new(bin)),
};

/// Series of bins of equal width, from the start of the run.
#[derive(Debug)]
struct Bins {
    width: Nanos,
    /// Index of the current bin, and the payload bytes in it.
    bin: u64,
    bytes: u64,
    /// Complete bins that have not been reported yet.
    over: VecDeque<SeriesValue>,
}

impl Bins {
    fn new(width: Nanos) -> Self {
        Self {
            width,
            bin: 0,
            bytes: 0,
            over: VecDeque::new(),
        }
    }
}

impl Observer for Bins {
    fn end(&self) -> End {
        End::Receiver
    }

    fn deliver(&mut self, at: Nanos, bytes: u64, _: u64) {
        self.settle(at);
        self.bytes += bytes;
    }
}

impl SeriesProbe for Bins {
    fn poll(&mut self) -> Option<SeriesValue> {
        self.over.pop_front()
    }

    fn settle(&mut self, now: Nanos) {
        while self.bin < now / self.width {
            self.over.push_back(SeriesValue {
                at: self.bin * self.width,
                index: 0,
                value: self.bytes as f64 * 8.0 / time::seconds(self.width),
            });
            self.bin += 1;
            self.bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::quantity::{TimeSpan, Window};
    use anabranch_transport::time::SECOND;

    use super::*;
    use crate::agent::series::SampleBuffer;
    use crate::agent::series::SeriesRecorder;

    #[test]
    fn every_bin_is_reported_including_empty_ones() {
        let out = SampleBuffer::default();
        let mut recorded = SeriesRecorder {
            series: Box::new(Bins::new(2 * SECOND)),
            window: Some(Window([TimeSpan(SECOND), TimeSpan(10 * SECOND)])),
            key: 3,
        };
        for (at, bytes) in [
            (SECOND, 1000),
            (3 * SECOND, 250),
            (4 * SECOND - 1, 250),
            (8 * SECOND, 125),
        ] {
            recorded.show(&out, |series| series.deliver(at, bytes, 0));
        }
        recorded.show(&out, |series| series.settle(12 * SECOND));
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
