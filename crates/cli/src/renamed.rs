//! Former names of flags and commands on the command line.

use anabranch_settings::{Family, RENAMED};
use clap::error::{ContextKind, ContextValue};

/// The error for a former name: states the present one.
pub fn hint(error: &clap::Error) -> Option<String> {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(name)) => Some(name.as_str()),
        _ => None,
    };
    let (found, command) = match error.kind() {
        clap::error::ErrorKind::InvalidSubcommand => (named(ContextKind::InvalidSubcommand)?, None),
        clap::error::ErrorKind::UnknownArgument => {
            (named(ContextKind::InvalidArg)?, std::env::args().nth(1))
        }
        _ => return None,
    };
    let found = found.split('=').next().unwrap_or(found);
    let such = RENAMED.iter().find(|it| {
        it.old == found
            && match it.family {
                Family::Command => command.is_none(),
                Family::Flag(commands) => {
                    command.as_deref().is_some_and(|it| commands.contains(&it))
                }
                _ => false,
            }
    });
    such.map(|it| format!("found `{found}`, which is renamed to `{}`", it.new))
}
