//! Threads that plan: as many as do runs.

use anabranch_engine::spread::{Alone, Spread};
use rayon::ThreadPoolBuilder;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

/// Items that are worth a thread, whose start takes about as long as one of them.
const WORTH_A_THREAD: usize = 8;

/// So many threads at most.
#[derive(Clone, Copy, Debug)]
pub struct Threads(pub usize);

impl Spread for Threads {
    fn each(&self, items: usize, work: &(dyn Fn(usize) + Sync)) {
        let threads = self.0.min(items / WORTH_A_THREAD);
        if threads < 2 {
            return Alone.each(items, work);
        }
        match ThreadPoolBuilder::new().num_threads(threads).build() {
            Ok(pool) => pool.install(|| {
                let items = (0..items).into_par_iter().with_min_len(WORTH_A_THREAD);
                items.for_each(work);
            }),
            // Without threads it is only slower.
            Err(_) => Alone.each(items, work),
        }
    }
}
