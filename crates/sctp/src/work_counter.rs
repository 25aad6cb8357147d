//! Work counter: steps of the loops whose length a peer can control. Steps are counted only with
//! the feature `work`, which the tests of this crate enable; otherwise the counter compiles to no
//! code.
//!
//! The number of steps per byte of a packet shows whether a peer can cause disproportionate work.
//! Unlike a measured time, it does not depend on the machine.

#[cfg(feature = "work")]
mod counter {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    /// Adds `steps` to the counter of this thread.
    #[inline]
    pub fn count(steps: usize) {
        STEPS.with(|counter| counter.set(counter.get() + steps as u64));
    }

    /// Steps counted on this thread since the last call.
    pub fn take() -> u64 {
        STEPS.with(|counter| counter.replace(0))
    }
}

#[cfg(not(feature = "work"))]
mod counter {
    /// Does nothing, because the feature `work` is off.
    #[inline(always)]
    pub fn count(_steps: usize) {}

    /// Always 0, because the feature `work` is off.
    pub fn take() -> u64 {
        0
    }
}

pub use counter::{count, take};
