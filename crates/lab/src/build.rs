//! Build information of this program.

/// Package version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Commit of the build, twelve digits, if known.
pub const COMMIT: Option<&str> = option_env!("ANABRANCH_BUILT_FROM");
/// Fingerprint of the code that affects results. Programs with the same fingerprint give the same
/// results.
pub const CODE: &str = env!("ANABRANCH_CODE");
