//! The one place that reads a clock: everything below it gets the time as an argument.

use std::time::Duration;

use anabranch_transport::Nanos;
use tokio::time::Instant;

/// Time since an endpoint began, in the nanoseconds that the protocol counts. It is tokio's: where a test has paused that, the protocol
/// lives in virtual time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    /// Nanoseconds since the clock began; good for 584 years.
    pub fn now(&self) -> Nanos {
        self.origin.elapsed().as_nanos() as Nanos
    }

    /// The same point in time for tokio's timers.
    pub fn instant(&self, at: Nanos) -> Instant {
        // A timer further off than a year is not one that anybody waits for.
        let at = at.min(self.now().saturating_add(365 * 86_400 * 1_000_000_000));
        self.origin + Duration::from_nanos(at)
    }
}
