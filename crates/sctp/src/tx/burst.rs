//! How many packets one occasion to send lets go.

use anabranch_transport::Nanos;

use super::Sender;
use crate::profile::MaxBurst;

/// Counts the packets of one occasion to send (RFC 9260 §6.1 D).
#[derive(Debug, Default)]
pub(super) struct Burst {
    pub(super) packets: u32,
    /// Packets that may go on this occasion.
    pub(super) allowed: u32,
    /// The owner has taken out all that could be sent since the occasion began.
    pub(super) taken_out: bool,
    /// Under [`MaxBurst::AfterFastRetransmit`](crate::profile::MaxBurst::AfterFastRetransmit): the limit is on.
    pub(super) armed: bool,
    /// The limit was met with more to send; nothing goes before the next SACK.
    pub(super) stopped: bool,
    pub(super) began: Nanos,
    /// The user gave a message, which is an occasion of its own at a later time.
    pub(super) message_given: bool,
    /// Under [`MaxBurst::AfterFastRetransmit`](crate::profile::MaxBurst::AfterFastRetransmit): what was sent again counts towards
    /// what the next SACK lets go: after a timeout, and while more was marked than went.
    pub(super) carried: bool,
    /// Retransmissions have begun on this occasion.
    pub(super) retransmitting: bool,
}

impl Burst {
    /// A new occasion to send, at `now`.
    pub(super) fn restart(&mut self, now: Nanos) {
        let unused = self.allowed.saturating_sub(self.packets);
        *self = Burst {
            began: now,
            allowed: if self.taken_out { 0 } else { unused },
            armed: self.armed,
            packets: if self.carried { self.packets } else { 0 },
            ..Burst::default()
        };
    }

    /// A SACK is an occasion for `packets`. Several SACKs that are taken before anything can be sent are several occasions.
    pub(super) fn earn(&mut self, now: Nanos, packets: u32) {
        self.restart(now);
        self.allowed = self.allowed.saturating_add(packets);
    }
}

impl Sender {
    pub(super) fn burst_spent(&self, now: Nanos) -> bool {
        if self.burst.stopped {
            return true;
        }
        let limited = match self.profile.max_burst_applies {
            MaxBurst::Off => false,
            MaxBurst::AfterFastRetransmit => self.burst.armed,
            MaxBurst::EachSack => !(self.burst.message_given && now > self.burst.began),
        };
        limited && self.burst.packets >= self.burst.allowed.max(self.profile.max_burst)
    }

    /// Packets that a SACK lets go which has newly acknowledged so many: Max.Burst for every two. A receiver acknowledges
    /// every second packet (RFC 9260 §6.2); one that takes packets in batches answers many by one SACK, and Max.Burst bounds
    /// what goes at once for two of them, not what is in flight (§6.1 D).
    pub(super) fn burst_for(&self, newly_acked: u32) -> u32 {
        self.profile
            .max_burst
            .saturating_mul((newly_acked / 2).max(1))
    }

    /// An acknowledgement has come, of so many packets: what held new data back until then does so no more, and a burst may go.
    #[inline(always)]
    pub(super) fn let_go_on(&mut self, now: Nanos, packets: u32) {
        self.one_packet = false;
        self.gate_closed = false;
        self.timed_out = false;
        if self.profile.max_burst_applies == MaxBurst::EachSack {
            self.burst.earn(now, self.burst_for(packets));
        } else {
            self.burst.restart(now);
        }
    }

    /// Pacing lets the next packet go: an occasion of its own, because packets that keep their distance
    /// make no burst, whether a SACK comes meanwhile or not.
    pub(crate) fn on_pacing_timeout(&mut self, now: Nanos) {
        if self.profile.max_burst_applies == MaxBurst::EachSack {
            self.burst.restart(now);
        }
    }

    /// The owner has taken out all that could be sent.
    pub(crate) fn taken_out(&mut self) {
        self.burst.taken_out = true;
    }
}
