//! Messages given by the user and not yet cut into chunks: one queue per stream, a scheduler over them.

mod course;
mod empty;
mod holding;
mod interleaved;
mod wholes;
mod withdrawn;

use anabranch_wire::serial::{Fsn, Mid, Ssn};
use bytes::Bytes;

use crate::partial::{Course, MessageId, Terms};
use crate::queue::Queue;
use crate::scheduling::{Discipline, Scheduler, Served, Turn};
use crate::seldom::Seldom;
use crate::stream_table::StreamTable;
use holding::Holding;
use interleaved::Paused;

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Payload Protocol Identifier, handed through to the peer's user.
    pub ppid: u32,
    /// Deliver without regard to the order of the stream.
    pub unordered: bool,
    /// The user data; not empty.
    pub payload: Bytes,
}

/// A message or the next piece of one, ready to become a DATA chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fragment {
    pub stream: u16,
    pub ssn: Ssn,
    /// The message's number among the ordered or the unordered ones of its stream, and that of this piece in it.
    pub mid: Mid,
    pub fsn: Fsn,
    pub ppid: u32,
    pub unordered: bool,
    pub beginning: bool,
    pub ending: bool,
    /// The user wants the end of the message acknowledged at once, and this is it.
    pub immediate: bool,
    /// The user's own name for the message.
    pub context: u32,
    pub user_data: Bytes,
}

impl Fragment {
    /// Which message it is of.
    pub fn message(&self) -> MessageId {
        (self.stream, self.unordered, self.mid.0)
    }

    /// Whether it is the last of several of its message.
    #[inline(always)]
    pub fn ends_several(&self) -> bool {
        self.ending && !self.beginning
    }

    /// All of a message, with its numbers in its stream.
    #[inline(always)]
    fn whole(
        stream: u16,
        (ssn, mid): (Ssn, Mid),
        message: Message,
        (immediate, context): (bool, u32),
    ) -> Self {
        Self {
            stream,
            ssn,
            mid,
            fsn: Fsn(0),
            ppid: message.ppid,
            unordered: message.unordered,
            beginning: true,
            ending: true,
            immediate,
            context,
            user_data: message.payload,
        }
    }
}

/// A message that waits, and whether its user wants it acknowledged at once.
#[derive(Debug)]
struct Queued {
    message: Message,
    immediate: bool,
    /// The user's own name for it.
    context: u32,
    /// When it is given up, and who wants to know.
    terms: Option<Box<Terms>>,
    course: Option<Box<Course>>,
}

#[derive(Debug, Default)]
struct OutStream {
    messages: Queue<Queued>,
    /// Bytes of them, and of the one that is under way.
    bytes: usize,
    next_ssn: Ssn,
    /// The numbers of the next ordered and the next unordered message.
    next_mid: [Mid; 2],
}

impl OutStream {
    /// The numbers of a message that begins.
    #[inline]
    fn number(&mut self, unordered: bool) -> (Ssn, Mid) {
        let ssn = self.next_ssn;
        if !unordered {
            self.next_ssn = ssn.next();
        }
        let next = &mut self.next_mid[usize::from(unordered)];
        let mid = *next;
        *next = Mid(mid.0.wrapping_add(1));
        (ssn, mid)
    }
}

/// A message of which a part was sent: nothing else is sent before its end (RFC 9260 §6.9).
#[derive(Debug)]
struct Started {
    stream: u16,
    ssn: Ssn,
    mid: Mid,
    /// Of the next piece.
    fsn: Fsn,
    message: Message,
    immediate: bool,
    context: u32,
    untouched: bool,
    /// All of it.
    whole: Bytes,
    /// All of it, where it may be given up, and when that is.
    terms: Option<Box<(Terms, Bytes)>>,
    course: Option<Box<Course>>,
}

impl Started {
    /// The number of its receipt, if its user wants one.
    fn receipt(&self) -> Option<u64> {
        self.terms.as_ref()?.0.receipt
    }
}

/// A message that is taken out of the queue and was not begun.
#[derive(Debug)]
pub(super) struct Unsent {
    pub stream: Option<u16>,
    pub message: Message,
    /// The user's own name for it.
    pub context: u32,
    /// The number of its receipt, if its user wants one.
    pub receipt: Option<u64>,
}

/// The queues of all streams. A stream takes memory only once it was used.
#[derive(Debug)]
pub(super) struct SendQueue {
    streams: StreamTable<OutStream>,
    /// Messages that get a stream when they are begun.
    spread: Seldom<Queue<Queued>>,
    scheduler: Scheduler,
    started: Option<Started>,
    /// Bytes of the next message that are not sent; 0: there is none.
    next: usize,
    bytes: usize,
    /// Messages that are queued, the one that is under way and those that wait behind a reset included.
    messages: usize,
    /// While streams are being reset.
    holding: Option<Box<Holding>>,
    /// Bytes of messages that wait behind a reset.
    behind: usize,
    /// The terms of the message that was begun last, and all of it, for who asks.
    begun: Option<Box<(Terms, Bytes)>>,
    /// The number of the receipt of the message whose last chunk was taken last, for who asks.
    ended: Option<u64>,
    /// All of the message of several chunks whose last chunk was taken last, for who asks.
    whole: Bytes,
    /// While messages are interleaved: those that were begun and are not under way.
    paused: Option<Box<Paused>>,
    /// A message had a course of its own, so that others may.
    has_courses: bool,
    /// The user's own name for the message that is queued next.
    context: u32,
}

impl SendQueue {
    /// Bytes of user data queued, with those that wait behind a reset.
    pub fn bytes(&self) -> usize {
        self.bytes + self.behind
    }

    /// Bytes of user data queued for `stream`, with those that wait behind a reset.
    pub fn bytes_of(&self, stream: u16) -> usize {
        let queued = self.streams.get(stream).map_or(0, |it| it.bytes);
        queued + self.bytes_behind(stream)
    }

    /// Messages queued, the one that is under way and those that wait behind a reset included.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Whether nothing may be sent.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The user's own name for the messages that are queued from now on.
    #[inline(always)]
    pub fn set_context(&mut self, context: u32) {
        self.context = context;
    }

    /// Queues a message, for a stream or for any; `immediate`: the SACK of its end shall not be delayed.
    #[inline(always)]
    pub fn push(
        &mut self,
        turn: Turn,
        message: Message,
        immediate: bool,
        terms: Option<Box<Terms>>,
        course: Option<Box<Course>>,
    ) {
        debug_assert!(
            !message.payload.is_empty(),
            "an empty message has no place on the wire"
        );
        self.has_courses |= course.is_some();
        let queued = Queued {
            message,
            immediate,
            context: self.context,
            terms,
            course,
        };
        if self.holding.is_some() {
            return self.push_beside(turn, queued);
        }
        self.enqueue(turn, queued);
    }

    /// As [`Self::push`], while streams are being reset.
    #[cold]
    #[inline(never)]
    fn push_beside(&mut self, turn: Turn, queued: Queued) {
        if let Some(queued) = self.hold_back(turn, queued) {
            self.enqueue(turn, queued);
        }
    }

    #[inline(always)]
    fn enqueue(&mut self, turn: Turn, queued: Queued) {
        let length = queued.message.payload.len();
        if self.bytes == 0 {
            self.next = length;
        }
        self.bytes += length;
        self.messages += 1;
        let queue = match turn {
            Turn::Stream(stream) => {
                let entry = self.streams.entry(stream);
                entry.bytes += length;
                &mut entry.messages
            }
            Turn::Spread => self.spread.make(),
        };
        queue.push_back(queued);
        let waiting = queue.len() + self.paused_at(turn);
        if self.scheduler.queued(turn, waiting) {
            self.next = self.find_next();
        }
    }

    /// User data of the next chunk if it may hold `most` bytes; 0 if nothing is queued.
    #[inline]
    pub fn next_len(&self, most: usize) -> usize {
        debug_assert_eq!(self.next, self.find_next());
        self.next.min(most)
    }

    /// Looks for the next message, and gives the bytes of it that are not sent.
    fn find_next(&self) -> usize {
        let next = match &self.started {
            Some(started) => Some(&started.message),
            None => self.scheduler.pick().and_then(|turn| {
                if let Some(paused) = self.paused_of(turn) {
                    return Some(&paused.message);
                }
                let next = match turn {
                    Turn::Stream(stream) => self.streams.get(stream)?.messages.front(),
                    Turn::Spread => self.spread.front(),
                };
                next.map(|queued| &queued.message)
            }),
        };
        next.map_or(0, |message| message.payload.len())
    }

    /// Takes the next chunk, of at most `most` bytes of user data; `any` names the stream of a message that was given
    /// without one.
    #[inline(never)]
    pub fn pop(&mut self, most: usize, any: impl FnMut() -> u16) -> Option<Fragment> {
        self.pop_here(most, any)
    }

    /// As [`Self::pop`], as part of its caller.
    #[inline(always)]
    pub fn pop_here(&mut self, most: usize, any: impl FnMut() -> u16) -> Option<Fragment> {
        if self.paused.is_some() {
            return self.pop_interleaved(most, any);
        }
        if self.started.is_none()
            && let Some(fragment) = self.pop_whole(most)
        {
            return Some(fragment);
        }
        self.start_next(any);
        let started = self.started.as_mut()?;
        self.scheduler.went_on(Turn::Stream(started.stream));
        let user_data = started
            .message
            .payload
            .split_to(started.message.payload.len().min(most));
        self.bytes -= user_data.len();
        self.streams.entry(started.stream).bytes -= user_data.len();
        let ending = started.message.payload.is_empty();
        if started.untouched && started.terms.is_some() {
            self.begun.clone_from(&started.terms);
        }
        let fsn = started.fsn;
        started.fsn = Fsn(fsn.0.wrapping_add(1));
        let fragment = Fragment {
            stream: started.stream,
            ssn: started.ssn,
            mid: started.mid,
            fsn,
            ppid: started.message.ppid,
            unordered: started.message.unordered,
            beginning: std::mem::take(&mut started.untouched),
            ending,
            immediate: ending && started.immediate,
            context: started.context,
            user_data,
        };
        self.next -= fragment.user_data.len();
        if fragment.ending {
            self.ended = started.receipt();
            if let Some(started) = self.started.take() {
                self.whole = started.whole;
            }
            self.messages -= 1;
            self.next = self.find_next();
        }
        Some(fragment)
    }

    /// The next message, if it was given for a stream and fits one chunk. That is as if it was started and ended, as any other is, and
    /// costs less.
    #[inline(always)]
    fn pop_whole(&mut self, most: usize) -> Option<Fragment> {
        let turn @ Turn::Stream(stream) = self.scheduler.pick()? else {
            return None;
        };
        let length = self.next;
        if length > most {
            return None;
        }
        let entry = self.streams.entry(stream);
        let Queued {
            message,
            immediate,
            context,
            terms,
            ..
        } = entry.messages.pop_front()?;
        if let Some(terms) = terms {
            self.ended = terms.receipt;
            self.begun = Some(Box::new((*terms, message.payload.clone())));
        }
        entry.bytes -= length;
        let numbers = entry.number(message.unordered);
        let after = entry.messages.front();
        let after = after.map(|queued| queued.message.payload.len());
        let again = self.scheduler.served(Served {
            turn,
            bytes: length,
            ended: true,
            waiting: entry.messages.len(),
        });
        self.bytes -= length;
        self.messages -= 1;
        self.next = match after {
            Some(after) if again => after,
            _ => self.find_next(),
        };
        let said = (immediate, context);
        Some(Fragment::whole(stream, numbers, message, said))
    }

    /// Nothing more goes into the packet.
    #[inline]
    pub fn packet_ended(&mut self) {
        if self.scheduler.packet_ended() {
            self.next = self.find_next();
        }
    }

    /// Sets the value of a stream, which the scheduler goes by.
    pub fn set_value(&mut self, stream: u16, value: u16) {
        self.scheduler.set_value(stream, value);
        self.next = self.find_next();
    }

    /// The terms of the message whose first chunk was taken last, and all of it; once.
    pub fn take_begun(&mut self) -> Option<Box<(Terms, Bytes)>> {
        self.begun.take()
    }

    /// The number of the receipt of the message whose last chunk was taken last, if its user wants one; once.
    pub fn take_ended(&mut self) -> Option<u64> {
        self.ended.take()
    }

    /// All of the message of several chunks whose last chunk was taken last; once.
    #[inline]
    pub fn take_whole(&mut self) -> Bytes {
        std::mem::take(&mut self.whole)
    }

    /// The terms of the next message, if it was not begun.
    pub fn next_terms(&self) -> Option<&Terms> {
        if self.started.is_some() {
            return None;
        }
        let turn = self.scheduler.pick()?;
        if self.paused_of(turn).is_some() {
            return None;
        }
        let next = match turn {
            Turn::Stream(stream) => self.streams.get(stream)?.messages.front(),
            Turn::Spread => self.spread.front(),
        };
        next?.terms.as_deref()
    }

    /// The terms of the message that is under way.
    pub fn started_terms(&self) -> Option<&Terms> {
        Some(&self.under_way()?.terms.as_ref()?.0)
    }

    /// The message that is gone on with next, if it was begun.
    fn under_way(&self) -> Option<&Started> {
        match &self.started {
            None if self.paused.is_some() => self.paused_of(self.scheduler.pick()?),
            started => started.as_ref(),
        }
    }

    /// The stream and number of the message that is gone on with next, if it was begun, and whether it is unordered.
    pub fn started_message(&self) -> Option<MessageId> {
        let started = self.under_way()?;
        Some((started.stream, started.message.unordered, started.mid.0))
    }

    /// Forgets the rest of the message of `stream` that was begun.
    pub fn drop_started(&mut self, stream: u16) {
        if self.paused.is_some() {
            return self.drop_paused(stream);
        }
        if let Some(started) = self.started.take() {
            self.bytes -= started.message.payload.len();
            self.streams.entry(started.stream).bytes -= started.message.payload.len();
            self.messages -= 1;
            self.next = self.find_next();
        }
    }

    /// Takes out the next message, which was not begun.
    pub fn drop_next(&mut self) -> Option<Unsent> {
        let turn = self.scheduler.pick()?;
        self.drop_at(turn, 0)
    }

    /// Takes out the message of the lowest priority that was not begun, if that is lower than `priority`: of the largest number,
    /// the oldest first.
    pub fn drop_lower(&mut self, priority: u32) -> Option<Unsent> {
        let mut worst: Option<(u32, Turn, usize)> = None;
        for turn in self.scheduler.queues() {
            let queue = match turn {
                Turn::Stream(stream) => self.streams.get(stream).map(|it| &it.messages),
                Turn::Spread => Some(&*self.spread),
            };
            for (at, queued) in queue.into_iter().flat_map(|it| it.iter().enumerate()) {
                let of_it = queued.terms.as_ref().and_then(|terms| terms.priority);
                if let Some(number) = of_it.filter(|number| *number > priority)
                    && worst.is_none_or(|(most, ..)| number > most)
                {
                    worst = Some((number, turn, at));
                }
            }
        }
        let (_, turn, at) = worst?;
        self.drop_at(turn, at)
    }

    fn drop_at(&mut self, turn: Turn, at: usize) -> Option<Unsent> {
        let (queue, stream) = match turn {
            Turn::Stream(stream) => (&mut self.streams.entry(stream).messages, Some(stream)),
            Turn::Spread => (self.spread.make(), None),
        };
        let dropped = queue.remove(at)?;
        let waiting = queue.len();
        if let Turn::Stream(stream) = turn {
            self.streams.entry(stream).bytes -= dropped.message.payload.len();
        }
        let paused = self.paused_at(turn);
        self.scheduler.dropped(turn, at + paused, waiting + paused);
        self.bytes -= dropped.message.payload.len();
        self.messages -= 1;
        self.next = self.find_next();
        Some(dropped.unsent(stream))
    }

    /// Lets the scheduler pick a message, unless one is under way.
    fn start_next(&mut self, mut any: impl FnMut() -> u16) {
        if self.started.is_some() {
            return;
        }
        let Some(turn) = self.scheduler.pick() else {
            return;
        };
        let queue = match turn {
            Turn::Stream(stream) => &mut self.streams.entry(stream).messages,
            Turn::Spread => self.spread.make(),
        };
        let Some(Queued {
            message,
            immediate,
            context,
            terms,
            course,
        }) = queue.pop_front()
        else {
            return;
        };
        let terms = terms.map(|terms| Box::new((*terms, message.payload.clone())));
        self.scheduler.served(Served {
            turn,
            bytes: message.payload.len(),
            ended: true,
            waiting: queue.len(),
        });
        let stream = match turn {
            Turn::Stream(stream) => stream,
            Turn::Spread => any(),
        };
        let entry = self.streams.entry(stream);
        if turn == Turn::Spread {
            entry.bytes += message.payload.len();
        }
        let (ssn, mid) = entry.number(message.unordered);
        self.started = Some(Started {
            stream,
            ssn,
            mid,
            fsn: Fsn(0),
            whole: message.payload.clone(),
            message,
            immediate,
            context,
            untouched: true,
            terms,
            course,
        });
    }
}

#[cfg(test)]
mod tests;
