//! Timers of the runtime, sorted by expiry.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::Shared;
use super::epoll::Epoll;
use crate::runtime::Timer;

/// Timers for which a task waits.
#[derive(Debug, Default)]
pub(super) struct Timers(Mutex<Due>);

/// Sort key of a timer: its expiry, and a unique number.
type TimerKey = (Instant, u64);

#[derive(Debug, Default)]
struct Due {
    waiting: BTreeMap<TimerKey, Waiter>,
    /// The number for the next timer.
    next: u64,
    /// The time to which the system's timer is set. It is not changed if the timer with that expiry
    /// is dropped or moved to a later time; its expiry then has no effect.
    driver_timer: Option<Instant>,
}

#[derive(Debug)]
struct Waiter {
    waker: Waker,
    rang: Arc<AtomicBool>,
}

#[allow(
    clippy::disallowed_methods,
    reason = "the clock of endpoints on this runtime"
)]
fn now() -> Instant {
    Instant::now()
}

impl Due {
    fn insert(&mut self, at: Instant, waiter: Waiter, system: &Epoll) -> TimerKey {
        self.next += 1;
        let place = (at, self.next);
        self.waiting.insert(place, waiter);
        if self
            .driver_timer
            .is_none_or(|driver_timer| at < driver_timer)
        {
            self.driver_timer = Some(at);
            system.set_alarm(at.saturating_duration_since(now()));
        }
        place
    }
}

impl Timers {
    fn lock(&self) -> MutexGuard<'_, Due> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called when the system's timer has expired: wakes the tasks of expired timers, and sets the
    /// system's timer for the next one. `rung` is empty before and after.
    pub(super) fn ring(&self, system: &Epoll, rung: &mut Vec<Waker>) {
        let now = now();
        let mut due = self.lock();
        due.driver_timer = None;
        while let Some(first) = due.waiting.first_entry()
            && first.key().0 <= now
        {
            let Waiter { waker, rang } = first.remove();
            rang.store(true, Ordering::Release);
            rung.push(waker);
        }
        let next = due.waiting.first_key_value().map(|(place, _)| place.0);
        if let Some(next) = next {
            due.driver_timer = Some(next);
            system.set_alarm(next.saturating_duration_since(now));
        }
        drop(due);
        rung.drain(..).for_each(Waker::wake);
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Drops all waiting timers.
    pub(super) fn clear(&self) {
        let waiting = std::mem::take(&mut self.lock().waiting);
        drop(waiting);
    }
}

/// A timer of the runtime.
#[derive(Debug)]
pub(super) struct At {
    shared: Arc<Shared>,
    at: Instant,
    rang: Arc<AtomicBool>,
    /// Its sort key and waker while a task waits; `None` if it was not polled or has expired.
    waits: Option<(TimerKey, Waker)>,
}

impl At {
    pub(super) fn new(shared: Arc<Shared>, at: Instant) -> Self {
        Self {
            shared,
            at,
            rang: Arc::default(),
            waits: None,
        }
    }

    fn waiter(&self, waker: Waker) -> Waiter {
        Waiter {
            waker,
            rang: Arc::clone(&self.rang),
        }
    }
}

impl Future for At {
    type Output = ();

    /// A timer in the past becomes ready when the thread polls the system next, so that polling a
    /// timer does not read the clock.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.rang.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        match &this.waits {
            Some((_, known)) if known.will_wake(cx.waker()) => return Poll::Pending,
            _ => {}
        }
        let waiter = this.waiter(cx.waker().clone());
        let before = this.waits.take();
        let mut due = this.shared.timers.lock();
        let former = before.as_ref().map(|(place, _)| due.waiting.remove(place));
        if matches!(former, Some(None)) {
            // The timer is no longer queued: it has expired meanwhile, or the runtime has ended.
            return match this.rang.load(Ordering::Relaxed) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            };
        }
        let place = due.insert(this.at, waiter, &this.shared.system);
        // Wakers are dropped without the lock, because that may drop a task, and with it a timer.
        drop(due);
        this.waits = Some((place, cx.waker().clone()));
        Poll::Pending
    }
}

impl Timer for At {
    fn reset(mut self: Pin<&mut Self>, at: Instant) {
        let this = &mut *self;
        this.at = at;
        let mut due = this.shared.timers.lock();
        if let Some((place, _)) = &mut this.waits
            && let Some(waiter) = due.waiting.remove(place)
        {
            *place = due.insert(at, waiter, &this.shared.system);
            return;
        }
        this.rang.store(false, Ordering::Relaxed);
        drop(due);
        this.waits = None;
    }
}

impl Drop for At {
    fn drop(&mut self) {
        if let Some((place, _)) = self.waits.take() {
            let waiter = self.shared.timers.lock().waiting.remove(&place);
            drop(waiter);
        }
    }
}
