//! Statistics of an emulator, including the accuracy of its timing.

use anabranch_sim::DropCounts;
use anabranch_transport::Nanos;

/// Width of a bucket in the histogram of lateness, nanoseconds.
const BUCKET: Nanos = 10_000;
/// Number of buckets. The last bucket includes all larger values.
const BUCKETS: usize = 10_000;

/// Statistics since the start.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct EmulationReport {
    /// Number of packets received at the near and the far side.
    pub received: [u64; 2],
    /// Number of packets sent at the near and the far side.
    pub sent: [u64; 2],
    /// Packets that the network dropped by its rules, by reason.
    pub dropped: DropCounts,
    /// Number of packets that arrived faster than they could be processed, or that the system
    /// refused to send. These losses are not part of the emulation, so results with such losses
    /// should not be used.
    pub overrun: u64,
    /// Lateness of departures, compared with the times that the network computed.
    pub timing: DepartureLateness,
}

/// Distribution of the lateness of packets.
#[derive(Clone, Debug, Default)]
pub struct DepartureLateness {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    most: Nanos,
}

impl DepartureLateness {
    /// Adds a packet that departed late by `late` nanoseconds.
    pub(crate) fn add(&mut self, late: Nanos) {
        if self.buckets.is_empty() {
            self.buckets = vec![0; BUCKETS];
        }
        let bucket = (late / BUCKET).min(BUCKETS as u64 - 1);
        self.buckets[bucket as usize] += 1;
        self.count += 1;
        self.sum += u128::from(late);
        self.most = self.most.max(late);
    }

    /// Number of packets.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean lateness, nanoseconds; 0 without packets.
    pub fn mean(&self) -> Nanos {
        self.sum.checked_div(u128::from(self.count)).unwrap_or(0) as Nanos
    }

    /// Quantile of the lateness at the fraction `share` (0 to 1), nanoseconds, rounded up to 10 us.
    pub fn quantile(&self, share: f64) -> Nanos {
        let wanted = (self.count as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return ((bucket as Nanos + 1) * BUCKET).min(self.most);
            }
        }
        self.most
    }

    /// Maximum lateness, nanoseconds.
    pub fn most(&self) -> Nanos {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_by_hand() {
        let mut timing = DepartureLateness::default();
        assert_eq!(
            (timing.mean(), timing.quantile(0.99), timing.most()),
            (0, 0, 0)
        );
        // 98 packets are on time, one is 25 us late, and one is a full second late.
        for _ in 0..98 {
            timing.add(0);
        }
        timing.add(25_000);
        timing.add(1_000_000_000);
        assert_eq!(timing.mean(), 10_000_250);
        assert_eq!(timing.quantile(0.5), 10_000);
        assert_eq!(timing.quantile(0.99), 30_000);
        assert_eq!(timing.quantile(1.0), 100_000_000, "the last bucket");
        assert_eq!(timing.most(), 1_000_000_000);
    }
}
