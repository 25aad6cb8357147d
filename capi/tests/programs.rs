//! Tests of C programs and Debian's programs on a host in this process.

mod common;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anabranch_interop::namespace;
use anabranch_net::sctp::Authentication;
use common::{compile, compile_with, encapsulated, library, libsctp, run, run_at, run_with, text};

#[test]
fn sockets_behave_as_rfc_6458_says() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile("semantics", folder.path());
    let output = run(Command::new(program).arg("5001"));
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(text(&output), "as it should be\n");
}

/// Sends messages of several frames to a peer that does not read.
#[test]
fn a_large_message_does_not_wait_where_the_program_does_not() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile("large", folder.path());
    let output = run(Command::new(program).arg("5800"));
    assert_eq!(text(&output), "as it should be\n");
}

/// Several threads of two processes send messages of several frames at the same time.
#[test]
fn large_messages_of_several_threads_are_not_mixed() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile_with("pieces", folder.path(), &["-lpthread"]);
    let output = run(Command::new(program).arg("5850"));
    assert_eq!(text(&output), "whole\n");
}

/// Signals without SA_RESTART interrupt the system calls that the library makes.
#[test]
fn a_signal_is_not_the_end_of_the_host() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile_with("interrupted", folder.path(), &[]);
    let output = run(Command::new(program).arg("5870"));
    assert_eq!(text(&output), "ended\n");
}

#[test]
fn undelivered_messages_are_returned() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile("undelivered", folder.path());
    let output = run(Command::new(program).arg("5700"));
    assert_eq!(text(&output), "as it should be\n");
}

/// A program should find the functions in each possible way: by linking with the library, by
/// dlopen, or in a static copy.
#[test]
fn functions_are_found_linked_opened_and_in_a_copy() {
    let folder = tempfile::tempdir().expect("a directory");
    let both = [library(), libsctp()];
    let ours = libsctp().to_string_lossy().into_owned();
    let ways: [(&[&str], &[PathBuf], &str); 3] = [
        (&["-lsctp"], &both, &ours),
        (&["-DOPENED"], &both, &ours),
        (&["-DCOPIED", "-l:libsctp.a"], &both[..1], "functions"),
    ];
    for (arguments, preload, place) in ways {
        let program = compile_with("functions", folder.path(), arguments);
        let output = run_with(Command::new(program).arg("5001"), preload);
        let said = text(&output);
        assert!(output.status.success(), "{arguments:?}: {said}");
        let right = said.ends_with("as it should be\n")
            && said.lines().next().is_some_and(|it| it.ends_with(place));
        assert!(right, "{arguments:?}: {said}");
    }
}

/// The library should have the symbol names and versions of Linux's library, and one symbol that
/// Linux's header declares but its library lacks.
#[test]
fn the_library_has_the_symbols_and_versions_of_linux() {
    let symbols = |library: &str| {
        let output = Command::new("objdump").args(["-T", library]).output();
        let output = output.expect("objdump is there");
        let lines = text(&output);
        let lines = lines.lines().filter(|it| it.contains(" sctp_"));
        let mut all: Vec<_> = lines
            .filter_map(|it| it.rsplit_once('\t'))
            .filter_map(|(_, it)| it.split_once(' '))
            .map(|(_, it)| it.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        all.sort();
        all
    };
    let mut ours = symbols(&libsctp().to_string_lossy());
    ours.retain(|it| !it.ends_with("sctp_peeloff_flags"));
    // The functions of the DTLS chunk, which Linux does not have, have a version of their own.
    let former = ours.len();
    ours.retain(|it| !it.contains("ANABRANCH_1 sctp_dtls_"));
    assert_eq!(former - ours.len(), 2, "{ours:?}");
    let there = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
    let theirs = there.iter().map(|it| format!("{it}/libsctp.so.1"));
    let Some(theirs) = theirs.into_iter().find(|it| Path::new(it).exists()) else {
        eprintln!("left out: libsctp1 is not installed (scripts/setup)");
        return;
    };
    assert!(ours.len() > 15, "{ours:?}");
    assert_eq!(ours, symbols(&theirs));
}

/// Runs a shell script of Debian's programs, with both ends on one host. If a program is not
/// installed, prints a message and returns `None`.
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

/// Data is sent in one direction only: SCTP has no half-closed state (RFC 9260 §9.2), so an echo of
/// the last data could not be sent.
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

/// Runs `body` in a new network namespace, if that is allowed, with a free TCP port.
fn alone<R: Send>(body: impl FnOnce(u16) -> R + Send) -> R {
    let free = || {
        let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
        listener.local_addr().expect("bound").port()
    };
    match namespace::allowed() {
        Ok(()) => namespace::inside(|| Ok(body(free()))).expect("a network"),
        Err(_) => body(free()),
    }
}

#[test]
fn iperf3_measures_either_way_and_over_several_associations() {
    // With only --nstreams, iperf3 3.12 sends one message and stops; with -b 0 in addition, it
    // continues.
    for options in ["-n 4M", "-n 4M -R", "-n 4M -P 3", "-n 4M --nstreams 8 -b 0"] {
        // The client and the server of iperf3 also communicate over TCP, at the same port.
        let script = |port: u16| {
            format!(
                "exec {{server}}< <(exec stdbuf -oL iperf3 -s -1 -p {port})
                 until read -r line <&$server && [[ $line == *listening* ]]; do :; done
                 iperf3 -c 127.0.0.1 -p {port} --sctp {options} -J
                 cat <&$server >/dev/null"
            )
        };
        let Some(output) = alone(|port| shell("iperf3", &script(port))) else {
            return;
        };
        let all: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
        // The receiver stops counting when the sender reports the end over TCP, while some data is
        // still in transit.
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

/// Runs every test case of `sctp_test` from lksctp-tools, over one-to-many and one-to-one sockets.
/// Ten messages should arrive completely.
#[test]
fn sctp_test_sends_what_it_has_in_each_case() {
    for style in ["", "-T"] {
        for case in 0..=6 {
            let script = format!(
                "exec {{server}}< <(exec stdbuf -oL sctp_test -H 127.0.0.1 -P 5001 -l {style} 2>&1)
                 until read -r line <&$server && [[ $line == *Receiving* || $line == *accept* ]]; do :; done
                 sctp_test -H 127.0.0.1 -P 5002 -h 127.0.0.1 -p 5001 -s -c {case} -x 1 {style} || exit
                 for ((n = 0; n < 10;)); do
                     read -r line <&$server || exit
                     [[ $line == *recvmsg*Data* ]] && ((++n))
                 done
                 echo all"
            );
            let Some(output) = shell("sctp_test", &script) else {
                return;
            };
            let said = text(&output);
            assert!(said.ends_with("all\n"), "{style} -c {case}: {said}");
        }
    }
}

/// Runs `sctp_darn` from lksctp-tools, over one-to-many and one-to-one sockets, and with its
/// interactive commands.
#[test]
fn sctp_darn_sends_lines_and_obeys_commands() {
    let commands =
        "snd=5\nstats\nprimary=127.0.0.1\nheartbeat=127.0.0.1\nmaxseg=900\nnodelay=1\nshutdown\n";
    let ways = [
        ("", "first\nsecond\n"),
        ("-t", "first\nsecond\n"),
        ("-I", commands),
    ];
    for (how, input) in ways {
        // Only the sender runs in interactive mode.
        let server = if how == "-I" { "" } else { how };
        let last = if how == "-I" { "*DATA*5*" } else { "*second*" };
        let script = format!(
            "trap 'kill $listening $sending 2>/dev/null' EXIT
             exec {{server}}< <(exec stdbuf -oL sctp_darn -H 127.0.0.1 -P 5001 -l {server} 2>&1)
             listening=$!
             until read -r line <&$server && [[ $line == *listening* ]]; do :; done
             exec {{client}}> >(exec sctp_darn -H 127.0.0.1 -P 5002 -h 127.0.0.1 -p 5001 -s {how} >&2)
             sending=$!
             printf '{input}' >&$client
             until read -r line <&$server && echo \"$line\" && [[ $line == {last} ]]; do :; done
             exec {{client}}>&-
             until read -r line <&$server && echo \"$line\" && [[ $line == *'No association is present now'* ]]; do :; done
             echo all"
        );
        let Some(output) = shell("sctp_darn", &script) else {
            return;
        };
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.ends_with("all\n"), "{how}: {}", text(&output));
    }
}

#[test]
fn options_have_their_effects() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile_with("effects", folder.path(), &[]);
    let output = run(Command::new(program).arg("5001"));
    assert_eq!(text(&output), "effects\n");
}

/// Calls with invalid pointers, peers on the same machine, addresses and their ports, and local
/// shutdown.
#[test]
fn arguments_are_taken_as_linux_takes_them() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile("arguments", folder.path());
    let output = run(Command::new(program).arg("5001"));
    assert_eq!(text(&output), "arguments\n");
}

/// Notifications should keep their position between messages, even if the program reads slowly.
#[test]
fn notifications_stay_between_the_messages_that_they_came_between() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile("order", folder.path());
    let output = run(Command::new(program).arg("5001"));
    assert_eq!(text(&output), "order\n");
}

/// A program that ends a blocked thread with `pthread_cancel`, and then waits for this thread,
/// should not wait forever.
#[test]
fn threads_that_wait_can_be_cancelled() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile_with("cancelled", folder.path(), &["-lsctp", "-lpthread"]);
    let output = run(Command::new(program).arg("5001"));
    assert_eq!(text(&output), "cancelled\n");
}

/// A peer that does not read should delay only its own messages, not those to other peers of the
/// same socket.
#[test]
fn a_peer_that_reads_nothing_holds_up_no_other() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile_with("unread", folder.path(), &["-lpthread"]);
    let output = run(Command::new(program).arg("5001"));
    assert_eq!(text(&output), "unread\n");
}

#[test]
fn a_server_restarts_at_its_port() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile_with("restart", folder.path(), &[]);
    let output = run(Command::new(program).arg("5001"));
    assert_eq!(text(&output), "restarted\n");
}

/// AUTH is enabled for all sockets of the host, as by Linux's `net.sctp.auth_enable`, and not by a
/// socket option of the program.
#[test]
fn a_dtls_library_changes_the_keys_of_auth() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile_with("keys", folder.path(), &[]);
    let config = encapsulated(&[]).with(|it| it.sctp.authentication = Authentication::On);
    let output = run_at(Command::new(program).arg("5001"), &[library()], config);
    assert_eq!(text(&output), "keys\n");
}

/// One process has a thousand sockets with one association each; another process has the other
/// ends.
#[test]
fn one_process_has_a_thousand_sockets() {
    // This process is the host, which needs two descriptors for each association.
    let process = std::process::id().to_string();
    let raised = Command::new("prlimit")
        .args(["--pid", &process, "--nofile=8192:"])
        .status();
    if !raised.is_ok_and(|it| it.success()) {
        eprintln!("left out: 8,192 descriptors are not allowed");
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile("thousand_sockets", folder.path());
    let output = run(Command::new(program).args(["5001", "1000"]));
    assert_eq!(text(&output), "1000\n");
}

/// Descriptors that are not SCTP sockets should be unaffected.
#[test]
fn other_descriptors_are_left_alone() {
    let mut command = Command::new("sh");
    let output = run(command.args(["-c", "echo one | cat; exec 3</dev/null; cat <&3; exit 3"]));
    assert_eq!(
        (output.status.code(), text(&output).as_str()),
        (Some(3), "one\n")
    );
}
