//! Evidence for the result of a search: further runs, with other losses than in the search.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use anabranch_report::statistics::{Summary, paired_difference};
use anabranch_scenario::quantity::TimeSpan;
use anabranch_scenario::records::{Results, RunRecord};

use crate::executor::TrialExecutor;
use crate::grid::{self, OCTAVE};
use crate::invalid_question::InvalidQuestion;
use crate::question::TunedSetting;
use crate::search::Search;
use crate::spec::{self, DECISION, Evidence, FLOW, GOODPUT};
use crate::trials::{ShareVerdict, Trials, judge};
use crate::warm_up::{self, WarmUp};
use crate::{AdviseError, Question};

/// Maximum number of events for the search and the evidence of one candidate; docs/ADVISE.md lists
/// the computing time.
pub const EVENTS: u64 = 32_000_000;
/// Maximum number of events of the search, out of [`EVENTS`].
pub const SEARCH_EVENTS: u64 = EVENTS / 2;

/// Buffers that are shown, as numbers of grid steps from the chosen buffer. For a path that is
/// expensive to simulate, fewer buffers are shown.
const STEPS: [isize; 9] = [-8, -4, -2, -1, 0, 1, 2, 4, 8];
const STEPS_OF_SLOW_PATH: [isize; 5] = [-4, -1, 0, 1, 4];
/// Minimum and maximum number of runs of each deciding setting.
const DECIDING: RangeInclusive<u32> = 8..=60;
/// Number of runs of other settings.
const AROUND: u32 = 4;
/// Number of runs of a deterministic path; two show that it is deterministic.
const CERTAIN: u32 = 2;

/// The settings around the chosen one that are run.
struct Surroundings {
    buffers: Vec<u64>,
    streams: Vec<u16>,
}

impl Surroundings {
    /// Settings that may replace the chosen one, in this order: more streams with the same buffer,
    /// then the same number of streams with larger buffers.
    fn standing_in(&self, chosen: TunedSetting) -> VecDeque<TunedSetting> {
        let more = self
            .streams
            .iter()
            .filter(|&&streams| streams > chosen.streams);
        let more = more.map(|&streams| TunedSetting { streams, ..chosen });
        let larger = self.buffers.iter().map(|&buffer| Some(buffer));
        let larger = larger.filter(|&buffer| buffer > chosen.buffer);
        let larger = larger.map(|buffer| TunedSetting { buffer, ..chosen });
        more.chain(larger).collect()
    }
}

impl Evidence {
    /// Plans the evidence of a search.
    ///
    /// # Errors
    /// [`AdviseError::Question`] if the search found no setting, because none transfers data on
    /// this path.
    pub fn plan(question: &Question, search: &Search) -> Result<Self, AdviseError> {
        let Some(
            chosen @ TunedSetting {
                buffer: Some(buffer),
                ..
            },
        ) = search.chosen
        else {
            let message = "no setting was found that surely carries so much; ask for less, or for a longer duration";
            return Err(InvalidQuestion::whole(message).into());
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
        let half = place.checked_sub(OCTAVE).map(|place| TunedSetting {
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
            // If no setting is confirmed, all deciding settings are run, in addition to the
            // reference.
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
    /// Adds the next replacement for settings that were not confirmed; `false` if none is left.
    ///
    /// Replacements are added one at a time, because the first confirmed setting in this order is
    /// the result, and later ones would contribute nothing.
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

    /// Adds half of the buffer of a setting to the surroundings, to show that this half does not
    /// suffice. Adds nothing if it is run already, or if it is too small for any association.
    pub fn add_half(&mut self, question: &Question, setting: TunedSetting) {
        let least = question.buffers().first().copied();
        let half = setting.buffer.map(|buffer| buffer / 2);
        let half = half.filter(|half| Some(*half) >= least);
        let run = |other: &TunedSetting| other.streams == setting.streams && other.buffer == half;
        if self.deciding.iter().any(run) || !self.streams.contains(&setting.streams) {
            return;
        }
        self.buffers.extend(half);
        self.buffers.sort_unstable();
        self.buffers.dedup();
    }
}

/// Possible sets of settings around the chosen one, the largest set first. The first set that
/// leaves enough runs for the deciding settings is used, or else the last one.
fn surroundings_of(
    question: &Question,
    chosen: TunedSetting,
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
        of(&STEPS, all),
        of(&STEPS_OF_SLOW_PATH, all),
        of(&STEPS_OF_SLOW_PATH, &near),
        of(&STEPS_OF_SLOW_PATH, &alone),
    ]
}

/// Number of runs after which a setting with this observed margin and deviation is confirmed with a
/// probability of 90 %. Confirmation requires that the mean is two standard errors above 0, and in
/// one case of ten the mean is 1.3 standard errors below the true mean. The true margin is assumed
/// to be one standard error less than observed, because the search selects settings whose margin
/// looks good.
fn needed(margin: &Summary) -> u32 {
    let error = margin.deviation / (margin.replications as f64).sqrt();
    let spread = margin.deviation / (margin.mean - error).max(f64::MIN_POSITIVE);
    let runs = (3.3 * spread).powi(2).ceil();
    (runs as u32).clamp(*DECIDING.start(), *DECIDING.end())
}

/// The factor that limits the goodput of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitingFactor {
    /// The link is fully used.
    Link,
    /// A larger buffer increases goodput.
    Buffer,
    /// Congestion control is the limit: a larger buffer does not increase goodput, and the link is
    /// not fully used.
    Congestion,
}

/// Results of one setting of the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct TestedSetting {
    /// The setting.
    pub setting: TunedSetting,
    /// Whether this is a deciding setting. Deciding settings have more runs than others.
    pub decides: bool,
    /// Goodput, bit/s.
    pub goodput: Summary,
    /// Goodput of each replication relative to that of the best candidate with an unlimited buffer.
    pub share: Summary,
    /// Whether the setting reaches the requested share, with 95 % confidence.
    pub answer: ShareVerdict,
    /// Factor that limits the goodput.
    pub limit: LimitingFactor,
    /// Utilization of the link by all bytes on the wire, percent.
    pub utilization: f64,
    /// Mean congestion window, in full chunks.
    pub mean_cwnd: f64,
    /// Share of the goodput that is lost because of the buffer limit, and half width of its 95 %
    /// interval.
    pub cost: (f64, f64),
    /// Change of the goodput from the first half of the measured time to the second half.
    pub drift: Drift,
}

/// Goodput in the second half of the measured time minus that in the first half, relative to the
/// first half.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Drift {
    /// Mean, and half width of its 95 % interval.
    pub mean: (f64, f64),
    /// Whether the drift is significant, so that the runs have not reached a steady state.
    pub surely: bool,
}

/// Runs of the recommended setting on the full-size path, if search and evidence used a smaller
/// one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FullSize {
    /// Goodput, bit/s.
    pub goodput: Summary,
    /// Whether the smaller path gives the same goodput: the 95 % interval of the difference of the
    /// means contains 0.
    pub agrees: bool,
}

/// A recommendation, and the results on which it is based.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Advice {
    /// The question.
    pub question: Question,
    /// Result of the search.
    pub search: Search,
    /// Number of runs of each deciding setting, and of each other setting.
    pub replications: [u32; 2],
    /// Goodput with an unlimited buffer, bit/s.
    pub unlimited: Summary,
    /// All settings of the evidence, sorted by streams and then by buffer; the unlimited buffer is
    /// the last.
    pub tried: Vec<TestedSetting>,
    /// Number of runs of the evidence, and number of simulated events.
    pub effort: (u64, u64),
    /// Index in `tried` of the recommended setting; `None` if the evidence confirms no setting.
    pub advised: Option<usize>,
    /// Drift of the runs with an unlimited buffer.
    pub drift: Drift,
    /// Duration of the warm-up, if it was determined.
    pub warm_up: Option<WarmUp>,
    /// Check on the full-size path, if it was done.
    pub full: Option<FullSize>,
}

/// Utilization above which the link counts as fully used, %.
const FULL: f64 = 95.0;
/// The buffer is the limit if it significantly costs more than this share of the goodput.
const COSTS: f64 = 0.02;

impl Advice {
    /// The setting that the runs of the deciding settings confirm.
    pub fn confirmed(
        question: &Question,
        evidence: &Evidence,
        results: &Results,
    ) -> Option<TunedSetting> {
        let tried: Vec<TestedSetting> = deciding(question, evidence, results).collect();
        Some(tried[confirmed(&tried, evidence.chosen)?].setting)
    }

    /// Evaluates the evidence.
    pub fn of(
        question: &Question,
        search: &Search,
        evidence: &Evidence,
        results: &Results,
    ) -> Advice {
        let mut tried: Vec<TestedSetting> = deciding(question, evidence, results).collect();
        for &streams in &evidence.streams {
            let experiment = spec::experiment_of(streams);
            let unlimited = Point::of(question, results, &experiment, spec::NO_LIMIT);
            for buffer in evidence.buffers.iter().copied().map(Some).chain([None]) {
                let setting = TunedSetting {
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
        let without = |tried: &TestedSetting| tried.setting.buffer.is_none();
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
            warm_up: None,
            full: None,
        }
    }

    /// Whether the measured goodput is the long-term goodput, because the warm-up was over and no
    /// run indicates a drift.
    pub fn has_settled(&self) -> bool {
        let before = self.warm_up.is_none_or(|warm_up| warm_up.surely);
        let advised = self.advised().is_some_and(|tried| tried.drift.surely);
        before && !self.drift.surely && !advised
    }

    /// The recommended setting.
    pub fn advised(&self) -> Option<&TestedSetting> {
        self.tried.get(self.advised?)
    }

    /// The setting with half of the recommended buffer and the same streams, if it was run.
    pub fn half(&self) -> Option<&TestedSetting> {
        let advised = self.advised()?.setting;
        let half = advised.buffer? / 2;
        let same = |tried: &&TestedSetting| {
            tried.setting.streams == advised.streams && tried.setting.buffer == Some(half)
        };
        self.tried.iter().find(same)
    }
}

/// Number of full-size runs, and maximum number of events of all of them.
const FULL_SIZE_RUNS: u32 = 8;
const FULL_SIZE_EVENTS: f64 = 8_000_000.0;

/// Runs a setting on the full-size path. `None` if search and evidence were at full size, or if the
/// runs would be too expensive. The losses differ from those of search and evidence.
///
/// The goodput with an unlimited buffer is not measured again, because on a large path the first
/// slow start overshoots so far that a run of acceptable length would not recover from it.
///
/// # Errors
/// A spec is rejected, or a run fails.
pub fn full_size(
    question: &Question,
    tried: &TestedSetting,
    executor: TrialExecutor<'_>,
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
    let mut trials = Trials::new(&short, u64::MAX, executor);
    trials.ensure(&[setting], 1)?;
    let affordable = FULL_SIZE_EVENTS / trials.dearest().max(1) as f64;
    if affordable < f64::from(FULL_SIZE_RUNS) {
        return Ok(None);
    }
    // The remaining budget allows longer runs.
    let longer = (affordable / f64::from(FULL_SIZE_RUNS)).min(40.0);
    let long = of(TimeSpan((least.0 as f64 * longer) as u64));
    let mut trials = Trials::new(&long, u64::MAX, executor);
    trials.expect(FULL_SIZE_RUNS as usize);
    trials.ensure(&[setting], FULL_SIZE_RUNS)?;
    Ok(
        Summary::of(trials.goodputs(setting)).map(|goodput| FullSize {
            goodput,
            agrees: agree(&goodput, &tried.goodput),
        }),
    )
}

/// Whether two means may be equal: their difference is less than the root of the sum of the squared
/// half widths.
fn agree(one: &Summary, other: &Summary) -> bool {
    let half = |summary: &Summary| summary.confidence().unwrap_or(f64::INFINITY);
    (one.mean - other.mean).abs() <= half(one).hypot(half(other))
}

/// Evaluation of the deciding settings.
fn deciding<'a>(
    question: &'a Question,
    evidence: &'a Evidence,
    results: &'a Results,
) -> impl Iterator<Item = TestedSetting> {
    let reference = Point::of(question, results, DECISION, spec::NO_LIMIT);
    evidence.deciding.iter().filter_map(move |&setting| {
        let x = spec::x_of_setting(setting);
        Point::of(question, results, DECISION, &x).judged(setting, true, &reference)
    })
}

/// Index of the chosen setting, if the evidence confirms it. Otherwise, index of the first larger
/// deciding setting that the evidence confirms: with more streams, or else with a larger buffer.
/// Smaller settings are not considered, because one of many insufficient settings may appear
/// sufficient by chance.
fn confirmed(tried: &[TestedSetting], chosen: TunedSetting) -> Option<usize> {
    let candidates = tried.iter().enumerate().filter(|(_, tried)| {
        let larger = tried.setting.buffer.is_some() && tried.setting.buffer >= chosen.buffer;
        tried.decides
            && larger
            && tried.setting.streams >= chosen.streams
            && tried.answer == ShareVerdict::Holds
    });
    let first = candidates.min_by_key(|(_, tried)| (tried.setting.buffer, tried.setting.streams));
    first.map(|(place, _)| place)
}

/// The runs at one point of the evidence.
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

    /// Factor from windows and rates of the simulated path to those of the actual path.
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
            surely: warm_up::drifts(&halves),
        }
    }

    fn mean(&self, metric: &str) -> f64 {
        Summary::of(&self.bare(metric)).map_or(0.0, |summary| summary.mean)
    }

    fn judged(
        &self,
        setting: TunedSetting,
        decides: bool,
        reference: &Point<'_>,
    ) -> Option<TestedSetting> {
        let share = self.question.share;
        let goodput = Summary::of(&self.bare(GOODPUT))?;
        let margin = paired_difference(&self.numbered(1.0), &reference.numbered(share))?;
        let whole = Summary::of(&reference.bare(GOODPUT))?
            .mean
            .max(f64::MIN_POSITIVE);
        // The displayed share and its interval are computed from the margin, so that the displayed
        // numbers are those that are judged.
        let shown = Summary {
            replications: margin.replications,
            mean: share + margin.mean / whole,
            deviation: margin.deviation / whole,
        };
        let cost = paired_difference(&reference.numbered(1.0), &self.numbered(1.0))?;
        let cost = (cost.mean / whole, cost.confidence().unwrap_or(0.0) / whole);
        let utilization = self.mean("link_utilization_wire");
        let limit = if cost.0 - cost.1 > COSTS {
            LimitingFactor::Buffer
        } else if utilization >= FULL {
            LimitingFactor::Link
        } else {
            LimitingFactor::Congestion
        };
        Some(TestedSetting {
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
