//! What this program was built from.

/// Version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Commit it was built from, twelve digits, where that is known.
pub const COMMIT: Option<&str> = option_env!("ANABRANCH_BUILT_FROM");
/// Fingerprint of the code that results depend on: programs with the same one give the same results.
pub const CODE: &str = env!("ANABRANCH_CODE");
