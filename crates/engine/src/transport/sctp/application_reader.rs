//! Receiving application with a limited reading rate.

use anabranch_transport::{Nanos, time};

/// State of a receiving application that reads at a limited rate.
#[derive(Clone, Copy, Debug)]
pub struct ApplicationReader {
    /// Reading rate in bits per second; `None`: the application reads all data immediately.
    rate: Option<u64>,
    /// Time until which the application is busy with the data read last, nanoseconds.
    busy_until: Nanos,
    /// Rounding error of `busy_until`: the remaining fraction of a nanosecond times the rate.
    carried: u128,
    /// Whether more data may be available to read.
    pub behind: bool,
}

impl ApplicationReader {
    /// Creates a reader with this rate in bits per second; `None`: it reads all data immediately.
    pub fn new(rate: Option<u64>) -> Self {
        Self {
            rate,
            busy_until: 0,
            carried: 0,
            behind: false,
        }
    }

    /// Whether the application has processed the data read last.
    pub fn is_ready(&self, now: Nanos) -> bool {
        self.busy_until <= now
    }

    /// Records that the application reads `bytes` bytes. The rounding error is carried over between
    /// consecutive reads, so that the reader does not exceed its rate.
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

    /// Time of the next read, if more data may be available.
    pub fn deadline(&self) -> Option<Nanos> {
        self.behind.then_some(self.busy_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte takes 2.67 ns at 3 Gbit/s, so a thousand bytes should take 2666.7 ns in total, and
    /// not 2000 ns.
    #[test]
    fn a_reader_is_no_faster_than_its_rate() {
        let mut reader = ApplicationReader::new(Some(3_000_000_000));
        for _ in 0..1000 {
            reader.read(reader.busy_until, 1);
        }
        assert_eq!(reader.busy_until, 2666);
        reader.read(10_000, 1);
        assert_eq!(reader.busy_until, 10_002);
    }
}
