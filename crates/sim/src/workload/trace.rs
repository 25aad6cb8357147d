//! Messages that were written down.

use anabranch_transport::Nanos;

use super::{Message, Offer, Workload};
use crate::error::BuildError;

/// One message of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// When it is due, counted from the first question.
    pub after: Nanos,
    /// Its size, bytes, and stream.
    pub message: Message,
}

/// The messages of a trace, in order.
#[derive(Clone, Debug)]
pub struct Trace {
    entries: Vec<TraceEntry>,
    offered: usize,
    begin: Option<Nanos>,
}

impl Trace {
    /// These messages.
    ///
    /// # Errors
    /// [`BuildError::Workload`] if they are not in the order of time or one is empty.
    pub fn new(entries: Vec<TraceEntry>) -> Result<Self, BuildError> {
        if !entries.is_sorted_by_key(|entry| entry.after) {
            return Err(BuildError::Workload("a trace in the order of time"));
        }
        if entries.iter().any(|entry| entry.message.size == 0) {
            return Err(BuildError::Workload("messages of at least one byte"));
        }
        Ok(Self {
            entries,
            offered: 0,
            begin: None,
        })
    }
}

impl Workload for Trace {
    fn next(&mut self, now: Nanos) -> Offer {
        let begin = *self.begin.get_or_insert(now);
        let Some(entry) = self.entries.get(self.offered) else {
            return Offer::Done;
        };
        let due = begin.saturating_add(entry.after);
        if due > now {
            return Offer::At(due);
        }
        self.offered += 1;
        Offer::Now(entry.message)
    }
}
