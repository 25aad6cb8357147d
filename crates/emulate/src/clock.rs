//! Wall clock of an emulation.

use std::time::Instant;

use anabranch_transport::Nanos;

/// Time since the emulation was started.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[allow(clippy::disallowed_methods, reason = "an emulator lives in real time")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Nanos {
        self.0.elapsed().as_nanos() as Nanos
    }
}
