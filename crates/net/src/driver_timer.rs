//! When the driver's next timer ends.
//!
//! A timer is asked only after it has been set, or has woken somebody: the driver looks at its alarm at each packet, and hardly any of these looks
//! finds that it rang.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

use anabranch_transport::Nanos;

use crate::clock::Clock;
use crate::runtime::Timer;

/// What the runtime's timer wakes: it notes so, and wakes the driver's task.
struct TimerWaker {
    rang: AtomicBool,
    /// Counted, so that neither a wake nor a drop of it happens under the lock: both may run anything.
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

/// The one timer of a driver.
pub(crate) struct DriverTimer {
    timer: Pin<Box<dyn Timer>>,
    bell: Arc<TimerWaker>,
    /// The bell, as the timer wants it.
    waker: Waker,
    /// When `timer` ends; `None`: nobody looks at it.
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
    /// One that is not set.
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

    /// Wakes that task from now on. Gives who was woken before. To be called, and that to be dropped, where nothing is locked.
    pub(crate) fn wakes(&self, task: Waker) -> Arc<Waker> {
        let mut known = self
            .bell
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *known, Arc::new(task))
    }

    /// Sets it for `timeout`, unless it rings sooner: a ring in vain does no harm, and to move it at each packet costs. Whether it rang.
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
        // Before the timer is asked: what wakes after that is seen the next time.
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

    /// What a timer was asked, and whether it says that its time has come.
    #[derive(Debug, Default)]
    struct Told {
        polls: AtomicUsize,
        resets: AtomicUsize,
        over: AtomicBool,
        waker: Mutex<Option<Waker>>,
    }

    impl Told {
        /// Wakes whoever waits, as a timer does when its time has come, or without a reason.
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

    struct Tellable(Arc<Told>);

    impl Future for Tellable {
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

    impl Timer for Tellable {
        fn reset(self: Pin<&mut Self>, _at: Instant) {
            self.0.over.store(false, Ordering::SeqCst);
            self.0.resets.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Its one timer does what a test tells.
    #[derive(Debug)]
    struct OneTimer(Arc<Told>);

    impl Runtime for OneTimer {
        fn timer(&self, _at: Instant) -> Pin<Box<dyn Timer>> {
            Box::pin(Tellable(Arc::clone(&self.0)))
        }

        fn spawn(&self, _task: Pin<Box<dyn Future<Output = ()> + Send>>) {}

        fn spawn_blocking(&self, _work: Box<dyn FnOnce() + Send>) {}

        fn watch(&self, _socket: UdpSocket) -> io::Result<Box<dyn AsyncSocket>> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn driver_timer() -> (Arc<Told>, Clock, DriverTimer) {
        let told = Arc::new(Told::default());
        let clock = Clock::start(Arc::new(OneTimer(Arc::clone(&told))));
        let driver_timer = DriverTimer::new(&clock);
        (told, clock, driver_timer)
    }

    const LATE: Nanos = 3_600_000_000_000;

    #[test]
    fn the_timer_is_asked_only_when_it_was_set_or_woke() {
        let (told, clock, mut driver_timer) = driver_timer();
        let task = Arc::new(Task::default());
        drop(driver_timer.wakes(Waker::from(Arc::clone(&task))));
        assert!(!driver_timer.poll(&clock, Some(LATE)));
        assert_eq!(told.counts(), (1, 1));
        // The same time, and later ones: nothing is asked.
        assert!((0..100).all(|it| !driver_timer.poll(&clock, Some(LATE + it))));
        assert_eq!(told.counts(), (1, 1));
        // Sooner: it is set.
        assert!(!driver_timer.poll(&clock, Some(LATE - 1)));
        assert_eq!(told.counts(), (2, 2));
        // In vain: it is asked once, and waits on.
        told.ring(false);
        assert_eq!(task.0.load(Ordering::SeqCst), 1);
        assert!(
            !driver_timer.poll(&clock, Some(LATE - 1))
                && !driver_timer.poll(&clock, Some(LATE - 1))
        );
        assert_eq!(told.counts(), (2, 3));
        // Its time has come; the next is set anew.
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
        drop(driver_timer.wakes(Waker::from(Arc::clone(&task))));
        told.ring(true);
        assert_eq!(task.0.load(Ordering::SeqCst), 1);
        // It is due for nobody, and set anew for the next who is.
        assert!(!driver_timer.poll(&clock, None));
        assert!(!driver_timer.poll(&clock, Some(LATE)));
        assert_eq!(told.counts().0, 2);
    }

    /// Whether the bell was free when the task was woken.
    #[derive(Default)]
    struct Looks(Mutex<Option<Arc<TimerWaker>>>, AtomicBool);

    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            let bell = self.0.lock().expect("no panic");
            let free = bell.as_ref().is_some_and(|it| it.task.try_lock().is_ok());
            self.1.store(free, Ordering::SeqCst);
        }
    }

    #[test]
    fn the_task_is_woken_without_the_lock() {
        let looks = Arc::new(Looks::default());
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
