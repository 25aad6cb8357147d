//! Upper limits of a spec. A spec beyond them would exhaust memory long before it gave a result, so
//! it is rejected before any run.

/// Bytes of a name or id. Files are named after it, and a file name should not exceed 255 bytes.
pub const MAX_NAME: usize = 100;

/// Points of one experiment: the product of its sweeps. Each point is a world that is checked and
/// stored in memory.
pub const MAX_POINTS: usize = 20_000;

/// Runs of one plan: points times replications, over all experiments. Each run gives a record that
/// is kept in memory.
pub const MAX_RUNS: u64 = 1_000_000;

/// Bins of one recorded series: duration of a run divided by the bin width.
pub const MAX_BINS: u64 = 1_000_000;

/// Messages of one member of a flow in a run at a constant rate.
pub const MAX_MESSAGES: u128 = 1_000_000_000;

/// Nodes of a world, all members counted.
pub const MAX_NODES: u64 = 100_000;

/// Links of a world, all members counted. Each has a network in 10.0.0.0/8.
pub const MAX_LINKS: u64 = 65_536;

/// Length of a chain of parameters that refer to one another. The depth must be limited because
/// each parameter is computed recursively.
pub const MAX_CHAIN: usize = 128;

/// Nesting depth of values, including those of substituted parameters. The TOML parser has a lower
/// limit for a file alone.
pub const MAX_DEPTH: usize = 256;

/// Total size of substituted parameters: bytes of text, and 16 for each value. The size must be
/// limited because a parameter that names another parameter twice doubles the size.
pub const MAX_PUT_IN: usize = 16 << 20;

/// Reported faults of a spec. If there are more errors, the first errors are reported.
pub const MAX_PROBLEMS: usize = 100;
