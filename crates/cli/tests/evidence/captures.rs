//! Captures as tshark sees them: no bad checksum, nothing malformed, and no remark but those that losses call for.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::{succeeds, text, with};

/// Several transports over a link that loses, with transfers that end, so that every closing is seen.
const SPEC: &str = r#"
anabranch = 1
name = "capture"
[parameters]
loss = { model = "bernoulli", probability = 0.02 }
impairment = { duplicate = 0.0 }
[world]
duration = "120 s"
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
name = "wire"
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "30 ms"
queue = "20 packets"
loss = "$loss"
impairment = "$impairment"
[[flow]]
name = "tcp"
from = "a"
to = "b"
workload = { kind = "bulk", total = "300 KiB" }
transport = { protocol = "tcp" }
[[flow]]
name = "small"
from = "b"
to = "a"
workload = { kind = "bulk", total = "5 KiB" }
transport = { protocol = "tcp", profile = "newreno" }
[[flow]]
name = "sctp"
from = "a"
to = "b"
workload = { kind = "bulk", message = "3000 B", total = "300 KiB" }
transport = { protocol = "sctp", streams = 300 }
[[flow]]
name = "unordered"
from = "b"
to = "a"
start = "1 s"
stop = "20 s"
workload = { kind = "cbr", rate = "100 kbit/s", message = "200 B" }
transport = { protocol = "sctp", profile = "rfc4960", unordered = true, heartbeat_interval = "3 s" }
[[flow]]
name = "old"
count = 3
from = "a"
to = "b"
workload = { kind = "on-off", rate = "50 kbit/s", message = "700 B", on = "1 s", off = "9 s" }
stop = "60 s"
transport = { protocol = "sctp", profile = "rfc2960", delayed_sack = false, heartbeat_interval = "2 s" }
[[flow]]
name = "udp"
from = "b"
to = "a"
stop = "20 s"
workload = { kind = "cbr", rate = "50 kbit/s", message = "300 B" }
transport = { protocol = "udp" }
"#;

/// What tshark may remark on a capture with losses, each by how it begins: acknowledgements and retransmissions that
/// losses cause, and the beginnings and endings of connections, which it calls chats.
const EXPECTED: &[&str] = &[
    "Connection establish request",
    "Connection establish acknowledge",
    "Connection finish",
    "This frame initiates the connection closing",
    "This frame undergoes the connection closing",
    "Previous segment(s) not captured",
    "Duplicate ACK",
    "This frame is a (suspected) retransmission",
    "This frame is a (suspected) fast retransmission",
    "This frame is a (suspected) spurious retransmission",
    "This frame is a (suspected) out-of-order segment",
    "ACKed segment that wasn't captured",
    "TCP window specified by the receiver is now completely full",
    "TCP window update",
    // An acknowledgement that its sender's FIN has overtaken begins one below what comes next.
    "TCP keep-alive segment",
    "ACK to a TCP keep-alive segment",
    // What is answered so is an acknowledgement out of TIME-WAIT that finds its peer closed (RFC 9293 §3.10.7.1).
    "Connection reset (RST)",
    "More than 100 TSNs were gap-acknowledged in this SACK.",
    "Retransmitted TSN",
];

/// One packet: number, protocol, checksum verdicts (1 is good), malformed, remarks.
struct Frame {
    line: String,
    protocol: String,
    checksums: [String; 4],
    malformed: bool,
    remarks: Vec<String>,
}

fn tshark(file: &Path) -> Vec<Frame> {
    let fields = [
        "_ws.col.Protocol",
        "ip.checksum.status",
        "tcp.checksum.status",
        "udp.checksum.status",
        "sctp.checksum.status",
        "_ws.malformed",
        "_ws.expert.message",
    ];
    let mut command = Command::new("tshark");
    command
        .arg("-r")
        .arg(file)
        .args(["-T", "fields", "-E", "separator=|", "-E", "aggregator=;"]);
    for preference in [
        "sctp.checksum:CRC 32c",
        "tcp.check_checksum:TRUE",
        "udp.check_checksum:TRUE",
        "ip.check_checksum:TRUE",
    ] {
        command.args(["-o", preference]);
    }
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap_or_else(|error| {
        panic!("tshark does not start ({error}); scripts/setup installs it")
    });
    assert!(output.status.success(), "tshark: {}", text(&output.stderr));
    let frame = |line: &str| {
        let field: Vec<&str> = line.split('|').collect();
        Frame {
            line: line.to_owned(),
            protocol: field[0].to_owned(),
            checksums: [1, 2, 3, 4].map(|index: usize| field[index].to_owned()),
            malformed: !field[5].is_empty(),
            remarks: field[6]
                .split(';')
                .filter(|remark| !remark.is_empty())
                .map(str::to_owned)
                .collect(),
        }
    };
    text(&output.stdout).lines().map(frame).collect()
}

/// Runs the spec with a capture and checks every packet; gives the counts of packets by protocol, and of remarks.
fn check(
    set: &[&str],
    allow_bad: bool,
) -> (BTreeMap<String, usize>, BTreeMap<String, usize>, usize) {
    let directory = with("capture.toml", SPEC);
    let mut arguments = vec!["run", "capture.toml", "--capture", "wire=wire.pcapng"];
    arguments.extend(set.iter().flat_map(|set| ["--set", set]));
    let said = succeeds(directory.path(), &arguments);
    assert!(!said.contains("failed"), "{said}");
    let (mut protocols, mut remarks, mut bad) = (BTreeMap::new(), BTreeMap::new(), 0);
    for frame in tshark(&directory.path().join("wire.pcapng")) {
        *protocols.entry(frame.protocol).or_insert(0) += 1;
        let verdicts: Vec<&String> = frame
            .checksums
            .iter()
            .filter(|verdict| !verdict.is_empty())
            .collect();
        assert_eq!(
            verdicts.len(),
            2,
            "IP's checksum and the transport's are judged: {}",
            frame.line
        );
        if verdicts.iter().any(|verdict| *verdict != "1") {
            bad += 1;
            assert!(allow_bad, "a bad checksum: {}", frame.line);
            continue;
        }
        assert!(!frame.malformed, "malformed: {}", frame.line);
        for remark in frame.remarks {
            let known = EXPECTED
                .iter()
                .find(|expected| remark.starts_with(**expected));
            let known =
                known.unwrap_or_else(|| panic!("tshark remarks {remark:?}: {}", frame.line));
            *remarks.entry((*known).to_owned()).or_insert(0) += 1;
        }
    }
    (protocols, remarks, bad)
}

#[test]
fn a_capture_of_lossy_transfers_is_clean() {
    let (protocols, remarks, _) = check(&[], false);
    assert_eq!(
        protocols.keys().collect::<Vec<_>>(),
        ["SCTP", "TCP", "UDP"],
        "{protocols:?}"
    );
    assert!(
        protocols.values().all(|&count| count > 300),
        "{protocols:?}"
    );
    let seen = |remark: &str| remarks.get(remark).copied().unwrap_or(0);
    // Each of the two connections closes from both ends, whatever is lost.
    assert!(seen("Connection finish") >= 4, "{remarks:?}");
    assert!(
        seen("Retransmitted TSN") > 0 && seen("Duplicate ACK") > 0,
        "{remarks:?}"
    );
}

#[test]
fn without_losses_nothing_is_remarked_but_beginnings_and_endings() {
    let (_, remarks, _) = check(
        &["loss={ model = 'none' }", "link.wire.queue=4000 packets"],
        false,
    );
    let chats = [
        "Connection",
        "This frame initiates",
        "This frame undergoes",
        "TCP window update",
        "TCP window specified",
    ];
    for remark in remarks.keys() {
        assert!(
            chats.iter().any(|chat| remark.starts_with(chat)),
            "{remarks:?}"
        );
    }
}

#[test]
fn damaged_packets_are_the_only_ones_with_bad_checksums() {
    let (_, _, bad) = check(
        &[
            "impairment={ corrupt = 0.02, duplicate = 0.02, reorder = 0.05, reorder_delay = '20 ms' }",
        ],
        true,
    );
    assert!(bad > 10, "{bad}");
}
