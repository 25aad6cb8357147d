//! RACK (RFC 8985 §6): data is lost if data that was sent sufficiently later has been delivered.
//!
//! Losses are detected by time and not by a count of duplicate acknowledgements. The loss of a
//! retransmission is therefore detected like any other, and reordered data is given some time to
//! arrive. The sender keeps the data in flight in transmission order, and calls [`Rack::judge`] for
//! each.

use anabranch_transport::Nanos;
use anabranch_transport::time::SECOND;

use super::windowed_min::WindowedMin;

/// Number of segments reported above a gap from which on the reordering window is 0, until
/// reordering was seen (DupThresh).
pub const DUPLICATE_THRESHOLD: u32 = 3;
/// Number of recoveries after which a widened window is reset (RFC 8985 §6.2 step 4).
const PERSISTENCE: u32 = 16;
/// Minimum time for which a minimum round-trip time is valid.
const MIN_RTT_SPAN: Nanos = 300 * SECOND;

/// One transmission of a chunk or segment. Ordered by transmission time (RACK_sent_after).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transmission {
    /// Transmission time.
    pub sent_at: Nanos,
    /// A number that orders transmissions of the same time: the higher counts as sent later.
    pub number: u64,
}

/// The decision about data in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RackDecision {
    /// No data sent later has been delivered: unknown.
    Unknown,
    /// Lost unless it is delivered by this time.
    LostAt(Nanos),
    /// Lost.
    Lost,
}

/// State of RACK for one path.
#[derive(Clone, Debug)]
pub struct Rack {
    /// The latest transmission among the delivered data (RACK.xmit_ts, RACK.end_seq), and its
    /// round-trip time (RACK.rtt).
    newest: Option<Transmission>,
    rtt: Nanos,
    least_rtt: WindowedMin,
    /// The highest delivered number (RACK.fack).
    highest: u64,
    reordered: bool,
    /// RACK.reo_wnd_mult, and the remaining recoveries for which it is valid.
    multiplier: u32,
    persistence: u32,
    /// The number that ends the round in which a duplicate was reported (RACK.dsack_round).
    round: Option<u64>,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            newest: None,
            rtt: 0,
            least_rtt: WindowedMin::new(MIN_RTT_SPAN),
            highest: 0,
            reordered: false,
            multiplier: 1,
            persistence: 0,
            round: None,
        }
    }
}

impl Rack {
    /// `sent` was delivered according to an acknowledgement at `now`, which is the first to report
    /// it; `again`: it was a retransmission (steps 1 to 3).
    pub fn on_delivered(&mut self, now: Nanos, sent: Transmission, again: bool) {
        let rtt = now.saturating_sub(sent.sent_at);
        if again {
            // Faster than any round trip: the acknowledgement is for an earlier transmission.
            if self.least_rtt.least().is_none_or(|least| rtt < least) {
                return;
            }
        } else {
            self.least_rtt.measure(now, rtt);
            self.reordered |= sent.number < self.highest;
        }
        self.highest = self.highest.max(sent.number);
        if self.newest.is_none_or(|newest| newest < sent) {
            self.newest = Some(sent);
            self.rtt = rtt;
        }
    }

    /// The receiver reports a duplicate, at a time when everything below `acknowledged` is
    /// acknowledged and `next` is the number of the next new data: the retransmission was spurious.
    /// Widens the window once per round (step 4).
    pub fn on_duplicate(&mut self, acknowledged: u64, next: u64) {
        if self.round.is_none_or(|round| acknowledged >= round) {
            self.round = Some(next);
            self.multiplier = self.multiplier.saturating_add(1);
            self.persistence = PERSISTENCE;
        }
    }

    /// A timeout was spurious: data sent before it is still on its way, even if data sent later was
    /// delivered. The state of the data in flight is unknown until more of it is delivered.
    pub fn on_spurious_timeout(&mut self) {
        self.newest = None;
    }

    /// A recovery, fast or after a timeout, has ended.
    pub fn on_recovery_end(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
        if self.persistence == 0 {
            self.multiplier = 1;
        }
    }

    /// The reordering window (step 4): how much later than data sent after it a segment may arrive.
    /// `reported` segments were reported above the cumulative point.
    pub fn window(&self, recovering: bool, reported: u32, srtt: Option<Nanos>) -> Nanos {
        if !self.reordered && (recovering || reported >= DUPLICATE_THRESHOLD) {
            return 0;
        }
        let quarter = self.least_rtt.least().unwrap_or(0) / 4;
        let window = quarter.saturating_mul(self.multiplier.into());
        window.min(srtt.unwrap_or(window))
    }

    /// Decides about data in flight since `sent`, with a reordering window (step 5).
    pub fn judge(&self, now: Nanos, sent: Transmission, window: Nanos) -> RackDecision {
        match self.newest {
            Some(newest) if sent < newest => {
                let at = self.overdue_at(sent.sent_at, window);
                if at <= now {
                    RackDecision::Lost
                } else {
                    RackDecision::LostAt(at)
                }
            }
            _ => RackDecision::Unknown,
        }
    }

    /// The time at which data sent at `sent_at` is overdue, independent of deliveries: such data is
    /// lost at a retransmission timeout (§6.3).
    pub fn overdue_at(&self, sent_at: Nanos, window: Nanos) -> Nanos {
        sent_at.saturating_add(self.rtt).saturating_add(window)
    }

    /// Whether data was delivered out of order.
    pub fn has_seen_reordering(&self) -> bool {
        self.reordered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_transport::time::MILLISECOND as MS;

    /// A retransmission is delivered before the original data, which is therefore not lost. After a
    /// further delivery of original data RACK works as usual.
    #[test]
    fn after_a_spurious_timeout_what_went_again_reports_nothing() {
        let sent = |at: u64, number| Transmission {
            sent_at: at * MS,
            number,
        };
        let mut rack = Rack::default();
        rack.on_delivered(50 * MS, sent(0, 0), false);
        rack.on_delivered(1_100 * MS, sent(1_000, 1), true);
        assert_eq!(rack.judge(1_100 * MS, sent(0, 2), 0), RackDecision::Lost);
        rack.on_spurious_timeout();
        assert_eq!(rack.judge(1_100 * MS, sent(0, 2), 0), RackDecision::Unknown);
        rack.on_delivered(1_110 * MS, sent(0, 3), false);
        assert_eq!(rack.judge(1_110 * MS, sent(0, 2), 0), RackDecision::Lost);
        assert_eq!(rack.judge(1_110 * MS, sent(0, 4), 0), RackDecision::Unknown);
    }

    fn sent(at: Nanos, number: u64) -> Transmission {
        Transmission {
            sent_at: at * MS,
            number,
        }
    }

    /// Four segments 1 ms apart, round trip 100 ms; segment 1 is not delivered.
    #[test]
    fn a_segment_sent_before_a_delivered_one_is_lost_after_a_quarter_of_the_rtt() {
        let mut rack = Rack::default();
        assert_eq!(rack.judge(0, sent(0, 1), 0), RackDecision::Unknown);
        rack.on_delivered(100 * MS, sent(0, 0), false);
        assert_eq!(rack.judge(100 * MS, sent(1, 1), 0), RackDecision::Unknown);
        rack.on_delivered(102 * MS, sent(2, 2), false);
        let window = rack.window(false, 1, Some(100 * MS));
        assert_eq!(window, 25 * MS);
        // 1 + 100 + 25.
        assert_eq!(
            rack.judge(102 * MS, sent(1, 1), window),
            RackDecision::LostAt(126 * MS)
        );
        assert_eq!(rack.judge(126 * MS, sent(1, 1), window), RackDecision::Lost);
        assert_eq!(
            rack.judge(200 * MS, sent(3, 3), window),
            RackDecision::Unknown
        );
        // With three segments reported, or in a recovery, the window is 0.
        assert_eq!(rack.window(false, 3, Some(100 * MS)), 0);
        assert_eq!(rack.window(true, 0, Some(100 * MS)), 0);
        assert_eq!(rack.judge(102 * MS, sent(1, 1), 0), RackDecision::Lost);
    }

    #[test]
    fn of_what_went_at_once_the_number_decides() {
        let mut rack = Rack::default();
        rack.on_delivered(100 * MS, sent(0, 5), false);
        assert_eq!(rack.judge(100 * MS, sent(0, 4), 0), RackDecision::Lost);
        assert_eq!(rack.judge(100 * MS, sent(0, 6), 0), RackDecision::Unknown);
    }

    #[test]
    fn a_retransmission_that_is_answered_too_soon_says_nothing() {
        let mut rack = Rack::default();
        rack.on_delivered(100 * MS, sent(0, 0), false);
        // Retransmitted at 110 ms, acknowledged at 120 ms: the acknowledgement is for the first
        // transmission.
        rack.on_delivered(120 * MS, sent(110, 1), true);
        assert_eq!(rack.judge(120 * MS, sent(105, 2), 0), RackDecision::Unknown);
        rack.on_delivered(215 * MS, sent(112, 1), true);
        assert_eq!(rack.judge(215 * MS, sent(105, 2), 0), RackDecision::Lost);
        assert!(!rack.has_seen_reordering());
    }

    #[test]
    fn the_window_stays_once_reordering_was_seen_and_widens_with_duplicates() {
        let mut rack = Rack::default();
        rack.on_delivered(100 * MS, sent(0, 2), false);
        rack.on_delivered(104 * MS, sent(0, 1), false);
        assert!(rack.has_seen_reordering());
        let window = |rack: &Rack| rack.window(true, 9, Some(90 * MS));
        assert_eq!(window(&rack), 25 * MS);
        rack.on_duplicate(3, 10);
        rack.on_duplicate(9, 12); // the same round
        assert_eq!(window(&rack), 50 * MS);
        rack.on_duplicate(10, 20);
        rack.on_duplicate(20, 30);
        assert_eq!(window(&rack), 90 * MS, "at most the smoothed round trip");
        (0..15).for_each(|_| rack.on_recovery_end());
        assert_eq!(window(&rack), 90 * MS);
        rack.on_recovery_end();
        assert_eq!(window(&rack), 25 * MS);
    }
}
