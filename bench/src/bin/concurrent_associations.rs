//! Concurrent associations over UDP on the loopback interface, with one processor and with two.
//! Each association sends a message of 100 bytes, waits for the reply, and sends the next. The
//! server is one endpoint with a multi-threaded tokio runtime, or one shard per processor on
//! separate threads. Each client is an endpoint with its own SCTP port, and several share a UDP
//! socket. Both ends are threads of this process.
//!
//! Usage: `concurrent_associations [ROUNDS] [--write]`, 3 rounds by default. `--write` updates the
//! table in `bench/README.md`, and the results for two processors in `bench/scoreboard.json`.
//! `concurrent_associations one HOME PROCESSORS ASSOCIATIONS MESSAGES` runs a single configuration
//! with about this many messages, for profiling.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]
#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::error::Error;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anabranch_bench::page::{self, Page};
use anabranch_bench::scoreboard::{self, BenchResult};
use anabranch_bench::{median, processors};
use anabranch_net::{
    Association, Carrier, Config, Endpoint, Peer, SendOptions, Shard, SharedSockets, ThreadRuntime,
    ThreadSpawner,
};
use bytes::Bytes;
use cpu_time::ProcessTime;

/// Numbers of concurrent associations that are measured.
const CROWDS: [usize; 5] = [1, 10, 100, 1_000, 10_000];
/// Numbers of processors that are measured.
const PROCESSORS: [usize; 2] = [1, 2];
/// Message size, bytes.
const MESSAGE: usize = 100;
/// Duration of the warm-up and of the measurement.
const WARM_UP: Duration = Duration::from_millis(500);
const DURATION: Duration = Duration::from_secs(2);
/// Timeout for establishing all associations.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of UDP sockets in a client thread.
const SOCKETS: usize = 64;
/// Maximum number of simultaneous handshakes of a thread.
const AT_ONCE: usize = 64;
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PORT: u16 = 5_001;
/// First SCTP port of the clients.
const CLIENTS: u16 = 10_000;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;
type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runtime of the server and of the clients.
#[derive(Clone, Copy, PartialEq)]
enum Home {
    /// One endpoint in a tokio runtime with one thread per processor.
    Tokio,
    /// One shard per processor, each on a separate thread.
    Shards,
}

const HOMES: [(Home, &str); 2] = [
    (Home::Tokio, "one endpoint, tokio's threads"),
    (Home::Shards, "a shard and a thread a processor"),
];

/// Rate of replies, and their cost.
#[derive(Clone, Copy)]
struct Score {
    /// Round trips per second.
    rate: f64,
    /// Processor time of both ends per round trip, seconds.
    processor: f64,
}

/// State that all threads share.
#[derive(Default)]
struct Crowd {
    up: AtomicUsize,
    answered: AtomicU64,
}

fn main() -> Outcome<()> {
    let (arguments, write) = page::arguments();
    if let [_, home, count, many, messages] = &arguments[..] {
        let (home, _) = HOMES[home.parse::<usize>()?];
        processors::stay_on(&processors::allowed()?, count.parse()?)?;
        let score = race(home, count.parse()?, many.parse()?, Some(messages.parse()?))?;
        println!("{:.2} us of processor", score.processor * 1e6);
        return Ok(());
    }
    let rounds = arguments.first().map_or(Ok(3), |it| it.parse::<u32>())?;
    let allowed = processors::allowed()?;
    let told = |error: Box<dyn Error>| error.to_string();
    let mut page = Page::open("concurrent_associations", write).map_err(told)?;
    page.line(&format!("Medians of {} rounds.", rounds.max(1)));
    page.line("");
    page.line("| associations | server | messages/s, 1 processor | us of processor | messages/s, 2 processors | us of processor | 2 by 1 |");
    page.line("|---|---|---|---|---|---|---|");
    let mut figures = Vec::new();
    for many in CROWDS {
        for (home, name) in HOMES {
            let mut scores = PROCESSORS.map(|_| Vec::new());
            for _ in 0..rounds.max(1) {
                for (scores, count) in scores.iter_mut().zip(PROCESSORS) {
                    processors::stay_on(&allowed, count)?;
                    let score = race(home, count, many, None);
                    scores.push(score.map_err(|it| format!("{many}, {name}: {it}"))?);
                }
            }
            let [one, two] = &scores;
            let of = |scores: &[Score], what: fn(&Score) -> f64| median(scores.iter().map(what));
            let gain = median(one.iter().zip(two).map(|(one, two)| two.rate / one.rate));
            page.line(&format!(
                "| {many} | {name} | {:.0} | {:.2} | {:.0} | {:.2} | {gain:.2} |",
                of(one, |it| it.rate),
                of(one, |it| it.processor * 1e6),
                of(two, |it| it.rate),
                of(two, |it| it.processor * 1e6),
            ));
            if many == 10_000 {
                let what = format!("crowd of {many}, {name}, 2 processors by 1");
                figures.push((what, BenchResult::ratio(gain, None, 1.5)));
            }
        }
    }
    page.close().map_err(told)?;
    if write {
        scoreboard::note(figures).map_err(told)?;
    }
    Ok(())
}

/// Runs `many` associations on `processors` processors for a fixed time, or until there were
/// `messages` replies.
fn race(home: Home, processors: usize, many: usize, messages: Option<u64>) -> Outcome<Score> {
    let threads = match home {
        Home::Tokio => 1,
        Home::Shards => processors.min(many),
    };
    let crowd = Arc::new(Crowd::default());
    let mut ends = Vec::new();
    let shards = Shard::open(&settings(Config::server(PORT)), threads)?;
    let port = shards[0].local_addresses()[0].port();
    let mut first = CLIENTS;
    for (number, shard) in shards.into_iter().enumerate() {
        // If the division leaves a remainder, the first threads have one association more.
        let share = (many + threads - 1 - number) / threads;
        let (tell, told) = mpsc::channel();
        let (over, is_over) = tokio::sync::oneshot::channel();
        let server = on_a_thread(home, processors, move |spawn| {
            serve(shard, tell, is_over, spawn)
        });
        told.recv()?;
        let (stop, is_stopped) = tokio::sync::oneshot::channel();
        let of_all = Arc::clone(&crowd);
        // Each client needs its own port, because all use the same address.
        let ports = first..first + share as u16;
        first = ports.end;
        let clients = on_a_thread(home, processors, move |spawn| {
            ask(port, ports, of_all, is_stopped, spawn)
        });
        ends.push((server, over, clients, stop));
    }
    let begin = Instant::now();
    while crowd.up.load(Ordering::Relaxed) < many {
        if begin.elapsed() > TIMEOUT || ends.iter().any(|it| it.2.is_finished()) {
            return Err(format!("{} came up", crowd.up.load(Ordering::Relaxed)).into());
        }
        thread::sleep(Duration::from_millis(1));
    }
    if messages.is_none() {
        thread::sleep(WARM_UP);
    }
    let now = || {
        (
            crowd.answered.load(Ordering::Relaxed),
            Instant::now(),
            ProcessTime::now(),
        )
    };
    let (before, begin, processor) = now();
    match messages {
        None => thread::sleep(DURATION),
        Some(messages) => {
            while crowd.answered.load(Ordering::Relaxed) < before + messages {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
    let answered = (crowd.answered.load(Ordering::Relaxed) - before) as f64;
    let score = Score {
        rate: answered / begin.elapsed().as_secs_f64(),
        processor: processor.elapsed().as_secs_f64() / answered,
    };
    for (server, over, clients, stop) in ends {
        drop(stop);
        clients.join().map_err(|_| "a client's thread panicked")??;
        drop(over);
        server.join().map_err(|_| "a server's thread panicked")??;
    }
    Ok(score)
}

/// Function that starts a task in the runtime of an end.
type Spawn = Box<dyn Fn(Task) + Send + Sync>;

/// Starts a thread with a runtime, which runs the future that `end` returns.
fn on_a_thread<F>(
    home: Home,
    processors: usize,
    end: impl FnOnce(Spawn) -> F + Send + 'static,
) -> JoinHandle<Outcome<()>>
where
    F: Future<Output = Outcome<()>> + Send + 'static,
{
    thread::spawn(move || match home {
        Home::Tokio => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            let runtime = builder.worker_threads(processors).enable_all().build()?;
            let handle = runtime.handle().clone();
            let end = end(Box::new(move |task| drop(handle.spawn(task))));
            runtime.block_on(runtime.spawn(end))?
        }
        Home::Shards => {
            let runtime = ThreadRuntime::new()?;
            let spawner: ThreadSpawner = runtime.spawner();
            runtime.block_on(end(Box::new(move |task| drop(spawner.spawn(task)))))
        }
    })
}

/// Settings of an end with a free UDP port.
fn settings(config: Config) -> Config {
    config.with(|it| {
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
        it.addresses = vec![HERE];
        it.backlog = 1_024;
    })
}

/// Runs an echo server until the end of the measurement.
async fn serve(
    shard: Shard,
    tell: mpsc::Sender<()>,
    mut is_over: tokio::sync::oneshot::Receiver<()>,
    spawn: Spawn,
) -> Outcome<()> {
    let server = shard.bind()?;
    tell.send(())?;
    loop {
        tokio::select! {
            association = server.accept() => spawn(Box::pin(echo(association?))),
            _ = &mut is_over => return Ok(()),
        }
    }
}

async fn echo(association: Association) {
    while let Ok(Some(message)) = association.recv().await {
        let answer = association.send(message.bytes, SendOptions::default());
        if answer.await.is_err() {
            return;
        }
    }
}

/// Runs clients on these ports, which send requests until they are stopped.
async fn ask(
    port: u16,
    ports: Range<u16>,
    crowd: Arc<Crowd>,
    is_stopped: tokio::sync::oneshot::Receiver<()>,
    spawn: Spawn,
) -> Outcome<()> {
    // Several sockets, because the system selects the shard of a client by its source address and
    // port.
    let config = settings(Config::default());
    let sockets = (0..SOCKETS.min(ports.len())).map(|_| SharedSockets::open(&config));
    let sockets: Vec<SharedSockets> = sockets.collect::<Result<_, _>>()?;
    let gate = Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
    let (stopped, watch) = tokio::sync::watch::channel(false);
    for (number, own) in ports.enumerate() {
        let config = settings(Config::default()).with(|it| it.port = own);
        let client = Endpoint::bind_with(config, &sockets[number % sockets.len()])?;
        let (crowd, gate) = (Arc::clone(&crowd), Arc::clone(&gate));
        let watch = watch.clone();
        spawn(Box::pin(async move {
            let Ok(place) = gate.acquire().await else {
                return;
            };
            let peer = Peer::new([HERE], PORT).over_udp(port);
            let Ok(association) = client.connect(peer).await else {
                return;
            };
            drop(place);
            crowd.up.fetch_add(1, Ordering::Relaxed);
            while !*watch.borrow() && once(&association).await {
                crowd.answered.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    drop(watch);
    let _ = is_stopped.await;
    stopped.send_replace(true);
    stopped.closed().await;
    Ok(())
}

/// Sends a message and waits for the reply; returns whether it arrived.
async fn once(association: &Association) -> bool {
    let question = Bytes::from_static(&[0x5a; MESSAGE]);
    let sent = association.send(question, SendOptions::default());
    sent.await.is_ok() && matches!(association.recv().await, Ok(Some(_)))
}
