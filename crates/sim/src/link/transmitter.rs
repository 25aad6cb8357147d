//! Transmitters: the departure time of a packet's last bit, at a constant or time-dependent rate.
//!
//! Departure times are rounded to the nearest nanosecond. From 100 Mbit/s on, the rounding error is
//! carried over to the next packet if it follows without a pause. The error of a busy period then
//! never exceeds half a nanosecond, and the link carries no more than its rate. On slower links all
//! packets of one size take the same time, so that two flows whose packets coincide at one instant
//! coincide again after each period. With a carry, the order of such packets would depend on the
//! rounding. At these rates half a nanosecond is less than 1/160 of a byte.

use anabranch_transport::Nanos;

use crate::step_function::{Cursor, StepFunction};

/// The work of sending one byte; the unit of work is one nanosecond at 1 bit/s.
const BYTE: i64 = 8_000_000_000;

/// The minimum rate, bits per second, at which a rounding error is carried over.
const MIN_CARRY_RATE: i64 = 100_000_000;

/// The remaining work after a rounded departure that is carried over to the next packet.
#[inline]
fn carry(beyond: i64, rate: i64) -> i64 {
    match rate >= MIN_CARRY_RATE {
        true => beyond,
        false => 0,
    }
}

/// Duration of `work` at `rate`, rounded to the nearest nanosecond (half a nanosecond is rounded
/// up), and the work that remains after it.
#[inline]
fn rounded(work: i64, rate: i64) -> (Nanos, i64) {
    let takes = (work + rate / 2).max(0) / rate;
    (takes as Nanos, work - takes * rate)
}

/// The transmission time of `size` bytes at `rate` bits per second after a pause, rounded to the
/// nearest nanosecond.
#[inline]
pub(super) fn serialisation(size: usize, rate: u64) -> Nanos {
    rounded(work(size), clamped(rate)).0
}

/// The work of sending `size` bytes. A packet has at most 65,575 bytes, so the product is far below
/// 2^63.
fn work(size: usize) -> i64 {
    size as i64 * BYTE
}

fn clamped(rate: u64) -> i64 {
    i64::try_from(rate).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

/// A transmitter with a constant rate.
#[derive(Clone, Debug)]
pub(crate) struct Steady {
    /// Rate in bits per second; `None`: packets have no transmission time.
    rate: Option<u64>,
    /// Time at which all accepted packets are sent, nanoseconds.
    pub busy_until: Nanos,
    /// Work that remains at `busy_until` because of rounding; negative if the last packet is
    /// complete earlier.
    carried: i64,
    /// Size of the last packet in bytes, the transmission time of such a packet after a pause, and
    /// the work that then remains because this time is rounded.
    last: (usize, Nanos, i64),
}

impl Steady {
    pub fn new(rate: Option<u64>) -> Self {
        Self {
            rate,
            busy_until: 0,
            carried: 0,
            // No packet has this size.
            last: (usize::MAX, 0, 0),
        }
    }

    /// Whether the last packet had this size.
    #[inline(always)]
    pub fn is_like_last(&self, size: usize) -> bool {
        self.last.0 == size
    }

    /// Sets the size of the next packet. The result is cached, because most packets of a direction
    /// have the same size and a division is slow.
    #[inline(always)]
    pub fn set_size(&mut self, size: usize) {
        if self.last.0 != size {
            let (takes, beyond) = match self.rate {
                Some(rate) => {
                    let rate = clamped(rate);
                    let (takes, beyond) = rounded(work(size), rate);
                    (takes, carry(beyond, rate))
                }
                None => (0, 0),
            };
            self.last = (size, takes, beyond);
        }
    }

    /// Sends a packet of the size set by `set_size` that arrives at `now`. Returns the departure of
    /// its first bit. Also returns the nanoseconds by which its transmission time exceeds that of a
    /// packet of this size after a pause (-1, 0 or 1).
    #[inline(always)]
    pub fn send(&mut self, now: Nanos) -> (Nanos, i8) {
        let (start, carried) = if self.busy_until > now {
            (self.busy_until, self.carried)
        } else if self.busy_until == now {
            // If the last packet was complete a fraction of a nanosecond before `now` (negative
            // work), this packet does not gain that time, because it had not arrived.
            (now, self.carried.max(0))
        } else {
            (now, 0)
        };
        let (_, takes, beyond) = self.last;
        let (longer, beyond) = match carried {
            0 => (0, beyond),
            _ => self.with(beyond + carried),
        };
        self.carried = beyond;
        self.busy_until = start
            .saturating_add(takes)
            .saturating_add_signed(longer.into());
        (start, longer)
    }

    /// Corrects a transmission time for the remaining work `beyond`. Returns the difference in
    /// nanoseconds (-1, 0 or 1) and the work that then remains. `beyond` is at most one
    /// nanosecond's work: half of it from this packet, and half carried over.
    #[inline(always)]
    fn with(&self, beyond: i64) -> (i8, i64) {
        let rate = clamped(self.rate.unwrap_or(1));
        if beyond + rate / 2 >= rate {
            (1, beyond - rate)
        } else if beyond + rate / 2 < 0 {
            (-1, beyond + rate)
        } else {
            (0, beyond)
        }
    }

    /// Stops the transmitter at `at`, because of an outage during a transmission.
    pub fn stop(&mut self, at: Nanos) {
        self.busy_until = at;
        self.carried = 0;
    }

    /// Transmission time of `size` bytes after a pause, nanoseconds.
    pub fn takes(&self, size: usize) -> Nanos {
        self.rate.map_or(0, |rate| serialisation(size, rate))
    }
}

/// A transmitter with a time-dependent rate. Its functions must be called in the order of time.
#[derive(Debug)]
pub(super) struct Rate {
    /// Rate in bits per second; `None`: packets have no transmission time.
    rate: Option<Cursor<u64>>,
    /// Departure of the last packet, and the work that remains at this time.
    done: Nanos,
    carried: i64,
}

impl Rate {
    pub fn new(rate: Option<StepFunction<u64>>) -> Self {
        Self {
            rate: rate.map(Cursor::new),
            done: 0,
            carried: 0,
        }
    }

    /// Departure of the last bit of `size` bytes whose first bit leaves at `start`, for a packet
    /// that arrived at `came`. [`Nanos::MAX`] if the rate stays 0.
    pub fn finish(&mut self, came: Nanos, start: Nanos, size: usize) -> Nanos {
        let Some(cursor) = &mut self.rate else {
            return start;
        };
        let carried = match start == self.done {
            true if came < start => self.carried,
            // If the last packet was complete a fraction of a nanosecond before `start` (negative
            // work), this packet does not gain that time, because it had not arrived.
            true => self.carried.max(0),
            false => 0,
        };
        let mut left = work(size) + carried;
        let mut now = start;
        loop {
            let (rate, until) = cursor.at(now);
            let until_change = until - now;
            // A departure may be rounded up to the change of the rate, but not down to it. At a
            // rate of 0 no bit is sent until the rate changes.
            let fits = left <= 0 || {
                let possible = rate.saturating_mul(until_change);
                left.unsigned_abs() <= possible
            };
            if fits {
                let rate = clamped(rate).max(1);
                let (takes, beyond) = rounded(left, rate);
                self.done = now.saturating_add(takes);
                self.carried = carry(beyond, rate);
                return self.done;
            }
            if until == Nanos::MAX {
                self.done = Nanos::MAX;
                return Nanos::MAX;
            }
            // The packet did not fit before the change, so the product is less than the remaining
            // work.
            left -= (rate * until_change) as i64;
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
                assert_eq!(transmitter.finish(17, 17, size), expected);
            }
        }
        assert_eq!(Rate::new(None).finish(17, 17, 1500), 17);
    }

    /// Departures of packets with these arrival times and sizes. Asserts that the constant-rate and
    /// the time-dependent transmitter agree.
    fn departures(rate: u64, packets: &[(Nanos, usize)]) -> Vec<Nanos> {
        let mut steady = Steady::new(Some(rate));
        let mut event_driven = Rate::new(Some(rate.into()));
        let mut all = Vec::new();
        for &(came, size) in packets {
            let start = all.last().copied().unwrap_or(0).max(came);
            steady.set_size(size);
            let (from, longer) = steady.send(came);
            let takes = steady.takes(size).saturating_add_signed(longer.into());
            assert_eq!((from, from + takes), (start, steady.busy_until));
            assert_eq!(event_driven.finish(came, start, size), from + takes);
            all.push(from + takes);
        }
        all
    }

    /// 36 bytes take 2.88 ns at 100 Gbit/s and 0.72 ns at 400 Gbit/s; at 1.5 Mbit/s they take 192
    /// us. 100 bytes take 533,333.3 ns at 1.5 Mbit/s, rounded in the same way for each packet.
    #[test]
    fn rounding_errors_of_transmission_times_are_carried_over() {
        let burst = |size: usize| vec![(0, size); 25];
        let of = |rate, size| departures(rate, &burst(size));
        let exact = |each: f64| -> Vec<Nanos> {
            let times = (1..=25).map(|n| f64::from(n) * each + 1e-9);
            times.map(|at| at.round() as Nanos).collect()
        };
        assert_eq!(of(100_000_000_000, 36), exact(2.88));
        assert_eq!(of(400_000_000_000, 36), exact(0.72));
        assert_eq!(of(1_000_000_000_000, 36), exact(0.288));
        assert_eq!(of(1_500_000, 36), exact(192_000.0));
        let equal: Vec<Nanos> = (1..=25).map(|n| n * 533_333).collect();
        assert_eq!(of(1_500_000, 100), equal);
        assert_eq!(of(120_000_000, 100), exact(20_000.0 / 3.0));
        assert_eq!(of(3_000_000_007, 1500), exact(12_000e9 / 3_000_000_007.0));
    }

    /// The transmission of a packet that arrives 0.28 ns after the transmitter became idle begins
    /// at the arrival. If the transmitter is busy for another 0.44 ns, the transmission begins 0.44
    /// ns later.
    #[test]
    fn a_packet_does_not_begin_before_it_comes() {
        let rate = 400_000_000_000;
        assert_eq!(departures(rate, &[(0, 36), (0, 36)]), [1, 1]);
        // The second packet arrives at 1 ns and takes 0.72 ns, until 1.72; the third ends at 2.44,
        // and the fourth at 3.16.
        assert_eq!(
            departures(rate, &[(0, 36), (1, 36), (1, 36), (1, 36)]),
            [1, 2, 2, 3]
        );
        // The first two packets end at 1.44 ns, the third at 2.16, the fourth at 2.88, and the
        // fifth at 3.6.
        assert_eq!(
            departures(rate, &[(0, 36), (0, 36), (1, 36), (1, 36), (1, 36)]),
            [1, 1, 2, 3, 4]
        );
        assert_eq!(departures(rate, &[(0, 36), (5, 36), (9, 36)]), [1, 6, 10]);
    }

    /// A packet that is incomplete when the rate changes is not treated as complete, even if less
    /// than a nanosecond's work remains.
    #[test]
    fn a_change_of_rate_finds_what_is_left() {
        // 100 bytes take 533,333.33 ns at 1.5 Mbit/s. After 533,333 ns the work of a third of a
        // nanosecond remains, which takes 500 ns at 1 kbit/s.
        let steps = StepFunction::steps(1_500_000, [(533_333, 1000)]).unwrap();
        let mut rate = Rate::new(Some(steps));
        assert_eq!(rate.finish(0, 0, 100), 533_333 + 500);
    }

    #[test]
    fn a_packet_on_the_wire_goes_on_at_the_new_rate() {
        // 1500 bytes take 12 ms at 1 Mbit/s and 6 ms at 2 Mbit/s. After 4 ms at the first rate, two
        // thirds remain.
        let steps = StepFunction::steps(
            1_000_000,
            [(4 * MS, 2_000_000), (6 * MS, 0), (9 * MS, 500_000)],
        );
        let mut rate = Rate::new(Some(steps.unwrap()));
        // 4,000 bits in the first interval, 4,000 in the next 2 ms, none until 9 ms, and the last
        // 4,000 in 8 ms.
        assert_eq!(rate.finish(0, 0, 1500), 17 * MS);
        let mut dead = Rate::new(Some(StepFunction::steps(1_000_000, [(4 * MS, 0)]).unwrap()));
        assert_eq!(dead.finish(0, 0, 500), 4 * MS);
        assert_eq!(dead.finish(4 * MS, 4 * MS, 1), Nanos::MAX);
    }
}
