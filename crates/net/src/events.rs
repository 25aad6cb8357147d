//! Events of an association that wait to be taken.

use std::collections::VecDeque;

use anabranch_sctp::UndeliveredCause;

use crate::event::AssociationEvent;

/// Events that wait at most, beside messages that were not delivered; beyond it the oldest go.
const MAX_EVENTS: usize = 64;

/// Each with the last TSN before which none was missing when it came.
#[derive(Debug, Default)]
pub(crate) struct Events {
    waiting: VecDeque<(AssociationEvent, u32)>,
    missed: u64,
    /// Of those that wait, messages that were not delivered. They are as many as one send buffer holds, and one more at the end.
    undelivered: usize,
    /// These are all that the peer's first restart left, and nobody has taken them since.
    full: bool,
}

impl Events {
    /// One more, the latest.
    pub fn push(&mut self, event: AssociationEvent, cumulative_tsn: u32) {
        if let AssociationEvent::MessageUndelivered { cause, .. } = &event {
            if self.full && !matches!(cause, UndeliveredCause::Closed(_)) {
                self.missed += 1;
                return;
            }
            self.undelivered += 1;
        } else if self.waiting.len() - self.undelivered == MAX_EVENTS {
            self.drop_oldest();
        }
        if let AssociationEvent::Restarted { .. } = event {
            self.full = self.undelivered > 0;
        }
        self.waiting.push_back((event, cumulative_tsn));
    }

    fn drop_oldest(&mut self) {
        let mut waiting = self.waiting.iter();
        if let Some(oldest) = waiting.position(|(it, _)| !is_undelivered(it)) {
            self.waiting.remove(oldest);
            self.missed += 1;
        }
    }

    /// The next one.
    pub fn pop(&mut self) -> Option<(AssociationEvent, u32)> {
        if self.missed > 0 {
            let missed = std::mem::take(&mut self.missed);
            return Some((AssociationEvent::Missed(missed), 0));
        }
        let next = self.waiting.pop_front()?;
        if is_undelivered(&next.0) {
            self.undelivered -= 1;
            self.full &= self.undelivered > 0;
        }
        Some(next)
    }
}

fn is_undelivered(event: &AssociationEvent) -> bool {
    matches!(event, AssociationEvent::MessageUndelivered { .. })
}

#[cfg(test)]
mod tests {
    use anabranch_sctp::CloseReason;
    use bytes::Bytes;

    use super::*;

    fn undelivered(cause: UndeliveredCause) -> AssociationEvent {
        AssociationEvent::MessageUndelivered {
            stream: Some(1),
            ppid: 0,
            unordered: false,
            bytes: Bytes::from_static(b"lost"),
            context: 0,
            cause,
            sent: true,
        }
    }

    fn all(events: &mut Events) -> Vec<AssociationEvent> {
        std::iter::from_fn(|| events.pop()).map(|it| it.0).collect()
    }

    #[test]
    fn messages_that_were_not_delivered_take_no_other_events_place() {
        let mut events = Events::default();
        let key = |key_id| AssociationEvent::PeerAuthKey { key_id };
        let closed = || undelivered(UndeliveredCause::Closed(CloseReason::AbortedHere));
        (0..70).for_each(|it| events.push(key(it), 0));
        (0..500).for_each(|_| events.push(closed(), 0));
        events.push(key(70), 0);
        let told = all(&mut events);
        assert_eq!(told[0], AssociationEvent::Missed(7));
        assert_eq!((&told[1], told.last()), (&key(7), Some(&key(70))));
        assert_eq!(told.iter().filter(|it| is_undelivered(it)).count(), 500);
    }

    /// A peer that begins the association again and again cannot fill the memory of a user who takes no events.
    #[test]
    fn what_restarts_leave_is_kept_of_the_first() {
        let mut events = Events::default();
        for _ in 0..3 {
            (0..100).for_each(|_| events.push(undelivered(UndeliveredCause::Restarted), 0));
            events.push(AssociationEvent::Restarted { data_lost: true }, 0);
        }
        let told = all(&mut events);
        assert_eq!(told[0], AssociationEvent::Missed(200));
        assert_eq!(told.iter().filter(|it| is_undelivered(it)).count(), 100);
        events.push(undelivered(UndeliveredCause::Restarted), 0);
        assert_eq!(all(&mut events).len(), 1);
    }
}
