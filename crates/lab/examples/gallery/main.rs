//! Writes all outputs of a paper with fabricated values, for viewing:
//! `cargo run -p anabranch-lab --example gallery [DIR]`.

mod fake;

use std::error::Error;
use std::path::PathBuf;

use anabranch_lab::outputs;
use anabranch_report::Outputs;
use anabranch_report::terminal::{self, Terminal};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(
        std::env::args()
            .nth(1)
            .unwrap_or_else(|| "gallery".to_owned()),
    );
    let results = fake::results(fake::spec(fake::PAPER), 20);
    let made = Outputs::make(&results, &fake::reference())?;
    outputs::write(&made, &directory)?;
    terminal::show(&made, Terminal::detect(), &mut std::io::stdout().lock())?;
    println!("\n{}", directory.join("report.html").display());
    Ok(())
}
