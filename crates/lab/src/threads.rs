//! Parallel planning with as many threads as are used for runs, and the threads of one run.

use std::thread;

use anabranch_engine::parallel::{Crew, Executor, Sequential};

use crate::pool;

/// Minimum number of items per thread, because starting a thread takes about as long as processing
/// one item.
const WORTH_A_THREAD: usize = 8;

/// Planner that uses at most this number of threads.
#[derive(Clone, Copy, Debug)]
pub struct Threads(pub usize);

impl Executor for Threads {
    fn each(&self, items: usize, work: &(dyn Fn(usize) + Sync)) {
        let threads = self.0.min(items / WORTH_A_THREAD);
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

    fn together(&self, parts: usize, others: &(dyn Fn(usize) + Sync), first: &mut dyn FnMut()) {
        thread::scope(|scope| {
            for part in 1..parts {
                scope.spawn(move || others(part));
            }
            first();
        });
    }
}
