//! Construction of a send queue.

use bytes::Bytes;

use super::SendQueue;
use crate::lazy_box::LazyBox;
use crate::stream_scheduler::Scheduler;
use crate::stream_table::StreamTable;

impl SendQueue {
    /// Whether no message is queued, in progress or deferred.
    #[inline]
    pub fn has_none(&self) -> bool {
        self.messages == 0
            && self.behind == 0
            && self.started.is_none()
            && self.begun.is_none()
            && self.paused.is_none()
            && self.deferred.is_none()
    }

    /// Empty queue with this scheduler.
    #[inline(always)]
    pub fn of(scheduler: Scheduler) -> Self {
        Self {
            streams: StreamTable::default(),
            unassigned: LazyBox::default(),
            scheduler,
            started: None,
            next: 0,
            bytes: 0,
            messages: 0,
            deferred: None,
            behind: 0,
            begun: None,
            ended: None,
            whole: Bytes::new(),
            paused: None,
            has_routes: false,
            context: 0,
        }
    }
}
