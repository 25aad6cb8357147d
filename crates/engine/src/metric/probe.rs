//! Numbers made of the samples of a probe.

use anabranch_scenario::unit::of_probe;
use anabranch_settings::{Entry, Fallback, Kind, Refusal, Setting, Value, Variant};
use anabranch_transport::Probe;

use super::outcome::mean;
use super::over::Over;
use super::words::{self, CLOCK, FLOW, INDEX, NAME, PROBE, WINDOW, WINDOWS};
use super::{Life, Made, Metric, Name, Seen, whole};
use crate::agent::meter::{Meter, MeterKind};
use crate::agent::observer::Observer;
use crate::agent::taking::Take;

/// How specs name it.
pub(super) static ENTRY: Entry<Made> = Entry {
    variant: Variant {
        name: "probe",
        about: " One number from all samples of a probe of the flow: mean over the members (for `count` and `sum`: sum). The \
                measure is called `name`; with several words in `take` each has its word appended: `cwnd_least`.",
        parameters: &[
            NAME,
            FLOW,
            PROBE,
            Setting {
                name: "take",
                about: " What to compute from the samples, one word or a list. `mean`: weighted by how long each value lasts; \
                        `below`: share of the time below `threshold`; `least`, `most`: extremes over time; `sample-mean`: all \
                        samples weigh the same; `count`; `sum`; `mean-gap`: mean time between samples, s; `first-time`: time \
                        of the first sample, in seconds from the beginning of the run.",
                clause: "",
                kind: Kind::List(&<Take as Value>::KIND),
                fallback: Fallback::Required,
            },
            Setting {
                name: "threshold",
                about: " For `below`: the threshold, in the probe's unit.",
                clause: "",
                kind: ANY,
                fallback: Fallback::Nothing,
            },
            INDEX,
            Setting {
                name: "per",
                about: " Divide the number by this; it then has no unit: mean cwnd / 4380.",
                clause: "",
                kind: Kind::Number {
                    least: 0.0,
                    most: f64::INFINITY,
                    above: true,
                    step: 0.0,
                },
                fallback: Fallback::Nothing,
            },
            WINDOW,
            WINDOWS,
            CLOCK,
        ],
    },
    build: |parameters, ()| {
        let takes: Vec<Take> = words::takes(parameters)?;
        let threshold: Option<f64> = parameters.optional("threshold")?;
        if takes.contains(&Take::Below) != threshold.is_some() {
            let message = "`threshold` is needed with `take = \"below\"`, and allowed only there";
            return Err(Refusal::together(message));
        }
        Ok(Box::new(OfProbe {
            name: words::name(parameters)?,
            flow: parameters.get("flow")?,
            probe: words::probe(parameters)?,
            takes,
            threshold: threshold.unwrap_or(0.0),
            index: parameters.optional("index")?,
            per: parameters.optional("per")?,
            over: Over::with_clock(parameters)?,
        }))
    },
};

/// Any number.
const ANY: Kind = Kind::Number {
    least: f64::MIN,
    most: f64::MAX,
    above: false,
    step: 0.0,
};

struct OfProbe {
    name: String,
    flow: String,
    probe: Probe,
    takes: Vec<Take>,
    threshold: f64,
    index: Option<u16>,
    per: Option<f64>,
    over: Over,
}

impl Metric for OfProbe {
    fn names(&self) -> Vec<Name> {
        let own = of_probe(self.probe.name());
        let of = |take: &Take| {
            let unit = match take {
                _ if self.per.is_some() => "1",
                Take::Mean | Take::SampleMean | Take::Least | Take::Most | Take::Sum => own,
                Take::MeanGap | Take::FirstTime => "s",
                Take::Below => "1",
                Take::Count => "samples",
            };
            match self.takes.len() {
                1 => self.over.names(&self.flow, &self.name, unit),
                _ => {
                    let word = take.to_datum().text().unwrap_or_default().replace('-', "_");
                    let name = format!("{}_{word}", self.name);
                    self.over.names(&self.flow, &name, unit)
                }
            }
        };
        self.takes.iter().flat_map(of).collect()
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        let of = |take: &Take| {
            let kind = MeterKind::Probe {
                probe: self.probe,
                index: self.index,
                take: *take,
                threshold: self.threshold,
            };
            let meter = |window| Meter::new(kind.clone(), window);
            self.over.observers(life, meter)
        };
        self.takes.iter().flat_map(of).collect()
    }

    fn values(&self, seen: &Seen<'_>) -> Vec<f64> {
        // The meters of the first word, window by window, then those of the next.
        let windows = self.over.windows().len();
        let value = |place: usize| {
            let meters: Vec<&Meter> = seen.observers(&self.flow, place);
            let any = || meters.iter().filter(|meter| meter.weight > 0.0);
            let value: f64 = match self.takes[place / windows] {
                Take::Mean | Take::SampleMean | Take::Below | Take::MeanGap => {
                    mean(any().map(|meter| meter.sum / meter.weight))
                }
                Take::Least | Take::Most | Take::FirstTime => mean(any().map(|meter| meter.sum)),
                Take::Count => meters.iter().map(|meter| meter.weight).sum(),
                Take::Sum => meters.iter().map(|meter| meter.sum).sum(),
            };
            self.per.map_or(value, |per| value / per)
        };
        (0..self.takes.len() * windows).map(value).collect()
    }
}

/// How specs name it.
pub(super) static BLOCKED_BY_RWND: Entry<Made> = Entry {
    variant: Variant {
        name: "blocked_by_rwnd",
        about: " Share of the time, from the first congestion window on, in which the peer's window as the sender sees it is \
                below `threshold` and the flightsize is below cwnd: the receive buffer limits the sender. Mean over the \
                members.",
        parameters: &[
            FLOW,
            Setting {
                name: "threshold",
                about: " The threshold: usually the size of a packet.",
                clause: "",
                kind: Kind::Bytes {
                    least: 0,
                    most: 1 << 40,
                },
                fallback: Fallback::Required,
            },
            WINDOW,
            WINDOWS,
        ],
    },
    build: |parameters, ()| {
        let threshold: u64 = parameters.get("threshold")?;
        Ok(Box::new(Blocked {
            flow: parameters.get("flow")?,
            threshold: threshold as f64,
            over: Over::read(parameters)?,
        }))
    },
};

struct Blocked {
    flow: String,
    threshold: f64,
    over: Over,
}

impl Metric for Blocked {
    fn names(&self) -> Vec<Name> {
        self.over.names(&self.flow, "blocked_by_rwnd", "1")
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        let kind = MeterKind::Blocked {
            threshold: self.threshold,
        };
        self.over
            .observers(life, |window| Meter::new(kind.clone(), window))
    }

    fn values(&self, seen: &Seen<'_>) -> Vec<f64> {
        let of = |meter: &Meter| meter.sum / meter.weight;
        let windows = 0..self.over.windows().len();
        windows
            .map(|window| mean(seen.observers(&self.flow, window).into_iter().map(of)))
            .collect()
    }
}

/// How specs name it.
pub(super) static MOST_HELD: Entry<Made> = Entry {
    variant: Variant {
        name: "most_held",
        about: " Largest number of bytes in the receive buffer when a SACK was sent: the buffer minus the smallest a_rwnd \
                advertised; mean over the members.",
        parameters: &[FLOW],
    },
    build: |parameters, ()| {
        Ok(Box::new(MostHeld {
            flow: parameters.get("flow")?,
        }))
    },
};

struct MostHeld {
    flow: String,
}

impl Metric for MostHeld {
    fn names(&self) -> Vec<Name> {
        vec![Name::new(&self.flow, "most_held", "bytes")]
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        let kind = MeterKind::Probe {
            probe: Probe::AdvertisedRwnd,
            index: None,
            take: Take::Least,
            threshold: 0.0,
        };
        vec![Box::new(Meter::new(kind, whole(life)))]
    }

    fn values(&self, seen: &Seen<'_>) -> Vec<f64> {
        let flow = seen.flow(&self.flow);
        let buffer = flow.map_or(0.0, |flow| flow.receive_buffer as f64);
        let least = |meter: &Meter| match meter.weight > 0.0 {
            true => meter.sum,
            false => f64::NAN,
        };
        let meters = seen.observers(&self.flow, 0).into_iter();
        vec![buffer - mean(meters.map(least))]
    }
}
