//! Processor affinity of benchmarks.

use std::io;
use std::ops::Range;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Restricts this thread and threads that it starts to the last `count` processors in `allowed`.
///
/// # Errors
/// There are fewer processors, or the system returns an error.
pub fn stay_on(allowed: &CpuSet, count: usize) -> io::Result<()> {
    stay_on_those(allowed, 0..count)
}

/// Like [`stay_on`], for a range of processors counted from the last.
///
/// # Errors
/// There are fewer processors, or the system returns an error.
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

/// Processors that this thread may use.
///
/// # Errors
/// Any error of the system.
pub fn allowed() -> io::Result<CpuSet> {
    Ok(sched_getaffinity(None)?)
}
