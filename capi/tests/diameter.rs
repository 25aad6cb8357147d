//! Two Diameter peers of Debian's (freeDiameterd), unchanged.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{run, text};

const NAMES: [&str; 2] = ["a", "b"];
const PORTS: [u16; 2] = [3868, 3878];

/// What peer `own` is told.
fn settings(own: usize) -> String {
    let other = 1 - own;
    format!(
        r#"Identity = "{own}.example.net";
Realm = "example.net";
Port = {port};
SecPort = 0;
No_TCP;
No_IPv6;
TwTimer = 6;
TcTimer = 1;
ListenOn = "127.0.0.1";
TLS_Cred = "{own}.crt", "{own}.key";
TLS_CA = "{own}.crt";
LoadExtension = "dbg_msg_dumps.fdx" : "0x0080";
ConnectPeer = "{other}.example.net" {{ ConnectTo = "127.0.0.1"; Port = {other_port}; No_TLS; No_TCP; }};
"#,
        own = NAMES[own],
        other = NAMES[other],
        port = PORTS[own],
        other_port = PORTS[other],
    )
}

/// Settings and certificates of both; `None`: a program is missing.
fn prepare(folder: &Path) -> Option<()> {
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
        fs::write(folder.join(format!("{name}.conf")), settings(place)).expect("a file");
    }
    let found = Command::new("freeDiameterd").arg("--version").output();
    found.ok().map(drop)
}

/// They exchange capabilities (RFC 6733 §5.3), and each answers a watchdog of the other (§5.5), which comes after six seconds without a
/// message.
#[test]
fn two_peers_exchange_capabilities_and_watchdogs() {
    let folder = tempfile::tempdir().expect("a directory");
    if prepare(folder.path()).is_none() {
        eprintln!("left out: freeDiameterd or openssl is not installed (scripts/setup)");
        return;
    }
    // Both are ended when each has seen an answer: what a peer sends and gets is in its log.
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
    let log = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    let [a, b] = [log("a.log"), log("b.log")];
    assert_eq!(text(&output), "a\nb\n", "{a}\n{b}");
    for log in [a, b] {
        assert!(log.contains("Capabilities-Exchange-"), "{log}");
        assert!(log.contains("-> 'STATE_OPEN'"), "{log}");
    }
}
