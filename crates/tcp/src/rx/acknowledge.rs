//! When text is acknowledged: by the fixed rules of RFC 5681 §4.2, or by the [adaptive](adaptive) ones of Linux.

mod adaptive;

use anabranch_transport::Nanos;

use crate::profile::{DelayedAckRules, Profile};
use adaptive::Adaptive;

/// Text that came in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InOrder {
    /// Bytes of the segment's text.
    pub length: u64,
    /// Bytes that became deliverable.
    pub filled: u64,
    /// Text was waiting beyond it.
    pub was_gap: bool,
    /// `RCV.WND` before it came, bytes.
    pub window: u64,
    /// An acknowledgement now would offer no less than that.
    pub window_kept: bool,
}

/// Whether an acknowledgement is due, and when the next will be.
#[derive(Debug)]
pub(crate) struct Acknowledger {
    delayed: bool,
    delay: Nanos,
    /// Bytes of a full segment.
    full: u64,
    /// An acknowledgement is due at once.
    due: bool,
    /// Bytes received in order since the last acknowledgement.
    unacknowledged: u64,
    at: Option<Nanos>,
    adaptive: Option<Adaptive>,
}

impl Acknowledger {
    pub fn new(profile: &Profile, full: u64) -> Self {
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

    /// What the handshake settled: a full segment has `full` bytes of text.
    pub fn settle(&mut self, full: u64) {
        self.full = full;
    }

    /// Whether [what was measured](Self::hear_times) matters.
    pub fn adapts(&self) -> bool {
        self.adaptive.is_some()
    }

    /// What this end's sender has measured.
    pub fn hear_times(&mut self, srtt: Option<Nanos>, rto: Nanos) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.hear_times(srtt, rto);
        }
    }

    /// Text came in order: acknowledged at once where a hole was or is filled, else every second full segment or when the timer says so.
    pub fn in_order(&mut self, now: Nanos, text: &InOrder) {
        self.unacknowledged += text.filled;
        let (second, delay) = match &mut self.adaptive {
            Some(adaptive) => {
                adaptive.on_text(now, text.length, text.window);
                let beyond_one = self.unacknowledged > adaptive.full_segment();
                let second = adaptive.is_quick() || beyond_one && text.window_kept;
                (second, adaptive.delay())
            }
            None => (self.unacknowledged >= 2 * self.full, self.delay),
        };
        if !self.delayed || text.was_gap || second {
            self.due = true;
            return;
        }
        match self.at {
            // The timer is about to expire anyway.
            Some(at) if self.adaptive.is_some() && at <= now + delay / 4 => self.due = true,
            Some(at) => self.at = Some(at.min(now + delay)),
            None => self.at = Some(now + delay),
        }
    }

    /// As [`Self::in_order`], by the fixed rules, of text beyond which none was waiting.
    #[inline(always)]
    pub fn in_order_plainly(&mut self, now: Nanos, length: u64) {
        debug_assert!(!self.adapts(), "that was asked");
        self.unacknowledged += length;
        if !self.delayed || self.unacknowledged >= 2 * self.full {
            self.due = true;
            return;
        }
        let at = now + self.delay;
        self.at = Some(self.at.map_or(at, |it| it.min(at)));
    }

    /// The user has read; `left` bytes in order wait to be read.
    pub fn on_read(&mut self, left: u64) {
        let Some(adaptive) = &self.adaptive else {
            return;
        };
        let beyond_one = self.unacknowledged > adaptive.full_segment();
        let small = left == 0 && adaptive.answers_small();
        if self.unacknowledged > 0 && (beyond_one || small) {
            self.due = true;
        }
    }

    /// Text came that was there, or that does not fit; `window`: `RCV.WND`.
    pub fn repeated(&mut self, window: u64) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.begin_quick(window);
        }
    }

    /// A segment with text goes.
    pub fn on_text_sent(&mut self, now: Nanos) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.on_text_sent(now);
        }
    }

    /// A segment with an acknowledgement goes.
    pub fn acknowledged(&mut self) {
        if let Some(adaptive) = &mut self.adaptive
            && (self.due || self.unacknowledged > 0)
        {
            adaptive.on_acknowledged();
        }
        self.due = false;
        self.unacknowledged = 0;
        self.at = None;
    }

    /// An acknowledgement is due at once.
    pub fn demand(&mut self) {
        self.due = true;
    }

    /// Whether an acknowledgement is due.
    pub fn is_due(&self) -> bool {
        self.due
    }

    /// Text came that no acknowledgement told of yet.
    pub fn is_owed(&self) -> bool {
        self.due || self.unacknowledged > 0
    }

    /// The timer of the delayed acknowledgement.
    pub fn deadline(&self) -> Option<Nanos> {
        self.at
    }

    /// Runs the timer.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if self.at.is_some_and(|at| at <= now) {
            self.at = None;
            self.due = true;
            if let Some(adaptive) = &mut self.adaptive {
                adaptive.on_timeout();
            }
        }
    }

    /// Stops the timer and forgets what is due.
    pub fn stop(&mut self) {
        self.at = None;
        self.due = false;
    }
}

#[cfg(test)]
mod tests {
    use anabranch_transport::time::MILLISECOND as MS;

    use super::*;

    /// A receiver by the rules of Linux, segments of 1000 bytes, a round-trip time of 100 ms and an RTO of 300 ms.
    fn linux() -> Acknowledger {
        let mut acks = Acknowledger::new(&Profile::linux(), 1000);
        acks.hear_times(Some(100 * MS), 300 * MS);
        acks
    }

    /// Text of `length` bytes comes at `now` ms, and is not read. Whether it is acknowledged at once; then that has gone.
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

    /// The delayed acknowledgement goes; when, ms.
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

    /// A window of six segments gives three: one for each second segment of it.
    #[test]
    fn a_small_window_gives_fewer_quick_acknowledgements() {
        let mut acks = linux();
        let told: Vec<bool> = (0..5)
            .map(|at| {
                let text = InOrder {
                    length: 1000,
                    filled: 1000,
                    was_gap: false,
                    window: 6_000,
                    window_kept: true,
                };
                acks.in_order(at * MS, &text);
                goes(&mut acks)
            })
            .collect();
        assert_eq!(told, [true, true, true, false, true]);
    }

    /// One byte more than a full segment is enough; while the window cannot be kept open, the user has to read first.
    #[test]
    fn more_than_a_segment_is_acknowledged_once_there_is_room_for_more() {
        let mut acks = quiet();
        assert!(!comes(&mut acks, 101, 1000));
        assert!(comes(&mut acks, 102, 1));
        let text = InOrder {
            length: 1000,
            filled: 1000,
            was_gap: false,
            window: 64_000,
            window_kept: false,
        };
        acks.in_order(103 * MS, &text);
        acks.in_order(104 * MS, &text);
        assert!(!goes(&mut acks));
        acks.on_read(500);
        assert!(goes(&mut acks));
    }

    /// A receiver that has spent its quick acknowledgements on one segment each ms; the last came at 100 ms.
    fn quiet() -> Acknowledger {
        let mut acks = linux();
        for at in 85..=100 {
            assert!(comes(&mut acks, at, 1000));
        }
        acks
    }

    /// The delay begins at 40 ms. Gaps of 30 ms: 40 / 2 + 30 = 50 where it was 40, then 50 / 2 + 30 = 55. A timer that expires doubles it, 110, and
    /// the round-trip time bounds it, 100.
    #[test]
    fn the_delay_follows_the_gaps_between_segments() {
        let mut acks = quiet();
        assert!(!comes(&mut acks, 130, 400));
        assert_eq!(acks.deadline(), Some(180 * MS));
        assert!(!comes(&mut acks, 160, 400));
        // 55 ms from now would be later than the timer that runs.
        assert_eq!(fires(&mut acks), 180);
        // 110 / 2 + 30 = 85.
        assert!(!comes(&mut acks, 190, 400));
        assert_eq!(acks.deadline(), Some((190 + 85) * MS));
        assert_eq!(fires(&mut acks), 275);
        // 170: bounded by the round-trip time. A gap of 120 ms: 85 + 120 = 205.
        assert!(!comes(&mut acks, 310, 400));
        assert_eq!(acks.deadline(), Some(410 * MS));
        acks.hear_times(Some(250 * MS), 900 * MS);
        assert_eq!(fires(&mut acks), 410);
        assert!(!comes(&mut acks, 510, 400));
        assert_eq!(acks.deadline(), Some(710 * MS), "200 ms at most");
    }

    /// A gap longer than the RTO is a pause, after which the sender starts slowly: 16 quick acknowledgements.
    #[test]
    fn after_a_pause_acknowledgements_are_quick_again() {
        let mut acks = quiet();
        for _ in 0..16 {
            assert!(comes(&mut acks, 401, 1000));
        }
        assert!(!comes(&mut acks, 401, 1000));
    }

    #[test]
    fn what_comes_twice_makes_acknowledgements_quick_again() {
        let mut acks = quiet();
        acks.repeated(64_000);
        acks.demand();
        assert!(goes(&mut acks));
        for at in 102..117 {
            assert!(comes(&mut acks, at, 1000), "{at}");
        }
        assert!(!comes(&mut acks, 117, 1000));
    }

    /// Text of less than a segment is acknowledged once it is read, unless this end answers what it reads: then it waits for an answer.
    #[test]
    fn an_answer_carries_the_acknowledgement() {
        let mut acks = quiet();
        assert!(!comes(&mut acks, 110, 100));
        acks.on_read(0);
        assert!(goes(&mut acks));
        // The answer goes 5 ms after the question; by then the delay is 40 ms.
        acks.on_text_sent(115 * MS);
        assert!(!comes(&mut acks, 210, 100));
        acks.on_read(0);
        assert!(!goes(&mut acks));
        // No answer came in time: this end does not answer any more.
        assert_eq!(fires(&mut acks), 250);
        assert!(!comes(&mut acks, 260, 100));
        acks.on_read(0);
        assert!(goes(&mut acks));
    }

    /// Segments of 700 bytes are full ones, if that is what the peer sends: the second of that size shows it.
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
