//! On-off workload: bursts at a constant rate, separated by pauses.

use anabranch_settings::{Kind, KindEntry, kind};
use anabranch_transport::Nanos;

use super::cbr::Pace;
use super::{
    BoxedWorkload, Context, Facts, INTERVAL, MESSAGE, Message, NextMessage, PAUSE, RATE, Workload,
};
use crate::error::BuildError;
use crate::rng::Rng;

kind! {
    /// The parameters of [`OnOff`].
    struct OnOffConfig {
        rate: u64 as RATE;
        message: usize as MESSAGE;
        /// Length of an on period; the mean if `exponential`.
        on: Nanos, INTERVAL;
        /// Length of an off period; the mean if `exponential`.
        off: Nanos, PAUSE;
        /// Draw the lengths of periods from exponential distributions. Off: the lengths are
        /// constant.
        exponential: bool = false, Kind::Flag;
    }
    /// A constant rate in on periods, and no data in off periods.
    pub(super) static ENTRY: KindEntry<BoxedWorkload, Context> = "on-off", |config, context: Context| {
        let [on, off] = [config.on, config.off].map(|it| PeriodLength::new(it, config.exponential));
        let source = OnOff::new(config.rate, config.message, on, off, context.rng);
        Ok(Box::new(source?))
    };
}

/// Distribution of the duration of a burst or a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeriodLength {
    /// Constant duration, nanoseconds.
    Fixed(Nanos),
    /// Exponential distribution with this mean, nanoseconds.
    Exponential(Nanos),
}

impl PeriodLength {
    /// A constant duration of `mean`, or an exponential distribution with this mean.
    pub(super) fn new(mean: Nanos, exponential: bool) -> Self {
        match exponential {
            true => PeriodLength::Exponential(mean),
            false => PeriodLength::Fixed(mean),
        }
    }

    pub(super) fn draw(self, rng: &mut Rng) -> Nanos {
        match self {
            PeriodLength::Fixed(span) => span,
            PeriodLength::Exponential(mean) => rng.exponential(mean),
        }
    }

    pub(super) fn mean(self) -> Nanos {
        match self {
            PeriodLength::Fixed(mean) | PeriodLength::Exponential(mean) => mean,
        }
    }
}

/// Workload that alternates between on and off periods, and begins with an on period.
#[derive(Clone, Debug)]
pub struct OnOff {
    pace: Pace,
    on: PeriodLength,
    off: PeriodLength,
    rng: Rng,
    /// The current or next burst: its start, its end, and the number of messages offered in it.
    burst: Option<(Nanos, Nanos, u64)>,
}

impl OnOff {
    /// During a burst, messages of `message` bytes are offered at `rate` bits per second, the first
    /// at the start of the burst. The durations are drawn from `rng`.
    ///
    /// # Errors
    /// [`BuildError::Workload`] if the rate, the message size or the mean burst is 0.
    pub fn new(
        rate: u64,
        message: usize,
        on: PeriodLength,
        off: PeriodLength,
        rng: Rng,
    ) -> Result<Self, BuildError> {
        if on.mean() == 0 {
            return Err(BuildError::Workload("bursts longer than 0 ns"));
        }
        Ok(Self {
            pace: Pace::new(rate, message)?,
            on,
            off,
            rng,
            burst: None,
        })
    }

    fn burst_from(&mut self, begin: Nanos) -> (Nanos, Nanos, u64) {
        // At least 1 ns, because time would not advance with bursts of length 0.
        let length = self.on.draw(&mut self.rng).max(1);
        (begin, begin.saturating_add(length), 0)
    }
}

impl Workload for OnOff {
    fn next(&mut self, now: Nanos) -> NextMessage {
        let mut burst = match self.burst {
            Some(burst) => burst,
            None => self.burst_from(now),
        };
        let offer = loop {
            let (begin, end, offered) = burst;
            let due = begin.saturating_add(self.pace.after(offered));
            if due >= end {
                let pause = self.off.draw(&mut self.rng);
                burst = self.burst_from(end.saturating_add(pause));
                if end == Nanos::MAX {
                    break NextMessage::Done;
                }
            } else if due > now {
                break NextMessage::At(due);
            } else {
                burst.2 += 1;
                break NextMessage::Now(Message::new(self.pace.message).due(due));
            }
        };
        self.burst = Some(burst);
        offer
    }

    fn facts(&self) -> Facts {
        let facts = self.pace.facts();
        // The mean gap also includes the off periods, in which no message is offered.
        let [on, off] = [self.on, self.off].map(|span| u128::from(span.mean()));
        let gap = u128::from(facts.gap.unwrap_or(0).max(1)) * (on + off) / on.max(1);
        Facts {
            gap: Some(Nanos::try_from(gap).unwrap_or(Nanos::MAX)),
            ..facts
        }
    }
}
