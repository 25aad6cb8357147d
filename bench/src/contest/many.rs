//! What an association costs beside its messages: memory while it is idle, its handshake, and small messages to and fro.

use std::error::Error;
use std::fs;

use bytes::Bytes;

use super::{Conditions, Course, End};

/// Bytes of a page of memory.
const PAGE: usize = 4096;

/// Lets so many pairs of ends come together, one after the other.
///
/// # Errors
/// A pair does not.
pub fn handshakes<E: End>(conditions: &Conditions, pairs: u64) -> Result<(), Box<dyn Error>> {
    for _ in 0..pairs {
        Course::<E>::new(conditions)?.connect()?;
    }
    Ok(())
}

/// A message to and a message fro, so many times, over one association.
///
/// # Errors
/// One is not answered.
pub fn pings<E: End>(conditions: &Conditions, times: u64) -> Result<(), Box<dyn Error>> {
    let mut course = Course::<E>::new(conditions)?;
    course.connect()?;
    course.try_out()?;
    let payload = Bytes::from(vec![0x5a; conditions.message]);
    for _ in 0..times {
        course.call(0, &payload)?;
        course.call(1, &payload)?;
    }
    Ok(())
}

/// Memory that so many idle pairs hold, bytes a pair: what the process takes more of the system.
///
/// # Errors
/// A pair does not come together, or the system does not tell.
pub fn idle<E: End>(conditions: &Conditions, pairs: usize) -> Result<f64, Box<dyn Error>> {
    let mut kept = Vec::with_capacity(pairs);
    let before = resident()?;
    for _ in 0..pairs {
        let mut course = Course::<E>::new(conditions)?;
        course.connect()?;
        course.ends.iter_mut().for_each(E::rest);
        kept.push(course.ends);
    }
    Ok((resident()? - before) as f64 / kept.len() as f64)
}

/// Bytes of memory that this process has.
pub(super) fn resident() -> Result<usize, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/statm")?;
    let pages = text.split(' ').nth(1).ok_or("no second number in statm")?;
    Ok(pages.parse::<usize>()? * PAGE)
}

impl<E: End> Course<E> {
    /// A message from one end to the other, as far as it takes.
    fn call(&mut self, from: usize, payload: &Bytes) -> Result<(), Box<dyn Error>> {
        let to = 1 - from;
        let mut left = Some((0, payload));
        self.ends[from].fill(self.now, &mut || left.take())?;
        self.ends[from].give(self.now, &mut self.wire[to]);
        let mut came = false;
        // It may have to wait for an acknowledgement, which may be delayed.
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
