//! The one place that reads a clock: everything below it gets the time as an argument.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_transport::Nanos;

use crate::runtime::Runtime;

/// Time since an endpoint began, in the nanoseconds that the protocol counts. It is the runtime's.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    origin: Instant,
    runtime: Arc<dyn Runtime>,
}

impl Clock {
    /// A clock that begins now.
    pub(crate) fn start(runtime: Arc<dyn Runtime>) -> Self {
        Self {
            origin: runtime.now(),
            runtime,
        }
    }

    /// Nanoseconds since the clock began; good for 584 years.
    pub(crate) fn now(&self) -> Nanos {
        let since = self.runtime.now().saturating_duration_since(self.origin);
        since.as_secs() * 1_000_000_000 + Nanos::from(since.subsec_nanos())
    }

    /// The runtime whose time it is.
    pub(crate) fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    /// The same point in time for the runtime's timers.
    pub(crate) fn instant(&self, at: Nanos) -> Instant {
        // A timer further off than a year is not one that anybody waits for.
        let at = at.min(self.now().saturating_add(365 * 86_400 * 1_000_000_000));
        self.origin + Duration::from_nanos(at)
    }
}
