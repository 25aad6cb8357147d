//! Tail loss probe (RFC 8985 §7): if the last segments are lost, no acknowledgement arrives, so the
//! sender sends a probe that triggers one.

use anabranch_transport::Nanos;
use anabranch_transport::time::SECOND;

/// A probe that is not yet acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    /// Highest number sent before or with the probe, plus one (TLP.end_seq).
    end: u64,
    /// Whether the probe is a retransmission of the last data (TLP.is_retrans), and not new data.
    again: bool,
}

/// Probe timer of one path, and the probe in flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct TailProbe {
    deadline: Option<Nanos>,
    probe: Option<Probe>,
    /// Whether no round-trip time was measured since the last probe.
    unmeasured: bool,
}

/// Time from the last transmission or acknowledgement to a probe (TLP_calc_PTO), nanoseconds.
/// `alone`: only one segment is in flight, whose acknowledgement the peer may delay by up to
/// `most_delay`.
pub fn timeout(srtt: Option<Nanos>, alone: bool, most_delay: Nanos) -> Nanos {
    match srtt {
        Some(srtt) if alone => srtt.saturating_mul(2).saturating_add(most_delay),
        Some(srtt) => srtt.saturating_mul(2),
        None => SECOND,
    }
}

impl TailProbe {
    /// Sets the timer to `now + after`, but at the latest to `expiry`, at which the retransmission
    /// timer expires.
    pub fn arm(&mut self, now: Nanos, after: Nanos, expiry: Nanos) {
        self.deadline = Some(now.saturating_add(after).min(expiry));
    }

    /// Stops the timer, because no data is in flight or a recovery is in progress.
    pub fn disarm(&mut self) {
        self.deadline = None;
    }

    /// Time at which the timer expires; `None` if it is stopped.
    pub fn deadline(&self) -> Option<Nanos> {
        self.deadline
    }

    /// Whether the timer has expired; if so, it is stopped.
    pub fn take_due(&mut self, now: Nanos) -> bool {
        let due = self.deadline.is_some_and(|at| at <= now);
        if due {
            self.deadline = None;
        }
        due
    }

    /// Whether a probe may be sent: no other probe is in flight, and a round-trip time was measured
    /// since the last probe.
    pub fn may_go(&self) -> bool {
        self.probe.is_none() && !self.unmeasured
    }

    /// Records that a probe was sent; `end` is the highest number sent so far plus one.
    pub fn on_sent(&mut self, end: u64, again: bool) {
        self.probe = Some(Probe { end, again });
        self.unmeasured = true;
    }

    /// Whether the probe in flight is a retransmission of this number, which is the last that was
    /// sent.
    pub fn is_probe(&self, number: u64) -> bool {
        self.probe
            .is_some_and(|probe| probe.again && probe.end == number + 1)
    }

    /// Records that a round-trip time was measured.
    pub fn on_measured(&mut self) {
        self.unmeasured = false;
    }

    /// Records that all data below `acknowledged` is acknowledged (TLP_process_ack). `repeated`:
    /// the receiver reports the retransmitted data as a duplicate; `bare`: the acknowledgement has
    /// no new information. Returns whether the probe has repaired a loss, in which case the window
    /// should be reduced.
    pub fn on_ack(&mut self, acknowledged: u64, repeated: bool, bare: bool) -> bool {
        let Some(probe) = self.probe.filter(|probe| acknowledged >= probe.end) else {
            return false;
        };
        let repaired = probe.again && !repeated && acknowledged > probe.end;
        if !probe.again || repeated || bare || repaired {
            self.probe = None;
        }
        repaired
    }

    /// Cancels the probe, because of a retransmission timeout.
    pub fn on_timeout(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_transport::time::MILLISECOND as MS;

    #[test]
    fn two_round_trips_and_what_the_peer_may_wait() {
        assert_eq!(timeout(Some(100 * MS), false, 200 * MS), 200 * MS);
        assert_eq!(timeout(Some(100 * MS), true, 200 * MS), 400 * MS);
        assert_eq!(timeout(None, false, 200 * MS), SECOND);
        let mut tail = TailProbe::default();
        tail.arm(10 * MS, 200 * MS, 150 * MS);
        assert_eq!(tail.deadline(), Some(150 * MS), "no later than T3-rtx");
        assert!(!tail.take_due(149 * MS));
        assert!(tail.take_due(150 * MS) && tail.deadline().is_none());
    }

    #[test]
    fn one_probe_at_a_time_and_for_each_measurement() {
        let mut tail = TailProbe::default();
        assert!(tail.may_go());
        tail.on_sent(8, false);
        assert!(!tail.may_go());
        assert!(!tail.on_ack(7, false, false));
        assert!(!tail.on_ack(8, false, false), "new data repairs nothing");
        assert!(!tail.may_go(), "not measured yet");
        tail.on_measured();
        assert!(tail.may_go());
    }

    #[test]
    fn a_loss_is_repaired_if_only_one_copy_came() {
        let probed = || {
            let mut tail = TailProbe::default();
            tail.on_sent(8, true);
            tail.on_measured();
            tail
        };
        // The receiver has received both the original data and the probe.
        let mut tail = probed();
        assert!(!tail.on_ack(8, true, true) && tail.may_go());
        // There is one acknowledgement for each of the two segments, so none was lost.
        let mut tail = probed();
        assert!(!tail.on_ack(8, false, false) && !tail.may_go());
        assert!(!tail.on_ack(8, false, true) && tail.may_go());
        // Later data is acknowledged, and no duplicate was reported, so the probe has repaired a
        // loss.
        let mut tail = probed();
        assert!(!tail.on_ack(8, false, false));
        assert!(tail.on_ack(9, false, false) && tail.may_go());
    }
}
