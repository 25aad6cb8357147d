//! Execution of many work items, on the calling thread or on several threads of the program.

use std::io;
use std::sync::OnceLock;

/// Executes work items, in any order and on any threads.
pub trait Executor {
    /// Calls `work` once with each number below `items`. The calls may be in any order and on any
    /// threads.
    fn each(&self, items: usize, work: &(dyn Fn(usize) + Sync));
}

/// Executor that runs all items on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequential;

impl Executor for Sequential {
    fn each(&self, items: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..items).for_each(work);
    }
}

/// Runs the parts of one divided world on threads.
pub trait Crew: Sync {
    /// Number of threads.
    fn threads(&self) -> usize;

    /// Number of threads that can run at the same time. If a world has more parts than this, a
    /// thread that waits for other parts yields its processor at once.
    fn processors(&self) -> usize;

    /// Calls `first`, and calls `others` with each number from 1 to `parts - 1`. Each call needs a
    /// separate thread, because the calls wait for one another. Returns when all of them have
    /// returned.
    ///
    /// # Errors
    /// A thread cannot be started; then no function has been called.
    fn together(
        &self,
        parts: usize,
        others: &(dyn Fn(usize) + Sync),
        first: &mut dyn FnMut(),
    ) -> io::Result<()>;
}

/// The results of `work` for each item, in the order of the items.
pub(crate) fn map<T: Sync, R: Send + Sync>(
    spread: &dyn Executor,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let results: Vec<OnceLock<R>> = items.iter().map(|_| OnceLock::new()).collect();
    spread.each(items.len(), &|at| {
        results[at].get_or_init(|| work(&items[at]));
    });
    let given = results.into_iter().map(OnceLock::into_inner);
    // This thread processes the items that the executor has skipped.
    let each = given.zip(items);
    each.map(|(result, item)| result.unwrap_or_else(|| work(item)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Executor that processes the last item first, processes one item twice, and skips one.
    struct Careless;

    impl Executor for Careless {
        fn each(&self, items: usize, work: &(dyn Fn(usize) + Sync)) {
            (1..items).rev().chain([1]).for_each(work);
        }
    }

    #[test]
    fn results_stand_in_the_order_of_the_items() {
        for spread in [&Sequential as &dyn Executor, &Careless] {
            let made = map(spread, &["a", "b", "c"], |text| text.to_uppercase());
            assert_eq!(made, ["A", "B", "C"]);
        }
    }
}
