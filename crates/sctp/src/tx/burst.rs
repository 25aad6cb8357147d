//! Burst limit: maximum number of packets per send opportunity.

use anabranch_transport::Nanos;

use super::Sender;
use crate::profile::MaxBurst;

/// Packet counters of one send opportunity (RFC 9260 §6.1 D).
#[derive(Debug, Default)]
pub(super) struct Burst {
    pub(super) packets: u32,
    /// Number of packets allowed on this opportunity.
    pub(super) allowed: u32,
    /// Whether the caller has taken all packets that could be sent on this opportunity.
    pub(super) taken_out: bool,
    /// Whether the limit is active; used only with
    /// [`MaxBurst::AfterFastRetransmit`](crate::profile::MaxBurst::AfterFastRetransmit).
    pub(super) armed: bool,
    /// Whether the limit was reached while more data could be sent. No data is then sent before the
    /// next SACK.
    pub(super) stopped: bool,
    pub(super) began: Nanos,
    /// Whether the user has queued a message, which is a separate opportunity at a later time.
    pub(super) message_given: bool,
    /// Whether retransmissions count towards the opportunity of the next SACK: after a timeout, and
    /// while chunks are still marked. Used only with
    /// [`MaxBurst::AfterFastRetransmit`](crate::profile::MaxBurst::AfterFastRetransmit).
    pub(super) carried: bool,
    /// Whether retransmissions were sent on this opportunity.
    pub(super) retransmitting: bool,
}

impl Burst {
    /// Starts a new send opportunity at `now`.
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

    /// Permits `packets` more packets because of a SACK. If several SACKs are processed before data
    /// can be sent, the packets that they permit are added.
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

    /// Number of packets allowed by a SACK that newly acknowledged `newly_acked` packets: Max.Burst
    /// for every two of them. Usually a receiver acknowledges every second packet (RFC 9260 §6.2),
    /// but a receiver that processes batches acknowledges many packets by one SACK. Max.Burst
    /// limits the packets sent in one burst for two acknowledged packets, not the packets in flight
    /// (§6.1 D).
    pub(super) fn burst_for(&self, newly_acked: u32) -> u32 {
        self.profile
            .max_burst
            .saturating_mul((newly_acked / 2).max(1))
    }

    /// Called when a SACK acknowledged `packets` packets: new data is no longer blocked, and a
    /// burst is allowed.
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

    /// Starts a separate opportunity when pacing permits the next packet, because paced packets are
    /// no burst, even if no SACK arrives between them.
    pub(crate) fn on_pacing_timeout(&mut self, now: Nanos) {
        if self.profile.max_burst_applies == MaxBurst::EachSack {
            self.burst.restart(now);
        }
    }

    /// Records that the caller has taken all packets that could be sent.
    pub(crate) fn taken_out(&mut self) {
        self.burst.taken_out = true;
    }
}
