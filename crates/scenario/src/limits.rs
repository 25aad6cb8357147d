//! How much a spec may ask for. What lies beyond would exhaust memory long before it gave a result, so it is refused where
//! it is written, before anything runs.

/// Bytes of a name or id. Files are called by it, and a file's name has at most 255 bytes.
pub const MAX_NAME: usize = 100;

/// Points of one experiment: the product of its sweeps. Each point is a world that is checked and kept.
pub const MAX_POINTS: usize = 20_000;

/// Runs of one plan: points times replications, over all experiments. Each gives a record that is kept in memory.
pub const MAX_RUNS: u64 = 1_000_000;

/// Bins of one recorded series: the duration of a run over the width of a bin.
pub const MAX_BINS: u64 = 1_000_000;

/// Messages that one member of a flow offers in a run at a constant rate.
pub const MAX_MESSAGES: u128 = 1_000_000_000;

/// Members of all nodes of a world together.
pub const MAX_NODES: u64 = 100_000;

/// Parameters that may name each other in a row: each is computed within the one that names it.
pub const MAX_CHAIN: usize = 128;

/// Values within one another, those of parameters put in. A file alone has fewer, or is no TOML to its reader.
pub const MAX_DEPTH: usize = 256;

/// What parameters put into a spec, bytes of text and 16 for each value: one that names another twice doubles it.
pub const MAX_PUT_IN: usize = 16 << 20;

/// Faults of a spec that are told. Who has more begins with these.
pub const MAX_PROBLEMS: usize = 100;
