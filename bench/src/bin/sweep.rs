//! Sweeps of many short runs. The program measures the overhead of a run apart from the simulation,
//! the growth of memory with the number of runs, the benefit of a second processor, and the startup
//! cost of the command.
//!
//!     cargo run --profile fair -p anabranch-bench --bin sweep [-- ROUNDS] [--write]
//!
//! Each run simulates one second. For each number of runs, whole processes with one job are
//! measured: one executes the runs, one resumes after all are finished, and one executes a sweep
//! with runs of a tenth of the length, from which the overhead follows. In each of ROUNDS rounds (7
//! by default), the same sweep is executed with one job, and then with one job per processor. Then
//! one process per processor executes a part of the sweep in parallel; these processes share
//! nothing and therefore show the capacity of the processors. Finally, the command is started in
//! several ways.
//!
//! Requires `anabranch` built with the same profile in the directory of this program, and
//! `valgrind`.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Instant;

use anabranch_bench::callgrind;
use anabranch_bench::page::{self, Page};
use anabranch_bench::scoreboard::{self, BenchResult};
use anabranch_bench::{Cost, beside_this_program, measure, median};

/// Number of points in the sweep.
const POINTS: u32 = 100;
/// Numbers of replications of each point.
const REPLICATIONS: [u32; 3] = [1, 10, 100];
/// Number of starts of a command in one round.
const STARTS: u32 = 20;
/// Goal for the processor time of starting the command, milliseconds.
const START: f64 = 2.0;

type Outcome<T> = Result<T, Box<dyn Error>>;
type Figures = Vec<(String, BenchResult)>;

fn main() -> ExitCode {
    match bench() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sweep: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench() -> Outcome<()> {
    let (arguments, write) = page::arguments();
    let rounds: u32 = arguments.first().map_or(Ok(7), |text| text.parse())?;
    let program = beside_this_program("anabranch")?;
    let scratch = tempfile::tempdir()?;
    let mut page = Page::open("sweep", write)?;
    costs(&program, scratch.path(), &mut page)?;
    let mut figures = scaling(&program, scratch.path(), rounds, &mut page)?;
    figures.extend(starts(&program, scratch.path(), rounds, &mut page)?);
    page.close()?;
    if write {
        scoreboard::note(figures)?;
    }
    Ok(())
}

/// Measures the cost of a run for different numbers of runs.
fn costs(program: &Path, scratch: &Path, page: &mut Page) -> Outcome<()> {
    page.line("One job; each row was measured once:");
    page.line("");
    page.line(
        "| runs | wall, s | processor, s | processor, us a run | of it not simulation | resume, wall, s | peak, MiB | on disk, MiB |",
    );
    page.line("|---|---|---|---|---|---|---|---|");
    for replications in REPLICATIONS {
        let runs = replications * POINTS;
        let whole = scratch.join("whole");
        let made = sweep(program, replications, "1 s", 1, &whole)?;
        let resumed = sweep(program, replications, "1 s", 1, &whole)?;
        let disk = size(&whole)?;
        fs::remove_dir_all(&whole)?;
        let short = scratch.join("short");
        let shorter = sweep(program, replications, "0.1 s", 1, &short)?;
        fs::remove_dir_all(&short)?;
        // From cpu = overhead + simulated seconds * cost of a second, two durations give the
        // overhead.
        let second = (made.cpu - shorter.cpu) / 0.9;
        let each = 1e6 / f64::from(runs);
        page.line(&format!(
            "| {runs} | {:.2} | {:.2} | {:.0} | {:.0} | {:.2} | {:.1} | {:.1} |",
            made.wall,
            made.cpu,
            made.cpu * each,
            (made.cpu - second) * each,
            resumed.wall,
            made.peak_kib as f64 / 1024.0,
            disk as f64 / f64::from(1 << 20),
        ));
    }
    page.line("");
    Ok(())
}

/// Measures the benefit of all processors for one process, and for independent processes.
fn scaling(program: &Path, scratch: &Path, rounds: u32, page: &mut Page) -> Outcome<Figures> {
    let processors = u32::try_from(std::thread::available_parallelism()?.get())?;
    let [.., most] = REPLICATIONS;
    let mut all = Vec::new();
    for _ in 0..rounds {
        let of = |jobs| -> Outcome<Cost> {
            let out = scratch.join("jobs");
            let cost = sweep(program, most, "1 s", jobs, &out)?;
            fs::remove_dir_all(&out)?;
            Ok(cost)
        };
        let [one, many] = [of(1)?, of(processors)?];
        all.push([one, many, apart(program, most, processors, scratch)?]);
    }
    page.line(&format!(
        "{} runs, medians of {rounds} alternating rounds:",
        most * POINTS
    ));
    page.line("");
    page.line("| jobs | wall, s | processor, s | times as fast as one |");
    page.line("|---|---|---|---|");
    let mut row = |what: &str, place: usize| {
        let of = || all.iter().map(|round| round[place]);
        let faster = median(all.iter().map(|round| round[0].wall / round[place].wall));
        page.line(&format!(
            "| {what} | {:.2} | {:.2} | {faster:.2} |",
            median(of().map(|it| it.wall)),
            median(of().map(|it| it.cpu)),
        ));
        faster
    };
    row("1", 0);
    let faster = row(&processors.to_string(), 1);
    let apart = format!("1 in each of {processors} processes, a part of the runs each");
    let limit = row(&apart, 2);
    page.line("");
    // The goal is a speedup of 1.94 on two processors.
    let goal = 0.97 * f64::from(processors);
    let figure = BenchResult {
        limit: Some(limit),
        ..BenchResult::ratio(faster, None, goal)
    };
    Ok(vec![(format!("a sweep, {processors} jobs by one"), figure)])
}

/// Executes the same runs in `parts` parallel processes with one job each. Returns their total
/// cost, which is the cost that a perfect distribution of the runs would have.
#[allow(clippy::disallowed_methods, reason = "a bench reads the clock")]
fn apart(program: &Path, replications: u32, parts: u32, scratch: &Path) -> Outcome<Cost> {
    let each = (replications / parts).max(1);
    let folder = |part: u32| scratch.join(format!("part-{part}"));
    let begin = Instant::now();
    let costs: Result<Vec<Cost>, String> = thread::scope(|scope| {
        let run = |part| {
            let out = folder(part);
            scope.spawn(move || {
                sweep(program, each, "1 s", 1, &out).map_err(|error| error.to_string())
            })
        };
        let all: Vec<_> = (0..parts).map(run).collect();
        let join = |it: thread::ScopedJoinHandle<'_, Result<Cost, String>>| {
            it.join().map_err(|_| "a part panicked".to_owned())?
        };
        all.into_iter().map(join).collect()
    });
    let (costs, wall) = (costs?, begin.elapsed().as_secs_f64());
    for part in 0..parts {
        fs::remove_dir_all(folder(part))?;
    }
    let share = f64::from(replications) / f64::from(each * parts);
    Ok(Cost {
        wall: wall * share,
        cpu: costs.iter().map(|it| it.cpu).sum::<f64>() * share,
        peak_kib: costs.iter().map(|it| it.peak_kib).sum(),
    })
}

/// A way to start the command.
struct Start<'a> {
    what: &'a str,
    words: Vec<&'a str>,
    /// Working directory.
    folder: &'a Path,
    /// Whether the goal applies, because the command only starts and ends.
    is_bare: bool,
}

/// Measures the cost of starting the command when it does little or no work.
fn starts(program: &Path, scratch: &Path, rounds: u32, page: &mut Page) -> Outcome<Figures> {
    let spec = spec();
    let spec = spec.to_string_lossy();
    let out = scratch.join("start");
    let own = ["run", &spec, "--out", "start", "--jobs", "1"];
    let shortest = ["--replications", "1", "--set", "world.duration=1 ms"];
    let root = page::folder().join("..");
    let start = |what, words, folder, is_bare| Start {
        what,
        words,
        folder,
        is_bare,
    };
    let ways = [
        start("`--version`", vec!["--version"], scratch, true),
        start("`papers`", vec!["papers"], scratch, true),
        start(
            "`papers` in the folder of the project",
            vec!["papers"],
            &*root,
            false,
        ),
        start(
            "`run`, 100 runs of 1 ms",
            [&own[..], &shortest[..]].concat(),
            scratch,
            false,
        ),
    ];
    page.line(&format!(
        "Start of the command, medians of {} starts:",
        rounds * STARTS
    ));
    page.line("");
    page.line("| command | processor, ms | wall, ms | instructions |");
    page.line("|---|---|---|---|");
    let mut figures = Vec::new();
    for way in ways {
        // Called before each start to remove the results of the previous one.
        let fresh = || match fs::remove_dir_all(&out) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        let mut all = Vec::new();
        for _ in 0..rounds * STARTS {
            fresh()?;
            let mut command = Command::new(program);
            all.push(measure(command.args(&way.words).current_dir(way.folder))?);
        }
        fresh()?;
        std::env::set_current_dir(way.folder)?;
        let words: Vec<String> = way.words.iter().map(|it| (*it).to_owned()).collect();
        let count = callgrind::instructions(program, &words)?;
        let processor = 1e3 * median(all.iter().map(|it| it.cpu));
        page.line(&format!(
            "| {} | {processor:.2} | {:.2} | {count} |",
            way.what,
            1e3 * median(all.iter().map(|it| it.wall)),
        ));
        if way.is_bare {
            let figure = BenchResult {
                unit: "ms of processor".to_owned(),
                more: false,
                ..BenchResult::ratio(processor, None, START)
            };
            figures.push((format!("start of the command, {}", way.what), figure));
        }
    }
    Ok(figures)
}

fn spec() -> std::path::PathBuf {
    page::folder().join("sweep/sweep.toml")
}

fn sweep(
    program: &Path,
    replications: u32,
    duration: &str,
    jobs: u32,
    out: &Path,
) -> Outcome<Cost> {
    let mut command = Command::new(program);
    command.arg("run").arg(spec()).arg("--out").arg(out);
    command.args(["--jobs", &jobs.to_string()]);
    command.args(["--replications", &replications.to_string()]);
    command.args(["--set", &format!("world.duration={duration}")]);
    measure(&mut command)
}

/// Total size of all files in a directory, bytes.
fn size(directory: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => size(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}
