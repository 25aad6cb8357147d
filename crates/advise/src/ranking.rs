//! Ranking of the candidates by their goodput with an unlimited buffer. The ranking determines for
//! which candidates settings are searched, and at which scale.

use anabranch_report::statistics::Summary;
use anabranch_scenario::quantity::TimeSpan;
use anabranch_transport::time::{MILLISECOND, SECOND};

use crate::AdviseError;
use crate::executor::TrialExecutor;
use crate::question::{CandidateSender, Question, TunedSetting};
use crate::trials::{self, Trials};
use crate::warm_up::{WarmUp, find_warm_up};

/// Usual number of events of a run. Longer runs are used only if these events contain too few
/// losses, because many short runs are as informative as few long ones. The second value is the
/// maximum in this case.
const EVENTS_OF_A_RUN: [f64; 2] = [40_000.0, 400_000.0];
/// Minimum number of losses in a run, because settings differ in their reaction to losses.
const LOSSES_OF_A_RUN: f64 = 60.0;
/// Maximum number of events of the whole ranking.
const EVENTS: u64 = 6_000_000;
/// Numbers of runs of every candidate after which significantly worse candidates are excluded.
const ROUNDS: [u32; 3] = [4, 8, 16];
/// Relative difference of goodput below which two candidates count as equal.
const TIE: f64 = 0.01;

/// Goodput of all candidates with an unlimited buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Candidates with their goodput in bit/s, in the order of [`Question::controls`].
    pub candidates: Vec<(CandidateSender, Summary)>,
    /// Index of the best candidate, if it is significantly better than the first, by more than one
    /// percent.
    pub better: Option<usize>,
    /// Factor by which the simulated path was smaller, for candidates that [can be
    /// scaled](Question::scale_of).
    pub scale: u32,
    /// Number of runs.
    pub runs: u64,
    /// Number of simulated events.
    pub events: u64,
    /// For each candidate: simulated seconds per run, and events per run.
    costs: Vec<(f64, f64)>,
}

/// Ranks the candidates of a question.
///
/// # Errors
/// [`AdviseError`].
pub fn ranking(question: &Question, executor: TrialExecutor<'_>) -> Result<Ranking, AdviseError> {
    let pipe = 2.0 * question.bandwidth_delay() as f64 / question.mtu.0 as f64;
    let mut question = Question {
        scale: question.scale_for(pipe),
        ..question.clone()
    };
    let controls = question.controls();
    let unlimited: Vec<TunedSetting> = (0..controls.len())
        .map(|control| TunedSetting {
            control,
            streams: question.streams[0],
            buffer: None,
        })
        .collect();
    if question.duration.is_none() {
        question.duration = Some(brief(&question, &unlimited, executor)?);
    }
    let mut trials = Trials::new(&question, EVENTS, executor);
    trials.expect(controls.len() * ROUNDS[1] as usize);
    rank(&mut trials, &unlimited)?;
    let goodputs = |place: usize| trials.goodputs(unlimited[place]);
    let surely_better = |place: &usize| {
        let margin = trials::margin(goodputs(*place), 1.0 + TIE, goodputs(0));
        margin.is_some_and(|margin| trials::judge(&margin) == trials::ShareVerdict::Holds)
    };
    let mean = |place: usize| Summary::of(goodputs(place)).map_or(0.0, |summary| summary.mean);
    let better = (1..controls.len())
        .filter(surely_better)
        .max_by(|&one, &other| mean(one).total_cmp(&mean(other)));
    let end = question.timing().end.seconds();
    let costs = unlimited
        .iter()
        .map(|&setting| (end, trials.mean_events(setting)));
    let candidates = controls
        .iter()
        .zip(0..)
        .filter_map(|(control, place)| Some((control.clone(), Summary::of(goodputs(place))?)));
    Ok(Ranking {
        candidates: candidates.collect(),
        better,
        scale: question.scale,
        runs: trials.runs(),
        events: trials.events(),
        costs: costs.collect(),
    })
}

/// Determines the measured duration of the runs for the ranking, from a short run of each
/// candidate.
fn brief(
    question: &Question,
    settings: &[TunedSetting],
    executor: TrialExecutor<'_>,
) -> Result<TimeSpan, AdviseError> {
    let (least, most) = (question.least_measured(), question.most_measured());
    let short = Question {
        duration: Some(least),
        ..question.clone()
    };
    let mut trials = Trials::new(&short, u64::MAX, executor);
    trials.expect(settings.len());
    trials.ensure(settings, 1)?;
    let second = trials.dearest() as f64 / short.timing().end.seconds();
    let measured = (EVENTS_OF_A_RUN[0] / second.max(1.0) * SECOND as f64) as u64;
    Ok(TimeSpan(measured).clamp(least, most))
}

/// Runs the candidates until the best one is clearly better than those close to it, or until the
/// difference no longer matters.
fn rank(trials: &mut Trials<'_>, settings: &[TunedSetting]) -> Result<(), AdviseError> {
    let mut near = settings.to_vec();
    let certain = trials.certain().then_some(2);
    for replications in certain.into_iter().chain(ROUNDS) {
        // The first candidate is always run, because the others are compared with it.
        let mut wanted = near.clone();
        wanted.push(settings[0]);
        trials.ensure(&wanted, replications)?;
        let sum = |trials: &Trials<'_>, setting: &TunedSetting| {
            trials.goodputs(*setting).iter().sum::<f64>()
        };
        let Some(best) = near
            .iter()
            .copied()
            .max_by(|a, b| sum(trials, a).total_cmp(&sum(trials, b)))
        else {
            break;
        };
        let mean = sum(trials, &best) / f64::from(replications);
        near.retain(|&setting| {
            let margin = trials::margin(trials.goodputs(setting), 1.0, trials.goodputs(best));
            setting == best || margin.is_some_and(|margin| matters(&margin, mean))
        });
        if near.len() < 2 || trials.exhausted() {
            break;
        }
    }
    Ok(())
}

/// Whether a candidate with this margin over the best so far needs further runs, because it may be
/// better by more than [`TIE`].
fn matters(margin: &Summary, best: f64) -> bool {
    let half = margin.confidence().unwrap_or(f64::INFINITY);
    margin.mean + half > TIE * best
}

impl Ranking {
    /// The question for a single candidate, at its own scale, with runs of the duration that events
    /// and losses require.
    ///
    /// The measurement starts after the warm-up of the sender, and lasts at least as long as the
    /// warm-up. If the question sets a duration, the default warm-up is used.
    ///
    /// # Errors
    /// A spec is rejected, or a run fails.
    pub fn question(
        &self,
        question: &Question,
        place: usize,
        executor: TrialExecutor<'_>,
    ) -> Result<(Question, Option<WarmUp>), AdviseError> {
        let (control, goodput) = &self.candidates[place];
        let window = 2.0 * goodput.mean / 8.0 * question.rtt.seconds() / question.mtu.0 as f64;
        let mut own = Question {
            profiles: vec![control.profile.clone()],
            congestion: vec![control.congestion.clone()],
            recovery: vec![control.recovery.clone()],
            scale: question.scale_alone(control, window),
            ..question.clone()
        };
        if own.duration.is_some() {
            return Ok((own, None));
        }
        let second = self.second(&own, place);
        let usual = self.measured(&own, place);
        own.duration = Some(usual);
        let warm_up = find_warm_up(&own, second, executor)?;
        own.begin = warm_up.begin;
        own.duration = Some(usual.max(own.begin));
        Ok((own, Some(warm_up)))
    }

    /// Number of events per simulated second of a candidate at the scale of its question.
    fn second(&self, own: &Question, place: usize) -> f64 {
        let (seconds, events) = self.costs[place];
        // The number of events is proportional to that of packets, and therefore inversely
        // proportional to the scale.
        let ranked = Question {
            scale: self.scale,
            ..own.clone()
        };
        let scale = ranked.scale_of(&self.candidates[place].0);
        let second = events / seconds * f64::from(scale) / f64::from(own.scale);
        second.max(1.0)
    }

    /// Measured duration of a run of a candidate: the time for [`EVENTS_OF_A_RUN`] events, or
    /// longer if that contains too few losses.
    fn measured(&self, own: &Question, place: usize) -> TimeSpan {
        let second = self.second(own, place);
        let goodput = self.candidates[place].1.mean / f64::from(own.scale);
        let packets = goodput / 8.0 / own.message_size().min(own.mtu.0) as f64;
        let losses = packets * own.simulated_loss().0;
        let of_losses = match own.loss.0 {
            0.0 => 0.0,
            _ => LOSSES_OF_A_RUN / losses.max(1e-9),
        };
        let [usual, most] = EVENTS_OF_A_RUN.map(|events| events / second);
        let wanted = of_losses.max(usual).min(most.max(usual)).min(3600.0);
        let ceiling = match own.loss.0 {
            0.0 => own.most_measured(),
            _ => TimeSpan(3600 * SECOND),
        };
        let whole = (wanted * 10.0).ceil() as u64 * 100 * MILLISECOND;
        TimeSpan(whole).clamp(own.least_measured(), ceiling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_is_looked_at_again_while_it_may_be_the_best_by_more_than_a_tie() {
        // With t(0.975, 3) = 3.182 the half widths are 3.182 and 31.82.
        let matters = |mean, deviation| {
            let margin = Summary {
                replications: 4,
                mean,
                deviation,
            };
            matters(&margin, 1000.0)
        };
        assert!(!matters(-50.0, 2.0), "surely behind");
        assert!(!matters(-1.0, 2.0), "a tie within 1 %");
        assert!(matters(-1.0, 20.0), "perhaps better by 3 %");
        assert!(matters(20.0, 2.0), "better");
    }
}
