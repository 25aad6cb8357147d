//! The evidence: what the search found, shown again by the ordinary engine with losses that the search did not meet.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use anabranch_report::statistics::{Summary, paired_difference};
use anabranch_scenario::quantity::Span;
use anabranch_scenario::records::{Results, RunRecord};

use crate::grid::{self, OCTAVE};
use crate::question::Setting;
use crate::refused::Refused;
use crate::search::Search;
use crate::settle::{self, Settled};
use crate::spec::{self, DECISION, Evidence, FLOW, GOODPUT};
use crate::trials::{Answer, Trials, judge};
use crate::work::Work;
use crate::{AdviseError, Question};

/// Events that the search and the evidence of one candidate may cost; docs/ADVISE.md has the time that they take.
pub const EVENTS: u64 = 32_000_000;
/// Events of these that the search may take.
pub const SEARCH_EVENTS: u64 = EVENTS / 2;

/// Steps from the chosen buffer to those that are shown; a path that costs much has fewer.
const MANY: [isize; 9] = [-8, -4, -2, -1, 0, 1, 2, 4, 8];
const FEW: [isize; 5] = [-4, -1, 0, 1, 4];
/// Runs of what decides: at least, and at most.
const DECIDING: RangeInclusive<u32> = 8..=60;
/// Runs of all else.
const AROUND: u32 = 4;
/// Runs where nothing is left to chance: two show that it is so.
const CERTAIN: u32 = 2;

/// What is shown around the chosen setting.
struct Surroundings {
    buffers: Vec<u64>,
    streams: Vec<u16>,
}

impl Surroundings {
    /// What may stand in for the chosen setting: more streams with its buffer, then its streams with larger buffers.
    fn standing_in(&self, chosen: Setting) -> VecDeque<Setting> {
        let more = self
            .streams
            .iter()
            .filter(|&&streams| streams > chosen.streams);
        let more = more.map(|&streams| Setting { streams, ..chosen });
        let larger = self.buffers.iter().map(|&buffer| Some(buffer));
        let larger = larger.filter(|&buffer| buffer > chosen.buffer);
        let larger = larger.map(|buffer| Setting { buffer, ..chosen });
        more.chain(larger).collect()
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
            return Err(Refused::whole(message).into());
        };
        let certain =
            question.is_certain() && search.margin.is_some_and(|margin| margin.deviation == 0.0);
        let wanted = search.margin.as_ref().map_or(*DECIDING.end(), needed);
        let (wanted, least, around) = match certain {
            true => (CERTAIN, CERTAIN, CERTAIN),
            false => (wanted, *DECIDING.start(), AROUND),
        };
        let cost = (search.events / search.runs.max(1)).max(1);
        let affordable = EVENTS.saturating_sub(search.events) / cost;
        let grid = question.buffers();
        let place = grid::place_of(&grid, buffer);
        let half = place.checked_sub(OCTAVE).map(|place| Setting {
            buffer: Some(grid[place]),
            ..chosen
        });
        let mut evidence = Self {
            chosen,
            deciding: [chosen].into_iter().chain(half).collect(),
            waiting: VecDeque::new(),
            replications: least,
            buffers: Vec::new(),
            streams: Vec::new(),
            around,
            goodput: search.unlimited.mean,
        };
        for surroundings in surroundings_of(question, chosen, &grid, place) {
            let points = surroundings.streams.len() * (surroundings.buffers.len() + 1);
            evidence.waiting = surroundings.standing_in(chosen);
            // Where none is confirmed all are asked, and the reference is run beside them.
            let deciding = (evidence.deciding.len() + evidence.waiting.len()) as u64 + 1;
            let left = affordable.saturating_sub(points as u64 * u64::from(around)) / deciding;
            evidence.replications = u32::try_from(left).unwrap_or(u32::MAX).clamp(least, wanted);
            evidence.buffers = surroundings.buffers;
            evidence.streams = surroundings.streams;
            if left >= u64::from(wanted) {
                break;
            }
        }
        Ok(evidence)
    }
}

impl Evidence {
    /// Asks the next setting that may stand in for those that are not confirmed; `false` where there is none left.
    ///
    /// One at a time: what decides is the first in their order that the evidence shows, and those behind it would say nothing.
    pub fn fall_back(&mut self) -> bool {
        let Some(next) = self.waiting.pop_front() else {
            return false;
        };
        let before = self
            .deciding
            .iter()
            .rposition(|it| it.buffer >= self.chosen.buffer);
        self.deciding
            .insert(before.map_or(0, |place| place + 1), next);
        true
    }

    /// Adds half of a setting's buffer to what lies around, where it is not run anyway: a reader wants to know that it is not
    /// enough. None is added that no association could have.
    pub fn add_half(&mut self, question: &Question, setting: Setting) {
        let least = question.buffers().first().copied();
        let half = setting.buffer.map(|buffer| buffer / 2);
        let half = half.filter(|half| Some(*half) >= least);
        let run = |other: &Setting| other.streams == setting.streams && other.buffer == half;
        if self.deciding.iter().any(run) || !self.streams.contains(&setting.streams) {
            return;
        }
        self.buffers.extend(half);
        self.buffers.sort_unstable();
        self.buffers.dedup();
    }
}

/// What may be shown around a setting: the more the better, the last however much it costs.
fn surroundings_of(
    question: &Question,
    chosen: Setting,
    grid: &[u64],
    place: usize,
) -> [Surroundings; 4] {
    let place = place as isize;
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
    let alone = near[..1].to_vec();
    [
        of(&MANY, all),
        of(&FEW, all),
        of(&FEW, &near),
        of(&FEW, &alone),
    ]
}

/// Runs after which a setting whose margin and spread are those seen is confirmed nine times in ten: its mean must lie two
/// standard errors above 0, and lies 1.3 below the true one in one case of ten. The search chose a margin that looked well, so the
/// true one is taken to be a standard error less than was seen.
fn needed(margin: &Summary) -> u32 {
    let error = margin.deviation / (margin.replications as f64).sqrt();
    let spread = margin.deviation / (margin.mean - error).max(f64::MIN_POSITIVE);
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
    /// What the second half of its runs carries beyond the first.
    pub drift: Drift,
}

/// What the second half of runs carries beyond the first, as a share of the first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Drift {
    /// The mean, and its 95 % half width.
    pub mean: (f64, f64),
    /// Whether it is surely more than nothing: the runs have not settled.
    pub surely: bool,
}

/// Runs of the advised setting on the path at its own size, where the search and the evidence had a smaller one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FullSize {
    /// Goodput, bit/s.
    pub goodput: Summary,
    /// Whether the smaller path gives the same goodput: the difference of the means is within its 95 % interval.
    pub agrees: bool,
}

/// The advice.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Advice {
    /// The question.
    pub question: Question,
    /// What the search found.
    pub search: Search,
    /// Runs of each setting that decides, and of each other.
    pub replications: [u32; 2],
    /// Goodput without limit, bit/s.
    pub unlimited: Summary,
    /// Every setting of the evidence, by streams, then by buffer, without limit last.
    pub tried: Vec<Tried>,
    /// Runs of the evidence in all, and events simulated.
    pub effort: (u64, u64),
    /// Place in `tried` of what is advised; `None` where the evidence confirms nothing.
    pub advised: Option<usize>,
    /// What the second half of the runs without limit carries beyond the first.
    pub drift: Drift,
    /// When the sender settles, where that was looked for.
    pub settled: Option<Settled>,
    /// The check at full size, where there was one.
    pub full: Option<FullSize>,
}

/// More of the link in use than this is full, %.
const FULL: f64 = 95.0;
/// A buffer that surely costs more than this share holds the sender back.
const COSTS: f64 = 0.02;

impl Advice {
    /// Which setting the runs that decide confirm.
    pub fn confirmed(
        question: &Question,
        evidence: &Evidence,
        results: &Results,
    ) -> Option<Setting> {
        let tried: Vec<Tried> = deciding(question, evidence, results).collect();
        Some(tried[confirmed(&tried, evidence.chosen)?].setting)
    }

    /// Judges the evidence.
    pub fn of(
        question: &Question,
        search: &Search,
        evidence: &Evidence,
        results: &Results,
    ) -> Advice {
        let mut tried: Vec<Tried> = deciding(question, evidence, results).collect();
        for &streams in &evidence.streams {
            let experiment = spec::experiment_of(streams);
            let unlimited = Point::of(question, results, &experiment, spec::NO_LIMIT);
            for buffer in evidence.buffers.iter().copied().map(Some).chain([None]) {
                let setting = Setting {
                    streams,
                    buffer,
                    ..evidence.chosen
                };
                if evidence.deciding.contains(&setting) {
                    continue;
                }
                let point = Point::of(question, results, &experiment, &spec::x_of(buffer));
                tried.extend(point.judged(setting, false, &unlimited));
            }
        }
        let without = |tried: &Tried| tried.setting.buffer.is_none();
        tried.sort_by_key(|tried| (tried.setting.streams, without(tried), tried.setting.buffer));
        let advised = confirmed(&tried, evidence.chosen);
        let reference = Point::of(question, results, DECISION, spec::NO_LIMIT);
        Advice {
            question: question.clone(),
            search: search.clone(),
            replications: [evidence.replications, evidence.around],
            unlimited: Summary::of(&reference.bare(GOODPUT)).unwrap_or(search.unlimited),
            tried,
            effort: (
                results.records.len() as u64,
                results.records.iter().map(|record| record.events).sum(),
            ),
            advised,
            drift: reference.drift(),
            settled: None,
            full: None,
        }
    }

    /// Whether what was measured is what the sender carries for good: it had settled before, and no run says otherwise.
    pub fn has_settled(&self) -> bool {
        let before = self.settled.is_none_or(|settled| settled.surely);
        let advised = self.advised().is_some_and(|tried| tried.drift.surely);
        before && !self.drift.surely && !advised
    }

    /// What is advised.
    pub fn advised(&self) -> Option<&Tried> {
        self.tried.get(self.advised?)
    }

    /// Half of the advised buffer with the same streams, where it was tried.
    pub fn half(&self) -> Option<&Tried> {
        let advised = self.advised()?.setting;
        let half = advised.buffer? / 2;
        let same = |tried: &&Tried| {
            tried.setting.streams == advised.streams && tried.setting.buffer == Some(half)
        };
        self.tried.iter().find(same)
    }
}

/// Runs at full size, and what all of them may cost.
const FULL_SIZE_RUNS: u32 = 8;
const FULL_SIZE_EVENTS: f64 = 8_000_000.0;

/// Runs a setting on the path at its own size, where it was simulated at a smaller one; nothing where it was not, or where
/// that would cost too much. The losses are neither those of the search nor those of the evidence.
///
/// A setting without limit is not run beside it: its first slow start overshoots by so much on a large path that a run of
/// bearable length is not past it.
///
/// # Errors
/// A spec that is refused, or a run that fails.
pub fn full_size(
    question: &Question,
    tried: &Tried,
    work: Work<'_>,
) -> Result<Option<FullSize>, AdviseError> {
    if question.scale == 1 {
        return Ok(None);
    }
    let of = |measured| Question {
        scale: 1,
        duration: Some(measured),
        seed: question.seed.wrapping_add(1),
        ..question.clone()
    };
    let (setting, least) = (tried.setting, question.least_measured());
    let short = of(least);
    let mut trials = Trials::new(&short, u64::MAX, work);
    trials.ensure(&[setting], 1)?;
    let affordable = FULL_SIZE_EVENTS / trials.dearest().max(1) as f64;
    if affordable < f64::from(FULL_SIZE_RUNS) {
        return Ok(None);
    }
    // What is left goes into longer runs.
    let longer = (affordable / f64::from(FULL_SIZE_RUNS)).min(40.0);
    let long = of(Span((least.0 as f64 * longer) as u64));
    let mut trials = Trials::new(&long, u64::MAX, work);
    trials.expect(FULL_SIZE_RUNS as usize);
    trials.ensure(&[setting], FULL_SIZE_RUNS)?;
    Ok(
        Summary::of(trials.goodputs(setting)).map(|goodput| FullSize {
            goodput,
            agrees: agree(&goodput, &tried.goodput),
        }),
    )
}

/// Whether two means may be one: their difference is within the root of the sum of the squares of their half widths.
fn agree(one: &Summary, other: &Summary) -> bool {
    let half = |summary: &Summary| summary.confidence().unwrap_or(f64::INFINITY);
    (one.mean - other.mean).abs() <= half(one).hypot(half(other))
}

/// What decides, judged.
fn deciding<'a>(
    question: &'a Question,
    evidence: &'a Evidence,
    results: &'a Results,
) -> impl Iterator<Item = Tried> {
    let reference = Point::of(question, results, DECISION, spec::NO_LIMIT);
    evidence.deciding.iter().filter_map(move |&setting| {
        let x = spec::x_of_setting(setting);
        Point::of(question, results, DECISION, &x).judged(setting, true, &reference)
    })
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
struct Point<'a> {
    question: &'a Question,
    records: Vec<&'a RunRecord>,
}

impl<'a> Point<'a> {
    fn of(question: &'a Question, results: &'a Results, experiment: &'a str, x: &str) -> Self {
        let here = |record: &&RunRecord| {
            record
                .point
                .first()
                .is_some_and(|(_, at)| at.to_string() == x)
        };
        Point {
            question,
            records: results.experiment(experiment).filter(here).collect(),
        }
    }

    /// Windows and rates of the path, of those simulated.
    fn scale(&self) -> f64 {
        f64::from(self.question.scale)
    }

    fn numbered(&self, factor: f64) -> Vec<(u32, f64)> {
        let values = self.records.iter();
        let factor = factor * self.scale();
        values
            .filter_map(|record| Some((record.replication, record.value(FLOW, GOODPUT)? * factor)))
            .collect()
    }

    fn bare(&self, metric: &str) -> Vec<f64> {
        let of = |record: &&RunRecord| {
            record
                .value(FLOW, metric)
                .map(|value| value * self.scale())
                .or_else(|| record.value("all", metric))
        };
        self.records.iter().filter_map(of).collect()
    }

    fn drift(&self) -> Drift {
        let [first, second] = spec::HALVES.map(|half| self.bare(&spec::goodput_in(half)));
        let halves: Vec<(f64, f64)> = first.iter().copied().zip(second).collect();
        let differences: Vec<f64> = halves
            .iter()
            .map(|(first, second)| second - first)
            .collect();
        let (Some(first), Some(more)) = (Summary::of(&first), Summary::of(&differences)) else {
            return Drift::default();
        };
        let whole = first.mean.max(f64::MIN_POSITIVE);
        Drift {
            mean: (more.mean / whole, more.confidence().unwrap_or(0.0) / whole),
            surely: settle::drifts(&halves),
        }
    }

    fn mean(&self, metric: &str) -> f64 {
        Summary::of(&self.bare(metric)).map_or(0.0, |summary| summary.mean)
    }

    fn judged(&self, setting: Setting, decides: bool, reference: &Point<'_>) -> Option<Tried> {
        let share = self.question.share;
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
        let cost = paired_difference(&reference.numbered(1.0), &self.numbered(1.0))?;
        let cost = (cost.mean / whole, cost.confidence().unwrap_or(0.0) / whole);
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
            drift: self.drift(),
        })
    }
}

#[cfg(test)]
mod tests;
