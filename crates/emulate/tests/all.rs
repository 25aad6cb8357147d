//! All tests of this crate in one program with a module per file, because linking is the main cost
//! of a small test. `--test all MODULE::` runs one module.

mod links;
mod path;
