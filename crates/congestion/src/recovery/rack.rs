//! RACK (RFC 8985 §6): data is lost if data that was sent sufficiently later has been delivered.
//!
//! Losses are detected by time, and not by the number of duplicate acknowledgements. The loss of a
//! retransmission is therefore detected like any other loss, and reordered data has some time to
//! arrive. The sender keeps the data in flight in the order of transmission, and calls
//! [`Rack::judge`] for each segment.

use anabranch_transport::Nanos;
use anabranch_transport::time::SECOND;

use super::windowed_min::WindowedMin;

/// If at least this many segments are reported above a gap, and no reordering was seen, the
/// reordering window is 0 (DupThresh).
pub const DUPLICATE_THRESHOLD: u32 = 3;
/// Number of recoveries after which a widened window is reset (RFC 8985 §6.2 step 4).
const PERSISTENCE: u32 = 16;
/// Minimum time for which a minimum round-trip time is valid, nanoseconds.
const MIN_RTT_SPAN: Nanos = 300 * SECOND;

/// One transmission of a chunk or segment. Transmissions are ordered by time (RACK_sent_after).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RackTransmission {
    /// Transmission time, nanoseconds.
    pub sent_at: Nanos,
    /// Number that orders transmissions at the same time: the one with the higher number counts as
    /// sent later.
    pub number: u64,
}

/// Decision about data that is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RackDecision {
    /// It is unknown whether the data is lost, because no data sent later has been delivered.
    Unknown,
    /// The data is lost unless it is delivered by this time, nanoseconds.
    LostAt(Nanos),
    /// The data is lost.
    Lost,
}

/// State of RACK for one path.
#[derive(Clone, Debug)]
pub struct Rack {
    /// Latest transmission among the delivered data (RACK.xmit_ts, RACK.end_seq), and its
    /// round-trip time (RACK.rtt).
    newest: Option<RackTransmission>,
    rtt: Nanos,
    least_rtt: WindowedMin,
    /// Highest delivered number (RACK.fack).
    highest: u64,
    reordered: bool,
    /// RACK.reo_wnd_mult, and the number of further recoveries for which it is valid.
    multiplier: u32,
    persistence: u32,
    /// Number that ends the round in which a duplicate was reported (RACK.dsack_round).
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
    /// Records that `sent` was delivered; the acknowledgement that arrived at `now` is the first to
    /// report it (steps 1 to 3). `again`: it was a retransmission.
    pub fn on_delivered(&mut self, now: Nanos, sent: RackTransmission, again: bool) {
        let rtt = now.saturating_sub(sent.sent_at);
        if again {
            // The time is shorter than any round trip, so the acknowledgement is for an earlier
            // transmission.
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

    /// Records that the receiver reports a duplicate, so that a retransmission was spurious. All
    /// data below `acknowledged` is acknowledged, and `next` is the number of the next new data.
    /// The reordering window is widened at most once per round (step 4).
    pub fn on_duplicate(&mut self, acknowledged: u64, next: u64) {
        if self.round.is_none_or(|round| acknowledged >= round) {
            self.round = Some(next);
            self.multiplier = self.multiplier.saturating_add(1);
            self.persistence = PERSISTENCE;
        }
    }

    /// Records that a timeout was spurious: data that was sent before the timeout is still in
    /// flight, even if data sent later was delivered. The state of the data in flight is unknown
    /// until more of it is delivered.
    pub fn on_spurious_timeout(&mut self) {
        self.newest = None;
    }

    /// Records the end of a recovery, either a fast recovery or one after a timeout.
    pub fn on_recovery_end(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
        if self.persistence == 0 {
            self.multiplier = 1;
        }
    }

    /// Reordering window (step 4), nanoseconds: time by which a segment may arrive later than data
    /// that was sent after it. `reported` is the number of segments reported above the cumulative
    /// acknowledgement.
    pub fn window(&self, recovering: bool, reported: u32, srtt: Option<Nanos>) -> Nanos {
        if !self.reordered && (recovering || reported >= DUPLICATE_THRESHOLD) {
            return 0;
        }
        let quarter = self.least_rtt.least().unwrap_or(0) / 4;
        let window = quarter.saturating_mul(self.multiplier.into());
        window.min(srtt.unwrap_or(window))
    }

    /// Decides about data that was sent at `sent`, with the given reordering window (step 5).
    pub fn judge(&self, now: Nanos, sent: RackTransmission, window: Nanos) -> RackDecision {
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

    /// Time at which data sent at `sent_at` is overdue, whatever has been delivered. Such data is
    /// lost at a retransmission timeout (§6.3).
    pub fn overdue_at(&self, sent_at: Nanos, window: Nanos) -> Nanos {
        sent_at.saturating_add(self.rtt).saturating_add(window)
    }

    /// Whether any data was delivered out of order.
    pub fn has_seen_reordering(&self) -> bool {
        self.reordered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_transport::time::MILLISECOND as MS;

    /// After a spurious timeout, the delivery of a retransmission does not show that data sent
    /// before the timeout is lost, because that data is still in flight. When more of it is
    /// delivered, RACK works as usual.
    #[test]
    fn after_a_spurious_timeout_what_went_again_reports_nothing() {
        let sent = |at: u64, number| RackTransmission {
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

    fn sent(at: Nanos, number: u64) -> RackTransmission {
        RackTransmission {
            sent_at: at * MS,
            number,
        }
    }

    /// Four segments are sent 1 ms apart, with a round trip of 100 ms, and segment 1 is not
    /// delivered.
    #[test]
    fn a_segment_sent_before_a_delivered_one_is_lost_after_a_quarter_of_the_rtt() {
        let mut rack = Rack::default();
        assert_eq!(rack.judge(0, sent(0, 1), 0), RackDecision::Unknown);
        rack.on_delivered(100 * MS, sent(0, 0), false);
        assert_eq!(rack.judge(100 * MS, sent(1, 1), 0), RackDecision::Unknown);
        rack.on_delivered(102 * MS, sent(2, 2), false);
        let window = rack.window(false, 1, Some(100 * MS));
        assert_eq!(window, 25 * MS);
        // The time is 1 ms + 100 ms + a quarter of 100 ms.
        assert_eq!(
            rack.judge(102 * MS, sent(1, 1), window),
            RackDecision::LostAt(126 * MS)
        );
        assert_eq!(rack.judge(126 * MS, sent(1, 1), window), RackDecision::Lost);
        assert_eq!(
            rack.judge(200 * MS, sent(3, 3), window),
            RackDecision::Unknown
        );
        // If three segments are reported, or in a recovery, the window is 0.
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
        // The segment was retransmitted at 110 ms and acknowledged at 120 ms, so the
        // acknowledgement is for the first transmission.
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
