//! Work on many items, distributed over threads.

use std::convert::Infallible;
use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Builder, ScopedJoinHandle};

/// Maximum number of threads, because more threads only wait for each other: 5,000 threads took 50
/// s for 40 runs.
const MAX_THREADS: usize = 512;

/// Number of threads for this many items.
pub fn threads(jobs: usize, items: usize) -> usize {
    jobs.min(items).clamp(1, MAX_THREADS)
}

/// Number of threads that the machine can execute at a time.
pub fn all_cores() -> usize {
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

impl Queue {
    /// Calls `work` with items until all are taken, or until an error of any thread. Returns the
    /// results with their items, and the error with its item.
    fn drain<T, E>(&self, work: &impl Fn(usize) -> Result<T, E>) -> Share<T, E> {
        let mut done = Vec::new();
        while !self.stopped.load(Ordering::Relaxed) {
            let start = self.next.fetch_add(self.many, Ordering::Relaxed);
            if start >= self.items {
                break;
            }
            for item in start..self.items.min(start.saturating_add(self.many)) {
                match work(item) {
                    Ok(result) => done.push((item, result)),
                    Err(error) => {
                        self.stopped.store(true, Ordering::Relaxed);
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
/// one, and returns the results in their order. A thread takes `many` items at a time.
///
/// # Errors
/// A thread cannot be started. The inner error is that of the first failed item; no item is begun
/// after a failure.
pub fn each<T: Send, E: Send>(
    threads: usize,
    (items, many): (usize, usize),
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> io::Result<Result<Vec<T>, E>> {
    let queue = Queue {
        items,
        many: many.max(1),
        next: AtomicUsize::new(0),
        stopped: AtomicBool::new(false),
    };
    let shares = thread::scope(|scope| {
        let started: io::Result<Vec<_>> = (1..threads)
            .map(|_| Builder::new().spawn_scoped(scope, || queue.drain(&work)))
            .collect();
        let started = started.inspect_err(|_| queue.stopped.store(true, Ordering::Relaxed))?;
        let own = queue.drain(&work);
        let others = started.into_iter().map(joined);
        Ok::<_, io::Error>(others.chain([own]).collect::<Vec<_>>())
    })?;
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
    Ok(match first {
        Some((_, error)) => Err(error),
        None => Ok(results.into_iter().flatten().collect()),
    })
}

/// Like [`each`], with work that does not fail. If a thread cannot be started, the caller works
/// alone.
pub fn map<T: Send>(
    threads: usize,
    (items, many): (usize, usize),
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let sure = |item| Ok::<_, Infallible>(work(item));
    match each(threads, (items, many), sure) {
        Ok(Ok(results)) => results,
        Err(_) => (0..items).map(work).collect(),
    }
}

/// The result of a thread; a panic continues in the caller.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Calls both functions, `second` on another thread if one can be started, and returns both
/// results.
pub fn join<A, B: Send>(first: impl FnOnce() -> A, second: impl Fn() -> B + Sync) -> (A, B) {
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
                    assert_eq!(made.expect("threads"), Ok(expected));
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
        let mut ids = made.expect("threads").expect("no failure");
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
        assert_eq!(made.expect("threads"), Err(0));
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
    fn both_sides_of_a_join_return() {
        let both = Barrier::new(2);
        let (one, two) = join(|| both.wait().is_leader(), || both.wait().is_leader());
        assert!(one != two);
    }
}
