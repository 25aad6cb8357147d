//! Errors for former names of flags and commands.

use anabranch_settings::{NameCategory, RENAMED, Renamed};
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The error for a former name, which names its replacement.
pub fn hint(error: &clap::Error) -> Option<String> {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(name)) => Some(name.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let found = named(ContextKind::InvalidSubcommand)?;
            renamed(found, |it| it.family == NameCategory::Command)
        }
        ErrorKind::UnknownArgument => {
            let command = std::env::args().nth(1)?;
            flag(&command, named(ContextKind::InvalidArg)?)
        }
        _ => None,
    }
}

/// The error for a former flag of a command, which names its replacement.
pub fn flag(command: &str, found: &str) -> Option<String> {
    let found = found.split('=').next().unwrap_or(found);
    let of_command = |it: &Renamed| match it.family {
        NameCategory::Flag(commands) => commands.contains(&command),
        _ => false,
    };
    renamed(found, of_command)
}

fn renamed(found: &str, is_there: impl Fn(&Renamed) -> bool) -> Option<String> {
    let such = RENAMED.iter().find(|it| it.old == found && is_there(it))?;
    Some(format!(
        "found `{found}`, which is renamed to `{}`",
        such.new
    ))
}
