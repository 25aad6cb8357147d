//! What the command says of itself beside `--help`: its version, completions for shells, man pages.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anabranch_engine::kinds::Standard;
use anabranch_lab::build;
use anabranch_settings::Variant;
use clap::{CommandFactory, ValueEnum};
use clap_complete::Shell;

use crate::arguments::{Arguments, Man};
use crate::failure::Failure;
use crate::wire::arguments::CarrierKind;

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
        "{}\ncommit    {}\ncode      {} (equal codes give equal results)\nbuild     {profile}, {} {}\n{}",
        build::VERSION,
        build::COMMIT.unwrap_or("unknown"),
        build::CODE,
        std::env::consts::OS,
        std::env::consts::ARCH,
        features(),
    )
}

/// The features of this build, by what registers them.
fn features() -> String {
    let kinds = Standard::default();
    let carriers = CarrierKind::value_variants().iter();
    let carriers = carriers.filter_map(CarrierKind::to_possible_value);
    let carriers = carriers.map(|it| it.get_name().to_owned()).collect();
    let transports = kinds.transports.kinds().into_iter();
    let transports = transports.map(|it| it.name.to_owned()).collect();
    let names = |all: Vec<Variant>| all.iter().map(|it| it.name.to_owned()).collect();
    let all: [(&str, Vec<String>); 6] = [
        ("carriers", carriers),
        ("transports", transports),
        ("workloads", names(kinds.workloads.variants())),
        ("queues", names(kinds.queues.variants())),
        ("losses", names(kinds.losses.variants())),
        ("delays", names(kinds.propagations.variants())),
    ];
    let line = |(what, names): &(&str, Vec<String>)| format!("  {what:<11} {}", names.join(", "));
    let lines: Vec<String> = all.iter().map(line).collect();
    format!("features\n{}", lines.join("\n"))
}

/// The exit status of the commands without a line of their own in [`STATUSES`].
const USUAL_STATUS: &str =
    "0 done; 1 something failed; 2 the command line is wrong, nothing was done.";

/// The exit status of commands that run simulations.
const RUN_STATUS: &str = "0 done; 1 a run failed or results could not be written, repeat the command to continue; \
2 the command line or the spec is wrong, nothing was run; 130 interrupted.";

/// What the exit status of a command says, by the command.
const STATUSES: &[(&str, &str)] = &[
    (
        "reproduce",
        "0 done, whatever the verdicts are; 1 a run failed or results could not be written, repeat the command to continue; \
2 the command line or the spec is wrong, nothing was run; 130 interrupted.",
    ),
    ("run", RUN_STATUS),
    ("slurm", RUN_STATUS),
    (
        "advise",
        "0 done; 1 a run failed or results could not be written; 2 the command line is wrong, nothing was run; 130 interrupted.",
    ),
    (
        "merge",
        "0 done; 1 results could not be read or written; 2 the shards cannot be merged, nothing was written.",
    ),
    (
        "explore",
        "0 ended by Ctrl-C; 1 the port cannot be opened; 2 the command line or the spec is wrong.",
    ),
    (
        "serve",
        "0 ended by SIGINT, SIGTERM or --once; 1 a socket or the association of --once failed; 2 the command line is wrong.",
    ),
    (
        "data-channels",
        "0 ended by SIGINT or SIGTERM; 1 a socket failed; 2 the command line is wrong.",
    ),
    (
        "perf",
        "0 done, or interrupted and summarised; 1 an association failed; 2 the command line is wrong; \
130 interrupted before the associations were up.",
    ),
    (
        "cat",
        "0 done; 1 the association failed; 2 the command line is wrong; 130 interrupted.",
    ),
    (
        "emulate",
        "0 ended by --time or interrupted; 1 a socket failed; 2 the command line or the spec is wrong.",
    ),
    (
        "shell",
        "that of COMMAND, or 128 plus the number of the signal that ended it; 1 the namespaces or the report cannot be made; \
2 the command line or the spec is wrong, nothing was run; 130 interrupted before COMMAND began.",
    ),
    (
        "wrap",
        "that of the program, or 128 plus the number of the signal that ended it; 1 the sockets cannot be opened; \
2 the command line is wrong, nothing was run.",
    ),
];

/// The command line, with the exit statuses at the end of each command's help.
///
/// The arguments of a command are made when it is the one that was asked for: to make them all takes longer than what small commands do.
/// So a command below another ends its help by [`with_status`] itself.
pub fn command() -> clap::Command {
    let mut all = Arguments::command();
    for command in all.get_subcommands_mut() {
        let help = command.get_after_help();
        let help = help.map_or(String::new(), |it| it.ansi().to_string());
        let help = with_status(command.get_name(), &help);
        *command = std::mem::take(command).after_help(help);
    }
    all
}

/// The words of a command line as clap reads them: its command `help` takes names of commands alone, and says the
/// same with `--help`.
pub fn words(line: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = line.collect();
    if words.get(1).is_some_and(|command| command == "help") {
        words.retain(|word| word != "--help" && word != "-h");
    }
    words
}

/// What stands at the end of a command's help, and its exit statuses.
pub fn with_status(name: &str, help: &str) -> String {
    let found = STATUSES.iter().find(|(of, _)| *of == name);
    let status = found.map_or(USUAL_STATUS, |(_, status)| status);
    let space = if help.is_empty() { "" } else { "\n\n" };
    format!("{help}{space}Exit status: {status}")
}

/// Prints what makes a shell complete the command's arguments.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "anabranch", &mut script);
    Ok(io::stdout().write_all(&script)?)
}

/// Prints a man page, or writes all of them into a directory.
pub fn man(arguments: &Man) -> Result<(), Failure> {
    // A page for each command is enough; `help` only prints the same again.
    let mut command = command()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// With the arguments of every command.
    fn whole() -> clap::Command {
        let mut all = command();
        all.build();
        all
    }

    fn check(command: &clap::Command) {
        let own = command.get_subcommands();
        for each in own.filter(|it| it.get_name() != "help") {
            let help = each.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            assert!(help.contains("Exit status: "), "{}", each.get_name());
            check(each);
        }
    }

    #[test]
    fn every_command_says_its_exit_statuses() {
        let all = whole();
        assert!(all.get_subcommands().count() > 10);
        check(&all);
    }

    #[test]
    fn a_command_has_the_help_of_the_list_of_commands() {
        let (listed, whole) = (command(), whole());
        for command in listed.get_subcommands() {
            let made = whole.find_subcommand(command.get_name());
            let made = made.and_then(clap::Command::get_about);
            let made = made.map(ToString::to_string);
            let listed = command.get_about().map(ToString::to_string);
            assert!(listed.is_some());
            assert_eq!(listed, made);
        }
    }

    fn check_signs(command: &clap::Command) {
        for option in command.get_arguments() {
            let (name, of) = (option.get_id(), command.get_name());
            let signed = crate::number::signed(option.clone());
            let takes = clap::Arg::is_allow_hyphen_values_set;
            assert_eq!(takes(&signed), takes(option), "{of}: {name}");
        }
        command.get_subcommands().for_each(check_signs);
    }

    #[test]
    fn every_option_that_reads_its_value_may_refuse_a_negative_one() {
        check_signs(&whole());
    }

    #[test]
    fn every_command_on_real_sockets_lists_its_settings() {
        let all = whole();
        for name in ["serve", "perf", "cat"] {
            let asked = all.find_subcommand(name).expect("a command");
            let set = asked.get_arguments().find(|it| it.get_id() == "set");
            let help = set.and_then(|it| it.get_long_help()).expect("a help");
            assert!(help.to_string().contains("receive_buffer"), "{name}");
        }
    }

    #[test]
    fn every_listed_status_is_of_a_command() {
        let all = whole();
        let nested = all.get_subcommands().flat_map(|it| it.get_subcommands());
        let names: Vec<&str> = all
            .get_subcommands()
            .chain(nested)
            .map(clap::Command::get_name)
            .collect();
        for (name, _) in STATUSES {
            assert!(names.contains(name), "{name}");
        }
    }
}
