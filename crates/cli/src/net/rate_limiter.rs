//! Rate limiter for messages.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Limits messages to an average rate, like iperf3: after a delay, overdue messages are sent
/// immediately.
#[derive(Debug)]
pub struct RateLimiter {
    /// Rate, bit/s; `None`: no limit.
    rate: Option<u64>,
    begin: Instant,
    bytes: u64,
}

impl RateLimiter {
    /// Creates a limiter that starts now.
    pub fn new(rate: Option<u64>) -> Self {
        Self {
            rate,
            begin: Instant::now(),
            bytes: 0,
        }
    }

    /// Waits until the next message of `size` bytes may be sent.
    pub async fn due(&mut self, size: u64) {
        if let Some(after) = self.next(size)
            && self.begin.elapsed() < after
        {
            sleep_until(self.begin + after).await;
        }
    }

    /// Time from the start until the next message of `size` bytes may be sent; `None`: immediately.
    fn next(&mut self, size: u64) -> Option<Duration> {
        let due = after(self.bytes, self.rate?);
        self.bytes += size;
        Some(due)
    }
}

/// Time that this number of bytes takes at a rate.
fn after(bytes: u64, rate: u64) -> Duration {
    let nanoseconds = u128::from(bytes) * 8_000_000_000 / u128::from(rate);
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX / 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_due_when_those_before_it_have_taken_their_time() {
        assert_eq!(after(0, 1), Duration::ZERO);
        assert_eq!(after(1_250, 1_000_000), Duration::from_millis(10));
        assert_eq!(
            after(1 << 40, 100_000_000_000),
            Duration::from_nanos(87_960_930_222)
        );
    }

    #[test]
    fn messages_of_any_size_make_the_rate_on_average() {
        let mut pace = RateLimiter::new(Some(8_000));
        let due: Vec<_> = [1_000, 500, 2_000, 1].map(|size| pace.next(size)).into();
        let expected = [0, 1_000, 1_500, 3_500].map(|it| Some(Duration::from_millis(it)));
        assert_eq!(due, expected);
        assert_eq!(RateLimiter::new(None).next(u64::MAX), None);
    }
}
