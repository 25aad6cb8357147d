//! Send queue: messages that are not sent yet, in one queue per stream, and a scheduler.

mod deferred_messages;
mod interleaved;
mod new_queue;
mod per_message_options;
mod single_chunk;
mod withdrawn;

use anabranch_wire::serial::{Fsn, Mid, Ssn};
use bytes::Bytes;

use crate::lazy_box::LazyBox;
use crate::pr_sctp::{MessageId, MessageRoute, PrPolicy};
use crate::shrinking_queue::Queue;
use crate::stream_scheduler::{Discipline, QueueId, Scheduler, ServedData};
use crate::stream_table::StreamTable;
use deferred_messages::DeferredMessages;
use interleaved::Paused;

/// Message of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Payload Protocol Identifier, passed to the peer's user.
    pub ppid: u32,
    /// Whether the message is delivered unordered.
    pub unordered: bool,
    /// User data; not empty.
    pub payload: Bytes,
}

/// Complete message or next fragment of a message, for one DATA chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fragment {
    pub stream: u16,
    pub ssn: Ssn,
    /// Number of the message among the ordered or unordered messages of its stream (`mid`), and
    /// number of the fragment within the message (`fsn`).
    pub mid: Mid,
    pub fsn: Fsn,
    pub ppid: u32,
    pub unordered: bool,
    pub beginning: bool,
    pub ending: bool,
    /// Whether this is the last fragment of a message for which the user requests an immediate
    /// SACK.
    pub immediate: bool,
    /// Context value of the message (RFC 9260 §11.1.5), which the user gets back if the message
    /// fails.
    pub context: u32,
    pub user_data: Bytes,
}

impl Fragment {
    /// Identifier of the fragment's message.
    pub fn message(&self) -> MessageId {
        (self.stream, self.unordered, self.mid.0)
    }

    /// Whether this is the last fragment of a fragmented message.
    #[inline(always)]
    pub fn ends_several(&self) -> bool {
        self.ending && !self.beginning
    }

    /// Fragment that contains a whole message.
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

/// Queued message; `immediate`: its user requests an immediate SACK.
#[derive(Debug)]
struct Queued {
    message: Message,
    immediate: bool,
    /// The user's context value.
    context: u32,
    /// Abandonment policy of the message, and the number of the delivery receipt that its user
    /// requested; `None` if it has neither.
    terms: Option<Box<PrPolicy>>,
    route: Option<Box<MessageRoute>>,
}

#[derive(Debug, Default)]
struct OutStream {
    messages: Queue<Queued>,
    /// Number of bytes in queued messages and in the message in progress.
    bytes: usize,
    next_ssn: Ssn,
    /// Numbers of the next ordered and the next unordered message.
    next_mid: [Mid; 2],
}

impl OutStream {
    /// Returns the numbers of the next message and advances them.
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

/// Partly sent message. Without interleaving, its stream sends no other data until the last
/// fragment is sent (RFC 9260 §6.9).
#[derive(Debug)]
struct Started {
    stream: u16,
    ssn: Ssn,
    mid: Mid,
    /// Number of the next fragment.
    fsn: Fsn,
    message: Message,
    immediate: bool,
    context: u32,
    untouched: bool,
    /// User data of the whole message.
    whole: Bytes,
    /// Abandonment policy and user data of the whole message, if it may be abandoned.
    terms: Option<Box<(PrPolicy, Bytes)>>,
    route: Option<Box<MessageRoute>>,
}

impl Started {
    /// Receipt number, if requested.
    fn receipt(&self) -> Option<u64> {
        self.terms.as_ref()?.0.receipt
    }
}

/// Unsent message that was removed from the queue.
#[derive(Debug)]
pub(super) struct Unsent {
    pub stream: Option<u16>,
    pub message: Message,
    /// The user's context value.
    pub context: u32,
    /// Receipt number, if requested.
    pub receipt: Option<u64>,
}

/// Queues of all streams. A stream needs memory only after its first use.
#[derive(Debug)]
pub(super) struct SendQueue {
    streams: StreamTable<OutStream>,
    /// Messages to which a stream is assigned when their transmission starts.
    unassigned: LazyBox<Queue<Queued>>,
    scheduler: Scheduler,
    started: Option<Started>,
    /// Number of unsent bytes of the next message; 0 if there is none.
    next: usize,
    bytes: usize,
    /// Number of queued messages, including partly sent and deferred ones.
    messages: usize,
    /// Messages that are deferred while streams are being reset.
    deferred: Option<Box<DeferredMessages>>,
    /// Number of bytes in deferred messages.
    behind: usize,
    /// Policy and user data of the message that was started last; cleared when read.
    begun: Option<Box<(PrPolicy, Bytes)>>,
    /// Receipt number of the message whose last chunk was taken last; cleared when read.
    ended: Option<u64>,
    /// User data of the whole fragmented message whose last chunk was taken last; cleared when
    /// read.
    whole: Bytes,
    /// Paused messages that are partly sent; only with interleaving.
    paused: Option<Box<Paused>>,
    /// Whether any message so far had a destination address or key, so that each message must be
    /// checked.
    has_routes: bool,
    /// Context value that the user gave for the next message (RFC 9260 §11.1.5).
    context: u32,
}

impl SendQueue {
    /// Number of bytes of queued user data, including deferred messages.
    pub fn bytes(&self) -> usize {
        self.bytes + self.behind
    }

    /// Number of bytes of user data queued for `stream`, including deferred messages.
    pub fn bytes_of(&self, stream: u16) -> usize {
        let queued = self.streams.get(stream).map_or(0, |it| it.bytes);
        queued + self.bytes_behind(stream)
    }

    /// Number of queued messages, including partly sent and deferred ones.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Whether there is no data that may be sent.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Sets the user's context value for messages queued from now on.
    #[inline(always)]
    pub fn set_context(&mut self, context: u32) {
        self.context = context;
    }

    /// Queues a message for a stream, or for any stream. `immediate`: the peer should not delay the
    /// SACK for the last chunk of the message.
    #[inline(always)]
    pub fn push(
        &mut self,
        queue_id: QueueId,
        message: Message,
        immediate: bool,
        terms: Option<Box<PrPolicy>>,
        route: Option<Box<MessageRoute>>,
    ) {
        debug_assert!(
            !message.payload.is_empty(),
            "an empty message has no place on the wire"
        );
        self.has_routes |= route.is_some();
        let queued = Queued {
            message,
            immediate,
            context: self.context,
            terms,
            route,
        };
        if self.deferred.is_some() {
            return self.push_deferrable(queue_id, queued);
        }
        self.enqueue(queue_id, queued);
    }

    /// Like [`Self::push`], while streams are being reset.
    #[cold]
    #[inline(never)]
    fn push_deferrable(&mut self, queue_id: QueueId, queued: Queued) {
        if let Some(queued) = self.hold_back(queue_id, queued) {
            self.enqueue(queue_id, queued);
        }
    }

    #[inline(always)]
    fn enqueue(&mut self, queue_id: QueueId, queued: Queued) {
        let length = queued.message.payload.len();
        if self.bytes == 0 {
            self.next = length;
        }
        self.bytes += length;
        self.messages += 1;
        let queue = match queue_id {
            QueueId::Stream(stream) => {
                let entry = self.streams.entry(stream);
                entry.bytes += length;
                &mut entry.messages
            }
            QueueId::Unassigned => self.unassigned.make(),
        };
        queue.push_back(queued);
        let waiting = queue.len() + self.paused_at(queue_id);
        if self.scheduler.queued(queue_id, waiting) {
            self.next = self.find_next();
        }
    }

    /// Length in bytes of the user data of the next chunk, at most `most`; 0 if no message is
    /// queued.
    #[inline]
    pub fn next_len(&self, most: usize) -> usize {
        debug_assert_eq!(self.next, self.find_next());
        self.next.min(most)
    }

    /// Finds the next message, and returns the number of its unsent bytes.
    fn find_next(&self) -> usize {
        let next = match &self.started {
            Some(started) => Some(&started.message),
            None => self.scheduler.pick().and_then(|queue_id| {
                if let Some(paused) = self.paused_of(queue_id) {
                    return Some(&paused.message);
                }
                let next = match queue_id {
                    QueueId::Stream(stream) => self.streams.get(stream)?.messages.front(),
                    QueueId::Unassigned => self.unassigned.front(),
                };
                next.map(|queued| &queued.message)
            }),
        };
        next.map_or(0, |message| message.payload.len())
    }

    /// Takes the next chunk, with at most `most` bytes of user data. `any` selects a stream for a
    /// message that was queued without one.
    #[inline(never)]
    pub fn pop(&mut self, most: usize, any: impl FnMut() -> u16) -> Option<Fragment> {
        self.pop_here(most, any)
    }

    /// Like [`Self::pop`], inlined.
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
        self.scheduler.went_on(QueueId::Stream(started.stream));
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

    /// Takes the next message if it has a stream and fits into one chunk. The result is the same as
    /// if the message were started and completed, at a lower cost.
    #[inline(always)]
    fn pop_whole(&mut self, most: usize) -> Option<Fragment> {
        let queue_id @ QueueId::Stream(stream) = self.scheduler.pick()? else {
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
        let again = self.scheduler.served(ServedData {
            queue_id,
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

    /// Notifies the scheduler that the packet is complete.
    #[inline]
    pub fn packet_ended(&mut self) {
        if self.scheduler.packet_ended() {
            self.next = self.find_next();
        }
    }

    /// Sets the scheduler value of a stream.
    pub fn set_value(&mut self, stream: u16, value: u16) {
        self.scheduler.set_value(stream, value);
        self.next = self.find_next();
    }

    /// Returns policy and user data of the message whose first chunk was taken last.
    pub fn take_begun(&mut self) -> Option<Box<(PrPolicy, Bytes)>> {
        self.begun.take()
    }

    /// Returns the receipt number of the message whose last chunk was taken last, if requested.
    pub fn take_ended(&mut self) -> Option<u64> {
        self.ended.take()
    }

    /// Returns the user data of the whole fragmented message whose last chunk was taken last.
    #[inline]
    pub fn take_whole(&mut self) -> Bytes {
        std::mem::take(&mut self.whole)
    }

    /// Abandonment policy of the next message, if no part of it was sent.
    pub fn next_terms(&self) -> Option<&PrPolicy> {
        if self.started.is_some() {
            return None;
        }
        let queue_id = self.scheduler.pick()?;
        if self.paused_of(queue_id).is_some() {
            return None;
        }
        let next = match queue_id {
            QueueId::Stream(stream) => self.streams.get(stream)?.messages.front(),
            QueueId::Unassigned => self.unassigned.front(),
        };
        next?.terms.as_deref()
    }

    /// Abandonment policy of the message in progress.
    pub fn started_terms(&self) -> Option<&PrPolicy> {
        Some(&self.under_way()?.terms.as_ref()?.0)
    }

    /// Message that is continued next, if it is partly sent.
    fn under_way(&self) -> Option<&Started> {
        match &self.started {
            None if self.paused.is_some() => self.paused_of(self.scheduler.pick()?),
            started => started.as_ref(),
        }
    }

    /// Identifier of the message that is continued next, if it is partly sent.
    pub fn started_message(&self) -> Option<MessageId> {
        let started = self.under_way()?;
        Some((started.stream, started.message.unordered, started.mid.0))
    }

    /// Drops the remaining data of the partly sent message of `stream`.
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

    /// Removes the next message, of which no part was sent.
    pub fn drop_next(&mut self) -> Option<Unsent> {
        let queue_id = self.scheduler.pick()?;
        self.drop_at(queue_id, 0)
    }

    /// Removes the unsent message with the lowest priority below `priority`, that is, with the
    /// largest number; the oldest of these first.
    pub fn drop_lower(&mut self, priority: u32) -> Option<Unsent> {
        let mut worst: Option<(u32, QueueId, usize)> = None;
        for queue_id in self.scheduler.queues() {
            let queue = match queue_id {
                QueueId::Stream(stream) => self.streams.get(stream).map(|it| &it.messages),
                QueueId::Unassigned => Some(&*self.unassigned),
            };
            for (at, queued) in queue.into_iter().flat_map(|it| it.iter().enumerate()) {
                let of_it = queued.terms.as_ref().and_then(|terms| terms.priority);
                if let Some(number) = of_it.filter(|number| *number > priority)
                    && worst.is_none_or(|(most, ..)| number > most)
                {
                    worst = Some((number, queue_id, at));
                }
            }
        }
        let (_, queue_id, at) = worst?;
        self.drop_at(queue_id, at)
    }

    fn drop_at(&mut self, queue_id: QueueId, at: usize) -> Option<Unsent> {
        let (queue, stream) = match queue_id {
            QueueId::Stream(stream) => (&mut self.streams.entry(stream).messages, Some(stream)),
            QueueId::Unassigned => (self.unassigned.make(), None),
        };
        let dropped = queue.remove(at)?;
        let waiting = queue.len();
        if let QueueId::Stream(stream) = queue_id {
            self.streams.entry(stream).bytes -= dropped.message.payload.len();
        }
        let paused = self.paused_at(queue_id);
        self.scheduler
            .dropped(queue_id, at + paused, waiting + paused);
        self.bytes -= dropped.message.payload.len();
        self.messages -= 1;
        self.next = self.find_next();
        Some(dropped.unsent(stream))
    }

    /// Starts the next message according to the scheduler, unless a message is in progress.
    fn start_next(&mut self, mut any: impl FnMut() -> u16) {
        if self.started.is_some() {
            return;
        }
        let Some(queue_id) = self.scheduler.pick() else {
            return;
        };
        let queue = match queue_id {
            QueueId::Stream(stream) => &mut self.streams.entry(stream).messages,
            QueueId::Unassigned => self.unassigned.make(),
        };
        let Some(Queued {
            message,
            immediate,
            context,
            terms,
            route,
        }) = queue.pop_front()
        else {
            return;
        };
        let terms = terms.map(|terms| Box::new((*terms, message.payload.clone())));
        self.scheduler.served(ServedData {
            queue_id,
            bytes: message.payload.len(),
            ended: true,
            waiting: queue.len(),
        });
        let stream = match queue_id {
            QueueId::Stream(stream) => stream,
            QueueId::Unassigned => any(),
        };
        let entry = self.streams.entry(stream);
        if queue_id == QueueId::Unassigned {
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
            route,
        });
    }
}

#[cfg(test)]
mod tests;
