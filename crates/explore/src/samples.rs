//! Probes that are recorded for display. The records in the spec are ignored.

use std::fmt::Write;
use std::sync::Arc;

use anabranch_engine::plan::Plan;
use anabranch_engine::sink::{RunId, Sink, SinkError};
use anabranch_scenario::diagnostic::SpecError;
use anabranch_scenario::quantity::TimeSpan;
use anabranch_scenario::records::{RunRecord, SeriesKey, SeriesSample};
use anabranch_scenario::spec::Recorded;
use anabranch_scenario::unit::of_probe;
use anabranch_scenario::{Link, Record, Spec};

use crate::downsample::DrawStyle;
use crate::event_stream::EventStream;

/// Probes of a flow, with their drawing style.
const OF_FLOWS: &[(&str, DrawStyle)] = &[
    ("cwnd", DrawStyle::Line),
    ("cumulative_ack", DrawStyle::Line),
    ("goodput", DrawStyle::Line),
    ("retransmitted", DrawStyle::Marks),
    ("fast_retransmit", DrawStyle::Marks),
    ("timeout", DrawStyle::Marks),
];
/// Probes of a link, with their drawing style.
const OF_LINKS: &[(&str, DrawStyle)] = &[("queue", DrawStyle::Line), ("drop", DrawStyle::Marks)];

/// Probes for the ladder view.
pub const OF_LADDER: &[&str] = &[
    "sent",
    "retransmitted",
    "received",
    "cumulative_ack",
    "duplicate_ack",
];

/// Maximum number of recorded flows and links.
const MAX_FLOWS: u32 = 8;
const MAX_LINKS: usize = 6;

/// Number of goodput bins in the displayed time window.
const BINS: u64 = 100;
/// Minimum width of a bin, nanoseconds.
const MIN_BIN: u64 = 1_000_000;

/// Drawing style of a probe, by its name.
pub fn drawn(probe: &str) -> DrawStyle {
    let mut known = OF_FLOWS.iter().chain(OF_LINKS);
    let found = known.find(|(name, _)| *name == probe);
    found.map_or(DrawStyle::Line, |(_, drawn)| *drawn)
}

fn names(probes: &[(&str, DrawStyle)]) -> Vec<String> {
    probes.iter().map(|(name, _)| (*name).to_owned()).collect()
}

fn record(probes: Vec<String>) -> Record {
    Record {
        flow: None,
        link: None,
        constellation: None,
        probes,
        window: None,
        replications: Some(Recorded::All),
        bin: None,
    }
}

/// Probes for the first flows and links of a spec. `shown` is the duration of the displayed window,
/// nanoseconds.
pub fn to_draw(spec: &Spec, shown: u64) -> Vec<Record> {
    let mut left = MAX_FLOWS;
    let mut records = Vec::new();
    for flow in &spec.flows {
        let count = flow.count.0.min(left);
        left -= count;
        if count > 0 {
            records.push(Record {
                flow: Some(group(&flow.name, count, flow.count.0)),
                bin: Some(TimeSpan((shown / BINS).max(MIN_BIN))),
                ..record(names(OF_FLOWS))
            });
        }
    }
    // Links with a limited queue are preferred; if there are none, all links are used.
    let limited = |link: &&Link| link.queue.side(true).is_some();
    let some = spec.links.iter().any(|link| limited(&link));
    let wires = spec.links.iter().filter(|link| !some || limited(link));
    let wires = wires.map(|link| link.name.as_str());
    let cells = spec.cells.iter().map(|cell| cell.name.as_str());
    let links = wires.chain(cells).take(MAX_LINKS);
    records.extend(links.map(|link| Record {
        link: Some(link.to_owned()),
        ..record(names(OF_LINKS))
    }));
    records
}

/// Probes for the ladder view of one flow.
pub fn to_follow(flow: &str, member: u32) -> Vec<Record> {
    let probes = OF_LADDER.iter().map(|name| (*name).to_owned()).collect();
    vec![Record {
        flow: Some(format!("{flow}[{member}]")),
        ..record(probes)
    }]
}

fn group(name: &str, count: u32, all: u32) -> String {
    match count == all {
        true => name.to_owned(),
        false => format!("{name}[..{count}]"),
    }
}

/// Replaces the recorded probes of a plan.
///
/// # Errors
/// A point of the plan can no longer be resolved.
pub fn put_in(plan: &mut Plan, records: &[Record]) -> Result<(), SpecError> {
    let mut experiments = plan.experiments.iter_mut();
    experiments.try_for_each(|experiment| {
        experiment.change(|point| {
            Arc::make_mut(&mut point.experiment).records = records.to_vec();
        })
    })
}

/// Sink that writes every sample as a line of CSV.
pub struct Csv {
    stream: EventStream,
    keys: Vec<SeriesKey>,
    text: String,
}

impl Csv {
    /// Creates a sink that writes to the stream of a client.
    pub fn new(stream: EventStream) -> Self {
        Self {
            stream,
            keys: Vec::new(),
            text: "series,member,probe,unit,index,time,value\n".to_owned(),
        }
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.stream.put(std::mem::take(&mut self.text).into_bytes())
    }
}

/// Size of the buffered text at which it is sent, bytes.
const PIECE: usize = 1 << 16;

impl Sink for Csv {
    fn begin(&mut self, _: RunId<'_>, keys: &[SeriesKey]) -> Result<(), SinkError> {
        self.keys = keys.to_vec();
        Ok(())
    }

    fn samples(&mut self, samples: &[(u32, SeriesSample)]) -> Result<(), SinkError> {
        for (key, sample) in samples {
            let Some(key) = self.keys.get(*key as usize) else {
                continue;
            };
            let SeriesSample { index, time, value } = sample;
            // Writing to a string cannot fail. No quoting is needed, because names in a spec
            // contain neither quotes nor commas.
            let _ = writeln!(
                self.text,
                "{},{},{},{},{index},{time},{value}",
                key.entity,
                key.member,
                key.probe,
                of_probe(key.probe),
            );
            if self.text.len() > PIECE {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn end(&mut self, _: &RunRecord) -> Result<(), SinkError> {
        self.flush()
    }
}
