//! Cost of an association apart from bulk data, for this stack and others. The program counts the
//! instructions of a handshake, and of a round trip with a message of 100 bytes, at both ends
//! (`valgrind --tool=callgrind`). It also measures the memory of idle pairs, and the cost of a
//! message with many associations. The results do not depend on the load of the machine. Handshakes
//! are counted in two ways: for a new pair of endpoints that is dropped afterwards, and for one
//! more association in addition to many that stay established.
//!
//! - `association_cost [--write]`: `--write` updates the tables in `bench/README.md`.
//! - `association_cost time [ROUNDS] [--write]`: handshakes by processor time, seven rounds by
//!   default. `--write` also updates the ratios to dcsctp in `bench/scoreboard.json`.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::env;
use std::error::Error;
use std::process::Command;

use anabranch_bench::harness::dcsctp_gathered::DcSctpGathered;
use anabranch_bench::harness::dcsctp_silent::DcSctp as Silent;
use anabranch_bench::harness::gathered::{OursGathered, gathered};
use anabranch_bench::harness::many::{handshakes, idle, pings};
use anabranch_bench::harness::ours::Ours;
use anabranch_bench::harness::rtc_gathered::RtcGathered;
use anabranch_bench::harness::rtc_sctp::RtcSctp;
use anabranch_bench::harness::{Conditions, crowd};
use anabranch_bench::page::{self, Page};
use anabranch_bench::scoreboard::{self, BenchResult};
use anabranch_bench::{callgrind, median};
use cpu_time::ThreadTime;

/// Number of pairs in the shorter of the two runs that count handshakes.
const HANDSHAKES: u64 = 100;
/// Number of associations between two endpoints in the shorter run; more of them would need larger
/// tables.
const GATHERED: u64 = 500;
/// Number of handshakes in one measurement of time.
const RACED: u64 = 10_000;
/// Number of round trips in the shorter run, and number of idle pairs.
const PINGS: u64 = 1_000;
const IDLE: usize = 2_000;
/// Numbers of associations per endpoint that are measured.
const ASSOCIATION_COUNTS: [usize; 5] = [1, 10, 100, 1_000, 10_000];
/// Number of turns in the shorter run; each association has at least one turn.
const TURNS: usize = 500;

type Work = fn(&Conditions, u64) -> Result<(), Box<dyn Error>>;
type Idle = fn(&Conditions, usize) -> Result<f64, Box<dyn Error>>;

struct Stack {
    name: &'static str,
    handshakes: Work,
    /// Handshakes of associations that all stay established, between two endpoints. If the stack
    /// has no such endpoints, between sockets in a table.
    gathered: Work,
    pings: Work,
    idle: Idle,
}

const OURS: usize = 0;
const STACKS: [Stack; 3] = [
    Stack {
        name: "anabranch",
        handshakes: handshakes::<Ours<true>>,
        gathered: gathered::<OursGathered>,
        pings: pings::<Ours<true>>,
        idle: idle::<Ours<true>>,
    },
    Stack {
        name: "rtc-sctp",
        handshakes: handshakes::<RtcSctp>,
        gathered: gathered::<RtcGathered>,
        pings: pings::<RtcSctp>,
        idle: idle::<RtcSctp>,
    },
    Stack {
        name: "dcsctp, no log",
        handshakes: handshakes::<Silent<true>>,
        gathered: gathered::<DcSctpGathered>,
        pings: pings::<Silent<true>>,
        idle: idle::<Silent<true>>,
    },
];
const DCSCTP: usize = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let (arguments, write) = page::arguments();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] => tables(write),
        ["time"] => time(7, write),
        ["time", rounds] => time(rounds.parse()?, write),
        ["crowd", many, turns] => crowd::work(&Conditions::PINGS, many.parse()?, turns.parse()?),
        ["memory", many] => {
            println!("{}", crowd::idle(&Conditions::PINGS, many.parse()?)?);
            Ok(())
        }
        [what, stack, number] => one(what, stack, number.parse()?),
        _ => Err("association_cost [time [ROUNDS]] [--write]".into()),
    }
}

/// Runs one measurement for one stack, in a separate process.
fn one(what: &str, stack: &str, number: u64) -> Result<(), Box<dyn Error>> {
    let named = STACKS.iter().find(|it| it.name == stack);
    let stack = named.ok_or("no such stack")?;
    match what {
        "handshakes" => (stack.handshakes)(&Conditions::PINGS, number),
        "gathered" => (stack.gathered)(&Conditions::PINGS, number),
        "pings" => (stack.pings)(&Conditions::PINGS, number),
        "idle" => {
            let idle = (stack.idle)(&Conditions::PINGS, usize::try_from(number)?)?;
            println!("{idle}");
            Ok(())
        }
        _ => Err("no such measure".into()),
    }
}

/// Instructions per item, from two runs with different numbers of items.
fn count(words: &[&str], number: u64) -> Result<f64, Box<dyn Error>> {
    let arguments = |number: u64| {
        let words = words.iter().map(|it| it.to_string());
        words.chain([number.to_string()]).collect::<Vec<_>>()
    };
    let more = callgrind::between_own(&arguments(number), &arguments(3 * number))?;
    Ok(more as f64 / (2 * number) as f64)
}

/// The number that this program prints if it is run with these arguments.
fn told(words: &[&str]) -> Result<f64, Box<dyn Error>> {
    let output = Command::new(env::current_exe()?).args(words).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

fn tables(write: bool) -> Result<(), Box<dyn Error>> {
    let mut page = Page::open("association_cost", write)?;
    page.line("| stack | instructions a handshake, new pair of endpoints | the same, all kept up | instructions a message to and fro | idle pair, bytes |");
    page.line("|---|---|---|---|---|");
    for stack in &STACKS {
        page.line(&format!(
            "| {} | {:.0} | {:.0} | {:.0} | {:.0} |",
            stack.name,
            count(&["handshakes", stack.name], HANDSHAKES)?,
            count(&["gathered", stack.name], GATHERED)?,
            count(&["pings", stack.name], PINGS)?,
            told(&["idle", stack.name, &IDLE.to_string()])?,
        ));
    }
    page.line("\n| associations of one endpoint | instructions a message | idle pair and the client's endpoint, bytes |");
    page.line("|---|---|---|");
    for many in ASSOCIATION_COUNTS {
        let turns = TURNS.max(many) as u64;
        let each = count(&["crowd", &many.to_string()], turns)? / crowd::EACH as f64;
        let idle = match many {
            ..1_000 => "-".to_string(),
            _ => format!("{:.0}", told(&["memory", &many.to_string()])?),
        };
        page.line(&format!("| {many} | {each:.0} | {idle} |"));
    }
    page.close()
}

/// Handshakes per second of processor time. In each round, every stack runs each kind of handshake
/// once, one after the other.
fn time(rounds: usize, write: bool) -> Result<(), Box<dyn Error>> {
    let mut new = STACKS.each_ref().map(|_| Vec::new());
    let mut kept = STACKS.each_ref().map(|_| Vec::new());
    for _ in 0..rounds {
        for (at, stack) in STACKS.iter().enumerate() {
            new[at].push(rate(stack.handshakes)?);
            kept[at].push(rate(stack.gathered)?);
        }
    }
    let ratio = |ours: &[f64], theirs: &[f64]| {
        let both = ours.iter().zip(theirs);
        median(both.map(|(ours, theirs)| ours / theirs))
    };
    let mut page = Page::open("handshakes", write)?;
    page.line(&format!("Median of {rounds} rounds of {RACED} handshakes."));
    page.line("");
    page.line("| stack | handshakes/s, new pair of endpoints | ours by it | the same, all kept up | ours by it | ours, all kept up, by its new pairs |");
    page.line("|---|---|---|---|---|---|");
    for (at, stack) in STACKS.iter().enumerate() {
        page.line(&format!(
            "| {} | {:.0} | {:.2} | {:.0} | {:.2} | {:.2} |",
            stack.name,
            median(new[at].iter().copied()),
            ratio(&new[OURS], &new[at]),
            median(kept[at].iter().copied()),
            ratio(&kept[OURS], &kept[at]),
            ratio(&kept[OURS], &new[at]),
        ));
    }
    page.close()?;
    if write {
        let figures = [
            (
                "handshakes a second, new pairs, by dcsctp's",
                ratio(&new[OURS], &new[DCSCTP]),
            ),
            (
                "handshakes a second, all kept up, by dcsctp's sockets, all kept up",
                ratio(&kept[OURS], &kept[DCSCTP]),
            ),
        ];
        let figures =
            figures.map(|(what, now)| (what.to_string(), BenchResult::ratio(now, None, 1.0)));
        scoreboard::note(figures.into())?;
    }
    Ok(())
}

/// Handshakes per second of this thread's processor time.
fn rate(work: Work) -> Result<f64, Box<dyn Error>> {
    let begin = ThreadTime::now();
    work(&Conditions::PINGS, RACED)?;
    Ok(RACED as f64 / begin.elapsed().as_secs_f64())
}
