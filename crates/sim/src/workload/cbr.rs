//! Messages of constant size at a constant rate.

use anabranch_settings::{KindEntry, kind};
use anabranch_transport::Nanos;

use super::{BoxedWorkload, COUNT, Context, Facts, MESSAGE, Message, NextMessage, RATE, Workload};
use crate::error::BuildError;

kind! {
    /// The parameters of [`Cbr`].
    struct CbrConfig {
        rate: u64 as RATE;
        message: usize as MESSAGE;
        /// Total number of messages. Default: unlimited.
        count: Option<u64> = none, COUNT;
    }
    /// Messages of constant size at a constant rate.
    pub(super) static ENTRY: KindEntry<BoxedWorkload, Context> = "cbr", |config, _| {
        let cbr = Cbr::new(config.rate, config.message)?;
        Ok(Box::new(match config.count {
            Some(count) => cbr.limited_to(count),
            None => cbr,
        }))
    };
}

/// Workload of constant bit rate. Message `n` is due `n` intervals after the first, rounded down to
/// the nanosecond each time, so that rounding errors do not accumulate.
#[derive(Clone, Debug)]
pub struct Cbr {
    pace: Pace,
    begin: Option<Nanos>,
    /// Number of messages offered so far.
    offered: u64,
    messages: Option<u64>,
}

/// Pace of a workload: the size of its messages and their rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    rate: u64,
    pub message: usize,
}

impl Pace {
    pub fn new(rate: u64, message: usize) -> Result<Self, BuildError> {
        if rate == 0 {
            return Err(BuildError::Workload("a rate above 0 bit/s"));
        }
        if message == 0 {
            return Err(BuildError::Workload("messages of at least one byte"));
        }
        Ok(Self { rate, message })
    }

    /// Time in nanoseconds from the first message until message number `n` is due.
    pub fn after(self, n: u64) -> Nanos {
        let bits = u128::from(n) * self.message as u128 * 8;
        Nanos::try_from(bits * 1_000_000_000 / u128::from(self.rate)).unwrap_or(Nanos::MAX)
    }

    /// Static properties of a workload that offers messages at this pace.
    pub fn facts(self) -> Facts {
        Facts {
            sizes: [self.message as u64; 2],
            gap: Some(self.after(1)),
            ..Facts::default()
        }
    }
}

impl Cbr {
    /// Messages of `message` bytes at `rate` bits per second; the first is offered immediately.
    ///
    /// # Errors
    /// [`BuildError::Workload`] if `rate` or `message` is 0.
    pub fn new(rate: u64, message: usize) -> Result<Self, BuildError> {
        Ok(Self {
            pace: Pace::new(rate, message)?,
            begin: None,
            offered: 0,
            messages: None,
        })
    }

    /// Limits the workload to `messages` messages.
    #[must_use]
    pub fn limited_to(mut self, messages: u64) -> Self {
        self.messages = Some(messages);
        self
    }
}

impl Workload for Cbr {
    fn next(&mut self, now: Nanos) -> NextMessage {
        if self.messages == Some(self.offered) {
            return NextMessage::Done;
        }
        let begin = *self.begin.get_or_insert(now);
        let due = begin.saturating_add(self.pace.after(self.offered));
        if due > now {
            return NextMessage::At(due);
        }
        self.offered += 1;
        NextMessage::Now(Message::new(self.pace.message).due(due))
    }

    fn facts(&self) -> Facts {
        Facts {
            messages: self.messages,
            ..self.pace.facts()
        }
    }
}
