//! Recorder: selects the samples of a run, and transfers them to the sink.

use std::rc::Rc;

use anabranch_scenario::measure::{self, LinkQuantity};
use anabranch_scenario::names::MemberSelection;
use anabranch_scenario::quantity::Window;
use anabranch_scenario::records::{SeriesKey, SeriesSample};
use anabranch_scenario::{Experiment, Flow, Record, Spec};
use anabranch_sim::{BuildError, LinkDirection, LinkId, LinkProbe, LinkProbes, LinkSample, World};
use anabranch_transport::{Probe, time};

use crate::agent::flow_stats::RecordedProbe;
use crate::agent::series;
use crate::agent::series::SampleBuffer;
use crate::metric::Measures;
use crate::probe::{ProbeEntry, RecordOptions};
use crate::sink::{Sink, SinkError};
use crate::world::link_observers::LinkObservers;

/// Records of a run, keys of its series, and buffered samples.
pub struct RunRecorder {
    records: Vec<Record>,
    keys: Vec<SeriesKey>,
    buffer: SampleBuffer,
}

/// A recorded series of a link direction.
struct LinkSeries {
    link: LinkId,
    quantity: LinkQuantity,
    window: Option<Window>,
    key: u32,
}

impl RunRecorder {
    /// Recorder for one replication of `experiment`.
    pub fn new(experiment: &Experiment, replication: u32) -> Self {
        let records = experiment
            .records
            .iter()
            .filter(|record| record.wants(replication))
            .cloned()
            .collect();
        Self {
            records,
            keys: Vec::new(),
            buffer: SampleBuffer::default(),
        }
    }

    /// Buffer to which samples are appended.
    pub fn buffer(&self) -> SampleBuffer {
        Rc::clone(&self.buffer)
    }

    /// Records that concern constellations.
    pub fn constellations(&self) -> impl Iterator<Item = &Record> {
        let all = self.records.iter();
        all.filter(|record| record.constellation.is_some())
    }

    /// Adds a series, and returns its index.
    pub fn key(&mut self, entity: &str, member: u32, probe: &'static str) -> u32 {
        let key = SeriesKey {
            entity: entity.to_owned(),
            member,
            probe,
        };
        self.keys.push(key);
        self.keys.len() as u32 - 1
    }

    /// Recorded series of a flow member that come from its transport.
    pub fn of_flow(&mut self, flow: &Flow, member: u32) -> Vec<RecordedProbe> {
        let mut recorded = Vec::new();
        for record in self.records.clone() {
            if !means(record.flow.as_deref(), &flow.name, member, flow.count.0) {
                continue;
            }
            for probe in record
                .probes
                .iter()
                .filter_map(|name| Probe::from_name(name))
            {
                let key = self.key(&flow.name, member, probe.name());
                recorded.push(RecordedProbe {
                    probe,
                    window: record.window,
                    key,
                });
            }
        }
        recorded
    }

    /// Recorded series of a flow member that are computed by the engine.
    pub fn series_of(
        &mut self,
        kinds: &[&'static ProbeEntry],
        flow: &Flow,
        member: u32,
    ) -> Vec<series::SeriesRecorder> {
        let mut all = Vec::new();
        for record in self.records.clone() {
            if !means(record.flow.as_deref(), &flow.name, member, flow.count.0) {
                continue;
            }
            for entry in kinds {
                if !record.probes.iter().any(|name| name == entry.name) {
                    continue;
                }
                let bin = record.bin_width().0;
                all.push(series::SeriesRecorder {
                    series: (entry.make)(RecordOptions { bin }),
                    window: record.window,
                    key: self.key(&flow.name, member, entry.name),
                });
            }
        }
        all
    }

    /// Enables the link probes that series and metrics need. At the end of the run the caller must
    /// read the returned observers.
    pub fn attach_links(
        &mut self,
        world: &mut World,
        spec: &Spec,
        links: &[Vec<LinkId>],
        measures: &Measures,
    ) -> Result<LinkObservers, BuildError> {
        let mut series = Vec::new();
        let lanes = LinkObservers::default();
        let end = spec.world.duration.0;
        for (link, members) in spec.carriers().zip(links) {
            for (&id, member) in members.iter().zip(0..) {
                let name = (link.name(), members.len() as u32);
                for direction in LinkDirection::BOTH {
                    let (mut probes, observers) =
                        measures.lane_observers(name, member, direction, end);
                    if direction == LinkDirection::Forward {
                        // The probes of recorded series come first in the union, because they may
                        // set the bin width.
                        let recorded = self.of_link(name, member, id, &mut series);
                        probes = recorded.union(probes);
                    }
                    if !observers.is_empty() {
                        lanes.watch(id, direction, observers);
                    }
                    if probes != LinkProbes::default() {
                        world.probe(id, direction, probes)?;
                    }
                }
            }
        }
        if !(series.is_empty() && lanes.is_empty()) {
            let (buffer, lanes) = (self.buffer(), lanes.clone());
            world.set_recorder(Box::new(move |sample: LinkSample| {
                lanes.tell(&sample);
                if sample.direction == LinkDirection::Forward {
                    keep(&series, &buffer, &sample);
                }
            }));
        }
        Ok(lanes)
    }

    fn of_link(
        &mut self,
        (name, count): (&str, u32),
        member: u32,
        id: LinkId,
        series: &mut Vec<LinkSeries>,
    ) -> LinkProbes {
        let mut probes = LinkProbes::default();
        for record in self.records.clone() {
            if !means(record.link.as_deref(), name, member, count) {
                continue;
            }
            for wanted in &record.probes {
                let Some(probe) = measure::LinkProbe::from_name(wanted) else {
                    continue;
                };
                match probe.quantity {
                    LinkQuantity::Throughput => {
                        probes.throughput = Some(record.bin_width().0);
                    }
                    LinkQuantity::Queue => probes.queue = true,
                    LinkQuantity::Drop => probes.drops = true,
                }
                let key = self.key(name, member, probe.name);
                series.push(LinkSeries {
                    link: id,
                    quantity: probe.quantity,
                    window: record.window,
                    key,
                });
            }
        }
        probes
    }

    /// Removes and returns the keys of all series, for the series file.
    pub fn take_keys(&mut self) -> Vec<SeriesKey> {
        std::mem::take(&mut self.keys)
    }

    /// Moves the buffered samples to `sink`.
    pub fn drain(&mut self, sink: &mut dyn Sink) -> Result<(), SinkError> {
        let mut buffer = self.buffer.borrow_mut();
        if !buffer.is_empty() {
            sort(&mut buffer);
            sink.samples(&buffer)?;
            buffer.clear();
        }
        Ok(())
    }
}

/// Sorts samples by their times, and those of the same time by their series, so that their order
/// does not depend on the number of threads. Samples of one series, index and time keep their
/// order.
fn sort(samples: &mut [(u32, SeriesSample)]) {
    samples.sort_by(|(one_key, one), (other_key, other)| {
        let by_time = one.time.total_cmp(&other.time);
        by_time.then((one_key, one.index).cmp(&(other_key, other.index)))
    });
}

/// Whether the name of a record covers a member of a group of `count`.
pub(super) fn means(name: Option<&str>, group: &str, member: u32, count: u32) -> bool {
    let name = name.map(MemberSelection::parse);
    name.is_some_and(|name| name.group == group && name.contains(member, count))
}

/// Stores a link sample in the units of the series: throughput in bit/s, and a drop as the number
/// of its reason.
fn keep(series: &[LinkSeries], buffer: &SampleBuffer, sample: &LinkSample) {
    let (quantity, index, value) = match sample.probe {
        LinkProbe::Throughput => (LinkQuantity::Throughput, 0, sample.value * 8.0),
        LinkProbe::QueueLength => (LinkQuantity::Queue, 0, sample.value),
        LinkProbe::Dropped(reason) => (LinkQuantity::Drop, reason as u16, sample.value),
        // Specs cannot record these probes.
        LinkProbe::Marked | LinkProbe::Sojourn => return,
    };
    for series in series
        .iter()
        .filter(|series| series.link == sample.link && series.quantity == quantity)
    {
        if series
            .window
            .is_none_or(|window| window.contains(sample.at))
        {
            let kept = SeriesSample {
                index,
                time: time::seconds(sample.at),
                value,
            };
            buffer.borrow_mut().push((series.key, kept));
        }
    }
}
