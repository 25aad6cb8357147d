//! Messages that were written down.

use anabranch_settings::units::show_time;
use anabranch_settings::{Datum, Entry, Fallback, Kind, Refusal, Setting, Value, Variant};
use anabranch_transport::Nanos;

use super::{Context, Facts, MESSAGE, Made, Message, Offer, SIZE, Workload};
use crate::error::BuildError;

/// How specs name it.
pub(super) static ENTRY: Entry<Made, Context> = Entry {
    variant: Variant {
        name: "trace",
        about: " A list of messages. A spec may name a `file` instead: lines `time,size` or `time,size,stream`, in seconds \
                from the flow's start and in bytes, unless a first line of titles says other units, or a Parquet file (`.parquet`) with these columns.",
        parameters: &[Setting {
            name: "messages",
            about: " The messages, in order of time.",
            clause: "",
            kind: Kind::List(&Kind::Table(ROW)),
            fallback: Fallback::Required,
        }],
    },
    build: |parameters, _| {
        let entries: Vec<TraceEntry> = parameters.list("messages")?;
        let mut pairs = entries.windows(2);
        if let Some(index) = pairs.position(|pair| pair[1].after < pair[0].after) {
            let [before, after] = [index, index + 1].map(|it| show_time(entries[it].after));
            return Err(Refusal::together(format!(
                "`messages[{}].at`: found {after:?} after {before:?}; messages stand in the order of time",
                index + 1
            )));
        }
        Ok(Box::new(Trace::new(entries).map_err(Refusal::together)?))
    },
};

/// A message in a spec.
const ROW: &[Setting] = &[
    Setting {
        name: "at",
        about: " Time after the flow's start.",
        clause: "",
        kind: Kind::Duration {
            least: 0,
            most: Nanos::MAX,
        },
        fallback: Fallback::Required,
    },
    Setting {
        name: "size",
        kind: SIZE,
        about: " Size of the message.",
        ..MESSAGE
    },
    Setting {
        name: "stream",
        about: " Stream of the message.",
        clause: "",
        kind: Kind::Count {
            least: 0,
            most: u16::MAX as u64,
        },
        fallback: Fallback::Is("0"),
    },
];

/// One message of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// When it is due, counted from the first question.
    pub after: Nanos,
    /// Its size, bytes, and stream.
    pub message: Message,
}

impl Value for TraceEntry {
    const KIND: Kind = Kind::Table(ROW);

    fn from_datum(datum: &Datum) -> Option<Self> {
        let whole = |name: &str| datum.key(name).and_then(Datum::whole);
        let stream = u16::try_from(whole("stream").unwrap_or(0)).ok()?;
        Some(Self {
            after: whole("at")?,
            message: Message {
                stream: Some(stream),
                ..Message::new(usize::try_from(whole("size")?).ok()?)
            },
        })
    }

    fn to_datum(&self) -> Datum {
        let entry = |name: &str, value: u64| (name.to_owned(), Datum::Whole(value));
        let mut entries = vec![
            entry("at", self.after),
            entry("size", self.message.size as u64),
        ];
        let stream = self.message.stream;
        entries.extend(stream.map(|stream| entry("stream", stream.into())));
        Datum::Table(entries)
    }
}

/// The messages of a trace, in order.
#[derive(Clone, Debug)]
pub struct Trace {
    entries: Vec<TraceEntry>,
    offered: usize,
    begin: Option<Nanos>,
}

impl Trace {
    /// These messages.
    ///
    /// # Errors
    /// [`BuildError::Workload`] if they are not in the order of time or one is empty.
    pub fn new(entries: Vec<TraceEntry>) -> Result<Self, BuildError> {
        if !entries.is_sorted_by_key(|entry| entry.after) {
            return Err(BuildError::Workload("a trace in the order of time"));
        }
        if entries.iter().any(|entry| entry.message.size == 0) {
            return Err(BuildError::Workload("messages of at least one byte"));
        }
        Ok(Self {
            entries,
            offered: 0,
            begin: None,
        })
    }
}

impl Workload for Trace {
    fn next(&mut self, now: Nanos) -> Offer {
        let begin = *self.begin.get_or_insert(now);
        let Some(entry) = self.entries.get(self.offered) else {
            return Offer::Done;
        };
        let due = begin.saturating_add(entry.after);
        if due > now {
            return Offer::At(due);
        }
        self.offered += 1;
        Offer::Now(entry.message.due(due))
    }

    fn facts(&self) -> Facts {
        let sizes = || self.entries.iter().map(|entry| entry.message.size as u64);
        Facts {
            sizes: [sizes().min().unwrap_or(1), sizes().max().unwrap_or(1)],
            ..Facts::default()
        }
    }
}
