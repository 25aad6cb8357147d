//! Which settings of one sender carry enough, found by halving the grid of buffers.

use anabranch_report::statistics::Summary;

use crate::AdviseError;
use crate::grid::{self, OCTAVE};
use crate::question::{Question, Setting};
use crate::trials::{self, Answer, Trials};

/// What the search found; numbers of its own runs, which the evidence confirms or corrects.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// Goodput with a buffer without limit, bit/s.
    pub unlimited: Summary,
    /// The smallest buffer, then the fewest streams, that carry the wanted share of it.
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

/// Comparisons that a search is guessed to need beside one for each number of streams, and the runs that one takes: for an
/// estimate of the time left, no more.
const GUESSED: (usize, usize) = (8, 10);
/// Runs without limit before the first comparison.
const FIRST: u32 = 4;

/// Searches for the first candidate of a question.
///
/// # Errors
/// A spec that is refused, or a run that fails.
pub fn search(question: &Question, trials: &mut Trials<'_>) -> Result<Search, AdviseError> {
    let reference = Setting {
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
    // Nothing needs less than the most streams do; fewer are enough where they carry it with the same buffer.
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

/// Halves the grid: a larger buffer is taken never to carry less.
struct Halving<'a, 'b> {
    share: f64,
    grid: Vec<u64>,
    reference: Setting,
    trials: &'a mut Trials<'b>,
}

impl Halving<'_, '_> {
    fn setting(&self, streams: u16, place: usize) -> Setting {
        Setting {
            streams,
            buffer: Some(self.grid[place]),
            ..self.reference
        }
    }

    fn test(&mut self, streams: u16, place: usize) -> Result<Answer, AdviseError> {
        self.test_by(streams, place, trials::MOST)
    }

    /// The same with so many runs at most.
    fn test_by(&mut self, streams: u16, place: usize, most: u32) -> Result<Answer, AdviseError> {
        let setting = self.setting(streams, place);
        self.trials.test(setting, self.share, self.reference, most)
    }

    /// Where to begin: one and a half times what is under way in a round trip.
    fn guess(&self, question: &Question) -> usize {
        let goodputs = self.trials.goodputs(self.reference);
        let mean = goodputs.iter().sum::<f64>() / goodputs.len().max(1) as f64;
        grid::place_of(
            &self.grid,
            (mean / 8.0 * question.rtt.seconds() * 1.5) as u64,
        )
    }

    /// The fewest streams that hold at a place where the most do.
    fn fewest(&mut self, rising: &[u16], place: usize) -> Result<Setting, AdviseError> {
        let (most, fewer) = rising.split_last().unwrap_or((&1, &[]));
        for &streams in fewer {
            if self.test(streams, place)? == Answer::Holds {
                return Ok(self.setting(streams, place));
            }
        }
        Ok(self.setting(*most, place))
    }

    /// The first place that holds: octaves up from a guess until one holds, down until one surely fails, then by halving.
    ///
    /// What cannot be told does not count as holding. It does not end the way down either: an octave further down the
    /// difference may be plain, and what holds there holds above.
    fn least(&mut self, streams: u16, guess: usize) -> Result<Option<usize>, AdviseError> {
        let last = self.grid.len() - 1;
        let mut holding = guess.min(last);
        // What cannot be told soon is left for the way down: an octave up the answer may be plain.
        while self.test_by(streams, holding, trials::FEW)? != Answer::Holds {
            if holding == last {
                return Ok(None);
            }
            holding = (holding + OCTAVE).min(last);
        }
        let (mut low, mut place) = (0, holding);
        while place > 0 {
            place = place.saturating_sub(OCTAVE);
            match self.test(streams, place)? {
                Answer::Holds => holding = place,
                Answer::Open => {}
                Answer::Fails => {
                    low = place + 1;
                    break;
                }
            }
        }
        while low < holding {
            let middle = low + (holding - low) / 2;
            match self.test(streams, middle)? {
                Answer::Holds => holding = middle,
                Answer::Open | Answer::Fails => low = middle + 1,
            }
        }
        Ok(Some(holding))
    }
}
