//! Backoff of sockets that return errors.
//!
//! Some errors belong to sent packets (ICMP) and are reported once: such a socket may have packets,
//! and should be read again immediately. But a socket whose interface is gone, or whose descriptor
//! is closed, returns an error at each call. Such a socket is read at growing intervals as long as
//! it exists: it is not closed, because the interface may come back, and associations may meanwhile
//! use another path.

use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};

/// Number of consecutive errors after which a socket is in backoff.
const MAX_CONSECUTIVE_ERRORS: u32 = 16;
/// The first interval, which doubles each time, and the maximum.
const MIN_BACKOFF: Nanos = MILLISECOND;
const MAX_BACKOFF: Nanos = SECOND;

#[derive(Clone, Copy, Debug, Default)]
struct Backoff {
    in_row: u32,
    /// The socket should not be read before this time.
    until: Nanos,
}

/// Sockets in backoff, by number.
#[derive(Debug, Default)]
pub(crate) struct SocketBackoff {
    /// State of each socket; empty if no socket has an error.
    of: Vec<Backoff>,
}

impl SocketBackoff {
    /// Returns true if no socket has an error, so that none has to be checked.
    #[inline]
    pub(crate) fn are_none(&self) -> bool {
        self.of.is_empty()
    }

    /// Returns true if the socket with this number should not be read yet.
    pub(crate) fn is_waiting(&self, number: usize, now: Nanos) -> bool {
        self.of.get(number).is_some_and(|it| now < it.until)
    }

    /// Records an error of a socket. Returns true if the socket is now in backoff.
    pub(crate) fn failed(&mut self, number: usize, now: Nanos) -> bool {
        if self.of.len() <= number {
            self.of.resize(number + 1, Backoff::default());
        }
        let backoff = &mut self.of[number];
        backoff.in_row = backoff.in_row.saturating_add(1);
        let Some(times) = backoff.in_row.checked_sub(MAX_CONSECUTIVE_ERRORS) else {
            return false;
        };
        let factor = 1_u64.checked_shl(times).unwrap_or(u64::MAX);
        backoff.until = now + MIN_BACKOFF.saturating_mul(factor).min(MAX_BACKOFF);
        true
    }

    /// Records that the socket returned a packet, or was empty.
    #[inline]
    pub(crate) fn worked(&mut self, number: usize) {
        if !self.of.is_empty() {
            self.forget(number);
        }
    }

    #[cold]
    fn forget(&mut self, number: usize) {
        if let Some(backoff) = self.of.get_mut(number) {
            *backoff = Backoff::default();
        }
        if self.of.iter().all(|it| it.in_row == 0) {
            self.of.clear();
        }
    }

    /// The earliest time at which a socket in backoff should be read.
    pub(crate) fn next(&self) -> Option<Nanos> {
        let resting = self
            .of
            .iter()
            .filter(|it| it.in_row >= MAX_CONSECUTIVE_ERRORS);
        resting.map(|it| it.until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_are_longer_each_time_up_to_a_second_and_end_with_a_packet() {
        let mut backoff = SocketBackoff::default();
        assert!((1..MAX_CONSECUTIVE_ERRORS).all(|_| !backoff.failed(1, 7)));
        assert_eq!(backoff.next(), None);
        let mut now = 7;
        for millis in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000, 1_000] {
            assert!(backoff.failed(1, now));
            let until = now + millis * MILLISECOND;
            assert_eq!(backoff.next(), Some(until));
            assert!(backoff.is_waiting(1, until - 1) && !backoff.is_waiting(1, until));
            assert!(!backoff.is_waiting(0, now) && !backoff.is_waiting(2, now));
            now = until;
        }
        backoff.worked(0);
        assert!(!backoff.are_none());
        (0..100).for_each(|_| _ = backoff.failed(1, now));
        assert_eq!(backoff.next(), Some(now + MAX_BACKOFF));
        backoff.worked(1);
        assert!(backoff.are_none() && backoff.next().is_none());
        assert!(!backoff.failed(1, now), "its count begins anew");
    }
}
