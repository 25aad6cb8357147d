//! The `anabranch` command.
//!
//! Exit status: 0 done; 1 something failed (a full disk, a lost association); 2 the command line or
//! the spec is wrong and nothing was run; 130 interrupted.
#![forbid(unsafe_code)]
// `println!` and similar macros are not used, because they panic if the output has no reader;
// `note` and `Printer` do not panic.
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod absent;
mod advise;
mod arguments;
#[cfg(feature = "explore")]
mod explore;
mod failure;
mod help;
mod interrupt;
mod lab_commands;
#[cfg(feature = "logging")]
mod logging;
mod net;
mod number;
mod overwrite_note;
mod path;
mod progress;
mod renamed;
mod satellite_help;
mod settings;
mod shell_quote;
mod slurm;
mod status;
mod stderr;
mod version;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::FromArgMatches;

use arguments::{Arguments, Command};
use failure::Failure;
use stderr::note;

#[cfg(not(feature = "explore"))]
use absent::explore;
#[cfg(not(feature = "logging"))]
use absent::logging;

fn main() -> ExitCode {
    if let Some(status) = net::become_one() {
        return status;
    }
    let result = asked().and_then(|command| match command {
        Some(command) => logging::begin().and_then(|()| run(command)),
        None => Ok(()),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has closed the output (for example `head`), which is not a failure.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure @ Failure::Program(_)) => ExitCode::from(failure.status()),
        Err(failure) => {
            note(&failure);
            ExitCode::from(failure.status())
        }
    }
}

/// Parses the command line. `None` if help was requested, which is then printed.
fn asked() -> Result<Option<Command>, Failure> {
    let matches = help::command().try_get_matches_from(help::words(std::env::args_os()));
    let read = matches.and_then(|matches| {
        let read = Arguments::from_arg_matches(&matches);
        read.map_err(|error| error.format(&mut help::command()))
    });
    match read {
        Ok(arguments) => Ok(Some(arguments.command)),
        Err(error) if error.use_stderr() => match renamed::hint(&error) {
            Some(hint) => Err(Failure::Usage(hint)),
            None => error.exit(),
        },
        Err(help) => {
            help.print()?;
            io::stdout().flush()?;
            Ok(None)
        }
    }
}

/// Runs a command.
fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Papers => lab_commands::papers(),
        Command::Reproduce(arguments) => lab_commands::reproduce(&arguments),
        Command::Run(arguments) => lab_commands::run(&arguments),
        Command::Explore(arguments) => explore::explore(&arguments),
        Command::Advise(arguments) => advise::advise(&arguments),
        Command::SatellitePath(arguments) => path::path(&arguments),
        Command::Merge(arguments) => lab_commands::merge(&arguments),
        Command::Slurm(arguments) => slurm::slurm(&arguments),
        Command::Show { directory } => lab_commands::show(&directory),
        Command::Net(command) => net::run(command),
        Command::Schema => lab_commands::schema(),
        Command::Completions { shell } => help::completions(shell),
        Command::Man(arguments) => help::man(&arguments),
        Command::Settings { transport } => settings::settings(transport.as_deref()),
    }
}
