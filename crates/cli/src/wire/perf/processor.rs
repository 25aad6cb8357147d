//! Processor time of this process.

use tokio::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// Processor time since a moment.
pub struct Processor {
    begin: Instant,
    /// User and system, seconds.
    before: [f64; 2],
}

/// Share of one processor's time, percent: more than 100 where several were used.
pub struct Used {
    pub user: f64,
    pub system: f64,
}

impl Processor {
    /// From now on.
    pub fn begin() -> Self {
        Self {
            begin: Instant::now(),
            before: spent(),
        }
    }

    /// What was used by now.
    pub fn used(&self) -> Used {
        let wall = self.begin.elapsed().as_secs_f64().max(1e-9);
        let [user, system] = spent();
        Used {
            user: 100.0 * (user - self.before[0]) / wall,
            system: 100.0 * (system - self.before[1]) / wall,
        }
    }
}

/// User and system time of this process, seconds; zero where the system does not tell.
fn spent() -> [f64; 2] {
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    getrusage(UsageWho::RUSAGE_SELF).map_or([0.0; 2], |usage| {
        [seconds(usage.user_time()), seconds(usage.system_time())]
    })
}
