//! Stream schedulers, which select the stream of the next message (RFC 8260 §3): one file per
//! scheduler, and one line of [`SchedulerKind`].
//!
//! A [`Discipline`] handles queues, not messages: one of each stream, and one of messages queued
//! without a stream. The send queue notifies the scheduler of queued and taken messages.

mod fair_capacity;
mod fcfs;
mod priority;
mod ring;
mod round_robin;
mod round_robin_per_packet;
mod virtual_time;
mod weighted_fair;

#[cfg(test)]
mod tests;

use anabranch_settings::{Datum, Kind, Value, spelled};

/// A queue that can be selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QueueId {
    /// Messages queued for this stream.
    Stream(u16),
    /// Messages queued without a stream.
    Unassigned,
}

/// Values of streams from 0 on, as a list of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamValues(pub Vec<u16>);

impl Value for StreamValues {
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

/// Data taken from a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedData {
    /// The queue.
    pub(crate) queue_id: QueueId,
    /// Bytes of user data: of the fragment if messages are interleaved, otherwise of the whole
    /// message.
    pub(crate) bytes: usize,
    /// The message is complete.
    pub(crate) ended: bool,
    /// Messages left in the queue, including a partly sent one.
    pub(crate) waiting: usize,
}

/// A scheduler: keeps the nonempty queues in the order of selection.
pub(crate) trait Discipline {
    /// A message was queued at `queue_id`, which has `waiting` of them now. Returns whether it may
    /// be selected next instead of another.
    fn queued(&mut self, queue_id: QueueId, waiting: usize) -> bool;

    /// The next queue, if any has messages.
    fn pick(&self) -> Option<QueueId>;

    /// The selected queue was served. Returns whether it is also selected next, in which case no
    /// notification is needed.
    fn served(&mut self, served: ServedData) -> bool;

    /// The queue that is always selected because no other queue has messages.
    /// [`Discipline::served`] must then be called only when it becomes empty.
    fn only(&self) -> Option<QueueId> {
        None
    }

    /// A further fragment of a message of `queue_id` is sent, which was counted at its start.
    fn went_on(&mut self, queue_id: QueueId) {
        let _ = queue_id;
    }

    /// A packet is full, or no more chunks are added to it. Returns whether that changes the
    /// selection.
    fn packet_ended(&mut self) -> bool {
        false
    }

    /// Every queue with messages, once.
    fn queues(&self) -> Vec<QueueId>;

    /// The message at `at` of the queue `queue_id` was removed; `waiting` are left in it.
    fn dropped(&mut self, queue_id: QueueId, at: usize, waiting: usize);

    /// All queues are empty now.
    fn clear(&mut self);

    /// Removes streams from `streams` on. Returns them, each once or more.
    fn forget_from(&mut self, streams: u16) -> Vec<u16>;

    /// Sets the value of a stream, whose meaning depends on the scheduler.
    fn set_value(&mut self, stream: u16, value: u16) {
        let _ = (stream, value);
    }
}

macro_rules! schedulers {
    ($($(#[$meta:meta])+ $variant:ident = $name:literal: $made:ty;)+) => {
        /// Selects the stream of the next message.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum SchedulerKind {
            $($(#[$meta])+ $variant,)+
        }

        impl SchedulerKind {
            /// All schedulers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
        }

        spelled!(SchedulerKind: $(SchedulerKind::$variant = $name),+);

        /// A scheduler instance. Schedulers with more state than a queue are boxed.
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
            /// Whether messages are sent in the order of queuing, regardless of their streams.
            pub(crate) fn goes_by_age(&self) -> bool {
                matches!(self, Self::Fcfs(_))
            }
        }

        /// Out-of-line versions of the per-message functions, for all schedulers but the default.
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
    /// One message of each stream, round robin (RFC 8260 §3.2).
    #[default]
    RoundRobin = "round_robin": round_robin::RoundRobin;
    /// Messages in the order of queuing (§3.1).
    Fcfs = "fcfs": fcfs::Fcfs;
    /// One stream in each packet, round robin (§3.3).
    RoundRobinPerPacket = "round_robin_per_packet": Box<round_robin_per_packet::RoundRobinPerPacket>;
    /// The stream with the smallest value; streams with equal values round robin (§3.4).
    Priority = "priority": Box<priority::Priority>;
    /// An equal number of bytes of each stream (§3.5).
    FairCapacity = "fair_capacity": Box<fair_capacity::FairCapacity>;
    /// Bytes of each stream in proportion to its value (§3.6).
    WeightedFair = "weighted_fair": Box<weighted_fair::WeightedFair>;
}
