//! Token bucket: limits traffic to a mean rate, with bursts of a given size. A shaper delays excess
//! packets, and a policer drops them (RFC 2475 §2.3.3.3 and §2.3.3.4).
//!
//! One token permits one bit. Tokens are counted in billionths, so that rounding errors do not
//! accumulate.

use anabranch_settings::{Kind, KindEntry, kind};
use anabranch_transport::Nanos;

use super::{
    EnqueueError, Fifo, LIMIT, Occupancy, QueueDiscipline, QueueLimit, QueuedPacket,
    TransmitterView,
};
use crate::error::BuildError;
use crate::packet::DropReason;

kind! {
    /// Settings of [`TokenBucket`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TokenBucketConfig {
        /// Rate at which the bucket fills: the mean rate of packets on the wire.
        rate: u64, Kind::rate(1, 1 << 50);
        /// Size of the bucket, which is full at the start. A packet that is larger than the bucket
        /// is dropped.
        burst: u64 = "15000 B", Kind::bytes(1, 1 << 40);
        /// Drop packets for which there are too few tokens. Off: such packets wait until there are
        /// enough tokens.
        police: bool = false, Kind::Flag, "RFC 2475 §2.3.3";
        limit: QueueLimit as LIMIT;
    }
    /// Token bucket: packets pass at the mean rate `rate`, in bursts of up to `burst`. A shaper
    /// delays excess packets, and a policer drops them.
    pub(super) static ENTRY: KindEntry<Box<dyn QueueDiscipline>> =
        "token-bucket", |config, ()| Ok(Box::new(TokenBucket::new(config)?));
}

/// One bit, in billionths.
const BIT: u128 = 1_000_000_000;

/// The token bucket discipline.
#[derive(Debug)]
pub struct TokenBucket {
    config: TokenBucketConfig,
    waiting: Fifo,
    /// Number of tokens at the time `filled`, in billionths.
    tokens: u128,
    filled: Nanos,
}

/// Number of tokens for `bytes` bytes, in billionths.
fn tokens(bytes: u64) -> u128 {
    u128::from(bytes) * 8 * BIT
}

impl TokenBucket {
    /// Creates an empty queue with a full bucket.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit, a burst or a rate of 0.
    pub fn new(config: TokenBucketConfig) -> Result<Self, BuildError> {
        config.limit.checked()?;
        if config.rate == 0 || config.burst == 0 {
            return Err(BuildError::EmptyQueue);
        }
        Ok(Self {
            config,
            waiting: Fifo::new(),
            tokens: tokens(config.burst),
            filled: 0,
        })
    }

    fn fill(&mut self, now: Nanos) {
        let since = u128::from(now - self.filled);
        let filled = self.tokens + since * u128::from(self.config.rate);
        self.tokens = filled.min(tokens(self.config.burst));
        self.filled = now;
    }

    /// Takes the tokens for a packet of `size` bytes; returns false if there are too few.
    fn take(&mut self, now: Nanos, size: usize) -> bool {
        self.fill(now);
        let left = self.tokens.checked_sub(tokens(size as u64));
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }
}

impl QueueDiscipline for TokenBucket {
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: QueuedPacket,
        transmitter: &mut TransmitterView<'_>,
    ) -> Result<(), EnqueueError> {
        let refused = |packet, reason| Err(EnqueueError { packet, reason });
        let size = packet.size();
        if size as u64 > self.config.burst {
            return refused(packet, DropReason::Aqm);
        }
        let occupancy = self.waiting.with(transmitter.in_service);
        if !self.config.limit.admits(occupancy, size) {
            return refused(packet, DropReason::QueueFull);
        }
        if self.config.police && !self.take(now, size) {
            return refused(packet, DropReason::Aqm);
        }
        self.waiting.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Nanos, _: &mut TransmitterView<'_>) -> Option<QueuedPacket> {
        let size = self.waiting.front()?.size();
        let passes = self.config.police || self.take(now, size);
        if passes { self.waiting.pop() } else { None }
    }

    fn remove(&mut self) -> Option<QueuedPacket> {
        self.waiting.pop()
    }

    fn occupancy(&self) -> Occupancy {
        self.waiting.occupancy()
    }

    fn wake_up(&self, now: Nanos) -> Option<Nanos> {
        let size = self.waiting.front()?.size();
        let since = u128::from(now - self.filled);
        let there = self.tokens + since * u128::from(self.config.rate);
        let missing = tokens(size as u64).saturating_sub(there);
        let wait = missing.div_ceil(u128::from(self.config.rate));
        Some(now.saturating_add(Nanos::try_from(wait).unwrap_or(Nanos::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use anabranch_transport::Ecn;

    use super::super::testing::{MS, QueueTester};
    use super::*;

    /// A bucket of three packets at 1.2 Mbit/s, which is a packet of 1500 bytes every 10 ms.
    fn bucket(police: bool) -> TokenBucket {
        let config = TokenBucketConfig {
            rate: 1_200_000,
            burst: 4500,
            police,
            limit: QueueLimit::Packets(20),
        };
        TokenBucket::new(config).expect("a bucket")
    }

    #[test]
    fn a_shaper_lets_a_burst_pass_and_the_rest_wait() {
        let mut queue = QueueTester::new(Box::new(bucket(false)), Ecn::NotEct);
        assert_eq!(queue.come(0, 10, 1), 0);
        let out = queue.go([0, 0, 0, 0, 10 * MS - 1, 10 * MS, 10 * MS, 20 * MS]);
        let expected = [
            Some(0),
            Some(1),
            Some(2),
            None,
            None,
            Some(3),
            None,
            Some(4),
        ];
        assert_eq!(out, expected);
        // However long the idle time, the bucket holds at most `burst`, which is enough for three
        // packets.
        let out = queue.go([0; 4].map(|_| 5_000 * MS));
        assert_eq!(out, [Some(5), Some(6), Some(7), None]);
        assert_eq!(queue.waiting(), 2);
        // The queue holds 20 packets and already has two, so 18 of the 20 fit.
        assert_eq!(queue.come(5_000 * MS, 20, 1), 2);
    }

    /// In any time `t` at most `burst + rate x t` bits pass, and a backlogged queue uses all of
    /// them.
    #[test]
    fn the_envelope_holds_and_is_used_up() {
        let mut bench = QueueTester::new(Box::new(bucket(false)), Ecn::NotEct);
        bench.come(0, 20, 1);
        let passed = |until: Nanos, bench: &mut QueueTester| {
            let asked = (0..=until).step_by(MS as usize);
            bench.go(asked).into_iter().flatten().count()
        };
        assert_eq!(passed(100 * MS, &mut bench), 3 + 10);
    }

    #[test]
    fn a_policer_drops_what_finds_no_tokens() {
        let mut queue = QueueTester::new(Box::new(bucket(true)), Ecn::NotEct);
        assert_eq!(queue.come(0, 10, 1), 7);
        assert_eq!(queue.go([0; 4]), [Some(0), Some(1), Some(2), None]);
        assert_eq!(queue.come(9 * MS, 1, 1), 1);
        assert_eq!(queue.come(10 * MS, 2, 1), 1);
        // A packet that is larger than the bucket never passes.
        assert_eq!(queue.come_sized(5_000 * MS, 1, 1, 4501), 1);
        assert_eq!(queue.come_sized(5_000 * MS, 1, 1, 4500), 0);
    }

    #[test]
    fn nothing_is_no_bucket() {
        let config = TokenBucketConfig {
            rate: 0,
            ..bucket(false).config
        };
        assert!(TokenBucket::new(config).is_err());
    }
}
