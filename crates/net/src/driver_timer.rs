//! The timer of a driver.
//!
//! The runtime's timer is polled only after it was set or after it has woken the task, because the
//! driver checks its timer at each packet, when the timer has almost never expired.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

use anabranch_transport::Nanos;

use crate::clock::Clock;
use crate::runtime::Timer;

/// Waker of the runtime's timer: records the wakeup, and wakes the driver's task.
struct TimerWaker {
    rang: AtomicBool,
    /// Counted reference, so that the waker can be called and dropped after the lock is released,
    /// because both may run any code.
    task: Mutex<Arc<Waker>>,
}

impl Wake for TimerWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rang.store(true, Ordering::Release);
        let task = Arc::clone(&*self.task.lock().unwrap_or_else(PoisonError::into_inner));
        task.wake_by_ref();
    }
}

/// The timer that a driver uses for all its timeouts.
pub(crate) struct DriverTimer {
    timer: Pin<Box<dyn Timer>>,
    bell: Arc<TimerWaker>,
    /// The `TimerWaker` above, as a waker.
    waker: Waker,
    /// Expiry of `timer`; `None` if it should not be polled.
    at: Option<Nanos>,
}

impl fmt::Debug for DriverTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl DriverTimer {
    /// Creates a timer that is not set.
    pub(crate) fn new(clock: &Clock) -> Self {
        let bell = Arc::new(TimerWaker {
            rang: AtomicBool::new(false),
            task: Mutex::new(Arc::new(Waker::noop().clone())),
        });
        Self {
            timer: clock.runtime().driver_timer(clock.instant(0)),
            waker: Waker::from(Arc::clone(&bell)),
            bell,
            at: None,
        }
    }

    /// Sets the task to wake. Returns the previous waker. The caller must hold no lock when it
    /// calls this method and when it drops the result.
    pub(crate) fn set_waker(&self, task: Waker) -> Arc<Waker> {
        let mut known = self
            .bell
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *known, Arc::new(task))
    }

    /// Sets the timer to `timeout`, unless it is set to expire earlier, because an early expiry
    /// does no harm and moving the timer at each packet has a cost. Returns true if it expired.
    pub(crate) fn poll(&mut self, clock: &Clock, timeout: Option<Nanos>) -> bool {
        let Some(timeout) = timeout else {
            self.at = None;
            return false;
        };
        if self.at.is_none_or(|at| timeout < at) {
            self.at = Some(timeout);
            self.timer.as_mut().reset(clock.instant(timeout));
        } else if !self.bell.rang.load(Ordering::Relaxed) {
            return false;
        }
        // Cleared before the timer is polled, so that the next call sees a wakeup that comes later.
        self.bell.rang.swap(false, Ordering::Acquire);
        let mut cx = Context::from_waker(&self.waker);
        let rang = self.timer.as_mut().poll(&mut cx).is_ready();
        if rang {
            self.at = None;
        }
        rang
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::io;
    use std::net::UdpSocket;
    use std::sync::atomic::AtomicUsize;
    use std::task::Poll;
    use std::time::Instant;

    use super::*;
    use crate::runtime::{AsyncSocket, Runtime};

    /// Call counts of a test timer, and the result that its `poll` returns.
    #[derive(Debug, Default)]
    struct TimerState {
        polls: AtomicUsize,
        resets: AtomicUsize,
        over: AtomicBool,
        waker: Mutex<Option<Waker>>,
    }

    impl TimerState {
        /// Wakes the waiting task; `over`: the timer has expired.
        fn ring(&self, over: bool) {
            self.over.store(over, Ordering::SeqCst);
            let waker = self.waker.lock().expect("no panic").take();
            waker.expect("somebody waits").wake();
        }

        fn counts(&self) -> (usize, usize) {
            let count = |it: &AtomicUsize| it.load(Ordering::SeqCst);
            (count(&self.resets), count(&self.polls))
        }
    }

    struct TestTimer(Arc<TimerState>);

    impl Future for TestTimer {
        type Output = ();

        fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            self.0.polls.fetch_add(1, Ordering::SeqCst);
            if self.0.over.load(Ordering::SeqCst) {
                return Poll::Ready(());
            }
            *self.0.waker.lock().expect("no panic") = Some(cx.waker().clone());
            Poll::Pending
        }
    }

    impl Timer for TestTimer {
        fn reset(self: Pin<&mut Self>, _at: Instant) {
            self.0.over.store(false, Ordering::SeqCst);
            self.0.resets.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A runtime whose only timer is controlled by a test.
    #[derive(Debug)]
    struct OneTimer(Arc<TimerState>);

    impl Runtime for OneTimer {
        fn timer(&self, _at: Instant) -> Pin<Box<dyn Timer>> {
            Box::pin(TestTimer(Arc::clone(&self.0)))
        }

        fn spawn(&self, _task: Pin<Box<dyn Future<Output = ()> + Send>>) {}

        fn spawn_blocking(&self, _work: Box<dyn FnOnce() + Send>) {}

        fn watch(&self, _socket: UdpSocket) -> io::Result<Box<dyn AsyncSocket>> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// A task that counts its wakeups.
    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn driver_timer() -> (Arc<TimerState>, Clock, DriverTimer) {
        let told = Arc::new(TimerState::default());
        let clock = Clock::start(Arc::new(OneTimer(Arc::clone(&told))));
        let driver_timer = DriverTimer::new(&clock);
        (told, clock, driver_timer)
    }

    const LATE: Nanos = 3_600_000_000_000;

    #[test]
    fn the_timer_is_asked_only_when_it_was_set_or_woke() {
        let (told, clock, mut driver_timer) = driver_timer();
        let task = Arc::new(Task::default());
        drop(driver_timer.set_waker(Waker::from(Arc::clone(&task))));
        assert!(!driver_timer.poll(&clock, Some(LATE)));
        assert_eq!(told.counts(), (1, 1));
        // An equal or later timeout causes no call of the timer.
        assert!((0..100).all(|it| !driver_timer.poll(&clock, Some(LATE + it))));
        assert_eq!(told.counts(), (1, 1));
        // An earlier timeout sets the timer.
        assert!(!driver_timer.poll(&clock, Some(LATE - 1)));
        assert_eq!(told.counts(), (2, 2));
        // After an early wakeup the timer is polled once, and stays pending.
        told.ring(false);
        assert_eq!(task.0.load(Ordering::SeqCst), 1);
        assert!(
            !driver_timer.poll(&clock, Some(LATE - 1))
                && !driver_timer.poll(&clock, Some(LATE - 1))
        );
        assert_eq!(told.counts(), (2, 3));
        // The timer has expired; it is set again for the next time.
        told.ring(true);
        assert_eq!(task.0.load(Ordering::SeqCst), 2);
        assert!(driver_timer.poll(&clock, Some(LATE)));
        assert!(!driver_timer.poll(&clock, Some(LATE)));
        assert_eq!(told.counts(), (3, 5));
    }

    #[test]
    fn a_ring_while_nothing_was_due_is_seen_later_and_the_new_task_is_woken() {
        let (told, clock, mut driver_timer) = driver_timer();
        assert!(!driver_timer.poll(&clock, Some(LATE)));
        assert!(!driver_timer.poll(&clock, None));
        let task = Arc::new(Task::default());
        drop(driver_timer.set_waker(Waker::from(Arc::clone(&task))));
        told.ring(true);
        assert_eq!(task.0.load(Ordering::SeqCst), 1);
        // The timer expires without a due timeout, and is set again for the next timeout.
        assert!(!driver_timer.poll(&clock, None));
        assert!(!driver_timer.poll(&clock, Some(LATE)));
        assert_eq!(told.counts().0, 2);
    }

    /// A waker that records whether the lock was free when it was called.
    #[derive(Default)]
    struct LockCheck(Mutex<Option<Arc<TimerWaker>>>, AtomicBool);

    impl Wake for LockCheck {
        fn wake(self: Arc<Self>) {
            let bell = self.0.lock().expect("no panic");
            let free = bell.as_ref().is_some_and(|it| it.task.try_lock().is_ok());
            self.1.store(free, Ordering::SeqCst);
        }
    }

    #[test]
    fn the_task_is_woken_without_the_lock() {
        let looks = Arc::new(LockCheck::default());
        let bell = Arc::new(TimerWaker {
            rang: AtomicBool::new(false),
            task: Mutex::new(Arc::new(Waker::from(Arc::clone(&looks)))),
        });
        *looks.0.lock().expect("no panic") = Some(Arc::clone(&bell));
        Waker::from(bell).wake();
        assert!(looks.1.load(Ordering::SeqCst));
        looks.0.lock().expect("no panic").take();
    }
}
