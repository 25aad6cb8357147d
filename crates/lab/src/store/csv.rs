//! `measures.csv`: all scalars of all runs.

use std::io::BufWriter;
use std::path::Path;

use anabranch_scenario::records::RunRecord;

use super::{StoreError, write_atomically};
use crate::atomic_write::Durability;

/// Columns of `measures.csv`. The names and the values of several sweeps are joined by `;`.
const MEASURE_COLUMNS: [&str; 8] = [
    "experiment",
    "x_name",
    "x",
    "replication",
    "series",
    "metric",
    "value",
    "unit",
];

pub(super) fn write_measures(path: &Path, records: &[RunRecord]) -> Result<(), StoreError> {
    write_atomically(path, Durability::Buffered, |file| {
        let mut out = ::csv::Writer::from_writer(BufWriter::new(file));
        out.write_record(MEASURE_COLUMNS)?;
        for record in records {
            let names: Vec<&str> = record.point.iter().map(|(name, _)| name.as_str()).collect();
            let values: Vec<String> = record.point.iter().map(|(_, x)| x.to_string()).collect();
            let (names, values, replication) = (
                names.join(";"),
                values.join(";"),
                record.replication.to_string(),
            );
            for measure in &record.metrics {
                let value = measure.value.to_string();
                let run = [&record.experiment, &names, &values, &replication];
                out.write_record(run.into_iter().chain([
                    &measure.series,
                    &measure.metric,
                    &value,
                    &measure.unit,
                ]))?;
            }
        }
        out.flush()
    })
}
