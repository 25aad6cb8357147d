//! Tests of `serve`: output that is not read, threads, metrics, and the streams of its echo.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::Stdio;

use anabranch_net::{Carrier, Config, Endpoint, Peer, SendOptions};

use crate::common::{Beside, anabranch, number_after, run, signal, text};

/// Capacity of a pipe, bytes (pipe(7)).
const PIPE: usize = 65_536;

/// If the pipe for the server's output is full, for example because its reader has stopped, the
/// server should still serve associations, and a signal should end it.
#[test]
fn a_server_serves_and_ends_although_its_output_is_not_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let mut server = anabranch(here, &["serve", "sink", "--udp-port", "0"])
        // There are fewer threads than associations. Each association prints a line before it
        // reads, so prints that block would stop all threads.
        .env("TOKIO_WORKER_THREADS", "2")
        .stdout(Stdio::from(writer.try_clone().expect("a pipe")))
        .spawn()
        .expect("the command starts");
    let mut reader = BufReader::new(reader);
    let mut first = String::new();
    reader.read_line(&mut first).expect("it says where");
    let port = number_after(&first, "UDP port");
    writer.write_all(&[b'.'; PIPE]).expect("room for them");
    for _ in 0..3 {
        let perf = ["perf", "127.0.0.1", "--peer-udp-port", &port, "-P", "8"];
        let output = run(here, &[&perf[..], &["-n", "1M", "-i", "0"]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    signal(&server, "TERM");
    assert_eq!(server.wait().expect("it ends").code(), Some(0));
    drop(reader);
}

/// A client that requests many streams gets each answer on the stream of its message.
#[test]
fn an_echo_comes_back_on_its_stream() {
    let directory = tempfile::tempdir().expect("a directory");
    let echo = Beside::start(directory.path(), &["serve", "echo", "--udp-port", "0"]);
    let port = echo.port("UDP port").parse().expect("a port");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut config = Config::default().with(|it| it.carrier = Carrier::client());
        config.sctp.outbound_streams = u16::MAX;
        config.sctp.inbound_streams = u16::MAX;
        let client = Endpoint::bind(config).expect("a socket");
        let peer = Peer::from(([127, 0, 0, 1], 5_001)).over_udp(port);
        let association = client.connect(peer).await.expect("it listens");
        for stream in [0, 9, 10, 37, 2_999, 65_534] {
            let sent = association.send("hello", SendOptions::on(stream));
            sent.await.expect("so many streams");
            let back = association.recv().await.expect("up").expect("open");
            assert_eq!((back.stream, &back.bytes[..]), (stream, &b"hello"[..]));
        }
        association.shutdown().await.expect("graceful");
    });
}

fn scrape(at: &str) -> String {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{at}")).expect("it listens");
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("room");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

fn value(page: &str, name: &str) -> f64 {
    let named = |line: &&str| line.split(' ').next() == Some(name);
    let text = page
        .lines()
        .find(named)
        .and_then(|line| line.split(' ').nth(1));
    let text = text.unwrap_or_else(|| panic!("no {name} in {page}"));
    text.parse().expect("a number")
}

/// With several threads, a server is still one server for its clients. Its metrics include all
/// threads, and one signal ends all of them.
#[test]
fn threads_are_one_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let serve = ["serve", "sink", "-p", "7", "-p", "5001", "--udp-port", "0"];
    let more = ["--threads", "3", "--metrics", "127.0.0.1:0"];
    let mut sink = Beside::start(here, &[&serve[..], &more].concat());
    let port = sink.port("UDP port");
    assert!(sink.first.contains("SCTP ports 7, 5001,"), "{}", sink.first);
    assert!(
        sink.first.trim_end().ends_with(", on 3 threads"),
        "{}",
        sink.first
    );
    let at = number_after(&sink.line(), "http://127.0.0.1:");
    for sctp_port in ["7", "5001"] {
        let perf = [
            "perf",
            "127.0.0.1",
            "-p",
            sctp_port,
            "--peer-udp-port",
            &port,
        ];
        let output = run(
            here,
            &[&perf[..], &["-P", "8", "-n", "1M", "-i", "0"]].concat(),
        );
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let mut page = scrape(&at);
    while value(&page, "sctp_associations") > 0.0 {
        page = scrape(&at);
    }
    assert_eq!(value(&page, "sctp_associations_begun_total"), 16.0);
    assert_eq!(value(&page, "sctp_associations_failed_total"), 0.0);
    let received = value(&page, "sctp_packets_received_total");
    assert!(value(&page, "sctp_packets_handed_over_total") < received);
    signal(&sink.child, "TERM");
    let (status, _) = sink.end();
    assert_eq!(status, 0);
    let refused = run(
        here,
        &["serve", "sink", "--threads", "2", "--carrier", "ip"],
    );
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("directly over IP"));
}

/// The metrics contain totals over open and ended associations, and drops.
#[test]
fn metrics_count_open_and_ended_associations() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let arguments = ["--udp-port", "0", "--metrics", "127.0.0.1:0"];
    let mut sink = Beside::start(here, &[&["serve", "sink"], &arguments[..]].concat());
    let port = sink.port("UDP port");
    let line = sink.line();
    let at = number_after(&line, "http://127.0.0.1:");
    let before = scrape(&at);
    assert_eq!(value(&before, "sctp_associations_begun_total"), 0.0);
    for _ in 0..2 {
        let perf = [
            "perf",
            "127.0.0.1",
            "--peer-udp-port",
            &port,
            "-n",
            "1M",
            "-i",
            "0",
        ];
        let output = run(here, &perf);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    // The end of the second association is counted when the server prints its line, or shortly
    // afterwards.
    let bytes = |page: &str| value(page, "sctp_data_bytes_received_total");
    let ended = |page: &str| value(page, "sctp_associations") == 0.0 && bytes(page) >= 2_097_152.0;
    let mut page = scrape(&at);
    while !ended(&page) {
        page = scrape(&at);
    }
    assert_eq!(value(&page, "sctp_associations_begun_total"), 2.0);
    assert_eq!(value(&page, "sctp_associations_failed_total"), 0.0);
    // Sends a datagram that is not an SCTP packet.
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let to = format!("127.0.0.1:{port}");
    socket.send_to(b"hello", to).expect("loopback");
    let discards = r#"sctp_discards_total{reason="malformed"}"#;
    while !page.contains(discards) {
        page = scrape(&at);
    }
    assert_eq!(value(&page, discards), 1.0);
}

/// An SDP offer for data channels.
const OFFER: &str = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n\
    c=IN IP4 0.0.0.0\r\na=mid:0\r\na=setup:actpass\r\na=sctp-port:5000\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n\
    a=fingerprint:sha-256 00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:17:18:19:1A:1B:1C:1D:1E:1F\r\n";

/// A web page of another server should not be able to occupy connections of this server, and an
/// offer should not be able to fill its log.
#[test]
fn offers_take_little_of_a_server_of_data_channels() {
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = [
        "serve",
        "data-channels",
        "--http",
        "127.0.0.1:0",
        "--connections",
        "1",
    ];
    let mut server = Beside::start(directory.path(), &arguments);
    let at = server.port("http://127.0.0.1:");
    let offer = |query: &str, more: &str| {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{at}")).expect("it listens");
        let length = OFFER.len();
        let request = format!(
            "POST /offer{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n{more}\r\n{OFFER}"
        );
        stream.write_all(request.as_bytes()).expect("room");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        answer.split(' ').nth(1).expect("a status").to_owned()
    };
    for site in ["cross-site", "same-site"] {
        let site = format!("Sec-Fetch-Site: {site}\r\n");
        assert_eq!(offer("", &site), "403", "{site}");
    }
    assert_eq!(
        offer("?open=65535", "Sec-Fetch-Site: same-origin\r\n"),
        "200"
    );
    let mut line = server.line();
    while line.starts_with("channel") {
        line = server.line();
    }
    let refused = "not opened: 64511 channels: 1024 channels are open";
    assert!(line.starts_with(refused), "{line}");
    signal(&server.child, "TERM");
    let (status, rest) = server.end();
    assert_eq!(status, 0);
    assert!(!rest.contains("not opened"), "{rest}");
}

/// An association beyond the limit is refused, and is accepted after another one has ended.
#[test]
fn a_port_has_so_many_associations_as_are_allowed() {
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = [
        "serve",
        "sink",
        "--udp-port",
        "0",
        "--max-associations",
        "2",
    ];
    let server = Beside::start(directory.path(), &arguments);
    let port = server.port("UDP port").parse().expect("a port");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let bind = || {
            let config = Config::default().with(|it| it.carrier = Carrier::client());
            Endpoint::bind(config).expect("a socket")
        };
        let peer = || Peer::from(([127, 0, 0, 1], 5_001)).over_udp(port);
        let connect = async || bind().connect(peer()).await;
        let first = connect().await.expect("the first");
        let other = connect().await.expect("the second");
        assert!(connect().await.is_err());
        first.shutdown().await.expect("graceful");
        // Repeated, because the server's end of the association ends a moment later.
        while connect().await.is_err() {}
        drop(other);
    });
}

/// Log entries are printed on standard error if enabled; an invalid filter is an error.
#[test]
fn rust_log_says_what_associations_do() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let sink = Beside::start(here, &["serve", "sink", "--udp-port", "0"]);
    let port = sink.port("UDP port");
    let perf = [
        "perf",
        "127.0.0.1",
        "--peer-udp-port",
        &port,
        "-n",
        "1K",
        "-i",
        "0",
    ];
    let logged = |filter: &str| {
        let mut command = anabranch(here, &perf);
        let output = command.env("RUST_LOG", filter).output().expect("it starts");
        (output.status.code(), text(&output.stderr))
    };
    let (status, log) = logged("anabranch_net=info");
    assert_eq!(status, Some(0), "{log}");
    for said in ["endpoint bound", "association up", "association ended"] {
        assert!(log.contains(said), "{said} is not in {log}");
    }
    assert_eq!(logged("off"), (Some(0), String::new()));
    let (status, error) = logged("anabranch_net=loud");
    assert!(status == Some(2) && error.contains("RUST_LOG"), "{error}");
}
