//! Seeds of random scenarios.

use std::ops::Range;
use std::panic::{RefUnwindSafe, catch_unwind};

/// Number in this environment variable; `None` if it is not set.
pub fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}=number")))
}

/// `CASE=seed` selects one seed. `CASES=number` runs this number of seeds instead of `usual`,
/// starting at seed `FROM`.
pub fn seeds(usual: u64) -> Range<u64> {
    if let Some(seed) = number("CASE") {
        return seed..seed + 1;
    }
    let from = number("FROM").unwrap_or(0);
    from..from + number("CASES").unwrap_or(usual)
}

/// Runs all [`seeds`], and fails at the end if one of them has failed. Returns the results.
pub fn each<T>(usual: u64, scenario: impl Fn(u64) -> T + RefUnwindSafe) -> Vec<T> {
    let (mut failed, mut results) = (Vec::new(), Vec::new());
    for seed in seeds(usual) {
        if seed.is_multiple_of(10_000) {
            println!("CASE={seed}");
        }
        match catch_unwind(|| scenario(seed)) {
            Ok(result) => results.push(result),
            Err(_) => {
                println!("failed: CASE={seed}");
                failed.push(seed);
            }
        }
        assert!(failed.len() < 20, "{failed:?}");
    }
    assert!(failed.is_empty(), "run them alone by CASE=: {failed:?}");
    results
}
