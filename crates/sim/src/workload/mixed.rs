//! Mixed workload: small and large messages, each class with a separate interval and separate
//! streams.

use anabranch_settings::{Kind, KindEntry, idle_if, kind};
use anabranch_transport::Nanos;

use super::{BoxedWorkload, Context, Facts, INTERVAL, Message, NextMessage, SIZE, Workload};
use crate::error::BuildError;

kind! {
    /// The parameters of [`Mixed`].
    struct MixedConfig {
        /// Size of a small message.
        small: usize, SIZE;
        /// Time from one small message to the next.
        small_every: Nanos, INTERVAL;
        /// Size of a large message.
        large: usize, SIZE;
        /// Time from one large message to the next.
        large_every: Nanos, INTERVAL;
        /// Number of streams for large messages, which use streams 1, 2, ... round robin.
        large_streams: u16 = 1, Kind::count(1, 65_534);
    }
    idle {
        large_streams: |_, context: &Context| idle_if(
            context.carrier.one_stream,
            format!("over {}, which has one stream", context.carrier.title),
        );
    }
    /// Small messages on stream 0, and large messages round robin on the following streams. Each
    /// class has a constant interval; the first messages of both classes are sent at the same time.
    pub(super) static ENTRY: KindEntry<BoxedWorkload, Context> = "mixed", |config, _| {
        let small = MessageClass::new(config.small, config.small_every);
        let large = MessageClass::new(config.large, config.large_every);
        Ok(Box::new(Mixed::new(small, large, config.large_streams)?))
    };
}

/// Class of messages with one size and a constant interval.
#[derive(Clone, Copy, Debug)]
pub struct MessageClass {
    size: usize,
    every: Nanos,
    offered: u64,
}

impl MessageClass {
    /// Messages of `size` bytes, one every `every` nanoseconds.
    pub const fn new(size: usize, every: Nanos) -> Self {
        Self {
            size,
            every,
            offered: 0,
        }
    }

    /// Time in nanoseconds from the first message of the class until the next one is due.
    fn due(&self) -> Nanos {
        self.every.saturating_mul(self.offered)
    }
}

/// Workload that mixes small and large messages.
#[derive(Clone, Debug)]
pub struct Mixed {
    small: MessageClass,
    large: MessageClass,
    large_streams: u16,
    begin: Option<Nanos>,
}

impl Mixed {
    /// Small messages on stream 0, and large messages round robin on streams 1 to `large_streams`.
    ///
    /// # Errors
    /// [`BuildError::Workload`] if a size, an interval or the number of streams is 0.
    pub fn new(
        small: MessageClass,
        large: MessageClass,
        large_streams: u16,
    ) -> Result<Self, BuildError> {
        if [small, large]
            .iter()
            .any(|it| it.size == 0 || it.every == 0)
        {
            return Err(BuildError::Workload("sizes and intervals above 0"));
        }
        if large_streams == 0 {
            return Err(BuildError::Workload("a stream at least for large messages"));
        }
        Ok(Self {
            small,
            large,
            large_streams,
            begin: None,
        })
    }

    /// Mean time between two messages of any class, nanoseconds.
    fn gap(&self) -> Nanos {
        let [small, large] = [self.small.every, self.large.every].map(u128::from);
        // The result is at most the shorter interval, so it fits into `Nanos`.
        (small * large / (small + large).max(1)) as Nanos
    }
}

impl Workload for Mixed {
    fn next(&mut self, now: Nanos) -> NextMessage {
        let begin = *self.begin.get_or_insert(now);
        let small = self.small.due() <= self.large.due();
        let class = if small {
            &mut self.small
        } else {
            &mut self.large
        };
        let due = begin.saturating_add(class.due());
        if due > now {
            return NextMessage::At(due);
        }
        let number = class.offered;
        class.offered += 1;
        let stream = if small {
            0
        } else {
            1 + (number % u64::from(self.large_streams)) as u16
        };
        NextMessage::Now(Message {
            stream: Some(stream),
            ..Message::new(class.size).due(due)
        })
    }

    fn facts(&self) -> Facts {
        let sizes = [self.small.size, self.large.size].map(|size| size as u64);
        Facts {
            sizes: [sizes[0].min(sizes[1]), sizes[0].max(sizes[1])],
            gap: Some(self.gap()),
            ..Facts::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_keeps_its_own_interval_and_streams() {
        let mut mixed =
            Mixed::new(MessageClass::new(200, 30), MessageClass::new(1_000, 70), 2).unwrap();
        let (mut now, mut offers) = (5, Vec::new());
        while offers.len() < 8 {
            match mixed.next(now) {
                NextMessage::Now(message) => offers.push((now - 5, message.size, message.stream)),
                NextMessage::At(next) => now = next,
                other => panic!("{other:?}"),
            }
        }
        let small = |at| (at, 200, Some(0));
        let large = |at, stream| (at, 1_000, Some(stream));
        let expected = [
            small(0),
            large(0, 1),
            small(30),
            small(60),
            large(70, 2),
            small(90),
            small(120),
            large(140, 1),
        ];
        assert_eq!(offers, expected);
        assert_eq!(mixed.facts().sizes, [200, 1_000]);
    }

    #[test]
    fn nothing_of_it_may_be_zero() {
        let class = MessageClass::new(1, 1);
        for (small, large, streams) in [
            (MessageClass::new(0, 1), class, 1),
            (class, MessageClass::new(1, 0), 1),
            (class, class, 0),
        ] {
            assert!(Mixed::new(small, large, streams).is_err());
        }
    }
}
