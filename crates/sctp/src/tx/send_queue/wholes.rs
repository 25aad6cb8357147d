//! Messages that fit a chunk each, taken in a row from the only stream that has any.
//!
//! What is the same for all of them is asked once, and the queue's sums are moved once.

use super::{Fragment, OutStream, Queued, SendQueue};
use crate::scheduling::{Discipline, Scheduler, Served, Turn};

/// The messages of the only stream that has any. [`Wholes::end`] must follow.
pub(in crate::tx) struct Wholes<'a> {
    stream: u16,
    of: &'a mut OutStream,
    scheduler: &'a mut Scheduler,
    /// Of [`SendQueue`].
    bytes: &'a mut usize,
    messages: &'a mut usize,
    next: &'a mut usize,
    /// Bytes of the message taken last, of all that were taken, and how many these are.
    last: usize,
    taken: usize,
    count: usize,
}

impl SendQueue {
    /// The messages that wait, if none has begun, all are of one stream, and their order asks for nothing.
    #[inline(always)]
    pub fn wholes(&mut self) -> Option<Wholes<'_>> {
        if self.paused.is_some() || self.started.is_some() {
            return None;
        }
        let Turn::Stream(stream) = self.scheduler.only()? else {
            return None;
        };
        Some(Wholes {
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

impl Wholes<'_> {
    /// Bytes of the next message; `None` if there is none, or one on terms of its own.
    #[inline(always)]
    pub fn next_len(&self) -> Option<usize> {
        let next = self.of.messages.front()?;
        next.terms.is_none().then_some(next.message.payload.len())
    }

    /// Takes the message that [`Self::next_len`] told of, all of it.
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

    /// No more are taken now. Whether the next message is one that must go otherwise.
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
            self.scheduler.served(Served {
                turn: Turn::Stream(self.stream),
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
