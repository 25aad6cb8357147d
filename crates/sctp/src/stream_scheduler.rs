//! Stream schedulers, which select the stream of the next message (RFC 8260 §3): each scheduler has
//! one file, and one line in [`SchedulerKind`].
//!
//! A [`Discipline`] orders queues and not messages: one queue for each stream, and one for messages
//! queued without a stream. The send queue notifies the scheduler of queued and taken messages.

mod fair_capacity;
mod fcfs;
mod priority;
mod round_robin;
mod round_robin_list;
mod round_robin_per_packet;
mod virtual_time;
mod weighted_fair;

#[cfg(test)]
mod tests;

use anabranch_settings::{Datum, Kind, SettingValue, spelled};

/// Queue that a scheduler can select.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QueueId {
    /// Messages queued for this stream.
    Stream(u16),
    /// Messages queued without a stream.
    Unassigned,
}

/// Values of the streams, from stream 0 on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamValues(pub Vec<u16>);

impl SettingValue for StreamValues {
    const KIND: Kind = Kind::List(&Kind::count(0, u16::MAX as u64));

    fn from_datum(datum: &Datum) -> Option<Self> {
        let number = |it: &Datum| it.whole()?.try_into().ok();
        let all: Option<_> = datum.items().iter().map(number).collect();
        all.map(Self)
    }

    fn to_datum(&self) -> Datum {
        let all = self.0.iter().map(|it| Datum::Whole((*it).into()));
        Datum::List(all.collect())
    }
}

/// Data that was taken from a queue, reported to the scheduler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedData {
    /// The queue from which data was taken.
    pub(crate) queue_id: QueueId,
    /// Number of bytes of user data: of the fragment if messages are interleaved, otherwise of the
    /// whole message.
    pub(crate) bytes: usize,
    /// Whether the message is completely sent.
    pub(crate) ended: bool,
    /// Number of messages left in the queue, including a partly sent one.
    pub(crate) waiting: usize,
}

/// Scheduler: keeps the nonempty queues in the order of selection.
pub(crate) trait Discipline {
    /// Called after a message was queued at `queue_id`, which now has `waiting` messages. Returns
    /// whether this may change the next selection.
    fn queued(&mut self, queue_id: QueueId, waiting: usize) -> bool;

    /// Next queue to serve; `None` if all queues are empty.
    fn pick(&self) -> Option<QueueId>;

    /// Called after the selected queue was served. Returns whether the same queue is selected next,
    /// so that the caller need not select again.
    fn served(&mut self, served: ServedData) -> bool;

    /// The only nonempty queue, if the scheduler has no other to select. While this is the result,
    /// the caller calls [`Discipline::served`] only when the queue becomes empty.
    fn only(&self) -> Option<QueueId> {
        None
    }

    /// Called when a further fragment of a message is sent. Its bytes were already counted when the
    /// message was started.
    fn went_on(&mut self, queue_id: QueueId) {
        let _ = queue_id;
    }

    /// Called when no more chunks are added to a packet. Returns whether this changes the
    /// selection.
    fn packet_ended(&mut self) -> bool {
        false
    }

    /// All nonempty queues, each once.
    fn queues(&self) -> Vec<QueueId>;

    /// Called after the message at index `at` of the queue `queue_id` was removed; `waiting`
    /// messages are left in the queue.
    fn dropped(&mut self, queue_id: QueueId, at: usize, waiting: usize);

    /// Called after all queues have become empty.
    fn clear(&mut self);

    /// Removes all streams from number `streams` on. Returns those that had messages; some may be
    /// listed several times.
    fn forget_from(&mut self, streams: u16) -> Vec<u16>;

    /// Sets the value of a stream, whose meaning depends on the scheduler.
    fn set_value(&mut self, stream: u16, value: u16) {
        let _ = (stream, value);
    }
}

macro_rules! schedulers {
    ($($(#[$meta:meta])+ $variant:ident = $name:literal: $made:ty;)+) => {
        /// Stream scheduler, which selects the stream of the next message.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum SchedulerKind {
            $($(#[$meta])+ $variant,)+
        }

        impl SchedulerKind {
            /// All schedulers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
        }

        spelled!(SchedulerKind: $(SchedulerKind::$variant = $name),+);

        /// Scheduler instance. Schedulers with more state than a queue are boxed.
        #[derive(Debug)]
        pub(crate) enum Scheduler {
            $($variant($made),)+
        }

        impl Scheduler {
            pub(crate) fn new(kind: SchedulerKind) -> Self {
                match kind {
                    $(SchedulerKind::$variant => Self::$variant(<$made>::default()),)+
                }
            }
        }

        impl Scheduler {
            /// Whether messages are sent in the order in which they were queued, regardless of
            /// their streams.
            pub(crate) fn goes_by_age(&self) -> bool {
                matches!(self, Self::Fcfs(_))
            }
        }

        /// Functions called for each message. For all schedulers except the default they are not
        /// inlined.
        impl Scheduler {
            #[inline(never)]
            fn any_queued(&mut self, queue_id: QueueId, waiting: usize) -> bool {
                match self { $(Self::$variant(it) => it.queued(queue_id, waiting),)+ }
            }

            #[inline(never)]
            fn any_pick(&self) -> Option<QueueId> {
                match self { $(Self::$variant(it) => it.pick(),)+ }
            }

            #[inline(never)]
            fn any_served(&mut self, served: ServedData) -> bool {
                match self { $(Self::$variant(it) => it.served(served),)+ }
            }

            #[inline(never)]
            fn any_packet_ended(&mut self) -> bool {
                match self { $(Self::$variant(it) => it.packet_ended(),)+ }
            }
        }

        impl Discipline for Scheduler {
            #[inline(always)]
            fn queued(&mut self, queue_id: QueueId, waiting: usize) -> bool {
                match self {
                    Self::RoundRobin(it) => it.queued(queue_id, waiting),
                    _ => self.any_queued(queue_id, waiting),
                }
            }

            #[inline(always)]
            fn pick(&self) -> Option<QueueId> {
                match self {
                    Self::RoundRobin(it) => it.pick(),
                    _ => self.any_pick(),
                }
            }

            #[inline(always)]
            fn served(&mut self, served: ServedData) -> bool {
                match self {
                    Self::RoundRobin(it) => it.served(served),
                    _ => self.any_served(served),
                }
            }

            #[inline(always)]
            fn only(&self) -> Option<QueueId> {
                match self {
                    Self::RoundRobin(it) => it.only(),
                    _ => None,
                }
            }

            #[inline(always)]
            fn went_on(&mut self, queue_id: QueueId) {
                match self { $(Self::$variant(it) => it.went_on(queue_id),)+ }
            }

            #[inline(always)]
            fn packet_ended(&mut self) -> bool {
                match self {
                    Self::RoundRobin(it) => it.packet_ended(),
                    _ => self.any_packet_ended(),
                }
            }

            fn queues(&self) -> Vec<QueueId> {
                match self { $(Self::$variant(it) => it.queues(),)+ }
            }

            fn dropped(&mut self, queue_id: QueueId, at: usize, waiting: usize) {
                match self { $(Self::$variant(it) => it.dropped(queue_id, at, waiting),)+ }
            }

            fn clear(&mut self) {
                match self { $(Self::$variant(it) => it.clear(),)+ }
            }

            fn forget_from(&mut self, streams: u16) -> Vec<u16> {
                match self { $(Self::$variant(it) => it.forget_from(streams),)+ }
            }

            fn set_value(&mut self, stream: u16, value: u16) {
                match self { $(Self::$variant(it) => it.set_value(stream, value),)+ }
            }
        }
    };
}

schedulers! {
    /// One message of each stream in turn, round robin (RFC 8260 §3.2).
    #[default]
    RoundRobin = "round_robin": round_robin::RoundRobin;
    /// Messages in the order in which they were queued (§3.1).
    Fcfs = "fcfs": fcfs::Fcfs;
    /// One stream in each packet, round robin (§3.3).
    RoundRobinPerPacket = "round_robin_per_packet": Box<round_robin_per_packet::RoundRobinPerPacket>;
    /// The stream with the smallest value; round robin among streams with equal values (§3.4).
    Priority = "priority": Box<priority::Priority>;
    /// An equal number of bytes of each stream (§3.5).
    FairCapacity = "fair_capacity": Box<fair_capacity::FairCapacity>;
    /// Bytes of each stream in proportion to its value (§3.6).
    WeightedFair = "weighted_fair": Box<weighted_fair::WeightedFair>;
}
