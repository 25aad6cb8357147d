//! Proportional rate reduction (RFC 6937): in fast recovery the sender sends in proportion to the
//! delivered data. The ratio is that of the reduced window to the bytes in flight.
//!
//! Without it, a sender whose window was halved sends nothing until half of the data in flight has
//! left the network; or, after many losses, it sends one large burst.

/// State of one recovery. If fewer bytes are in flight than the reduced window permits, they grow
/// at most as in slow start (PRR-SSRB, RFC 6937 §3.1).
///
/// All numbers are bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prr {
    /// Bytes in flight at the start of the recovery (RecoverFS), at least 1.
    at_start: u64,
    delivered: u64,
    out: u64,
}

impl Prr {
    /// Starts a recovery with `flight` bytes in flight.
    pub fn new(flight: u64) -> Self {
        Self {
            at_start: flight.max(1),
            delivered: 0,
            out: 0,
        }
    }

    /// Processes an acknowledgement that reports `delivered` more bytes as received, while `pipe`
    /// bytes are in flight and the reduced window is `target`. Returns the number of bytes that may
    /// be sent (sndcnt). `segment` is the size of a segment (MSS).
    pub fn on_ack(&mut self, delivered: u64, pipe: u64, target: u64, segment: u64) -> u64 {
        self.delivered += delivered;
        if pipe > target {
            let share = u128::from(self.delivered) * u128::from(target);
            let due = share.div_ceil(u128::from(self.at_start)) as u64;
            return due.saturating_sub(self.out);
        }
        let limit = self.delivered.saturating_sub(self.out).max(delivered) + segment;
        limit.min(target - pipe)
    }

    /// Records that `bytes` bytes were sent, including retransmissions.
    pub fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example of RFC 6937 §4: of 20 segments in flight the first is lost, and the window is
    /// reduced to 10 (Reno), so one segment is sent for every second acknowledgement.
    #[test]
    fn half_of_what_arrives_goes() {
        let mut prr = Prr::new(20);
        let mut pipe = 19; // the first is lost
        let mut sent = Vec::new();
        for _ in 0..19 {
            pipe -= 1;
            let due = prr.on_ack(1, pipe, 10, 1);
            prr.on_sent(due);
            pipe += due;
            sent.push(due);
        }
        // By ceil(delivered / 2) - out, a segment is sent at each odd acknowledgement, until the
        // bytes in flight equal the window.
        assert_eq!(sent[..8], [1, 0, 1, 0, 1, 0, 1, 0]);
        assert_eq!(pipe, 10);
        // All 19 segments in flight have been delivered, so the bytes in flight equal the window of
        // 10 only if exactly 10 segments were sent.
        assert_eq!(sent.iter().sum::<u64>(), 10);
    }

    /// Second example of RFC 6937 §4: of 20 segments in flight 15 are lost, and the window is
    /// reduced to 10. The bytes in flight grow as in slow start, by two segments per
    /// acknowledgement.
    #[test]
    fn many_losses_are_recovered_from_as_in_slow_start() {
        let mut prr = Prr::new(20);
        let mut pipe = 4;
        let mut sent = Vec::new();
        for _ in 0..4 {
            pipe -= 1;
            let due = prr.on_ack(1, pipe, 10, 1);
            prr.on_sent(due);
            pipe += due;
            sent.push(due);
        }
        assert_eq!(sent, [2, 2, 2, 2]);
        assert_eq!(pipe, 8);
    }
}
