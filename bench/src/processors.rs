//! The processors that a bench uses.

use std::io;
use std::ops::Range;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps this thread, and those that it will start, on the last so many of the processors that `allowed` has.
///
/// # Errors
/// There are not so many, or what the system says.
pub fn stay_on(allowed: &CpuSet, count: usize) -> io::Result<()> {
    stay_on_those(allowed, 0..count)
}

/// The same on some of them, counted from the last.
///
/// # Errors
/// There are not so many, or what the system says.
pub fn stay_on_those(allowed: &CpuSet, those: Range<usize>) -> io::Result<()> {
    let mut few = CpuSet::new();
    let all = (0..CpuSet::MAX_CPU).rev().filter(|it| allowed.is_set(*it));
    let them = all.skip(those.start).take(those.len());
    them.for_each(|it| few.set(it));
    if few.count() as usize != those.len() {
        let (needed, found) = (those.end, allowed.count());
        return Err(io::Error::other(format!(
            "{needed} processors are needed; found {found}"
        )));
    }
    Ok(sched_setaffinity(None, &few)?)
}

/// Those that this thread may use.
///
/// # Errors
/// What the system says.
pub fn allowed() -> io::Result<CpuSet> {
    Ok(sched_getaffinity(None)?)
}
