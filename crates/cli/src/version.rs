//! Version of this program.

use anabranch_lab::build;

/// One line: version and commit.
pub fn version() -> String {
    format!(
        "{} ({})",
        build::VERSION,
        build::COMMIT.unwrap_or("unknown commit")
    )
}
