//! Round-trip latency of a message of 100 bytes over UDP on the loopback interface, one message at
//! a time. The program compares this stack under its driver (`anabranch-net`) with sans-IO stacks,
//! including this one, in a plain loop or in one tokio task. With the driver, each end has either a
//! tokio runtime, in which the program is a task or the future of `block_on`, or a thread without
//! an async runtime. Both ends are threads of this process on one processor. With two processors,
//! the result would be the time to wake an idle processor, which varies over minutes by more than
//! the differences between stacks.
//!
//! Usage: `latency [ROUNDS] [--write]`, 5 rounds by default. `--write` updates the table in
//! `bench/README.md`, and the ratio to dcsctp in `bench/scoreboard.json`.
//! `latency one NUMBER PINGS` runs a single contestant for profiling; this is how valgrind counts
//! its instructions.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]
#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

mod loops;
mod udp;

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anabranch_bench::callgrind;
use anabranch_bench::harness::Conditions;
use anabranch_bench::harness::dcsctp_silent::DcSctp as Silent;
use anabranch_bench::harness::ours::Ours;
use anabranch_bench::harness::rtc_sctp::RtcSctp;
use anabranch_bench::median;
use anabranch_bench::page::{self, Page};
use anabranch_bench::processors;
use anabranch_bench::scoreboard::{self, BenchResult};
use anabranch_net::{Carrier, Config, Endpoint, Peer, SendOptions, ThreadRuntime};
use bytes::Bytes;
use cpu_time::ProcessTime;
use rustix::thread::CpuSet;

use self::loops::{by_a_loop, by_a_task};
use self::udp::{Calls, udp_alone};

/// Number of round trips in the warm-up and in the measurement.
const WARM_UP: u32 = 500;
const MEASURED: u32 = 5_000;
/// Number of round trips in the shorter of the runs whose instructions are counted.
const COUNTED: u32 = 1_000;
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PORT: u16 = 5_001;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;
type Race = fn(u32) -> Outcome<Score>;

/// Cost of a round trip: elapsed time, and processor time of both ends, seconds.
struct Score {
    wall: f64,
    processor: f64,
}

const CONTESTANTS: [(&str, Race); 15] = [
    ("anabranch, its driver", |pings| {
        by_the_driver(pings, Home::Task)
    }),
    ("anabranch, its driver, in `block_on`", |pings| {
        by_the_driver(pings, Home::BlockOn)
    }),
    ("anabranch, its driver, a thread of its own", |pings| {
        by_the_driver(pings, Home::Thread)
    }),
    ("anabranch, plain loop", by_a_loop::<Ours<true>>),
    ("dcsctp, no log, plain loop", by_a_loop::<Silent<true>>),
    ("rtc-sctp, plain loop", by_a_loop::<RtcSctp>),
    (
        "anabranch, the stack in a task of tokio's",
        by_a_task::<Ours<true>>,
    ),
    (
        "dcsctp, no log, in a task of tokio's",
        by_a_task::<Silent<true>>,
    ),
    ("rtc-sctp, in a task of tokio's", by_a_task::<RtcSctp>),
    ("UDP alone", |pings| udp_alone(pings, Calls::Plain)),
    ("UDP alone, waiting by `epoll`", |pings| {
        udp_alone(pings, Calls::Epoll)
    }),
    ("UDP alone, by the driver's calls", |pings| {
        udp_alone(pings, Calls::Driver)
    }),
    (
        "anabranch, its driver, a thread of its own, busy",
        |pings| by_the_driver(pings, Home::BusyThread),
    ),
    (
        "anabranch, plain loop, busy",
        loops::by_a_busy_loop::<Ours<true>>,
    ),
    (
        "dcsctp, no log, plain loop, busy",
        loops::by_a_busy_loop::<Silent<true>>,
    ),
];

/// Indices of contestants. This stack: `THREAD` with its driver on a separate thread, `LOOP` in a
/// plain loop, `TASK` in a plain tokio task. dcsctp: `DCSCTP` in a plain loop, `DCSCTP_TASK` in a
/// plain tokio task. `CALLS`: the system calls of the driver without a stack.
const THREAD: usize = 2;
const LOOP: usize = 3;
const DCSCTP: usize = 4;
const TASK: usize = 6;
const DCSCTP_TASK: usize = 7;
const CALLS: usize = 11;
/// Index of the first contestant that polls before it blocks.
const BUSIES: usize = 12;
/// Indices of contestants that are also measured with one processor per end.
const APART: [usize; 7] = [THREAD, LOOP, DCSCTP, 9, BUSIES, BUSIES + 1, BUSIES + 2];

/// Duration of polling before blocking.
const BUSY: Duration = Duration::from_micros(50);

/// The processors that may be used.
static PROCESSORS: OnceLock<CpuSet> = OnceLock::new();
/// Whether each end should have a separate processor.
static ARE_APART: AtomicBool = AtomicBool::new(false);

fn main() -> Outcome<()> {
    let (arguments, write) = page::arguments();
    if let [_, number, pings] = &arguments[..] {
        let (_, race) = CONTESTANTS[number.parse::<usize>()?];
        return race(pings.parse()?).map(|_| ());
    }
    let rounds = arguments.first().map_or(Ok(5), |it| it.parse::<u32>())?;
    let allowed = processors::allowed()?;
    let all = PROCESSORS.get_or_init(|| allowed);
    processors::stay_on(all, 1)?;
    let scores = race_all(rounds, &Vec::from_iter(0..CONTESTANTS.len()))?;
    let mut page = Page::open("latency", write).map_err(|error| error.to_string())?;
    page.line(&format!("Median of {} rounds.", rounds.max(1)));
    page.line("");
    page.line("| stack | pings/s | least - most | processor, us a ping | instructions a ping | ours by it, pings/s | ours by it, processor |");
    page.line("|---|---|---|---|---|---|---|");
    for (number, ((name, _), score)) in CONTESTANTS.iter().zip(&scores).enumerate() {
        let ours = || scores[0].iter().zip(score);
        page.line(&format!(
            "| {name} | {} | {:.0} | {:.2} | {:.2} |",
            in_cells(score),
            instructions(number)?,
            median(ours().map(|(ours, it)| it.wall / ours.wall)),
            median(ours().map(|(ours, it)| it.processor / ours.processor)),
        ));
    }
    if all.count() > 1 {
        ARE_APART.store(true, Ordering::Relaxed);
        page.line("");
        page.line(
            "| stack, a processor for each end | pings/s | least - most | processor, us a ping |",
        );
        page.line("|---|---|---|---|");
        for (number, score) in APART.into_iter().zip(race_all(rounds, &APART)?) {
            page.line(&format!(
                "| {} | {} |",
                CONTESTANTS[number].0,
                in_cells(&score)
            ));
        }
    }
    page.close().map_err(|error| error.to_string())?;
    if write {
        note(&scores)?;
    }
    Ok(())
}

/// Writes the ratios to dcsctp to `bench/scoreboard.json`.
fn note(scores: &[Vec<Score>]) -> Outcome<()> {
    let by_dcsctp = |place: usize, dcsctp: usize, of: fn(&Score) -> f64| {
        let pairs = scores[place].iter().zip(&scores[dcsctp]);
        median(pairs.map(|(it, dcsctp)| of(dcsctp) / of(it)))
    };
    // Name, contestant of this stack, and contestant of dcsctp. Both do comparable work if the
    // driver is paired with dcsctp in a tokio task, or if both use a plain loop or a plain task.
    let pairs = [
        ("by the driver, by dcsctp's in a task", 0, DCSCTP_TASK),
        (
            "by the driver on a thread, by dcsctp's in a task",
            THREAD,
            DCSCTP_TASK,
        ),
        ("by the driver, by dcsctp's plain loop", 0, DCSCTP),
        (
            "by the driver on a thread, by dcsctp's plain loop",
            THREAD,
            DCSCTP,
        ),
        ("by one loop for both, by dcsctp's", LOOP, DCSCTP),
        ("by one task for both, by dcsctp's", TASK, DCSCTP_TASK),
    ];
    let wall: fn(&Score) -> f64 = |it| it.wall;
    let processor: fn(&Score) -> f64 = |it| it.processor;
    let ways = [("", wall), (", processor", processor)];
    let figures = ways.into_iter().flat_map(|(way, of)| {
        pairs.map(|(what, ours, theirs)| {
            // The limit is the time for the system calls of the driver alone.
            let limit = [0, THREAD]
                .contains(&ours)
                .then(|| by_dcsctp(CALLS, theirs, of));
            let before = (way.is_empty() && (ours, theirs) == (0, DCSCTP)).then_some(0.90);
            let ratio = BenchResult::ratio(by_dcsctp(ours, theirs, of), before, 1.0);
            (format!("pings {what}{way}"), BenchResult { limit, ..ratio })
        })
    });
    scoreboard::note(figures.collect()).map_err(|error| error.to_string())?;
    Ok(())
}

/// Scores of these contestants, which alternate in each round.
fn race_all(rounds: u32, those: &[usize]) -> Outcome<Vec<Vec<Score>>> {
    let mut scores: Vec<Vec<Score>> = those.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds.max(1) {
        for (scores, number) in scores.iter_mut().zip(those) {
            let (name, race) = CONTESTANTS[*number];
            scores.push(race(MEASURED).map_err(|error| format!("{name}: {error}"))?);
        }
    }
    Ok(scores)
}

/// Rates and processor time of a contestant, as cells of a table.
fn in_cells(scores: &[Score]) -> String {
    let rates = || scores.iter().map(|it| 1.0 / it.wall);
    format!(
        "{:.0} | {:.0} - {:.0} | {:.1}",
        median(rates()),
        rates().fold(f64::MAX, f64::min),
        rates().fold(0.0, f64::max),
        median(scores.iter().map(|it| it.processor * 1e6)),
    )
}

/// Instructions of the process per round trip of a contestant. Instructions in the kernel are not
/// counted.
fn instructions(number: usize) -> Outcome<f64> {
    let words = |pings: u32| ["one".to_string(), number.to_string(), pings.to_string()];
    let more = callgrind::between_own(&words(COUNTED), &words(3 * COUNTED));
    let more = more.map_err(|error| error.to_string())?;
    Ok(more as f64 / f64::from(2 * COUNTED))
}

/// Measures the round trips after the warm-up.
struct Watch {
    measured: u32,
    answered: u32,
    begin: Option<(Instant, ProcessTime)>,
}

impl Watch {
    fn of(measured: u32) -> Self {
        Self {
            measured,
            answered: 0,
            begin: None,
        }
    }

    /// Counts a reply. After the last one, returns the score.
    fn answered(&mut self) -> Option<Score> {
        self.answered += 1;
        if self.answered == WARM_UP {
            self.begin = Some((Instant::now(), ProcessTime::now()));
        }
        let (wall, processor) = self
            .begin
            .filter(|_| self.answered == WARM_UP + self.measured)?;
        Some(Score {
            wall: wall.elapsed().as_secs_f64() / f64::from(self.measured),
            processor: processor.elapsed().as_secs_f64() / f64::from(self.measured),
        })
    }
}

/// Starts the thread of the responding end.
fn other_end<T: Send + 'static>(
    end: impl FnOnce() -> Outcome<T> + Send + 'static,
) -> JoinHandle<Outcome<T>> {
    // The processors that the calling thread may use are only a part of these.
    let all = PROCESSORS
        .get()
        .filter(|_| ARE_APART.load(Ordering::Relaxed));
    thread::spawn(move || {
        all.map_or(Ok(()), |all| processors::stay_on_those(all, 1..2))?;
        end()
    })
}

/// Runs two ends: `caller` on this thread and `called` on another. Each gets its socket and the
/// address of the other end.
fn between(
    caller: impl FnOnce(UdpSocket, SocketAddr) -> Outcome<Score>,
    called: impl FnOnce(UdpSocket, SocketAddr) -> Outcome<()> + Send + 'static,
) -> Outcome<Score> {
    let [a, z] = [UdpSocket::bind((HERE, 0))?, UdpSocket::bind((HERE, 0))?];
    let (at_a, at_z) = (a.local_addr()?, z.local_addr()?);
    let other = other_end(move || called(z, at_a));
    let score = caller(a, at_z)?;
    other.join().map_err(|_| "the other end panicked")??;
    Ok(score)
}

/// An endpoint of this stack with a free UDP port.
fn endpoint(config: Config) -> Outcome<Endpoint> {
    let config = config.with(|it| {
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
        it.addresses = vec![HERE];
    });
    Ok(Endpoint::bind(config)?)
}

fn runtime() -> Outcome<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    Ok(builder.enable_all().build()?)
}

/// Runtime of an end.
#[derive(Clone, Copy)]
enum Home {
    /// A tokio task.
    Task,
    /// The future of `block_on` of a tokio runtime.
    BlockOn,
    /// A thread without an async runtime.
    Thread,
    /// A thread without an async runtime that polls for some time before it blocks.
    BusyThread,
}

/// Runs an end in a new runtime.
fn run<T: Send + 'static>(
    end: impl Future<Output = Outcome<T>> + Send + 'static,
    home: Home,
) -> Outcome<T> {
    match home {
        Home::Task => {
            let runtime = runtime()?;
            runtime.block_on(runtime.spawn(end))?
        }
        Home::BlockOn => runtime()?.block_on(end),
        Home::Thread => ThreadRuntime::new()?.block_on(end),
        Home::BusyThread => ThreadRuntime::new()?.busy_poll(BUSY).block_on(end),
    }
}

fn by_the_driver(pings: u32, home: Home) -> Outcome<Score> {
    let (tell, told) = std::sync::mpsc::channel();
    let answering = async move {
        let server = endpoint(Config::server(PORT))?;
        tell.send(server.udp_port())?;
        let association = server.accept().await?;
        while let Some(message) = association.recv().await? {
            let answer = association.send(message.bytes, SendOptions::default());
            answer.await?;
        }
        server.close().await;
        Ok(())
    };
    let other = other_end(move || run(answering, home));
    let asking = async move {
        let client = endpoint(Config::default())?;
        let peer = Peer::new([HERE], PORT).over_udp(told.recv()?);
        let association = client.connect(peer).await?;
        let payload = Bytes::from(vec![0x5a; Conditions::PINGS.message]);
        let mut watch = Watch::of(pings);
        let score = loop {
            let question = association.send(payload.clone(), SendOptions::default());
            question.await?;
            association.recv().await?.ok_or("the server has closed")?;
            if let Some(score) = watch.answered() {
                break score;
            }
        };
        association.shutdown().await?;
        Ok(score)
    };
    let score = run(asking, home)?;
    other.join().map_err(|_| "the server panicked")??;
    Ok(score)
}
