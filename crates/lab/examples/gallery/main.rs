//! Writes the whole output of a paper made of invented numbers, to look at: `cargo run -p anabranch-lab --example
//! gallery [DIR]`.

mod fake;

use std::error::Error;
use std::path::PathBuf;

use anabranch_lab::output::Outputs;
use anabranch_lab::output::terminal::{self, Terminal};
use anabranch_lab::reference::Reference;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(
        std::env::args()
            .nth(1)
            .unwrap_or_else(|| "gallery".to_owned()),
    );
    let results = fake::results(fake::spec(fake::PAPER), 20);
    let outputs = Outputs::make(&results, Reference::embedded())?;
    outputs.write(&directory)?;
    terminal::show(&outputs, Terminal::detect(), &mut std::io::stdout().lock())?;
    println!("\n{}", directory.join("report.html").display());
    Ok(())
}
