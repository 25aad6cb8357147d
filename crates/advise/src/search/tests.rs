use anabranch_scenario::quantity::{Probability, Rate, Span};
use anabranch_transport::time::MILLISECOND;

use super::*;
use crate::trials::Unwatched;

fn question() -> Question {
    Question::new(Span(100 * MILLISECOND), Rate(1_000_000), Probability(0.0))
}

#[test]
fn the_first_place_that_holds_is_found_from_any_guess() {
    let question = question();
    let mut trials = Trials::new(&question, 1, 0, &Unwatched);
    let grid: Vec<u64> = (1..=40).collect();
    let mut halving = Halving {
        question: &question,
        grid,
        trials: &mut trials,
    };
    for first in 0..40 {
        for guess in 0..45 {
            let mut asked = 0;
            let found = halving.least(guess, |_, place| {
                asked += 1;
                Ok(place >= first)
            });
            assert_eq!(found.expect("nothing is run"), Some(first), "guess {guess}");
            assert!(asked <= 14, "{asked} questions for {first} from {guess}");
        }
    }
    assert_eq!(
        halving.least(3, |_, _| Ok(false)).expect("nothing is run"),
        None
    );
}

#[test]
fn a_candidate_matters_while_it_may_be_better_by_more_than_a_tie() {
    // t(0.975, 3) = 3.182: half widths of 3.182 and 31.82.
    let matters = |mean, deviation| {
        matters(
            &Summary {
                replications: 4,
                mean,
                deviation,
            },
            1000.0,
        )
    };
    assert!(!matters(-50.0, 2.0), "surely behind");
    assert!(!matters(-1.0, 2.0), "a tie within 1 %");
    assert!(matters(-1.0, 20.0), "perhaps better by 3 %");
    assert!(matters(20.0, 2.0), "better");
}
