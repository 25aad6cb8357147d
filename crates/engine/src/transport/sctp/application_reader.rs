//! Reading rate of a receiving application.

use anabranch_transport::{Nanos, time};

/// The receiving application's pace.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Bits per second; `None`: always ready.
    rate: Option<u64>,
    /// The application is busy with the last data until then.
    busy_until: Nanos,
    /// The fraction of a nanosecond of its busy time beyond that, times its rate.
    carried: u128,
    /// Whether more data may be waiting.
    pub behind: bool,
}

impl Reader {
    /// A reader with this rate in bits per second, or one that is always ready.
    pub fn new(rate: Option<u64>) -> Self {
        Self {
            rate,
            busy_until: 0,
            carried: 0,
            behind: false,
        }
    }

    /// Whether the application has finished reading the last data.
    pub fn is_ready(&self, now: Nanos) -> bool {
        self.busy_until <= now
    }

    /// Reads a number of bytes. The rounding error is carried over between consecutive reads, so
    /// that the reader is no faster than its rate.
    pub fn read(&mut self, now: Nanos, bytes: u64) {
        if let Some(rate) = self.rate {
            let rate = u128::from(rate.max(1));
            let carried = if now == self.busy_until {
                self.carried
            } else {
                0
            };
            let work = u128::from(bytes) * 8 * u128::from(time::SECOND) + carried;
            let busy = work / rate;
            self.carried = work % rate;
            self.busy_until = now.saturating_add(busy.min(u128::from(Nanos::MAX)) as Nanos);
        }
    }

    /// The time of the next read, if more data may be waiting.
    pub fn deadline(&self) -> Option<Nanos> {
        self.behind.then_some(self.busy_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte takes 2.67 ns at 3 Gbit/s, so a thousand should take 2666.7 ns and not 2000.
    #[test]
    fn a_reader_is_no_faster_than_its_rate() {
        let mut reader = Reader::new(Some(3_000_000_000));
        for _ in 0..1000 {
            reader.read(reader.busy_until, 1);
        }
        assert_eq!(reader.busy_until, 2666);
        reader.read(10_000, 1);
        assert_eq!(reader.busy_until, 10_002);
    }
}
