//! Help texts, build features, shell completions and man pages.

use std::ffi::OsString;
#[cfg(feature = "man")]
use std::fs;
use std::io::{self, Write};
#[cfg(feature = "man")]
use std::path::Path;

use anabranch_engine::kinds::Standard;
use anabranch_lab::build;
use anabranch_settings::Variant;
use clap::{CommandFactory, ValueEnum};
use clap_complete::Shell;

use crate::arguments::Arguments;
#[cfg(feature = "man")]
use crate::arguments::Man;
use crate::failure::Failure;
use crate::net::arguments::CarrierKind;
use crate::status::with_status;

/// Text of `--version`: version, commit, and features of the build.
fn long_version() -> String {
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

/// Lists the carriers, transports, workloads, queues and models of loss and delay of this build,
/// which depend on its features.
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

/// The definition of the command line, with the long version, and with the exit statuses at the end
/// of each command's help.
///
/// The arguments of a command are built only for the requested command, because building the
/// arguments of all commands takes longer than the work of small commands. Therefore the help of a
/// nested subcommand must call [`with_status`] itself.
pub fn command() -> clap::Command {
    let mut all = Arguments::command().long_version(long_version());
    for command in all.get_subcommands_mut() {
        let help = command.get_after_help();
        let help = help.map_or(String::new(), |it| it.ansi().to_string());
        let help = with_status(command.get_name(), &help);
        *command = std::mem::take(command).after_help(help);
    }
    all
}

/// Replaces `help` in the words of the command line by the option `--help`, because clap's command
/// `help` accepts only names of commands.
pub fn words(line: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = line.collect();
    if words.get(1).is_some_and(|command| command == "help") {
        words.retain(|word| word != "--help" && word != "-h");
    }
    words
}

/// Prints the completion script of a shell.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "anabranch", &mut script);
    Ok(io::stdout().write_all(&script)?)
}

#[cfg(not(feature = "man"))]
pub use crate::absent::man::man;

/// Prints a man page, or writes all of them into a directory.
#[cfg(feature = "man")]
pub fn man(arguments: &Man) -> Result<(), Failure> {
    // There is no page for the command `help`, because it prints the same text as the other pages.
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

/// A page for the program and one for each of its commands: `anabranch.1`, `anabranch-run.1` ...
#[cfg(feature = "man")]
fn write_pages(command: clap::Command, directory: &Path) -> Result<(), Failure> {
    let failed =
        |error: io::Error| Failure::Net(format!("cannot write {}: {error}", directory.display()));
    fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(command, directory).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of the command line with the arguments of all commands.
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
        for name in crate::status::names() {
            assert!(names.contains(&name), "{name}");
        }
    }
}
