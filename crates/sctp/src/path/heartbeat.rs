//! HEARTBEAT schedule of one path: outstanding HEARTBEATs and the time of the next HEARTBEAT.

use std::collections::VecDeque;

use anabranch_transport::Nanos;

use crate::compact_option::OptionalNanos;
use crate::lazy_box::LazyBox;

/// Maximum number of outstanding HEARTBEATs per path whose answers are accepted. Several are
/// outstanding if the interval is shorter than the round-trip time.
const MAX_UNANSWERED: usize = 8;

/// Purpose of a HEARTBEAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Checks that the path is alive. With RSCTP it also starts a measurement.
    Alive,
    /// Measures the data sent since the previous HEARTBEAT.
    Measure,
    /// First HEARTBEAT of a pair, which measures nothing itself.
    PairFirst,
    /// Second HEARTBEAT of a pair; the measurement is the time between the arrivals of the two
    /// HEARTBEATs.
    PairSecond,
}

/// HEARTBEAT state of one path.
#[derive(Debug, Default)]
pub(crate) struct Heartbeat {
    /// Time of the next check of the path.
    next: OptionalNanos,
    /// Time at which `next` was set. A path that has carried data since then is not idle.
    scheduled_at: Nanos,
    /// Whether a HEARTBEAT must be sent.
    due: bool,
    /// Whether the second HEARTBEAT of a pair must be sent.
    second_due: bool,
    /// Outstanding HEARTBEATs, oldest first.
    unanswered: LazyBox<VecDeque<Sent>>,
    /// Send time of the last HEARTBEAT (`last_sent`), and number of DATA bytes that the path had
    /// carried at the last answered HEARTBEAT (`bytes_at_answer`).
    last_sent: Nanos,
    bytes_at_answer: u64,
}

/// Outstanding HEARTBEAT.
#[derive(Clone, Copy, Debug)]
struct Sent {
    nonce: u64,
    at: Nanos,
    /// Time at which the missing answer counts as an error; `None` once it has been counted.
    expires: Option<Nanos>,
    role: Role,
    /// Number of DATA bytes that the path had carried when the HEARTBEAT was sent.
    bytes: u64,
    /// Time since the previous HEARTBEAT, in nanoseconds.
    interval: Nanos,
}

/// HEARTBEAT that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeartbeatResult {
    /// Time at which the HEARTBEAT was sent.
    pub(crate) at: Nanos,
    pub(crate) role: Role,
    /// Number of DATA bytes sent between the previously answered HEARTBEAT and this one.
    pub(crate) bytes: u64,
    /// Time since the previous HEARTBEAT, in nanoseconds.
    pub(crate) interval: Nanos,
}

impl Heartbeat {
    /// Time of the next action; [`Nanos::MAX`] for never.
    #[inline]
    pub(crate) fn deadline(&self) -> Nanos {
        let next = self.next.or_never();
        if self.unanswered.is_empty() {
            return next;
        }
        let expires = self.unanswered.iter().filter_map(|sent| sent.expires);
        expires.fold(next, Nanos::min)
    }

    /// Whether a HEARTBEAT must be sent.
    pub(crate) fn is_due(&self) -> bool {
        self.due || self.second_due
    }

    /// Whether the second HEARTBEAT of a pair must be sent.
    pub(crate) fn is_second_due(&self) -> bool {
        self.second_due
    }

    /// Time of the last HEARTBEAT; 0 if none was sent.
    pub(crate) fn last_sent(&self) -> Nanos {
        self.last_sent
    }

    /// Requests a HEARTBEAT without a change of the schedule.
    pub(crate) fn request(&mut self) {
        self.due = true;
    }

    /// Requests an immediate HEARTBEAT and cancels the scheduled check.
    pub(crate) fn send_now(&mut self) {
        self.next = OptionalNanos::NONE;
        self.due = true;
    }

    /// Schedules the next check at `now` plus `wait`; `None` means never.
    pub(crate) fn schedule(&mut self, now: Nanos, wait: Option<Nanos>) {
        self.scheduled_at = now;
        self.next = wait.map(|wait| now.saturating_add(wait)).into();
    }

    /// Whether the scheduled check is due.
    pub(crate) fn is_time(&self, now: Nanos) -> bool {
        self.next.has_come(now)
    }

    /// Whether the path was idle since the check was scheduled; `last_sent` is the time at which it
    /// last carried data.
    pub(crate) fn is_idle(&self, last_sent: Nanos) -> bool {
        last_sent <= self.scheduled_at
    }

    /// Records that a HEARTBEAT is sent now for `role`, after the path has carried `bytes` bytes of
    /// DATA. Answers to expired HEARTBEATs are no longer accepted, except with RSCTP (`measure`).
    pub(crate) fn sent(
        &mut self,
        now: Nanos,
        nonce: u64,
        role: Role,
        rto: Nanos,
        bytes: u64,
        measure: bool,
    ) {
        let sent = Sent {
            nonce,
            at: now,
            // Only the first HEARTBEAT of a pair can expire, so that a lost pair counts as one
            // error.
            expires: (role != Role::PairSecond).then(|| now.saturating_add(rto)),
            role,
            bytes,
            interval: now.saturating_sub(self.last_sent),
        };
        self.last_sent = now;
        self.second_due = role == Role::PairFirst;
        self.remember(sent, measure);
        if role != Role::PairSecond {
            self.due = false;
        }
    }

    /// Stores an outstanding HEARTBEAT. If the user requests more HEARTBEATs than can be stored,
    /// the newest is replaced. The oldest is kept, because it is the next to be answered or to
    /// count as an error.
    fn remember(&mut self, sent: Sent, measure: bool) {
        if measure {
            if self.unanswered.len() >= MAX_UNANSWERED {
                self.unanswered.change(VecDeque::pop_front);
            }
        } else {
            self.unanswered.change(|it| {
                it.retain(|sent| sent.expires.is_some());
                it.truncate(MAX_UNANSWERED - 1);
            });
        }
        self.unanswered.make().push_back(sent);
    }

    /// Whether an answer is overdue at `now`. All HEARTBEATs outstanding at that time count as one
    /// error (RFC 9260 §8.3 counts one per RTO). With RSCTP (`measure`), each counts separately.
    pub(crate) fn expire(&mut self, now: Nanos, measure: bool) -> bool {
        let expired = |sent: &Sent| sent.expires.is_some_and(|at| at <= now);
        if !self.unanswered.iter().any(expired) {
            return false;
        }
        for sent in self.unanswered.make() {
            if !measure || expired(sent) {
                sent.expires = None;
            }
        }
        true
    }

    /// Processes the answer to the HEARTBEAT with `nonce`. This HEARTBEAT and all earlier
    /// HEARTBEATs are no longer outstanding. `None` if no outstanding HEARTBEAT has this nonce.
    pub(crate) fn answered(&mut self, nonce: u64) -> Option<HeartbeatResult> {
        let index = self
            .unanswered
            .iter()
            .position(|sent| sent.nonce == nonce)?;
        let sent = self.unanswered[index];
        self.unanswered.change(|it| it.drain(..=index).count());
        let before = std::mem::replace(&mut self.bytes_at_answer, sent.bytes);
        Some(HeartbeatResult {
            at: sent.at,
            role: sent.role,
            bytes: sent.bytes.saturating_sub(before),
            interval: sent.interval,
        })
    }
}
