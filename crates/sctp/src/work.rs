//! Work counter: steps of the loops whose length a peer can control. Steps are counted only with
//! the feature `work`, which the tests of this crate enable; otherwise the counter compiles to no
//! code.
//!
//! A test that measures time depends on the machine. A test that counts steps does not: the number
//! of steps per byte of a packet shows whether a peer can cause disproportionate work.

#[cfg(feature = "work")]
mod counter {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    /// Adds `steps` on this thread.
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
    /// Has no effect.
    #[inline(always)]
    pub fn count(_steps: usize) {}

    /// Always 0.
    pub fn take() -> u64 {
        0
    }
}

pub use counter::{count, take};
