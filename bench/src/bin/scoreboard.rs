//! Prints the last benchmark results, compared with the goals of the project and with theoretical
//! limits.
//!
//! Usage: `scoreboard [--write]`. `--write` updates `bench/README.md`.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::error::Error;

use anabranch_bench::page::{self, Page};
use anabranch_bench::scoreboard;

fn main() -> Result<(), Box<dyn Error>> {
    let (_, write) = page::arguments();
    let mut page = Page::open("scoreboard", write)?;
    page.line("| | unit | at 3763e40 | now | goal | limit | goal met | run |");
    page.line("|---|---|---|---|---|---|---|---|");
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.2}"));
    for (what, figure) in scoreboard::figures()? {
        page.line(&format!(
            "| {what} | {} | {} | {:.2} | {:.2} | {} | {} | {} |",
            figure.unit,
            number(figure.before),
            figure.now,
            figure.goal,
            number(figure.limit),
            if figure.is_met() { "yes" } else { "no" },
            figure.run,
        ));
    }
    page.close()
}
