//! Retransmission of control chunks until they are answered.

use anabranch_transport::Nanos;

use crate::path::PathId;

/// Retransmission state of a control chunk: INIT, COOKIE ECHO, SHUTDOWN, SHUTDOWN ACK or ASCONF,
/// with its timer (T1-init, T1-cookie, T2-shutdown or T-4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlRetransmission {
    /// Destination path.
    pub(crate) path: PathId,
    /// Whether the chunk must be sent in the next packet.
    pub(crate) due: bool,
    /// Time of the next retransmission; `None` before the first transmission.
    pub(crate) deadline: Option<Nanos>,
    /// Number of retransmissions without an answer.
    pub(crate) retransmissions: u32,
    /// Transmission time, while the chunk was sent only once (Karn's rule, RFC 9260 §6.3.1 C5).
    pub(crate) sent_once_at: Option<Nanos>,
}

impl ControlRetransmission {
    /// Schedules an immediate transmission to `path`.
    pub(crate) fn new(path: PathId) -> Self {
        Self {
            path,
            due: true,
            deadline: None,
            retransmissions: 0,
            sent_once_at: None,
        }
    }

    /// Records that the chunk was put into a packet.
    pub(crate) fn sent(&mut self, now: Nanos, rto: Nanos) {
        self.sent_once_at = match self.deadline {
            None => Some(now),
            Some(_) => None,
        };
        self.due = false;
        self.deadline = Some(now.saturating_add(rto));
    }

    /// Restarts the timer without a transmission.
    pub(crate) fn restart(&mut self, now: Nanos, rto: Nanos) {
        if self.deadline.is_some() {
            self.deadline = Some(now.saturating_add(rto));
        }
    }

    /// Whether the timer expired.
    pub(crate) fn expired(&self, now: Nanos) -> bool {
        !self.due && self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Schedules an immediate retransmission to `path`.
    pub(crate) fn again(&mut self, path: PathId) {
        self.path = path;
        self.due = true;
        self.retransmissions += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Karn's rule (RFC 9260 §6.3.1 C5): the answer to a retransmitted chunk yields no RTT
    /// measurement.
    #[test]
    fn only_what_went_once_measures() {
        let mut retry = ControlRetransmission::new(PathId(0));
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
