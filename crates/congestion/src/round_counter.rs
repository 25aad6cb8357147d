//! Counting of round trips without sequence numbers, for delay-based algorithms.

use anabranch_transport::Nanos;

use crate::AckSample;

/// Detects the end of round trips. A round ends when all data that was sent before its start is
/// acknowledged or considered lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundCounter {
    sent: u64,
    end: u64,
}

impl RoundCounter {
    /// Records that `bytes` bytes were sent.
    pub fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// Returns whether this acknowledgement ends a round. The next round starts with this
    /// acknowledgement; the first round starts with the first acknowledgement.
    pub fn ended(&mut self, ack: &AckSample) -> bool {
        let settled = self.sent.saturating_sub(ack.flightsize_after);
        let first = self.end == 0;
        if !first && settled < self.end {
            return false;
        }
        self.end = self.sent;
        !first
    }
}

/// Round-trip times of a path: the minimum and maximum so far, and those of the current round.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundDelays {
    rounds: RoundCounter,
    least_ever: Option<Nanos>,
    most_ever: Option<Nanos>,
    current: RoundRtts,
}

/// Round-trip times that were measured in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundRtts {
    /// Minimum, nanoseconds.
    pub least: Option<Nanos>,
    /// Number of measurements.
    pub count: u32,
    sum: Nanos,
}

impl RoundRtts {
    fn add(&mut self, rtt: Nanos) {
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        self.count += 1;
        self.sum = self.sum.saturating_add(rtt);
    }

    /// Mean of the round-trip times, nanoseconds; `None` without measurements.
    pub fn mean(&self) -> Option<Nanos> {
        self.sum.checked_div(u64::from(self.count))
    }
}

impl RoundDelays {
    /// Records that `bytes` bytes were sent.
    pub fn on_sent(&mut self, bytes: u64) {
        self.rounds.on_sent(bytes);
    }

    /// Processes the round-trip time that an acknowledgement measured. Returns the round-trip times
    /// of the round that it ends, if it ends one.
    pub fn on_ack(&mut self, ack: &AckSample) -> Option<RoundRtts> {
        if let Some(rtt) = ack.latest_rtt {
            self.least_ever = Some(self.least_ever.map_or(rtt, |least| least.min(rtt)));
            self.most_ever = Some(self.most_ever.map_or(rtt, |most| most.max(rtt)));
            self.current.add(rtt);
        }
        self.rounds
            .ended(ack)
            .then(|| std::mem::take(&mut self.current))
    }

    /// Round-trip times of the current round so far.
    pub fn current(&self) -> &RoundRtts {
        &self.current
    }

    /// Minimum round-trip time of the path so far, nanoseconds, which is the time without queueing.
    pub fn least(&self) -> Option<Nanos> {
        self.least_ever
    }

    /// Maximum round-trip time of the path so far, nanoseconds.
    pub fn most(&self) -> Option<Nanos> {
        self.most_ever
    }

    /// Amount of queued data, in the unit of `window`: `window x (rtt - least) / rtt`, with the
    /// minimum round-trip time `rtt` of a round. This is Diff of Vegas, and N of Veno.
    pub fn backlog(&self, window: f64, seen: &RoundRtts) -> Option<f64> {
        let (rtt, least) = (seen.least?, self.least_ever?);
        Some(window * (rtt - least) as f64 / rtt.max(1) as f64)
    }
}

/// A bulk flow for tests. Each acknowledgement is for one segment of 1000 bytes, and as many
/// segments are sent as the window permits.
#[cfg(test)]
pub(crate) mod bulk {
    use super::*;
    use crate::CongestionControl;
    use anabranch_transport::time::MILLISECOND;

    pub(crate) struct Bulk<C> {
        pub control: C,
        flight: u64,
        /// Bytes in flight at the start of the round.
        due: u64,
    }

    impl<C: CongestionControl> Bulk<C> {
        pub(crate) fn new(control: C) -> Self {
            let (flight, due) = (0, 0);
            let mut bulk = Self {
                control,
                flight,
                due,
            };
            bulk.fill();
            bulk.due = bulk.flight;
            bulk
        }

        fn fill(&mut self) {
            // SCTP may exceed cwnd by less than one packet (RFC 9260 §6.1 B).
            while self.flight < self.control.cwnd() {
                self.flight += 1000;
                self.control.on_sent(0, 1000, self.flight);
            }
        }

        fn ack(&mut self, milliseconds: u64) {
            let before = self.flight;
            self.flight -= 1000;
            self.control.on_ack(&AckSample {
                bytes_acked: 1000,
                segments_acked: 1,
                cumulative_advanced: true,
                flightsize_before: before,
                flightsize_after: self.flight,
                latest_rtt: Some(milliseconds * MILLISECOND),
                ..AckSample::default()
            });
            self.due = self.flight;
            self.fill();
        }

        /// Runs a round with this round-trip time. Returns the window after it.
        pub(crate) fn round(&mut self, milliseconds: u64) -> u64 {
            (0..self.due / 1000).for_each(|_| self.ack(milliseconds));
            self.control.cwnd()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_transport::time::MILLISECOND as MS;

    fn ack(flight: u64, rtt: Option<Nanos>) -> AckSample {
        AckSample {
            flightsize_after: flight,
            latest_rtt: rtt,
            ..AckSample::default()
        }
    }

    /// Four packets are sent, and then two after each acknowledgement.
    #[test]
    fn a_round_ends_when_what_was_in_flight_at_its_beginning_is_settled() {
        let mut rounds = RoundCounter::default();
        (0..4).for_each(|_| rounds.on_sent(1000));
        let (mut flight, mut ends) = (4000, Vec::new());
        for number in 0..13 {
            flight -= 1000;
            if rounds.ended(&ack(flight, None)) {
                ends.push(number);
            }
            rounds.on_sent(2000);
            flight += 2000;
        }
        // The first round ends after the 4 packets in flight, and the second after the 6 that were
        // sent before the fourth acknowledgement.
        assert_eq!(ends, [3, 9]);
    }

    #[test]
    fn delays_are_those_of_the_round_and_of_the_path() {
        let mut delays = RoundDelays::default();
        delays.on_sent(3000);
        for rtt in [100 * MS, 150 * MS] {
            assert_eq!(delays.on_ack(&ack(1000, Some(rtt))), None);
        }
        delays.on_sent(2000);
        let seen = delays.on_ack(&ack(2000, Some(125 * MS)));
        assert_eq!(seen.map(|seen| seen.count), Some(3));
        assert_eq!(delays.on_ack(&ack(1000, Some(130 * MS))), None);
        let seen = delays.on_ack(&ack(0, Some(125 * MS))).expect("its end");
        assert_eq!((seen.count, seen.least), (2, Some(125 * MS)));
        assert_eq!(seen.mean(), Some(127_500_000));
        assert_eq!(
            (delays.least(), delays.most()),
            (Some(100 * MS), Some(150 * MS))
        );
        // The backlog is 20 x 25 / 125.
        assert_eq!(delays.backlog(20.0, &seen), Some(4.0));
        assert_eq!(delays.current(), &RoundRtts::default());
    }
}
