//! Which settings carry enough, found by halving the grid of buffers.

use anabranch_report::statistics::Summary;

use crate::AdviseError;
use crate::grid::{self, OCTAVE};
use crate::question::{Control, Question, Setting};
use crate::trials::{Answer, Trials};

/// What the search found; numbers of its own runs, which the evidence confirms or corrects.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// One for each candidate, in the order of [`Question::controls`].
    pub findings: Vec<Finding>,
    /// The candidate that carries most with a buffer without limit.
    pub best: usize,
    /// The smallest buffer, then the fewest streams, then the first candidate that carries the wanted share of the best.
    pub chosen: Option<Setting>,
    /// What `chosen` carried beyond that share, bit/s.
    pub margin: Option<Summary>,
    /// Runs made.
    pub runs: u64,
    /// Events simulated.
    pub events: u64,
    /// The events allowed were not enough to be sure everywhere.
    pub exhausted: bool,
}

/// What was found of one candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The candidate.
    pub control: Control,
    /// Goodput with a buffer without limit, bit/s.
    pub unlimited: Summary,
    /// What it needs.
    pub found: Found,
}

/// What a candidate needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// This is its smallest buffer and fewest streams for the share of the best.
    OfBest(Setting),
    /// It does not reach that share with any buffer; for the share of its own this is enough.
    OfOwn(Setting),
    /// It reaches the share of the best, but not with a smaller buffer than a candidate before it.
    NotSmaller,
    /// It surely does not reach the share of the best, whatever the buffer.
    Behind,
    /// It may reach the share of the best, but even without limit that is not sure.
    Unsure,
    /// No buffer was found that surely does.
    Open,
}

/// Runs of every candidate without limit after which those that are surely behind are left out, until the best is known or
/// ranking has cost a quarter of what may be spent.
const RANKING: [u32; 3] = [4, 8, 16];
const RANKING_SPENDS: f64 = 0.25;
/// Candidates this close to the best, as a share, need not be told from it.
const TIE: f64 = 0.01;

/// Comparisons that a search is guessed to need, for each number of streams and for each further candidate, and the runs
/// that one takes: for an estimate of the time left, no more.
const GUESSED: (usize, usize, usize) = (4, 1, 10);

/// Searches.
///
/// # Errors
/// A spec that is refused, or a run that fails.
pub fn search(question: &Question, trials: &mut Trials<'_>) -> Result<Search, AdviseError> {
    let controls = question.controls();
    let fewest = question.streams[0];
    let unlimited = |control| Setting {
        control,
        streams: fewest,
        buffer: None,
    };
    let references: Vec<Setting> = (0..controls.len()).map(unlimited).collect();
    let comparisons =
        |controls| (GUESSED.0 * question.streams.len() + GUESSED.1 * controls) * GUESSED.2;
    trials.expect(controls.len() * RANKING[1] as usize + comparisons(controls.len()));
    rank(trials, &references)?;
    trials.expect(comparisons(controls.len()));
    let mean = |trials: &Trials<'_>, control: usize| {
        let values = trials.goodputs(unlimited(control));
        values.iter().sum::<f64>() / values.len().max(1) as f64
    };
    let means: Vec<f64> = (0..controls.len())
        .map(|control| mean(trials, control))
        .collect();
    let best = (0..controls.len()).fold(0, |best, control| {
        if means[control] > means[best] {
            control
        } else {
            best
        }
    });
    let mut halving = Halving {
        question,
        grid: grid::buffers(question.least_buffer()),
        trials,
    };
    let mut chosen: Option<(usize, Setting)> = None;
    let mut found = Vec::new();
    for control in 0..controls.len() {
        let reference = unlimited(best);
        let answer = match control == best {
            true => Answer::Holds,
            false => halving
                .trials
                .test(unlimited(control), question.share, reference)?,
        };
        let reaches = answer == Answer::Holds;
        let guess = halving.guess(means[if reaches { best } else { control }]);
        found.push(match (reaches, chosen) {
            (true, Some((place, _))) if !halving.beats(control, place, reference)? => {
                Found::NotSmaller
            }
            (true, before) => {
                let guess = before.map_or(guess, |(place, _)| place.saturating_sub(1));
                match halving.smallest(control, reference, guess)? {
                    Some((place, setting)) => {
                        chosen = chosen
                            .filter(|(other, _)| *other <= place)
                            .or(Some((place, setting)));
                        Found::OfBest(setting)
                    }
                    None => Found::Open,
                }
            }
            // What everybody has deserves an answer of its own.
            (false, _) if control == 0 => {
                let own = halving.smallest(control, unlimited(control), guess)?;
                own.map_or(Found::Open, |(_, setting)| Found::OfOwn(setting))
            }
            (false, _) if answer == Answer::Open => Found::Unsure,
            (false, _) => Found::Behind,
        });
        let left = controls.len() - control - 1;
        halving.trials.expect(match chosen {
            Some(_) => left * GUESSED.1 * GUESSED.2,
            None => comparisons(left) * left.min(1),
        });
    }
    let summary = |control| Summary::of(trials.goodputs(unlimited(control)));
    let findings =
        controls
            .into_iter()
            .zip(found)
            .enumerate()
            .filter_map(|(index, (control, found))| {
                Some(Finding {
                    control,
                    unlimited: summary(index)?,
                    found,
                })
            });
    let chosen = chosen.map(|(_, setting)| setting);
    Ok(Search {
        findings: findings.collect(),
        best,
        chosen,
        margin: chosen.and_then(|setting| {
            crate::trials::margin(
                trials.goodputs(setting),
                question.share,
                trials.goodputs(unlimited(best)),
            )
        }),
        runs: trials.runs(),
        events: trials.events(),
        exhausted: trials.exhausted(),
    })
}

/// Runs the candidates without limit until the best is known from those that come near it, or it does not matter which it is.
fn rank(trials: &mut Trials<'_>, references: &[Setting]) -> Result<(), AdviseError> {
    let mut near = references.to_vec();
    let certain = trials.certain().then_some(2);
    for replications in certain.into_iter().chain(RANKING) {
        trials.ensure(&near, replications)?;
        let sum =
            |trials: &Trials<'_>, setting: &Setting| trials.goodputs(*setting).iter().sum::<f64>();
        let Some(best) = near
            .iter()
            .copied()
            .max_by(|a, b| sum(trials, a).total_cmp(&sum(trials, b)))
        else {
            break;
        };
        let mean = sum(trials, &best) / f64::from(replications);
        near.retain(|&setting| {
            let margin =
                crate::trials::margin(trials.goodputs(setting), 1.0, trials.goodputs(best));
            setting == best || margin.is_some_and(|margin| matters(&margin, mean))
        });
        if near.len() < 2 || trials.spent(RANKING_SPENDS) {
            break;
        }
    }
    Ok(())
}

/// Whether a candidate with such a margin over the best of so far must be looked at again: it may be the best, and by more
/// than a tie.
fn matters(margin: &Summary, best: f64) -> bool {
    let half = margin.confidence().unwrap_or(f64::INFINITY);
    margin.mean + half > TIE * best
}

/// Halves the grid: a larger buffer is taken never to carry less.
struct Halving<'a, 'b> {
    question: &'a Question,
    grid: Vec<u64>,
    trials: &'a mut Trials<'b>,
}

impl Halving<'_, '_> {
    fn holds(&mut self, setting: Setting, reference: Setting) -> Result<bool, AdviseError> {
        Ok(self.trials.test(setting, self.question.share, reference)? == Answer::Holds)
    }

    fn holds_at(
        &mut self,
        control: usize,
        streams: u16,
        place: usize,
        reference: Setting,
    ) -> Result<bool, AdviseError> {
        let buffer = Some(self.grid[place]);
        self.holds(
            Setting {
                control,
                streams,
                buffer,
            },
            reference,
        )
    }

    /// Where to look first: a buffer for what flies in a round trip, and half as much again for what waits behind holes.
    fn guess(&self, goodput: f64) -> usize {
        grid::place_of(
            &self.grid,
            (goodput / 8.0 * self.question.rtt.seconds() * 1.5) as u64,
        )
    }

    /// Whether a candidate, with as many streams as may be, does with less than the buffer at `place`.
    fn beats(
        &mut self,
        control: usize,
        place: usize,
        reference: Setting,
    ) -> Result<bool, AdviseError> {
        let most = self.question.streams[self.question.streams.len() - 1];
        Ok(place > 0 && self.holds_at(control, most, place - 1, reference)?)
    }

    /// The smallest buffer of a candidate, with the fewest streams that do with it.
    fn smallest(
        &mut self,
        control: usize,
        reference: Setting,
        guess: usize,
    ) -> Result<Option<(usize, Setting)>, AdviseError> {
        let mut best: Option<(usize, u16)> = None;
        for &streams in &self.question.streams.clone() {
            let guess = match best {
                Some((0, _)) => break,
                // More streams are worth their trouble only for a smaller buffer.
                Some((place, _)) if !self.holds_at(control, streams, place - 1, reference)? => {
                    continue;
                }
                Some((place, _)) => place - 1,
                None => guess,
            };
            let least = self.least(guess, |halving, place| {
                halving.holds_at(control, streams, place, reference)
            })?;
            best = least.map(|place| (place, streams)).or(best);
        }
        Ok(best.map(|(place, streams)| {
            (
                place,
                Setting {
                    control,
                    streams,
                    buffer: Some(self.grid[place]),
                },
            )
        }))
    }

    /// The first place that holds: by octaves from a guess, then by halving.
    fn least(
        &mut self,
        guess: usize,
        mut holds: impl FnMut(&mut Self, usize) -> Result<bool, AdviseError>,
    ) -> Result<Option<usize>, AdviseError> {
        let last = self.grid.len() - 1;
        let (mut below, mut holding) = (None, None);
        let mut place = guess.min(last);
        loop {
            if holds(self, place)? {
                holding = Some(place);
                if below.is_some() || place == 0 {
                    break;
                }
                place = place.saturating_sub(OCTAVE);
            } else {
                below = Some(place);
                if holding.is_some() {
                    break;
                }
                if place == last {
                    return Ok(None);
                }
                place = (place + OCTAVE).min(last);
            }
        }
        // `below` fails (or lies before the grid), `holding` holds.
        let mut low = below.map_or(0, |place| place + 1);
        let mut high = holding.unwrap_or(last);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(self, middle)? {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(Some(high))
    }
}

#[cfg(test)]
mod tests;
