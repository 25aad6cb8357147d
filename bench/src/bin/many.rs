//! What an association costs beside its messages, ours and others': instructions of a handshake and of a message of 100 bytes to and
//! fro, both ends, by `valgrind --tool=callgrind`; memory of idle pairs; and what a message costs one of many associations. None of it depends
//! on the machine's load.
//!
//! `many [--write]`: `--write` also puts the tables into `bench/README.md`.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::env;
use std::error::Error;
use std::process::Command;

use anabranch_bench::callgrind;
use anabranch_bench::contest::dcsctp_silent::DcSctp as Silent;
use anabranch_bench::contest::many::{handshakes, idle, pings};
use anabranch_bench::contest::ours::Ours;
use anabranch_bench::contest::rtc_sctp::RtcSctp;
use anabranch_bench::contest::{Conditions, crowd};
use anabranch_bench::page::{self, Page};

/// Pairs of the shorter count of handshakes, exchanges of the shorter count of pings, and idle pairs.
const HANDSHAKES: u64 = 100;
const PINGS: u64 = 1_000;
const IDLE: usize = 2_000;
/// Associations of one endpoint.
const MANY: [usize; 5] = [1, 10, 100, 1_000, 10_000];
/// Turns of the shorter count, at least one for each association.
const TURNS: usize = 500;

type Work = fn(&Conditions, u64) -> Result<(), Box<dyn Error>>;
type Idle = fn(&Conditions, usize) -> Result<f64, Box<dyn Error>>;

const STACKS: [(&str, Work, Work, Idle); 3] = [
    (
        "anabranch",
        handshakes::<Ours<true>>,
        pings::<Ours<true>>,
        idle::<Ours<true>>,
    ),
    (
        "rtc-sctp",
        handshakes::<RtcSctp>,
        pings::<RtcSctp>,
        idle::<RtcSctp>,
    ),
    (
        "dcsctp, no log",
        handshakes::<Silent<true>>,
        pings::<Silent<true>>,
        idle::<Silent<true>>,
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let (arguments, write) = page::arguments();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] => tables(write),
        ["crowd", many, turns] => crowd::work(&Conditions::PINGS, many.parse()?, turns.parse()?),
        ["memory", many] => {
            println!("{}", crowd::idle(&Conditions::PINGS, many.parse()?)?);
            Ok(())
        }
        [what, stack, number] => one(what, stack, number.parse()?),
        _ => Err("many [--write]".into()),
    }
}

/// One measure of one stack, in a process of its own.
fn one(what: &str, stack: &str, number: u64) -> Result<(), Box<dyn Error>> {
    let named = STACKS.iter().find(|it| it.0 == stack);
    let &(_, handshakes, pings, idle) = named.ok_or("no such stack")?;
    match what {
        "handshakes" => handshakes(&Conditions::PINGS, number),
        "pings" => pings(&Conditions::PINGS, number),
        "idle" => {
            println!("{}", idle(&Conditions::PINGS, usize::try_from(number)?)?);
            Ok(())
        }
        _ => Err("no such measure".into()),
    }
}

/// Instructions of each of what `number` counts.
fn count(words: &[&str], number: u64) -> Result<f64, Box<dyn Error>> {
    let arguments = |number: u64| {
        let words = words.iter().map(|it| it.to_string());
        words.chain([number.to_string()]).collect::<Vec<_>>()
    };
    let more = callgrind::between_own(&arguments(number), &arguments(3 * number))?;
    Ok(more as f64 / (2 * number) as f64)
}

/// What this program prints when it is run with `words`: a number.
fn told(words: &[&str]) -> Result<f64, Box<dyn Error>> {
    let output = Command::new(env::current_exe()?).args(words).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

fn tables(write: bool) -> Result<(), Box<dyn Error>> {
    let mut page = Page::open("many", write)?;
    page.line("| stack | instructions a handshake | instructions a message to and fro | idle pair, bytes |");
    page.line("|---|---|---|---|");
    for (stack, ..) in STACKS {
        page.line(&format!(
            "| {stack} | {:.0} | {:.0} | {:.0} |",
            count(&["handshakes", stack], HANDSHAKES)?,
            count(&["pings", stack], PINGS)?,
            told(&["idle", stack, &IDLE.to_string()])?,
        ));
    }
    page.line("\n| associations of one endpoint | instructions a message | idle pair and the client's endpoint, bytes |");
    page.line("|---|---|---|");
    for many in MANY {
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
