//! Work counted in tests: comparisons of keys, pieces moved, words looked at. Elsewhere this is nothing.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// So much was done.
#[inline(always)]
pub(super) fn count(steps: usize) {
    #[cfg(test)]
    STEPS.with(|it| it.set(it.get() + steps as u64));
    #[cfg(not(test))]
    let _ = steps;
}

/// What was done since the last call.
#[cfg(test)]
pub(super) fn take() -> u64 {
    STEPS.with(|it| it.replace(0))
}
