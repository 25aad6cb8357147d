//! Tests of `cat`, and of interrupting commands.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};

use crate::common::{anabranch, number_after, server, signal, text};

/// A client of an echo server that has received a first byte, and its open standard input.
fn client_of_echo(here: &Path, port: &str) -> (Child, ChildStdin) {
    let mut cat = anabranch(here, &["cat", "127.0.0.1", "--peer-udp-port", port])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut input = cat.stdin.take().expect("piped");
    input.write_all(b"x").expect("it reads");
    let output = cat.stdout.as_mut().expect("piped");
    output.read_exact(&mut [0]).expect("it comes back");
    (cat, input)
}

#[test]
fn an_interrupted_command_notifies_the_other_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let echo = server(here, "echo", &[]);
    let port = echo.port("UDP port");
    let (mut cat, _input) = client_of_echo(here, &port);
    signal(&cat, "INT");
    assert_eq!(cat.wait().expect("it ends").code(), Some(130));
    let (status, said) = echo.end();
    assert_eq!(status, 0);
    assert!(said.contains("aborted by the peer"), "{said}");

    // A server that ends notifies its clients.
    let echo = server(here, "echo", &[]);
    let port = echo.port("UDP port");
    let (cat, _input) = client_of_echo(here, &port);
    signal(&echo.child, "TERM");
    assert_eq!(echo.end().0, 0);
    let cat = cat.wait_with_output().expect("it ends");
    assert_eq!(cat.status.code(), Some(1));
    assert!(
        text(&cat.stderr).contains("aborted by the peer"),
        "{}",
        text(&cat.stderr)
    );
}

#[test]
fn a_listener_takes_a_file_with_pauses_and_nothing_to_say() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let arguments = ["cat", "-v", "-l", "6000", "--udp-port", "0"];
    let mut listener = anabranch(here, &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut said = BufReader::new(listener.stderr.take().expect("piped"));
    let mut first = String::new();
    said.read_line(&mut first).expect("it says where");
    assert!(first.contains("SCTP port 6000"), "{first}");
    let udp_port = number_after(&first, "UDP port");
    let arguments = [
        "cat",
        "127.0.0.1",
        "-p",
        "6000",
        "--peer-udp-port",
        &udp_port,
        "--local-port",
        "7001",
        "-w",
        "0",
    ];
    let mut caller = anabranch(here, &arguments)
        .stdin(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut input = caller.stdin.take().expect("piped");
    let mut output = listener.stdout.take().expect("piped");
    for piece in ["one", "two"] {
        input.write_all(piece.as_bytes()).expect("it reads");
        let mut heard = [0; 3];
        output.read_exact(&mut heard).expect("it comes");
        assert_eq!(heard, piece.as_bytes());
    }
    drop(input);
    assert_eq!(caller.wait().expect("it ends").code(), Some(0));
    assert_eq!(listener.wait().expect("it ends").code(), Some(0));
}

#[test]
fn cat_pipes_through_an_echo() {
    let directory = tempfile::tempdir().expect("a directory");
    let echo = server(directory.path(), "echo", &[]);
    let port = echo.port("UDP port");
    let arguments = ["cat", "127.0.0.1", "--peer-udp-port", &port, "--lines"];
    let mut cat = anabranch(directory.path(), &arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let said: String = (0..2_000)
        .map(|number| format!("line {number}\n"))
        .collect();
    let mut input = cat.stdin.take().expect("piped");
    input.write_all(said.as_bytes()).expect("it reads");
    // The input ends after everything was echoed. `cat` then still waits some time for answers, but
    // none is missing.
    let mut heard = vec![0; said.len()];
    let output = cat.stdout.as_mut().expect("piped");
    output.read_exact(&mut heard).expect("all comes back");
    assert_eq!(text(&heard), said);
    drop(input);
    let rest = cat.wait_with_output().expect("it ends");
    assert!(rest.status.success() && rest.stdout.is_empty());
    let (status, served) = echo.end();
    assert_eq!(status, 0);
    assert!(served.contains("2000 messages"), "{served}");
}

#[test]
fn messages_carry_the_identifier_that_was_asked_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let echo = server(here, "echo", &["--capture", "echo.pcapng"]);
    let port = echo.port("UDP port");
    let cat = [
        "cat",
        "127.0.0.1",
        "--peer-udp-port",
        &port,
        "--ppid",
        "0x2e",
    ];
    let mut cat = anabranch(here, &cat)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut input = cat.stdin.take().expect("piped");
    input.write_all(b"Diameter").expect("it reads");
    let output = cat.stdout.as_mut().expect("piped");
    output.read_exact(&mut [0; 8]).expect("it comes back");
    drop(input);
    assert_eq!(cat.wait().expect("it ends").code(), Some(0));
    assert_eq!(echo.end().0, 0);
    let tshark = std::process::Command::new("tshark")
        .current_dir(here)
        .args([
            "-r",
            "echo.pcapng",
            "-Y",
            "sctp.data_payload_proto_id == 46",
        ])
        .args([
            "-T",
            "fields",
            "-e",
            "sctp.srcport",
            "-e",
            "sctp.data_tsn_raw",
        ])
        .output()
        .expect("tshark is installed by scripts/setup");
    // Messages in both directions arrive unchanged. Duplicates are removed, because a busy machine
    // may retransmit.
    let said = text(&tshark.stdout);
    let messages: BTreeSet<&str> = said.lines().collect();
    assert_eq!(messages.len(), 2, "{said}{}", text(&tshark.stderr));
    for wrong in ["-1", "0x100000000", "diameter"] {
        let output = anabranch(here, &["cat", "127.0.0.1", &format!("--ppid={wrong}")]).output();
        let output = output.expect("the command starts");
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(text(&output.stderr).contains("0xffffffff"), "{wrong}");
    }
}
