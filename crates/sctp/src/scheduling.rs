//! Which stream's message goes next (RFC 8260 §3): one file for each scheduler, and one line of [`SchedulerKind`].
//!
//! A [`Discipline`] sees queues, not messages: one of each stream, and one of messages that were given without a stream. The send
//! queue tells it of what comes, and of what is taken from whom.

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

/// Whose turn it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Turn {
    /// Messages given for this stream.
    Stream(u16),
    /// Messages given without a stream.
    Spread,
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

/// What was taken from a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    /// Whose it was.
    pub(crate) turn: Turn,
    /// Bytes of user data: of the piece where messages are interleaved, else of the whole message.
    pub(crate) bytes: usize,
    /// Nothing of the message is left.
    pub(crate) ended: bool,
    /// Messages left in the queue, one that has begun included.
    pub(crate) waiting: usize,
}

/// A scheduler: keeps the queues that have messages in the order of their turns.
pub(crate) trait Discipline {
    /// A message was queued at `turn`, which holds `waiting` of them now. Whether it may have the next turn in place of another.
    fn queued(&mut self, turn: Turn, waiting: usize) -> bool;

    /// Whose turn it is, if anybody's.
    fn pick(&self) -> Option<Turn>;

    /// The queue whose turn it was has been served. Whether it has the next turn, too, which need not be told.
    fn served(&mut self, served: Served) -> bool;

    /// The queue that has every turn as long as it has messages and no other has. [`Discipline::served`] need then only be told of what empties it.
    fn only(&self) -> Option<Turn> {
        None
    }

    /// A further piece of a message of `turn` goes out, which was counted when it began.
    fn went_on(&mut self, turn: Turn) {
        let _ = turn;
    }

    /// A packet is full, or nothing more goes into it. Whether that changes whose turn it is.
    fn packet_ended(&mut self) -> bool {
        false
    }

    /// Every queue that has messages, once.
    fn queues(&self) -> Vec<Turn>;

    /// The message at `at` of the queue `turn` is there no more; `waiting` are left in it.
    fn dropped(&mut self, turn: Turn, at: usize, waiting: usize);

    /// Nobody has a message any more.
    fn clear(&mut self);

    /// Takes streams from `streams` on out of the turns, and returns them, each once or more.
    fn forget_from(&mut self, streams: u16) -> Vec<u16>;

    /// The value of a stream: what it means is the scheduler's business.
    fn set_value(&mut self, stream: u16, value: u16) {
        let _ = (stream, value);
    }
}

macro_rules! schedulers {
    ($($(#[$meta:meta])+ $variant:ident = $name:literal: $made:ty;)+) => {
        /// Which stream's message goes next.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum SchedulerKind {
            $($(#[$meta])+ $variant,)+
        }

        impl SchedulerKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
        }

        spelled!(SchedulerKind: $(SchedulerKind::$variant = $name),+);

        /// One of them at work. Those that keep more than a queue keep it apart.
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
            /// Whether messages go in the order in which they were given, whichever streams they are of.
            pub(crate) fn goes_by_age(&self) -> bool {
                matches!(self, Self::Fcfs(_))
            }
        }

        /// What is asked for each message, of any of them, as calls: the usual one goes without.
        impl Scheduler {
            #[inline(never)]
            fn any_queued(&mut self, turn: Turn, waiting: usize) -> bool {
                match self { $(Self::$variant(it) => it.queued(turn, waiting),)+ }
            }

            #[inline(never)]
            fn any_pick(&self) -> Option<Turn> {
                match self { $(Self::$variant(it) => it.pick(),)+ }
            }

            #[inline(never)]
            fn any_served(&mut self, served: Served) -> bool {
                match self { $(Self::$variant(it) => it.served(served),)+ }
            }

            #[inline(never)]
            fn any_packet_ended(&mut self) -> bool {
                match self { $(Self::$variant(it) => it.packet_ended(),)+ }
            }
        }

        impl Discipline for Scheduler {
            #[inline(always)]
            fn queued(&mut self, turn: Turn, waiting: usize) -> bool {
                match self {
                    Self::RoundRobin(it) => it.queued(turn, waiting),
                    _ => self.any_queued(turn, waiting),
                }
            }

            #[inline(always)]
            fn pick(&self) -> Option<Turn> {
                match self {
                    Self::RoundRobin(it) => it.pick(),
                    _ => self.any_pick(),
                }
            }

            #[inline(always)]
            fn served(&mut self, served: Served) -> bool {
                match self {
                    Self::RoundRobin(it) => it.served(served),
                    _ => self.any_served(served),
                }
            }

            #[inline(always)]
            fn only(&self) -> Option<Turn> {
                match self {
                    Self::RoundRobin(it) => it.only(),
                    _ => None,
                }
            }

            #[inline(always)]
            fn went_on(&mut self, turn: Turn) {
                match self { $(Self::$variant(it) => it.went_on(turn),)+ }
            }

            #[inline(always)]
            fn packet_ended(&mut self) -> bool {
                match self {
                    Self::RoundRobin(it) => it.packet_ended(),
                    _ => self.any_packet_ended(),
                }
            }

            fn queues(&self) -> Vec<Turn> {
                match self { $(Self::$variant(it) => it.queues(),)+ }
            }

            fn dropped(&mut self, turn: Turn, at: usize, waiting: usize) {
                match self { $(Self::$variant(it) => it.dropped(turn, at, waiting),)+ }
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
    /// One message of each stream in turn (RFC 8260 §3.2).
    #[default]
    RoundRobin = "round_robin": round_robin::RoundRobin;
    /// Messages in the order in which they were given (§3.1).
    Fcfs = "fcfs": fcfs::Fcfs;
    /// One stream in each packet, in turn (§3.3).
    RoundRobinPerPacket = "round_robin_per_packet": Box<round_robin_per_packet::RoundRobinPerPacket>;
    /// The stream of the smallest value; those of one value in turn (§3.4).
    Priority = "priority": Box<priority::Priority>;
    /// As many bytes of each stream (§3.5).
    FairCapacity = "fair_capacity": Box<fair_capacity::FairCapacity>;
    /// Bytes of each stream in proportion to its value (§3.6).
    WeightedFair = "weighted_fair": Box<weighted_fair::WeightedFair>;
}
