//! Sinks: the destination of a run's samples and record.

use std::error::Error;

use anabranch_scenario::records::{RunRecord, Series, SeriesKey, SeriesSample};
use anabranch_scenario::value::Point;

/// The error of a sink that cannot accept more.
pub type SinkError = Box<dyn Error + Send + Sync>;

/// The identity of a run in a plan.
#[derive(Clone, Copy, Debug)]
pub struct RunId<'a> {
    /// The experiment's id.
    pub experiment: &'a str,
    /// The point of its sweeps.
    pub point: &'a Point,
    /// Replication, counted from 0.
    pub replication: u32,
}

/// Receives the output of a run: its start, its samples in order of time, its record. A run stops
/// at the first error.
pub trait Sink {
    /// A run starts; its samples refer to their series by index in `keys`.
    ///
    /// # Errors
    /// An error of the sink.
    fn begin(&mut self, run: RunId<'_>, keys: &[SeriesKey]) -> Result<(), SinkError>;

    /// More samples of the run, each with the index of its series.
    ///
    /// # Errors
    /// An error of the sink.
    fn samples(&mut self, samples: &[(u32, SeriesSample)]) -> Result<(), SinkError>;

    /// The run ended.
    ///
    /// # Errors
    /// An error of the sink.
    fn end(&mut self, record: &RunRecord) -> Result<(), SinkError>;
}

/// Discards everything.
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

/// Keeps everything in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The records, in the order of the runs.
    pub records: Vec<RunRecord>,
    /// The series, in the order of the runs; those without samples included.
    pub series: Vec<Series>,
    /// Index of the first series of the current run.
    begin: usize,
}

impl Sink for Memory {
    fn begin(&mut self, run: RunId<'_>, keys: &[SeriesKey]) -> Result<(), SinkError> {
        self.begin = self.series.len();
        self.series.extend(keys.iter().map(|key| Series {
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
