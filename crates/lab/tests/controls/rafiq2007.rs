//! Negative controls of rafiq2007: delays and windows without loss and with 0.2 % loss, and the
//! delays of the first 40 packets.

use super::{Control, Evidence, VALUES};

const EVIDENCE: Evidence = Evidence {
    paper: "rafiq2007",
    only: &["table-5-1", "table-5-3", "appendix-delays"],
    set: &[
        r#"experiment.e2w.sweep.0.points=[{ x = "tcp", workload = { kind = "bulk" }, transport = "$tcp" }, { x = "sctp", workload = { kind = "bulk", message = "1452 B" }, transport = "$sctp" }]"#,
        "experiment.e2w.sweep.1.points=[{ x = 0, loss = 0.0 }, { x = 0.2, loss = 0.002 }]",
    ],
    replications: 6,
};

const CONTROLS: [Control; 9] = [
    (
        "twice the loss",
        &["experiment.e2w.sweep.1.points=[{ x = 0, loss = 0.0 }, { x = 0.2, loss = 0.004 }]"],
        &[VALUES],
    ),
    (
        "half the loss",
        &["experiment.e2w.sweep.1.points=[{ x = 0, loss = 0.0 }, { x = 0.2, loss = 0.001 }]"],
        &[VALUES],
    ),
    (
        "SCTP acknowledges each packet",
        &["delayed_sack=false"],
        &[VALUES],
    ),
    (
        "TCP acknowledges every second segment",
        &["tcp_delayed_ack=true"],
        &[VALUES],
    ),
    ("802.11b by the standard", &["set=802.11b"], &[VALUES]),
    (
        "frames at 5.5 Mbit/s",
        &[r#"wifi.air.parameters={ data_rate = "5.5 Mbit/s" }"#],
        &[VALUES],
    ),
    (
        "RTS, CTS and ACK at 2 Mbit/s",
        &[r#"wifi.air.parameters={ basic_rate = "2 Mbit/s" }"#],
        &[],
    ),
    (
        "a first window of three packets",
        &["sctp=$module"],
        &[VALUES],
    ),
    (
        "a queue of 30 packets",
        &["link.uplink.queue=30 packets"],
        &[VALUES],
    ),
];

#[test]
fn rafiq2007() {
    EVIDENCE.hold(&CONTROLS);
}
