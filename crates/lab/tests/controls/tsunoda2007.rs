//! Negative controls of tsunoda2007: claims of its figures about one hop while the links alternate
//! between good and bad.

use super::{Control, Evidence};

const EVIDENCE: Evidence = Evidence {
    paper: "tsunoda2007",
    only: &[
        "one-never-best",
        "streams-grow",
        "all-reach-ten",
        "all-return-to-one",
    ],
    set: &["experiment.adaptive.sweep.0.points=[{ x = 1, satellites = 2 }]"],
    replications: 5,
};

const CONTROLS: [Control; 5] = [
    (
        "no losses",
        &[r#"experiment.adaptive.parameters.loss={ model = "none" }"#],
        &["all-reach-ten", "one-never-best", "streams-grow"],
    ),
    (
        "half the losses",
        &[
            r#"experiment.adaptive.parameters.loss={ model = "schedule", steps = [["15 s", 0.025], ["45 s", 0.0]], position = "before-queue" }"#,
        ],
        &[],
    ),
    (
        "losses that stay",
        &[
            r#"experiment.adaptive.parameters.loss={ model = "schedule", steps = [["15 s", 0.05]], position = "before-queue" }"#,
        ],
        &["all-return-to-one"],
    ),
    (
        "queues of one way",
        &["isl_queue=11 packets", "ground_queue=5 packets"],
        &["all-reach-ten", "all-return-to-one"],
    ),
    ("each packet acknowledged", &["delayed_sack=false"], &[]),
];

#[test]
fn tsunoda2007() {
    EVIDENCE.hold(&CONTROLS);
}
