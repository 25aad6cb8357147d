//! Messages with a user-defined address or authentication key ([`MessageRoute`]), and replacement
//! of the scheduler.

use super::{MessageRoute, QueueId, SendQueue};
use crate::stream_scheduler::SchedulerKind;
use crate::stream_scheduler::{Discipline, Scheduler};

impl SendQueue {
    /// Whether any message may have a destination address or key.
    #[inline]
    pub fn has_routes(&self) -> bool {
        self.has_routes
    }

    /// Destination address and key of the next message, or of the message in progress; `None` for
    /// most messages.
    #[inline]
    pub fn next_route(&self) -> Option<MessageRoute> {
        if !self.has_routes {
            return None;
        }
        self.find_next_route()
    }

    #[cold]
    fn find_next_route(&self) -> Option<MessageRoute> {
        let route = match &self.started {
            Some(started) => &started.route,
            None => {
                let queue_id = self.scheduler.pick()?;
                match (self.paused_of(queue_id), queue_id) {
                    (Some(paused), _) => &paused.route,
                    (None, QueueId::Stream(stream)) => {
                        &self.streams.get(stream)?.messages.front()?.route
                    }
                    (None, QueueId::Unassigned) => &self.unassigned.front()?.route,
                }
            }
        };
        route.as_deref().copied()
    }

    /// Replaces the scheduler, and sets its stream values. The messages of each stream keep their
    /// order. `fcfs` does not know the order of earlier messages on different streams, so it takes
    /// these stream by stream.
    pub fn set_scheduler(&mut self, kind: SchedulerKind, values: impl Iterator<Item = (u16, u16)>) {
        let mut next = Scheduler::new(kind);
        values.for_each(|(stream, value)| next.set_value(stream, value));
        for queue_id in self.scheduler.queues() {
            let queued = match queue_id {
                QueueId::Stream(stream) => {
                    self.streams.get(stream).map_or(0, |it| it.messages.len())
                }
                QueueId::Unassigned => self.unassigned.len(),
            };
            for waiting in 1..=queued + self.paused_at(queue_id) {
                next.queued(queue_id, waiting);
            }
        }
        self.scheduler = next;
        self.next = self.find_next();
    }
}
