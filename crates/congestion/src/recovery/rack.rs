//! RACK: what was sent well before something that has arrived is lost (RFC 8985 §6).
//!
//! Time decides, not the count of what overtook it. So the loss of a retransmission is found like any other, and data that
//! the network reorders is given a while to arrive. The sender keeps what is in flight in the order of sending, and asks
//! for a verdict on each.

use anabranch_transport::Nanos;
use anabranch_transport::time::SECOND;

use super::windowed_min::WindowedMin;

/// Segments reported beyond a hole after which nothing is waited for, until reordering was seen (DupThresh).
pub const DUPLICATE_THRESHOLD: u32 = 3;
/// Recoveries after which a widened window is narrow again (RFC 8985 §6.2 step 4).
const PERSISTENCE: u32 = 16;
/// How long a least round-trip time counts at least.
const LEAST_RTT_SPAN: Nanos = 300 * SECOND;

/// One sending of one chunk or segment. The order is that of sending (RACK_sent_after).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transmission {
    /// When it went.
    pub sent_at: Nanos,
    /// Its number, which decides between those that went at once.
    pub number: u64,
}

/// What is thought of something in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was sent after all that has arrived: nothing is known.
    Unknown,
    /// It is lost, if it has not arrived by then.
    LostAt(Nanos),
    /// It is lost.
    Lost,
}

/// What RACK keeps of one path.
#[derive(Clone, Debug)]
pub struct Rack {
    /// The last sent of what has arrived (RACK.xmit_ts, RACK.end_seq), and its round-trip time (RACK.rtt).
    newest: Option<Transmission>,
    rtt: Nanos,
    least_rtt: WindowedMin,
    /// The highest number that has arrived (RACK.fack).
    highest: u64,
    reordered: bool,
    /// RACK.reo_wnd_mult, and the recoveries that it lasts.
    multiplier: u32,
    persistence: u32,
    /// A round in which a duplicate was reported ends with this number (RACK.dsack_round).
    round: Option<u64>,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            newest: None,
            rtt: 0,
            least_rtt: WindowedMin::new(LEAST_RTT_SPAN),
            highest: 0,
            reordered: false,
            multiplier: 1,
            persistence: 0,
            round: None,
        }
    }
}

impl Rack {
    /// `sent` has arrived, as an acknowledgement at `now` tells for the first time; `again`: it had been sent before (steps
    /// 1 to 3).
    pub fn on_delivered(&mut self, now: Nanos, sent: Transmission, again: bool) {
        let rtt = now.saturating_sub(sent.sent_at);
        if again {
            // Sooner than any round trip: it answers an earlier sending.
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

    /// The receiver tells that something came twice, at a time when all below `acknowledged` was acknowledged and `next` is
    /// the number of the next new data: what was sent again had not been lost. The window widens once a round (step 4).
    pub fn on_duplicate(&mut self, acknowledged: u64, next: u64) {
        if self.round.is_none_or(|round| acknowledged >= round) {
            self.round = Some(next);
            self.multiplier = self.multiplier.saturating_add(1);
            self.persistence = PERSISTENCE;
        }
    }

    /// A timeout was spurious: what was sent before it is on its way, whatever was sent after it has arrived. Nothing is known of what is in flight
    /// until more of it arrives.
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

    /// The reordering window (step 4): how much later than what was sent after it something may arrive. `reported` segments
    /// were reported beyond the cumulative point.
    pub fn window(&self, recovering: bool, reported: u32, srtt: Option<Nanos>) -> Nanos {
        if !self.reordered && (recovering || reported >= DUPLICATE_THRESHOLD) {
            return 0;
        }
        let quarter = self.least_rtt.least().unwrap_or(0) / 4;
        let window = quarter.saturating_mul(self.multiplier.into());
        window.min(srtt.unwrap_or(window))
    }

    /// Judges what is in flight since `sent` by a reordering window (step 5).
    pub fn judge(&self, now: Nanos, sent: Transmission, window: Nanos) -> Verdict {
        match self.newest {
            Some(newest) if sent < newest => {
                let at = self.overdue_at(sent.sent_at, window);
                if at <= now {
                    Verdict::Lost
                } else {
                    Verdict::LostAt(at)
                }
            }
            _ => Verdict::Unknown,
        }
    }

    /// When something sent at `sent_at` is overdue, whatever has arrived: at a retransmission timeout that is lost (§6.3).
    pub fn overdue_at(&self, sent_at: Nanos, window: Nanos) -> Nanos {
        sent_at.saturating_add(self.rtt).saturating_add(window)
    }

    /// Data was seen to arrive in another order than it was sent in.
    pub fn has_seen_reordering(&self) -> bool {
        self.reordered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_transport::time::MILLISECOND as MS;

    /// A retransmission arrived before what was sent first: that is not lost for it. Once more of that arrives, it tells as ever.
    #[test]
    fn after_a_spurious_timeout_what_went_again_tells_nothing() {
        let sent = |at: u64, number| Transmission {
            sent_at: at * MS,
            number,
        };
        let mut rack = Rack::default();
        rack.on_delivered(50 * MS, sent(0, 0), false);
        rack.on_delivered(1_100 * MS, sent(1_000, 1), true);
        assert_eq!(rack.judge(1_100 * MS, sent(0, 2), 0), Verdict::Lost);
        rack.on_spurious_timeout();
        assert_eq!(rack.judge(1_100 * MS, sent(0, 2), 0), Verdict::Unknown);
        rack.on_delivered(1_110 * MS, sent(0, 3), false);
        assert_eq!(rack.judge(1_110 * MS, sent(0, 2), 0), Verdict::Lost);
        assert_eq!(rack.judge(1_110 * MS, sent(0, 4), 0), Verdict::Unknown);
    }

    fn sent(at: Nanos, number: u64) -> Transmission {
        Transmission {
            sent_at: at * MS,
            number,
        }
    }

    /// Four segments 1 ms apart, round trip 100 ms; 1 does not come.
    #[test]
    fn what_was_sent_before_what_arrived_is_lost_a_quarter_of_a_round_trip_later() {
        let mut rack = Rack::default();
        assert_eq!(rack.judge(0, sent(0, 1), 0), Verdict::Unknown);
        rack.on_delivered(100 * MS, sent(0, 0), false);
        assert_eq!(rack.judge(100 * MS, sent(1, 1), 0), Verdict::Unknown);
        rack.on_delivered(102 * MS, sent(2, 2), false);
        let window = rack.window(false, 1, Some(100 * MS));
        assert_eq!(window, 25 * MS);
        // 1 + 100 + 25.
        assert_eq!(
            rack.judge(102 * MS, sent(1, 1), window),
            Verdict::LostAt(126 * MS)
        );
        assert_eq!(rack.judge(126 * MS, sent(1, 1), window), Verdict::Lost);
        assert_eq!(rack.judge(200 * MS, sent(3, 3), window), Verdict::Unknown);
        // With three reported, or in a recovery, nothing is waited for.
        assert_eq!(rack.window(false, 3, Some(100 * MS)), 0);
        assert_eq!(rack.window(true, 0, Some(100 * MS)), 0);
        assert_eq!(rack.judge(102 * MS, sent(1, 1), 0), Verdict::Lost);
    }

    #[test]
    fn of_what_went_at_once_the_number_decides() {
        let mut rack = Rack::default();
        rack.on_delivered(100 * MS, sent(0, 5), false);
        assert_eq!(rack.judge(100 * MS, sent(0, 4), 0), Verdict::Lost);
        assert_eq!(rack.judge(100 * MS, sent(0, 6), 0), Verdict::Unknown);
    }

    #[test]
    fn a_retransmission_that_is_answered_too_soon_says_nothing() {
        let mut rack = Rack::default();
        rack.on_delivered(100 * MS, sent(0, 0), false);
        // Sent again at 110 ms, acknowledged at 120: that was the first sending.
        rack.on_delivered(120 * MS, sent(110, 1), true);
        assert_eq!(rack.judge(120 * MS, sent(105, 2), 0), Verdict::Unknown);
        rack.on_delivered(215 * MS, sent(112, 1), true);
        assert_eq!(rack.judge(215 * MS, sent(105, 2), 0), Verdict::Lost);
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
