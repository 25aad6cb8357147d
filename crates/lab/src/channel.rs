//! Runs that are heard of elsewhere while they go on: by another thread, or by whoever draws them.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anabranch_engine::sink::{RunId, Sink, SinkError};
use anabranch_scenario::records::{RunRecord, SeriesKey, SeriesSample};
use anabranch_scenario::value::Point;

/// What a run tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// It begins.
    Begun {
        /// The experiment's id.
        experiment: String,
        /// The point of its sweeps.
        point: Point,
        /// Replication, counted from 0.
        replication: u32,
        /// Its series, which samples name by their place here.
        keys: Vec<SeriesKey>,
    },
    /// More samples, in the order of time.
    Samples(Vec<(u32, SeriesSample)>),
    /// It is over.
    Ended(Box<RunRecord>),
}

/// Sends what a run gives through a channel. Where nobody listens any more, the run ends with an error.
#[derive(Clone, Debug)]
pub struct Channel {
    sender: SyncSender<Told>,
}

impl Channel {
    /// A channel in which up to `room` messages wait; then the run waits for its listener.
    pub fn new(room: usize) -> (Self, Receiver<Told>) {
        let (sender, receiver) = sync_channel(room);
        (Self { sender }, receiver)
    }

    fn tell(&self, told: Told) -> Result<(), SinkError> {
        self.sender.send(told).map_err(|_| "nobody listens".into())
    }
}

impl Sink for Channel {
    fn begin(&mut self, run: RunId<'_>, keys: &[SeriesKey]) -> Result<(), SinkError> {
        self.tell(Told::Begun {
            experiment: run.experiment.to_owned(),
            point: run.point.clone(),
            replication: run.replication,
            keys: keys.to_vec(),
        })
    }

    fn samples(&mut self, samples: &[(u32, SeriesSample)]) -> Result<(), SinkError> {
        self.tell(Told::Samples(samples.to_vec()))
    }

    fn end(&mut self, record: &RunRecord) -> Result<(), SinkError> {
        self.tell(Told::Ended(Box::new(record.clone())))
    }
}
