//! Tests of `shell`: programs in namespaces on simulated links. Counts, order and bytes are
//! compared, but never times.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{anabranch, run, signal, text};

const LINK: &str = "
anabranch = 1
name = 'link'

[parameters]
lost = []
queue = '100 packets'
mtu = '1500 B'

[world]
duration = '60 s'

[[node]]
name = 'phone'
[[node]]
name = 'tower'
[[node]]
name = 'server'

[[link]]
name = 'radio'
between = ['phone', 'tower']
rate = '8 Mbit/s'
delay = '2 ms'
queue = { forward = '$queue' }
loss = { forward = { model = 'ordinals', packets = '$lost' } }

[[link]]
name = 'wire'
between = ['tower', 'server']
rate = '100 Mbit/s'
delay = '1 ms'
mtu = '$mtu'
";

/// A folder with the spec. `None`, after printing the reason, if namespaces cannot be created on
/// this machine.
fn folder() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().expect("a directory");
    fs::write(folder.path().join("link.toml"), LINK).expect("a file");
    let tried = run(folder.path(), &["shell", "link.toml", "--", "true"]);
    let said = text(&tried.stderr);
    if said.contains("may not make") || said.contains("cannot make a TUN") {
        eprintln!("left out: {said}");
        return None;
    }
    assert!(tried.status.success(), "{said}");
    Some(folder)
}

/// The report of a run, parsed.
fn report(folder: &Path) -> Value {
    let text = fs::read(folder.join("report.json")).expect("a report");
    serde_json::from_slice(&text).expect("JSON")
}

/// Runs a shell script at the node `phone`, with further options. Returns its output and the
/// report.
fn shell(folder: &Path, more: &[&str], script: &str) -> (String, Value) {
    let mut arguments = vec!["shell", "link.toml", "--report", "report.json"];
    arguments.extend_from_slice(more);
    arguments.extend_from_slice(&["--", "sh", "-ec", script]);
    let output = run(folder, &arguments);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    (said, report(folder))
}

#[test]
fn pings_are_answered_but_those_that_the_list_takes() {
    let Some(folder) = folder() else { return };
    let lost = ["--set", "lost=[1, 3]"];
    for (version, host) in [("-4", "server"), ("-6", "server.wire")] {
        let script = format!("ping {version} -i 0.01 -W 30 -c 5 {host}");
        let (said, report) = shell(folder.path(), &lost, &script);
        assert!(said.contains("5 packets transmitted, 3 received"), "{said}");
        for (number, answered) in [(1, true), (2, false), (3, true), (4, false), (5, true)] {
            // The answer passes one router, which decrements the TTL.
            let wanted = format!("icmp_seq={number} ttl=63");
            assert_eq!(said.contains(&wanted), answered, "{said}");
        }
        assert_eq!(report["dropped"]["loss"], 2);
        let nodes = report["nodes"].as_array().expect("nodes");
        let counts = nodes
            .iter()
            .map(|it| (it["entered"].as_u64(), it["left"].as_u64()));
        let counts: Vec<_> = counts.collect();
        assert_eq!(counts, [(Some(5), Some(3)), (Some(3), Some(3))]);
        assert_eq!(
            (&report["overrun"], &report["damaged"]),
            (&0.into(), &0.into())
        );
        assert_eq!(report["late_ns"]["packets"], 6);
    }
}

#[test]
fn a_large_packet_senses_the_second_link() {
    let Some(folder) = folder() else { return };
    let set = ["--set", "mtu=1400 B"];
    let script = "ping -4 -M do -s 1400 -W 30 -c 1 server || true
ip route get 10.0.1.2
ping -4 -M dont -s 1400 -W 30 -c 1 server | grep transmitted";
    let (said, report) = shell(folder.path(), &set, script);
    assert!(
        said.contains("mtu = 1400") || said.contains("mtu=1400"),
        "{said}"
    );
    assert!(
        said.contains("mtu 1400"),
        "the kernel has learnt it: {said}"
    );
    assert!(said.contains("1 packets transmitted, 1 received"), "{said}");
    assert_eq!(report["dropped"]["too-big"], 1);
}

#[test]
fn bytes_of_a_tcp_transfer_come_whole_through_a_lossy_link() {
    let Some(folder) = folder() else { return };
    let sent: Vec<u8> = (0..300_000u32).flat_map(|it| it.to_le_bytes()).collect();
    fs::write(folder.path().join("sent"), &sent).expect("a file");
    let more = [
        "--set",
        "lost=[20, 21, 22, 90, 200]",
        "--capture",
        "phone@radio=radio.pcapng",
        "--run",
        "server=socat -u TCP4-LISTEN:7000 CREATE:received && mv received whole",
        "--wait-for",
        "server:7000",
    ];
    let script = "socat -u OPEN:sent TCP4:server:7000; until test -e whole; do sleep 0.02; done";
    let (_, report) = shell(folder.path(), &more, script);
    let whole = fs::read(folder.path().join("whole")).expect("a file");
    assert!(whole == sent, "{} bytes", whole.len());
    assert_eq!(report["dropped"]["loss"], 5);
    let shown = Command::new("tshark")
        .args(["-r", "radio.pcapng", "-Y", "tcp.flags.syn == 1"])
        .args([
            "-T",
            "fields",
            "-e",
            "ip.src",
            "-e",
            "ip.checksum.status",
            "-e",
            "tcp.dstport",
        ])
        .args(["-o", "ip.check_checksum:TRUE"])
        .current_dir(folder.path())
        .output()
        .expect("tshark is there");
    let syns = text(&shown.stdout);
    assert!(syns.starts_with("10.0.0.1\t1\t7000\n"), "{syns}");
    assert!(syns.contains("10.0.1.2\t1\t"), "{syns}");
}

#[test]
fn a_queue_marks_packets_of_real_programs() {
    let Some(folder) = folder() else { return };
    let red = "queue={ kind = 'red', min_th = 1, max_th = 2, w_q = 1.0, max_p = 1.0, ecn = true, packet_time = '1 ms' }";
    let slow = "link.radio.rate=40 kbit/s";
    let capture = "server@wire=wire.pcapng";
    let more = ["--set", red, "--set", slow, "--capture", capture];
    // Three packets are sent at once, and the link `radio` takes 200 ms for each, so the third must
    // wait. On a busy machine it may be sent too late for that, but hardly four times in a row.
    let script =
        "for n in 1 2 3 4; do ping -4 -Q 2 -s 1000 -l 3 -W 30 -c 3 server | grep transmitted; done";
    let (said, _) = shell(folder.path(), &more, script);
    assert_eq!(
        said.matches("3 received").count(),
        4,
        "marked and not dropped: {said}"
    );
    let shown = Command::new("tshark")
        .args(["-r", "wire.pcapng", "-Y", "icmp.type == 8", "-T", "fields"])
        .args(["-e", "ip.dsfield.ecn", "-e", "ip.checksum.status"])
        .args(["-o", "ip.check_checksum:TRUE"])
        .current_dir(folder.path())
        .output()
        .expect("tshark is there");
    let fields = text(&shown.stdout);
    let fields: Vec<&str> = fields.lines().collect();
    assert_eq!(fields.len(), 12);
    let fields: Vec<&[&str]> = fields.chunks(3).collect();
    for first in fields.iter().map(|it| it[0]) {
        assert_eq!(first, "2\t1", "the first finds the queue empty");
    }
    let marked = fields.iter().any(|it| it[2] == "3\t1");
    assert!(marked, "the third finds two before it: {fields:?}");
}

#[test]
fn every_host_has_its_commands_and_all_end_with_the_one_that_counts() {
    let Some(folder) = folder() else { return };
    let more = [
        "--at",
        "server",
        "--run",
        "phone=ping -i 0.05 tower > /dev/null",
        "--run",
        "tower=echo $$ > tower.pid; (sleep 1000 & echo $! > orphan.pid); exec sleep 1000",
        "--run",
        "phone=echo $$ > phone.pid; exit 3",
    ];
    // The exit of a process is detected by its process id, which no longer exists.
    let script = "until test -s orphan.pid && test -s phone.pid; do sleep 0.02; done
while kill -0 $(cat phone.pid) 2> /dev/null; do sleep 0.02; done
ping -4 -W 30 -c 1 phone; ping -W 30 -c 1 tower; exit 7";
    let mut arguments = vec!["shell", "link.toml", "--report", "report.json"];
    arguments.extend_from_slice(&more);
    arguments.extend_from_slice(&["--", "sh", "-ec", script]);
    let output = run(folder.path(), &arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(
        said.contains("anabranch: phone: echo $$ > phone.pid; exit 3 ended with status 3"),
        "{said}"
    );
    assert_eq!(text(&output.stdout).matches(" 1 received").count(), 2);
    assert_eq!(
        report(folder.path())["nodes"].as_array().map(Vec::len),
        Some(3)
    );
    for file in ["tower.pid", "orphan.pid"] {
        let pid = fs::read_to_string(folder.path().join(file)).expect("a number");
        let proc = Path::new("/proc").join(pid.trim());
        assert!(!proc.exists(), "{file} is left behind");
    }
}

#[test]
fn a_signal_ends_all_and_leaves_nothing() {
    let Some(folder) = folder() else { return };
    let here = folder.path();
    let arguments = [
        "shell",
        "link.toml",
        "--run",
        "server=echo $$; exec sleep 1000",
        "--",
        "sh",
        "-c",
        "echo $$; readlink /proc/self/ns/net; exec sleep 1000",
    ];
    let mut child = anabranch(here, &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let lines: Vec<String> = output
        .lines()
        .take(3)
        .map(|it| it.expect("a line"))
        .collect();
    signal(&child, "TERM");
    assert_eq!(child.wait().expect("it ends").code(), Some(128 + 15));
    let (pids, namespace): (Vec<&String>, Vec<&String>) =
        lines.iter().partition(|it| !it.starts_with("net:"));
    assert_eq!((pids.len(), namespace.len()), (2, 1), "{lines:?}");
    for pid in pids {
        assert!(!Path::new("/proc").join(pid).exists(), "{pid} is left");
    }
    // The program ran in a namespace other than that of this process, and no file with host names
    // is left.
    let own = fs::read_link("/proc/self/ns/net").expect("a link");
    assert_ne!(own.to_string_lossy(), *namespace[0]);
    let prefix = format!("anabranch-hosts-{}-", child.id());
    let left = fs::read_dir(std::env::temp_dir())
        .expect("a directory")
        .flatten();
    let left = left.filter(|it| it.file_name().to_string_lossy().starts_with(&prefix));
    assert_eq!(left.count(), 0);
}

#[test]
fn an_unending_sender_is_bounded_by_the_queue() {
    let Some(folder) = folder() else { return };
    // Sends 2,000 datagrams as fast as possible to a program that reads them; the queue of the 8
    // Mbit/s link holds ten.
    let script = "head -c 2000000 /dev/zero | socat -u -b 1000 - UDP:server:9; ping -W 1 -c 1 server || true";
    let reader = "server=socat -u UDP-RECV:9 /dev/null";
    let more = [
        "--set",
        "queue=10 packets",
        "--run",
        reader,
        "--wait-for",
        "server:9",
    ];
    let (said, report) = shell(folder.path(), &more, script);
    assert!(said.contains("1 packets transmitted"), "{said}");
    assert!(
        report["dropped"]["queue-full"].as_u64() > Some(0),
        "{report}"
    );
}

#[test]
fn mistakes_are_reported_before_anything_is_made() {
    let folder = tempfile::tempdir().expect("a directory");
    let here = folder.path();
    fs::write(here.join("link.toml"), LINK).expect("a file");
    for (arguments, words) in [
        (vec!["--at", "sever"], "did you mean `server`?"),
        (vec!["--run", "ping"], "write NODE=COMMAND"),
        (vec!["--run", "serve=true"], "did you mean `server`?"),
        (vec!["--wait-for", "server"], "write NODE:PORT"),
        (vec!["--wait-for", "server:0"], "a port of 1 to 65535"),
        (vec!["--capture", "phone=x"], "write NODE@LINK=FILE"),
        (vec!["--capture", "phone@rado=x"], "did you mean `radio`?"),
        (vec!["--capture", "phone@wire=x"], "phone"),
        (vec!["--set", "radio=1"], "radio"),
        (vec!["--dry-run", "--at", "phone"], "cannot be used with"),
    ] {
        let mut all = vec!["shell", "link.toml"];
        all.extend(arguments.iter().copied());
        let output = run(here, &all);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    let output = run(here, &["shell", "link.toml", "--dry-run"]);
    let said = text(&output.stdout);
    let fields: Vec<Vec<&str>> = said
        .lines()
        .map(|it| it.split_whitespace().collect())
        .collect();
    assert_eq!(fields[0], ["phone", "radio", "10.0.0.1", "fd00::1"]);
    assert_eq!(fields.len(), 4);
}

#[test]
fn the_status_is_that_of_the_command_although_the_report_is_not_read() {
    let Some(folder) = folder() else { return };
    let full = fs::File::options().write(true).open("/dev/full");
    let (reader, closed) = std::io::pipe().expect("a pipe");
    drop(reader);
    for unread in [full.expect("a device").into(), Stdio::from(closed)] {
        let arguments = ["shell", "link.toml", "--run", "server=false", "--", "sh"];
        let mut command = anabranch(folder.path(), &arguments);
        let status = command
            .args(["-c", "sleep 0.2; exit 7"])
            .stderr(unread)
            .status();
        assert_eq!(status.expect("it ends").code(), Some(7));
    }
}

/// The command is killed, and cannot end its children itself.
#[test]
fn children_of_the_shell_command_end_when_it_is_killed() {
    let Some(folder) = folder() else { return };
    let arguments = [
        "shell",
        "link.toml",
        "--run",
        "server=exec sleep 321",
        "--",
        "sh",
        "-c",
        "echo up; exec sleep 322",
    ];
    let mut child = anabranch(folder.path(), &arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "up\n");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    // The pipe is closed when the last process that has it ends. If the children were not ended
    // with the command, that would take five minutes.
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut rest = String::new();
        let read = std::io::Read::read_to_string(&mut output, &mut rest);
        // Fails if the test has timed out.
        let _ = sender.send(read.map(|_| rest));
    });
    let rest = ended.recv_timeout(std::time::Duration::from_secs(120));
    assert_eq!(rest.expect("they have ended").expect("text"), "");
}
