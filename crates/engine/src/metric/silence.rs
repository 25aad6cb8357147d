//! How long nothing reached the receiving application.

use anabranch_settings::{Entry, Variant};

use super::outcome::mean;
use super::over::Over;
use super::words::{FLOW, WINDOW, WINDOWS};
use super::{Life, Made, Metric, Name, Seen};
use crate::agent::meter::{Meter, MeterKind};
use crate::agent::observer::Observer;

/// How specs name it.
pub(super) static TIME_TO_RESUME: Entry<Made> = Entry {
    variant: Variant {
        name: "time_to_resume",
        about: " When the longest silence of the window was over, in which nothing reached the receiving application, counted from \
                the window's begin, s: with a window that begins where a path fails, the time to resume. Silences after it count \
                as part of it that take at least half as long and begin before data has flowed for as long. 0 where no silence is longer \
                than those before the window; no value where nothing came after it. Mean over the members.",
        parameters: &[FLOW, WINDOW, WINDOWS],
    },
    build: |parameters, ()| {
        Ok(Box::new(Silence {
            name: "time_to_resume",
            of: |meter| meter.sum,
            flow: parameters.get("flow")?,
            over: Over::read(parameters)?,
        }))
    },
};

/// How specs name it.
pub(super) static LONGEST_SILENCE: Entry<Made> = Entry {
    variant: Variant {
        name: "longest_silence",
        about: " The longest time without a delivery to the receiving application, s: mean over the members.",
        parameters: &[FLOW, WINDOW, WINDOWS],
    },
    build: |parameters, ()| {
        Ok(Box::new(Silence {
            name: "longest_silence",
            of: |meter| meter.weight,
            flow: parameters.get("flow")?,
            over: Over::read(parameters)?,
        }))
    },
};

struct Silence {
    name: &'static str,
    /// Nanoseconds.
    of: fn(&Meter) -> f64,
    flow: String,
    over: Over,
}

impl Metric for Silence {
    fn names(&self) -> Vec<Name> {
        self.over.names(&self.flow, self.name, "s")
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        let meter = |window| Meter::new(MeterKind::Silence, window);
        self.over.observers(life, meter)
    }

    fn values(&self, seen: &Seen<'_>) -> Vec<f64> {
        let seconds = |meter: &Meter| (self.of)(meter) / 1e9;
        let windows = 0..self.over.windows().len();
        windows
            .map(|window| mean(seen.observers(&self.flow, window).into_iter().map(seconds)))
            .collect()
    }
}
