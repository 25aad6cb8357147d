//! Negative controls of alamgir2002: verdicts on the cells of Table II, on its columns as a whole,
//! and on the events around the loss of segment 8.

use anabranch_report::compare::{Judgement, Verdict};
use anabranch_report::table::Table;

use super::judged;

/// Replications of Table II: the minimum for verdicts by quantiles.
const REPLICATIONS: u32 = 20;

/// Verdicts on the results of a world.
#[derive(Debug)]
struct Judged {
    /// Number of the twelve values of Table II that differ.
    cells: usize,
    /// Joint p-value of each column of Table II: throughput increase, utilization, fairness.
    columns: Vec<f64>,
    /// Number of values around the loss of segment 8 that differ.
    traces: usize,
}

impl Judged {
    fn of(wrong: [&'static str; 2]) -> Judged {
        let judge = |only: &[&str], wrong, replications| {
            judged("alamgir2002", only, [ACCESS, wrong], replications).0
        };
        let table = judge(&["table-2"], wrong[0], Some(REPLICATIONS));
        let traces = judge(&["fig-8", "fig-9", "fig-10", "fig-11"], wrong[1], None);
        let columns = table
            .iter()
            .find(|it| it.id == "table-2")
            .expect("the table");
        let columns: Vec<f64> = columns.columns().filter_map(|it| it.probability).collect();
        Judged {
            cells: differing(&table),
            columns,
            traces: differing(&traces),
        }
    }
}

/// Number of printed values in these tables that differ from the results.
fn differing(tables: &[Table]) -> usize {
    let judged = tables.iter().flat_map(|table| &table.lines);
    let judged = judged.filter_map(|line| line.judgement.as_ref());
    let differs = |it: &&Judgement| it.verdict == Verdict::Differs;
    let missing = |it: &&Judgement| it.verdict == Verdict::NotAttempted;
    // An event that never happens counts as differing, too.
    judged.filter(|it| differs(it) || missing(it)).count()
}

impl Judged {
    /// For the cells and the columns of the table and for the traces: whether they show that this
    /// world differs from the paper's world.
    fn against(&self, right: &Judged) -> [bool; 3] {
        // Three or more of twelve cells differ by chance in one of fifty tables. The limit for
        // p-values is divided by the number of columns.
        let asked = self.columns.len() as f64;
        let columns = self.columns.iter().any(|p| *p < 0.05 / asked);
        [self.cells >= 3, columns, self.traces > right.traces]
    }
}

/// Rate of the access links that results in the printed times.
const ACCESS: &str = "access_rate=3 Mbit/s";

const NONE: [bool; 3] = [false; 3];
const TRACES: [bool; 3] = [false, false, true];
const CELLS_AND_COLUMNS: [bool; 3] = [true, true, false];

/// A negative control: its name, its settings for Table II and for the loss of segment 8, and the
/// evidence that is expected against it.
type Control = (&'static str, [&'static str; 2], [bool; 3]);

const DELAYED: &str = "flow.sctp.transport.delayed_sack=true";
const NEAR: &str = "link.satellite.delay=130 ms";
const THREE: &str = "missing_reports=3";

const CONTROLS: [Control; 7] = [
    ("delayed SACKs", [DELAYED, DELAYED], TRACES),
    ("130 ms", [NEAR, NEAR], [true; 3]),
    // No random losses occur near segment 8.
    (
        "1 % lost",
        [
            r#"loss={ model = "bernoulli", probability = 0.01, position = "before-queue" }"#,
            ACCESS,
        ],
        CELLS_AND_COLUMNS,
    ),
    (
        "2 % lost",
        [
            r#"loss={ model = "bernoulli", probability = 0.02, position = "before-queue" }"#,
            ACCESS,
        ],
        CELLS_AND_COLUMNS,
    ),
    (
        "a floor of 2 MTU",
        [
            "sctp_switches={ missing_reports = 4, ssthresh_floor = 2 }",
            "experiment.loss-8.parameters.sctp_switches.ssthresh_floor=2",
        ],
        NONE,
    ),
    (
        "a floor of 8 MTU",
        [
            "sctp_switches={ missing_reports = 4, ssthresh_floor = 8 }",
            "experiment.loss-8.parameters.sctp_switches.ssthresh_floor=8",
        ],
        [true; 3],
    ),
    ("three reports", [THREE, THREE], TRACES),
];

#[test]
fn wrong_worlds_are_distinguished_from_the_right_one_or_said_not_to_be() {
    let right = Judged::of([ACCESS; 2]);
    println!("right: {right:?}");
    assert_eq!(right.against(&right), NONE, "the right world: {right:?}");
    let mut surprises = Vec::new();
    for (name, settings, expected) in CONTROLS {
        let wrong = Judged::of(settings);
        println!("{name}: {wrong:?}");
        let against = wrong.against(&right);
        if against != expected {
            surprises.push(format!(
                "{name}: {against:?} and not {expected:?}: {wrong:?}"
            ));
        }
    }
    assert!(surprises.is_empty(), "{surprises:#?}");
}
