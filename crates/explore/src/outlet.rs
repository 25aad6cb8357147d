//! What the page is told of a run: lines of JSON, and where they go.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anabranch_engine::sink::SinkError;
use anabranch_engine::world::WorldError;
use anabranch_scenario::problem::SpecError;
use anabranch_scenario::records::Measure;
use axum::body::Bytes;
use serde::Serialize;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

/// How long a full queue is left alone: a slow page has taken something by then, and nobody notices so short a wait.
const PAUSE: Duration = Duration::from_millis(2);
/// How many of them the last word waits: a second together.
const PAUSES: u32 = 500;

/// A line of the answer.
#[derive(Serialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub enum Line<'a> {
    /// The spec is right, and the run begins.
    Begin {
        /// How long it will be, seconds of simulated time.
        duration: f64,
        /// The time shown.
        window: (f64, f64),
        /// The spec of this run.
        toml: &'a str,
        /// The flows that a ladder can show: name and member.
        flows: Vec<(String, u32)>,
    },
    /// More of each line that has more.
    Points {
        /// How far the run is, seconds of simulated time.
        at: f64,
        /// The lines.
        lines: Vec<Points<'a>>,
    },
    /// The run is over.
    End {
        /// Its measures.
        measures: &'a [Measure],
        /// What went wrong in it.
        failures: &'a [String],
        /// Events of the simulator.
        events: u64,
        /// How long it took, seconds.
        took: f64,
    },
    /// The spec is wrong.
    Refused {
        /// What is wrong, as the command says it.
        text: String,
    },
    /// The run failed.
    Failed {
        /// Why.
        text: String,
    },
    /// Another run of the same pane took its place.
    Superseded,
}

/// More of a line.
#[derive(Serialize)]
pub struct Points<'a> {
    /// Flow or link.
    pub entity: &'a str,
    /// Which member of the flow.
    pub member: u32,
    /// What is measured.
    pub probe: &'a str,
    /// In which unit.
    pub unit: &'a str,
    /// Path or stream; the reason of drops.
    pub index: u16,
    /// Times, seconds.
    pub x: Vec<f32>,
    /// Values.
    pub y: Vec<f32>,
}

impl Line<'_> {
    /// As it is sent.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

/// Where the bytes of an answer go, until nobody listens or another request takes its place.
#[derive(Clone, Debug)]
pub struct Outlet {
    sender: Sender<Bytes>,
    newest: Arc<AtomicU64>,
    ticket: u64,
}

/// Why a run ended that was not at its end.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("another run took its place")]
    Superseded,
    #[error("nobody listens")]
    Unheard,
}

impl Outlet {
    /// For the request of a ticket, as long as that is the newest.
    pub fn new(sender: Sender<Bytes>, newest: Arc<AtomicU64>, ticket: u64) -> Self {
        Self {
            sender,
            newest,
            ticket,
        }
    }

    /// Whether the answer is still wanted.
    ///
    /// # Errors
    /// It is not.
    pub fn check(&self) -> Result<(), SinkError> {
        if self.newest.load(Ordering::Relaxed) != self.ticket {
            return Err(Ended::Superseded.into());
        }
        match self.sender.is_closed() {
            true => Err(Ended::Unheard.into()),
            false => Ok(()),
        }
    }

    /// Sends more, and waits while the listener is slow. Who takes its place does not wait for one that reads nothing.
    ///
    /// # Errors
    /// The answer is no longer wanted.
    pub fn put(&self, bytes: Vec<u8>) -> Result<(), SinkError> {
        let mut bytes = Bytes::from(bytes);
        loop {
            self.check()?;
            bytes = match self.sender.try_send(bytes) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(bytes)) => bytes,
                Err(TrySendError::Closed(_)) => return Err(Ended::Unheard.into()),
            };
            thread::sleep(PAUSE);
        }
    }

    /// Says how it ended, if anybody listens: whoever takes its place waits for that, but not long.
    pub fn say(&self, line: &Line<'_>) {
        let mut bytes = Bytes::from(line.bytes());
        for _ in 0..PAUSES {
            bytes = match self.sender.try_send(bytes) {
                Err(TrySendError::Full(bytes)) => bytes,
                Ok(()) | Err(TrySendError::Closed(_)) => return,
            };
            thread::sleep(PAUSE);
        }
    }

    /// Says that a run did not come to its end.
    pub fn failed(&self, error: &WorldError) {
        let superseded = self.newest.load(Ordering::Relaxed) != self.ticket;
        self.say(&match superseded {
            true => Line::Superseded,
            false => Line::Failed {
                text: error.to_string(),
            },
        });
    }

    /// Says what is wrong with a spec.
    pub fn refused(&self, error: &SpecError) {
        self.say(&Line::Refused {
            text: error.to_string(),
        });
    }
}
