//! Streaming responses: lines of JSON about a run, and their queue to the client.

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

/// Time to wait if the queue is full. A slow client should have read something by then, and users
/// do not notice the delay.
const PAUSE: Duration = Duration::from_millis(2);
/// Maximum number of such waits before the last line is sent: one second in total.
const PAUSES: u32 = 500;

/// A line of a response.
#[derive(Serialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub enum ResponseLine<'a> {
    /// The spec is valid, and the run starts.
    Begin {
        /// Duration of the run, simulated seconds.
        duration: f64,
        /// Start and end of the displayed time window, seconds.
        window: (f64, f64),
        /// The spec of this run, as TOML.
        toml: &'a str,
        /// Flows that the ladder view can show: name and member.
        flows: Vec<(String, u32)>,
    },
    /// Further points of lines.
    Points {
        /// Progress, simulated seconds.
        at: f64,
        /// The new points of each line.
        lines: Vec<SeriesPoints<'a>>,
    },
    /// The run has ended.
    End {
        /// The measures of the run.
        measures: &'a [Measure],
        /// Failures that occurred during the run.
        failures: &'a [String],
        /// Number of simulated events.
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
        /// Reason of the failure, as text for the user.
        text: String,
    },
    /// The run was stopped, because a later run of the same pane has replaced it.
    Superseded,
}

/// Further points of a line.
#[derive(Serialize)]
pub struct SeriesPoints<'a> {
    /// Name of the flow or link.
    pub entity: &'a str,
    /// Number of the member.
    pub member: u32,
    /// Name of the probe.
    pub probe: &'a str,
    /// Unit of the values.
    pub unit: &'a str,
    /// Path or stream of the sample; for drops, the reason.
    pub index: u16,
    /// Times of the points, seconds.
    pub x: Vec<f32>,
    /// Values of the points.
    pub y: Vec<f32>,
}

impl ResponseLine<'_> {
    /// The line as JSON, with a line feed.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

/// Output of a response. It is cancelled if the client disconnects or another request replaces this
/// one.
#[derive(Clone, Debug)]
pub struct EventStream {
    sender: Sender<Bytes>,
    newest: Arc<AtomicU64>,
    ticket: u64,
}

/// Why a run was stopped early.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("another run took its place")]
    Superseded,
    #[error("nobody listens")]
    Unheard,
}

impl EventStream {
    /// Creates the output for the request with this ticket, which is valid as long as the ticket is
    /// the newest.
    pub fn new(sender: Sender<Bytes>, newest: Arc<AtomicU64>, ticket: u64) -> Self {
        Self {
            sender,
            newest,
            ticket,
        }
    }

    /// Checks whether the response is still needed.
    ///
    /// # Errors
    /// The response is no longer needed.
    pub fn check(&self) -> Result<(), SinkError> {
        if self.newest.load(Ordering::Relaxed) != self.ticket {
            return Err(Ended::Superseded.into());
        }
        match self.sender.is_closed() {
            true => Err(Ended::Unheard.into()),
            false => Ok(()),
        }
    }

    /// Sends data, and waits while the client is slow. The wait ends if another request replaces
    /// this one.
    ///
    /// # Errors
    /// The response is no longer needed.
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

    /// Sends the last line, if the client is connected. A request that has replaced this one waits
    /// until this line is sent, but only for a short time.
    pub fn say(&self, line: &ResponseLine<'_>) {
        let mut bytes = Bytes::from(line.bytes());
        for _ in 0..PAUSES {
            bytes = match self.sender.try_send(bytes) {
                Err(TrySendError::Full(bytes)) => bytes,
                Ok(()) | Err(TrySendError::Closed(_)) => return,
            };
            thread::sleep(PAUSE);
        }
    }

    /// Sends the error of a run that has failed.
    pub fn failed(&self, error: &WorldError) {
        let superseded = self.newest.load(Ordering::Relaxed) != self.ticket;
        self.say(&match superseded {
            true => ResponseLine::Superseded,
            false => ResponseLine::Failed {
                text: error.to_string(),
            },
        });
    }

    /// Sends the errors of a spec.
    pub fn refused(&self, error: &SpecError) {
        self.say(&ResponseLine::Refused {
            text: error.to_string(),
        });
    }
}
