//! Negative controls of atiquzzaman2002: claims of its slides about small buffers, large buffers,
//! and the number of streams.

use super::{Control, Evidence};

const EVIDENCE: Evidence = Evidence {
    paper: "atiquzzaman2002",
    only: &[
        "small-buffer-limits",
        "grows-while-limited",
        "levels-out",
        "errors-decide-then",
        "four-beat-one",
        "one-meets-four",
        "streams-pay",
        "streams-open-the-window",
    ],
    set: &[
        "experiment.limits.sweep.0.values=[0.01]",
        "experiment.buffer.sweep.0.values=[0.01, 0.03]",
        "experiment.buffer.sweep.1.values=[1, 4]",
        r#"experiment.buffer.sweep.2.points=[{ x = 10, receive_buffer = "10 KiB" }, { x = 15, receive_buffer = "15 KiB" }, { x = 20, receive_buffer = "20 KiB" }, { x = 170, receive_buffer = "170 KiB" }, { x = 220, receive_buffer = "220 KiB" }]"#,
    ],
    replications: 5,
};

const CONTROLS: [Control; 6] = [
    ("a hop of 25 ms", &["link.satellite.delay=25 ms"], &[]),
    (
        "a tenth of the errors",
        &[
            r#"link.satellite.loss={ forward = { model = "bernoulli", probability = "$error / 10", position = "before-queue" } }"#,
        ],
        &["streams-open-the-window"],
    ),
    (
        "SACKs are lost and not data",
        &[
            r#"link.satellite.loss={ backward = { model = "bernoulli", probability = "$error", position = "before-queue" } }"#,
        ],
        &[
            "errors-decide-then",
            "four-beat-one",
            "levels-out",
            "streams-open-the-window",
            "streams-pay",
        ],
    ),
    (
        "one stream, whatever is asked",
        &["flow.sctp.transport.streams=1"],
        &["four-beat-one", "streams-open-the-window", "streams-pay"],
    ),
    (
        "a large buffer, whatever is asked",
        &[r#"flow.sctp.transport.receive_buffer="220 KiB""#],
        &[
            "four-beat-one",
            "grows-while-limited",
            "small-buffer-limits",
            "streams-open-the-window",
            "streams-pay",
        ],
    ),
    (
        "each packet acknowledged",
        &["delayed_sack=false"],
        &["streams-open-the-window"],
    ),
];

#[test]
fn atiquzzaman2002() {
    EVIDENCE.hold(&CONTROLS);
}
