//! Parallel planning with as many threads as are used for runs, and the threads of one run.

use std::io;
use std::sync::{PoisonError, RwLock};
use std::thread::{self, Builder};

use anabranch_engine::parallel::{Crew, Executor, Sequential};

use crate::pool;

/// Minimum number of items per thread, because starting a thread takes about as long as processing
/// one item.
const WORTH_A_THREAD: usize = 8;

/// Planner that uses at most this number of threads.
#[derive(Clone, Copy, Debug)]
pub struct Threads(pub usize);

impl Threads {
    /// The results of `work` for each item, in the order of the items.
    pub fn map<T: Sync, R: Send>(self, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let threads = self.worth(items.len());
        pool::map(threads, (items.len(), WORTH_A_THREAD), |at| {
            work(&items[at])
        })
    }

    /// Number of threads that are useful for this many items.
    fn worth(self, items: usize) -> usize {
        pool::threads(self.0, items / WORTH_A_THREAD)
    }
}

impl Executor for Threads {
    fn each(&self, items: usize, work: &(dyn Fn(usize) + Sync)) {
        let threads = self.worth(items);
        if threads < 2 {
            return Sequential.each(items, work);
        }
        pool::map(threads, (items, WORTH_A_THREAD), work);
    }
}

/// Threads that share one run.
#[derive(Clone, Copy, Debug)]
pub struct Team(pub usize);

impl Crew for Team {
    fn threads(&self) -> usize {
        self.0
    }

    fn processors(&self) -> usize {
        pool::all_cores()
    }

    fn together(
        &self,
        parts: usize,
        others: &(dyn Fn(usize) + Sync),
        first: &mut dyn FnMut(),
    ) -> io::Result<()> {
        together(parts, |_| Builder::new(), others, first)
    }
}

/// Implements [`Crew::together`]. `builder` returns the builder of the thread of a part.
fn together(
    parts: usize,
    builder: impl Fn(usize) -> Builder,
    others: &(dyn Fn(usize) + Sync),
    first: &mut dyn FnMut(),
) -> io::Result<()> {
    // Whether all threads were started. The lock is held until this is known, because parts wait
    // for each other and therefore no part may begin before all threads exist.
    let gate = RwLock::new(false);
    let is_open = || *gate.read().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        let mut open = gate.write().unwrap_or_else(PoisonError::into_inner);
        for part in 1..parts {
            let run = move || {
                if is_open() {
                    others(part);
                }
            };
            builder(part).spawn_scoped(scope, run)?;
        }
        *open = true;
        drop(open);
        first();
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn parts_run_at_the_same_time() {
        let all = Barrier::new(4);
        let numbers = AtomicUsize::new(0);
        let others = |part| {
            numbers.fetch_add(part, Ordering::Relaxed);
            all.wait();
        };
        Team(4)
            .together(4, &others, &mut || {
                all.wait();
            })
            .expect("threads");
        assert_eq!(numbers.into_inner(), 1 + 2 + 3);
    }

    /// If one thread cannot be started, the other parts would wait for its part forever, so they
    /// should not begin.
    #[test]
    fn no_part_begins_if_a_thread_cannot_be_started() {
        for missing in 1..4 {
            // A stack of this size does not fit into the address space.
            let builder = |part| match part == missing {
                true => Builder::new().stack_size(1 << 60),
                false => Builder::new(),
            };
            let begun = AtomicUsize::new(0);
            let begin = || {
                begun.fetch_add(1, Ordering::Relaxed);
            };
            let failed = together(4, builder, &|_| begin(), &mut || begin());
            assert!(failed.is_err(), "part {missing}");
            assert_eq!(begun.into_inner(), 0, "part {missing}");
        }
    }
}
