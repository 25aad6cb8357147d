//! A large constellation: processor time and memory of a simulation of 10,000 flows over Starlink's
//! first generation.
//!
//!     cargo run --profile fair -p anabranch-bench --bin constellation [-- ROUNDS SECONDS]
//!
//! Requires `anabranch` built with the same profile in the directory of this program.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anabranch_bench::page::{self, Page};
use anabranch_bench::{beside_this_program, measure, median, packet_hops};

const USERS: usize = 900;
const GATEWAYS: usize = 100;

fn main() -> ExitCode {
    match bench() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("constellation: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench() -> Result<(), Box<dyn Error>> {
    let (arguments, write) = page::arguments();
    let number = |index: usize, otherwise| {
        let given: Option<&String> = arguments.get(index);
        given.map_or(Ok(otherwise), |text| text.parse())
    };
    let (rounds, seconds) = (number(0, 1)?, number(1, 60)?);
    let anabranch = beside_this_program("anabranch")?;
    let scratch = tempfile::tempdir()?;
    let spec = scratch.path().join("starlink.toml");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("constellation/starlink.toml");
    fs::copy(source, &spec)?;
    let mut random = Generator(1);
    for (file, count) in [("users.csv", USERS), ("gateways.csv", GATEWAYS)] {
        fs::write(scratch.path().join(file), places(count, &mut random))?;
    }
    let mut page = Page::open("constellation", write)?;
    page.line("| scenario | processor s | a simulated second | packets and hops | ns a packet and hop | MiB |");
    page.line("|---|---|---|---|---|---|");
    // The short run shows the cost of the plan and of the first routes alone.
    for duration in [1, seconds] {
        let mut all = Vec::new();
        for round in 0..rounds {
            let out = scratch.path().join(format!("{duration}-{round}"));
            let mut command = Command::new(&anabranch);
            command.arg("run").arg(&spec).arg("--out").arg(&out);
            command.args(["--jobs", "1", "--set"]);
            command.arg(format!("world.duration={duration} s"));
            all.push((measure(&mut command)?, packet_hops(&out)?));
            fs::remove_dir_all(&out)?;
        }
        let cpu = median(all.iter().map(|(cost, _)| cost.cpu));
        let hops = median(all.iter().map(|(_, hops)| *hops as f64));
        let memory = median(all.iter().map(|(cost, _)| cost.peak_kib as f64 / 1024.0));
        page.line(&format!(
            "| 10,000 flows, {duration} s | {cpu:.1} | {:.2} | {hops:.0} | {:.0} | {memory:.0} |",
            cpu / f64::from(duration),
            cpu / hops * 1e9
        ));
    }
    page.close()
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
