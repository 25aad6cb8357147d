//! Upper limits of the contents of a spec. A larger spec would exhaust memory before its runs end,
//! so it is rejected before any run.

/// Maximum length of a name or id, bytes. It is used in names of files, which should not exceed 255
/// bytes.
pub const MAX_NAME: usize = 100;

/// Maximum number of points of one experiment, which is the product of the points of its sweeps.
/// Each point describes a separate world, which is checked before any run.
pub const MAX_POINTS: usize = 20_000;

/// Maximum number of runs of one plan: points times replications, over all experiments. The record
/// of each run is kept in memory.
pub const MAX_RUNS: u64 = 1_000_000;

/// Maximum number of bins of one recorded series: duration of a run divided by the bin width.
pub const MAX_BINS: u64 = 1_000_000;

/// Maximum number of messages that one member of a flow offers in a run.
pub const MAX_MESSAGES: u128 = 1_000_000_000;

/// Maximum number of nodes of a world, including all members of groups.
pub const MAX_NODES: u64 = 100_000;

/// Maximum number of links of a world, including all members of groups. Each link has a network in
/// 10.0.0.0/8.
pub const MAX_LINKS: u64 = 65_536;

/// Maximum length of a chain of parameters that refer to one another. The limit is needed because
/// parameters are computed recursively.
pub const MAX_CHAIN: usize = 128;

/// Maximum nesting depth of values, including those of substituted parameters. The TOML parser has
/// a lower limit for the file itself.
pub const MAX_DEPTH: usize = 256;

/// Maximum total size of substituted parameters: bytes of text, plus 16 for each value. The limit
/// is needed because the size doubles with each parameter that mentions another parameter twice.
pub const MAX_PUT_IN: usize = 16 << 20;

/// Maximum number of errors of a spec that are reported. If there are more, only the first ones are
/// reported.
pub const MAX_PROBLEMS: usize = 100;
