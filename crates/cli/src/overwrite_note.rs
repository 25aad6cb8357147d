//! Note about results directories that are overwritten.

use std::path::Path;

use anabranch_lab::plain;
use anabranch_scenario::records::Manifest;

use crate::stderr::note;

/// Prints a note if the results of `name` will replace results of another spec in a directory.
pub fn print_overwrite_note(directory: &Path, name: &str) {
    let Ok(text) = plain::text(&directory.join("manifest.json")) else {
        return;
    };
    let manifest: Result<Manifest, _> = serde_json::from_str(&text);
    if let Some(before) = manifest.ok().map(|it| it.name).filter(|it| it != name) {
        note(format_args!(
            "note: {}: the results of {before} are replaced by those of {name}; files that {name} does not write stay",
            directory.display()
        ));
    }
}
