//! Streams downsampled samples of a run to the page while it is computed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::plan::{Plan, PlannedRun};
use anabranch_engine::sink::{RunId, Sink, SinkError};
use anabranch_engine::world::{self, WorldError};
use anabranch_scenario::diagnostic::SpecError;
use anabranch_scenario::records::{RunRecord, SeriesKey, SeriesSample};
use anabranch_scenario::unit::of_probe;
use serde::Deserialize;

use crate::downsample::Downsampler;
use crate::event_stream::{EventStream, ResponseLine, SeriesPoints};
use crate::samples;
use crate::session::{RunSelection, Session};

/// Interval at which samples are sent, so that the page is updated during the run.
const WAIT: Duration = Duration::from_millis(40);

/// Maximum number of lines in all charts together, because many flows may have very many paths and
/// streams.
const MAX_LINES: usize = 64;

/// Minimum duration of the displayed time window, seconds.
const MIN_SHOWN: f64 = 1e-3;

/// Request for a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Index of the pane that requests the run.
    pub pane: usize,
    /// The selected run.
    pub choice: RunSelection,
    /// Start and end of the displayed time window, seconds; the whole run if omitted.
    #[serde(default)]
    pub window: Option<(f64, f64)>,
}

/// Wall-clock time. It determines only when samples are sent, and not their contents.
#[allow(clippy::disallowed_methods)]
fn now() -> Instant {
    Instant::now()
}

/// Executes a run, and streams its samples. Blocks until the run ends.
pub fn run(session: &Session, wanted: &RunRequest, stream: &EventStream) {
    let begun = now();
    let (toml, mut plan) = match planned(session, &wanted.choice) {
        Ok(made) => made,
        Err(error) => return stream.refused(&error),
    };
    let Some(experiment) = plan.experiments.first() else {
        return;
    };
    let spec = match experiment.resolve(&experiment.points[0]) {
        Ok(point) => Arc::clone(&point.spec),
        Err(error) => return stream.refused(&error),
    };
    let duration = spec.world.duration.seconds();
    let window = shown(wanted.window, duration);
    let records = samples::to_draw(&spec, ((window.1 - window.0) * 1e9) as u64);
    let flows = spec.flows.iter();
    let flows = flows.flat_map(|it| (0..it.count.0).map(|member| (it.name.clone(), member)));
    let begin = ResponseLine::Begin {
        duration,
        window,
        toml: &toml,
        flows: flows.take(MAX_LINES).collect(),
    };
    if stream.put(begin.bytes()).is_err() {
        return stream.say(&ResponseLine::Superseded);
    }
    if let Err(error) = samples::put_in(&mut plan, &records) {
        return stream.refused(&error);
    }
    let mut drawing = Drawing {
        stream,
        window,
        begun,
        sent: begun,
        at: 0.0,
        keys: Vec::new(),
        lines: BTreeMap::new(),
    };
    if let Err(error) = simulate(&plan, &mut drawing) {
        stream.failed(&error);
    }
}

/// The spec of the selected run, and its plan.
///
/// # Errors
/// All errors of the spec.
pub fn planned(session: &Session, choice: &RunSelection) -> Result<(String, Plan), SpecError> {
    let single = session.single(choice)?;
    let plan = session.plan(choice, &single.toml)?;
    Ok((single.toml, plan))
}

/// Executes the only unit of a plan, with its results going to a sink.
///
/// # Errors
/// [`WorldError`].
pub fn simulate(plan: &Plan, sink: &mut dyn Sink) -> Result<(), WorldError> {
    match PlannedRun::all(plan).first() {
        Some(unit) => world::run(unit, plan.request.seed, sink, &[]).map(drop),
        None => Ok(()),
    }
}

/// Start and end of the displayed time window: those requested, limited to the duration of the run.
pub fn shown(asked: Option<(f64, f64)>, duration: f64) -> (f64, f64) {
    let (from, to) = asked.unwrap_or((0.0, duration));
    let (from, to) = (from.max(0.0), to.min(duration));
    match to - from >= MIN_SHOWN.min(duration) {
        true => (from, to),
        // The whole run, also if a value is NaN.
        false => (0.0, duration),
    }
}

/// Sink that downsamples the samples of a run, and sends them at intervals.
struct Drawing<'a> {
    stream: &'a EventStream,
    window: (f64, f64),
    begun: Instant,
    sent: Instant,
    /// Time of the last sample, seconds.
    at: f64,
    keys: Vec<SeriesKey>,
    lines: BTreeMap<(u32, u16), Downsampler>,
}

impl Drawing<'_> {
    fn send(&mut self, end: bool) -> Result<(), SinkError> {
        let mut lines = Vec::new();
        for (&(key, index), downsampler) in &mut self.lines {
            let points = downsampler.take(end);
            let Some(key) = self.keys.get(key as usize).filter(|_| !points.is_empty()) else {
                continue;
            };
            lines.push(SeriesPoints {
                entity: &key.entity,
                member: key.member,
                probe: key.probe,
                unit: of_probe(key.probe),
                index,
                x: points.iter().map(|(time, _)| *time as f32).collect(),
                y: points.iter().map(|(_, value)| *value as f32).collect(),
            });
        }
        let at = self.at;
        self.stream.put(ResponseLine::Points { at, lines }.bytes())
    }
}

impl Sink for Drawing<'_> {
    fn begin(&mut self, _: RunId<'_>, keys: &[SeriesKey]) -> Result<(), SinkError> {
        self.keys = keys.to_vec();
        Ok(())
    }

    fn samples(&mut self, samples: &[(u32, SeriesSample)]) -> Result<(), SinkError> {
        self.stream.check()?;
        let (from, to) = self.window;
        for (key, sample) in samples {
            let at = (*key, sample.index);
            if !self.lines.contains_key(&at) && self.lines.len() >= MAX_LINES {
                continue;
            }
            let probe = self.keys.get(*key as usize).map_or("", |key| key.probe);
            let new = || Downsampler::new(samples::drawn(probe), from, to);
            self.lines.entry(at).or_insert_with(new).push(sample);
        }
        self.at = samples.last().map_or(self.at, |(_, sample)| sample.time);
        if self.sent.elapsed() >= WAIT {
            self.send(false)?;
            self.sent = now();
        }
        Ok(())
    }

    fn end(&mut self, record: &RunRecord) -> Result<(), SinkError> {
        self.send(true)?;
        let end = ResponseLine::End {
            measures: &record.metrics,
            failures: &record.failures,
            events: record.events,
            took: self.begun.elapsed().as_secs_f64(),
        };
        self.stream.put(end.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_shown_lies_within_the_run() {
        assert_eq!(shown(None, 60.0), (0.0, 60.0));
        assert_eq!(shown(Some((10.0, 20.0)), 60.0), (10.0, 20.0));
        assert_eq!(shown(Some((-5.0, 99.0)), 60.0), (0.0, 60.0));
        for wrong in [(20.0, 10.0), (70.0, 80.0), (5.0, 5.0)] {
            assert_eq!(shown(Some(wrong), 60.0), (0.0, 60.0), "{wrong:?}");
        }
    }
}
