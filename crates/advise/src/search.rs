//! Search for the smallest sufficient setting of one sender by bisection of the buffer grid.

use anabranch_report::statistics::Summary;

use crate::AdviseError;
use crate::grid::{self, OCTAVE};
use crate::question::{Question, TunedSetting};
use crate::trials::{self, ShareVerdict, Trials};

/// Result of the search. Its numbers are computed from the runs of the search; the evidence
/// confirms or corrects them.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// Goodput with an unlimited buffer, bit/s.
    pub unlimited: Summary,
    /// The smallest buffer and, for this buffer, the fewest streams that reach the requested share
    /// of that goodput.
    pub chosen: Option<TunedSetting>,
    /// Goodput of `chosen` minus the requested goodput, bit/s.
    pub margin: Option<Summary>,
    /// Number of runs.
    pub runs: u64,
    /// Number of simulated events.
    pub events: u64,
    /// True if the allowed number of events was not sufficient to decide every comparison.
    pub exhausted: bool,
}

/// Assumed number of comparisons, in addition to one for each number of streams, and assumed number
/// of runs per comparison. Used only to estimate the remaining time.
const GUESSED: (usize, usize) = (8, 10);
/// Number of runs with an unlimited buffer before the first comparison.
const FIRST: u32 = 4;

/// Searches for the setting of the first candidate of a question.
///
/// # Errors
/// A spec is rejected, or a run fails.
pub fn search(question: &Question, trials: &mut Trials<'_>) -> Result<Search, AdviseError> {
    let reference = TunedSetting {
        control: 0,
        streams: question.streams[0],
        buffer: None,
    };
    trials.expect((GUESSED.0 + question.streams.len()) * GUESSED.1);
    trials.ensure(&[reference], FIRST)?;
    let mut halving = Halving {
        share: question.share,
        grid: question.buffers(),
        reference,
        trials,
    };
    let guess = halving.guess(question);
    // The search starts with the largest number of streams, which needs the smallest buffer. Fewer
    // streams suffice if they reach the share with the same buffer.
    let most = question.streams[question.streams.len() - 1];
    let chosen = match halving.least(most, guess)? {
        Some(place) => Some(halving.fewest(&question.streams, place)?),
        None => None,
    };
    let unlimited = Summary::of(trials.goodputs(reference)).unwrap_or(Summary {
        replications: 0,
        mean: 0.0,
        deviation: 0.0,
    });
    let margin = |setting| {
        trials::margin(
            trials.goodputs(setting),
            question.share,
            trials.goodputs(reference),
        )
    };
    Ok(Search {
        unlimited,
        chosen,
        margin: chosen.and_then(margin),
        runs: trials.runs(),
        events: trials.events(),
        exhausted: trials.exhausted(),
    })
}

/// Bisection of the grid, which assumes that a larger buffer never reduces goodput.
struct Halving<'a, 'b> {
    share: f64,
    grid: Vec<u64>,
    reference: TunedSetting,
    trials: &'a mut Trials<'b>,
}

impl Halving<'_, '_> {
    fn setting(&self, streams: u16, place: usize) -> TunedSetting {
        TunedSetting {
            streams,
            buffer: Some(self.grid[place]),
            ..self.reference
        }
    }

    fn test(&mut self, streams: u16, place: usize) -> Result<ShareVerdict, AdviseError> {
        self.test_by(streams, place, trials::MAX_RUNS)
    }

    /// Tests a setting with at most `most` runs.
    fn test_by(
        &mut self,
        streams: u16,
        place: usize,
        most: u32,
    ) -> Result<ShareVerdict, AdviseError> {
        let setting = self.setting(streams, place);
        self.trials.test(setting, self.share, self.reference, most)
    }

    /// Index at which the search starts: one and a half times the data in flight during a round
    /// trip.
    fn guess(&self, question: &Question) -> usize {
        let goodputs = self.trials.goodputs(self.reference);
        let mean = goodputs.iter().sum::<f64>() / goodputs.len().max(1) as f64;
        grid::place_of(
            &self.grid,
            (mean / 8.0 * question.rtt.seconds() * 1.5) as u64,
        )
    }

    /// The setting with the fewest streams that is sufficient with the buffer at `place`, which is
    /// sufficient for the largest number of streams.
    fn fewest(&mut self, rising: &[u16], place: usize) -> Result<TunedSetting, AdviseError> {
        let (most, fewer) = rising.split_last().unwrap_or((&1, &[]));
        for &streams in fewer {
            if self.test(streams, place)? == ShareVerdict::Holds {
                return Ok(self.setting(streams, place));
            }
        }
        Ok(self.setting(*most, place))
    }

    /// Index of the first sufficient buffer. From a guess, the search goes up by octaves until a
    /// buffer is sufficient, then down until one is significantly insufficient, and then bisects.
    ///
    /// An undecided buffer does not count as sufficient, but it does not end the downward search.
    /// The comparison an octave below may be clear, and if that buffer is sufficient, all larger
    /// buffers are sufficient.
    fn least(&mut self, streams: u16, guess: usize) -> Result<Option<usize>, AdviseError> {
        let last = self.grid.len() - 1;
        let mut holding = guess.min(last);
        // While searching upwards, a comparison that is not decided quickly is left undecided,
        // because the result an octave above may be clear.
        while self.test_by(streams, holding, trials::MAX_RUNS_IF_OPTIONAL)? != ShareVerdict::Holds {
            if holding == last {
                return Ok(None);
            }
            holding = (holding + OCTAVE).min(last);
        }
        let (mut low, mut place) = (0, holding);
        while place > 0 {
            place = place.saturating_sub(OCTAVE);
            match self.test(streams, place)? {
                ShareVerdict::Holds => holding = place,
                ShareVerdict::Open => {}
                ShareVerdict::Fails => {
                    low = place + 1;
                    break;
                }
            }
        }
        while low < holding {
            let middle = low + (holding - low) / 2;
            match self.test(streams, middle)? {
                ShareVerdict::Holds => holding = middle,
                ShareVerdict::Open | ShareVerdict::Fails => low = middle + 1,
            }
        }
        Ok(Some(holding))
    }
}
