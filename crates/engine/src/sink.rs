//! Sinks, which receive the samples and the record of each run.

use std::error::Error;

use anabranch_scenario::records::{RunRecord, SeriesKey, SeriesRecord, SeriesSample};
use anabranch_scenario::value::Point;

/// Error of a sink that cannot accept more output.
pub type SinkError = Box<dyn Error + Send + Sync>;

/// Identity of a run in a plan.
#[derive(Clone, Copy, Debug)]
pub struct RunId<'a> {
    /// Id of the experiment.
    pub experiment: &'a str,
    /// x values of the point.
    pub point: &'a Point,
    /// Number of the replication, from 0.
    pub replication: u32,
}

/// Receives the output of a run: its start, its samples in the order of time, and its record. The
/// run stops at the first error of the sink.
pub trait Sink {
    /// Called when a run starts. Samples refer to their series by an index into `keys`.
    ///
    /// # Errors
    /// The sink cannot accept more output.
    fn begin(&mut self, run: RunId<'_>, keys: &[SeriesKey]) -> Result<(), SinkError>;

    /// Called with the next samples of the run, each with the index of its series.
    ///
    /// # Errors
    /// The sink cannot accept more output.
    fn samples(&mut self, samples: &[(u32, SeriesSample)]) -> Result<(), SinkError>;

    /// Called when the run ends.
    ///
    /// # Errors
    /// The sink cannot accept more output.
    fn end(&mut self, record: &RunRecord) -> Result<(), SinkError>;
}

/// Sink that discards all output.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl Sink for NullSink {
    fn begin(&mut self, _: RunId<'_>, _: &[SeriesKey]) -> Result<(), SinkError> {
        Ok(())
    }

    fn samples(&mut self, _: &[(u32, SeriesSample)]) -> Result<(), SinkError> {
        Ok(())
    }

    fn end(&mut self, _: &RunRecord) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Sink that keeps all output in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Records, in the order of the runs.
    pub records: Vec<RunRecord>,
    /// Series in the order of the runs, including those without samples.
    pub series: Vec<SeriesRecord>,
    /// Index of the first series of the current run.
    begin: usize,
}

impl Sink for Memory {
    fn begin(&mut self, run: RunId<'_>, keys: &[SeriesKey]) -> Result<(), SinkError> {
        self.begin = self.series.len();
        self.series.extend(keys.iter().map(|key| SeriesRecord {
            experiment: run.experiment.to_owned(),
            point: run.point.clone(),
            replication: run.replication,
            entity: key.entity.clone(),
            member: key.member,
            probe: key.probe.to_owned(),
            samples: Vec::new(),
        }));
        Ok(())
    }

    fn samples(&mut self, samples: &[(u32, SeriesSample)]) -> Result<(), SinkError> {
        for &(key, sample) in samples {
            match self.series.get_mut(self.begin + key as usize) {
                Some(series) => series.samples.push(sample),
                None => return Err(format!("a sample of series {key}, which did not begin").into()),
            }
        }
        Ok(())
    }

    fn end(&mut self, record: &RunRecord) -> Result<(), SinkError> {
        self.records.push(record.clone());
        Ok(())
    }
}
