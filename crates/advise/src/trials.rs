//! Runs of settings, stored in memory so that the search never repeats a run.
//!
//! A trial is an ordinary run of a spec. Replications with the same number have the same random
//! losses for all settings, so settings should be compared by paired differences.

use std::collections::BTreeMap;
use std::ops::Range;

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_lab::run;
use anabranch_report::statistics::{Summary, paired_difference};
use anabranch_scenario::document::Document;
use anabranch_scenario::records::RunRecord;

use crate::executor::TrialExecutor;
use crate::question::{Question, TunedSetting};
use crate::{AdviseError, spec};

/// Whether a setting reaches the requested share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareVerdict {
    /// Yes: the whole 95 % interval of the margin is at or above 0.
    Holds,
    /// No: the whole 95 % interval of the margin is below 0.
    Fails,
    /// Undecided, even after the maximum number of runs.
    Open,
}

/// Numbers of runs after which a comparison is evaluated.
const CHECKPOINTS: [u32; 7] = [4, 8, 12, 16, 24, 32, MAX_RUNS];
/// Number of runs on a deterministic path; two show that it is deterministic.
const RUNS_IF_DETERMINISTIC: u32 = 2;
/// Minimum number of runs for a positive result.
const MIN_RUNS: u32 = 8;
/// Maximum number of runs.
pub const MAX_RUNS: u32 = 64;
/// Maximum number of runs if the search can continue without a decision.
pub const MAX_RUNS_IF_OPTIONAL: u32 = 12;

/// The runs of settings so far, within a limit on events.
pub struct Trials<'a> {
    question: &'a Question,
    executor: TrialExecutor<'a>,
    goodputs: BTreeMap<TunedSetting, Vec<f64>>,
    spent: BTreeMap<TunedSetting, u64>,
    events: u64,
    dearest: u64,
    budget: u64,
    runs: u64,
}

impl<'a> Trials<'a> {
    /// Creates an empty set of runs; `budget` is the maximum number of simulated events.
    pub fn new(question: &'a Question, budget: u64, executor: TrialExecutor<'a>) -> Self {
        Self {
            question,
            executor,
            goodputs: BTreeMap::new(),
            spent: BTreeMap::new(),
            events: 0,
            dearest: 0,
            budget,
            runs: 0,
        }
    }

    /// Goodput of each replication of a setting so far, bit/s.
    pub fn goodputs(&self, setting: TunedSetting) -> &[f64] {
        self.goodputs.get(&setting).map_or(&[], Vec::as_slice)
    }

    /// Mean number of events per run of a setting.
    pub fn mean_events(&self, setting: TunedSetting) -> f64 {
        let spent = self.spent.get(&setting).copied().unwrap_or(0);
        spent as f64 / self.goodputs(setting).len().max(1) as f64
    }

    /// Number of runs so far.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// Number of simulated events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Number of events in the most expensive run.
    pub fn dearest(&self) -> u64 {
        self.dearest
    }

    /// Reports the expected number of further runs.
    pub fn expect(&self, runs: usize) {
        let progress = self.executor.progress;
        progress.expect(runs as f64 * self.question.timing().end.seconds());
    }

    /// Whether the limit on events is reached.
    pub fn exhausted(&self) -> bool {
        self.events >= self.budget
    }

    /// Runs settings until each has `replications` runs.
    ///
    /// # Errors
    /// A spec is rejected, or a run fails.
    pub fn ensure(
        &mut self,
        settings: &[TunedSetting],
        replications: u32,
    ) -> Result<(), AdviseError> {
        let short =
            |setting: &&TunedSetting| (self.goodputs(**setting).len() as u32) < replications;
        let mut missing: Vec<TunedSetting> = settings.iter().filter(short).copied().collect();
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() {
            return Ok(());
        }
        let controls = self.question.controls();
        let scale = |setting: &TunedSetting| self.question.scale_of(&controls[setting.control]);
        let (scaled, full): (Vec<TunedSetting>, Vec<TunedSetting>) =
            missing.iter().partition(|setting| scale(setting) != 1);
        for settings in [scaled, full] {
            if let Some(scale) = settings.first().map(scale) {
                self.run(settings, scale, replications)?;
            }
        }
        Ok(())
    }

    /// Runs settings that have the same scale until each has `replications` runs.
    fn run(
        &mut self,
        settings: Vec<TunedSetting>,
        scale: u32,
        replications: u32,
    ) -> Result<(), AdviseError> {
        let question = Question {
            scale,
            ..self.question.clone()
        };
        let document = spec::trials(&question, &settings);
        let made: Vec<u32> = settings
            .iter()
            .map(|&setting| self.goodputs(setting).len() as u32)
            .collect();
        let records = records(&question, &document, self.executor, |point| {
            made[point]..replications
        })?;
        self.runs += records.len() as u64;
        let mut records = records.into_iter();
        for setting in settings {
            let kept = self.goodputs.entry(setting).or_default();
            for record in records.by_ref().take(replications as usize - kept.len()) {
                self.events += record.events;
                *self.spent.entry(setting).or_default() += record.events;
                self.dearest = self.dearest.max(record.events);
                let goodput = record.value(spec::FLOW, spec::GOODPUT).unwrap_or(0.0);
                kept.push(goodput * f64::from(scale));
            }
        }
        Ok(())
    }

    /// Whether the path is deterministic, so that all runs are equal.
    pub fn certain(&self) -> bool {
        self.question.is_certain()
    }

    /// Tests whether a setting reaches `share` of the goodput of a reference, by paired
    /// replications. Runs are added until the result is significant, a positive result is unlikely,
    /// or there are `most` runs. The minimum number of runs for a positive result is executed even
    /// if the limit on events is reached.
    ///
    /// # Errors
    /// The errors of [`Trials::ensure`].
    pub fn test(
        &mut self,
        setting: TunedSetting,
        share: f64,
        reference: TunedSetting,
        most: u32,
    ) -> Result<ShareVerdict, AdviseError> {
        let early = self.certain().then_some(RUNS_IF_DETERMINISTIC);
        let looks = CHECKPOINTS.into_iter().filter(|&look| look <= most);
        for replications in early.into_iter().chain(looks) {
            self.ensure(&[reference, setting], replications)?;
            let margin = margin(self.goodputs(setting), share, self.goodputs(reference));
            let Some(margin) = margin else { break };
            match judge(&margin) {
                ShareVerdict::Holds if replications >= MIN_RUNS || margin.deviation == 0.0 => {
                    return Ok(ShareVerdict::Holds);
                }
                ShareVerdict::Fails => return Ok(ShareVerdict::Fails),
                ShareVerdict::Open if hopeless(&margin) => break,
                ShareVerdict::Holds | ShareVerdict::Open => {}
            }
            if self.exhausted() && replications >= MIN_RUNS {
                break;
            }
        }
        Ok(ShareVerdict::Open)
    }
}

/// Runs the first experiment of a spec. At each point it runs the replications that `wanted`
/// returns for the index of the point.
///
/// # Errors
/// A spec is rejected, or a run fails.
pub fn records(
    question: &Question,
    document: &Document,
    executor: TrialExecutor<'_>,
    wanted: impl Fn(usize) -> Range<u32>,
) -> Result<Vec<RunRecord>, AdviseError> {
    let seed = seed(question);
    let request = PlanRequest::default().with(|it| {
        it.file = "the spec of this search".to_owned();
        it.seed = seed;
    });
    let plan = Plan::of(document, request).map_err(Box::new)?;
    let experiment = &plan.experiments[0];
    let mut units = Vec::new();
    for (place, point) in experiment.points.iter().enumerate() {
        units.extend(wanted(place).map(|replication| PlannedRun {
            experiment,
            point,
            replication,
        }));
    }
    let heard = |record: &RunRecord| executor.progress.did(record.simulated);
    let records = run::in_memory(&units, seed, executor.runner, executor.jobs, &heard);
    Ok(records.map_err(Box::new)?)
}

/// Seed of the search. It differs from that of the evidence, because the evidence must have other
/// losses.
fn seed(question: &Question) -> u64 {
    // One round of SplitMix64 (Steele, Lea, Flood 2014), so that similar seeds of users give
    // unrelated seeds.
    let mixed = question.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Whether a positive result is unlikely even with the maximum number of runs. It is unlikely if
/// the interval would not be above 0 even for a true margin of one standard error above the
/// observed margin.
fn hopeless(margin: &Summary) -> bool {
    let error = margin.deviation / (margin.replications as f64).sqrt();
    margin.replications >= MIN_RUNS as usize
        && margin.mean + error < 2.0 * margin.deviation / f64::from(MAX_RUNS).sqrt()
}

/// Goodput of a setting minus `share` times the goodput of the reference, over the replications
/// that both have.
pub fn margin(goodputs: &[f64], share: f64, reference: &[f64]) -> Option<Summary> {
    let numbered = |values: &[f64], factor: f64| -> Vec<(u32, f64)> {
        (0..)
            .zip(values)
            .map(|(replication, value)| (replication, value * factor))
            .collect()
    };
    paired_difference(&numbered(goodputs, 1.0), &numbered(reference, share))
}

/// Decides whether a margin is at or above 0, with 95 % confidence.
pub fn judge(margin: &Summary) -> ShareVerdict {
    match margin.confidence() {
        Some(half) if margin.mean - half >= 0.0 => ShareVerdict::Holds,
        Some(half) if margin.mean + half < 0.0 => ShareVerdict::Fails,
        _ => ShareVerdict::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_is_taken_replication_by_replication() {
        // The margins are 10 - 0.5 x 16 = 2 and 9 - 0.5 x 10 = 4; the third replication has no
        // counterpart.
        let margin = margin(&[10.0, 9.0, 1.0], 0.5, &[16.0, 10.0]).expect("two are common");
        assert_eq!((margin.mean, margin.replications), (3.0, 2));
    }

    #[test]
    fn a_comparison_ends_where_no_number_of_runs_would_bring_a_yes() {
        // After 64 runs a positive result needs a mean of 2 x 8 / 8 = 2. After 16 runs the standard
        // error of the mean is 8 / 4 = 2.
        let with = |mean, replications| {
            hopeless(&Summary {
                replications,
                mean,
                deviation: 8.0,
            })
        };
        assert_eq!([with(-0.1, 16), with(0.1, 16)], [true, false]);
        assert!(!with(-20.0, 4), "four runs are too few to give up");
    }

    #[test]
    fn a_judgement_needs_the_whole_interval() {
        // With t(0.975, 3) = 3.182 the half width is 3.182 x 2 / 2 = 3.182.
        let with = |mean| {
            judge(&Summary {
                replications: 4,
                mean,
                deviation: 2.0,
            })
        };
        assert_eq!(
            [with(3.2), with(3.1), with(0.0), with(-3.1), with(-3.2)],
            [
                ShareVerdict::Holds,
                ShareVerdict::Open,
                ShareVerdict::Open,
                ShareVerdict::Open,
                ShareVerdict::Fails
            ]
        );
        let single = Summary {
            replications: 1,
            mean: 5.0,
            deviation: 0.0,
        };
        assert_eq!(
            judge(&single),
            ShareVerdict::Open,
            "one run says nothing of the next"
        );
    }
}
