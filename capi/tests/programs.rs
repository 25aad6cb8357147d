//! Programs in C, on a host of this process.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_net::{Carrier, Config};
use anabranch_sockets::host::Host;

/// How long a program may take, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// The library that programs load, as it was built for this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test is a file");
    let folder = test.parent().expect("target/*/deps");
    folder.join("libanabranch_preload.so")
}

/// Compiles a program of this folder.
fn compile(name: &str, into: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{name}.c"));
    let program = into.join(name);
    let output = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .args([&program, &source])
        .arg("-lsctp")
        .output()
        .expect("cc is there");
    assert!(output.status.success(), "{}", text(&output));
    program
}

fn text(output: &Output) -> String {
    let [out, error] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    format!("{out}{error}")
}

/// Runs a program whose SCTP sockets are those of a host made for it; peers are at the host's own UDP port.
fn run(command: &mut Command) -> Output {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let config = Config::default().with(|it| {
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
    });
    static HOSTS: AtomicUsize = AtomicUsize::new(0);
    let number = HOSTS.fetch_add(1, Ordering::Relaxed);
    let name = format!("test-{}-{number}", std::process::id());
    let output = runtime.block_on(async {
        let host = Host::start(&name, config).expect("a host");
        tokio::spawn(host.serve());
        let child = tokio_command(command)
            .env("LD_PRELOAD", library())
            .env("ANABRANCH_HOST", &name)
            .kill_on_drop(true)
            .output();
        tokio::time::timeout(PATIENCE, child).await
    });
    output.expect("the program ends").expect("it runs")
}

fn tokio_command(command: &Command) -> tokio::process::Command {
    let mut out = tokio::process::Command::new(command.get_program());
    out.args(command.get_args());
    out
}

#[test]
fn sockets_behave_as_rfc_6458_says() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile("semantics", folder.path());
    let output = run(Command::new(program).arg("5001"));
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(text(&output), "as it should be\n");
}

/// Debian's programs, both ends on one host. One that is not installed is left out, and says so.
fn shell(needs: &str, script: &str) -> Option<Output> {
    let found = Command::new(needs).arg("--version").output();
    if found.is_err() {
        eprintln!("left out: {needs} is not installed (scripts/setup)");
        return None;
    }
    Some(run(Command::new("bash").args(["-c", script])))
}

#[test]
fn checksctp_finds_sctp() {
    let Some(output) = shell("checksctp", "checksctp") else {
        return;
    };
    assert_eq!(text(&output), "SCTP supported\n");
}

/// One way: SCTP has no half-closed state (RFC 9260 §9.2), so an echo of what came last would have no way back.
#[test]
fn socat_carries_bytes_to_the_last() {
    let script = "
        exec {server}< <(exec socat -dd -u SCTP-LISTEN:5001 EXEC:'wc -c' 2>&1)
        until read -r line <&$server && [[ $line == *listening* ]]; do :; done
        head -c 300000 /dev/zero | tr '\\0' x | socat -u - SCTP:127.0.0.1:5001
        until read -r line <&$server && [[ $line == 300000 ]]; do echo \"$line\"; done; echo all";
    let Some(output) = shell("socat", script) else {
        return;
    };
    assert!(text(&output).ends_with("all\n"), "{}", text(&output));
}

#[test]
fn iperf3_measures_either_way_and_over_several_associations() {
    // With --nstreams alone version 3.12 sends one message and stops; with -b 0 beside it, it goes on.
    for options in ["-n 4M", "-n 4M -R", "-n 4M -P 3", "-n 4M --nstreams 8 -b 0"] {
        let script = format!(
            "exec {{server}}< <(exec stdbuf -oL iperf3 -s -1 -p 5300)
             until read -r line <&$server && [[ $line == *listening* ]]; do :; done
             iperf3 -c 127.0.0.1 -p 5300 --sctp {options} -J
             cat <&$server >/dev/null"
        );
        let Some(output) = shell("iperf3", &script) else {
            return;
        };
        let all: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
        // The receiver counts until the sender says over TCP that it is done, and some is on its way then.
        let [sent, received] =
            ["sum_sent", "sum_received"].map(|it| all["end"][it]["bytes"].as_u64());
        let right = sent.is_some_and(|it| it >= 4 << 20) && received.is_some_and(|it| it > 0);
        assert!(right, "{options}: {}", text(&output));
    }
}

#[test]
fn ncat_listens_at_both_families_and_its_last_words_arrive() {
    let script = "
        exec {open}<> <(true) # its standard input, which never ends
        exec {server}< <(exec ncat -v --sctp -l 5002 2>&1 <&$open)
        until read -r line <&$server && [[ $line == *Listening*0.0.0.0* ]]; do :; done
        echo last words | ncat --sctp --send-only 127.0.0.1 5002
        cat <&$server";
    let Some(output) = shell("ncat", script) else {
        return;
    };
    assert!(text(&output).ends_with("last words\n"), "{}", text(&output));
}

/// Programs without SCTP sockets go on as before.
#[test]
fn other_descriptors_are_left_alone() {
    let mut command = Command::new("sh");
    let output = run(command.args(["-c", "echo one | cat; exec 3</dev/null; cat <&3; exit 3"]));
    assert_eq!(
        (output.status.code(), text(&output).as_str()),
        (Some(3), "one\n")
    );
}
