//! Bursts at a constant rate, separated by pauses.

use anabranch_settings::{Kind, KindEntry, kind};
use anabranch_transport::Nanos;

use super::cbr::Pace;
use super::{
    BoxedWorkload, Context, Facts, INTERVAL, MESSAGE, Message, Offer, PAUSE, RATE, Workload,
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
        /// Periods are exponentially distributed. Off: constant.
        exponential: bool = false, Kind::Flag;
    }
    /// A constant rate in on periods, no data in off periods.
    pub(super) static ENTRY: KindEntry<BoxedWorkload, Context> = "on-off", |config, context: Context| {
        let [on, off] = [config.on, config.off].map(|it| Span::new(it, config.exponential));
        let source = OnOff::new(config.rate, config.message, on, off, context.rng);
        Ok(Box::new(source?))
    };
}

/// Duration of a burst or of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Constant.
    Fixed(Nanos),
    /// Exponentially distributed with this mean.
    Exponential(Nanos),
}

impl Span {
    /// A constant duration, or a random duration with this mean.
    pub(super) fn new(mean: Nanos, exponential: bool) -> Self {
        match exponential {
            true => Span::Exponential(mean),
            false => Span::Fixed(mean),
        }
    }

    pub(super) fn draw(self, rng: &mut Rng) -> Nanos {
        match self {
            Span::Fixed(span) => span,
            Span::Exponential(mean) => rng.exponential(mean),
        }
    }

    pub(super) fn mean(self) -> Nanos {
        match self {
            Span::Fixed(mean) | Span::Exponential(mean) => mean,
        }
    }
}

/// A source that alternates between on and off; it begins with on.
#[derive(Clone, Debug)]
pub struct OnOff {
    pace: Pace,
    on: Span,
    off: Span,
    rng: Rng,
    /// The current or next burst: its begin, its end, and the number of its messages that were
    /// offered.
    burst: Option<(Nanos, Nanos, u64)>,
}

impl OnOff {
    /// During a burst, `rate` bits per second in messages of `message` bytes, the first at the
    /// beginning of the burst. `rng` draws the durations.
    ///
    /// # Errors
    /// [`BuildError::Workload`] if the rate, the size or the mean burst is 0.
    pub fn new(
        rate: u64,
        message: usize,
        on: Span,
        off: Span,
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
        // A burst of length 0 would never make progress.
        let length = self.on.draw(&mut self.rng).max(1);
        (begin, begin.saturating_add(length), 0)
    }
}

impl Workload for OnOff {
    fn next(&mut self, now: Nanos) -> Offer {
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
                    break Offer::Done;
                }
            } else if due > now {
                break Offer::At(due);
            } else {
                burst.2 += 1;
                break Offer::Now(Message::new(self.pace.message).due(due));
            }
        };
        self.burst = Some(burst);
        offer
    }

    fn facts(&self) -> Facts {
        let facts = self.pace.facts();
        // No message is offered in off periods.
        let [on, off] = [self.on, self.off].map(|span| u128::from(span.mean()));
        let gap = u128::from(facts.gap.unwrap_or(0).max(1)) * (on + off) / on.max(1);
        Facts {
            gap: Some(Nanos::try_from(gap).unwrap_or(Nanos::MAX)),
            ..facts
        }
    }
}
