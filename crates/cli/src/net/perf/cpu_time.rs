//! Processor time of this process.

use tokio::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// Measures processor time since its creation.
pub struct CpuTimer {
    begin: Instant,
    /// User and system time at the start, seconds.
    before: [f64; 2],
}

/// Processor time in percent of one processor; more than 100 if several were used.
pub struct CpuUsage {
    pub user: f64,
    pub system: f64,
}

impl CpuTimer {
    /// Starts the measurement.
    pub fn begin() -> Self {
        Self {
            begin: Instant::now(),
            before: spent(),
        }
    }

    /// Processor time that was used since the start.
    pub fn used(&self) -> CpuUsage {
        let wall = self.begin.elapsed().as_secs_f64().max(1e-9);
        let [user, system] = spent();
        CpuUsage {
            user: 100.0 * (user - self.before[0]) / wall,
            system: 100.0 * (system - self.before[1]) / wall,
        }
    }
}

/// User and system time of this process, seconds; zero if the system does not report it.
fn spent() -> [f64; 2] {
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    getrusage(UsageWho::RUSAGE_SELF).map_or([0.0; 2], |usage| {
        [seconds(usage.user_time()), seconds(usage.system_time())]
    })
}
