//! A timer of the system's that is a descriptor: who waits for it by `epoll` needs no limit of the wait, which the system would set up each time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// It rings after so long at the latest.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);
const ZERO: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// One that is not set, on the clock of [`std::time::Instant`].
pub(super) fn open() -> io::Result<OwnedFd> {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    Ok(timerfd_create(TimerfdClockId::Monotonic, flags)?)
}

/// Lets it ring after that time, and not when it would have.
pub(super) fn set(fd: impl AsFd, after: Duration) {
    let after = after.clamp(Duration::from_nanos(1), LONGEST);
    settle(fd, Timespec::try_from(after).unwrap_or(ZERO));
}

/// Lets it ring no more.
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
