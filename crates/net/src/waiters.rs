//! Tasks that wait for one thing, kept under the lock of what they wait for.

use std::task::Waker;

/// Whoever waits has a place here until all are woken, or until it leaves.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    waiting: Vec<(u64, Waker)>,
    next: u64,
}

/// Somebody's place; `None` until it waits for the first time.
pub(crate) type Place = Option<u64>;

impl Waiters {
    /// Waits at `place`, or goes on waiting there, with another waker perhaps.
    pub fn wait(&mut self, place: &mut Place, waker: &Waker) {
        let number = *place.get_or_insert_with(|| {
            self.next += 1;
            self.next
        });
        match self.waiting.iter_mut().find(|it| it.0 == number) {
            Some((_, known)) => known.clone_from(waker),
            None => self.waiting.push((number, waker.clone())),
        }
    }

    /// Waits no more at `place`, if it did.
    pub fn leave(&mut self, place: &mut Place) {
        if let Some(number) = place.take() {
            self.waiting.retain(|it| it.0 != number);
        }
    }

    /// Wakes all: what they wait for is there, for one of them perhaps. The others wait again.
    pub fn wake_all(&mut self) {
        for (_, waker) in self.waiting.drain(..) {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
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
        let mut waiters = Waiters::default();
        let (mut moved, mut gone, mut stays) = (None, None, None);
        waiters.wait(&mut moved, &wakers[0]);
        waiters.wait(&mut gone, &wakers[1]);
        waiters.wait(&mut moved, &wakers[2]);
        waiters.wait(&mut stays, &wakers[1]);
        waiters.leave(&mut gone);
        waiters.wake_all();
        assert_eq!(woken(), [0, 1, 1]);
        waiters.wake_all();
        assert_eq!(woken(), [0, 1, 1], "nobody waits");
        waiters.wait(&mut stays, &wakers[1]);
        waiters.wake_all();
        assert_eq!(woken(), [0, 2, 1], "a place may be used again");
        waiters.leave(&mut moved);
        waiters.leave(&mut gone);
    }
}
