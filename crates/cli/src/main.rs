//! The `anabranch` command.
//!
//! Exit status: 0 done; 1 something failed (a full disk, a lost association); 2 the command line or the spec is wrong and
//! nothing was run; 130 interrupted.
#![forbid(unsafe_code)]
// They end the program where nobody reads. `note` and `Printer` do not.
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod advise;
mod arguments;
mod explore;
mod failure;
mod help;
mod logging;
mod note;
mod number;
mod path;
mod progress;
mod skies;
mod slurm;
mod wire;
mod work;

use std::process::ExitCode;

use clap::FromArgMatches;

use arguments::{Arguments, Command};
use failure::Failure;
use note::note;

fn main() -> ExitCode {
    let matches = help::command().get_matches();
    let command = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments.command,
        Err(error) => error.format(&mut help::command()).exit(),
    };
    let result = logging::begin().and_then(|()| run(command));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has seen enough.
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

/// Does what the command line asks for.
fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Papers => work::papers(),
        Command::Reproduce(arguments) => work::reproduce(&arguments),
        Command::Run(arguments) => work::run(&arguments),
        Command::Explore(arguments) => explore::explore(&arguments),
        Command::Advise(arguments) => advise::advise(&arguments),
        Command::Path(arguments) => path::path(&arguments),
        Command::Merge(arguments) => work::merge(&arguments),
        Command::Slurm(arguments) => slurm::slurm(&arguments),
        Command::Show { directory } => work::show(&directory),
        Command::Wire(command) => wire::run(command),
        Command::Schema => work::schema(),
        Command::Completions { shell } => help::completions(shell),
        Command::Man(arguments) => help::man(&arguments),
        Command::Settings { transport } => work::settings(transport.as_deref()),
    }
}
