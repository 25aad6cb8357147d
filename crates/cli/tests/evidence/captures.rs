//! Tests that tshark finds captures correct: no wrong checksum, no malformed packet, and only the
//! expert remarks that losses cause.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::{succeeds, text, with};

/// Several transports over a lossy link. The transfers end, so that connections are closed in every
/// way.
const SPEC: &str = r#"
anabranch = 1
name = "capture"
[parameters]
loss = { model = "bernoulli", probability = 0.02 }
impairment = { duplicate = 0.0 }
ip = "ipv4"
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
ip = "$ip"
name = "tcp"
from = "a"
to = "b"
workload = { kind = "bulk", total = "300 KiB" }
transport = { protocol = "tcp" }
[[flow]]
ip = "$ip"
name = "small"
from = "b"
to = "a"
workload = { kind = "bulk", total = "5 KiB" }
transport = { protocol = "tcp", profile = "newreno" }
[[flow]]
ip = "$ip"
name = "sctp"
from = "a"
to = "b"
workload = { kind = "bulk", message = "3000 B", total = "300 KiB" }
transport = { protocol = "sctp", streams = 300 }
[[flow]]
ip = "$ip"
name = "unordered"
from = "b"
to = "a"
start = "1 s"
stop = "20 s"
workload = { kind = "cbr", rate = "100 kbit/s", message = "200 B" }
transport = { protocol = "sctp", profile = "rfc4960", unordered = true, heartbeat_interval = "3 s" }
[[flow]]
ip = "$ip"
name = "old"
count = 3
from = "a"
to = "b"
workload = { kind = "on-off", rate = "50 kbit/s", message = "700 B", on = "1 s", off = "9 s" }
stop = "60 s"
transport = { protocol = "sctp", profile = "rfc2960", delayed_sack = false, heartbeat_interval = "2 s" }
[[flow]]
ip = "$ip"
name = "udp"
from = "b"
to = "a"
stop = "20 s"
workload = { kind = "cbr", rate = "50 kbit/s", message = "300 B" }
transport = { protocol = "udp" }
"#;

/// Remarks of tshark that are allowed in a capture with losses, by their first words: about
/// acknowledgements and retransmissions after losses, and about starts and ends of connections,
/// which tshark calls chats.
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
    // An acknowledgement that arrives after its sender's FIN has a sequence number one below the
    // expected one.
    "TCP keep-alive segment",
    "ACK to a TCP keep-alive segment",
    // Reply to an acknowledgement from TIME-WAIT after the peer has closed (RFC 9293 §3.10.7.1).
    "Connection reset (RST)",
    "More than 100 TSNs were gap-acknowledged in this SACK.",
    "Retransmitted TSN",
];

/// A packet as tshark prints it: number, protocol, checksum verdicts (1 is good), malformed,
/// remarks.
struct Frame {
    line: String,
    protocol: String,
    checksums: [String; 4],
    /// Size including the IP header, bytes.
    length: usize,
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
        "frame.len",
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
            length: field[7].parse().expect("a number"),
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

/// Statistics of a capture.
#[derive(Default)]
struct Seen {
    /// Number of packets by protocol.
    protocols: BTreeMap<String, usize>,
    /// Size of the largest packet by protocol, including the IP header, bytes.
    largest: BTreeMap<String, usize>,
    /// Number of remarks of tshark, by the text of the remark.
    remarks: BTreeMap<String, usize>,
    /// Number of packets with a wrong checksum.
    bad: usize,
}

/// Runs the spec with a capture, and checks every packet.
fn check(set: &[&str], allow_bad: bool) -> Seen {
    // IPv4 has two checksums per packet, and IPv6 only one, because its header has none.
    let judged = if set.contains(&"ip=ipv6") { 1 } else { 2 };
    let directory = with("capture.toml", SPEC);
    let mut arguments = vec!["run", "capture.toml", "--capture", "wire=wire.pcapng"];
    arguments.extend(set.iter().flat_map(|set| ["--set", set]));
    let said = succeeds(directory.path(), &arguments);
    assert!(!said.contains("failed"), "{said}");
    let mut seen = Seen::default();
    for frame in tshark(&directory.path().join("wire.pcapng")) {
        let largest = seen.largest.entry(frame.protocol.clone()).or_insert(0);
        *largest = frame.length.max(*largest);
        *seen.protocols.entry(frame.protocol).or_insert(0) += 1;
        let verdicts: Vec<&String> = frame
            .checksums
            .iter()
            .filter(|verdict| !verdict.is_empty())
            .collect();
        assert_eq!(
            verdicts.len(),
            judged,
            "IP's checksum and the transport's are judged: {}",
            frame.line
        );
        if verdicts.iter().any(|verdict| *verdict != "1") {
            seen.bad += 1;
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
            *seen.remarks.entry((*known).to_owned()).or_insert(0) += 1;
        }
    }
    seen
}

#[test]
fn a_capture_of_lossy_transfers_is_clean() {
    let Seen {
        protocols, remarks, ..
    } = check(&[], false);
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
    // Each of the two connections is closed from both ends, regardless of losses.
    assert!(seen("Connection finish") >= 4, "{remarks:?}");
    assert!(
        seen("Retransmitted TSN") > 0 && seen("Duplicate ACK") > 0,
        "{remarks:?}"
    );
}

/// Over IPv6 the headers have 40 bytes; packets are no larger if the protocol fills them.
#[test]
fn a_capture_over_ipv6_is_clean() {
    let four = check(&[], false);
    let six = check(&["ip=ipv6"], false);
    assert_eq!(
        six.protocols.keys().collect::<Vec<_>>(),
        ["SCTP", "TCP", "UDP"],
        "{:?}",
        six.protocols
    );
    assert_eq!(six.largest["UDP"], four.largest["UDP"] + 20);
    assert_eq!(six.largest["TCP"], four.largest["TCP"]);
    assert_eq!(six.largest["SCTP"], four.largest["SCTP"]);
}

#[test]
fn without_losses_nothing_is_remarked_but_beginnings_and_endings() {
    let Seen { remarks, .. } = check(
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
    let Seen { bad, .. } = check(
        &[
            "impairment={ corrupt = 0.02, duplicate = 0.02, reorder = 0.05, reorder_delay = '20 ms' }",
        ],
        true,
    );
    assert!(bad > 10, "{bad}");
}
