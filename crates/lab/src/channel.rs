//! Progress of runs as messages for another thread, for example to draw a run while it is computed.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anabranch_engine::sink::{RunId, Sink, SinkError};
use anabranch_scenario::records::{RunRecord, SeriesKey, SeriesSample};
use anabranch_scenario::value::Point;

/// Message about a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
    /// The run starts.
    Begun {
        /// Id of the experiment.
        experiment: String,
        /// Point of the sweeps.
        point: Point,
        /// Replication, counted from 0.
        replication: u32,
        /// Series of the run. Samples refer to them by their index.
        keys: Vec<SeriesKey>,
    },
    /// Samples, ordered by time, each with the index of its series.
    Samples(Vec<(u32, SeriesSample)>),
    /// The run has ended.
    Ended(Box<RunRecord>),
}

/// Sink that sends messages through a channel. If the receiver was dropped, the run ends with an
/// error.
#[derive(Clone, Debug)]
pub struct Channel {
    sender: SyncSender<RunEvent>,
}

impl Channel {
    /// Creates a channel with space for `room` messages. While it is full, the run waits for the
    /// receiver.
    pub fn new(room: usize) -> (Self, Receiver<RunEvent>) {
        let (sender, receiver) = sync_channel(room);
        (Self { sender }, receiver)
    }

    fn send_event(&self, event: RunEvent) -> Result<(), SinkError> {
        self.sender.send(event).map_err(|_| "nobody listens".into())
    }
}

impl Sink for Channel {
    fn begin(&mut self, run: RunId<'_>, keys: &[SeriesKey]) -> Result<(), SinkError> {
        self.send_event(RunEvent::Begun {
            experiment: run.experiment.to_owned(),
            point: run.point.clone(),
            replication: run.replication,
            keys: keys.to_vec(),
        })
    }

    fn samples(&mut self, samples: &[(u32, SeriesSample)]) -> Result<(), SinkError> {
        self.send_event(RunEvent::Samples(samples.to_vec()))
    }

    fn end(&mut self, record: &RunRecord) -> Result<(), SinkError> {
        self.send_event(RunEvent::Ended(Box::new(record.clone())))
    }
}
