//! The clock of an endpoint. Only this module reads a clock: the layers below get the time as an
//! argument.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anabranch_transport::Nanos;

use crate::runtime::Runtime;
use crate::time::nanos;

/// Nanoseconds since 1970 by the system clock, for timestamps that are stored beyond the life of
/// the process.
#[allow(
    clippy::disallowed_methods,
    reason = "the time at which stored parameters expire"
)]
pub(crate) fn unix_time() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, nanos)
}

/// Protocol time: nanoseconds since an endpoint started, measured by the runtime's clock.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    origin: Instant,
    runtime: Arc<dyn Runtime>,
}

impl Clock {
    /// Starts a clock at 0.
    pub(crate) fn start(runtime: Arc<dyn Runtime>) -> Self {
        Self {
            origin: runtime.now(),
            runtime,
        }
    }

    /// Nanoseconds since the clock started. The range of `u64` suffices for 584 years.
    pub(crate) fn now(&self) -> Nanos {
        let since = self.runtime.now().saturating_duration_since(self.origin);
        since.as_secs() * 1_000_000_000 + Nanos::from(since.subsec_nanos())
    }

    /// The runtime that provides the time.
    pub(crate) fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    /// Converts the protocol time `at` to an instant for the runtime's timers.
    pub(crate) fn instant(&self, at: Nanos) -> Instant {
        // Limited to one year from now, so that the addition cannot overflow; no timer of the
        // protocol is longer.
        let at = at.min(self.now().saturating_add(365 * 86_400 * 1_000_000_000));
        self.origin + Duration::from_nanos(at)
    }
}
