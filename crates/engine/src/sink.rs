//! Where a run's samples and its record go.

use std::error::Error;

use anabranch_scenario::records::{RunRecord, Series, SeriesKey, SeriesSample};
use anabranch_scenario::value::Point;

/// What a sink says when it cannot take more.
pub type SinkError = Box<dyn Error + Send + Sync>;

/// Which run of a plan it is.
#[derive(Clone, Copy, Debug)]
pub struct RunId<'a> {
    /// The experiment's id.
    pub experiment: &'a str,
    /// The point of its sweeps.
    pub point: &'a Point,
    /// Replication, counted from 0.
    pub replication: u32,
}

/// Takes what a run gives: its beginning, its samples in the order of time, its record. A run ends at the first error.
pub trait Sink {
    /// A run begins; its samples name their series by the place in `keys`.
    ///
    /// # Errors
    /// The sink's own.
    fn begin(&mut self, run: RunId<'_>, keys: &[SeriesKey]) -> Result<(), SinkError>;

    /// More samples of the run, each with the place of its series.
    ///
    /// # Errors
    /// The sink's own.
    fn samples(&mut self, samples: &[(u32, SeriesSample)]) -> Result<(), SinkError>;

    /// The run is over.
    ///
    /// # Errors
    /// The sink's own.
    fn end(&mut self, record: &RunRecord) -> Result<(), SinkError>;
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Sink for Discard {
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
    /// The series, in the order of the runs; those without samples too.
    pub series: Vec<Series>,
    /// Where the series of the present run begin.
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
