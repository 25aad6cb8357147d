//! Planning in parallel, with the same number of threads as runs.

use anabranch_engine::parallel::{Executor, Sequential};

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
