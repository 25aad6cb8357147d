//! HEARTBEAT schedule of one path: outstanding HEARTBEATs and the time of the next HEARTBEAT.

use std::collections::VecDeque;

use anabranch_transport::Nanos;

use crate::compact_option::OptionalNanos;
use crate::lazy_box::LazyBox;

/// Maximum number of outstanding HEARTBEATs of a path whose answers are accepted. Several are
/// outstanding if their interval is shorter than the round trip.
const MAX_UNANSWERED: usize = 8;

/// Purpose of a HEARTBEAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Checks that the path is alive; under RSCTP it also starts a measurement.
    Alive,
    /// Measures the effect of the data since the previous HEARTBEAT.
    Measure,
    /// The first of a pair, which takes no measurement.
    PairFirst,
    /// The second of a pair, which measures its distance from the first.
    PairSecond,
}

/// HEARTBEAT state of one path.
#[derive(Debug, Default)]
pub(crate) struct Heartbeat {
    /// When the path is checked next.
    next: OptionalNanos,
    /// When `next` was set: a path that carried data since then is not idle.
    scheduled_at: Nanos,
    /// A HEARTBEAT must be sent.
    due: bool,
    /// The second of a pair must be sent.
    second_due: bool,
    /// Outstanding HEARTBEATs, oldest first.
    unanswered: LazyBox<VecDeque<Sent>>,
    /// Time of the last HEARTBEAT, and the DATA bytes that the path had carried at the last
    /// answered HEARTBEAT.
    last_sent: Nanos,
    bytes_at_answer: u64,
}

/// An outstanding HEARTBEAT.
#[derive(Clone, Copy, Debug)]
struct Sent {
    nonce: u64,
    at: Nanos,
    /// When the missing answer counts as an error; `None` after it did.
    expires: Option<Nanos>,
    role: Role,
    /// DATA bytes that the path had carried.
    bytes: u64,
    /// Time since the previous HEARTBEAT.
    interval: Nanos,
}

/// An answered HEARTBEAT.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeartbeatResult {
    /// Time at which the HEARTBEAT was sent.
    pub(crate) at: Nanos,
    pub(crate) role: Role,
    /// DATA bytes that the path carried between the previously answered HEARTBEAT and this one.
    pub(crate) bytes: u64,
    /// Time since the previous HEARTBEAT.
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

    /// Requests one without changing the schedule.
    pub(crate) fn request(&mut self) {
        self.due = true;
    }

    /// Requests an immediate HEARTBEAT.
    pub(crate) fn send_now(&mut self) {
        self.next = OptionalNanos::NONE;
        self.due = true;
    }

    /// Schedules the next check for `wait` after `now`; `None` means never.
    pub(crate) fn schedule(&mut self, now: Nanos, wait: Option<Nanos>) {
        self.scheduled_at = now;
        self.next = wait.map(|wait| now.saturating_add(wait)).into();
    }

    /// Whether the check is due.
    pub(crate) fn is_time(&self, now: Nanos) -> bool {
        self.next.has_come(now)
    }

    /// Whether a path that carried data last at `last_sent` was idle since the check was scheduled.
    pub(crate) fn is_idle(&self, last_sent: Nanos) -> bool {
        last_sent <= self.scheduled_at
    }

    /// A HEARTBEAT is sent now for `role`; the path has carried `bytes` bytes of DATA. Answers to
    /// expired HEARTBEATs are no longer accepted, unless they `measure`.
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
            // A pair counts as one.
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

    /// The user may request more HEARTBEATs than are stored. In this case the newest HEARTBEAT is
    /// replaced instead of the oldest, because the oldest is the next to be answered or to count as
    /// an error.
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

    /// Whether an answer is overdue at `now`. Several that were outstanding at that time count as
    /// one error (RFC 9260 §8.3 counts one per RTO), unless they `measure`, which have separate
    /// times.
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

    /// The HEARTBEAT with `nonce` was answered: this HEARTBEAT and earlier ones are no longer
    /// outstanding. `None` if there is none.
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
