//! Maps of the constellations of a run, as an SVG document.

use std::collections::BTreeMap;

use anabranch_engine::sink::{RunId, Sink, SinkError};
use anabranch_report::figure::map::{self, ConstellationSeries};
use anabranch_report::figure::{for_page, map_svg};
use anabranch_scenario::constellation::Class;
use anabranch_scenario::measure::{ENDS, PATH, POSITION, UTILIZATION};
use anabranch_scenario::quantity::TimeSpan;
use anabranch_scenario::records::{RunRecord, SeriesKey, SeriesRecord, SeriesSample};
use anabranch_scenario::spec::Recorded;
use anabranch_scenario::{Record, Spec};
use serde::Deserialize;

use crate::event_stream::{EventStream, ResponseLine};
use crate::run;
use crate::samples;
use crate::session::{RunSelection, Session};

/// Number of maps that are shown one after the other.
const FRAMES: u32 = 10;
/// Maximum number of paths that are drawn.
const MAX_PATHS: usize = 3;

/// Maximum number of bins in a run, all of which are kept in memory.
const MAX_MAP_BINS: u64 = 1_000;

/// Request for a map.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapRequest {
    /// Index of the pane that requests the maps.
    pub pane: usize,
    /// The selected run.
    pub choice: RunSelection,
    /// Start and end of the displayed time window, seconds; the whole run if omitted.
    #[serde(default)]
    pub window: Option<(f64, f64)>,
}

/// Executes a run, and sends the maps of its constellations as one SVG document. If there is no
/// map, sends a line with the reason.
pub fn run(session: &Session, wanted: &MapRequest, stream: &EventStream) {
    let mut plan = match run::planned(session, &wanted.choice) {
        Ok((_, plan)) => plan,
        Err(error) => return stream.refused(&error),
    };
    let Some(experiment) = plan.experiments.first() else {
        return;
    };
    let spec = match experiment.resolve(&experiment.points[0]) {
        Ok(point) => std::sync::Arc::clone(&point.spec),
        Err(error) => return stream.refused(&error),
    };
    let duration = spec.world.duration;
    let window = run::shown(wanted.window, duration.seconds());
    let bin = bin_width(window, duration);
    if let Err(error) = samples::put_in(&mut plan, &records(&spec, bin)) {
        return stream.refused(&error);
    }
    let mut kept = Kept {
        stream: stream.clone(),
        all: Vec::new(),
    };
    if let Err(error) = run::simulate(&plan, &mut kept) {
        return stream.failed(&error);
    }
    let all = series(&spec, bin, kept.all);
    let maps = map::frames(&all, window, FRAMES);
    let title = spec.title.as_deref().unwrap_or(&spec.name);
    match map_svg(&maps, title) {
        // An error means that the client has disconnected.
        Ok(text) => drop(stream.put(for_page(&text).into_bytes())),
        Err(text) => stream.say(&ResponseLine::Failed { text }),
    }
}

/// Width of the bins, nanoseconds: the duration of a frame, or more so that the run has at most
/// [`MAX_MAP_BINS`].
fn bin_width((from, until): (f64, f64), duration: TimeSpan) -> u64 {
    let [from, until] = [from, until].map(|it| (it * 1e9).round() as u64);
    let frame = until.saturating_sub(from) / u64::from(FRAMES);
    frame.max(duration.0.div_ceil(MAX_MAP_BINS)).max(1)
}

/// Probes of all constellations, with bins of this width in nanoseconds.
fn records(spec: &Spec, bin: u64) -> Vec<Record> {
    let all = spec.constellations.iter();
    let all = all.map(|constellation| Record {
        flow: None,
        link: None,
        constellation: Some(constellation.name.clone()),
        probes: [POSITION, UTILIZATION, PATH].map(str::to_owned).to_vec(),
        window: None,
        replications: Some(Recorded::All),
        bin: Some(TimeSpan(bin)),
    });
    all.collect()
}

/// Groups recorded series by constellation.
fn series(spec: &Spec, bin: u64, all: Vec<SeriesRecord>) -> Vec<ConstellationSeries> {
    let mut groups: BTreeMap<(String, String), Vec<SeriesRecord>> = BTreeMap::new();
    for series in all {
        let key = (series.entity.clone(), series.probe.clone());
        groups.entry(key).or_default().push(series);
    }
    let of = |entity: &str, probe: &str| {
        let found = groups.get(&(entity.to_owned(), probe.to_owned()));
        let mut found = found.cloned().unwrap_or_default();
        found.sort_by_key(|series| series.member);
        found
    };
    let each = spec.constellations.iter().map(|constellation| {
        let name = &constellation.name;
        let grounds = spec.grounds.iter().filter(|ground| ground.uses(name));
        let isls = constellation.link_name(Class::Isl);
        let flows = spec.flows.iter().flat_map(|flow| {
            let label = |member: u32| match flow.count.0 {
                1 => flow.name.clone(),
                _ => format!("{}[{member}]", flow.name),
            };
            let own = of(&flow.name, PATH).into_iter();
            own.map(move |series| (label(series.member), series))
        });
        ConstellationSeries {
            satellites: constellation.counted.satellites,
            positions: of(name, POSITION),
            stations: grounds.flat_map(|it| of(&it.name, POSITION)).collect(),
            ends: of(isls, ENDS),
            utilization: of(isls, UTILIZATION),
            paths: flows.take(MAX_PATHS).collect(),
            bin: bin as f64 / 1e9,
            end: spec.world.duration.seconds(),
        }
    });
    each.collect()
}

/// Sink that keeps all series.
struct Kept {
    stream: EventStream,
    all: Vec<SeriesRecord>,
}

impl Sink for Kept {
    fn begin(&mut self, _: RunId<'_>, keys: &[SeriesKey]) -> Result<(), SinkError> {
        let empty = keys.iter().map(|key| SeriesRecord {
            experiment: String::new(),
            point: Vec::new(),
            replication: 0,
            entity: key.entity.clone(),
            member: key.member,
            probe: key.probe.to_owned(),
            samples: Vec::new(),
        });
        self.all = empty.collect();
        Ok(())
    }

    fn samples(&mut self, samples: &[(u32, SeriesSample)]) -> Result<(), SinkError> {
        self.stream.check()?;
        for (key, sample) in samples {
            if let Some(series) = self.all.get_mut(*key as usize) {
                series.samples.push(*sample);
            }
        }
        Ok(())
    }

    fn end(&mut self, _: &RunRecord) -> Result<(), SinkError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_window_has_few_bins_in_its_run() {
        let long = TimeSpan(200_000_000_000);
        assert_eq!(bin_width((5.0, 5.001), long), 200_000_000);
        assert_eq!(bin_width((0.0, 200.0), long), 20_000_000_000);
        assert_eq!(bin_width((0.0, 1e-9), TimeSpan(1)), 1);
    }
}
