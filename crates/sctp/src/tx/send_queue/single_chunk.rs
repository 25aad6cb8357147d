//! Unfragmented messages, taken in runs from the only active stream.
//!
//! Common checks are made once per run, and the queue's sums are updated once.

use super::{Fragment, OutStream, Queued, SendQueue};
use crate::stream_scheduler::{Discipline, QueueId, Scheduler, ServedData};

/// Run of single-chunk messages from the only active stream. The caller must call
/// [`SingleChunkRun::end`] afterwards.
pub(in crate::tx) struct SingleChunkRun<'a> {
    stream: u16,
    of: &'a mut OutStream,
    scheduler: &'a mut Scheduler,
    /// References to fields of [`SendQueue`].
    bytes: &'a mut usize,
    messages: &'a mut usize,
    next: &'a mut usize,
    /// Bytes of the message that was taken last (`last`), bytes of all taken messages (`taken`),
    /// and number of taken messages (`count`).
    last: usize,
    taken: usize,
    count: usize,
}

impl SendQueue {
    /// Starts a run, if no message is partly sent, all queued messages belong to one stream, and
    /// the scheduler has no other queue to select.
    #[inline(always)]
    pub fn single_chunk_run(&mut self) -> Option<SingleChunkRun<'_>> {
        if self.paused.is_some() || self.started.is_some() {
            return None;
        }
        let QueueId::Stream(stream) = self.scheduler.only()? else {
            return None;
        };
        Some(SingleChunkRun {
            stream,
            of: self.streams.entry(stream),
            scheduler: &mut self.scheduler,
            bytes: &mut self.bytes,
            messages: &mut self.messages,
            next: &mut self.next,
            last: 0,
            taken: 0,
            count: 0,
        })
    }
}

impl SingleChunkRun<'_> {
    /// Length in bytes of the next message; `None` if there is none, or if it has per-message
    /// options.
    #[inline(always)]
    pub fn next_len(&self) -> Option<usize> {
        let next = self.of.messages.front()?;
        next.terms.is_none().then_some(next.message.payload.len())
    }

    /// Takes the message whose length [`Self::next_len`] has returned.
    #[inline(always)]
    pub fn take(&mut self) -> Option<Fragment> {
        let Queued {
            message,
            immediate,
            context,
            ..
        } = self.of.messages.pop_of_run()?;
        self.last = message.payload.len();
        self.taken += self.last;
        self.count += 1;
        let numbers = self.of.number(message.unordered);
        let said = (immediate, context);
        Some(Fragment::whole(self.stream, numbers, message, said))
    }

    /// Ends the run. Returns whether the next message needs the slow path.
    #[inline(always)]
    pub fn end(self, most: usize) -> bool {
        if self.count > 0 {
            self.of.bytes -= self.taken;
            *self.bytes -= self.taken;
            *self.messages -= self.count;
            self.of.messages.end_run();
        }
        let Some(next) = self.of.messages.front() else {
            *self.next = 0;
            self.scheduler.served(ServedData {
                queue_id: QueueId::Stream(self.stream),
                bytes: self.last,
                ended: true,
                waiting: 0,
            });
            return false;
        };
        let length = next.message.payload.len();
        *self.next = length;
        length > most || next.terms.is_some()
    }
}
