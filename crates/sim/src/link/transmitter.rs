//! A transmitter whose rate may change while it sends.

use anabranch_transport::Nanos;

use crate::over_time::{Cursor, OverTime};

/// How long `size` bytes take at `rate` bits per second, rounded to the nearest nanosecond.
#[inline]
pub(super) fn serialisation(size: usize, rate: u64) -> Nanos {
    // A packet has at most 65,575 bytes, so that the product stays far below 2^64.
    (size as u64 * 8_000_000_000 + rate / 2) / rate
}

/// When the last bit of a packet leaves. Asked in the order of time.
#[derive(Debug)]
pub(super) struct Rate(Option<Cursor<u64>>);

impl Rate {
    /// `None`: packets take no time.
    pub fn new(rate: Option<OverTime<u64>>) -> Self {
        Self(rate.map(Cursor::new))
    }

    /// When the last of `size` bytes leaves if the first does at `start`; [`Nanos::MAX`] for never.
    pub fn finish(&mut self, start: Nanos, size: usize) -> Nanos {
        let Some(cursor) = &mut self.0 else {
            return start;
        };
        // In bits per second times nanoseconds.
        let mut left = size as u64 * 8_000_000_000;
        let mut now = start;
        loop {
            let (rate, until) = cursor.at(now);
            // A rate of 0 sends nothing until it changes.
            if let Some(needed) = (left + rate / 2).checked_div(rate) {
                if needed <= until - now {
                    return now.saturating_add(needed);
                }
                left = left.saturating_sub(rate * (until - now));
            }
            if until == Nanos::MAX {
                return Nanos::MAX;
            }
            now = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn a_constant_rate_is_the_same_as_at_once() {
        for rate in [1, 7_000_000, 3_000_000_000] {
            let mut transmitter = Rate::new(Some(rate.into()));
            for size in [1, 100, 1500, 65_535] {
                let expected = 17 + serialisation(size, rate);
                assert_eq!(transmitter.finish(17, size), expected);
            }
        }
        assert_eq!(Rate::new(None).finish(17, 1500), 17);
    }

    #[test]
    fn a_packet_on_the_wire_goes_on_at_the_new_rate() {
        // 1500 bytes: 12 ms at 1 Mbit/s, 6 ms at 2 Mbit/s. 4 ms at the first rate leave two thirds of it.
        let steps = OverTime::steps(
            1_000_000,
            [(4 * MS, 2_000_000), (6 * MS, 0), (9 * MS, 500_000)],
        );
        let mut rate = Rate::new(Some(steps.unwrap()));
        // 4,000 bits, then 4,000 in 2 ms, nothing until 9 ms, the other 4,000 in 8 ms.
        assert_eq!(rate.finish(0, 1500), 17 * MS);
        let mut dead = Rate::new(Some(OverTime::steps(1_000_000, [(4 * MS, 0)]).unwrap()));
        assert_eq!(dead.finish(0, 500), 4 * MS);
        assert_eq!(dead.finish(4 * MS, 1), Nanos::MAX);
    }
}
