//! Trace-driven workload: messages from a list.

use anabranch_settings::units::show_time;
use anabranch_settings::{Kind, KindEntry, KindError, SettingValue, kind, table};
use anabranch_transport::Nanos;

use super::{BoxedWorkload, Context, Facts, Message, NextMessage, PAUSE, SIZE, Workload};
use crate::error::BuildError;

kind! {
    /// The parameter of [`MessageTrace`].
    struct TraceConfig {
        /// Messages of the trace, in the order of time.
        messages: Vec<TraceEntry>, Kind::List(&TraceEntry::KIND);
    }
    /// Trace: a list of messages with their times. In a spec, `file` may name a file instead: lines
    /// `time,size` or `time,size,stream`, in seconds from the flow's start and in bytes, unless a
    /// title line gives other units; or a Parquet file (`.parquet`) with these columns.
    pub(super) static ENTRY: KindEntry<BoxedWorkload, Context> = "trace", |config, _| {
        let entries = config.messages;
        let mut pairs = entries.windows(2);
        if let Some(index) = pairs.position(|pair| pair[1].at < pair[0].at) {
            let [before, after] = [index, index + 1].map(|it| show_time(entries[it].at));
            return Err(KindError::together(format!(
                "`messages[{}].at`: found {after:?} after {before:?}; messages stand in the order of time",
                index + 1
            )));
        }
        Ok(Box::new(MessageTrace::new(entries)?))
    };
}

table! {
    /// One message of a trace.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TraceEntry {
        /// Time of the message after the start of the flow.
        at: Nanos, PAUSE;
        /// Size of the message in bytes.
        size: usize, SIZE;
        /// Stream of the message.
        stream: u16 = 0, Kind::count(0, u16::MAX as u64);
    }
}

/// Workload that offers the messages of a trace, in order.
#[derive(Clone, Debug)]
pub struct MessageTrace {
    entries: Vec<TraceEntry>,
    offered: usize,
    begin: Option<Nanos>,
}

impl MessageTrace {
    /// Offers the given messages.
    ///
    /// # Errors
    /// [`BuildError::Workload`] if the messages are not in the order of time or one of them is
    /// empty.
    pub fn new(entries: Vec<TraceEntry>) -> Result<Self, BuildError> {
        if !entries.is_sorted_by_key(|entry| entry.at) {
            return Err(BuildError::Workload("a trace in the order of time"));
        }
        if entries.iter().any(|entry| entry.size == 0) {
            return Err(BuildError::Workload("messages of at least one byte"));
        }
        Ok(Self {
            entries,
            offered: 0,
            begin: None,
        })
    }
}

impl Workload for MessageTrace {
    fn next(&mut self, now: Nanos) -> NextMessage {
        let begin = *self.begin.get_or_insert(now);
        let Some(entry) = self.entries.get(self.offered) else {
            return NextMessage::Done;
        };
        let due = begin.saturating_add(entry.at);
        if due > now {
            return NextMessage::At(due);
        }
        self.offered += 1;
        NextMessage::Now(Message {
            stream: Some(entry.stream),
            ..Message::new(entry.size).due(due)
        })
    }

    fn facts(&self) -> Facts {
        let sizes = || self.entries.iter().map(|entry| entry.size as u64);
        Facts {
            sizes: [sizes().min().unwrap_or(1), sizes().max().unwrap_or(1)],
            ..Facts::default()
        }
    }
}
