//! RACK-TLP state of one path (RFC 8985), if enabled.

use std::collections::VecDeque;

use anabranch_congestion::recovery::{Rack, RackDecision, TailProbe, Transmission};
use anabranch_transport::Nanos;
use anabranch_wire::serial::Tsn;

/// Maximum number of transmissions examined for the newest missing one.
const MAX_EXAMINED: usize = 64;

/// A chunk as transmitted on the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub tsn: Tsn,
    pub transmission: Transmission,
}

/// Times and order of the transmissions on a path.
#[derive(Debug, Default)]
pub(crate) struct PathRack {
    pub rack: Rack,
    pub tail: TailProbe,
    /// Transmissions in order. Transmissions that are no longer in flight are removed at the front.
    pub sent: VecDeque<Sending>,
    /// Packets reported by gap ack blocks that the cumulative TSN has not passed.
    pub reported: u32,
    /// When the reordering timer expires.
    pub deadline: Option<Nanos>,
    /// When the window was last reduced for a loss.
    pub cut_at: Nanos,
    /// Set by a timeout until the chunk with this number is acknowledged: earlier transmissions are
    /// lost by that timeout.
    pub timeout_until: Option<u64>,
    /// A recovery, fast or after a timeout, was under way after the last SACK.
    pub recovering: bool,
}

impl PathRack {
    /// When the earlier of the two timers expires.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let timers = [self.deadline, self.tail.deadline()];
        timers.into_iter().flatten().min()
    }

    /// Starts the reordering timer for the newest transmission that may still be lost according to
    /// later arrivals (RFC 8985 §6.2 step 5); `flies` checks whether one is in flight. The oldest
    /// transmission is overdue at `oldest`: an earlier timer would find no loss, and would
    /// immediately be due again if the clock went back between two transmissions.
    pub fn start_timer(
        &mut self,
        now: Nanos,
        window: Nanos,
        oldest: Nanos,
        flies: impl Fn(&Sending) -> bool,
    ) {
        let judged =
            |it: &Sending| self.rack.judge(now, it.transmission, window) != RackDecision::Unknown;
        let behind = self.sent.partition_point(judged);
        let late = self.sent.range(..behind).rev().take(MAX_EXAMINED);
        let newest = late.clone().find(|it| flies(it)).or(late.clone().next());
        self.deadline = newest.map(|it| {
            self.rack
                .overdue_at(it.transmission.sent_at, window)
                .max(oldest)
        });
    }
}
