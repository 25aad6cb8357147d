//! The introductory example: users can write a spec without code.

use std::fs;
use std::path::Path;

use crate::{succeeds, temporary};

#[test]
fn the_example_runs_and_says_what_its_comments_promise() {
    let directory = temporary();
    let here = directory.path();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/own.toml");
    fs::copy(&example, here.join("own.toml")).expect("a copy");
    let said = succeeds(here, &["run", "own.toml", "--quick"]);
    // Four delays with two replications each, and one recorded run.
    assert!(
        said.starts_with("9 runs\n") && said.contains("own/report.html"),
        "{said}"
    );
    let table = fs::read_to_string(here.join("own/tables/delay.csv")).expect("a table");
    let value = |series: &str, x: &str, metric: &str| -> f64 {
        let row = table
            .lines()
            .find(|row| row.starts_with(&format!("{series},delay,{x},{metric},")));
        let row = row.unwrap_or_else(|| panic!("{series} {x} {metric} is not in\n{table}"));
        row.split(',')
            .nth(4)
            .expect("a value")
            .parse()
            .expect("a number")
    };
    for flow in ["tcp", "sctp"] {
        let (near, far) = (
            value(flow, "5 ms", "goodput"),
            value(flow, "200 ms", "goodput"),
        );
        assert!(
            near > 1e6 && far < near / 2.0 && far > 1e5,
            "{flow}: {near} {far}"
        );
    }
    for x in ["5 ms", "20 ms", "80 ms", "200 ms"] {
        assert!(
            value("tcp", x, "goodput") + value("sctp", x, "goodput") < 5e6,
            "no more than the link carries"
        );
        let delay = value("video", x, "mean_one_way_delay");
        // The minimum is the propagation delay (1 ms, 5 ms and 1 ms) plus the transmission of 1000
        // bytes at 10, 5 and 100 Mbit/s.
        assert!(
            (0.0094..0.2).contains(&delay),
            "the video at {x}: {delay} s"
        );
    }
    for figure in ["goodput", "windows", "middle"] {
        let svg =
            fs::read_to_string(here.join(format!("own/figures/{figure}.svg"))).expect("a figure");
        assert!(
            svg.contains("<polyline") || svg.contains("<path"),
            "{figure} has no curve"
        );
    }
    let slow = [
        "run",
        "own.toml",
        "--set",
        "rate=2 Mbit/s",
        "--set",
        "link.middle.delay=80 ms",
        "--only",
        "watch",
        "--out",
        "slow",
    ];
    assert!(succeeds(here, &slow).starts_with("1 run\n"));
}
