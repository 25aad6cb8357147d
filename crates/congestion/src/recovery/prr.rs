//! Proportional rate reduction (RFC 6937): in fast recovery as much goes as the reduced window's share of what arrives.
//!
//! Without it a sender whose window was halved is silent until half of the flight has left the network, or sends what many
//! losses make room for in one burst.

/// The bound where less is in flight than the reduced window lets: slow start's (PRR-SSRB, RFC 6937 §3.1).
///
/// All numbers are bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prr {
    /// In flight when the recovery began (RecoverFS), at least 1.
    at_start: u64,
    delivered: u64,
    out: u64,
}

impl Prr {
    /// A recovery begins with so much in flight.
    pub fn new(flight: u64) -> Self {
        Self {
            at_start: flight.max(1),
            delivered: 0,
            out: 0,
        }
    }

    /// An acknowledgement tells that `delivered` bytes more have arrived, while `pipe` is in flight and the window falls to
    /// `target`. Returns how much may go by it (sndcnt), in segments of `segment` bytes.
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

    /// `bytes` went, new or again.
    pub fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937 §4's example: 20 segments in flight, the first lost, and a window that falls to 10 (Reno): one segment for
    /// every second acknowledgement.
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
        // ceil(delivered / 2) - out: a segment with each odd one, until the flight is at the window.
        assert_eq!(sent[..8], [1, 0, 1, 0, 1, 0, 1, 0]);
        assert_eq!(pipe, 10);
        // At the end of the recovery the flight is what the window is.
        assert_eq!(sent.iter().sum::<u64>(), 10);
    }

    /// RFC 6937 §4's second example: of 20 in flight 15 are lost at once, and the window falls to 10: the flight grows as in
    /// slow start, two for each.
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
