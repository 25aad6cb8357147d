//! The evidence: what the search found, shown again by the ordinary engine with losses that the search did not meet.

use std::ops::RangeInclusive;

use anabranch_report::statistics::{Summary, paired_difference};
use anabranch_scenario::document::Document;
use anabranch_scenario::records::{Results, RunRecord};

use crate::grid;
use crate::question::Setting;
use crate::search::Search;
use crate::spec::{self, CANDIDATES, DECISION, Evidence, FLOW, GOODPUT, REFERENCE};
use crate::trials::{Answer, judge};
use crate::{AdviseError, Question};

/// Events that advice may cost in all: some ten seconds on two idle cores, so that there is room where they are busy.
pub const EVENTS: u64 = 30_000_000;
/// Events of these that the search may take.
pub const SEARCH_EVENTS: u64 = EVENTS / 2;

/// Steps from the chosen buffer to those that are shown; a path that costs much has fewer.
const MANY: [isize; 9] = [-8, -4, -2, -1, 0, 1, 2, 4, 8];
const FEW: [isize; 5] = [-4, -1, 0, 1, 4];
/// Runs of what decides: at least, and at most.
const DECIDING: RangeInclusive<u32> = 8..=60;
/// Runs of all else.
const AROUND: u32 = 8;
/// Runs where nothing is left to chance: two show that it is so.
const CERTAIN: u32 = 2;

/// What is shown around the chosen setting.
struct Surroundings {
    buffers: Vec<u64>,
    streams: Vec<u16>,
}

impl Surroundings {
    /// The chosen setting, then more streams with its buffer, then its streams with larger buffers.
    fn deciding(&self, chosen: Setting) -> Vec<Setting> {
        let more = self
            .streams
            .iter()
            .filter(|&&streams| streams > chosen.streams);
        let more = more.map(|&streams| Setting { streams, ..chosen });
        let larger = self.buffers.iter().map(|&buffer| Some(buffer));
        let larger = larger.filter(|&buffer| buffer > chosen.buffer);
        let larger = larger.map(|buffer| Setting { buffer, ..chosen });
        [chosen].into_iter().chain(more).chain(larger).collect()
    }

    /// Points that decide, with the reference and the chosen candidate without limit, and points around with the candidates.
    fn points(&self, chosen: Setting, candidates: usize) -> (u64, u64) {
        let around = candidates + self.streams.len() * (self.buffers.len() + 1);
        (self.deciding(chosen).len() as u64 + 2, around as u64)
    }
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
        let certain =
            question.loss.0 == 0.0 && search.margin.is_some_and(|margin| margin.deviation == 0.0);
        let wanted = search.margin.as_ref().map_or(*DECIDING.end(), needed);
        let (wanted, least, around) = match certain {
            true => (CERTAIN, CERTAIN, CERTAIN),
            false => (wanted, *DECIDING.start(), AROUND),
        };
        let cost = (search.events / search.runs.max(1)).max(1);
        let affordable = EVENTS.saturating_sub(search.events) / cost;
        let mut left = 0;
        let mut surroundings = Surroundings {
            buffers: Vec::new(),
            streams: Vec::new(),
        };
        for choice in surroundings_of(question, chosen, buffer) {
            surroundings = choice;
            let (deciding, others) = surroundings.points(chosen, search.findings.len());
            left = affordable.saturating_sub(others * u64::from(around)) / deciding;
            if left >= u64::from(wanted) {
                break;
            }
        }
        let replications = u32::try_from(left).unwrap_or(u32::MAX).clamp(least, wanted);
        let mut evidence = Self {
            chosen,
            deciding: surroundings.deciding(chosen),
            replications,
            buffers: surroundings.buffers,
            streams: surroundings.streams,
            around,
            spec: Document::new("advice"),
        };
        evidence.spec = spec::evidence(question, search.best, &evidence);
        Ok(evidence)
    }
}

/// What may be shown around a setting: the more the better, the last however much it costs.
fn surroundings_of(question: &Question, chosen: Setting, buffer: u64) -> [Surroundings; 3] {
    let grid = grid::buffers(question.least_buffer());
    let place = grid::place_of(&grid, buffer) as isize;
    let buffers = |steps: &[isize]| -> Vec<u64> {
        let places = steps.iter().map(|step| place + step);
        places
            .filter_map(|place| grid.get(usize::try_from(place).ok()?).copied())
            .collect()
    };
    let all = &question.streams;
    let own = all.iter().position(|&streams| streams == chosen.streams);
    let own = own.unwrap_or(0);
    let near = all[own..(own + 2).min(all.len())].to_vec();
    let of = |steps, streams: &Vec<u16>| Surroundings {
        buffers: buffers(steps),
        streams: streams.clone(),
    };
    [of(&MANY, all), of(&FEW, all), of(&FEW, &near)]
}

/// Runs after which a setting whose margin and spread are those seen is confirmed nine times in ten: its mean must lie two
/// standard errors above 0, and lies 1.3 below the true one in one case of ten.
fn needed(margin: &Summary) -> u32 {
    let spread = margin.deviation / margin.mean.max(f64::MIN_POSITIVE);
    let runs = (3.3 * spread).powi(2).ceil();
    (runs as u32).clamp(*DECIDING.start(), *DECIDING.end())
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
    /// Whether it is among what decides, with more runs than the others.
    pub decides: bool,
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
    /// Runs of each setting that decides, and of each other.
    pub replications: [u32; 2],
    /// Goodput of each candidate without limit, bit/s, in the order of [`Question::controls`].
    pub unlimited: Vec<Summary>,
    /// Every setting of the evidence, by streams, then by buffer, without limit last.
    pub tried: Vec<Tried>,
    /// Runs of the evidence in all, and events simulated.
    pub effort: (u64, u64),
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
        let candidates: Vec<Point<'_>> = controls
            .iter()
            .map(|control| Point::of(results, CANDIDATES, &control.to_string()))
            .collect();
        let reference = Point::of(results, DECISION, REFERENCE);
        let without = Point::of(results, DECISION, spec::NO_LIMIT);
        let mut tried = Vec::new();
        for &streams in &evidence.streams {
            let experiment = spec::experiment_of(streams);
            let unlimited = Point::of(results, &experiment, spec::NO_LIMIT);
            for buffer in evidence.buffers.iter().copied().map(Some).chain([None]) {
                let setting = Setting {
                    control: evidence.chosen.control,
                    streams,
                    buffer,
                };
                let decides = evidence.deciding.contains(&setting);
                let (point, reference, without) = if decides {
                    let point = Point::of(results, DECISION, &spec::x_of_setting(setting));
                    (point, &reference, &without)
                } else {
                    let point = Point::of(results, &experiment, &spec::x_of(buffer));
                    (point, &candidates[search.best], &unlimited)
                };
                tried.extend(point.judged(setting, decides, question.share, reference, without));
            }
        }
        let advised = confirmed(&tried, evidence.chosen);
        let unlimited = candidates.iter().enumerate().filter_map(|(place, point)| {
            let point = if place == search.best {
                &reference
            } else {
                point
            };
            Summary::of(&point.bare(GOODPUT))
        });
        Advice {
            question: question.clone(),
            search: search.clone(),
            replications: [evidence.replications, evidence.around],
            unlimited: unlimited.collect(),
            tried,
            effort: (
                results.records.len() as u64,
                results.records.iter().map(|record| record.events).sum(),
            ),
            advised,
        }
    }

    /// What is advised.
    pub fn advised(&self) -> Option<&Tried> {
        self.tried.get(self.advised?)
    }
}

/// The chosen setting where the evidence shows it, else the next larger one of those that decide that it does show: with more
/// streams, then with a larger buffer. Smaller ones are not looked at: among many that are not enough one may seem so by luck.
fn confirmed(tried: &[Tried], chosen: Setting) -> Option<usize> {
    let candidates = tried.iter().enumerate().filter(|(_, tried)| {
        let larger = tried.setting.buffer.is_some() && tried.setting.buffer >= chosen.buffer;
        tried.decides
            && larger
            && tried.setting.streams >= chosen.streams
            && tried.answer == Answer::Holds
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
        decides: bool,
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
            decides,
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
