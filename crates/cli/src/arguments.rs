//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Reproduces published comparisons of SCTP and TCP, and runs experiments of your own.
#[derive(Debug, Parser)]
#[command(
    name = "anabranch",
    version,
    after_help = "Examples:
  anabranch papers                            what can be reproduced
  anabranch reproduce alamgir2002 --quick     a first look, in about ten seconds
  anabranch reproduce alamgir2002             the whole of it, with confidence intervals
  anabranch show alamgir2002                  its tables in the terminal
  anabranch run my.toml --set rate='4 Mbit/s' an experiment of your own"
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say which papers can be reproduced, and how far.
    Papers,
    /// Run a paper's experiments and set the results beside the printed ones.
    #[command(after_help = "Examples:
  anabranch reproduce alamgir2002
  anabranch reproduce alamgir2002 --only table-2 --replications 50 --seed 7
  anabranch reproduce alamgir2002 --quick --out /tmp/look

The directory then holds report.html, tables/*.csv, figures/*.svg, series/*.parquet and manifest.json.
A run that was interrupted goes on where it stopped when it is started again.")]
    Reproduce(Reproduce),
    /// Run a spec of your own; the directory it writes is the same.
    #[command(after_help = "Examples:
  anabranch run my.toml
  anabranch run my.toml --set rate='4 Mbit/s' --set link.satellite.delay='270 ms' --out fast
  anabranch run my.toml --capture satellite=satellite.pcapng

`--set` names a parameter of the spec, or a key by its path, where nodes, links, flows and experiments go by
their names. Without a unit in quotes the shell would cut a value in two.")]
    Run(Run),
    /// Show the tables and key figures of a finished run in the terminal.
    Show {
        /// The directory that a run has written.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Print the JSON Schema of a spec, for editors.
    #[command(after_help = "Examples:
  anabranch schema > anabranch.schema.json
  # first line of a spec, for editors that read it:
  #:schema ./anabranch.schema.json")]
    Schema,
}

/// `reproduce`.
#[derive(Debug, Args)]
pub struct Reproduce {
    /// The paper's short name; `anabranch papers` lists them.
    #[arg(value_name = "PAPER")]
    pub paper: String,
    /// What both kinds of run have.
    #[command(flatten)]
    pub common: Common,
}

/// `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The spec, a TOML file.
    #[arg(value_name = "SPEC.toml")]
    pub spec: PathBuf,
    /// Write the packets of a link, in the first run, to a file that Wireshark opens (repeatable).
    #[arg(long, value_name = "LINK=FILE.pcapng", value_parser = capture)]
    pub capture: Vec<(String, PathBuf)>,
    /// What both kinds of run have.
    #[command(flatten)]
    pub common: Common,
}

/// What both kinds of run have.
#[derive(Debug, Args)]
pub struct Common {
    /// Make only this table, figure or experiment (repeatable).
    #[arg(long, value_name = "ID")]
    pub only: Vec<String>,
    /// Runs of each point, instead of the spec's number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub replications: Option<u32>,
    /// The seed that all randomness comes from.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// How many runs to make at a time; one for each core if left out.
    #[arg(long, value_name = "J", value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: Option<u32>,
    /// Fewer replications: a first look in about ten seconds.
    #[arg(long)]
    pub quick: bool,
    /// Where the results go; the spec's name if left out.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Set a parameter, or a key by its path (repeatable).
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Reads `LINK=FILE`.
fn capture(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((link, file)) if !link.is_empty() && !file.is_empty() => {
            Ok((link.to_owned(), file.into()))
        }
        _ => Err(format!(
            "found {text:?}; write LINK=FILE.pcapng, for example satellite=satellite.pcapng"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_capture_names_a_link_and_a_file() {
        assert_eq!(
            capture("wire=a=b.pcapng"),
            Ok(("wire".to_owned(), PathBuf::from("a=b.pcapng")))
        );
        for wrong in ["wire", "=file", "wire="] {
            assert!(capture(wrong).is_err(), "{wrong}");
        }
    }
}
