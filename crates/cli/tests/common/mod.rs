//! Common parts of the tests of the command.

use std::path::Path;
use std::process::Command;

/// The command `anabranch` in a directory, without colours.
pub fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command
        .current_dir(directory)
        .args(arguments)
        .env("NO_COLOR", "1");
    command
}

/// Output of a command as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
