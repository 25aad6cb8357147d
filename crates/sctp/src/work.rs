//! Counted work: steps of the loops whose length a peer may choose. Counts only with the feature `work`, which the tests of
//! this crate turn on; without it nothing is compiled in.
//!
//! A test that bounds time by the clock depends on the machine. One that bounds steps does not: the steps per byte of a
//! packet say whether a peer can buy more work than it pays for.

#[cfg(feature = "work")]
mod counter {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    /// Counts `steps` more on this thread.
    #[inline]
    pub fn count(steps: usize) {
        STEPS.with(|counter| counter.set(counter.get() + steps as u64));
    }

    /// Steps on this thread since the last call.
    pub fn take() -> u64 {
        STEPS.with(|counter| counter.replace(0))
    }
}

#[cfg(not(feature = "work"))]
mod counter {
    /// Counts nothing.
    #[inline(always)]
    pub fn count(_steps: usize) {}

    /// 0: nothing is counted.
    pub fn take() -> u64 {
        0
    }
}

pub use counter::{count, take};
