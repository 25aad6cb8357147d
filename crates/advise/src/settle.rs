//! When a sender has settled: what of a run belongs to its start, found from runs without limit.
//!
//! A sender that halves is past its first slow start after some round trips. One that keeps most of its window at a loss goes on
//! growing by a packet a round trip until link and queue are full, for minutes on a long path. What such a sender carries first is
//! not what it carries later, and a buffer that is enough first is not enough later.

use anabranch_report::statistics::Summary;
use anabranch_scenario::quantity::Span;

use crate::question::{Question, Setting};
use crate::work::Work;
use crate::{AdviseError, spec, trials};

/// Parts of a run that are looked at; a mean over each.
const PARTS: u64 = 40;
/// Parts that are left at the end of a run at least: the mean square of fewer is small by chance.
const LEAST_LEFT: usize = 5;
/// Runs whose means are looked at together, and where nothing is left to chance.
const RUNS: u32 = 8;
const CERTAIN: u32 = 2;
/// Events that this may cost.
pub const EVENTS: u64 = 8_000_000;
/// Halves of a run that differ by less are alike, as a share.
const TIE: f64 = 0.01;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settled {
    /// What comes before belongs to the start.
    pub begin: Span,
    /// How long the longest runs were measured.
    pub seen: Span,
    /// Whether these were long enough to tell.
    pub surely: bool,
    /// Runs made.
    pub runs: u64,
    /// Events simulated.
    pub events: u64,
}

/// Finds what of a run without limit belongs to its start, by the rule of MSER (White 1997): what is left out is as much as
/// makes the standard error of the mean of the rest least. Runs are made twice as long until that is no more than half of
/// them and the halves of the rest are alike, or all events are spent.
///
/// `second` is what a second of a run costs, in events.
///
/// # Errors
/// A spec that is refused, or a run that fails.
pub fn settle(question: &Question, second: f64, work: Work<'_>) -> Result<Settled, AdviseError> {
    let setting = Setting {
        control: 0,
        streams: question.streams[0],
        buffer: None,
    };
    let runs = if question.is_certain() { CERTAIN } else { RUNS };
    let usual = question.timing();
    // What grows by a packet a round trip is not past its start before this, and shorter runs are not worth their time.
    let cheap = EVENTS as f64 / 4.0 / f64::from(runs) / second.max(1.0);
    let filling = question.filling().seconds().min(cheap);
    let mut measured = Span((usual.end.0 - usual.begin.0).max((filling * 1e9) as u64));
    let (mut made, mut events) = (0, 0);
    loop {
        let longer = Question {
            duration: Some(measured),
            ..question.clone()
        };
        let timing = longer.timing();
        work.watch.expect(f64::from(runs) * timing.end.seconds());
        let document = spec::parts(&longer, setting, PARTS);
        let records = trials::records(&longer, &document, work, |_| 0..runs)?;
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
            return Ok(Settled {
                begin: Span(timing.begin.0 + left_out.min(half) as u64 * part),
                seen: measured,
                surely,
                runs: made,
                events,
            });
        }
        measured = Span(measured.0 * 2);
    }
}

/// The mean over all runs, part by part.
fn means(of_run: &[Vec<f64>]) -> Vec<f64> {
    let parts = of_run.first().map_or(0, Vec::len);
    let mean = |part: usize| {
        let sum: f64 = of_run.iter().map(|run| run[part]).sum();
        sum / of_run.len() as f64
    };
    (0..parts).map(mean).collect()
}

/// How many values at the beginning of a series are left out so that the standard error of the mean of the rest is least.
fn truncation(series: &[f64]) -> usize {
    let last = series.len().saturating_sub(LEAST_LEFT);
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

/// Whether the halves of what is left of each run carry the same.
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

/// Whether the second of two values, run by run, is surely another than the first, by more than [`TIE`].
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
