//! Exit statuses of commands, as text for their help.

/// Exit statuses of commands that are not in [`STATUSES`].
const USUAL_STATUS: &str =
    "0 done; 1 something failed; 2 the command line is wrong, nothing was done.";

/// Exit statuses of commands that run simulations.
const RUN_STATUS: &str = "0 done; 1 a run failed or results could not be written, repeat the command to continue; \
2 the command line or the spec is wrong, nothing was run; 130 interrupted.";

/// Exit statuses by command.
const STATUSES: &[(&str, &str)] = &[
    (
        "reproduce",
        "0 done, whatever the verdicts are; 1 a run failed or results could not be written, repeat the command to continue; \
2 the command line or the spec is wrong, nothing was run; 130 interrupted.",
    ),
    ("run", RUN_STATUS),
    ("slurm", RUN_STATUS),
    (
        "advise",
        "0 done; 1 a run failed or results could not be written; 2 the command line is wrong, nothing was run; 130 interrupted.",
    ),
    (
        "merge",
        "0 done; 1 results could not be read or written; 2 the shards cannot be merged, nothing was written.",
    ),
    (
        "explore",
        "0 ended by Ctrl-C; 1 the port cannot be opened; 2 the command line or the spec is wrong.",
    ),
    (
        "serve",
        "0 ended by SIGINT, SIGTERM or --once; 1 a socket or the association of --once failed; 2 the command line is wrong.",
    ),
    (
        "data-channels",
        "0 ended by SIGINT or SIGTERM; 1 a socket failed; 2 the command line is wrong.",
    ),
    (
        "perf",
        "0 done, or interrupted and summarised; 1 an association failed; 2 the command line is wrong; \
130 interrupted before the associations were up.",
    ),
    (
        "cat",
        "0 done; 1 the association failed; 2 the command line is wrong; 130 interrupted.",
    ),
    (
        "emulate",
        "0 ended by --duration or interrupted; 1 a socket failed; 2 the command line or the spec is wrong.",
    ),
    (
        "shell",
        "that of COMMAND, or 128 plus the number of the signal that ended it; 1 the namespaces or the report cannot be made; \
2 the command line or the spec is wrong, nothing was run; 130 interrupted before COMMAND began.",
    ),
    (
        "wrap",
        "that of the program, or 128 plus the number of the signal that ended it; 1 the sockets cannot be opened; \
2 the command line is wrong, nothing was run.",
    ),
];

/// Appends the exit statuses of the command `name` to the end of its help.
pub fn with_status(name: &str, help: &str) -> String {
    let found = STATUSES.iter().find(|(of, _)| *of == name);
    let status = found.map_or(USUAL_STATUS, |(_, status)| status);
    let space = if help.is_empty() { "" } else { "\n\n" };
    format!("{help}{space}Exit status: {status}")
}

/// The commands in [`STATUSES`].
#[cfg(test)]
pub fn names() -> impl Iterator<Item = &'static str> {
    STATUSES.iter().map(|(name, _)| *name)
}
