//! Work counter for tests: key comparisons, moved fragments and examined words. It is a no-op
//! outside tests.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Adds steps.
#[inline(always)]
pub(super) fn count(steps: usize) {
    #[cfg(test)]
    STEPS.with(|it| it.set(it.get() + steps as u64));
    #[cfg(not(test))]
    let _ = steps;
}

/// Returns the steps since the last call.
#[cfg(test)]
pub(super) fn take() -> u64 {
    STEPS.with(|it| it.replace(0))
}
