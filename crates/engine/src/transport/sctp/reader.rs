//! How fast a receiving application reads.

use anabranch_transport::{Nanos, time};

/// The receiving application's pace.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Bits per second; `None`: always ready.
    rate: Option<u64>,
    /// It is busy with what it read last until then.
    busy_until: Nanos,
    /// More may wait for it.
    pub behind: bool,
}

impl Reader {
    /// One that reads so many bits per second, or is always ready.
    pub fn new(rate: Option<u64>) -> Self {
        Self {
            rate,
            busy_until: 0,
            behind: false,
        }
    }

    /// Whether it is done with what it read last.
    pub fn is_ready(&self, now: Nanos) -> bool {
        self.busy_until <= now
    }

    /// It reads so many bytes.
    pub fn read(&mut self, now: Nanos, bytes: u64) {
        if let Some(rate) = self.rate {
            let busy = u128::from(bytes) * 8 * u128::from(time::SECOND) / u128::from(rate.max(1));
            self.busy_until = now.saturating_add(busy.min(u128::from(Nanos::MAX)) as Nanos);
        }
    }

    /// When it reads on, where more may wait for it.
    pub fn deadline(&self) -> Option<Nanos> {
        self.behind.then_some(self.busy_until)
    }
}
