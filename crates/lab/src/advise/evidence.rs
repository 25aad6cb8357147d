//! The evidence: what the search found, shown again by the ordinary engine with losses that the search did not meet.

use std::ops::RangeInclusive;

use super::grid;
use super::search::Search;
use super::spec::{self, CANDIDATES, FLOW, GOODPUT};
use super::trials::{Answer, Setting, judge};
use super::{AdviseError, Question};
use crate::model::{Results, RunRecord};
use crate::statistics::{Summary, paired_difference};

/// Events that advice may cost in all: about half a minute on two cores.
pub const EVENTS: u64 = 80_000_000;
/// Events of these that the search may take.
pub const SEARCH_EVENTS: u64 = EVENTS / 5 * 3;

/// Steps from the chosen buffer to those that are shown; a path that costs much has fewer.
const MANY: [isize; 9] = [-8, -4, -2, -1, 0, 1, 2, 4, 8];
const FEW: [isize; 5] = [-4, -1, 0, 1, 4];
/// Runs of each point: at least, and at most.
const REPLICATIONS: RangeInclusive<u32> = 10..=60;

/// What is to be run for the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// What the search chose.
    pub chosen: Setting,
    /// The buffers that are run, bytes, rising.
    pub buffers: Vec<u64>,
    /// Runs of each point.
    pub replications: u32,
    /// The spec.
    pub spec: String,
}

impl Evidence {
    /// Plans the evidence of a search.
    ///
    /// # Errors
    /// [`AdviseError::Question`] where the search found nothing: nothing carries anything on this path.
    pub fn plan(question: &Question, search: &Search) -> Result<Self, AdviseError> {
        let Some(
            chosen @ Setting {
                buffer: Some(buffer),
                ..
            },
        ) = search.chosen
        else {
            let message = "no setting was found that surely carries so much; ask for less, or for a longer duration";
            return Err(AdviseError::Question(message.to_owned()));
        };
        let grid = grid::buffers(question.least_buffer());
        let place = grid::place_of(&grid, buffer) as isize;
        let of = |steps: &[isize]| -> Vec<u64> {
            let places = steps.iter().map(|step| place + step);
            places
                .filter_map(|place| grid.get(usize::try_from(place).ok()?).copied())
                .collect()
        };
        let cost = (search.events / search.runs.max(1)).max(1);
        let runs = (EVENTS.saturating_sub(search.events) / cost).max(1);
        let points = |buffers: &[u64]| {
            (search.findings.len() + question.streams.len() * (buffers.len() + 1)) as u64
        };
        let mut buffers = of(&MANY);
        if runs < points(&buffers) * u64::from(*REPLICATIONS.start()) {
            buffers = of(&FEW);
        }
        let affordable = u32::try_from(runs / points(&buffers)).unwrap_or(u32::MAX);
        let without_chance = search.margin.is_some_and(|margin| margin.deviation == 0.0);
        let replications = match without_chance {
            true => *REPLICATIONS.start(),
            false => affordable.clamp(*REPLICATIONS.start(), *REPLICATIONS.end()),
        };
        let spec = spec::evidence(&spec::Evidence {
            question,
            chosen,
            buffers: &buffers,
            replications,
        });
        Ok(Self {
            chosen,
            buffers,
            replications,
            spec,
        })
    }
}

/// What holds a sender back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The link is full.
    Link,
    /// A larger buffer carries more.
    Buffer,
    /// Congestion control: a larger buffer carries no more, and the link is not full.
    Congestion,
}

/// One setting of the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The setting.
    pub setting: Setting,
    /// Goodput, bit/s.
    pub goodput: Summary,
    /// Goodput as a share of the best candidate's without limit, replication by replication.
    pub share: Summary,
    /// Whether it surely carries the share asked for.
    pub answer: Answer,
    /// What holds it back.
    pub limit: Limit,
    /// Use of the link by all bytes on the wire, %.
    pub utilization: f64,
    /// Mean congestion window, full chunks.
    pub mean_cwnd: f64,
    /// Share of the goodput that the limit of the buffer costs, with its 95 % half width.
    pub cost: (f64, f64),
}

/// The advice.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The question.
    pub question: Question,
    /// What the search found.
    pub search: Search,
    /// Runs of each setting of the evidence.
    pub replications: u32,
    /// Goodput of each candidate without limit, bit/s, in the order of [`Question::controls`].
    pub unlimited: Vec<Summary>,
    /// Every setting of the evidence, by streams, then by buffer, without limit last.
    pub tried: Vec<Tried>,
    /// Place in `tried` of what is advised; `None` where the evidence confirms nothing.
    pub advised: Option<usize>,
}

/// More of the link in use than this is full, %.
const FULL: f64 = 95.0;
/// A buffer that surely costs more than this share holds the sender back.
const COSTS: f64 = 0.02;

impl Advice {
    /// Judges the evidence.
    pub fn of(
        question: &Question,
        search: &Search,
        evidence: &Evidence,
        results: &Results,
    ) -> Advice {
        let controls = question.controls();
        let reference = Point::of(results, CANDIDATES, &controls[search.best].to_string());
        let unlimited = controls.iter().filter_map(|control| {
            Summary::of(&Point::of(results, CANDIDATES, &control.to_string()).bare(GOODPUT))
        });
        let mut tried = Vec::new();
        for &streams in &question.streams {
            let experiment = spec::experiment_of(streams);
            let without = Point::of(results, &experiment, &spec::x_of(None));
            for buffer in evidence.buffers.iter().copied().map(Some).chain([None]) {
                let setting = Setting {
                    control: evidence.chosen.control,
                    streams,
                    buffer,
                };
                let point = Point::of(results, &experiment, &spec::x_of(buffer));
                tried.extend(point.judged(setting, question.share, &reference, &without));
            }
        }
        let advised = confirmed(&tried, evidence.chosen);
        Advice {
            question: question.clone(),
            search: search.clone(),
            replications: evidence.replications,
            unlimited: unlimited.collect(),
            tried,
            advised,
        }
    }

    /// What is advised.
    pub fn advised(&self) -> Option<&Tried> {
        self.tried.get(self.advised?)
    }
}

/// The chosen setting where the evidence shows it, else the next larger one that it does show: with more streams, then with
/// a larger buffer. Smaller ones are not looked at: among many that are not enough one may seem so by luck.
fn confirmed(tried: &[Tried], chosen: Setting) -> Option<usize> {
    let candidates = tried.iter().enumerate().filter(|(_, tried)| {
        let larger = tried.setting.buffer.is_some() && tried.setting.buffer >= chosen.buffer;
        larger && tried.setting.streams >= chosen.streams && tried.answer == Answer::Holds
    });
    let first = candidates.min_by_key(|(_, tried)| (tried.setting.buffer, tried.setting.streams));
    first.map(|(place, _)| place)
}

/// The runs of one point of the evidence.
struct Point<'a>(Vec<&'a RunRecord>);

impl<'a> Point<'a> {
    fn of(results: &'a Results, experiment: &'a str, x: &str) -> Self {
        let here = |record: &&RunRecord| {
            record
                .point
                .first()
                .is_some_and(|(_, at)| at.to_string() == x)
        };
        Point(results.experiment(experiment).filter(here).collect())
    }

    fn numbered(&self, factor: f64) -> Vec<(u32, f64)> {
        let values = self.0.iter();
        values
            .filter_map(|record| Some((record.replication, record.value(FLOW, GOODPUT)? * factor)))
            .collect()
    }

    fn bare(&self, metric: &str) -> Vec<f64> {
        let of = |record: &&RunRecord| {
            record
                .value(FLOW, metric)
                .or_else(|| record.value("all", metric))
        };
        self.0.iter().filter_map(of).collect()
    }

    fn mean(&self, metric: &str) -> f64 {
        Summary::of(&self.bare(metric)).map_or(0.0, |summary| summary.mean)
    }

    fn judged(
        &self,
        setting: Setting,
        share: f64,
        reference: &Point<'_>,
        without: &Point<'_>,
    ) -> Option<Tried> {
        let goodput = Summary::of(&self.bare(GOODPUT))?;
        let margin = paired_difference(&self.numbered(1.0), &reference.numbered(share))?;
        let whole = Summary::of(&reference.bare(GOODPUT))?
            .mean
            .max(f64::MIN_POSITIVE);
        // The margin and its interval, as a share: what is judged and what is shown are the same numbers.
        let shown = Summary {
            replications: margin.replications,
            mean: share + margin.mean / whole,
            deviation: margin.deviation / whole,
        };
        let cost = paired_difference(&without.numbered(1.0), &self.numbered(1.0))?;
        let most = without.mean(GOODPUT).max(f64::MIN_POSITIVE);
        let cost = (cost.mean / most, cost.confidence().unwrap_or(0.0) / most);
        let utilization = self.mean("link_utilization_wire");
        let limit = if cost.0 - cost.1 > COSTS {
            Limit::Buffer
        } else if utilization >= FULL {
            Limit::Link
        } else {
            Limit::Congestion
        };
        Some(Tried {
            setting,
            goodput,
            share: shown,
            answer: judge(&margin),
            limit,
            utilization,
            mean_cwnd: self.mean("mean_cwnd"),
            cost,
        })
    }
}

#[cfg(test)]
mod tests;
