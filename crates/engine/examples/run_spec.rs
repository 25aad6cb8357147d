//! Runs the first unit of a spec without recording, and prints the simulated work. It is meant for
//! profilers and instruction counts, because it does not create the files and the report of
//! `anabranch run`.
//!
//! ```sh
//! cargo run --release -p anabranch-engine --example run_spec -- \
//!     bench/geo/geo.toml [seed] [key=value ...]
//! ```

use std::error::Error;
use std::path::Path;

use anabranch_engine::files::Files;
use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::NullSink;
use anabranch_engine::world;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments
        .next()
        .ok_or("usage: run_spec SPEC [SEED] [KEY=VALUE ...]")?;
    let seed = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let text = std::fs::read_to_string(&file)?;
    let folder = Path::new(&file)
        .parent()
        .unwrap_or(Path::new(""))
        .to_owned();
    let read = move |name: &str| {
        let text = std::fs::read_to_string(folder.join(name));
        text.map_err(|error| error.to_string())
    };
    let request = PlanRequest::new(file, text).with(|it| {
        it.files = Files::new(read);
        it.overrides = arguments.collect();
        it.seed = seed;
    });
    let plan = Plan::new(request).map_err(|error| error.to_string())?;
    let units = PlannedRun::all(&plan);
    let unit = units.first().ok_or("the spec has nothing to run")?;
    let record = world::run(unit, seed, &mut NullSink, &[])?;
    println!("{record:?}");
    println!("packet-hops {}", record.packet_hops);
    Ok(())
}
