//! Timing of acknowledgements, by the fixed rules of RFC 5681 §4.2 or by the [adaptive](adaptive)
//! rules of Linux.

mod adaptive;

use anabranch_transport::Nanos;

use crate::profile::{DelayedAckRules, Profile};
use adaptive::Adaptive;

/// Properties of a segment whose data is in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InOrder {
    /// Data bytes in the segment.
    pub length: u64,
    /// Number of bytes that became readable, including buffered data after a gap that was closed.
    pub filled: u64,
    /// A gap exists, or existed before this segment closed it.
    pub was_gap: bool,
    /// `RCV.WND` before the segment arrived, bytes.
    pub window: u64,
    /// An acknowledgement sent now would advertise at least `window` bytes.
    pub window_kept: bool,
}

/// State of delayed acknowledgements: whether one is due, and when the next one must be sent.
#[derive(Debug)]
pub(crate) struct Acknowledger {
    delayed: bool,
    delay: Nanos,
    /// Data bytes in a full segment.
    full: u64,
    /// An acknowledgement must be sent now.
    due: bool,
    /// Bytes received in order since the last acknowledgement.
    unacknowledged: u64,
    at: Option<Nanos>,
    adaptive: Option<Adaptive>,
}

impl Acknowledger {
    pub(crate) fn new(profile: &Profile, full: u64) -> Self {
        let delay = profile.delayed_ack_timeout.0;
        let adapts = profile.delayed_ack && profile.delayed_ack_rules == DelayedAckRules::Linux;
        Self {
            delayed: profile.delayed_ack,
            delay,
            full,
            due: false,
            unacknowledged: 0,
            at: None,
            adaptive: adapts.then(|| Adaptive::new(delay)),
        }
    }

    /// Applies the result of the handshake: a full segment has `full` data bytes.
    pub(crate) fn settle(&mut self, full: u64) {
        self.full = full;
    }

    /// Whether the rules depend on [measured times](Self::update_times), as those of Linux do.
    pub(crate) fn adapts(&self) -> bool {
        self.adaptive.is_some()
    }

    /// Updates the smoothed round-trip time and the RTO, as measured by the sending side of this
    /// end.
    pub(crate) fn update_times(&mut self, srtt: Option<Nanos>, rto: Nanos) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.update_times(srtt, rto);
        }
    }

    /// Processes data in order. An acknowledgement is due immediately if a gap exists or was
    /// closed; otherwise with every second full segment, or when the timer expires.
    pub(crate) fn in_order(&mut self, now: Nanos, data: &InOrder) {
        self.unacknowledged += data.filled;
        let (second, delay) = match &mut self.adaptive {
            Some(adaptive) => {
                adaptive.on_data(now, data.length, data.window);
                let beyond_one = self.unacknowledged > adaptive.full_segment();
                let second = adaptive.is_quick() || beyond_one && data.window_kept;
                (second, adaptive.delay())
            }
            None => (self.unacknowledged >= 2 * self.full, self.delay),
        };
        if !self.delayed || data.was_gap || second {
            self.due = true;
            return;
        }
        match self.at {
            // The timer would expire soon, so the acknowledgement is sent now.
            Some(at) if self.adaptive.is_some() && at <= now + delay / 4 => self.due = true,
            Some(at) => self.at = Some(at.min(now + delay)),
            None => self.at = Some(now + delay),
        }
    }

    /// Fast path of [`Self::in_order`] for the fixed rules, if no out-of-order data is buffered.
    #[inline(always)]
    pub(crate) fn in_order_fast_path(&mut self, now: Nanos, length: u64) {
        debug_assert!(!self.adapts(), "that was asked");
        self.unacknowledged += length;
        if !self.delayed || self.unacknowledged >= 2 * self.full {
            self.due = true;
            return;
        }
        let at = now + self.delay;
        self.at = Some(self.at.map_or(at, |it| it.min(at)));
    }

    /// Records that the user has read data; `left` bytes in order remain unread.
    pub(crate) fn on_read(&mut self, left: u64) {
        let Some(adaptive) = &self.adaptive else {
            return;
        };
        let beyond_one = self.unacknowledged > adaptive.full_segment();
        let small = left == 0 && adaptive.answers_small();
        if self.unacknowledged > 0 && (beyond_one || small) {
            self.due = true;
        }
    }

    /// Records that a segment was a duplicate or did not fit in the window; `window` is `RCV.WND`.
    pub(crate) fn repeated(&mut self, window: u64) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.begin_quick(window);
        }
    }

    /// Records that this end sends a segment with data.
    pub(crate) fn on_data_sent(&mut self, now: Nanos) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.on_data_sent(now);
        }
    }

    /// Records that this end sends a segment with an acknowledgement.
    pub(crate) fn acknowledged(&mut self) {
        if let Some(adaptive) = &mut self.adaptive
            && (self.due || self.unacknowledged > 0)
        {
            adaptive.on_acknowledged();
        }
        self.due = false;
        self.unacknowledged = 0;
        self.at = None;
    }

    /// Makes an acknowledgement due now.
    pub(crate) fn demand(&mut self) {
        self.due = true;
    }

    /// Whether an acknowledgement is due.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// Whether received data is not yet acknowledged, even if no acknowledgement is due.
    pub(crate) fn is_owed(&self) -> bool {
        self.due || self.unacknowledged > 0
    }

    /// Expiry time of the timer for delayed acknowledgements.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        self.at
    }

    /// Makes an acknowledgement due if the timer has expired at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Nanos) {
        if self.at.is_some_and(|at| at <= now) {
            self.at = None;
            self.due = true;
            if let Some(adaptive) = &mut self.adaptive {
                adaptive.on_timeout();
            }
        }
    }

    /// Stops the timer and cancels any due acknowledgement.
    pub(crate) fn stop(&mut self) {
        self.at = None;
        self.due = false;
    }
}

#[cfg(test)]
mod tests {
    use anabranch_transport::time::MILLISECOND as MS;

    use super::*;

    /// An acknowledger with the rules of Linux, segments of 1000 bytes, an RTT of 100 ms and an RTO
    /// of 300 ms.
    fn linux() -> Acknowledger {
        let mut acks = Acknowledger::new(&Profile::linux(), 1000);
        acks.update_times(Some(100 * MS), 300 * MS);
        acks
    }

    /// Processes `length` bytes that arrive at `now` ms and are not read. Returns whether they are
    /// acknowledged immediately; if so, the acknowledgement counts as sent.
    fn comes(acks: &mut Acknowledger, now: u64, length: u64) -> bool {
        acks.in_order(
            now * MS,
            &InOrder {
                length,
                filled: length,
                was_gap: false,
                window: 64_000,
                window_kept: true,
            },
        );
        goes(acks)
    }

    fn goes(acks: &mut Acknowledger) -> bool {
        let due = acks.is_due();
        if due {
            acks.acknowledged();
        }
        due
    }

    /// Lets the timer expire, sends the delayed acknowledgement, and returns its time, ms.
    fn fires(acks: &mut Acknowledger) -> u64 {
        let at = acks.deadline().expect("a timer runs");
        acks.handle_timeout(at);
        assert!(goes(acks));
        at / MS
    }

    #[test]
    fn sixteen_quick_acknowledgements_then_every_second_segment() {
        let mut acks = linux();
        let told: Vec<bool> = (0..20).map(|at| comes(&mut acks, at, 1000)).collect();
        let mut expected = vec![true; 16];
        expected.extend([false, true, false, true]);
        assert_eq!(told, expected);
    }

    /// A receive window of six segments allows three quick acknowledgements, one for each pair of
    /// segments.
    #[test]
    fn a_small_window_gives_fewer_quick_acknowledgements() {
        let mut acks = linux();
        let told: Vec<bool> = (0..5)
            .map(|at| {
                let data = InOrder {
                    length: 1000,
                    filled: 1000,
                    was_gap: false,
                    window: 6_000,
                    window_kept: true,
                };
                acks.in_order(at * MS, &data);
                goes(&mut acks)
            })
            .collect();
        assert_eq!(told, [true, true, true, false, true]);
    }

    /// An acknowledgement is due once one byte more than a full segment has arrived. If the
    /// acknowledgement would have to advertise a smaller window, it is due only after the user has
    /// read.
    #[test]
    fn more_than_a_segment_is_acknowledged_once_there_is_space_for_more() {
        let mut acks = quiet();
        assert!(!comes(&mut acks, 101, 1000));
        assert!(comes(&mut acks, 102, 1));
        let data = InOrder {
            length: 1000,
            filled: 1000,
            was_gap: false,
            window: 64_000,
            window_kept: false,
        };
        acks.in_order(103 * MS, &data);
        acks.in_order(104 * MS, &data);
        assert!(!goes(&mut acks));
        acks.on_read(500);
        assert!(goes(&mut acks));
    }

    /// Acknowledger that has used up its 16 quick acknowledgements, one per ms; the last segment
    /// arrived at 100 ms.
    fn quiet() -> Acknowledger {
        let mut acks = linux();
        for at in 85..=100 {
            assert!(comes(&mut acks, at, 1000));
        }
        acks
    }

    /// The initial delay is 40 ms. After a gap of 30 ms the delay is 40 / 2 + 30 = 50 ms, and after
    /// the next one 50 / 2 + 30 = 55 ms. When the timer expires, the delay doubles to 110 ms, but
    /// is limited to the RTT of 100 ms.
    #[test]
    fn the_delay_follows_the_gaps_between_segments() {
        let mut acks = quiet();
        assert!(!comes(&mut acks, 130, 400));
        assert_eq!(acks.deadline(), Some(180 * MS));
        assert!(!comes(&mut acks, 160, 400));
        // The running timer expires at 180 ms, before the new delay of 55 ms would end.
        assert_eq!(fires(&mut acks), 180);
        // The delay is 110 / 2 + 30 = 85 ms.
        assert!(!comes(&mut acks, 190, 400));
        assert_eq!(acks.deadline(), Some((190 + 85) * MS));
        assert_eq!(fires(&mut acks), 275);
        // The delay doubled to 170 ms, but is limited to the RTT of 100 ms. After a gap of 120 ms
        // the delay is 85 + 120 = 205 ms.
        assert!(!comes(&mut acks, 310, 400));
        assert_eq!(acks.deadline(), Some(410 * MS));
        acks.update_times(Some(250 * MS), 900 * MS);
        assert_eq!(fires(&mut acks), 410);
        assert!(!comes(&mut acks, 510, 400));
        assert_eq!(acks.deadline(), Some(710 * MS), "200 ms at most");
    }

    /// A gap longer than the RTO counts as a pause, after which the peer starts slowly and needs 16
    /// quick acknowledgements.
    #[test]
    fn after_a_pause_acknowledgements_are_quick_again() {
        let mut acks = quiet();
        for _ in 0..16 {
            assert!(comes(&mut acks, 401, 1000));
        }
        assert!(!comes(&mut acks, 401, 1000));
    }

    #[test]
    fn a_duplicate_segment_restarts_quick_acknowledgements() {
        let mut acks = quiet();
        acks.repeated(64_000);
        acks.demand();
        assert!(goes(&mut acks));
        for at in 102..117 {
            assert!(comes(&mut acks, at, 1000), "{at}");
        }
        assert!(!comes(&mut acks, 117, 1000));
    }

    /// Data of less than a segment is acknowledged when it is read. If this end usually replies to
    /// the data that it reads, the acknowledgement waits for the reply.
    #[test]
    fn an_answer_carries_the_acknowledgement() {
        let mut acks = quiet();
        assert!(!comes(&mut acks, 110, 100));
        acks.on_read(0);
        assert!(goes(&mut acks));
        // The reply is sent 5 ms after the request arrived, within the delay of 40 ms.
        acks.on_data_sent(115 * MS);
        assert!(!comes(&mut acks, 210, 100));
        acks.on_read(0);
        assert!(!goes(&mut acks));
        // No reply was sent within the delay, so this end no longer counts as replying.
        assert_eq!(fires(&mut acks), 250);
        assert!(!comes(&mut acks, 260, 100));
        acks.on_read(0);
        assert!(goes(&mut acks));
    }

    /// Segments of 700 bytes count as full if the peer sends no larger ones. The receiver assumes
    /// this from the second consecutive segment of this size on.
    #[test]
    fn a_full_segment_is_what_the_peer_sends() {
        let mut acks = quiet();
        assert!(!comes(&mut acks, 101, 700));
        assert!(comes(&mut acks, 102, 700), "1400 bytes");
        assert!(!comes(&mut acks, 103, 700));
        acks.on_read(0);
        assert!(!goes(&mut acks), "no small segment");
        assert!(comes(&mut acks, 104, 700));
    }
}
