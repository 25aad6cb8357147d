//! Help texts about satellites: the predefined shells, and the conventions of a path.

use std::fmt::Write as _;

use anabranch_orbit::{OrbitConfig, SHELLS};
use anabranch_settings::Section;

/// The help of `--shell`.
pub fn shells() -> String {
    let mut text =
        "The satellites, one of these; --set changes each of their numbers:\n".to_owned();
    for shell in SHELLS {
        let _ = write!(text, "\n  {:<16} {}", shell.name, shell.about);
    }
    text
}

/// The help of `--set`.
pub fn conventions() -> String {
    let default = OrbitConfig::default();
    let section = Section {
        title: "Conventions (--set KEY=VALUE)",
        about: "",
        settings: OrbitConfig::SETTINGS,
        profiles: &["starlink-1"],
        fallback: &|_, name| default.show(name),
    };
    format!(
        "Set a convention (repeatable). Published studies differ in them.\n\n{}",
        section.help(88)
    )
}
