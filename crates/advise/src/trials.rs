//! Runs of settings, kept in memory: the search asks, and what was run once is not run again.
//!
//! A trial is what everything else is: a spec in, a run out. Equal replications of different settings meet the same random
//! stream of losses, so that settings are compared by their differences.

use std::collections::BTreeMap;
use std::ops::Range;

use anabranch_engine::plan::{Plan, Request, Unit};
use anabranch_lab::run;
use anabranch_report::statistics::{Summary, paired_difference};
use anabranch_scenario::document::Document;
use anabranch_scenario::records::RunRecord;

use crate::question::{Question, Setting};
use crate::work::Work;
use crate::{AdviseError, spec};

/// Whether a setting carries the wanted share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes: the whole 95 % interval lies at or above it.
    Holds,
    /// No: the whole interval lies below it.
    Fails,
    /// It cannot be told with the runs that may be spent.
    Open,
}

/// The numbers of runs after which a comparison is judged.
const LOOKS: [u32; 7] = [4, 8, 12, 16, 24, 32, MOST];
/// Where nothing is lost, a run is like the next; two show that it is.
const LOOK_WITHOUT_CHANCE: u32 = 2;
/// Runs at least for a yes.
const LEAST: u32 = 8;
/// Runs at most.
pub const MOST: u32 = 64;
/// Runs at most where another setting will do as well if it cannot be told.
pub const FEW: u32 = 12;

/// Runs of settings, and how many events they may cost.
pub struct Trials<'a> {
    question: &'a Question,
    work: Work<'a>,
    goodputs: BTreeMap<Setting, Vec<f64>>,
    spent: BTreeMap<Setting, u64>,
    events: u64,
    dearest: u64,
    budget: u64,
    runs: u64,
}

impl<'a> Trials<'a> {
    /// No run was made yet; `budget` events may be simulated.
    pub fn new(question: &'a Question, budget: u64, work: Work<'a>) -> Self {
        Self {
            question,
            work,
            goodputs: BTreeMap::new(),
            spent: BTreeMap::new(),
            events: 0,
            dearest: 0,
            budget,
            runs: 0,
        }
    }

    /// Goodput of each replication that was run, bit/s.
    pub fn goodputs(&self, setting: Setting) -> &[f64] {
        self.goodputs.get(&setting).map_or(&[], Vec::as_slice)
    }

    /// Events of a run of a setting, on average.
    pub fn mean_events(&self, setting: Setting) -> f64 {
        let spent = self.spent.get(&setting).copied().unwrap_or(0);
        spent as f64 / self.goodputs(setting).len().max(1) as f64
    }

    /// Runs made.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// Events simulated.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Events of the run that had most.
    pub fn dearest(&self) -> u64 {
        self.dearest
    }

    /// Tells whoever watches how many runs are still to be expected.
    pub fn expect(&self, runs: usize) {
        let watch = self.work.watch;
        watch.expect(runs as f64 * self.question.timing().end.seconds());
    }

    /// Whether no more may be spent.
    pub fn exhausted(&self) -> bool {
        self.events >= self.budget
    }

    /// Sees to it that settings were run so many times.
    ///
    /// # Errors
    /// A spec that is refused, or a run that fails.
    pub fn ensure(&mut self, settings: &[Setting], replications: u32) -> Result<(), AdviseError> {
        let short = |setting: &&Setting| (self.goodputs(**setting).len() as u32) < replications;
        let mut missing: Vec<Setting> = settings.iter().filter(short).copied().collect();
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() {
            return Ok(());
        }
        let controls = self.question.controls();
        let scale = |setting: &Setting| self.question.scale_of(&controls[setting.control]);
        let (scaled, full): (Vec<Setting>, Vec<Setting>) =
            missing.iter().partition(|setting| scale(setting) != 1);
        for settings in [scaled, full] {
            if let Some(scale) = settings.first().map(scale) {
                self.run(settings, scale, replications)?;
            }
        }
        Ok(())
    }

    /// Runs settings of one scale up to so many replications.
    fn run(
        &mut self,
        settings: Vec<Setting>,
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
        let records = records(&question, &document, self.work, |point| {
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

    /// Whether nothing of the path is left to chance.
    pub fn certain(&self) -> bool {
        self.question.is_certain()
    }

    /// Whether a setting carries `share` of what a reference carries, replication by replication; more runs are made until
    /// it is sure, or hopeless, or more than `most`. The runs that a yes takes at least are made even where nothing more may be spent.
    ///
    /// # Errors
    /// Those of [`Trials::ensure`].
    pub fn test(
        &mut self,
        setting: Setting,
        share: f64,
        reference: Setting,
        most: u32,
    ) -> Result<Answer, AdviseError> {
        let early = self.certain().then_some(LOOK_WITHOUT_CHANCE);
        let looks = LOOKS.into_iter().filter(|&look| look <= most);
        for replications in early.into_iter().chain(looks) {
            self.ensure(&[reference, setting], replications)?;
            let margin = margin(self.goodputs(setting), share, self.goodputs(reference));
            let Some(margin) = margin else { break };
            match judge(&margin) {
                Answer::Holds if replications >= LEAST || margin.deviation == 0.0 => {
                    return Ok(Answer::Holds);
                }
                Answer::Fails => return Ok(Answer::Fails),
                Answer::Open if hopeless(&margin) => break,
                Answer::Holds | Answer::Open => {}
            }
            if self.exhausted() && replications >= LEAST {
                break;
            }
        }
        Ok(Answer::Open)
    }
}

/// Runs replications of each point of a spec's first experiment: those that `wanted` names for the place of a point.
///
/// # Errors
/// A spec that is refused, or a run that fails.
pub fn records(
    question: &Question,
    document: &Document,
    work: Work<'_>,
    wanted: impl Fn(usize) -> Range<u32>,
) -> Result<Vec<RunRecord>, AdviseError> {
    let seed = seed(question);
    let request = Request::default().with(|it| {
        it.file = "the spec of this search".to_owned();
        it.seed = seed;
    });
    let plan = Plan::of(document, request).map_err(Box::new)?;
    let experiment = &plan.experiments[0];
    let mut units = Vec::new();
    for (place, point) in experiment.points.iter().enumerate() {
        units.extend(wanted(place).map(|replication| Unit {
            experiment,
            point,
            replication,
        }));
    }
    let heard = |record: &RunRecord| work.watch.did(record.simulated);
    let records = run::in_memory(&units, seed, work.runner, work.jobs, &heard);
    Ok(records.map_err(Box::new)?)
}

/// The search's own seed: what it finds is shown again with losses that it did not meet.
fn seed(question: &Question) -> u64 {
    // One round of SplitMix64 (Steele, Lea, Flood 2014): neighbouring seeds of users give unrelated ones.
    let mixed = question.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Whether even the most runs would hardly bring a yes: if the true margin is no more than a standard error above what was
/// seen, the whole interval would not lie above 0 then.
fn hopeless(margin: &Summary) -> bool {
    let error = margin.deviation / (margin.replications as f64).sqrt();
    margin.replications >= LEAST as usize
        && margin.mean + error < 2.0 * margin.deviation / f64::from(MOST).sqrt()
}

/// What a setting carries beyond a share of what the reference carries, over common replications.
pub fn margin(goodputs: &[f64], share: f64, reference: &[f64]) -> Option<Summary> {
    let numbered = |values: &[f64], factor: f64| -> Vec<(u32, f64)> {
        (0..)
            .zip(values)
            .map(|(replication, value)| (replication, value * factor))
            .collect()
    };
    paired_difference(&numbered(goodputs, 1.0), &numbered(reference, share))
}

/// What a margin says with 95 % confidence.
pub fn judge(margin: &Summary) -> Answer {
    match margin.confidence() {
        Some(half) if margin.mean - half >= 0.0 => Answer::Holds,
        Some(half) if margin.mean + half < 0.0 => Answer::Fails,
        _ => Answer::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_is_taken_replication_by_replication() {
        // 10 - 0.5 x 16 = 2 and 9 - 0.5 x 10 = 4; the third has no partner.
        let margin = margin(&[10.0, 9.0, 1.0], 0.5, &[16.0, 10.0]).expect("two are common");
        assert_eq!((margin.mean, margin.replications), (3.0, 2));
    }

    #[test]
    fn a_comparison_ends_where_no_number_of_runs_would_bring_a_yes() {
        // After 64 runs a yes needs a mean of 2 x 8 / 8 = 2; after 16 the mean is known to 8 / 4 = 2.
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
        // t(0.975, 3) = 3.182: the half width is 3.182 x 2 / 2 = 3.182.
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
                Answer::Holds,
                Answer::Open,
                Answer::Open,
                Answer::Open,
                Answer::Fails
            ]
        );
        let single = Summary {
            replications: 1,
            mean: 5.0,
            deviation: 0.0,
        };
        assert_eq!(
            judge(&single),
            Answer::Open,
            "one run says nothing of the next"
        );
    }
}
