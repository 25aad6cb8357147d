//! `serve`: what it does where nobody reads, and the streams of its echo.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use anabranch_net::{Carrier, Config, Endpoint, Peer, SendOptions};

use crate::common::{Beside, anabranch, number_after, run, signal, text};

/// Bytes that a pipe takes (pipe(7)).
const PIPE: usize = 65_536;

/// A pipe that is full, as that of a reader that has stopped: the protocol goes on, and a signal ends the server.
#[test]
fn a_server_serves_and_ends_where_nobody_reads_what_it_prints() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let mut server = anabranch(here, &["serve", "sink", "--udp-port", "0"])
        // Fewer than associations: each prints a line before it reads.
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

/// A client that asks for many streams has its answers on the streams of its messages.
#[test]
fn an_echo_comes_back_on_its_stream() {
    let directory = tempfile::tempdir().expect("a directory");
    let echo = Beside::start(directory.path(), &["serve", "echo", "--udp-port", "0"]);
    let port = echo.port("UDP port").parse().expect("a port");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut config = Config {
            carrier: Carrier::client(),
            ..Config::default()
        };
        config.sctp.outbound_streams = u16::MAX;
        config.sctp.inbound_streams = u16::MAX;
        let client = Endpoint::bind(config).expect("a socket");
        let peer = Peer::from(([127, 0, 0, 1], 5_001)).over_udp(port);
        let association = client.connect(peer).await.expect("it listens");
        for stream in [0, 9, 10, 37, 2_999, 65_534] {
            let sent = association.send(stream, "hello", SendOptions::default());
            sent.await.expect("so many streams");
            let back = association.recv().await.expect("up").expect("open");
            assert_eq!((back.stream, &back.bytes[..]), (stream, &b"hello"[..]));
        }
        association.shutdown().await.expect("graceful");
    });
}
