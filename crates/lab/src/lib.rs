//! Experiments as data: spec, sweep, run, statistics, comparison, tables, figures, report
