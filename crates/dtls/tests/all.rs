//! All tests of this crate in one program with a module per file, because linking is the main cost
//! of a small test. `--test all MODULE::` runs one module. A test that needs a separate process is
//! a separate program, listed in Cargo.toml.

mod hostile;

mod hostile_bytes;
mod rfc6083_openssl;
mod vectors;
