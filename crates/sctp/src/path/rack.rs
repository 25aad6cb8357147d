//! RACK-TLP state of one path (RFC 8985), if enabled.

use std::collections::VecDeque;

use anabranch_congestion::recovery::{Rack, RackDecision, RackTransmission, TailProbe};
use anabranch_transport::Nanos;
use anabranch_wire::serial::Tsn;

/// Maximum number of overdue transmissions examined to find the newest one in flight.
const MAX_EXAMINED: usize = 64;

/// One transmission of a chunk on the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub tsn: Tsn,
    pub transmission: RackTransmission,
}

/// RACK state of a path: times and order of transmissions.
#[derive(Debug, Default)]
pub(crate) struct PathRack {
    pub rack: Rack,
    pub tail: TailProbe,
    /// Transmissions in order. Entries that are no longer in flight are removed from the front.
    pub sent: VecDeque<Sending>,
    /// Number of packets reported by Gap Ack Blocks and not yet passed by the cumulative TSN.
    pub reported: u32,
    /// Expiration time of the reordering timer.
    pub deadline: Option<Nanos>,
    /// Time at which cwnd was last reduced for a loss.
    pub cut_at: Nanos,
    /// Set by a timeout: number of the first chunk that is sent after it for the first time. Until
    /// all earlier chunks are acknowledged, their transmissions before the timeout count as lost by
    /// the timeout.
    pub timeout_until: Option<u64>,
    /// Whether a fast or timeout recovery was in progress after the last SACK.
    pub recovering: bool,
}

impl PathRack {
    /// Expiration time of the reordering timer or the tail loss probe timer, the earlier of the
    /// two.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let timers = [self.deadline, self.tail.deadline()];
        timers.into_iter().flatten().min()
    }

    /// Starts the reordering timer for the newest transmission that later arrivals may still show
    /// to be lost (RFC 8985 §6.2 step 5). `flies` checks whether a transmission is in flight. The
    /// timer expires not before `oldest`, when the oldest transmission is overdue, because an
    /// earlier timer would find no loss.
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
