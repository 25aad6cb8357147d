//! Packet captures of test cases, analysed by tshark.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A capture counts as completely written after this number of checks, 20 ms apart, in which the
/// file did not grow.
const UNCHANGED: u32 = 25;

/// A running packet capture (dumpcap), until [`judge`](Self::judge) finishes it or it is dropped.
#[derive(Debug)]
pub struct Capture {
    dumpcap: Child,
    file: PathBuf,
}

/// Identifies the sender of packets in a capture by its IP addresses and, if several senders share
/// an address, by its UDP port.
#[derive(Clone, Debug)]
pub struct Sender {
    /// IP addresses of the sender; a packet from any of them is the sender's.
    pub addresses: Vec<IpAddr>,
    /// UDP port of the sender; `None`: any port.
    pub udp_port: Option<u16>,
}

impl Sender {
    fn sent(&self, source: &str, port: &str) -> bool {
        let from = source
            .parse()
            .is_ok_and(|source| self.addresses.contains(&source));
        from && self
            .udp_port
            .is_none_or(|own| port.parse().is_ok_and(|port: u16| port == own))
    }
}

/// Known defects in packets of other stacks, which this project cannot fix. Each entry has the
/// chunk types of the packet, the message of tshark, and the behaviour of the peer. The same
/// defects in packets of this project are failures.
const OF_PEERS: [(&str, &str, &str); 1] = [(
    "4",
    "Malformed Packet",
    "pion on a busy machine sends a HEARTBEAT without Heartbeat Info (RFC 9260 §3.3.5)",
)];

/// Messages of tshark that a correct transfer can cause, each with the reason. Any other message of
/// tshark is a failure.
const EXPECTED: [(&str, &str); 3] = [
    (
        "Retransmitted TSN",
        "a burst overran a socket's room, and what was lost is sent again",
    ),
    (
        "retransmitted more than 2 times",
        "the same again and again, or a machine too busy to answer in time",
    ),
    (
        "More than 100 TSNs were gap-acknowledged in this SACK.",
        "the same, in SACKs until it is mended",
    ),
];

impl Capture {
    /// Starts to capture packets on `interfaces` of this thread's network into `file`, and returns
    /// when the capture is running.
    ///
    /// # Errors
    ///
    /// dumpcap is missing or cannot capture.
    pub fn start(interfaces: &[&str], file: &Path) -> Result<Self, String> {
        let mut command = Command::new("dumpcap");
        command.args(["-q", "-B", "64", "-w"]).arg(file);
        for interface in interfaces {
            command.args(["-i", interface]);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut dumpcap = command
            .spawn()
            .map_err(|error| format!("dumpcap: {error}"))?;
        let said = dumpcap.stderr.take().ok_or("dumpcap: no standard error")?;
        let mut lines = BufReader::new(said).lines().map_while(Result::ok);
        // dumpcap prints the file name when the capture has started.
        match lines.any(|line| line.starts_with("File:")) {
            true => {
                std::thread::spawn(move || lines.for_each(drop));
                Ok(Self {
                    dumpcap,
                    file: file.to_owned(),
                })
            }
            false => Err("dumpcap: it does not capture".into()),
        }
    }

    /// Stops the capture and analyses the file with tshark. Returns the number of occurrences of
    /// each expected message. `ours` are the senders of this project, whose packets must not have
    /// any defect.
    ///
    /// # Errors
    ///
    /// tshark prints a message that is not expected, or the capture contains no complete SCTP
    /// association.
    pub fn judge(mut self, ours: &[Sender]) -> Result<BTreeMap<String, usize>, String> {
        self.wait_for_the_end();
        let _ = kill(Pid::from_raw(self.dumpcap.id() as i32), Signal::SIGINT);
        self.dumpcap
            .wait()
            .map_err(|error| format!("dumpcap: {error}"))?;
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&self.file);
        tshark.args([
            "-d",
            "udp.port==9900,sctp",
            "-o",
            "sctp.checksum:CRC 32c",
            "-o",
            "sctp.reassembly:TRUE",
        ]);
        tshark.args([
            "-Y",
            "sctp || icmp || _ws.malformed",
            "-T",
            "fields",
            "-E",
            "separator=|",
            "-E",
            "aggregator=;",
        ]);
        for field in [
            "frame.number",
            "ip.src",
            "ipv6.src",
            "udp.srcport",
            "sctp.chunk_type",
            "sctp.checksum.status",
            "_ws.malformed",
            "_ws.expert.message",
        ] {
            tshark.args(["-e", field]);
        }
        let output = tshark
            .output()
            .map_err(|error| format!("tshark: {error}"))?;
        if !output.status.success() {
            return Err(format!(
                "tshark: {}",
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        remarks(&String::from_utf8_lossy(&output.stdout), ours)
            .map_err(|error| format!("{error} ({})", self.file.display()))
    }
}

impl Capture {
    /// Waits until the SHUTDOWN COMPLETE is in the file, because dumpcap writes at intervals and
    /// discards pending packets when it is stopped. If there is none, the wait times out, and the
    /// analysis reports that. A SACK may contain the same four bytes (end of the cumulative TSN and
    /// a small window), so this function also waits until the file has stopped growing.
    fn wait_for_the_end(&self) {
        let (mut size, mut unchanged) = (0, 0);
        for _ in 0..3_000 {
            let written = std::fs::read(&self.file).unwrap_or_default();
            let end = &written[written.len().saturating_sub(1000)..];
            let last = |window: &[u8]| window == [14, 0, 0, 4] || window == [14, 1, 0, 4];
            let grown = std::mem::replace(&mut size, written.len()) != written.len();
            unchanged = if grown || !end.windows(4).any(last) {
                0
            } else {
                unchanged + 1
            };
            if unchanged == UNCHANGED {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // The case may have failed: its last packets, which dumpcap has yet to write, may show why.
        std::thread::sleep(Duration::from_millis(300));
        let _ = kill(Pid::from_raw(self.dumpcap.id() as i32), Signal::SIGINT);
        let _ = self.dumpcap.wait();
    }
}

/// Parses the fields that tshark prints, one line per packet, and counts the expected messages of
/// tshark in them.
fn remarks(text: &str, ours: &[Sender]) -> Result<BTreeMap<String, usize>, String> {
    let mut found = BTreeMap::new();
    let mut complaints = Vec::new();
    let mut kinds = std::collections::BTreeSet::new();
    for line in text.lines() {
        let mut fields = line.splitn(8, '|');
        let mut field = || fields.next().unwrap_or_default();
        let (_number, v4, v6, port) = (field(), field(), field(), field());
        let (chunks, checksum, malformed, expert) = (field(), field(), field(), field());
        // The line of an ICMP message also has the fields of the quoted packet; the first value
        // belongs to the outer packet.
        let outer = |all: &str| all.split(';').next().unwrap_or_default().to_owned();
        let source = if v4.is_empty() { outer(v6) } else { outer(v4) };
        let is_ours = ours.iter().any(|it| it.sent(&source, &outer(port)));
        let known_of_peer = |remark: &str| {
            let mut known = OF_PEERS.iter();
            !is_ours && known.any(|(of, text, _)| *of == chunks && remark.contains(text))
        };
        kinds.extend(
            chunks
                .split([';', ','])
                .filter_map(|kind| kind.parse::<u8>().ok()),
        );
        // tshark prints 1 for a correct checksum.
        let checked = checksum
            .split([';', ','])
            .all(|status| status == "1" || status == "Good");
        let mut bad = !checked || (!malformed.is_empty() && !known_of_peer(malformed));
        for remark in expert.split(';').filter(|remark| !remark.is_empty()) {
            let expected = EXPECTED.iter().any(|(known, _)| remark.contains(known));
            match expected || known_of_peer(remark) {
                true => *found.entry(remark.to_owned()).or_insert(0) += 1,
                false => bad = true,
            }
        }
        if bad && complaints.len() < 500 {
            complaints.push(line.to_owned());
        }
    }
    if !complaints.is_empty() {
        return Err(format!("tshark complains: {complaints:#?}"));
    }
    // Chunk types of a complete association: DATA, INIT, INIT ACK, SACK, SHUTDOWN, SHUTDOWN ACK,
    // COOKIE ECHO, COOKIE ACK and SHUTDOWN COMPLETE.
    let whole = [0, 1, 2, 3, 7, 8, 10, 11, 14];
    match whole.iter().find(|kind| !kinds.contains(kind)) {
        None => Ok(found),
        Some(kind) => Err(format!(
            "the capture holds no chunk of type {kind}, but {kinds:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "1|127.0.0.1||9899|0;1;2;3;7;8;10;11;14|1||\n";
    /// Output of tshark 4.0 for a HEARTBEAT of 4 bytes.
    const MALFORMED: &str =
        "[Malformed Packet: SCTP];_ws.malformed|Malformed Packet (Exception occurred)";

    fn ours(udp_port: Option<u16>) -> Sender {
        Sender {
            addresses: vec![[127, 0, 0, 1].into(), std::net::Ipv6Addr::LOCALHOST.into()],
            udp_port,
        }
    }

    #[test]
    fn a_heartbeat_without_information_is_the_peers_to_send_and_not_ours() {
        for source in ["127.0.0.1|", "|::1"] {
            let line = |port| format!("{WHOLE}2|{source}|{port}|4|1|{MALFORMED}\n");
            let ours = [ours(Some(9899))];
            let found = remarks(&line(9900), &ours).expect("the peer's");
            assert_eq!(found["Malformed Packet (Exception occurred)"], 1);
            remarks(&line(9899), &ours).expect_err("ours");
        }
        // Senders with the same UDP port are distinguished by their addresses.
        let line = format!("{WHOLE}2|127.0.0.1||9900|4|1|{MALFORMED}\n");
        remarks(&line, &[ours(None)]).expect_err("ours");
    }

    #[test]
    fn nothing_else_of_the_peers_passes() {
        let ours = [ours(Some(9899))];
        for wrong in [
            // Not accepted: a different chunk, an additional chunk, a wrong checksum, a different
            // message.
            format!("2|127.0.0.1||9900|5|1|{MALFORMED}"),
            format!("2|127.0.0.1||9900|4;0|1|{MALFORMED}"),
            format!("2|127.0.0.1||9900|4|0|{MALFORMED}"),
            "2|127.0.0.1||9900|4|1||Bad checksum".to_owned(),
        ] {
            remarks(&format!("{WHOLE}{wrong}\n"), &ours).expect_err(&wrong);
        }
        remarks(WHOLE, &ours).expect("whole and faultless");
        remarks("", &ours).expect_err("nothing at all");
    }
}
