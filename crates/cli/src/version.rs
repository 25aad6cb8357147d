//! Version of this program.

use anabranch_lab::build;

/// Version and commit in one line.
pub fn version() -> String {
    format!(
        "{} ({})",
        build::VERSION,
        build::COMMIT.unwrap_or("unknown commit")
    )
}
