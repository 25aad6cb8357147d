//! Work on many items, distributed over threads.

use std::convert::Infallible;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Builder, ScopedJoinHandle};

/// Maximum number of threads, because more threads only wait for each other: 5,000 threads took 50
/// s for 40 runs.
const MAX_THREADS: usize = 512;

/// Number of threads for this many items.
pub(crate) fn threads(jobs: usize, items: usize) -> usize {
    jobs.min(items).clamp(1, MAX_THREADS)
}

/// Number of threads that the machine can execute at a time.
pub(crate) fn all_cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The items that are not yet taken.
struct Queue {
    items: usize,
    /// Number of items that a thread takes at a time.
    many: usize,
    next: AtomicUsize,
    stopped: AtomicBool,
}

/// Stops a queue if it is dropped by a panic.
struct StopOnPanic<'q>(&'q Queue);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

impl Queue {
    fn new(items: usize, many: usize) -> Self {
        Self {
            items,
            many: many.max(1),
            next: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Calls `work` with items until all are taken, or until an error or a panic of any thread.
    /// Returns the results with their items, and the error with its item.
    fn drain<T, E>(&self, work: &impl Fn(usize) -> Result<T, E>) -> Share<T, E> {
        let _guard = StopOnPanic(self);
        let mut done = Vec::new();
        while !self.is_stopped() {
            let start = self.next.fetch_add(self.many, Ordering::Relaxed);
            if start >= self.items {
                break;
            }
            for item in start..self.items.min(start.saturating_add(self.many)) {
                if self.is_stopped() {
                    break;
                }
                match work(item) {
                    Ok(result) => done.push((item, result)),
                    Err(error) => {
                        self.stop();
                        return (done, Some((item, error)));
                    }
                }
            }
        }
        (done, None)
    }
}

/// Results and error of one thread.
type Share<T, E> = (Vec<(usize, T)>, Option<(usize, E)>);

/// Calls `work` once with each number below `items` on `threads` threads, of which the caller is
/// one, and returns the results in their order. A thread takes `many` items at a time. If not all
/// threads can be started, those that exist do the work.
///
/// # Errors
/// The error of the first failed item. No item is begun after a failure or a panic.
pub(crate) fn each<T: Send, E: Send>(
    threads: usize,
    (items, many): (usize, usize),
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let queue = Queue::new(items, many);
    let shares: Vec<_> = thread::scope(|scope| {
        let start = |_| Builder::new().spawn_scoped(scope, || queue.drain(&work));
        let started: Vec<_> = (1..threads).map_while(|at| start(at).ok()).collect();
        let own = queue.drain(&work);
        started.into_iter().map(joined).chain([own]).collect()
    });
    let mut results: Vec<Option<T>> = (0..items).map(|_| None).collect();
    let mut first: Option<(usize, E)> = None;
    for (done, error) in shares {
        for (item, result) in done {
            results[item] = Some(result);
        }
        if let Some((item, error)) = error
            && first.as_ref().is_none_or(|(known, _)| item < *known)
        {
            first = Some((item, error));
        }
    }
    match first {
        Some((_, error)) => Err(error),
        None => Ok(results.into_iter().flatten().collect()),
    }
}

/// Like [`each`], with work that does not fail.
pub(crate) fn map<T: Send>(
    threads: usize,
    (items, many): (usize, usize),
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let Ok(results) = each(threads, (items, many), |item| {
        Ok::<_, Infallible>(work(item))
    });
    results
}

/// The result of a thread; a panic continues in the caller.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Calls both functions, `second` on another thread if one can be started, and returns both
/// results.
pub(crate) fn join<A, B: Send>(first: impl FnOnce() -> A, second: impl Fn() -> B + Sync) -> (A, B) {
    thread::scope(|scope| {
        let thread = Builder::new().spawn_scoped(scope, &second);
        let first = first();
        let second = match thread {
            Ok(thread) => joined(thread),
            Err(_) => second(),
        };
        (first, second)
    })
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn there_are_no_more_threads_than_items() {
        assert_eq!(threads(100_000, 3), 3);
        assert_eq!(threads(2, 40), 2);
        assert_eq!(threads(4, 0), 1);
        assert_eq!(threads(100_000, 100_000), MAX_THREADS);
    }

    #[test]
    fn results_stand_in_the_order_of_the_items() {
        for count in [1, 2, 3, 8] {
            for items in [0, 1, 7, 100] {
                for many in [0, 1, 8, 1000] {
                    let made = each(count, (items, many), |item| Ok::<_, ()>(item * item));
                    let expected: Vec<usize> = (0..items).map(|item| item * item).collect();
                    assert_eq!(made, Ok(expected));
                }
            }
        }
    }

    /// All threads should work at the same time, because each waits for the others at the barrier.
    #[test]
    fn each_thread_takes_its_share() {
        let all = Barrier::new(4);
        let made = each(4, (4, 1), |_| {
            all.wait();
            Ok::<_, ()>(thread::current().id())
        });
        let mut ids = made.expect("no failure");
        ids.sort_by_key(|id| format!("{id:?}"));
        ids.dedup();
        assert_eq!(ids.len(), 4);
    }

    /// The error is that of the lowest failed item.
    #[test]
    fn no_item_is_begun_after_a_failure() {
        let begun = AtomicUsize::new(0);
        let both = Barrier::new(2);
        let made = each(2, (1000, 1), |item| {
            begun.fetch_add(1, Ordering::Relaxed);
            both.wait();
            match item {
                0 | 1 => Err(item),
                _ => Ok(()),
            }
        });
        assert_eq!(made, Err(0));
        assert_eq!(begun.into_inner(), 2);
    }

    #[test]
    #[should_panic(expected = "item 5")]
    fn a_panic_reaches_the_caller() {
        let _ = each(2, (10, 1), |item| match item {
            5 => panic!("item 5"),
            _ => Ok::<_, ()>(()),
        });
    }

    #[test]
    fn no_item_is_begun_after_a_panic() {
        let queue = Queue::new(1000, 1);
        let fails = |item| -> Result<(), ()> { panic!("item {item}") };
        let first = catch_unwind(AssertUnwindSafe(|| queue.drain(&fails)));
        assert!(first.is_err());
        let (done, _) = queue.drain(&Ok::<_, ()>);
        assert_eq!(done.len(), 0);
    }

    /// Another thread fails while this one processes the third of its ten items.
    #[test]
    fn taken_items_are_not_begun_after_a_failure() {
        let queue = Queue::new(1000, 10);
        let (done, _) = queue.drain(&|item| {
            if item == 2 {
                queue.stop();
            }
            Ok::<_, ()>(item)
        });
        assert_eq!(done, [(0, 0), (1, 1), (2, 2)]);
    }

    #[test]
    fn both_sides_of_a_join_return() {
        let both = Barrier::new(2);
        let (one, two) = join(|| both.wait().is_leader(), || both.wait().is_leader());
        assert!(one != two);
    }
}
