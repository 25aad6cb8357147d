//! Large constellations: processor time, memory and speedup by threads of a simulation of 100 flows
//! over Kuiper and of 10,000 flows over Starlink's first generation.
//!
//!     cargo run --profile fair -p anabranch-bench --bin constellation [-- ROUNDS SECONDS]
//!
//! Requires `anabranch` built with the same profile in the directory of this program, and
//! `valgrind`. SECONDS is the simulated duration of Starlink. `--write` writes the page.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anabranch_bench::callgrind::by_thread;
use anabranch_bench::page::{self, Page};
use anabranch_bench::{Cost, beside_this_program, measure, median, packet_hops};

/// Files of places, which the specs name, with their numbers of places.
const PLACES: [(&str, usize); 3] = [
    ("stations.csv", 100),
    ("users.csv", 900),
    ("gateways.csv", 100),
];

/// Settings of the GEO dumbbell with eight flows, and of Kuiper with links of 1 Mbit/s.
const GEO: [&str; 3] = [
    "parameters.pairs=4",
    "parameters.rate=11 Mbit/s",
    "parameters.buffer=160 packets",
];
const OF_1_MBIT: [&str; 2] = ["parameters.rate=1 Mbit/s", "parameters.queue=10 packets"];

/// Simulated duration of Kuiper, seconds.
const KUIPER: u32 = 10;

fn main() -> ExitCode {
    match bench() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("constellation: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A world, and the simulated duration in seconds.
struct Scenario {
    name: &'static str,
    spec: &'static str,
    settings: &'static [&'static str],
    seconds: u32,
}

/// Cost of a whole run, of its set-up, and the number of packets and hops.
struct Round {
    run: Cost,
    set_up: Cost,
    hops: u64,
}

fn bench() -> Result<(), Box<dyn Error>> {
    let (arguments, write) = page::arguments();
    let number = |index: usize, otherwise| {
        let given: Option<&String> = arguments.get(index);
        given.map_or(Ok(otherwise), |text| text.parse())
    };
    let (rounds, seconds) = (number(0, 1)?, number(1, 60)?);
    let bench = Bench::new()?;
    let mut page = Page::open("constellation", write)?;
    let scenario = |name, spec, settings: &'static [&'static str], seconds| Scenario {
        name,
        spec,
        settings,
        seconds,
    };
    let scenarios = [
        scenario("GEO, 8 flows", "geo.toml", &GEO, 500),
        scenario("Kuiper, 100 flows, 10 Mbit/s", "kuiper.toml", &[], KUIPER),
        scenario("the same, 1 Mbit/s", "kuiper.toml", &OF_1_MBIT, KUIPER),
        scenario("Starlink, 10,000 flows", "starlink.toml", &[], seconds),
    ];
    costs(&bench, &scenarios, rounds, &mut page)?;
    page.line("");
    threads(&bench, &scenarios[1], rounds, &mut page)?;
    page.close()
}

/// Adds the table of processor times.
fn costs(
    bench: &Bench,
    scenarios: &[Scenario],
    rounds: u32,
    page: &mut Page,
) -> Result<(), Box<dyn Error>> {
    page.line(&format!(
        "Medians of {rounds} alternating rounds of whole processes."
    ));
    page.line("");
    page.line(
        "| scenario | simulated s | processor s | set-up, s | a simulated second without set-up, s | packets and hops | ns a packet and hop | by GEO's | MiB |",
    );
    page.line("|---|---|---|---|---|---|---|---|---|");
    let mut all: Vec<Vec<Round>> = scenarios.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (scenario, rounds) in scenarios.iter().zip(&mut all) {
            rounds.push(bench.round(scenario)?);
        }
    }
    let each = |round: &Round| (round.run.cpu - round.set_up.cpu) * 1e9 / round.hops as f64;
    for (scenario, rounds) in scenarios.iter().zip(&all) {
        let of = |value: fn(&Round) -> f64| median(rounds.iter().map(value));
        let ratios = rounds.iter().zip(&all[0]);
        let ratios = ratios.map(|(own, geo)| each(own) / each(geo));
        page.line(&format!(
            "| {} | {} | {:.2} | {:.2} | {:.3} | {:.0} | {:.0} | {:.2} | {:.0} |",
            scenario.name,
            scenario.seconds,
            of(|it| it.run.cpu),
            of(|it| it.set_up.cpu),
            of(|it| it.run.cpu - it.set_up.cpu) / f64::from(scenario.seconds),
            of(|it| it.hops as f64),
            median(rounds.iter().map(each)),
            median(ratios),
            of(|it| it.run.peak_kib as f64 / 1024.0),
        ));
    }
    Ok(())
}

/// Adds the table of one thread compared with two: elapsed times, and instructions of each thread
/// without set-up, which do not depend on the load of the machine.
fn threads(
    bench: &Bench,
    scenario: &Scenario,
    rounds: u32,
    page: &mut Page,
) -> Result<(), Box<dyn Error>> {
    let mut walls = Vec::new();
    for _ in 0..rounds {
        let mut pair = [0.0; 2];
        for (threads, wall) in (1..).zip(&mut pair) {
            *wall = bench.run(scenario, "10 s", threads)?.0.wall;
        }
        walls.push(pair);
    }
    let wall = |at: usize| median(walls.iter().map(|pair| pair[at]));
    let speedup = median(walls.iter().map(|[one, two]| one / two));
    page.line("| Kuiper, 100 flows, 10 Mbit/s | one thread | two threads | one by two |");
    page.line("|---|---|---|---|");
    page.line(&format!(
        "| elapsed, 10 s, s | {:.2} | {:.2} | {speedup:.2} |",
        wall(0),
        wall(1)
    ));
    let counts = |threads| {
        let of = |seconds| bench.instructions(scenario, seconds, threads);
        let (less, more) = (of("1 s")?, of("3 s")?);
        let each = more
            .iter()
            .zip(&less)
            .map(|(more, less)| more.saturating_sub(*less));
        Ok::<Vec<u64>, Box<dyn Error>>(each.collect())
    };
    let (one, two) = (counts(1)?, counts(2)?);
    let one = one.iter().max().copied().unwrap_or_default() as f64;
    let mut two = two;
    two.sort_unstable();
    two.reverse();
    let two: Vec<f64> = two.into_iter().take(2).map(|it| it as f64).collect();
    page.line(&format!(
        "| million instructions from 1 s to 3 s, by thread | {:.0} | {:.0}, {:.0} | {:.2} |",
        one / 1e6,
        two[0] / 1e6,
        two[1] / 1e6,
        one / two[0]
    ));
    Ok(())
}

/// The program, and the directory of specs and results.
struct Bench {
    anabranch: PathBuf,
    scratch: tempfile::TempDir,
}

impl Bench {
    fn new() -> Result<Self, Box<dyn Error>> {
        let scratch = tempfile::tempdir()?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (folder, spec) in [
            ("geo", "geo.toml"),
            ("constellation", "kuiper.toml"),
            ("constellation", "starlink.toml"),
        ] {
            fs::copy(root.join(folder).join(spec), scratch.path().join(spec))?;
        }
        let mut random = Generator(1);
        for (file, count) in PLACES {
            fs::write(scratch.path().join(file), places(count, &mut random))?;
        }
        Ok(Self {
            anabranch: beside_this_program("anabranch")?,
            scratch,
        })
    }

    fn arguments(&self, scenario: &Scenario, duration: &str, threads: u32) -> Vec<String> {
        let path = |name: &str| self.scratch.path().join(name).display().to_string();
        let mut arguments = vec!["run".into(), path(scenario.spec)];
        arguments.extend(["--out".into(), path("out"), "--jobs".into(), "1".into()]);
        arguments.extend(["--threads".into(), threads.to_string()]);
        let duration = format!("world.duration={duration}");
        let settings = scenario.settings.iter().map(|it| (*it).to_owned());
        for setting in settings.chain([duration]) {
            arguments.extend(["--set".into(), setting]);
        }
        arguments
    }

    /// Runs a scenario. Returns its cost and the number of packets and hops.
    fn run(
        &self,
        scenario: &Scenario,
        duration: &str,
        threads: u32,
    ) -> Result<(Cost, u64), Box<dyn Error>> {
        let arguments = self.arguments(scenario, duration, threads);
        let cost = measure(Command::new(&self.anabranch).args(arguments))?;
        let out = self.scratch.path().join("out");
        let hops = packet_hops(&out)?;
        fs::remove_dir_all(&out)?;
        Ok((cost, hops))
    }

    /// Runs a scenario, and its set-up alone.
    fn round(&self, scenario: &Scenario) -> Result<Round, Box<dyn Error>> {
        let (set_up, _) = self.run(scenario, "1 ms", 1)?;
        let (run, hops) = self.run(scenario, &format!("{} s", scenario.seconds), 1)?;
        Ok(Round { run, set_up, hops })
    }

    /// Instructions of each thread.
    fn instructions(
        &self,
        scenario: &Scenario,
        duration: &str,
        threads: u32,
    ) -> Result<Vec<u64>, Box<dyn Error>> {
        let arguments = self.arguments(scenario, duration, threads);
        let counts = by_thread(self.scratch.path(), &self.anabranch, &arguments)?;
        fs::remove_dir_all(self.scratch.path().join("out"))?;
        Ok(counts)
    }
}

/// Random places, uniformly distributed between 55 degrees south and north, as CSV.
fn places(count: usize, random: &mut Generator) -> String {
    let mut text = String::from("latitude,longitude\n");
    let most = 55.0_f64.to_radians().sin();
    for _ in 0..count {
        let north = ((2.0 * random.unit() - 1.0) * most).asin().to_degrees();
        let east = 360.0 * random.unit() - 180.0;
        let _ = writeln!(text, "{north:.4},{east:.4}");
    }
    text
}

/// Random number generator (SplitMix64), with the same sequence in each run.
struct Generator(u64);

impl Generator {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
