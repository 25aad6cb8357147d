//! Estimates against what is true.

use anabranch_scenario::unit::of_probe;
use anabranch_settings::{Entry, Fallback, Kind, Refusal, Setting, Value, Variant};
use anabranch_transport::Nanos;

use super::outcome::mean;
use super::over::Over;
use super::words::{self, FLOW, INDEX, NAME, PROBE, TIME, WINDOW, WINDOWS};
use super::{Life, Made, Metric, Name, Seen};
use crate::agent::meter::{Meter, MeterKind};
use crate::agent::observer::Observer;
use crate::agent::taking::Weighting;

/// How specs name it.
pub(super) static ENTRY: Entry<Made> = Entry {
    variant: Variant {
        name: "estimate_error",
        about: " Error of a probe that is an estimate: the mean of |sample - truth| / truth, %.",
        parameters: &[
            NAME,
            FLOW,
            PROBE,
            INDEX,
            Setting {
                name: "truth",
                about: " Times, in order, each with the true rate from then on: `[[\"0 s\", \"1 Mbit/s\"], [\"15 s\", \"250 kbit/s\"]]`.",
                clause: "",
                kind: Kind::List(&Kind::Tuple(&[
                    TIME,
                    Kind::Rate {
                        least: 1,
                        most: 1_000_000_000_000,
                    },
                ])),
                fallback: Fallback::Required,
            },
            Setting {
                name: "weighting",
                about: " Weight of samples: `samples`: all equal; `time`: by the time until the next sample.",
                clause: "",
                kind: <Weighting as Value>::KIND,
                fallback: Fallback::Is("samples"),
            },
            WINDOW,
            WINDOWS,
        ],
    },
    build: |parameters, ()| {
        let probe = words::probe(parameters)?;
        let truth: Vec<(Nanos, u64)> = parameters.list("truth")?;
        if truth.is_empty() || truth.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            let message = "the truth has at least one step, and the times of its steps rise";
            return Err(Refusal::together(message));
        }
        let per_unit = if of_probe(probe.name()) == "B/s" {
            8.0
        } else {
            1.0
        };
        let truth = truth.iter();
        Ok(Box::new(EstimateError {
            name: words::name(parameters)?,
            flow: parameters.get("flow")?,
            kind: MeterKind::Error {
                probe,
                index: parameters.optional("index")?,
                truth: truth
                    .map(|&(from, rate)| (from, rate as f64 / per_unit))
                    .collect(),
                weighting: parameters.get("weighting")?,
            },
            over: Over::read(parameters)?,
        }))
    },
};

struct EstimateError {
    name: String,
    flow: String,
    kind: MeterKind,
    over: Over,
}

impl Metric for EstimateError {
    fn names(&self) -> Vec<Name> {
        self.over.names(&self.flow, &self.name, "%")
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        self.over
            .observers(life, |window| Meter::new(self.kind.clone(), window))
    }

    fn values(&self, seen: &Seen<'_>) -> Vec<f64> {
        let value = |window| {
            let meters: Vec<&Meter> = seen.observers(&self.flow, window);
            let any = meters.iter().filter(|meter| meter.weight > 0.0);
            mean(any.map(|meter| meter.sum / meter.weight * 100.0))
        };
        (0..self.over.windows().len()).map(value).collect()
    }
}
