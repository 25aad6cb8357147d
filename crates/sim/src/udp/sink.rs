//! UDP receiver that counts datagrams and measures their delays.

use anabranch_transport::{Ecn, Nanos, Path, Transmit};
use bytes::{Bytes, BytesMut};

use super::STAMP;
use super::header::{self, HEADER};
use crate::agent::Agent;

/// Statistics of a [`UdpSink`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UdpSinkStats {
    /// Datagrams with a correct checksum, including duplicates.
    pub received: u64,
    /// Payload bytes of the received datagrams.
    pub bytes: u64,
    /// Datagrams with a wrong checksum or length.
    pub corrupted: u64,
    /// Datagrams that arrived after a datagram with a higher number, including duplicates.
    pub late: u64,
    /// Highest sequence number received plus one. Without duplicates, the difference to `received`
    /// is the number of lost datagrams.
    pub expected: u64,
    /// Sum of the one-way delays of stamped datagrams, nanoseconds.
    pub delay_sum: u128,
    /// Shortest one-way delay, nanoseconds; [`Nanos::MAX`] before the first datagram.
    pub delay_min: Nanos,
    /// Longest one-way delay, nanoseconds.
    pub delay_max: Nanos,
    /// Datagrams with a stamp, whose delay is therefore known.
    pub stamped: u64,
}

impl UdpSinkStats {
    /// Mean one-way delay in nanoseconds; `None` before the first datagram.
    pub fn mean_one_way_delay(&self) -> Option<f64> {
        (self.stamped > 0).then(|| self.delay_sum as f64 / self.stamped as f64)
    }
}

/// UDP receiver that counts datagrams and measures their one-way delays.
#[derive(Clone, Debug)]
pub struct UdpSink {
    stats: UdpSinkStats,
}

impl UdpSink {
    /// Creates a sink with all counters at 0.
    pub fn new() -> Self {
        Self {
            stats: UdpSinkStats {
                delay_min: Nanos::MAX,
                ..UdpSinkStats::default()
            },
        }
    }

    /// Statistics of the datagrams received so far.
    pub fn stats(&self) -> &UdpSinkStats {
        &self.stats
    }
}

impl Default for UdpSink {
    fn default() -> Self {
        Self::new()
    }
}

impl Agent for UdpSink {
    fn handle_datagram(&mut self, now: Nanos, path: Path, _ecn: Ecn, datagram: Bytes) {
        let stats = &mut self.stats;
        if !header::verify(path, &datagram) {
            stats.corrupted += 1;
            return;
        }
        stats.received += 1;
        stats.bytes += (datagram.len() - HEADER) as u64;
        let Some(stamp) = datagram[HEADER..].first_chunk::<STAMP>() else {
            return;
        };
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&stamp[at..at + 8]);
            u64::from_be_bytes(word)
        };
        let (number, sent) = (word(0), word(8));
        let delay = now.saturating_sub(sent);
        stats.late += u64::from(number < stats.expected);
        stats.expected = stats.expected.max(number.saturating_add(1));
        stats.delay_sum += u128::from(delay);
        stats.delay_min = stats.delay_min.min(delay);
        stats.delay_max = stats.delay_max.max(delay);
        stats.stamped += 1;
    }

    fn handle_timeout(&mut self, _now: Nanos) {}

    fn poll_transmit(&mut self, _now: Nanos, _out: &mut BytesMut) -> Option<Transmit> {
        None
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        None
    }
}
