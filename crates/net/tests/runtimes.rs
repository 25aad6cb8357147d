//! The same scenarios on each runtime, with the same results.

use crate::common;

use std::future::Future;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use anabranch_net::{
    AssociationError, Carrier, CloseReason, Config, Endpoint, Peer, Runtime, SendOptions,
    SharedSockets, SmolRuntime, ThreadRuntime, TokioRuntime,
};
use common::{HANGS, LOOPBACK, bounded, pattern};
use smol::io::{AsyncReadExt, AsyncWriteExt};

fn config(runtime: Option<Arc<dyn Runtime>>) -> Config {
    Config::default().with(|it| {
        it.addresses = vec![LOOPBACK];
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
        it.runtime = runtime;
    })
}

/// Runs `story` on tokio, on smol, and on a thread without either; the runtime is configured or
/// detected.
fn on_each<F: Future<Output = ()> + Send + 'static>(story: fn(Config) -> F) {
    bounded(async move { story(config(None)).await });
    on_smol(story(config(None)));
    on_smol(story(config(Some(Arc::new(SmolRuntime)))));
    // The endpoint may run on another runtime than the one that polls the futures.
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let named = TokioRuntime::new(tokio.handle().clone());
    on_smol(story(config(Some(Arc::new(named)))));
    on_thread(story(config(None)));
    let runtime = ThreadRuntime::new().expect("descriptors");
    let named = runtime.handle();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let driver = std::thread::spawn(move || runtime.block_on(ended));
    on_smol(story(config(Some(named))));
    drop(end);
    let _ = driver.join().expect("no panic");
}

fn on_thread(story: impl Future<Output = ()>) {
    let runtime = ThreadRuntime::new().expect("descriptors");
    let handle = runtime.handle();
    let hangs = async {
        handle.timer(handle.now() + HANGS).await;
        panic!("the test hangs");
    };
    runtime.block_on(smol::future::or(story, hangs));
}

/// Runs a scenario; fails if it hangs.
fn on_smol(story: impl Future<Output = ()>) {
    let hangs = async {
        smol::Timer::after(HANGS).await;
        panic!("the test hangs");
    };
    smol::block_on(smol::future::or(story, hangs));
}

fn server_and_client(config: &Config) -> (Endpoint, Endpoint, Peer) {
    let server = Endpoint::bind(config.clone().with(|it| it.accept = true)).expect("loopback");
    let client = Endpoint::bind(config.clone()).expect("loopback");
    let peer = Peer::from((LOOPBACK, server.port())).over_udp(server.udp_port());
    (server, client, peer)
}

async fn messages_and_receipts(config: Config) {
    let (server, client, peer) = server_and_client(&config);
    let association = client.connect(peer).await.expect("it listens");
    let accepted = server.accept().await.expect("it came");
    let sends = async {
        let mut receipts = Vec::new();
        for seed in 0..200 {
            let sent = association.send_with_receipt(pattern(seed, 30_000), SendOptions::new());
            receipts.push(sent.await.expect("room comes"));
        }
        for receipt in receipts {
            assert_eq!(receipt.await, Ok(()));
        }
        association.shutdown().await
    };
    let receives = async {
        for seed in 0..200 {
            let message = accepted.recv().await.expect("up").expect("open");
            assert_eq!(message.bytes, pattern(seed, 30_000), "message {seed}");
        }
        assert_eq!(accepted.recv().await, Ok(None));
    };
    let (sent, ()) = smol::future::zip(sends, receives).await;
    assert_eq!(sent, Ok(()));
    assert_eq!(accepted.closed().await, CloseReason::Shutdown);
}

#[test]
fn messages_flow_and_are_acknowledged_on_each_runtime() {
    on_each(messages_and_receipts);
}

/// Timers: an attempt without an answer times out, and so does waiting for associations that stay
/// open.
async fn timers(config: Config) {
    let (server, client, peer) = server_and_client(&config);
    let silent = UdpSocket::bind((LOOPBACK, 0)).expect("loopback");
    let nobody = Peer::from((LOOPBACK, 5_000)).over_udp(silent.local_addr().expect("bound").port());
    let quick = config.clone().with(|it| {
        it.sctp.profile.rto_initial.0 = 20_000_000;
        (it.sctp.rto_min, it.sctp.rto_max) = (20_000_000, 20_000_000);
        it.sctp.max_init_retransmits = 2;
    });
    let impatient = Endpoint::bind(quick).expect("loopback");
    let failed = impatient.connect(nobody).await.expect_err("nobody answers");
    assert_eq!(failed, AssociationError(CloseReason::NoAnswer).into());
    let association = client.connect(peer).await.expect("it listens");
    let accepted = server.accept().await.expect("it came");
    assert!(!server.drain(Duration::from_millis(20)).await);
    drop(association);
    assert!(server.drain(Duration::from_secs(100)).await);
    assert_eq!(accepted.closed().await, CloseReason::Shutdown);
}

#[test]
fn timers_end_on_each_runtime() {
    on_each(timers);
}

/// Endpoints on sockets that the application has bound, a name that the system resolves, and a
/// stream as bytes.
async fn bytes_by_name(config: Config) {
    let own = UdpSocket::bind((LOOPBACK, 0)).expect("loopback");
    let port = own.local_addr().expect("bound").port();
    let sockets = SharedSockets::on_udp(&config, vec![own]).expect("a socket");
    let listens = config.clone().with(|it| it.accept = true);
    let server = Endpoint::bind_with(listens, &sockets).expect("a free port");
    let client = Endpoint::bind(config).expect("loopback");
    let name = anabranch_net::Peer::from(("localhost", server.port())).over_udp(port);
    let association = client.connect(name).await.expect("it listens");
    let accepted = server.accept().await.expect("it came");
    let mut writes = association.byte_stream(3);
    let mut reads = accepted.byte_stream(3);
    let text = pattern(7, 500_000);
    let write = async {
        writes.write_all(&text).await.expect("up");
        writes.close().await.expect("a graceful end");
    };
    let read = async {
        let mut all = Vec::new();
        reads.read_to_end(&mut all).await.expect("a graceful end");
        all
    };
    let ((), all) = smol::future::zip(write, read).await;
    assert!(all == text, "byte for byte");
}

#[test]
fn bytes_flow_by_name_on_each_runtime() {
    on_each(bytes_by_name);
}

/// Dropping futures repeatedly neither loses nor delays messages.
async fn dropped_futures(config: Config) {
    let (server, client, peer) = server_and_client(&config);
    let association = client.connect(peer).await.expect("it listens");
    let accepted = server.accept().await.expect("it came");
    for seed in 0..200 {
        for _ in 0..3 {
            assert!(smol::future::poll_once(accepted.recv()).await.is_none());
            assert!(smol::future::poll_once(server.accept()).await.is_none());
        }
        let sent = association.send(pattern(seed, 100), SendOptions::new());
        sent.await.expect("room");
        let message = accepted.recv().await.expect("up").expect("open");
        assert_eq!(message.bytes, pattern(seed, 100), "message {seed}");
    }
    drop(association);
    assert_eq!(accepted.recv().await, Ok(None));
}

#[test]
fn dropped_futures_lose_nothing_on_each_runtime() {
    on_each(dropped_futures);
}

/// Many endpoints, each with its own sockets, run at the same time.
async fn many_endpoints(config: Config) {
    let listens = config.clone().with(|it| it.accept = true);
    let mut pairs = Vec::new();
    for _ in 0..20 {
        let server = Endpoint::bind(listens.clone()).expect("loopback");
        let peer = Peer::from((LOOPBACK, server.port())).over_udp(server.udp_port());
        let client = Endpoint::bind(config.clone()).expect("loopback");
        let association = client.connect(peer).await.expect("it listens");
        let accepted = server.accept().await.expect("it came");
        pairs.push((association, accepted, server, client));
    }
    for seed in 0..20 {
        for (association, ..) in &pairs {
            let sent = association.send(pattern(seed, 3_000), SendOptions::new());
            sent.await.expect("room");
        }
        for (_, accepted, ..) in &pairs {
            let message = accepted.recv().await.expect("up").expect("open");
            assert_eq!(message.bytes, pattern(seed, 3_000), "message {seed}");
        }
    }
    for (association, _, server, client) in pairs {
        assert_eq!(association.shutdown().await, Ok(()));
        smol::future::zip(server.close(), client.close()).await;
    }
}

#[test]
fn many_endpoints_live_on_each_runtime() {
    on_each(many_endpoints);
}

/// An endpoint that is bound within tokio's `block_on` runs on tokio, even if that `block_on` runs
/// within one of `ThreadRuntime`. Afterwards endpoints run on `ThreadRuntime` again, even if that
/// runs within tokio.
#[test]
fn the_runtime_that_runs_within_another_has_what_is_bound_there() {
    let (tell, told) = std::sync::mpsc::channel();
    let tested = std::thread::spawn(move || {
        let tokio = || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime")
        };
        let thread = ThreadRuntime::new().expect("descriptors");
        thread.block_on(async {
            tokio().block_on(messages_and_receipts(config(None)));
            messages_and_receipts(config(None)).await;
        });
        let tokio = tokio();
        let _around = tokio.enter();
        thread.block_on(messages_and_receipts(config(None)));
        let _ = tell.send(());
    });
    // Fails if the test waits forever.
    let ended = told.recv_timeout(HANGS);
    assert_ne!(ended, Err(std::sync::mpsc::RecvTimeoutError::Timeout));
    tested.join().expect("no panic");
}
