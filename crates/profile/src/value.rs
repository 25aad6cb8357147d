//! The values that a switch of any protocol can have.

use anabranch_transport::{Nanos, time};

/// A value that a spec can write.
pub trait SwitchValue: Sized {
    /// What is allowed, for people.
    const ALLOWED: &'static str;

    /// Reads a value; `None` if it is not allowed.
    fn parse(text: &str) -> Option<Self>;

    /// Writes it as [`SwitchValue::parse`] reads it.
    fn show(&self) -> String;
}

impl SwitchValue for bool {
    const ALLOWED: &'static str = "true, false";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl SwitchValue for u32 {
    const ALLOWED: &'static str = "a whole number from 1 to 1000000";

    fn parse(text: &str) -> Option<Self> {
        let number = text.parse().ok()?;
        (1..=1_000_000).contains(&number).then_some(number)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl SwitchValue for u64 {
    const ALLOWED: &'static str = "a whole number from 1 to 2^40";

    fn parse(text: &str) -> Option<Self> {
        let number = text.parse().ok()?;
        (1..=1 << 40).contains(&number).then_some(number)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// How often something may happen; 0: there is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(
    /// The number.
    pub u32,
);

impl SwitchValue for Limit {
    const ALLOWED: &'static str = "a whole number from 0 to 1000000";

    fn parse(text: &str) -> Option<Self> {
        let number = text.parse().ok()?;
        (number <= 1_000_000).then_some(Limit(number))
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// A span of time above 0, written in seconds or with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(
    /// The span, nanoseconds.
    pub Nanos,
);

impl SwitchValue for Span {
    const ALLOWED: &'static str =
        "a time up to 1e6 s: \"1.5 s\", \"200 ms\", or a number of seconds";

    fn parse(text: &str) -> Option<Self> {
        Pause::parse(text).and_then(|pause| (pause.0 > 0).then_some(Span(pause.0)))
    }

    fn show(&self) -> String {
        Pause(self.0).show()
    }
}

/// As [`Span`], and may be 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pause(
    /// The span, nanoseconds.
    pub Nanos,
);

impl SwitchValue for Pause {
    const ALLOWED: &'static str =
        "a time from 0 to 1e6 s: \"1.5 s\", \"200 ms\", or a number of seconds";

    fn parse(text: &str) -> Option<Self> {
        let (number, scale) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
            (Some(milliseconds), _) => (milliseconds, 1e-3),
            (None, Some(seconds)) => (seconds, 1.0),
            (None, None) => (text, 1.0),
        };
        let seconds = number.trim().parse::<f64>().ok()? * scale;
        (0.0..=1e6)
            .contains(&seconds)
            .then(|| Pause(time::from_seconds(seconds)))
    }

    fn show(&self) -> String {
        format!("{} s", time::seconds(self.0))
    }
}

/// A factor: a number above 0 and at most 1000.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor(
    /// The number.
    pub f64,
);

impl SwitchValue for Factor {
    const ALLOWED: &'static str = "a number above 0 and at most 1000";

    fn parse(text: &str) -> Option<Self> {
        let number = text.parse().ok()?;
        (number > 0.0 && number <= 1_000.0).then_some(Factor(number))
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// A number above 0 and at most 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fraction(
    /// The number.
    pub f64,
);

impl SwitchValue for Fraction {
    const ALLOWED: &'static str = "a number above 0 and at most 1";

    fn parse(text: &str) -> Option<Self> {
        let number = text.parse().ok()?;
        (number > 0.0 && number <= 1.0).then_some(Fraction(number))
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}
