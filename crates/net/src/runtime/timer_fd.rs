//! A timer descriptor of the system (timerfd). With it `epoll_wait` needs no timeout, which the
//! system would have to set up at every wait.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// Maximum time until expiry: one year.
const MAX_DELAY: Duration = Duration::from_secs(365 * 86_400);
const ZERO: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Opens a timer descriptor that is not set, on the clock of [`std::time::Instant`].
pub(super) fn open() -> io::Result<OwnedFd> {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    Ok(timerfd_create(TimerfdClockId::Monotonic, flags)?)
}

/// Sets the timer to expire after `after`, and replaces the previous expiry.
pub(super) fn set(fd: impl AsFd, after: Duration) {
    let after = after.clamp(Duration::from_nanos(1), MAX_DELAY);
    settle(fd, Timespec::try_from(after).unwrap_or(ZERO));
}

/// Disarms the timer.
#[cfg(feature = "tokio")]
pub(super) fn unset(fd: impl AsFd) {
    settle(fd, ZERO);
}

fn settle(fd: impl AsFd, it_value: Timespec) {
    let times = Itimerspec {
        it_interval: ZERO,
        it_value,
    };
    let set = timerfd_settime(fd, TimerfdTimerFlags::empty(), &times);
    debug_assert!(set.is_ok(), "{set:?}");
}
