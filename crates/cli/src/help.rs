//! What the command says of itself beside `--help`: its version, completions for shells, man pages.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anabranch_lab::build;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::arguments::{Arguments, Man};
use crate::failure::Failure;

/// One line: version and commit.
pub fn version() -> String {
    format!(
        "{} ({})",
        build::VERSION,
        build::COMMIT.unwrap_or("unknown commit")
    )
}

/// All that tells one build from another.
pub fn long_version() -> String {
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    format!(
        "{}\ncommit    {}\ncode      {} (equal codes give equal results)\nbuild     {profile}, {} {}\ncarriers  encapsulated, udp, ip",
        build::VERSION,
        build::COMMIT.unwrap_or("unknown"),
        build::CODE,
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}

/// Prints what makes a shell complete the command's arguments.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "anabranch", &mut script);
    Ok(io::stdout().write_all(&script)?)
}

/// Prints a man page, or writes all of them into a directory.
pub fn man(arguments: &Man) -> Result<(), Failure> {
    // A page for each command is enough; `help` only prints the same again.
    let mut command = Arguments::command()
        .disable_help_subcommand(true)
        .propagate_version(true);
    command.build();
    if let Some(directory) = &arguments.out {
        return write_pages(command, directory);
    }
    let page = match &arguments.command {
        None => command,
        Some(name) => {
            let names: Vec<&str> = command
                .get_subcommands()
                .map(clap::Command::get_name)
                .collect();
            let found = command.find_subcommand(name).cloned();
            let found = found.ok_or_else(|| Failure::unknown("COMMAND", name, names))?;
            found.name(format!("anabranch-{name}"))
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    Ok(io::stdout().write_all(&text)?)
}

/// A page for the command and one for each command of its own: `anabranch.1`, `anabranch-run.1` ...
fn write_pages(command: clap::Command, directory: &Path) -> Result<(), Failure> {
    let failed =
        |error: io::Error| Failure::Wire(format!("cannot write {}: {error}", directory.display()));
    fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(command, directory).map_err(failed)
}
