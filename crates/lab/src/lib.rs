//! Experiments as files: execution of runs by a pool of threads, incremental storage and
//! resumption, and papers with their published values.
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations, unnameable_types, unreachable_pub)]
#![warn(clippy::use_self)]

#[cfg(feature = "arrow")]
pub mod arrow;
mod arrow_metadata;
pub mod atomic_write;
pub mod build;
mod carried;
pub mod channel;
pub mod columns;
pub mod journal;
pub mod measures;
pub mod outputs;
pub mod papers;
mod parquet_schema;
pub mod parquet_table;
pub mod plain;
mod pool;
pub mod reference;
mod rows;
pub mod run;
pub mod series;
pub mod shard;
pub mod spec_files;
pub mod spec_source;
pub mod store;
pub mod threads;
