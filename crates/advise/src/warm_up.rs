//! Warm-up of a run: its initial part, which shows the start of the sender and is not measured. Its
//! duration is determined from runs with an unlimited buffer.
//!
//! A sender that halves its window recovers from its first slow start after some round trips. A
//! sender that keeps most of its window after a loss grows by one packet per round trip until link
//! and queue are full, which takes minutes on a long path. Its initial goodput differs from its
//! later goodput, and a buffer that is sufficient at first may not be sufficient later.

use anabranch_report::statistics::Summary;
use anabranch_scenario::quantity::TimeSpan;

use crate::executor::TrialExecutor;
use crate::question::{Question, TunedSetting};
use crate::{AdviseError, spec, trials};

/// Number of parts into which a run is divided; each has a mean.
const PARTS: u64 = 40;
/// Minimum number of parts after the warm-up, because the mean square of fewer may be small by
/// chance.
const MIN_REMAINING_PARTS: usize = 5;
/// Number of runs whose means are averaged, and the number for a deterministic path.
const RUNS: u32 = 8;
const CERTAIN: u32 = 2;
/// Maximum number of events for determining the warm-up.
pub const EVENTS: u64 = 8_000_000;
/// Relative difference below which the two halves of a run count as equal.
const TIE: f64 = 0.01;

/// The warm-up, and the runs from which it was determined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmUp {
    /// End of the warm-up.
    pub begin: TimeSpan,
    /// Duration of the part of the longest runs that was searched for the end of the warm-up.
    pub seen: TimeSpan,
    /// Whether the runs were long enough for a reliable result.
    pub surely: bool,
    /// Number of runs.
    pub runs: u64,
    /// Number of simulated events.
    pub events: u64,
}

/// Determines the warm-up of runs with an unlimited buffer by the MSER rule (White 1997): the
/// truncation point minimizes the standard error of the mean of the remaining data. The duration of
/// runs is doubled until the warm-up is at most half of it and the two halves of the remaining data
/// do not differ significantly, or until the limit on events is reached.
///
/// `second` is the number of events per simulated second.
///
/// # Errors
/// A spec is rejected, or a run fails.
pub fn find_warm_up(
    question: &Question,
    second: f64,
    executor: TrialExecutor<'_>,
) -> Result<WarmUp, AdviseError> {
    let setting = TunedSetting {
        control: 0,
        streams: question.streams[0],
        buffer: None,
    };
    let runs = if question.is_certain() { CERTAIN } else { RUNS };
    let usual = question.timing();
    let cheap = EVENTS as f64 / 4.0 / f64::from(runs) / second.max(1.0);
    // A window that grows by one packet per round trip needs this time to fill link and queue, so
    // shorter runs give no result. They are used nevertheless if longer ones are too expensive.
    let filling = question.filling().seconds().min(cheap);
    let mut measured = TimeSpan((usual.end.0 - usual.begin.0).max((filling * 1e9) as u64));
    let (mut made, mut events) = (0, 0);
    loop {
        let longer = Question {
            duration: Some(measured),
            ..question.clone()
        };
        let timing = longer.timing();
        executor
            .progress
            .expect(f64::from(runs) * timing.end.seconds());
        let document = spec::parts(&longer, setting, PARTS);
        let records = trials::records(&longer, &document, executor, |_| 0..runs)?;
        let of_run: Vec<Vec<f64>> = records
            .iter()
            .map(|record| {
                let part = |part: u64| {
                    let metric = spec::goodput_in(&part.to_string());
                    record.value(spec::FLOW, &metric).unwrap_or(0.0)
                };
                (0..PARTS).map(part).collect()
            })
            .collect();
        let spent: u64 = records.iter().map(|record| record.events).sum();
        events += spent;
        made += records.len() as u64;
        let left_out = truncation(&means(&of_run));
        let half = PARTS as usize / 2;
        let surely = left_out <= half && alike(&of_run, left_out);
        if surely || events + 2 * spent > EVENTS {
            let part = (timing.end.0 - timing.begin.0) / PARTS;
            return Ok(WarmUp {
                begin: TimeSpan(timing.begin.0 + left_out.min(half) as u64 * part),
                seen: measured,
                surely,
                runs: made,
                events,
            });
        }
        measured = TimeSpan(measured.0 * 2);
    }
}

/// Mean of each part over all runs.
fn means(of_run: &[Vec<f64>]) -> Vec<f64> {
    let parts = of_run.first().map_or(0, Vec::len);
    let mean = |part: usize| {
        let sum: f64 = of_run.iter().map(|run| run[part]).sum();
        sum / of_run.len() as f64
    };
    (0..parts).map(mean).collect()
}

/// Number of initial values to discard, so that the standard error of the mean of the remaining
/// values is minimal.
fn truncation(series: &[f64]) -> usize {
    let last = series.len().saturating_sub(MIN_REMAINING_PARTS);
    let error = |left_out: usize| {
        let rest = &series[left_out..];
        let count = rest.len() as f64;
        let mean = rest.iter().sum::<f64>() / count;
        let squares: f64 = rest.iter().map(|value| (value - mean).powi(2)).sum();
        squares / (count * count)
    };
    let all = (0..=last).map(|left_out| (left_out, error(left_out)));
    all.min_by(|a, b| a.1.total_cmp(&b.1))
        .map_or(0, |(left_out, _)| left_out)
}

/// Whether the two halves of the remaining parts have the same goodput in all runs.
fn alike(of_run: &[Vec<f64>], left_out: usize) -> bool {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let halves: Vec<(f64, f64)> = of_run
        .iter()
        .map(|run| {
            let rest = &run[left_out..];
            let (first, second) = rest.split_at(rest.len() / 2);
            (mean(first), mean(second))
        })
        .collect();
    !drifts(&halves)
}

/// Whether the second value of the pairs differs significantly from the first, by more than `TIE`.
pub fn drifts(halves: &[(f64, f64)]) -> bool {
    let differences: Vec<f64> = halves
        .iter()
        .map(|(first, second)| second - first)
        .collect();
    let Some(difference) = Summary::of(&differences) else {
        return false;
    };
    let mean = halves.iter().map(|(first, _)| first).sum::<f64>() / halves.len() as f64;
    let half = difference.confidence().unwrap_or(f64::INFINITY);
    difference.mean.abs() - half > TIE * mean
}

#[cfg(test)]
mod tests;
