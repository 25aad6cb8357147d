//! Recording of constellations: positions of satellites and stations, utilisation of
//! inter-satellite links, and paths of flows.

use std::collections::BTreeMap;

use anabranch_orbit::Shells;
use anabranch_scenario::Record;
use anabranch_scenario::constellation::{Class, Constellation, Policy};
use anabranch_scenario::measure::{ENDS, PATH, POSITION, UTILIZATION};
use anabranch_scenario::names::member_name;
use anabranch_scenario::quantity::Window;
use anabranch_scenario::records::SeriesSample;
use anabranch_sim::{LinkDirection, LinkId, NodeId, PathFinder, World};
use anabranch_transport::{Nanos, time};

use super::recorder::RunRecorder;
use crate::agent::series::SampleBuffer;
use crate::network::Built;
use crate::network::constellation::place;
use crate::point::PlannedPoint;

/// Value of a sample for a path that does not exist.
const NO_PATH: f64 = -1.0;

/// Takes the samples for a record of a constellation, at multiples of its bin width.
pub struct ConstellationRecorder<'a> {
    bin: Nanos,
    window: Option<Window>,
    next: Nanos,
    end: Nanos,
    buffer: SampleBuffer,
    positions: Option<Positions<'a>>,
    utilization: Option<Utilization<'a>>,
    paths: Option<Paths<'a>>,
}

struct Positions<'a> {
    shells: &'a Shells,
    start: Nanos,
    /// Index of the series of each satellite.
    satellites: Vec<u32>,
    /// Index of the series of each station, and its position in degrees north and east.
    stations: Vec<(u32, [f64; 2])>,
}

struct Utilization<'a> {
    links: &'a [LinkId],
    /// For each link, `keys` has the index of its utilisation series, and `ends` has the index of
    /// the series that records its two satellites, and their numbers.
    keys: Vec<u32>,
    ends: Vec<(u32, [usize; 2])>,
    /// Time at which the transmitters were last read, and their busy times until then, nanoseconds.
    since: Nanos,
    busy: Vec<[Nanos; 2]>,
}

struct Paths<'a> {
    finder: PathFinder<'a>,
    point: &'a PlannedPoint,
    /// Number of each body: the satellites first, then the stations.
    bodies: BTreeMap<NodeId, usize>,
    /// Routing interval that must be followed step by step, because the satellite of a station
    /// depends on earlier ones; `None` if steps can be skipped.
    step: Option<Nanos>,
    followed: Nanos,
    /// Index of the series and last path of each flow member.
    members: Vec<(u32, Vec<usize>)>,
}

impl<'a> ConstellationRecorder<'a> {
    /// Creates the recorders for all records of constellations; `built` is a topology of the point.
    pub fn all(
        recording: &mut RunRecorder,
        point: &'a PlannedPoint,
        built: &'a Built,
    ) -> Vec<Self> {
        let records: Vec<Record> = recording.constellations().cloned().collect();
        let all = records.iter();
        all.filter_map(|record| Self::of(recording, record, point, built))
            .collect()
    }

    fn of(
        recording: &mut RunRecorder,
        record: &Record,
        point: &'a PlannedPoint,
        built: &'a Built,
    ) -> Option<Self> {
        let mut all = point.spec.constellations.iter();
        let index = all.position(|it| record.constellation.as_ref() == Some(&it.name))?;
        let constellation = &point.spec.constellations[index];
        let shells = point.resolved.parts.constellations()[index].shells();
        let wants = |probe: &str| record.probes.iter().any(|it| it == probe);
        Some(Self {
            bin: record.bin_width().0,
            window: record.window,
            next: 0,
            end: point.spec.world.duration.0,
            buffer: recording.buffer(),
            positions: wants(POSITION)
                .then(|| Positions::of(recording, point, (constellation, shells))),
            utilization: wants(UTILIZATION)
                .then(|| Utilization::of(recording, point, built, (constellation, shells)))
                .flatten(),
            paths: wants(PATH).then(|| Paths::of(recording, point, built, constellation)),
        })
    }

    /// Keeps only the samples of links, because another part of the divided world records the
    /// positions and paths.
    pub fn keep_links(&mut self) {
        (self.positions, self.paths) = (None, None);
        if let Some(utilization) = &mut self.utilization {
            utilization.ends.clear();
        }
    }

    /// Time of the next samples.
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// Takes the samples that are due.
    pub fn look(&mut self, world: &World, now: Nanos) {
        let end = now == self.end;
        if now < self.next && !end {
            return;
        }
        self.next = (now / self.bin + 1) * self.bin;
        let window = self.window;
        let mut buffer = self.buffer.borrow_mut();
        let mut push = |key: u32, index: u16, at: Nanos, value: f64| {
            if window.is_none_or(|window| window.contains(at)) {
                let time = time::seconds(at);
                buffer.push((key, SeriesSample { index, time, value }));
            }
        };
        if let Some(utilization) = &mut self.utilization {
            utilization.look(world, now, &mut push);
        }
        if end {
            return;
        }
        if let Some(positions) = &self.positions {
            positions.look(now, &mut push);
        }
        if let Some(paths) = &mut self.paths {
            paths.look(now, &mut push);
        }
    }
}

/// Stores a sample: index of its series, index in the series, time and value.
type Push<'p> = dyn FnMut(u32, u16, Nanos, f64) + 'p;

impl<'a> Positions<'a> {
    fn of(
        recording: &mut RunRecorder,
        point: &PlannedPoint,
        (constellation, shells): (&Constellation, &'a Shells),
    ) -> Self {
        let count = constellation.counted.satellites;
        let satellites = (0..count).map(|it| recording.key(&constellation.name, it, POSITION));
        let satellites = satellites.collect();
        let mut stations = Vec::new();
        let grounds = point.spec.grounds.iter();
        for ground in grounds.filter(|it| it.uses(&constellation.name)) {
            for (index, station) in (0..).zip(&ground.stations) {
                let at = place(&station.at);
                let at = at.map_or([f64::NAN; 2], |it| [it.latitude, it.longitude]);
                stations.push((recording.key(&ground.name, index, POSITION), at));
            }
        }
        Self {
            shells,
            start: constellation.start.0,
            satellites,
            stations,
        }
    }

    fn look(&self, now: Nanos, push: &mut Push<'_>) {
        let mut both = |key, [north, east]: [f64; 2]| {
            push(key, 0, now, north);
            push(key, 1, now, east);
        };
        if now == 0 {
            let stations = self.stations.iter();
            stations.for_each(|(key, position)| both(*key, *position));
        }
        let mut positions = Vec::new();
        let at = time::seconds(self.start.saturating_add(now));
        self.shells.positions(at, &mut positions);
        for (key, position) in self.satellites.iter().zip(positions) {
            if let Some([x, y, z]) = position {
                let north = z.atan2(x.hypot(y)).to_degrees();
                both(*key, [north, y.atan2(x).to_degrees()]);
            }
        }
    }
}

impl<'a> Utilization<'a> {
    /// Creates the recorder; `None` for a constellation without inter-satellite links.
    fn of(
        recording: &mut RunRecorder,
        point: &PlannedPoint,
        built: &'a Built,
        (constellation, shells): (&Constellation, &Shells),
    ) -> Option<Self> {
        let name = constellation.link_name(Class::Isl);
        let mut carriers = point.spec.carriers().zip(&built.links);
        let (_, links) = carriers.find(|(carrier, _)| carrier.name() == name)?;
        let members = 0..links.len() as u32;
        let keys = members.map(|it| recording.key(name, it, UTILIZATION));
        let keys = keys.collect();
        let ends = (0..).zip(shells.isls());
        let ends = ends.map(|(member, ends)| (recording.key(name, member, ENDS), ends));
        Some(Self {
            links,
            keys,
            ends: ends.collect(),
            since: 0,
            busy: vec![[0; 2]; links.len()],
        })
    }

    fn look(&mut self, world: &World, now: Nanos, push: &mut Push<'_>) {
        if now == 0 {
            for (key, [one, other]) in &self.ends {
                push(*key, 0, now, *one as f64);
                push(*key, 1, now, *other as f64);
            }
        }
        if now == self.since {
            return;
        }
        let bin = (now - self.since) as f64;
        for ((&link, &key), busy) in self.links.iter().zip(&self.keys).zip(&mut self.busy) {
            for (index, direction) in (0..).zip(LinkDirection::BOTH) {
                let Ok(stats) = world.link_stats(link, direction) else {
                    continue;
                };
                let before = std::mem::replace(&mut busy[usize::from(index)], stats.busy);
                if stats.busy > before {
                    push(
                        key,
                        index,
                        self.since,
                        (stats.busy - before) as f64 / bin * 100.0,
                    );
                }
            }
        }
        self.since = now;
    }
}

impl<'a> Paths<'a> {
    fn of(
        recording: &mut RunRecorder,
        point: &'a PlannedPoint,
        built: &'a Built,
        constellation: &Constellation,
    ) -> Self {
        let grounds = point.spec.grounds.iter();
        let grounds = grounds.filter(|it| it.uses(&constellation.name));
        let groups = grounds.map(|it| (it.name.as_str(), it.stations.len() as u32));
        let satellites = (
            constellation.name.as_str(),
            constellation.counted.satellites,
        );
        let names = std::iter::once(satellites).chain(groups);
        let names = names
            .flat_map(|(name, count)| (0..count).map(move |index| member_name(name, count, index)));
        let bodies = names.enumerate();
        let bodies = bodies.filter_map(|(body, name)| Some((built.topology.node(&name)?, body)));
        let members = point.resolved.members.iter().map(|member| {
            let flow = &point.spec.flows[member.flow];
            (recording.key(&flow.name, member.index, PATH), Vec::new())
        });
        Self {
            finder: PathFinder::new(&built.topology),
            point,
            bodies: bodies.collect(),
            step: (constellation.policy == Policy::Longest)
                .then(|| built.topology.moving_routes().interval),
            followed: 0,
            members: members.collect(),
        }
    }

    /// Updates the routes up to `now`.
    fn follow(&mut self, now: Nanos) {
        let member = self.point.resolved.members.first();
        let path = member.and_then(|it| Some((it.nodes[0], *it.paths.first()?)));
        let (Some(step), Some((node, [from, to]))) = (self.step, path) else {
            return;
        };
        while self.followed + step <= now {
            self.followed += step;
            self.finder.find(self.followed, node, from, to);
        }
    }

    fn look(&mut self, now: Nanos, push: &mut Push<'_>) {
        self.follow(now);
        for (member, (key, last)) in self.point.resolved.members.iter().zip(&mut self.members) {
            let Some(&[from, to]) = member.paths.first() else {
                continue;
            };
            let nodes = self.finder.nodes(now, member.nodes[0], from, to);
            let nodes = nodes.unwrap_or_default().into_iter();
            let path: Vec<usize> = nodes
                .filter_map(|it| self.bodies.get(&it).copied())
                .collect();
            if path != *last {
                if path.is_empty() {
                    push(*key, 0, now, NO_PATH);
                }
                for (index, body) in (0..).zip(&path) {
                    push(*key, index, now, *body as f64);
                }
                *last = path;
            }
        }
    }
}
