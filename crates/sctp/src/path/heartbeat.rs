//! Probing of one path: which HEARTBEATs are under way, and when the next one goes.

use std::collections::VecDeque;

use anabranch_transport::Nanos;

use crate::maybe::Maybe;
use crate::seldom::Seldom;

/// HEARTBEATs of one path whose answers are still believed: several are under way where their interval is shorter than
/// the round trip.
const MOST_UNANSWERED: usize = 8;

/// What a HEARTBEAT is sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// To learn whether the path is alive; under RSCTP also to begin a measurement.
    Alive,
    /// To measure what the data since the one before did.
    Measure,
    /// The first of a pair, which measures nothing.
    PairFirst,
    /// The second, which measures its distance from the first.
    PairSecond,
}

/// Probing of one path.
#[derive(Debug, Default)]
pub(crate) struct Heartbeat {
    /// When the path is looked at next.
    next: Maybe,
    /// When `next` was set: a path that carried data since then is not idle.
    scheduled_at: Nanos,
    /// A HEARTBEAT must be sent.
    due: bool,
    /// The second of a pair must be sent.
    second_due: bool,
    /// What was sent and not answered, oldest first.
    unanswered: Seldom<VecDeque<Sent>>,
    /// When the last one was sent, and how many bytes of DATA the path had carried by the last one answered.
    last_sent: Nanos,
    bytes_at_answer: u64,
}

/// A HEARTBEAT under way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    nonce: u64,
    at: Nanos,
    /// When the missing answer counts as an error; `None` once it did.
    expires: Option<Nanos>,
    role: Role,
    /// Bytes of DATA that the path had carried.
    bytes: u64,
    /// Since the HEARTBEAT before.
    interval: Nanos,
}

/// A HEARTBEAT that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    /// When it was sent.
    pub(crate) at: Nanos,
    pub(crate) role: Role,
    /// Bytes of DATA that the path carried between it and the last one answered before.
    pub(crate) bytes: u64,
    /// Since the HEARTBEAT before.
    pub(crate) interval: Nanos,
}

impl Heartbeat {
    /// When it must be looked at; [`Nanos::MAX`] where never.
    #[inline]
    pub(crate) fn deadline(&self) -> Nanos {
        let next = self.next.or_never();
        if self.unanswered.is_empty() {
            return next;
        }
        let expires = self.unanswered.iter().filter_map(|sent| sent.expires);
        expires.fold(next, Nanos::min)
    }

    /// Whether one must be sent.
    pub(crate) fn is_due(&self) -> bool {
        self.due || self.second_due
    }

    /// Whether the second of a pair must be sent.
    pub(crate) fn is_second_due(&self) -> bool {
        self.second_due
    }

    /// When the last one was sent; 0 if none was.
    pub(crate) fn last_sent(&self) -> Nanos {
        self.last_sent
    }

    /// To be sent without waiting for its time, which stays.
    pub(crate) fn request(&mut self) {
        self.due = true;
    }

    /// To be sent at once.
    pub(crate) fn send_now(&mut self) {
        self.next = Maybe::NONE;
        self.due = true;
    }

    /// The path is looked at next `wait` after `now`; `None`: never.
    pub(crate) fn schedule(&mut self, now: Nanos, wait: Option<Nanos>) {
        self.scheduled_at = now;
        self.next = wait.map(|wait| now.saturating_add(wait)).into();
    }

    /// Whether the time to look at the path has come.
    pub(crate) fn is_time(&self, now: Nanos) -> bool {
        self.next.has_come(now)
    }

    /// Whether a path that carried data last at `last_sent` was idle since its time was set.
    pub(crate) fn is_idle(&self, last_sent: Nanos) -> bool {
        last_sent <= self.scheduled_at
    }

    /// One goes out now, for `role`; the path has carried so many `bytes` of DATA. Those that were given up before it are no
    /// longer believed, unless they `measure`.
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
            // A pair is one question.
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

    /// The user may ask for more than are kept. Then the last one before gives way and not the first, which is the next to
    /// be answered, or else to count as an error.
    fn remember(&mut self, sent: Sent, measure: bool) {
        if measure {
            if self.unanswered.len() >= MOST_UNANSWERED {
                self.unanswered.change(VecDeque::pop_front);
            }
        } else {
            self.unanswered.change(|it| {
                it.retain(|sent| sent.expires.is_some());
                it.truncate(MOST_UNANSWERED - 1);
            });
        }
        self.unanswered.make().push_back(sent);
    }

    /// Whether the answer to one is missing at `now`. Several that were under way at that time are one question and one
    /// error (RFC 9260 §8.3 counts one per RTO), unless they `measure`, at times of their own.
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

    /// The HEARTBEAT with `nonce` was answered: it and those before it are no longer waited for. `None` if there is none.
    pub(crate) fn answered(&mut self, nonce: u64) -> Option<Answered> {
        let index = self
            .unanswered
            .iter()
            .position(|sent| sent.nonce == nonce)?;
        let sent = self.unanswered[index];
        self.unanswered.change(|it| it.drain(..=index).count());
        let before = std::mem::replace(&mut self.bytes_at_answer, sent.bytes);
        Some(Answered {
            at: sent.at,
            role: sent.role,
            bytes: sent.bytes.saturating_sub(before),
            interval: sent.interval,
        })
    }
}
