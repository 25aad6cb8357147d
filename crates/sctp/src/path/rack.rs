//! What RACK-TLP keeps of a path (RFC 8985), where it is on.

use std::collections::VecDeque;

use anabranch_congestion::recovery::{Rack, TailProbe, Transmission, Verdict};
use anabranch_transport::Nanos;
use anabranch_wire::serial::Tsn;

/// Sendings looked at for the newest that is still missing.
const MOST_LOOKED_AT: usize = 64;

/// A chunk as it went out on the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub tsn: Tsn,
    pub transmission: Transmission,
}

/// Times and order of what was sent on a path.
#[derive(Debug, Default)]
pub(crate) struct PathRack {
    pub rack: Rack,
    pub tail: TailProbe,
    /// What was sent here, in the order of sending; what is in flight no more is let go of at the front.
    pub sent: VecDeque<Sending>,
    /// Packets that Gap Ack Blocks have reported and the cumulative point has not passed.
    pub reported: u32,
    /// When the reordering timer expires.
    pub deadline: Option<Nanos>,
    /// When the window was last cut for a loss.
    pub cut_at: Nanos,
    /// After a timeout, until the chunk of this number is acknowledged: what was sent before is lost by that timeout.
    pub timeout_until: Option<u64>,
    /// A recovery, fast or after a timeout, was under way after the last SACK.
    pub recovering: bool,
}

impl PathRack {
    /// When one of the two timers expires.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let timers = [self.deadline, self.tail.deadline()];
        timers.into_iter().flatten().min()
    }

    /// Sets the reordering timer for the newest sending that may still turn out to be lost by what has arrived (RFC 8985
    /// §6.2 step 5); `flies` tells which are in flight. The oldest is overdue at `oldest`: a timer that is due before finds nothing, and
    /// would be due again at once where the clock went back between two sendings.
    pub fn start_timer(
        &mut self,
        now: Nanos,
        window: Nanos,
        oldest: Nanos,
        flies: impl Fn(&Sending) -> bool,
    ) {
        let judged =
            |it: &Sending| self.rack.judge(now, it.transmission, window) != Verdict::Unknown;
        let behind = self.sent.partition_point(judged);
        let late = self.sent.range(..behind).rev().take(MOST_LOOKED_AT);
        let newest = late.clone().find(|it| flies(it)).or(late.clone().next());
        self.deadline = newest.map(|it| {
            self.rack
                .overdue_at(it.transmission.sent_at, window)
                .max(oldest)
        });
    }
}
