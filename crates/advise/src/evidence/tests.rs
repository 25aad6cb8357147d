use std::sync::Arc;

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_lab::run::{self, Simulator};
use anabranch_lab::store;
use anabranch_scenario::document::Document;
use anabranch_scenario::quantity::{Probability, Rate, TimeSpan};
use anabranch_transport::time::MILLISECOND;

use super::*;
use crate::executor::{NoProgress, TrialExecutor};

/// A question with a single candidate on a path with a bandwidth-delay product of 100 kbytes: 8
/// Mbit/s x 100 ms.
fn question(loss: f64) -> Question {
    let mut question = Question::new(
        TimeSpan(100 * MILLISECOND),
        Rate(8_000_000),
        Probability(loss),
    );
    question.profiles = vec!["rfc9260".to_owned()];
    question.congestion = vec!["sctp".to_owned()];
    question.streams = vec![1, 4];
    question.duration = Some(TimeSpan(5_000 * MILLISECOND));
    question
}

fn results(document: &Document, seed: u64) -> Results {
    let request = PlanRequest::default().with(|it| {
        it.file = "spec.toml".to_owned();
        it.seed = seed;
    });
    let plan = Plan::of(document, request).unwrap_or_else(|error| panic!("{error}"));
    let records = run::in_memory(
        &PlannedRun::all(&plan),
        seed,
        &Simulator::default(),
        2,
        &|_| {},
    )
    .expect("runs");
    Results {
        manifest: store::manifest(&plan, &records),
        spec: plan.spec.clone(),
        records,
        series: Arc::new(Vec::new()),
    }
}

fn found(question: &Question, jobs: usize) -> Search {
    let executor = TrialExecutor {
        jobs,
        runner: &Simulator::default(),
        progress: &NoProgress,
    };
    crate::find(question, executor).expect("found")
}

fn advice(question: &Question) -> Advice {
    let search = found(question, 2);
    let evidence = Evidence::plan(question, &search).expect("something holds");
    let results = results(&evidence.whole(question, evidence.chosen), question.seed);
    Advice::of(question, &search, &evidence, &results)
}

#[test]
fn without_losses_the_buffer_is_the_asked_share_of_what_the_pipe_holds() {
    let question = question(0.0).checked().expect("sensible");
    let advice = advice(&question);
    let advised = advice.advised().expect("confirmed").setting;
    // The buffer is 95 % of 100 000 bytes, plus one grid step for chunk headers and delayed
    // acknowledgements.
    let grid = question.buffers();
    let least = grid::place_of(&grid, 95_000);
    let place = grid::place_of(&grid, advised.buffer.expect("a limit"));
    assert!((least..=least + 1).contains(&place), "{advised:?}");
    assert_eq!(advised.streams, 1, "nothing waits behind a hole");
    let half = advice.half().expect("half of it is shown");
    assert_eq!(
        (half.answer, half.limit),
        (ShareVerdict::Fails, LimitingFactor::Buffer)
    );
    let without = advice.tried.last().expect("without limit");
    assert_eq!(
        (without.setting.buffer, without.limit),
        (None, LimitingFactor::Link),
        "{without:?}"
    );
}

#[test]
fn half_of_the_least_buffer_is_not_run() {
    let question = question(0.0).checked().expect("sensible");
    let mut evidence = Evidence::plan(&question, &found(&question, 2)).expect("something holds");
    let grid = question.buffers();
    let with = |buffer| TunedSetting {
        buffer: Some(buffer),
        ..evidence.chosen
    };
    let [least, twice] = [grid[0], 2 * grid[0]].map(with);
    evidence.add_half(&question, least);
    assert!(!evidence.buffers.contains(&(grid[0] / 2)));
    evidence.add_half(&question, twice);
    assert!(evidence.buffers.contains(&grid[0]));
}

#[test]
fn a_path_at_half_its_size_asks_for_the_same_buffer() {
    // Without losses, everything scales with the bandwidth-delay product of the path: with 100,000
    // bytes the goodput is twice that with 50,000 bytes.
    let whole = question(0.0).checked().expect("sensible");
    let half = Question {
        scale: 2,
        ..whole.clone()
    };
    assert_eq!(half.simulated_rate(), Rate(4_000_000));
    let (whole, half) = (advice(&whole), advice(&half));
    let buffer = |advice: &Advice| advice.advised().expect("confirmed").setting.buffer;
    let place = |advice: &Advice| {
        grid::place_of(&whole.question.buffers(), buffer(advice).expect("a limit"))
    };
    assert!(
        place(&half).abs_diff(place(&whole)) <= 1,
        "{:?} {:?}",
        buffer(&half),
        buffer(&whole)
    );
    let goodput = |advice: &Advice| advice.unlimited.mean;
    assert!(
        (goodput(&half) / goodput(&whole) - 1.0).abs() < 0.02,
        "reported at full size"
    );
}

#[test]
fn the_answer_depends_on_the_seed_and_not_on_the_number_of_threads() {
    let question = Question {
        loss: Probability(0.02),
        seed: 7,
        ..question(0.0)
    };
    let search = |jobs| found(&question, jobs);
    let (one, two) = (search(1), search(2));
    assert_eq!(one, two);
    let planned = |search| Evidence::plan(&question, search).expect("something holds");
    assert_eq!(planned(&one), planned(&two));
    let other = Question {
        seed: 8,
        ..question.clone()
    };
    let other = found(&other, 2);
    assert_ne!(one.unlimited, other.unlimited, "other losses");
}

fn tried(streams: u16, buffer: Option<u64>, answer: ShareVerdict) -> TestedSetting {
    let one = Summary {
        replications: 10,
        mean: 1.0,
        deviation: 0.1,
    };
    let setting = TunedSetting {
        control: 0,
        streams,
        buffer,
    };
    TestedSetting {
        setting,
        decides: true,
        goodput: one,
        share: one,
        answer,
        limit: LimitingFactor::Buffer,
        utilization: 1.0,
        mean_cwnd: 1.0,
        cost: (0.0, 0.0),
        drift: Drift::default(),
    }
}

#[test]
fn an_unconfirmed_setting_is_replaced_by_the_next_larger_one() {
    use ShareVerdict::{Fails, Holds, Open};
    let chosen = TunedSetting {
        control: 0,
        streams: 2,
        buffer: Some(20),
    };
    let place = |answers: [ShareVerdict; 6]| {
        let settings = [(1, 10), (1, 20), (1, 30), (2, 10), (2, 20), (2, 30)];
        let all: Vec<TestedSetting> = settings
            .iter()
            .zip(answers)
            .map(|(&(s, b), answer)| tried(s, Some(b), answer))
            .collect();
        confirmed(&all, chosen)
    };
    assert_eq!(place([Fails, Open, Holds, Fails, Holds, Holds]), Some(4));
    assert_eq!(
        place([Fails, Holds, Holds, Holds, Open, Holds]),
        Some(5),
        "smaller settings are luck"
    );
    assert_eq!(place([Holds, Holds, Holds, Holds, Fails, Open]), None);
    let more = [
        tried(2, Some(20), Open),
        tried(2, Some(30), Holds),
        tried(4, Some(20), Holds),
        tried(4, None, Holds),
    ];
    assert_eq!(
        confirmed(&more, chosen),
        Some(2),
        "more streams before a larger buffer"
    );
}

#[test]
fn settings_are_asked_to_stand_in_one_by_one() {
    let of = |streams, buffer| TunedSetting {
        control: 0,
        streams,
        buffer: Some(buffer),
    };
    let (chosen, half) = (of(2, 20), of(2, 10));
    let mut evidence = Evidence {
        chosen,
        deciding: vec![chosen, half],
        waiting: [of(4, 20), of(2, 30)].into(),
        replications: 8,
        buffers: vec![10, 20, 30],
        streams: vec![2, 4],
        around: 8,
        goodput: 1.0,
    };
    assert!(evidence.fall_back());
    assert_eq!(evidence.deciding, [chosen, of(4, 20), half]);
    assert!(evidence.fall_back());
    assert_eq!(evidence.deciding, [chosen, of(4, 20), of(2, 30), half]);
    assert!(!evidence.fall_back(), "all were asked");
    assert_eq!(evidence.deciding.len(), 4);
}

/// Deciding settings have many runs. The surrounding settings have few, and must not be
/// recommended.
#[test]
fn no_more_is_run_often_than_the_decision_needs() {
    let question = Question {
        loss: Probability(0.01),
        ..question(0.0)
    };
    let search = found(&question, 2);
    let evidence = Evidence::plan(&question, &search).expect("something holds");
    assert_eq!(evidence.deciding.len(), 2, "{:?}", evidence.deciding);
    assert_eq!(evidence.deciding[0], evidence.chosen);
    assert!(evidence.deciding[1].buffer < evidence.chosen.buffer);
    // This is the order in which `confirmed` considers the settings.
    let order = |setting: &TunedSetting| (setting.buffer, setting.streams);
    assert!(
        evidence.waiting.iter().is_sorted_by_key(order),
        "{:?}",
        evidence.waiting
    );
    assert!(
        evidence
            .waiting
            .iter()
            .all(|it| order(it) > order(&evidence.chosen))
    );
    assert!(!evidence.waiting.is_empty());
}
