//! Streaming responses: lines of JSON about a run, and the queue to the client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anabranch_engine::sink::SinkError;
use anabranch_engine::world::WorldError;
use anabranch_scenario::diagnostic::SpecError;
use anabranch_scenario::records::Measure;
use axum::body::Bytes;
use serde::Serialize;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

/// Waiting time after the queue was full. A slow page should have read something by then, and users
/// do not notice such a delay.
const PAUSE: Duration = Duration::from_millis(2);
/// Maximum number of these waits before the last line is sent: one second in total.
const PAUSES: u32 = 500;

/// A line of the response.
#[derive(Serialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub enum Line<'a> {
    /// The spec is valid, and the run begins.
    Begin {
        /// Duration, seconds of simulated time.
        duration: f64,
        /// Displayed time window.
        window: (f64, f64),
        /// Spec of this run.
        toml: &'a str,
        /// Flows available for the ladder view: name and member.
        flows: Vec<(String, u32)>,
    },
    /// Further points of lines.
    Points {
        /// Progress, seconds of simulated time.
        at: f64,
        /// The lines.
        lines: Vec<Points<'a>>,
    },
    /// The run has ended.
    End {
        /// Measures.
        measures: &'a [Measure],
        /// Failures during the run.
        failures: &'a [String],
        /// Number of simulator events.
        events: u64,
        /// Duration of the computation, seconds.
        took: f64,
    },
    /// The spec is invalid.
    Refused {
        /// Error message, as printed by the command.
        text: String,
    },
    /// The run failed.
    Failed {
        /// Reason.
        text: String,
    },
    /// A later run of the same pane replaced this run.
    Superseded,
}

/// Further points of a line.
#[derive(Serialize)]
pub struct Points<'a> {
    /// Flow or link.
    pub entity: &'a str,
    /// Member of the flow.
    pub member: u32,
    /// Name of the probe.
    pub probe: &'a str,
    /// Unit of the values.
    pub unit: &'a str,
    /// Path or stream, or the reason of drops.
    pub index: u16,
    /// Times, seconds.
    pub x: Vec<f32>,
    /// Values.
    pub y: Vec<f32>,
}

impl Line<'_> {
    /// Encoded line.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

/// Output stream of a response. It is cancelled if the client disconnects or another request
/// replaces it.
#[derive(Clone, Debug)]
pub struct EventStream {
    sender: Sender<Bytes>,
    newest: Arc<AtomicU64>,
    ticket: u64,
}

/// Reason why a run was stopped early.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("another run took its place")]
    Superseded,
    #[error("nobody listens")]
    Unheard,
}

impl EventStream {
    /// Stream for the request with this ticket, valid as long as the ticket is the newest.
    pub fn new(sender: Sender<Bytes>, newest: Arc<AtomicU64>, ticket: u64) -> Self {
        Self {
            sender,
            newest,
            ticket,
        }
    }

    /// Checks whether the response is still wanted.
    ///
    /// # Errors
    /// The response is no longer wanted.
    pub fn check(&self) -> Result<(), SinkError> {
        if self.newest.load(Ordering::Relaxed) != self.ticket {
            return Err(Ended::Superseded.into());
        }
        match self.sender.is_closed() {
            true => Err(Ended::Unheard.into()),
            false => Ok(()),
        }
    }

    /// Sends data, waiting while the client is slow. The wait ends if another request replaces this
    /// one.
    ///
    /// # Errors
    /// The response is no longer wanted.
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

    /// Sends the last line if the client is connected. A request that replaces this one waits for
    /// it, but only briefly.
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

    /// Reports that a run did not complete.
    pub fn failed(&self, error: &WorldError) {
        let superseded = self.newest.load(Ordering::Relaxed) != self.ticket;
        self.say(&match superseded {
            true => Line::Superseded,
            false => Line::Failed {
                text: error.to_string(),
            },
        });
    }

    /// Reports the errors of a spec.
    pub fn refused(&self, error: &SpecError) {
        self.say(&Line::Refused {
            text: error.to_string(),
        });
    }
}
