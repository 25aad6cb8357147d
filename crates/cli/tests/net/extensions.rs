//! Extensions that are enabled by `--set`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use serde_json::json;

use crate::common::{Beside, SMALL, anabranch, json, run, server, text};

/// Asserts that these arguments are a usage error whose message contains these words.
fn assert_refused(here: &Path, arguments: &[&str], words: &str) {
    let output = run(here, arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(said.contains(words), "{arguments:?}: {said}");
}

/// Asserts that these arguments fail with an error that contains these words.
fn assert_failed(here: &Path, arguments: &[&str], words: &str) {
    let output = run(here, arguments);
    let said = text(&output.stderr) + &text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    assert!(said.contains(words), "{arguments:?}: {said}");
}

/// A sink that does not exit after its first association.
fn lasting_sink(here: &Path, more: &[&str]) -> Beside {
    let arguments = [&["serve", "sink", "--udp-port", "0"], more].concat();
    Beside::start(here, &arguments)
}

/// A short measurement with the server at this UDP port.
fn perf_at(port: &str) -> [&str; 7] {
    [
        "perf",
        "127.0.0.1",
        "--peer-udp-port",
        port,
        "-n",
        "1 MB",
        "-J",
    ]
}

/// Both ends offer four extensions, with a key from a file. All are used and listed, and the key
/// authenticates the data.
#[test]
fn negotiated_extensions_are_listed_by_the_names_of_the_settings() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    fs::write(here.join("shared.key"), "a secret of both\n").expect("a file");
    let offered = [
        "--set",
        "interleaving=true",
        "--set",
        "reconfiguration=true",
        "--set",
        "authentication=required",
        "--set",
        "authenticated_chunks=[\"i_data\"]",
        "--auth-key",
        "1=shared.key",
    ];
    let mut sink = server(here, "sink", &[&["--json"], &offered[..]].concat());
    let document: serde_json::Value = serde_json::from_str(&sink.first).expect("JSON");
    let port = document["udp_port"].to_string();
    let perf = perf_at(&port);
    let document = json(&run(here, &[&perf[..], &offered].concat()));
    let spoken = json!(["interleaving", "reconfiguration", "authentication"]);
    assert_eq!(document["start"]["extensions"], spoken);
    assert_eq!(document["end"]["sum_received"]["bytes"], 1_000_000);
    let up: serde_json::Value = serde_json::from_str(&sink.line()).expect("JSON");
    assert_eq!(up["event"], "up");
    assert_eq!(up["extensions"], spoken);
    assert_eq!(sink.end().0, 0);
}

/// All packets are encrypted with a secret that both ends have. A peer with another secret, or
/// none, is refused.
#[test]
fn a_preshared_secret_encrypts() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    fs::write(here.join("psk"), "a secret of both ends\n").expect("a file");
    fs::write(here.join("other"), "a secret of one end\n").expect("a file");
    let secret = ["--psk-file", "psk"];
    let mut sink = lasting_sink(here, &[&["--json"], &secret[..]].concat());
    let document: serde_json::Value = serde_json::from_str(&sink.first).expect("JSON");
    let port = document["udp_port"].to_string();
    let perf = perf_at(&port);
    let document = json(&run(here, &[&perf[..], &secret].concat()));
    assert_eq!(document["start"]["extensions"], json!(["security"]));
    assert_eq!(document["end"]["sum_received"]["bytes"], 1_000_000);
    let up: serde_json::Value = serde_json::from_str(&sink.line()).expect("JSON");
    assert_eq!(up["extensions"], json!(["security"]));
    for (wrong, word) in [
        (&[][..], "cause 100"),
        (&["--psk-file", "other"], "the association ended"),
    ] {
        assert_failed(here, &[&perf[..], wrong].concat(), word);
    }
    for (options, word) in [
        (&["--psk-file", "none"][..], "cannot read"),
        (&["--set", "security=dtls-chunk"], "--psk-file"),
    ] {
        let output = run(here, &[&perf[..], options].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(word));
    }
}

/// Creates a certificate with this name, issued by `issuer`, and its key, in the files `NAME.pem`
/// and `NAME.key`.
fn certify(here: &Path, issuer: &CertifiedIssuer<'static, KeyPair>, name: &str) {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    let uri = format!("spiffe://example.org/{name}");
    params.subject_alt_names = vec![SanType::URI(uri.try_into().expect("ASCII"))];
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, issuer).expect("signed");
    fs::write(here.join(format!("{name}.pem")), certificate.pem()).expect("a file");
    fs::write(here.join(format!("{name}.key")), key.serialize_pem()).expect("a file");
}

/// Creates certificates with these names; returns the options for each, which trust their
/// authority.
fn certificates<const N: usize>(here: &Path, names: [&'static str; N]) -> [[&'static str; 6]; N] {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(params, key).expect("signed");
    fs::write(here.join("authority.pem"), authority.pem()).expect("a file");
    names.map(|name| {
        certify(here, &authority, name);
        let [certificate, key] = ["pem", "key"].map(|it| &*format!("{name}.{it}").leak());
        [
            "--tls-cert",
            certificate,
            "--tls-key",
            key,
            "--tls-ca",
            "authority.pem",
        ]
    })
}

/// Options that select DTLS 1.2 over SCTP.
const RFC6083: [&str; 2] = ["--security", "rfc6083"];

/// Both ends authenticate by certificates, and refuse a peer with another name or without a
/// certificate.
#[test]
fn certificates_authenticate_both_ends() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let [amf, gnb, other] = certificates(here, ["amf", "gnb", "other"]);
    let only = ["--json", "--tls-name", "spiffe://example.org/gnb"];
    let mut sink = lasting_sink(here, &[&only[..], &amf].concat());
    let document: serde_json::Value = serde_json::from_str(&sink.first).expect("JSON");
    let port = document["udp_port"].to_string();
    let perf = perf_at(&port);
    let document = json(&run(here, &[&perf[..], &gnb].concat()));
    assert_eq!(document["end"]["sum_received"]["bytes"], 1_000_000);
    let up: serde_json::Value = serde_json::from_str(&sink.line()).expect("JSON");
    assert_eq!(up["identity"], "spiffe://example.org/gnb");
    let another = [&gnb[..], &["--tls-name", "spiffe://example.org/other"]].concat();
    for (wrong, word) in [
        (&[][..], "cause 100"),
        (&other, "cause 13"),
        (&another, "none of the expected names"),
    ] {
        assert_failed(here, &[&perf[..], wrong].concat(), word);
    }
    for (options, word) in [
        (
            &[
                "--tls-cert",
                "none",
                "--tls-key",
                "gnb.key",
                "--tls-ca",
                "authority.pem",
            ][..],
            "cannot read",
        ),
        (
            &[
                "--tls-cert",
                "gnb.pem",
                "--tls-key",
                "amf.key",
                "--tls-ca",
                "authority.pem",
            ],
            "--tls-cert",
        ),
        (
            &["--tls-cert", "gnb.pem", "--tls-key", "gnb.key"],
            "--tls-ca",
        ),
        (&["--tls-cert", "gnb.pem"], "--tls-key"),
    ] {
        assert_refused(here, &[&perf[..], options].concat(), word);
    }
}

/// Options of `wrap` that contradict each other, or would have no effect.
#[test]
fn wrap_refuses_protection_that_cannot_be() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let [amf] = certificates(here, ["amf"]);
    fs::write(here.join("psk"), "a secret of both ends").expect("a file");
    let secure = [&["--secure"], &amf[..]].concat();
    for (options, words) in [
        (amf.to_vec(), "--tls-cert: found without --secure"),
        (
            vec!["--psk-file", "psk"],
            "--psk-file: found without --secure",
        ),
        (vec!["--secure"], "--secure needs --tls-cert"),
        (
            [&secure[..], &["--auth"]].concat(),
            "--auth: found with --secure",
        ),
        ([&secure[..], &RFC6083].concat(), "rfc6083: found with wrap"),
        ([&amf[..], &RFC6083].concat(), "rfc6083: found with wrap"),
        (
            [&secure[..], &["--psk-file", "psk"]].concat(),
            "cannot be used with",
        ),
        (secure[..5].to_vec(), "--tls-cert needs --tls-ca"),
        (vec!["--secure", "--psk-file", "none"], "cannot read"),
        (vec!["--secure", "--tls-cert", "amf.pem"], "--tls-key"),
    ] {
        assert_refused(
            here,
            &[&["wrap"], &options[..], &["--", "true"]].concat(),
            words,
        );
    }
}

/// RFC 6083 encrypts messages in both directions, and only user data is counted.
#[test]
fn rfc_6083_protects_both_directions() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let [amf, gnb] = certificates(here, ["amf", "gnb"]);
    let mut sink = lasting_sink(here, &[&["--json"], &RFC6083[..], &amf].concat());
    let document: serde_json::Value = serde_json::from_str(&sink.first).expect("JSON");
    let port = document["udp_port"].to_string();
    let perf = [&perf_at(&port)[..], &RFC6083, &gnb].concat();
    for more in [&[][..], &["-l", "16384"], &["-R"]] {
        let document = json(&run(here, &[&perf[..], more].concat()));
        let end = &document["end"];
        assert_eq!(document["start"]["extensions"], json!(["authentication"]));
        assert_eq!(end["sum_sent"]["bytes"], 1_000_000, "{more:?}: {end}");
        assert_eq!(end["sum_received"]["bytes"], 1_000_000, "{more:?}: {end}");
        for event in ["up", "end"] {
            let line: serde_json::Value = serde_json::from_str(&sink.line()).expect("JSON");
            assert_eq!(line["event"], event);
            match event {
                "up" => assert_eq!(line["identity"], "spiffe://example.org/gnb"),
                _ => assert_eq!(line["error"], json!(null), "{line}"),
            }
        }
    }
    let echo = [&["--capture", "echo.pcapng"], &RFC6083[..], &amf].concat();
    let echo = server(here, "echo", &echo);
    let port = echo.port("UDP port");
    let cat = [
        "cat",
        "127.0.0.1",
        "--wait",
        "60 s",
        "--peer-udp-port",
        &port,
    ];
    let mut client = anabranch(here, &[&cat[..], &RFC6083, &gnb].concat());
    client.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut client = client.spawn().expect("it starts");
    let mut input = client.stdin.take().expect("piped");
    input.write_all(b"hidden\n").expect("it reads");
    let output = client.stdout.take().expect("piped");
    let mut output = BufReader::new(output);
    let mut first = String::new();
    output.read_line(&mut first).expect("text");
    assert_eq!(first, "hidden\n");
    drop(input);
    assert_eq!(client.wait().expect("it ends").code(), Some(0));
    assert_eq!(echo.end().0, 0);
    let capture = fs::read(here.join("echo.pcapng")).expect("a capture");
    let has = |word: &[u8]| capture.windows(word.len()).any(|it| it == word);
    // DTLS 1.2 sends certificates unencrypted.
    assert!(has(b"spiffe://example.org/gnb") && !has(b"hidden"));
}

/// Ends with different protocols, and options without effect, are refused with a reason.
#[test]
fn rfc_6083_is_refused_with_another_protocol() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let [amf, gnb] = certificates(here, ["amf", "gnb"]);
    let chunk = ["--security", "dtls-chunk"];
    let with_rfc = [&RFC6083[..], &gnb].concat();
    let with_chunk = [&chunk[..], &gnb].concat();
    for (server, client, words) in [
        (
            &[&RFC6083[..], &amf].concat(),
            &with_chunk,
            "--security rfc6083",
        ),
        (
            &[&RFC6083[..], &amf].concat(),
            &Vec::new(),
            "--security rfc6083",
        ),
        (
            &[&chunk[..], &amf].concat(),
            &with_rfc,
            "DTLS chunk: --psk-file",
        ),
        (
            &Vec::new(),
            &with_rfc,
            "does the server have --security rfc6083?",
        ),
    ] {
        let sink = lasting_sink(here, server);
        let port = sink.port("UDP port");
        assert_failed(here, &[&perf_at(&port)[..], client].concat(), words);
    }
    let only = [&with_rfc[..], &["--tls-name", "spiffe://example.org/hss"]].concat();
    let sink = lasting_sink(here, &[&RFC6083[..], &amf].concat());
    let port = sink.port("UDP port");
    assert_failed(here, &[&perf_at(&port)[..], &only].concat(), "names");
    fs::write(here.join("shared.key"), "secret").expect("a file");
    for (more, words) in [
        (&["-l", "32K"][..], "allowed: 1 B to 16 KiB"),
        (
            &["--auth-key", "1=shared.key", "--set", "authentication=on"],
            "--auth-key",
        ),
        (&["--set", "authentication=on"], "--set authentication"),
        (&["--set", "security=dtls-chunk"], "use one of them"),
    ] {
        assert_refused(here, &[&perf_at("9")[..], &with_rfc, more].concat(), words);
    }
    assert_refused(here, &[&perf_at("9")[..], &RFC6083].concat(), "--tls-cert");
}

/// Abandoned messages are counted separately, and the other end still reports the messages that it
/// received.
#[test]
fn messages_that_are_abandoned_are_not_counted_as_sent() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let partial = ["--set", "partial_reliability=true"];
    let sink = server(here, "sink", &[&partial[..], &SMALL].concat());
    let port = sink.port("UDP port");
    let arguments = [
        "perf",
        "127.0.0.1",
        "--peer-udp-port",
        &port,
        "-t",
        "1 s",
        "-J",
        "--set",
        "lifetime=1 us",
    ];
    let document = json(&run(here, &[&arguments[..], &partial].concat()));
    let end = &document["end"];
    assert!(end["sum_sent"]["abandoned"].as_u64() > Some(0), "{end}");
    let received = end["sum_received"]["messages"].as_u64();
    assert!(received.is_some(), "the other end told: {end}");
    assert!(received >= end["sum_sent"]["messages"].as_u64(), "{end}");
}

/// With concurrent multipath transfer each path carries data.
#[test]
fn both_paths_carry_data_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let homes = ["--local", "127.0.0.1", "--local", "127.0.0.2"];
    let sink = server(here, "sink", &[&homes[..], &SMALL].concat());
    let port = sink.port("UDP port");
    let arguments = [
        "perf",
        "127.0.0.1",
        "--path",
        "127.0.0.2",
        "--peer-udp-port",
        &port,
        "-t",
        "2 s",
        "-J",
        "--set",
        "cmt=true",
        "--congestion",
        "lia",
    ];
    let document = json(&run(here, &[&arguments[..], &homes].concat()));
    let paths = document["end"]["streams"][0]["paths"].as_array();
    let paths = paths.expect("a list");
    let sent: Vec<u64> = paths
        .iter()
        .filter_map(|it| it["bytes_sent"].as_u64())
        .collect();
    assert_eq!(sent.len(), 2, "{document}");
    assert!(sent.iter().all(|it| *it > 0), "{sent:?}");
    assert_eq!(
        document["end"]["sum_received"]["bytes"],
        document["end"]["sum_sent"]["bytes"]
    );
}

const CHANGES: [&str; 4] = [
    "--set",
    "authentication=on",
    "--set",
    "address_changes=true",
];

/// The server requests in its INIT ACK that data is sent to its second address.
#[test]
fn data_goes_to_the_address_that_a_server_prefers() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let homes = ["--local", "127.0.0.1", "--local", "127.0.0.2"];
    let prefers = ["--preferred-address", "127.0.0.2"];
    let sink = server(
        here,
        "sink",
        &[&homes[..], &prefers, &CHANGES, &SMALL].concat(),
    );
    let port = sink.port("UDP port");
    let arguments = ["perf", "127.0.0.1", "-t", "1 s", "-J", "--peer-udp-port"];
    let client = [&arguments[..], &[&port], &homes, &CHANGES].concat();
    let document = json(&run(here, &client));
    let paths = document["end"]["streams"][0]["paths"].as_array();
    let sent = |it: &serde_json::Value| it["bytes_sent"].as_u64().expect("a number");
    let preferred = |it: &&serde_json::Value| it["address"] == "127.0.0.2";
    let path = paths.expect("a list").iter().find(preferred);
    assert!(path.map(sent) > Some(0), "{document}");
}

#[test]
fn preferences_that_cannot_be_are_reported_before_anything_is_sent() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let prefers = ["perf", "127.0.0.1", "--preferred-address", "127.0.0.2"];
    let other = ["--local", "127.0.0.1"];
    for (more, words) in [
        (&[][..], "address_changes=true"),
        (&[&other[..], &CHANGES].concat(), "one of addresses"),
    ] {
        assert_refused(here, &[&prefers[..], more].concat(), words);
    }
}

/// `cat` changes its address and continues from the new one; it sends no data before the change. No
/// other test uses these addresses, so a UDP port that is free at one is free at the other.
#[test]
fn a_client_moves_to_another_address() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let sink = server(here, "echo", &CHANGES);
    let port = sink.port("UDP port");
    let arguments = [
        "cat",
        "127.0.0.1",
        "--peer-udp-port",
        &port,
        "--local",
        "127.0.31.1",
        "--add-address",
        "127.0.31.2",
        "--peer-primary",
        "127.0.31.2",
        "--remove-address",
        "127.0.31.1",
        "--wait",
        "60 s",
    ];
    let mut command = anabranch(here, &[&arguments[..], &CHANGES].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut client = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = BufReader::new(client.stderr.take().expect("piped")).lines();
    for expected in [
        "127.0.31.2: added",
        "127.0.31.2: the peer sends to it first",
        "127.0.31.1: removed",
    ] {
        assert_eq!(said.next().expect("a line").expect("text"), expected);
    }
    let mut input = client.stdin.take().expect("piped");
    input.write_all(b"from the new one\n").expect("it reads");
    input.flush().expect("it reads");
    let mut heard = BufReader::new(client.stdout.take().expect("piped")).lines();
    assert_eq!(
        heard.next().expect("a line").expect("text"),
        "from the new one"
    );
    client.kill().expect("it runs");
    client.wait().expect("it ends");
}

#[test]
fn moves_that_cannot_be_are_reported_before_anything_is_sent() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    for (more, words) in [
        (&["--add-address", "127.0.0.3"][..], "address_changes=true"),
        (&["--remove-address", "localhost"], "write an IP address"),
        (&["--peer-primary", "127.0.0.3@soon"], "--peer-primary"),
    ] {
        assert_refused(here, &[&["perf", "127.0.0.1"], more].concat(), words);
    }
}

#[test]
fn keys_that_cannot_be_used_are_reported_before_anything_is_sent() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    fs::write(here.join("shared.key"), "secret").expect("a file");
    let on = ["--set", "authentication=on"];
    for (keys, more, words) in [
        (&["--auth-key", "1=nowhere.key"][..], &on[..], "nowhere.key"),
        (&["--auth-key", "65536=shared.key"], &on, "0 to 65535"),
        (&["--auth-key", "shared.key"], &on, "ID=FILE"),
        (&["--auth-key", "1=shared.key"], &[], "authentication=on"),
        (
            &["--auth-key", "1=shared.key", "--auth-key", "1=shared.key"],
            &on,
            "twice",
        ),
    ] {
        assert_refused(here, &[&["perf", "127.0.0.1"], keys, more].concat(), words);
    }
}
