//! Negative controls of ho2008: its table of estimates, SACKs, the gain on the primary path, and
//! the path switchover.

use super::{Control, Evidence, VALUES};

const EVIDENCE: Evidence = Evidence {
    paper: "ho2008",
    only: &["table-4-1", "sacks", "secondary", "gain", "half", "fig-4-5"],
    set: &[
        r#"experiment.primary.sweep.0.values=["sctp", "rsctp"]"#,
        r#"experiment.primary.sweep.1.points=[{ x = 0.05, primary_loss = { model = "bernoulli", probability = 0.05 } }]"#,
        r#"experiment.switch.sweep.0.points=[{ x = "with", control = "rsctp-switching" }]"#,
        r#"experiment.estimate.sweep.0.points=[{ x = 0.5, interval = "500 ms" }, { x = 1, interval = "1 s" }, { x = 2, interval = "2 s" }]"#,
    ],
    replications: 5,
};

const CONTROLS: [Control; 6] = [
    ("RSCTP without the estimate", &["ssthresh=never"], &[]),
    ("bottlenecks of 100 ms", &["delay=100 ms"], &[]),
    (
        "bottlenecks of 2 Mbit/s",
        &["primary_rate=2 Mbit/s", "secondary_rate=2 Mbit/s"],
        &[VALUES],
    ),
    ("each packet acknowledged", &["delayed_sack=false"], &[]),
    (
        "half the loss",
        &[
            r#"experiment.primary.sweep.1.points=[{ x = 0.05, primary_loss = { model = "bernoulli", probability = 0.025 } }]"#,
        ],
        &[],
    ),
    ("no cross traffic", &["cross_start=10 h"], &[VALUES]),
];

#[test]
fn ho2008() {
    EVIDENCE.hold(&CONTROLS);
}
