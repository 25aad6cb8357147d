//! Test with two unmodified Diameter peers from Debian (freeDiameterd).

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use anabranch_net::Carrier;

use common::networks::{address, interface, joined};
use common::{encapsulated, library, run, run_at, text};

const NAMES: [&str; 2] = ["a", "b"];
const PORTS: [u16; 2] = [3868, 3878];
/// Name of the file that lists the peers from which `b` accepts connections.
const ALLOWED: &str = "allowed.conf";

/// Configuration of peer `own`, given the addresses of both peers. Only `a` connects, because if
/// both connect, one connection is closed (RFC 6733 §5.6.4). freeDiameter exits if that happens
/// between its `accept` and its next call, which depends on the load.
fn settings(own: usize, addresses: &[Vec<String>; 2]) -> String {
    let other = 1 - own;
    let lines = |side: usize, before: &str, after: &str| {
        let all = addresses[side].iter();
        all.map(|it| format!("{before}\"{it}\"{after}"))
            .collect::<String>()
    };
    format!(
        r#"Identity = "{own}.example.net";
Realm = "example.net";
Port = {port};
SecPort = 0;
No_TCP;
No_IPv6;
TwTimer = 6;
TcTimer = 1;
{listen}
TLS_Cred = "{own}.crt", "{own}.key";
TLS_CA = "{own}.crt";
LoadExtension = "dbg_msg_dumps.fdx" : "0x0080";
{peer}
"#,
        listen = lines(own, "ListenOn = ", ";\n"),
        peer = match own {
            0 => format!(
                r#"ConnectPeer = "{}.example.net" {{ {} Port = {}; No_TLS; No_TCP; }};"#,
                NAMES[other],
                lines(other, "ConnectTo = ", "; "),
                PORTS[other],
            ),
            _ => format!(r#"LoadExtension = "acl_wl.fdx" : "{ALLOWED}";"#),
        },
        own = NAMES[own],
        port = PORTS[own],
    )
}

/// Writes the configuration and certificates of both peers; `None` if a program is missing.
fn prepare(folder: &Path, addresses: &[Vec<String>; 2]) -> Option<()> {
    for (place, name) in NAMES.iter().enumerate() {
        let subject = format!("/CN={name}.example.net");
        let files = [format!("{name}.key"), format!("{name}.crt")];
        let output = Command::new("openssl")
            .args([
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30",
            ])
            .args(["-subj", &subject, "-keyout", &files[0], "-out", &files[1]])
            .current_dir(folder)
            .output();
        output.ok().filter(|it| it.status.success())?;
        fs::write(
            folder.join(format!("{name}.conf")),
            settings(place, addresses),
        )
        .expect("a file");
    }
    // "IPsec" is freeDiameter's term for a connection without TLS.
    let allowed = format!("ALLOW_IPSEC {}.example.net\n", NAMES[0]);
    fs::write(folder.join(ALLOWED), allowed).expect("a file");
    let found = Command::new("freeDiameterd").arg("--version").output();
    found.ok().map(drop)
}

/// Like [`prepare`]; prints a message if a program is missing.
fn prepared(folder: &Path, addresses: &[Vec<String>; 2]) -> bool {
    let prepared = prepare(folder, addresses).is_some();
    if !prepared {
        eprintln!("left out: freeDiameterd or openssl is not installed (scripts/setup)");
    }
    prepared
}

fn log(folder: &Path, name: &str) -> String {
    let bytes = fs::read(folder.join(name)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The peers should exchange capabilities (RFC 6733 §5.3). After six seconds without a message,
/// each should answer a watchdog request of the other (§5.5).
#[test]
fn two_peers_exchange_capabilities_and_watchdogs() {
    let folder = tempfile::tempdir().expect("a directory");
    let loopback = || vec!["127.0.0.1".to_owned()];
    if !prepared(folder.path(), &[loopback(), loopback()]) {
        return;
    }
    // Both peers are stopped when each has received the answer to a watchdog request. The log of a
    // peer contains its sent and received messages.
    let script = format!(
        "cd {}
         for it in a b; do freeDiameterd -c $it.conf >$it.log 2>&1 & all+=($!); done
         for it in a b; do
             until grep -A1 'RCV from' $it.log 2>&1 | grep -q Device-Watchdog-Answer; do
                 for one in ${{all[@]}}; do kill -0 $one || exit; done
                 sleep 0.2
             done
             echo $it
         done
         kill -9 ${{all[@]}}",
        folder.path().display()
    );
    let output = run(Command::new("bash").args(["-c", &script]));
    let [a, b] = ["a.log", "b.log"].map(|name| log(folder.path(), name));
    assert_eq!(text(&output), "a\nb\n", "{a}\n{b}");
    for log in [a, b] {
        assert!(log.contains("Capabilities-Exchange-"), "{log}");
        assert!(log.contains("-> 'STATE_OPEN'"), "{log}");
    }
}

/// The peers run on two hosts with two addresses each, and know both addresses of each other. When
/// the first path is cut, watchdog requests should be answered over the second path, without a new
/// connection. Then the peers disconnect (RFC 6733 §5.4), and their processes should exit by
/// cancelling their waiting threads. Whether the exit succeeds also depends on the load: to delete
/// a queue, freeDiameter 1.2.1 yields 20 times to the threads that wait at the queue, and if they
/// still wait, it aborts by an assertion in `fd_fifo_del`. This abort counts as an exit, because
/// the peers have disconnected before.
#[test]
fn two_peers_survive_the_loss_of_a_path() {
    let folder = tempfile::tempdir().expect("a directory");
    let own = |side| [1, 2].map(|link| address(side, link));
    let addresses = [0, 1].map(|side| own(side).map(|it| it.to_string()).to_vec());
    if !prepared(folder.path(), &addresses) {
        return;
    }
    let begin = "
        freeDiameterd -c $own.conf >$own.log 2>&1 & peer=$!
        trap 'kill -9 $peer 2>/dev/null' EXIT
        answers() { grep -s -a -A1 'RCV from' $own.log | grep -c Device-Watchdog-Answer; }
        has() { until (($(answers) >= $1)); do kill -0 $peer || exit; sleep 0.2; done; }
        ends() {
            kill -TERM $peer; wait $peer 2>/dev/null; status=$?
            if ((status == 134)) && grep -saq 'fd_fifo_del: Assertion' $own.log; then status=0; fi
            echo $own ends $status; : >$own.ended
        }";
    let cut = format!(
        "own=a; {begin}
         has 1; ip link set {} down; has $(($(answers) + 2)); ends",
        interface(0, 1)
    );
    // Waits for the disconnect request of the other peer, which is the last message from it.
    let stays = format!(
        "own=b; {begin}
         until [[ -e a.ended ]] || grep -saq Disconnect-Peer-Request $own.log; do kill -0 $peer || exit; sleep 0.2; done; ends"
    );
    let scripts = [cut, stays];
    let outputs = joined(|side| {
        let mut command = Command::new("bash");
        command
            .args(["-c", &scripts[side]])
            .current_dir(folder.path());
        let config = encapsulated(&own(side)).with(|it| {
            it.carrier = Carrier::Encapsulated {
                port: 9899,
                peer_port: 9899,
            };
        });
        text(&run_at(&mut command, &[library()], config))
    });
    let Some(outputs) = outputs else { return };
    let logs = ["a.log", "b.log"].map(|name| log(folder.path(), name));
    let [a, b] = &logs;
    assert_eq!(outputs, ["a ends 0\n", "b ends 0\n"], "{a}\n{b}");
    assert!(a.contains("Disconnect-Peer-Answer"), "{a}");
    for log in &logs {
        let opened = log.matches("-> 'STATE_OPEN'").count();
        assert_eq!(opened, 1, "one connection for all that time: {log}");
    }
}
