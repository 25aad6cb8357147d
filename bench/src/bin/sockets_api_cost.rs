//! Cost of the sockets API for existing programs: instructions and system calls per message in the
//! process of the program and in the SCTP process, compared with a program that uses
//! `anabranch-net` directly.
//!
//! `sockets_api_cost [--write]`: `--write` updates the tables in `bench/README.md`. Requires
//! `valgrind`, `strace`, a C compiler, and the command and the C library in the directory of this
//! program (`cargo build --profile fair -p anabranch-cli -p anabranch-capi`).
//!
//! `one-way` (crates/sockets/examples/one_way.rs) implements one end with `anabranch-net`. It is
//! measured itself, and is the peer in all other measurements.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anabranch_bench::median;
use anabranch_bench::page::{self, Page};

/// Message size in bytes, and number of messages in the shorter and in the longer run.
const SIZES: [(usize, u64, u64); 3] = [
    (100, 2_000, 12_000),
    (1_024, 2_000, 8_000),
    (64 * 1_024, 100, 500),
];
const DIRECTIONS: [&str; 2] = ["send", "receive"];
/// Number of runs, whose median is used, because the clock and the scheduler of the system
/// influence single runs.
const RUNS: usize = 3;
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PORT: u16 = 5_001;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let (arguments, write) = page::arguments();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] => tables(write),
        _ => Err("sockets_api_cost [--write]".into()),
    }
}

/// The process that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    /// A program with `anabranch-net`.
    Net,
    /// The SCTP process of a C program.
    Stack,
    /// The C program.
    Program,
}

const ALL: [Who; 3] = [Who::Net, Who::Stack, Who::Program];

/// Paths of the programs.
struct Programs {
    one_way: PathBuf,
    command: PathBuf,
    c: PathBuf,
    scratch: PathBuf,
}

/// Parameters of a run: the measured process, number of messages, and message size.
#[derive(Clone, Copy)]
struct Measurement {
    who: Who,
    direction: &'static str,
    count: u64,
    size: usize,
}

impl Programs {
    fn find(scratch: &Path) -> Outcome<Self> {
        let own = env::current_exe()?;
        let folder = match env::var_os("ANABRANCH_FOLDER") {
            Some(folder) => PathBuf::from(folder),
            None => own.parent().map(Path::to_owned).unwrap_or_default(),
        };
        let [command, one_way] = ["anabranch", "one-way"].map(|it| folder.join(it));
        for (path, package) in [(&command, "anabranch-cli"), (&one_way, "anabranch-bench")] {
            if !path.is_file() {
                return Err(format!(
                    "there is no {}; build it: cargo build --profile fair -p {package} -p anabranch-capi",
                    path.display()
                )
                .into());
            }
        }
        let c = scratch.join("program");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("sockets_api_cost/program.c");
        let status = Command::new("cc")
            .args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
            .args([&c, &source])
            .status()?;
        if !status.success() {
            return Err(format!("cc failed on {}", source.display()).into());
        }
        Ok(Self {
            one_way,
            command,
            c,
            scratch: scratch.to_owned(),
        })
    }

    /// Starts the other end, a process with `anabranch-net`; returns the process and its UDP port.
    fn peer(&self, run: Measurement) -> Outcome<(Child, u16)> {
        let what = match run.direction {
            "send" => "serve-receive",
            _ => "serve-send",
        };
        let mut child = Command::new(&self.one_way)
            .args([what, "0"])
            .args([run.count.to_string(), run.size.to_string()])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().ok_or("no standard output")?;
        BufReader::new(out).read_line(&mut line)?;
        Ok((child, line.trim().parse()?))
    }

    /// Runs the measured end, with `tool` in front of the selected process; returns its standard
    /// error.
    fn run(&self, run: Measurement, tool: &[String]) -> Outcome<String> {
        let (mut peer, udp) = self.peer(run)?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let (count, size) = (run.count.to_string(), run.size.to_string());
        let wrap = [
            text(&self.command),
            "wrap".to_owned(),
            "--no-seccomp".to_owned(),
            "--udp-port=0".to_owned(),
            format!("--peer-udp-port={udp}"),
            "--".to_owned(),
        ];
        let c = [
            text(&self.c),
            run.direction.to_owned(),
            HERE.to_string(),
            PORT.to_string(),
            count.clone(),
            size.clone(),
        ];
        let net = [
            text(&self.one_way),
            run.direction.to_owned(),
            udp.to_string(),
            count,
            size,
        ];
        let line = match run.who {
            Who::Net => [tool, &net].concat(),
            Who::Stack => [tool, &wrap, &c].concat(),
            Who::Program => [&wrap, tool, &c].concat(),
        };
        let library = self.command.with_file_name("libanabranch_preload.so");
        let output = Command::new(&line[0])
            .args(&line[1..])
            .env("ANABRANCH_PRELOAD", library)
            .output();
        let output = output.map_err(|error| format!("cannot run {}: {error}", line[0]))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            // The peer is killed, because it would otherwise wait for the failed program.
            peer.kill()?;
        }
        peer.wait()?;
        match output.status.success() {
            true => Ok(said),
            false => Err(format!("{line:?} failed: {said}").into()),
        }
    }

    /// Number of instructions of the measured process.
    fn instructions(&self, run: Measurement) -> Outcome<f64> {
        let tool = [
            "valgrind",
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
        ];
        let said = self.run(run, &tool.map(str::to_owned))?;
        let collected = said
            .lines()
            .filter_map(|line| line.split("Collected :").nth(1))
            .find_map(|number| number.trim().parse().ok());
        collected.ok_or_else(|| format!("valgrind counted nothing: {said}").into())
    }

    /// Number of system calls of the measured process, by name.
    fn calls(&self, run: Measurement) -> Outcome<BTreeMap<String, f64>> {
        let out = self.scratch.join("calls");
        // With these options, system calls of child processes are counted only until they execute
        // another program.
        let tool = [
            "strace",
            "-f",
            "-c",
            "-b",
            "execve",
            "-U",
            "calls,name",
            "-o",
        ];
        let mut tool: Vec<_> = tool.map(str::to_owned).into();
        if run.who == Who::Program {
            tool.retain(|it| it != "-b" && it != "execve");
        }
        tool.push(out.to_string_lossy().into_owned());
        self.run(run, &tool)?;
        let mut calls = BTreeMap::new();
        for line in fs::read_to_string(&out)?.lines() {
            let mut words = line.split_whitespace();
            if let (Some(Ok(count)), Some(name)) = (words.next().map(str::parse), words.next())
                && name != "total"
            {
                calls.insert(name.to_owned(), count);
            }
        }
        Ok(calls)
    }
}

fn tables(write: bool) -> Outcome<()> {
    let scratch = tempfile::tempdir()?;
    let programs = Programs::find(scratch.path())?;
    let mut page = Page::open("sockets_api_cost", write)?;
    page.line(&format!("Instructions a message outside of the kernel: the median of {RUNS} differences between two runs of different lengths."));
    page.line("");
    page.line("| message | direction | `anabranch-net` alone | stack's process | program's process | both | by `anabranch-net` alone |");
    page.line("|---|---|---|---|---|---|---|");
    for (size, less, more) in SIZES {
        for direction in DIRECTIONS {
            let [net, stack, program] = each(|who| {
                let count = |count| {
                    programs.instructions(Measurement {
                        who,
                        direction,
                        count,
                        size,
                    })
                };
                let one = || Ok((count(more)? - count(less)?) / (more - less) as f64);
                let all = (0..RUNS).map(|_| one()).collect::<Outcome<Vec<f64>>>()?;
                Ok(median(all.into_iter()))
            })?;
            page.line(&format!(
                "| {size} | {direction} | {net:.0} | {stack:.0} | {program:.0} | {:.0} | {:.2} |",
                stack + program,
                (stack + program) / net
            ));
        }
    }
    calls(&programs, &mut page)?;
    page.close()
}

/// Measures all three processes.
fn each<T: Copy + Default>(of: impl Fn(Who) -> Outcome<T>) -> Outcome<[T; 3]> {
    let mut out = [T::default(); 3];
    for (out, who) in out.iter_mut().zip(ALL) {
        *out = of(who)?;
    }
    Ok(out)
}

/// Prints the table of system calls.
fn calls(programs: &Programs, page: &mut Page) -> Outcome<()> {
    page.line("");
    page.line("System calls a message, counted by `strace`. Because `strace` slows all processes, one call of the stack's process carries fewer messages here than usual.");
    page.line("");
    page.line(
        "| message | direction | process | calls a message | by name, those of 0.05 and more |",
    );
    page.line("|---|---|---|---|---|");
    for (size, less, more) in SIZES {
        for direction in DIRECTIONS {
            for who in ALL {
                let count = |count| {
                    programs.calls(Measurement {
                        who,
                        direction,
                        count,
                        size,
                    })
                };
                let (fewer, mut all) = (count(less)?, count(more)?);
                for (name, calls) in &mut all {
                    *calls -= fewer.get(name).copied().unwrap_or(0.0);
                    *calls /= (more - less) as f64;
                }
                let whole: f64 = all.values().sum();
                let mut named: Vec<_> = all.into_iter().filter(|(_, it)| *it >= 0.05).collect();
                named.sort_by(|one, other| other.1.total_cmp(&one.1));
                let named: Vec<_> = named
                    .iter()
                    .map(|(name, calls)| format!("`{name}` {calls:.2}"))
                    .collect();
                let process = match who {
                    Who::Net => "`anabranch-net` alone",
                    Who::Stack => "stack's",
                    Who::Program => "program's",
                };
                page.line(&format!(
                    "| {size} | {direction} | {process} | {whole:.2} | {} |",
                    named.join(", ")
                ));
            }
        }
    }
    Ok(())
}
