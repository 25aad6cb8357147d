//! Cost of an association apart from bulk data: idle memory, handshakes, and round trips of small
//! messages.

use std::error::Error;
use std::fs;

use bytes::Bytes;

use super::{Conditions, End, Transfer};

/// Size of a memory page, bytes.
const PAGE: usize = 4096;

/// Establishes associations between `pairs` pairs of endpoints, one after the other.
///
/// # Errors
/// A handshake fails.
pub fn handshakes<E: End>(conditions: &Conditions, pairs: u64) -> Result<(), Box<dyn Error>> {
    for _ in 0..pairs {
        Transfer::<E>::new(conditions)?.connect()?;
    }
    Ok(())
}

/// Makes `times` round trips of a message over one association.
///
/// # Errors
/// A reply did not arrive.
pub fn pings<E: End>(conditions: &Conditions, times: u64) -> Result<(), Box<dyn Error>> {
    let mut course = Transfer::<E>::new(conditions)?;
    course.connect()?;
    course.try_out()?;
    let payload = Bytes::from(vec![0x5a; conditions.message]);
    for _ in 0..times {
        course.call(0, &payload)?;
        course.call(1, &payload)?;
    }
    Ok(())
}

/// Memory per idle pair of endpoints, bytes, from the growth of the resident memory with `pairs`
/// pairs.
///
/// # Errors
/// A handshake fails, or the system does not report the memory.
pub fn idle<E: End>(conditions: &Conditions, pairs: usize) -> Result<f64, Box<dyn Error>> {
    let mut kept = Vec::with_capacity(pairs);
    let before = resident()?;
    for _ in 0..pairs {
        let mut course = Transfer::<E>::new(conditions)?;
        course.connect()?;
        course.ends.iter_mut().for_each(E::rest);
        kept.push(course.ends);
    }
    Ok((resident()? - before) as f64 / kept.len() as f64)
}

/// Resident memory of this process, bytes.
pub(super) fn resident() -> Result<usize, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/statm")?;
    let pages = text.split(' ').nth(1).ok_or("no second number in statm")?;
    Ok(pages.parse::<usize>()? * PAGE)
}

impl<E: End> Transfer<E> {
    /// Transfers a message from one end to the other.
    fn call(&mut self, from: usize, payload: &Bytes) -> Result<(), Box<dyn Error>> {
        let to = 1 - from;
        let mut left = Some((0, payload));
        self.ends[from].fill(self.now, &mut || left.take())?;
        self.ends[from].give(self.now, &mut self.wire[to]);
        let mut came = false;
        // The message may wait for an acknowledgement, which may be delayed, so the time is
        // advanced.
        for _ in 0..100 {
            self.now += super::DELAY;
            for end in [to, from] {
                if self.ends[end].deadline().is_some_and(|at| at <= self.now) {
                    self.ends[end].expire(self.now);
                }
                for packet in std::mem::take(&mut self.wire[end]) {
                    self.ends[end].take(self.now, packet);
                }
                if end == to {
                    self.ends[end].read(&mut |_| {
                        came = true;
                        Ok(())
                    })?;
                }
                self.ends[end].give(self.now, &mut self.wire[1 - end]);
            }
            if came {
                return Ok(());
            }
        }
        Err("a message was not answered".into())
    }
}
