//! Ladder view: the packets of one flow in a time window. The run is repeated for each view.
//! Because it is deterministic, it has the same packets again, so no samples need to be stored.

use std::collections::BTreeMap;

use anabranch_engine::sink::{RunId, Sink, SinkError};
use anabranch_report::figure::ladder::{Fate, Ladder};
use anabranch_scenario::records::{RunRecord, SeriesKey, SeriesRecord, SeriesSample};
use serde::{Deserialize, Serialize};

use crate::event_stream::EventStream;
use crate::run::{planned, shown, simulate};
use crate::samples::{put_in, to_follow};
use crate::session::{RunSelection, Session};

/// Maximum number of samples of a probe, including those in the margins around the window. Limited,
/// because matching has quadratic cost.
const MAX_SAMPLES: usize = 3000;

/// Maximum number of segments and of acknowledgements that are drawn.
const MAX_DRAWN: usize = 1200;

/// Duration before and after the window for which samples are used, seconds. Packets that were sent
/// before the window may arrive within it.
const MARGIN: f64 = 3.0;

/// Request for a ladder.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LadderRequest {
    /// Index of the pane that requests the ladder.
    pub pane: usize,
    /// The selected run.
    pub choice: RunSelection,
    /// Name of the flow.
    pub flow: String,
    /// Member of the flow.
    pub member: u32,
    /// Start and end of the window, seconds.
    pub window: (f64, f64),
}

/// Response, as one line of JSON.
#[derive(Debug, Serialize)]
struct Answer {
    is: &'static str,
    window: (f64, f64),
    /// True if only the first packets of the window are included.
    cut: bool,
    segments: Vec<Segment>,
    acks: Vec<Ack>,
}

#[derive(Debug, Serialize)]
struct Segment {
    number: u64,
    departed: f64,
    /// Time of arrival, seconds; `None` if the packet was lost or its arrival is unknown.
    arrived: Option<f64>,
    lost: bool,
    again: bool,
}

#[derive(Debug, Serialize)]
struct Ack {
    covers: u64,
    departed: f64,
    arrived: f64,
    duplicate: bool,
}

/// Executes the run, and sends the packets of the window.
pub fn run(session: &Session, wanted: &LadderRequest, stream: &EventStream) {
    let mut plan = match planned(session, &wanted.choice) {
        Ok((_, plan)) => plan,
        Err(error) => return stream.refused(&error),
    };
    let seconds = plan.spec.world.duration.seconds();
    let window = shown(Some(wanted.window), seconds);
    if let Err(error) = put_in(&mut plan, &to_follow(&wanted.flow, wanted.member)) {
        return stream.refused(&error);
    }
    let mut kept = WindowSamples {
        stream,
        from: window.0 - MARGIN,
        to: window.1 + MARGIN,
        keys: Vec::new(),
        samples: BTreeMap::new(),
        full: false,
        over: false,
    };
    if let Err(error) = simulate(&plan, &mut kept)
        && !kept.over
    {
        return stream.failed(&error);
    }
    let answer = kept.answer(&wanted.flow, window);
    let mut bytes = serde_json::to_vec(&answer).unwrap_or_default();
    bytes.push(b'\n');
    // Fails if the client has disconnected.
    let _ = stream.put(bytes);
}

/// Sink for the samples of a part of a run, after which the run is stopped.
struct WindowSamples<'a> {
    stream: &'a EventStream,
    from: f64,
    to: f64,
    keys: Vec<SeriesKey>,
    samples: BTreeMap<u32, Vec<SeriesSample>>,
    /// True if the maximum number of samples was reached.
    full: bool,
    over: bool,
}

impl WindowSamples<'_> {
    fn answer(self, flow: &str, window: (f64, f64)) -> Answer {
        let read = |probe: &str| {
            let key = self.keys.iter().position(|key| key.probe == probe);
            let samples = key.and_then(|key| self.samples.get(&(key as u32)));
            Ok(samples.map(|samples| SeriesRecord {
                experiment: String::new(),
                point: Vec::new(),
                replication: 0,
                entity: flow.to_owned(),
                member: 0,
                probe: probe.to_owned(),
                samples: samples.clone(),
            }))
        };
        // Cannot fail, because the samples are in memory.
        let ladder = Ladder::of(flow, Some(window), read).unwrap_or_default();
        let mut answer = Answer {
            is: "ladder",
            window,
            cut: self.full,
            segments: Vec::new(),
            acks: Vec::new(),
        };
        let Some(ladder) = ladder else {
            return answer;
        };
        answer.cut |= ladder.segments.len() > MAX_DRAWN || ladder.acks.len() > MAX_DRAWN;
        let segments = ladder.segments.iter().take(MAX_DRAWN);
        answer.segments.extend(segments.map(|segment| Segment {
            number: segment.number,
            departed: segment.departed,
            arrived: match segment.fate {
                Fate::Arrived(at) => Some(at),
                Fate::Lost | Fate::Unknown => None,
            },
            lost: segment.fate == Fate::Lost,
            again: segment.again,
        }));
        let acks = ladder.acks.iter().take(MAX_DRAWN);
        answer.acks.extend(acks.map(|ack| Ack {
            covers: ack.covers,
            departed: ack.departed,
            arrived: ack.arrived,
            duplicate: ack.duplicate,
        }));
        answer
    }
}

impl Sink for WindowSamples<'_> {
    fn begin(&mut self, _: RunId<'_>, keys: &[SeriesKey]) -> Result<(), SinkError> {
        self.keys = keys.to_vec();
        Ok(())
    }

    fn samples(&mut self, samples: &[(u32, SeriesSample)]) -> Result<(), SinkError> {
        self.stream.check()?;
        for (key, sample) in samples.iter().filter(|(_, it)| it.time >= self.from) {
            if sample.time > self.to {
                self.over = true;
                return Err("what is wanted has been seen".into());
            }
            let kept = self.samples.entry(*key).or_default();
            match kept.len() < MAX_SAMPLES {
                true => kept.push(*sample),
                false => self.full = true,
            }
        }
        Ok(())
    }

    fn end(&mut self, _: &RunRecord) -> Result<(), SinkError> {
        Ok(())
    }
}
