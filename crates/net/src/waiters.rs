//! Tasks that wait until a condition may have become true.
//!
//! The condition is protected by another lock. No waker is cloned, woken or dropped while either
//! lock is held, because that may run any code, which may need these locks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Waiting tasks. A task stays in this list until all tasks are woken, or until it leaves.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// Number of times that all tasks were woken.
    round: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The first waiting task, stored without allocation because there is usually only one.
    first: Option<(u64, Waker)>,
    more: Vec<(u64, Waker)>,
    next: u64,
}

/// A task's number in the list, and the round whose end it waits for; `None` before it waits for
/// the first time.
pub(crate) type WaiterPlace = Option<(u64, u64)>;

impl Waiting {
    /// Sets the waker of the task `number`, and returns its previous waker.
    fn put(&mut self, number: u64, waker: Waker) -> Option<Waker> {
        let mut all = self.first.iter_mut().chain(&mut self.more);
        if let Some((_, known)) = all.find(|it| it.0 == number) {
            return Some(std::mem::replace(known, waker));
        }
        match &self.first {
            None => self.first = Some((number, waker)),
            Some(_) => self.more.push((number, waker)),
        }
        None
    }

    fn remove(&mut self, number: u64) -> Option<(u64, Waker)> {
        if self.first.as_ref().is_some_and(|it| it.0 == number) {
            return self.first.take();
        }
        let at = self.more.iter().position(|it| it.0 == number)?;
        Some(self.more.swap_remove(at))
    }
}

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current round, which ends when the condition changes. The round should be read under the
    /// lock of the condition, after the condition was found false.
    #[inline]
    pub(crate) fn round(&self) -> u64 {
        self.round.load(Ordering::Acquire)
    }

    /// Waits for the end of `round`. If the task waits already, its waker is replaced.
    ///
    /// # Errors
    /// The waker, if the round is over already.
    pub(crate) fn wait(
        &self,
        place: &mut WaiterPlace,
        round: u64,
        waker: Waker,
    ) -> Result<(), Waker> {
        let mut waiting = self.lock();
        if self.round() != round {
            return Err(waker);
        }
        let number = match *place {
            Some((number, _)) => number,
            None => {
                waiting.next += 1;
                waiting.next
            }
        };
        *place = Some((number, round));
        let before = waiting.put(number, waker);
        drop(waiting);
        drop(before);
        Ok(())
    }

    /// Removes the task from the list, if it waits.
    #[inline]
    pub(crate) fn leave(&self, place: &mut WaiterPlace) {
        // If the round has ended, all its tasks were removed already.
        if let Some((number, round)) = place.take()
            && round == self.round()
        {
            self.remove(number);
        }
    }

    #[cold]
    fn remove(&self, number: u64) {
        let left = self.lock().remove(number);
        drop(left);
    }

    /// Called under the lock of the condition when it has become true, possibly for only one of the
    /// tasks. Returns all tasks, which the caller must wake after it has released the lock. Tasks
    /// that find the condition false wait again.
    #[inline]
    pub(crate) fn end_round(&self) -> (Option<Waker>, Vec<(u64, Waker)>) {
        let mut waiting = self.lock();
        // A load and a store suffice, because both locks are held.
        self.round.store(self.round() + 1, Ordering::Release);
        let first = waiting.first.take().map(|(_, waker)| waker);
        (first, std::mem::take(&mut waiting.more))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_place_is_woken_once_and_by_its_last_waker() {
        let counts: [Arc<Count>; 3] = Default::default();
        let wakers = counts.clone().map(Waker::from);
        let woken = || counts.each_ref().map(|it| it.0.load(Ordering::Relaxed));
        let waiters = Waiters::default();
        let wait = |place: &mut WaiterPlace, waker: usize| {
            let waits = waiters.wait(place, waiters.round(), wakers[waker].clone());
            waits.expect("nothing came");
        };
        let wake = || wake(waiters.end_round());
        let (mut moved, mut gone, mut stays) = (None, None, None);
        wait(&mut moved, 0);
        wait(&mut gone, 1);
        wait(&mut moved, 2);
        wait(&mut stays, 1);
        waiters.leave(&mut gone);
        wake();
        assert_eq!(woken(), [0, 1, 1]);
        wake();
        assert_eq!(woken(), [0, 1, 1], "nobody waits");
        wait(&mut stays, 1);
        wake();
        assert_eq!(woken(), [0, 2, 1], "a place may be used again");
        waiters.leave(&mut moved);
        waiters.leave(&mut gone);
    }

    fn wake((first, more): (Option<Waker>, Vec<(u64, Waker)>)) {
        let more = more.into_iter().map(|(_, waker)| waker);
        first.into_iter().chain(more).for_each(Waker::wake);
    }

    /// A change between the check of the condition and the wait is not missed.
    #[test]
    fn a_change_between_check_and_wait_is_not_missed() {
        let count = Arc::new(Count::default());
        let waiters = Waiters::default();
        let (round, mut place) = (waiters.round(), None);
        wake(waiters.end_round());
        let refused = waiters.wait(&mut place, round, Waker::from(Arc::clone(&count)));
        assert!(refused.is_err() && place.is_none());
        let waits = waiters.wait(&mut place, waiters.round(), refused.expect_err("it is"));
        assert!(waits.is_ok());
        // A task that leaves after the round has ended is woken once more, but no longer waits.
        let woken = waiters.end_round();
        waiters.leave(&mut place);
        wake(woken);
        wake(waiters.end_round());
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        // Tasks in the list after one that has left are still woken.
        let (mut first, mut second) = (None, None);
        for place in [&mut first, &mut second] {
            let waker = Waker::from(Arc::clone(&count));
            waiters
                .wait(place, waiters.round(), waker)
                .expect("nothing came");
        }
        waiters.leave(&mut first);
        wake(waiters.end_round());
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
    }
}
