//! Distribution of work on many items: over the caller alone, or over several threads of the
//! program.

use std::sync::OnceLock;

/// Distributes work on many items.
pub trait Executor {
    /// Calls `work` once with each number below `items`, in any order, on any threads.
    fn each(&self, items: usize, work: &(dyn Fn(usize) + Sync));
}

/// Runs all work on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequential;

impl Executor for Sequential {
    fn each(&self, items: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..items).for_each(work);
    }
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
    // An item that was left out is processed here.
    let each = given.zip(items);
    each.map(|(result, item)| result.unwrap_or_else(|| work(item)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes the last item first, one twice, and leaves one out.
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
