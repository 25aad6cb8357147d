//! Round trips counted without sequence numbers, for delay-based algorithms.

use anabranch_transport::Nanos;

use crate::AckSample;

/// Determines the end of round trips: a round ends when all data sent before its beginning is
/// acknowledged or considered lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundCounter {
    sent: u64,
    end: u64,
}

impl RoundCounter {
    /// `bytes` were sent.
    pub fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// Whether this acknowledgement ends a round. The next round begins with it; the first begins
    /// with the first acknowledgement.
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

/// The round-trip times of a path: the minimum so far, and those of the current round.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundDelays {
    rounds: RoundCounter,
    least_ever: Option<Nanos>,
    most_ever: Option<Nanos>,
    current: RoundRtts,
}

/// The round-trip times measured in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundRtts {
    /// The minimum.
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

    /// Mean of the recorded round-trip times.
    pub fn mean(&self) -> Option<Nanos> {
        self.sum.checked_div(u64::from(self.count))
    }
}

impl RoundDelays {
    /// `bytes` were sent.
    pub fn on_sent(&mut self, bytes: u64) {
        self.rounds.on_sent(bytes);
    }

    /// Processes the measurement of an acknowledgement. Returns the delays of the round that it
    /// ends, if it ends one.
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

    /// The delays of the current round so far.
    pub fn current(&self) -> &RoundRtts {
        &self.current
    }

    /// The minimum round-trip time of the path so far: the time without queueing.
    pub fn least(&self) -> Option<Nanos> {
        self.least_ever
    }

    /// The maximum round-trip time of the path so far.
    pub fn most(&self) -> Option<Nanos> {
        self.most_ever
    }

    /// The queued data, in the unit of `window`: `window x (rtt - least) / rtt`, with the minimum
    /// `rtt` of a round. Vegas calls it Diff, Veno N.
    pub fn backlog(&self, window: f64, seen: &RoundRtts) -> Option<f64> {
        let (rtt, least) = (seen.least?, self.least_ever?);
        Some(window * (rtt - least) as f64 / rtt.max(1) as f64)
    }
}

/// A bulk flow for tests: each acknowledgement is for one segment of 1000 bytes, and releases as
/// many as the window permits.
#[cfg(test)]
pub(crate) mod bulk {
    use super::*;
    use crate::CongestionControl;
    use anabranch_transport::time::MILLISECOND;

    pub(crate) struct Bulk<C> {
        pub control: C,
        flight: u64,
        /// Data in flight at the beginning of the round.
        due: u64,
    }

    impl<C: CongestionControl> Bulk<C> {
        pub fn new(control: C) -> Self {
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
            // SCTP may exceed cwnd by less than a packet (RFC 9260 §6.1 B).
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

        /// A round with this round-trip time; returns the window afterwards.
        pub fn round(&mut self, milliseconds: u64) -> u64 {
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

    /// Four packets, then two for each acknowledgement: rounds of 4 and 8 packets.
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
        // The 4 in flight, then the 6 that were sent before the fourth acknowledgement.
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
        // 20 x 25 / 125.
        assert_eq!(delays.backlog(20.0, &seen), Some(4.0));
        assert_eq!(delays.current(), &RoundRtts::default());
    }
}
