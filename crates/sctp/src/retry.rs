//! Control chunks that are sent again until they are answered.

use anabranch_transport::Nanos;

use crate::path::PathId;

/// A control chunk that is sent again until it is answered: INIT, COOKIE ECHO, SHUTDOWN, SHUTDOWN ACK or ASCONF, with its timer
/// (T1-init, T1-cookie, T2-shutdown or T-4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    /// Where it goes.
    pub(crate) path: PathId,
    /// It must be put into the next packet.
    pub(crate) due: bool,
    /// When it is sent again; `None` until it was sent.
    pub(crate) deadline: Option<Nanos>,
    /// How often it was sent again without an answer.
    pub(crate) retransmissions: u32,
    /// When it was sent, as long as it was sent once only (Karn's rule, RFC 9260 §6.3.1 C5).
    pub(crate) sent_once_at: Option<Nanos>,
}

impl Retry {
    /// To be sent to `path` at once.
    pub(crate) fn new(path: PathId) -> Self {
        Self {
            path,
            due: true,
            deadline: None,
            retransmissions: 0,
            sent_once_at: None,
        }
    }

    /// It was put into a packet.
    pub(crate) fn sent(&mut self, now: Nanos, rto: Nanos) {
        self.sent_once_at = match self.deadline {
            None => Some(now),
            Some(_) => None,
        };
        self.due = false;
        self.deadline = Some(now.saturating_add(rto));
    }

    /// The timer starts again, without a transmission.
    pub(crate) fn restart(&mut self, now: Nanos, rto: Nanos) {
        if self.deadline.is_some() {
            self.deadline = Some(now.saturating_add(rto));
        }
    }

    /// Whether the timer expired.
    pub(crate) fn expired(&self, now: Nanos) -> bool {
        !self.due && self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Sends it again, to `path`.
    pub(crate) fn again(&mut self, path: PathId) {
        self.path = path;
        self.due = true;
        self.retransmissions += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Karn's rule (RFC 9260 §6.3.1 C5): the answer to what went twice measures nothing.
    #[test]
    fn only_what_went_once_measures() {
        let mut retry = Retry::new(PathId(0));
        assert_eq!((retry.due, retry.sent_once_at), (true, None));
        retry.sent(5, 100);
        assert_eq!((retry.due, retry.sent_once_at), (false, Some(5)));
        assert!(!retry.expired(104) && retry.expired(105));
        retry.again(PathId(1));
        assert!(!retry.expired(105), "it has to go first");
        retry.sent(105, 200);
        assert_eq!((retry.retransmissions, retry.sent_once_at), (1, None));
        assert_eq!((retry.path, retry.deadline), (PathId(1), Some(305)));
    }
}
